//! Measures: questions that name the kind of value they want, and texts that hold such a value.
//!
//! "What does it cost?" asks for money, "how heavy is it?" for a weight. A number of another kind
//! does not answer. Only measures that show in a text by a unit or a mark are covered.

use crate::passages::blocks::Cell;
use crate::passages::candidates::Candidate;
use crate::question::phrases::MONEY;
use crate::question::qualities::unit;
use crate::question::scales::is_of_time;
use crate::question::troubles::states_trouble;
use crate::text::numbers::is_number;
use crate::text::values::{Quantity, has_money, quantities};
use crate::text::words::{
    Asked, PROGRESS, asked, begins_with, contains, ends_with, entries, is_entry, is_interrogative,
    spaced, tells_negation,
};
use unicode_segmentation::UnicodeSegmentation;

/// A kind of value that a question may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    Money,
    /// Someone's earnings.
    Pay,
    /// Times at which something is open.
    Hours,
    Temperature,
    Length,
    Weight,
    Share,
    Phone,
    Mail,
    Age,
}

const TEMPERATURES: &str = "\
    temperature|temperatures|how hot|how cold|how warm|temperatur|wie heiß|wie warm|wie kalt|\
    température|temperatura";
/// Further words in the names of price lists.
const MONEY_LISTS: &str = "rates|tariff|tariffs|charges|rent|rents|tarife|tarifs|tarifas";
const LENGTHS: &str = "\
    how deep|how tall|how wide|how thick|how high|how far|depth|height|width|thickness|wie tief|\
    wie hoch|wie breit|wie dick|tiefe|höhe|breite|profondeur|hauteur|largeur|profundidad|altura";
/// Phrases for a distance in time, not a length.
const NO_LENGTHS: &str = "how far ahead|how far in advance|how far beforehand|how far back";
const HIGHS: &str = "how high|wie hoch";
/// Nouns for amounts, which can be "high" too.
const AMOUNTS: &str = "\
    fee|rate|price|cost|costs|rent|salary|pay|supplement|surcharge|bonus|deposit|fine|share|limit|\
    interest|tax|budget|allowance|premium|discount|risk|number|score|damage|damages|loss|losses|\
    turnover|profit|bill|debt|liability|occupancy|demand|gebühr|preis|miete|kosten|gehalt|zuschlag|\
    kaution|strafe|anteil|zins|steuer|rabatt|prämie";
const WEIGHTS: &str = "\
    weight|weigh|weighs|how heavy|gewicht|wiegt|wie schwer|poids|pèse|peso|pesa|cuánto pesa";
const SHARES: &str = "\
    percentage|what percent|how many percent|per cent|prozent|prozentsatz|pourcentage|porcentaje";
const PHONES: &str = "\
    phone number|telephone number|mobile number|phone|telephone|extension|number to call|\
    number to ring|number to dial|number do i call|number do i ring|number do i dial|\
    number do we call|number do we ring|number should i call|number should i ring|\
    number can i call|number can i ring|number must i call|telefonnummer|telefon|téléphone|\
    teléfono";
/// Final phrases of questions for a telephone number, and openings that ask to be given it.
const PHONES_LAST: &str = "what number|which number|number please";
const GIVING: &str = "\
    can you give me|could you give me|can i have|could i have|may i have|give me|i need|\
    can someone give me|please give me";
const MAILS: &str =
    "email|e mail|email address|mail address|mailadresse|correo electrónico|courriel";
const AGES: &str = "how old|what age|wie alt|quel âge|qué edad|cuántos años tiene";
/// Words before a mail address word that make it a means: "sent by email".
const BY: &str = "by|via|per|through|over";
/// Words in a text that states an age or the year of a beginning.
const TELLS_AGE: &str = "\
    years|year|yrs|age|aged|old|born|built|founded|opened|since|bought|made|alt|jahre|geboren|ans|\
    né|née|años|nacido|nacida";
