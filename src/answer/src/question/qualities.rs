//! Qualities of things ("how heavy", "the longest", "cheaper than"): the words of a question that
//! mean one, and the columns of a table that hold it.

use crate::question::phrases::MONEY;
use crate::question::scales::scaled;
use crate::text::clock::times;
use crate::text::values::{Quantity, days, has_money, measure, month_of_year, quantities, year};
use crate::text::words::{contains, entries, is_entry};

/// A quality that tables hold as numbers or days.
#[derive(Debug)]
pub(crate) struct Quality {
    kind: Kind,
    /// Words that ask for the thing with the most of it, and with the least.
    most: &'static str,
    least: &'static str,
    /// Other words of a question that mean it.
    others: &'static str,
    /// Words in the names of its columns, and units of its values.
    names: &'static str,
    units: &'static str,
}

/// Kind of the values of a quality.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Money,
    Time,
    /// The day on which something ends or is due.
    Deadline,
    /// The day since which somebody has been there.
    Tenure,
    /// The day on which something was last done.
    Neglect,
    /// The time of day at which something opens or closes.
    Clock,
}

const QUALITIES: &[Quality] = &[
    // Precedes the length, which shares words with it.
    Quality {
        kind: Kind::Tenure,
        most: "joined most recently|started most recently|hired most recently|joined last|\
               started last|hired last|zuletzt eingestellt",
        least: "joined first|started first|hired first|been here the longest|\
                been here longest|been with us the longest|\
                been with us longest|been with the company the longest|\
                been with the company longest|been there the longest|been there longest|\
                worked here the longest|worked here longest|worked for us the longest|\
                worked for us longest|works here the longest|been employed the longest|\
                been employed longest|been a member the longest|been a member longest|\
                longest serving|served the longest|served longest|am längsten dabei|\
                am längsten hier|am längsten beschäftigt|am längsten bei uns|dienstälteste|\
                depuis le plus longtemps|lleva más tiempo|más tiempo aquí",
        others: "",
        names: "start|started|since|joined|hired|entry|entered|employed|begin|began|eintritt|\
                beginn|seit|eingestellt|entrée|embauche|arrivée|depuis|début|alta|ingreso|inicio|\
                desde",
        units: "",
    },
    // Precedes the length as well.
    Quality {
        kind: Kind::Neglect,
        most: "",
        least: "gone the longest without|gone longest without|been the longest without|\
                been longest without|the longest ago|longest since|waited the longest|\
                waited longest|waiting the longest|waiting longest|am längsten her|\
                am längsten ohne|am längsten nicht|wartet am längsten|\
                depuis le plus longtemps sans|attend depuis le plus longtemps|más tiempo sin|\
                más tiempo esperando",
        others: "",
        names: "last|latest|since|letzte|letzter|letztes|seit|dernier|dernière|depuis|último|\
                última|desde",
        units: "",
    },
    Quality {
        kind: Kind::Clock,
        most: "open longest|open the longest|closes latest|closes last|close last|\
               am längsten offen|am längsten geöffnet|schließt zuletzt|ferme le plus tard",
        least: "",
        others: "",
        names: "closes|close|closing|until|till|end|ends|to|schließt|bis|ferme|jusqu|cierra|hasta",
        units: "",
    },
    Quality {
        kind: Kind::Clock,
        most: "",
        least: "opens earliest|opens first|open first|open earliest|öffnet zuerst|\
                ouvre le plus tôt",
        others: "",
        names: "opens|open|opening|from|start|starts|begins|öffnet|ab|von|ouvre|abre|desde",
        units: "",
    },
    Quality {
        kind: Kind::Number,
        most: "heaviest|schwerste|schwersten|plus lourd|plus lourde|más pesado|más pesada",
        least: "lightest|leichteste|leichtesten|plus léger|plus légère|más ligero|más ligera",
        others: "heavy|heavier|lighter|weigh|weighs|weight|schwer|schwerer|leichter|wiegt|wiegen",
        names: "weight|mass|gewicht|masse|poids|peso",
        units: "kg|g|mg|t|lb|lbs|oz|kilo|kilos|tonnes|tons",
    },
    Quality {
        kind: Kind::Number,
        most: "longest|längste|längsten|plus long|plus longue|más largo|más larga",
        least: "shortest|kürzeste|kürzesten|plus court|plus courte|más corto|más corta",
        others: "longer|shorter|length|länger|kürzer|länge",
        names: "length|duration|länge|dauer|longueur|durée|longitud|duración",
        units: "m|cm|mm|km|ft|feet|miles|min|minutes|h|hours|days|weeks|months|stunden|tage",
    },
    Quality {
        kind: Kind::Number,
        most: "tallest",
        least: "",
        others: "taller|height",
        names: "height|höhe|hauteur|altura",
        units: "",
    },
    Quality {
        kind: Kind::Number,
        most: "widest|thickest|breiteste|dickste|plus large|plus épais|más ancho|más grueso",
        least: "narrowest|thinnest|schmalste|dünnste|plus étroit|plus mince|más estrecho|más fino",
        others: "wider|thicker|narrower|thinner|width|thickness|diameter",
        names: "width|thickness|diameter|breite|dicke|durchmesser|largeur|épaisseur|ancho|grosor",
        units: "",
    },
    Quality {
        kind: Kind::Number,
        most: "deepest|tiefste|plus profond|más profundo",
        least: "shallowest|flachste",
        others: "deeper|shallower|depth",
        names: "depth|tiefe|profondeur|profundidad",
        units: "",
    },
    Quality {
        kind: Kind::Number,
        most: "farthest|furthest|weiteste|plus loin|más lejos",
        least: "nearest|closest|nächste|plus proche|más cerca",
        others: "farther|further|nearer|distance",
        names: "distance|entfernung|distancia",
        units: "km|miles",
    },
    Quality {
        kind: Kind::Number,
        most: "fastest|quickest|schnellste|schnellsten|plus rapide|más rápido",
        least: "slowest|langsamste|plus lent|más lento",
        others: "faster|slower|speed",
        names: "speed|geschwindigkeit|vitesse|velocidad|mph|knots",
        units: "mph|knots",
    },
    Quality {
        kind: Kind::Number,
        most: "hottest|warmest|heißeste|wärmste|plus chaud|más caliente",
        least: "coldest|coolest|kälteste|kühlste|plus froid|más frío",
        others: "hotter|warmer|colder|cooler|temperature|temperatur",
        names: "temperature|temp|temperatur|température|temperatura",
        units: "°c|°f|°|celsius",
    },
    Quality {
        kind: Kind::Number,
        most: "loudest|lauteste|plus bruyant|más ruidoso",
        least: "quietest|leiseste|plus silencieux|más silencioso",
        others: "louder|quieter|noise",
        names: "noise|sound|loudness|lärm|bruit|ruido",
        units: "db",
    },
    Quality {
        kind: Kind::Number,
        most: "strongest|stärkste|plus fort|más fuerte",
        least: "weakest|schwächste|plus faible|más débil",
        others: "stronger|weaker|strength",
        names: "strength|load|force|stärke|last|charge|fuerza|carga",
        units: "kn",
    },
    Quality {
        kind: Kind::Number,
        most: "",
        least: "",
        others: "carry|carries|payload|capacity|load|trägt|tragen|supporte|soporta",
        names: "load|payload|capacity|carries|nutzlast|traglast|tragkraft|zuladung|belastung|\
                charge|capacité|carga|capacidad",
        units: "",
    },
    Quality {
        kind: Kind::Number,
        most: "brightest|hellste|plus lumineux|más brillante",
        least: "darkest|dimmest|dunkelste",
        others: "brighter|darker|brightness",
        names: "brightness|light|helligkeit|lumens|lux",
        units: "lm|lumen|lumens|lux",
    },
    Quality {
        kind: Kind::Money,
        most: "most expensive|priciest|dearest|costliest|cost most|costs most|cost the most|\
               costs the most|teuerste|teuersten|plus cher|plus chère|más caro|más cara",
        least: "cheapest|least expensive|cost least|costs least|cost the least|costs the least|\
                billigste|billigsten|günstigste|günstigsten|moins cher|moins chère|más barato|\
                más barata",
        others: MONEY,
        names: MONEY,
        units: "",
    },
    Quality {
        kind: Kind::Time,
        most: "latest|newest|youngest|most recent|most recently|neueste|neuesten|jüngste|jüngsten|\
               plus récent|más reciente",
        least: "earliest|oldest|älteste|ältesten|plus ancien|más antiguo",
        others: "",
        names: "built|bought|made|year|since|opened|founded|baujahr|gebaut|gekauft|jahr|année|\
                construit|acheté|año|construido|comprado",
        units: "",
    },
    Quality {
        kind: Kind::Deadline,
        most: "",
        least: "next due|due next|due first|expires first|expires next|runs out first|\
                first to expire|most overdue|soonest",
        others: "",
        names: "due|deadline|next|expires|expiry|until|renewal|end|ends|fällig|frist|ablauf|bis|\
                échéance|prochain|fin|vence|vencimiento|próximo",
        units: "",
    },
];

