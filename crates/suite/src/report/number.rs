//! Formatting of numbers.

use std::fmt;
use std::time::Duration;

/// A whole number with separated thousands: `1 234 567`.
#[derive(Clone, Copy, Debug)]
pub struct Grouped(pub u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::with_capacity(digits.len() * 4 / 3);
        for (position, digit) in digits.chars().enumerate() {
            if position > 0 && (digits.len() - position).is_multiple_of(3) {
                text.push(' ');
            }
            text.push(digit);
        }
        f.pad(&text)
    }
}

/// A large number with three digits: `74.4 G`, or `74.4G` with `{:#}`.
#[derive(Clone, Copy, Debug)]
pub struct Short(pub u64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] =
            [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
        let space = if f.alternate() { "" } else { " " };
        for (unit, name) in UNITS {
            if self.0 >= unit {
                let value = self.0 as f64 / unit as f64;
                let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
                return write!(f, "{value:.decimals$}{space}{name}");
            }
        }
        write!(f, "{}", self.0)
    }
}

/// A number of bytes with a binary unit: `2.50 GiB`.
#[derive(Clone, Copy, Debug)]
pub struct Binary(pub u64);

impl fmt::Display for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u32, &str); 3] = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        let unit = UNITS.iter().find(|(shift, _)| self.0 >= 1 << shift);
        match unit {
            None => f.pad(&format!("{} B", self.0)),
            Some((shift, name)) => {
                let value = self.0 as f64 / (1_u64 << shift) as f64;
                let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
                f.pad(&format!("{value:.decimals$} {name}"))
            }
        }
    }
}

/// An approximate age: `3 h ago`.
#[derive(Clone, Copy, Debug)]
pub struct Age(pub Duration);

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minutes = self.0.as_secs() / 60;
        match minutes {
            0 => f.pad("now"),
            1..120 => f.pad(&format!("{minutes} m ago")),
            120..2_880 => f.pad(&format!("{} h ago", minutes / 60)),
            _ => f.pad(&format!("{} d ago", minutes / 1_440)),
        }
    }
}

/// A number with a fixed number of decimals: `0.36`.
#[derive(Clone, Copy, Debug)]
pub struct Fixed(pub f64, pub usize);

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.*}", self.1, self.0))
    }
}

/// The ratio of two numbers: `0.36×`.
#[derive(Clone, Copy, Debug)]
pub struct Ratio(pub u64, pub u64);

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.1 == 0 {
            return f.pad("–");
        }
        let ratio = self.0 as f64 / self.1 as f64;
        let decimals = match ratio {
            ratio if ratio < 0.1 => 3,
            ratio if ratio < 10.0 => 2,
            ratio if ratio < 100.0 => 1,
            _ => 0,
        };
        f.pad(&format!("{ratio:.decimals$}×"))
    }
}

/// A ratio with enough decimals for small differences: `1.034×`.
#[derive(Clone, Copy, Debug)]
pub struct Factor(pub f64);

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            factor if !factor.is_finite() => f.pad("–"),
            factor if factor < 100.0 => f.pad(&format!("{factor:.3}×")),
            factor => f.pad(&format!("{factor:.0}×")),
        }
    }
}

/// An increase in percent: `+2.041 %`.
#[derive(Clone, Copy, Debug)]
pub struct Percent(pub f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_finite() { f.pad(&format!("{:+.3} %", self.0)) } else { f.pad("from 0") }
    }
}

/// The size of a table: `1 000 000 rows of 100 bytes`, or `200 rows` if its rows have no such text.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    pub rows: u64,
    pub payload: u32,
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows", Grouped(self.rows))?;
        match self.payload {
            0 => Ok(()),
            payload => write!(f, " of {} bytes", Grouped(payload.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        let text = |number| Grouped(number).to_string();
        assert_eq!(
            [text(0), text(999), text(1_000), text(1_234_567)],
            ["0", "999", "1 000", "1 234 567"]
        );
        assert_eq!(format!("{:>7}", Grouped(1_000)), "  1 000");
    }

    #[test]
    fn large_numbers_are_short() {
        let text = |number| Short(number).to_string();
        assert_eq!(
            [text(12), text(1_500), text(74_390_226_683), text(999_000_000)],
            ["12", "1.50 k", "74.4 G", "999 M"]
        );
        assert_eq!(format!("{:#} {:#}", Short(12), Short(1_500)), "12 1.50k");
    }

    #[test]
    fn bytes_and_ages() {
        let text = [1_023, 1_024, 150 << 20, 5 << 29].map(|bytes| Binary(bytes).to_string());
        assert_eq!(text, ["1023 B", "1.00 KiB", "150 MiB", "2.50 GiB"]);
        let age = |seconds| Age(Duration::from_secs(seconds)).to_string();
        assert_eq!(
            [age(59), age(60), age(7_200), age(200_000)],
            ["now", "1 m ago", "2 h ago", "2 d ago"]
        );
    }

    #[test]
    fn ratios() {
        assert_eq!(Ratio(1, 300).to_string(), "0.003×");
        assert_eq!(Ratio(1, 3).to_string(), "0.33×");
        assert_eq!(Ratio(2_500, 100).to_string(), "25.0×");
        assert_eq!(Ratio(1, 0).to_string(), "–");
    }

    #[test]
    fn factors_and_percents() {
        let factors = [0.5, 1.0336, 99.9999, 123.4, f64::INFINITY];
        let text = factors.map(|factor| Factor(factor).to_string());
        assert_eq!(text, ["0.500×", "1.034×", "100.000×", "123×", "–"]);
        let text = [2.0, -0.25, f64::INFINITY].map(|percent| Percent(percent).to_string());
        assert_eq!(text, ["+2.000 %", "-0.250 %", "from 0"]);
    }
}
