//! Numbers as canbench writes them, for scripts that read what it prints. Everything else goes
//! by `report::number`.

/// `1.23M`, or the number itself below 1 000.
pub fn short(value: u64) -> String {
    match scaled(value as f64) {
        (_, "") => value.to_string(),
        (scaled, unit) => format!("{scaled:.2}{unit}"),
    }
}

/// `+1.23M`, `-12`, `0`.
pub fn short_change(value: f64) -> String {
    match scaled(value) {
        (0.0, _) => "0".to_owned(),
        (scaled, "") => format!("{scaled:+.0}"),
        (scaled, unit) => format!("{scaled:+.2}{unit}"),
    }
}

/// `1.23 M`, or the number itself below 10 000.
pub fn long(value: u64) -> String {
    match value {
        0..10_000 => value.to_string(),
        _ => {
            let (scaled, unit) = scaled(value as f64);
            format!("{scaled:.2} {unit}")
        }
    }
}

/// `+1.23%`; `+inf%` from 0; without a sign where it is next to nothing.
pub fn percent_change(value: f64) -> String {
    if value.abs() < 0.01 { format!("{value:.2}%") } else { format!("{value:+.2}%") }
}

/// `1.23%`, with a number in place of infinity: for spreadsheets.
pub fn percent(value: f64) -> String {
    match value.is_infinite() {
        true if value > 0.0 => "1.0E99".to_owned(),
        true => "-1.0E99".to_owned(),
        false => format!("{value:.2}%"),
    }
}

fn scaled(value: f64) -> (f64, &'static str) {
    const UNITS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")];
    let unit = UNITS.into_iter().find(|(size, _)| value.abs() >= *size);
    unit.map_or((value, ""), |(size, name)| (value / size, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_as_in_canbench() {
        assert_eq!([999, 1_000, 49_120].map(short), ["999", "1.00K", "49.12K"]);
        assert_eq!([0.0, -3.0, 3_834.0].map(short_change), ["0", "-3", "+3.83K"]);
        let numbers = [9_999, 10_000, 3_540_000, 2_000_000_000, 99_999_999_999_999];
        assert_eq!(numbers.map(long), ["9999", "10.00 K", "3.54 M", "2.00 B", "100.00 T"]);
    }

    #[test]
    fn percentages_are_those_of_canbench() {
        let changes = [0.0, -1.428, 21.25, f64::INFINITY].map(percent_change);
        assert_eq!(changes, ["0.00%", "-1.43%", "+21.25%", "+inf%"]);
        let written = [11.111, f64::INFINITY, f64::NEG_INFINITY].map(percent);
        assert_eq!(written, ["11.11%", "1.0E99", "-1.0E99"]);
    }
}