/// Minimum number of letters in a unit at the start of a column's name.
const UNIT_LETTERS_MIN: usize = 4;

impl Quality {
    /// The quality whose most or least a question asks for, with `true` for the most. The question
    /// is given as words made by `spaced`.
    pub(crate) fn of_superlative(spaced: &str) -> Option<(&'static Self, bool)> {
        let has = |list: &str| is_in(spaced, list);
        QUALITIES.iter().find_map(|one| match (has(one.most), has(one.least)) {
            (true, false) => Some((one, true)),
            (false, true) => Some((one, false)),
            _ => None,
        })
    }

    /// The quality that a question mentions, if there is exactly one.
    pub(crate) fn named_in(spaced: &str) -> Option<&'static Self> {
        let has = |list: &str| is_in(spaced, list);
        let is_named = |one: &&Quality| has(one.others) || has(one.most) || has(one.least);
        let mut named = QUALITIES.iter().filter(is_named);
        named.next().filter(|_| named.next().is_none())
    }

    /// Whether a lower-case word refers to a quality, however rare it is in documents.
    pub(crate) fn is_told_by(word: &str) -> bool {
        let lists = |one: &Quality| [one.most, one.least, one.others];
        QUALITIES.iter().flat_map(lists).any(|list| is_entry(list, word))
    }

    /// The quality of days and years.
    pub(crate) fn time() -> &'static Self {
        Self::of(Kind::Time)
    }

    /// The first quality of a kind.
    fn of(kind: Kind) -> &'static Self {
        QUALITIES.iter().find(|one| one.kind == kind).expect("each kind is among them")
    }

    /// The quality of days of which "first" means the earliest: of future days, or of past ones.
    pub(crate) fn of_first(is_to_come: bool) -> &'static Self {
        Self::of(if is_to_come { Kind::Deadline } else { Kind::Time })
    }

    /// Whether it is a quality of money.
    pub(crate) fn is_money(&self) -> bool {
        self.kind == Kind::Money
    }

    /// Whether it is a quality of days and years.
    pub(crate) fn is_time(&self) -> bool {
        matches!(self.kind, Kind::Time | Kind::Deadline | Kind::Tenure | Kind::Neglect)
    }

    /// Whether a column with this name counts years since a day, so that the oldest has the largest
    /// value.
    pub(crate) fn is_age(name: &str) -> bool {
        words(name).split(' ').any(|word| is_entry("age|ages|alter|âge|edad", word))
    }

    /// The words that ask for most or least of it.
    pub(crate) fn superlatives(&self) -> impl Iterator<Item = &'static str> {
        entries(self.most).chain(entries(self.least)).filter(|word| !word.is_empty())
    }

    /// The names of the columns that hold it, out of columns given by name and values: those with a
    /// matching name, or else those with its unit.
    pub(crate) fn columns<'r>(&self, columns: &[(&'r str, Vec<&'r str>)]) -> Vec<&'r str> {
        let named = columns.iter().filter(|(name, values)| self.is_named(name, values));
        let named: Vec<&str> = named.map(|(name, _)| *name).collect();
        if !named.is_empty() {
            return named;
        }
        let has_unit = |(name, values): &&(&str, Vec<&str>)| {
            if matches!(self.kind, Kind::Tenure | Kind::Clock) {
                return false;
            }
            if self.is_time() {
                return values.iter().filter(|value| is_dated(value)).count() * 2 > values.len();
            }
            let units = values.iter().filter_map(|value| unit(name, value));
            units.filter(|unit| is_entry(self.units, unit)).count() * 2 > values.len()
        };
        columns.iter().filter(has_unit).map(|(name, _)| *name).collect()
    }

    /// Whether a text states an amount of it.
    pub(crate) fn is_told_in(&self, text: &str) -> bool {
        let is_one = |one: &Quantity| self.units.is_empty() || is_entry(self.units, &one.unit);
        match self.kind {
            Kind::Money => has_money(text),
            _ => quantities(text).iter().any(is_one),
        }
    }

    fn is_named(&self, name: &str, values: &[&str]) -> bool {
        let most = |is_one: &dyn Fn(&str) -> bool| {
            values.iter().filter(|value| is_one(value)).count() * 2 > values.len()
        };
        let is_named = || words(name).split(' ').any(|word| is_entry(self.names, word));
        match self.kind {
            Kind::Time | Kind::Deadline | Kind::Tenure | Kind::Neglect => {
                is_named() && most(&is_dated)
            }
            Kind::Clock => is_named() && most(&|value| times(value).len() == 1),
            Kind::Money if most(&|value| has_money(&format!("{} {value}", words(name)))) => true,
            _ => is_named(),
        }
    }
}

