//! The published figures, as ratios between schemas or keys that a run of the suite also has.
//! Seconds and megabytes of another machine cannot be compared with ours.

use crate::job::{KeyKind, LinkSchema};
use anyhow::{Context, Result};
use serde::Deserialize;

use crate::plan::{LISTS, key_name, schema_name};
use crate::size::Size;
use stablebench_suite::results::Results;

const PUBLISHED: &str = include_str!("../published.json");

/// The claims of an article.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// The author and the title.
    pub source: String,
    /// The address of the article.
    pub url: String,
    /// The number of links in its measurements.
    pub rows: u64,
    pub claims: Vec<Claim>,
}

/// A figure, or the ratio of two figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub measure: Measure,
    pub of: Side,
    /// The side that it is compared with; `None` for a single figure.
    pub to: Option<Side>,
    /// The published text.
    pub said: String,
    /// The same as a number: a ratio, percent, or pages.
    pub value: f64,
}

/// A schema with a kind of key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    pub schema: LinkSchema,
    pub key: KeyKind,
}

/// The measured property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The time of adding all lists; here, its instructions.
    Insert,
    /// The bytes of all tables and indexes.
    Bytes,
    /// The bytes of all indexes.
    IndexBytes,
    /// The same in percent of the bytes of all tables and indexes.
    IndexShare,
    /// The children of an internal page of an index.
    FanOut,
}

impl Claims {
    /// Returns the claims of the article.
    ///
    /// # Errors
    ///
    /// If the file is invalid; a test reads it.
    pub fn published() -> Result<Self> {
        serde_json::from_str(PUBLISHED).context("suites/keys/published.json")
    }
}

impl Claim {
    /// Returns our figure, if both sides were measured.
    pub fn here(&self, results: &Results) -> Option<f64> {
        let of = self.measure.of(results, self.of)?;
        match self.to {
            None => Some(of),
            Some(to) => {
                let to = self.measure.of(results, to)?;
                (to > 0.0).then(|| of / to)
            }
        }
    }

    /// Returns the title of the figure.
    pub fn title(&self) -> String {
        let of = self.of;
        let what = match self.measure {
            Measure::Insert => "adding lists",
            Measure::Bytes => "bytes",
            Measure::IndexBytes => "bytes of indexes",
            Measure::IndexShare => "share of indexes, %",
            Measure::FanOut => "fan-out of indexes",
        };
        let letter = |schema| schema_name(schema).split(' ').next().unwrap_or_default();
        match self.to {
            None => format!("{what}: {} {}", letter(of.schema), key_name(of.key)),
            Some(to) if to.schema == of.schema => {
                format!("{what}: {} {} / {}", letter(of.schema), key_name(of.key), key_name(to.key))
            }
            Some(to) => {
                format!(
                    "{what}: {} / {}, {}",
                    letter(of.schema),
                    letter(to.schema),
                    key_name(of.key)
                )
            }
        }
    }
}

impl Measure {
    fn of(self, results: &Results, side: Side) -> Option<f64> {
        let case = results.case(LISTS, schema_name(side.schema), key_name(side.key))?;
        let measured = case.measured()?;
        let size = || Size::of(measured);
        Some(match self {
            Self::Insert => measured.instructions as f64,
            Self::Bytes => size()?.bytes as f64,
            Self::IndexBytes => size()?.index_bytes as f64,
            Self::IndexShare => size()?.index_share()?,
            Self::FanOut => size()?.index_fan_out()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_claims_are_those_of_the_article() {
        let claims = Claims::published().unwrap();
        assert_eq!(claims.rows, 1_000 * 100);
        let of: Vec<(String, f64)> =
            claims.claims.iter().map(|claim| (claim.title(), claim.value)).collect();
        let rounded = |value: f64| (value * 100.0).round() / 100.0;
        let expected = [
            ("adding lists: (a) UUIDv4 / ULID", rounded(9.8 / 5.7)),
            ("bytes: (a) ULID / UUIDv4", 0.95),
            ("adding lists: (b) / (a), ULID", 1.2),
            ("bytes: (b) / (a), ULID", 1.05),
            ("bytes: (d) / (c), ULID", rounded(13.0 / 17.0)),
            ("bytes of indexes: (d) / (c), ULID", rounded(5.6 / 8.6)),
            ("share of indexes, %: (c) ULID", 51.0),
            ("share of indexes, %: (d) ULID", 43.0),
            ("fan-out of indexes: (d) ULID", 106.0),
            ("adding lists: (d) UUIDv4 / ULID", 1.0),
            ("bytes: (d) ULID / UUIDv4", 1.0),
        ];
        assert_eq!(of, expected.map(|(title, value)| (title.to_owned(), value)));
        assert!((5.6_f64 / 13.0 - 0.43).abs() < 0.005);
        assert!((8.6_f64 / 17.0 - 0.51).abs() < 0.005);
    }
}