const PAYS: &str = "\
    salary|salaries|wage|wages|earn|earns|earned|gehalt|lohn|verdient|verdienen|salaire|gagne|\
    sueldo|salario|gana";
const HOURS: &str = "\
    opening hours|opening times|opening time|closing times|closing time|business hours|\
    öffnungszeiten|heures d'ouverture|horaires d'ouverture|horario de apertura";
const OPENS: &str = "\
    open|opens|close|closes|shut|shuts|öffnet|geöffnet|schließt|ouvre|ouvert|ouverte|ferme|abre|\
    abierto|abierta|cierra";
/// Words in a text that states when something is open.
const TELLS_OPEN: &str = "\
    open|opens|opened|opening|hours|closed|close|closes|closing|shut|shuts|offen|öffnet|geöffnet|\
    öffnung|öffnungszeiten|schließt|geschlossen|ouvre|ouvert|ouverte|ouverture|horaires|horaire|\
    ferme|fermé|abre|abierto|abierta|apertura|horario|horarios|cierra|cerrado";
/// Openings that make a measure the thing asked for, rather than part of the subject.
const ASKING: &str = "\
    what|what's|which|how|wie|was|welche|welcher|welches|quel|quelle|combien|cuál|qué|cuánto|\
    cuánta";

const TEMPERATURE_UNITS: &[&str] =
    &["°", "°c", "°f", "c", "f", "degrees", "degree", "grad", "degrés", "grados"];
const LENGTH_UNITS: &[&str] = &[
    "m", "cm", "mm", "km", "ft", "foot", "feet", "in", "inch", "inches", "yd", "yards", "mile",
    "miles", "metre", "metres", "meter", "meters", "centimetres", "millimetres", "kilometres",
    "zentimeter", "millimeter", "kilometer", "mètres", "mètre", "metros", "metro", "x",
];
const WEIGHT_UNITS: &[&str] = &[
    "kg", "g", "mg", "t", "lb", "lbs", "oz", "kilo", "kilos", "kilogram", "kilograms", "gram",
    "grams", "tonne", "tonnes", "ton", "tons", "stone", "gramm", "kilogramm", "tonnen",
    "kilogramme",
];
const SHARE_WORDS: &str = "percent|per cent|prozent|pour cent|por ciento|half|third|quarter";
/// Minimum number of digits in a telephone number or an extension.
const PHONE_DIGITS_MIN: usize = 3;

/// Words before a time of day such as "18.30", and words after an amount.
const BEFORE_TIME: &str =
    "at|from|to|until|till|by|before|after|um|ab|von|bis|vor|nach|à|de|dès|a|las|hasta";
const BEHIND_AMOUNT: &str = "\
    per|a|an|each|for|and|or|on|in|if|with|without|pro|je|für|und|oder|par|pour|et|ou|por|para|y|o";

impl Measure {
    /// The measure that a question asks for; `asks_amount` tells that it asks for money.
    pub(crate) fn of(question: &str, asks_amount: bool) -> Option<Self> {
        let words = spaced(question);
        let has = |list: &str| entries(list).any(|phrase| contains(&words, phrase));
        let begins = begins_with(&words, ASKING);
        // Bare keywords ask for what they name.
        let asks = begins
            || begins_with(&words, GIVING)
            || !words.split(' ').any(|word| !word.is_empty() && is_interrogative(word));
        match () {
            () if asks_amount => Some(Self::Money),
            () if has(HOURS) || (asked(question) == Asked::Date && has(OPENS)) => Some(Self::Hours),
            () if ends_with(&words, PHONES_LAST) => Some(Self::Phone),
            () if !asks => None,
            () if has(PAYS) && asked(question) != Asked::Date => Some(Self::Pay),
            () if has(AGES) => Some(Self::Age),
            () if has(TEMPERATURES) => Some(Self::Temperature),
            // "How high is the fee?" does not ask for a length.
            () if has(HIGHS) && has(AMOUNTS) => None,
            () if has(NO_LENGTHS) || has(PROGRESS) => None,
            () if has(LENGTHS) => Some(Self::Length),
            () if has(WEIGHTS) => Some(Self::Weight),
            () if has(SHARES) => Some(Self::Share),
            () if entries(MAILS).any(|mail| is_asked_for(&words, mail)) => Some(Self::Mail),
            // "The phone does not ring" asks for no number.
            () if has(PHONES) && !states_trouble(question) => Some(Self::Phone),
            () => None,
        }
    }