/// Whether an entry of a list, which may be empty, occurs in a text.
fn is_in(spaced: &str, list: &str) -> bool {
    !list.is_empty() && entries(list).any(|phrase| contains(spaced, phrase))
}

/// Whether a value is a day, a month or a year.
fn is_dated(value: &str) -> bool {
    !days(value).is_empty() || month_of_year(value).is_some() || year(value).is_some()
}

/// The words of a column's name, in lower case.
fn words(name: &str) -> String {
    let words = name.split(|c: char| !(c.is_alphanumeric() || c == '°' || c == '%'));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ").to_lowercase()
}

/// The unit of a value: its own; else the last word of its column's name ("length_m", "Weight
/// (kg)"); else a first word that is a long unit ("days_lent", but not "min_age").
pub(crate) fn unit(name: &str, value: &str) -> Option<String> {
    let own = quantities(value).into_iter().next().map(|one| one.unit)?;
    if !own.is_empty() {
        return Some(own);
    }
    let name = words(name);
    let (first, last) = (name.split(' ').next()?, name.split(' ').next_back()?);
    let is_unit = first.chars().count() >= UNIT_LETTERS_MIN && scaled(1.0, first).is_some();
    Some(if is_unit && scaled(1.0, last).is_none() { first } else { last }.to_owned())
}

