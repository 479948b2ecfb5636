//! Scales: units of the same kind and their conversion factors.

/// Units by kind of quantity, as multiples of the first unit of the kind.
const SCALES: &[&[(&str, f64)]] = &[
    &[
        ("kg", 1.0),
        ("kilo", 1.0),
        ("kilos", 1.0),
        ("g", 0.001),
        ("mg", 1e-6),
        ("t", 1000.0),
        ("ton", 1000.0),
        ("tons", 1000.0),
        ("tonne", 1000.0),
        ("tonnes", 1000.0),
        ("tonnen", 1000.0),
        ("lb", 0.453_592),
        ("lbs", 0.453_592),
        ("oz", 0.028_350),
    ],
    &[
        ("m", 1.0),
        ("cm", 0.01),
        ("mm", 0.001),
        ("km", 1000.0),
        ("ft", 0.3048),
        ("feet", 0.3048),
        ("miles", 1609.344),
    ],
    &[("l", 1.0), ("litres", 1.0), ("ml", 0.001)],
    &[
        ("s", 1.0),
        ("sec", 1.0),
        ("second", 1.0),
        ("seconds", 1.0),
        ("sekunden", 1.0),
        ("min", 60.0),
        ("mins", 60.0),
        ("minute", 60.0),
        ("minutes", 60.0),
        ("minuten", 60.0),
        ("h", 3600.0),
        ("hour", 3600.0),
        ("hours", 3600.0),
        ("stunde", 3600.0),
        ("stunden", 3600.0),
        ("minutos", 60.0),
        ("minuto", 60.0),
        ("heure", 3600.0),
        ("heures", 3600.0),
        ("hora", 3600.0),
        ("horas", 3600.0),
        ("jour", 86_400.0),
        ("jours", 86_400.0),
        ("día", 86_400.0),
        ("días", 86_400.0),
        ("day", 86_400.0),
        ("days", 86_400.0),
        ("tag", 86_400.0),
        ("tage", 86_400.0),
        ("tagen", 86_400.0),
        ("week", 604_800.0),
        ("weeks", 604_800.0),
        ("woche", 604_800.0),
        ("wochen", 604_800.0),
        ("semaine", 604_800.0),
        ("semaines", 604_800.0),
        ("semana", 604_800.0),
        ("semanas", 604_800.0),
        ("month", 2_629_746.0),
        ("months", 2_629_746.0),
        ("monate", 2_629_746.0),
        ("monat", 2_629_746.0),
        ("monaten", 2_629_746.0),
        ("mois", 2_629_746.0),
        ("mes", 2_629_746.0),
        ("meses", 2_629_746.0),
        ("year", 31_556_952.0),
        ("years", 31_556_952.0),
        ("jahre", 31_556_952.0),
        ("jahr", 31_556_952.0),
        ("jahren", 31_556_952.0),
        ("ans", 31_556_952.0),
        ("año", 31_556_952.0),
        ("años", 31_556_952.0),
    ],
];

/// Whether two units are of one kind of quantity.
pub(crate) fn is_like(one: &str, other: &str) -> bool {
    let kind = |unit| scaled(1.0, unit).map(|(kind, _)| kind);
    kind(one).is_some_and(|one| kind(other) == Some(one))
}

/// Whether a unit is one of time.
pub(crate) fn is_of_time(unit: &str) -> bool {
    let kind = |unit| scaled(1.0, unit).map(|(kind, _)| kind);
    kind(unit).is_some_and(|of| kind("s") == Some(of))
}

/// Converts a quantity to the first unit of its kind and returns the kind with it; `None` for other
/// units.
pub(crate) fn scaled(value: f64, unit: &str) -> Option<(usize, f64)> {
    SCALES.iter().enumerate().find_map(|(kind, units)| {
        let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
        Some((kind, value * factor))
    })
}