    /// Whether no other kind of value can stand for it: a length, weight, temperature, opening
    /// hours or an age.
    pub(crate) fn is_irreplaceable(self) -> bool {
        matches!(self, Self::Temperature | Self::Length | Self::Weight | Self::Hours | Self::Age)
    }

    /// Whether a text without such a value may still state it: an amount by a bare number, or by
    /// saying that there is none.
    pub(crate) fn may_be_told_by(self, text: &str) -> bool {
        // Minutes are no amount of money.
        let is_bare = |one: &Quantity| !is_of_time(&one.unit);
        self != Self::Money || quantities(text).iter().any(is_bare) || tells_negation(text)
    }

    /// Whether a passage holds such a value. `above` is the text that names it: headings, columns,
    /// title.
    pub(crate) fn is_in(self, passage: &Candidate, above: &str) -> bool {
        self.is_in_text(&passage.shown(), &passage.cells, above)
    }

    fn is_in_text(self, passage: &str, cells: &[Cell], above: &str) -> bool {
        let has_unit = |units: &[&str]| {
            let named = |unit: &str| units.contains(&unit);
            quantities(passage).iter().any(|one| named(&one.unit))
                || cells
                    .iter()
                    .filter_map(|cell| unit(&cell.name, &cell.value))
                    .any(|unit| named(&unit))
        };
        let has_digit = || passage.contains(|c: char| c.is_ascii_digit());
        match self {
            Self::Money => {
                let text = spaced(&format!("{passage} {above}"));
                let mut names = entries(MONEY).chain(entries(MONEY_LISTS));
                let mut is_named = || names.any(|word| contains(&text, word));
                let is_free = || contains(&text, "free");
                has_money(passage)
                    || tells_cents(passage)
                    || is_free()
                    || (has_digit() && (is_named() || has_currency(above)))
            }
            Self::Pay => {
                let text = spaced(&format!("{passage} {above}"));
                has_money(passage)
                    || (has_digit() && entries(PAYS).any(|word| contains(&text, word)))
            }
            Self::Hours => {
                let text = spaced(&format!("{passage} {above}"));
                entries(TELLS_OPEN).any(|word| contains(&text, word))
            }
            Self::Temperature => {
                has_unit(TEMPERATURE_UNITS) || (has_digit() && passage.contains('°'))
            }
            Self::Length => has_unit(LENGTH_UNITS),
            Self::Weight => has_unit(WEIGHT_UNITS),
            Self::Share => {
                let text = spaced(passage);
                passage.contains('%') || entries(SHARE_WORDS).any(|word| contains(&text, word))
            }
            Self::Phone => passage.chars().filter(char::is_ascii_digit).count() >= PHONE_DIGITS_MIN,
            Self::Mail => passage.contains('@'),
            Self::Age => {
                let text = spaced(&format!("{passage} {above}"));
                let has_number = has_digit() || passage.unicode_words().any(is_number);
                has_number && entries(TELLS_AGE).any(|word| contains(&text, word))
            }
        }
    }
}

/// Whether words ask for a mail address rather than name mail as a means.
fn is_asked_for(words: &str, mail: &str) -> bool {
    let is_way = |by: &str| contains(words, &format!("{by} {mail}"));
    contains(words, mail) && !entries(BY).any(is_way)
}

/// Whether the names above a value contain a currency.
fn has_currency(above: &str) -> bool {
    has_money(&format!("{above} 0"))
}