/// A cell's value as a number by which the cells of its column can be ordered.
pub(crate) fn size(name: &str, value: &str) -> Option<f64> {
    let size = measure(value)?;
    let unit = unit(name, value).filter(|_| days(value).is_empty());
    Some(unit.and_then(|unit| scaled(size, &unit)).map_or(size, |(_, size)| size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_hold_a_quality_by_name_or_unit() {
        let columns = [
            ("rope", vec!["A", "B"]),
            ("length_m", vec!["60", "40"]),
            ("diameter_mm", vec!["9", "10"]),
            ("load", vec!["900 g", "1.2 kg"]),
            ("price_eur", vec!["98.00", "120.00"]),
            ("bought", vec!["2021-03-01", "2019-02-01"]),
            ("closes", vec!["17:30", "21:00"]),
        ];
        let meant = |question: &str| {
            let quality = Quality::named_in(&crate::text::words::spaced(question))?;
            Some(quality.columns(&columns))
        };
        assert_eq!(meant("the longest rope"), Some(vec!["length_m"]));
        assert_eq!(meant("the thinnest rope"), Some(vec!["diameter_mm"]));
        assert_eq!(meant("the heaviest rope"), Some(vec!["load"]));
        assert_eq!(meant("which rope is cheapest"), Some(vec!["price_eur"]));
        assert_eq!(meant("which rope cost most"), Some(vec!["price_eur"]));
        assert_eq!(meant("the oldest rope"), Some(vec!["bought"]));
        assert_eq!(meant("the shop that closes last"), Some(vec!["closes"]));
        assert_eq!(meant("the loudest rope"), Some(vec![]));
        assert_eq!(meant("the best rope"), None);
        assert!(size("load", "900 g") < size("load", "1.2 kg"));
        assert_eq!(unit("days_lent", "12").as_deref(), Some("days"));
        assert_eq!(unit("min_age", "12").as_deref(), Some("age"));
    }
}
