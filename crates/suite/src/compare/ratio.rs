//! Ratios of cases, and their means.
//!
//! The ratio is `new / base` of the instructions, or `base / new` of the operations that fit into a
//! message if the case measures those. So more than 1 is always worse.

use serde::Serialize;

use crate::results::{Case, Measured};

/// A matched case that both measured.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub section: String,
    pub name: String,
    /// The configuration of the base; that of the new run differs if configurations are compared.
    pub configuration: String,
    pub new_configuration: String,
    pub unit: Unit,
    pub base: u64,
    pub new: u64,
    pub ratio: f64,
}

/// The unit of the compared numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Instructions: less is better.
    Instructions,
    /// Operations that fit into a message: more is better.
    OperationsThatFit,
}

/// Means of ratios.
#[derive(Clone, Debug, Serialize)]
pub struct Means {
    /// `None` for the means of all sections.
    pub section: Option<String>,
    pub cases: usize,
    pub arithmetic: f64,
    pub geometric: f64,
}

impl Row {
    pub fn new(base: (&Case, &Measured), new: (&Case, &Measured)) -> Self {
        let ((case, base), (new_case, new)) = (base, new);
        let (unit, base, new) = match (&base.capacity, &new.capacity) {
            (Some(base), Some(new)) => (Unit::OperationsThatFit, base.fits, new.fits),
            _ => (Unit::Instructions, base.instructions, new.instructions),
        };
        let ratio = match unit {
            Unit::Instructions => quotient(new, base),
            Unit::OperationsThatFit => quotient(base, new),
        };
        Self {
            section: case.section.clone(),
            name: case.name.clone(),
            configuration: case.configuration.clone(),
            new_configuration: new_case.configuration.clone(),
            unit,
            base,
            new,
            ratio,
        }
    }

    /// Returns the label of the table's row, with the configuration if it is the same for both.
    pub fn label(&self) -> String {
        if self.configuration == self.new_configuration {
            format!("{}, {}", self.name, self.configuration)
        } else {
            self.name.clone()
        }
    }

    /// Returns the title of the case for failures.
    pub fn title(&self) -> String {
        format!("{}: {}", self.section, self.label())
    }
}

/// Returns the quotient, and 1 for equal numbers, including 0.
fn quotient(dividend: u64, divisor: u64) -> f64 {
    if dividend == divisor { 1.0 } else { dividend as f64 / divisor as f64 }
}

/// Returns the means of each section in order, and of all rows, if there are any.
pub fn means(rows: &[Row]) -> (Vec<Means>, Option<Means>) {
    let mut sections: Vec<&str> = Vec::new();
    for row in rows {
        if !sections.contains(&row.section.as_str()) {
            sections.push(&row.section);
        }
    }
    let of_sections = sections
        .into_iter()
        .filter_map(|section| {
            let ratios = rows.iter().filter(|row| row.section == section).map(|row| row.ratio);
            mean(Some(section), ratios.collect())
        })
        .collect();
    (of_sections, mean(None, rows.iter().map(|row| row.ratio).collect()))
}

fn mean(section: Option<&str>, ratios: Vec<f64>) -> Option<Means> {
    if ratios.is_empty() {
        return None;
    }
    let count = ratios.len() as f64;
    // A ratio of 0 has no logarithm: that of a statement that costs nothing in the new run.
    let logarithms: Vec<f64> =
        ratios.iter().filter(|ratio| **ratio > 0.0).map(|ratio| ratio.ln()).collect();
    Some(Means {
        section: section.map(str::to_owned),
        cases: ratios.len(),
        arithmetic: ratios.iter().sum::<f64>() / count,
        geometric: match logarithms.len() {
            0 => 0.0,
            count => (logarithms.iter().sum::<f64>() / count as f64).exp(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means_of(ratios: &[f64]) -> (f64, f64) {
        let means = mean(None, ratios.to_vec()).unwrap();
        (means.arithmetic, means.geometric)
    }

    /// Calculated by hand: of 1/2 and 2, (0.5 + 2) / 2 = 1.25 and √(0.5 · 2) = 1; of 1, 2 and 4,
    /// 7/3 and ∛8 = 2.
    #[test]
    fn arithmetic_and_geometric_means() {
        assert_eq!(means_of(&[0.5, 2.0]), (1.25, 1.0));
        let (arithmetic, geometric) = means_of(&[1.0, 2.0, 4.0]);
        assert!((arithmetic - 7.0 / 3.0).abs() < 1e-12 && (geometric - 2.0).abs() < 1e-12);
        assert_eq!(means_of(&[1.25]).0, 1.25);
        assert_eq!(means_of(&[0.0, 2.0, 2.0]).1, 2.0, "0 has no logarithm");
        assert_eq!(means_of(&[0.0]), (0.0, 0.0));
        assert!(mean(None, Vec::new()).is_none());
    }

    #[test]
    fn quotients_of_zero() {
        assert_eq!((quotient(0, 0), quotient(0, 5), quotient(5, 0)), (1.0, 0.0, f64::INFINITY));
    }
}