/// Whether a text has an amount with cents but no currency: "soup 3.80, bread 0.90".
fn tells_cents(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_amount = |word: &str| {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
        let two = word.rsplit_once(['.', ',']);
        two.is_some_and(|(whole, cents)| digits(whole) && digits(cents) && cents.len() == 2)
    };
    (0..words.len()).any(|at| {
        let before = at.checked_sub(1).map_or("", |before| words[before]).to_lowercase();
        let word = words[at].trim_matches(|c: char| !c.is_alphanumeric());
        let ends = !words[at].ends_with(|c: char| c.is_alphanumeric());
        let is_last = words.get(at + 1).is_none_or(|next| is_entry(BEHIND_AMOUNT, next));
        is_amount(word)
            && !words[at].ends_with(['%', '°'])
            && (ends || is_last)
            && !is_entry(BEFORE_TIME, &before)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_with_cents_need_no_currency() {
        for text in ["Soup 3.80, bread 0.90.", "Suppe 3,80 pro Teller", "a bed: 41.50"] {
            assert!(tells_cents(text), "{text}");
        }
        for text in ["Open until 18.30.", "The rod is 3.80 m long.", "Version 3.8, of 1.5 %."] {
            assert!(!tells_cents(text), "{text}");
        }
    }

    #[test]
    fn a_named_measure_wants_its_unit() {
        for (question, answers, others) in [
            ("How heavy is the pump?", "It weighs 14 kg.", "It has 2 wheels."),
            (
                "What temperature does the hall have?", "The hall is kept at 21 °C.",
                "Hall 4 is 30 m.",
            ),
            ("What percentage passed?", "62 % passed.", "Of 40 pupils some passed."),
            ("What's the phone number of the porter?", "Porter: 0555 771.", "Ask the porter at 9."),
            ("How deep is the shaft?", "The shaft goes down 12 m.", "The shaft opens at 9."),
            ("hall temperature", "Kept at 21 degrees", "Hall 4"),
            (
                "When is the canteen open?",
                "Canteen: opening times 8 to 14.",
                "The room over the canteen, Monday at 13:00.",
            ),
            ("How old is the tower?", "The tower was built in 1934.", "Tower: extension 60."),
            ("What does Ada earn?", "Ada: £2,100 a month.", "Ada: room 12, extension 40."),
            ("What is the email address of Ada?", "ada@example.org", "Ada sits in room 12."),
        ] {
            let measure = Measure::of(question, false).expect("a measure");
            assert!(measure.is_in_text(answers, &[], ""), "{question}");
            assert!(!measure.is_in_text(others, &[], ""), "{question}");
        }
        assert_eq!(Measure::of("Who measures the temperature?", false), None);
        assert_eq!(Measure::of("How high is the supplement for nights?", false), None);
        assert_eq!(Measure::of("How high is the tower?", false), Some(Measure::Length));
        assert_eq!(Measure::of("What is the longest film I can send by e-mail?", false), None);
        assert_eq!(Measure::of("How far along is the new pier?", false), None);
        assert_eq!(Measure::of("When is the opening round of the cup?", false), None);
        assert_eq!(Measure::of("When is closing time?", false), Some(Measure::Hours));
        assert_eq!(Measure::of("How far is the new pier?", false), Some(Measure::Length));
    }

    #[test]
    fn money_is_told_by_a_currency_or_a_name() {
        let money = Measure::of("What does it cost?", true).expect("money");
        for (passage, above) in [
            ("It is £5.", ""),
            ("Adult: 6.40", "Prices 2025"),
            ("Loft: 205", "Room rates"),
            ("Swim: 31", "in pounds"),
            ("Free.", ""),
        ] {
            assert!(money.is_in_text(passage, &[], above), "{passage} {above}");
        }
        assert!(!money.is_in_text("Two visits a year, within 24 h.", &[], "Suppliers"));
        assert!(money.may_be_told_by("There is no fee.") && money.may_be_told_by("Decided: 16.50"));
        assert!(!money.may_be_told_by("The clock is serviced every March by Firmin."));
    }
}
