//! Words and phrases that show what a question asks for.

use crate::text::words::{begins_with, contains_any};

/// Words for things that are unfinished.
pub(crate) const OPEN: &str = "\
    open|unfinished|outstanding|pending|unresolved|unsolved|not finished|not done|not closed|\
    not solved|not resolved|not fixed|not completed|not yet|still waiting|offen|offene|offenen|\
    unerledigt|nicht erledigt|ouvert|ouverts|ouvertes|en attente|en cours|abierto|abiertos|\
    abiertas|pendiente|pendientes";
/// First words of the state of a record that has ended; a question with one asks for such records.
pub(crate) const ENDED: &str = "\
    ended|ends|expired|terminated|former|formerly|discontinued|beendet|gekündigt|ausgelaufen|\
    ehemals|ehemaliger|ehemalige|terminé|terminée|résilié|expiré|finalizado|terminado|rescindido|\
    vencido";
pub(crate) const LISTS: &str = "\
    what are|which are|who are|what were|list|list the|name the|name all|enumerate|give me all|\
    show all|what all|all the|was sind|welche sind|welches sind|nenne|liste|zähle|quels sont|\
    quelles sont|qui sont|cuáles son|quiénes son|enumera|lista";
/// Words of decisions, in questions for all of them and in the decisions themselves.
pub(crate) const DECISIONS: &str = "\
    decided|decide|decision|decisions|came out of|agreed|agree|resolved|approved|adopted|\
    postponed|rejected|\
    beschlossen|beschluss|beschlüsse|entschieden|genehmigt|vertagt|décidé|décision|décisions|\
    adopté|approuvé|decidido|decidió|decisión|decisiones|acordado|acuerdo|aprobado";
/// Words before a noun whose plural shows that several things are asked for.
pub(crate) const BEFORE_NOUN: &str = "which|what|welche|quels|quelles|qué|cuáles";
/// Words that ask for the sum of several values, and for their mean.
pub(crate) const SUMS: &str = "\
    total|sum|altogether|in all|combined|insgesamt|summe|gesamt|au total|somme|en total|suma";
pub(crate) const MEANS: &str = "\
    average|the mean|mean of|mean value|durchschnitt|durchschnittlich|durchschnittliche|\
    durchschnittlichen|durchschnittlicher|durchschnittliches|mittelwert|im mittel|moyenne|\
    prix moyen|promedio|la media|precio medio|valor medio";
/// Names of things that hold rows and whose rows a question may count.
pub(crate) const LISTINGS: &str = "\
    list|table|inventory|sheet|spreadsheet|register|catalogue|catalog|liste|tabelle|tableau|lista|\
    tabla";
/// Words that ask for a number of things.
pub(crate) const COUNTS: &str = "\
    how many|total number of|wie viele|gesamtzahl der|combien de|nombre total de|cuántos|cuántas|\
    número total de";
/// Words that compare two things.
pub(crate) const COMPARATIVES: &str = "\
    difference|differ|compared|compare|change|changed|versus|vs|than|unterschied|verglichen|als|\
    geändert|différence|comparé|changé|diferencia|comparado|cambiado";
/// Words that ask for an amount of money.
pub(crate) const MONEY: &str = "\
    cost|costs|price|prices|fee|fees|pay|cheap|cheaper|cheapest|expensive|charge|spend|spent|\
    kostet|kosten|preis|preise|gebühr|teurer|billiger|günstiger|zahlen|coûte|coûtent|prix|tarif|\
    payer|cuesta|cuestan|precio|precios|tarifa|pagar";
/// Things that have an amount of money, so that "orders over 500" bounds that amount and "the sum
/// of the orders" adds it up.
pub(crate) const OF_AMOUNTS: &str = "\
    order|orders|invoice|invoices|bill|bills|payment|payments|expense|expenses|purchase|purchases|\
    sale|sales|quote|quotes|donation|donations|grant|grants|claim|claims|refund|refunds|transfer|\
    transfers|transaction|transactions|bestellung|bestellungen|auftrag|aufträge|rechnung|\
    rechnungen|zahlung|zahlungen|ausgabe|ausgaben|spende|spenden|commande|commandes|facture|\
    factures|paiement|paiements|dépense|dépenses|pedido|pedidos|factura|facturas|pago|pagos|gasto|\
    gastos|compra|compras|venta|ventas";
/// Other words that ask for one of two.
pub(crate) const WHO_OR_WHERE: &str = "who|whose|where|wer|wo|qui|où|quién|dónde";
pub(crate) const EITHER: &str = "or|oder|ou|o";
/// Words that ask for a cause.
const CAUSES: &str = "\
    why|what caused|what causes|what was the cause|what is the cause|for what reason|\
    what is the reason|what was the reason|what was the problem|what went wrong|what made|\
    what led to|how come|how did it come|\
    warum|weshalb|wieso|woran lag|pourquoi|por qué|a qué se debe";
/// Openings that name the cause asked for.
const REASONS: &str = "\
    reason for|reason why|reason that|the reason for|the reason why|the cause of|\
    cause of|grund für|ursache für|raison de|raison pour|motivo de|motivo para";
/// First words of keywords that ask for the cause of something past or present: "reason fees were
/// raised".
const BARE_REASONS: &str = "reason|reasons|cause|grund|ursache|raison|motivo";
const OTHER_ASKING: &str = "what|who|which|how|where|when|wer|wie|wo|wann";
const HAPPENED: &str = "\
    was|were|is|are|has|have|had|did|does|wurde|wurden|war|ist|hat|est|sont|a été|ont été|fue|es|\
    está|ha";
/// Openings that ask for a cause if a word of happening follows.
const HOW_DID: &str = "how did|how could|how can it";
const COME: &str = "happen|occur|come about|come to|come into|get into|get in|get to|go wrong";

/// Final phrases that ask for what has to be done.
pub(crate) const TO_DO: &str = "what do i have to do|what do we have to do";
/// Phrases for a wish, and final phrases that then ask for the steps to what is wished.
pub(crate) const WISHES: &str = "\
    i would like to|i'd like to|we would like to|we'd like to|i want to|we want to|i wish to|\
    i need to|we need to|ich möchte|wir möchten|je voudrais|nous voudrions|quiero|queremos";
pub(crate) const HOW_IT_WORKS: &str = "\
    how does that work|how does it work|how does this work|wie geht das|comment ça marche|\
    cómo funciona";
/// Openings that ask for what was learnt, and the noun they stand for.
pub(crate) const LEARNT: &str =
    "what did we learn|what have we learnt|what have we learned|what was learnt";
pub(crate) const LESSONS: &str = "lessons";
/// Openings that ask for all that is forbidden, unless a number selects one of it.
pub(crate) const FORBIDDEN: &str = "\
    what is forbidden|what is not allowed|what isn't allowed|what is prohibited|what is banned|\
    what is not permitted|was ist verboten|was ist nicht erlaubt|qu'est ce qui est interdit|\
    qué está prohibido";

/// Whether a question asks for a cause; `spaced` holds its words, `opening` those from where it
/// asks.
pub(crate) fn asks_cause(spaced: &str, opening: &str) -> bool {
    contains_any(spaced, CAUSES)
        || begins_with(opening, REASONS)
        || (begins_with(opening, BARE_REASONS)
            && contains_any(opening, HAPPENED)
            && !contains_any(opening, OTHER_ASKING))
        || (begins_with(opening, HOW_DID) && contains_any(spaced, COME))
}
