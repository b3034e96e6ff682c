//! What was published, as ratios of figures that a run of the suite has as well.
//!
//! Seconds and megabytes of another machine say nothing here; how one schema or key
//! compares with another does.

use anyhow::{Context, Result};
use serde::Deserialize;
use stablebench_protocol::{KeyKind, LinkSchema};

use super::size::Size;
use super::{LISTS, key_name, schema_name};
use crate::results::Results;

const PUBLISHED: &str = include_str!("../../../results/published/keys.json");

/// What an article claims.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    /// Who published it.
    pub source: String,
    /// Where.
    pub url: String,
    /// Links that it was measured with.
    pub rows: u64,
    pub claims: Vec<Claim>,
}

/// A figure, or how many times a figure is another one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub measure: Measure,
    pub of: Side,
    /// What it is compared with; nothing where the figure itself is claimed.
    pub to: Option<Side>,
    /// As it was published.
    pub said: String,
    /// The same as a number: a ratio, per cent, or pages.
    pub value: f64,
}

/// A schema under a kind of key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    pub schema: LinkSchema,
    pub key: KeyKind,
}

/// What is claimed of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The time of adding all lists; here, their instructions.
    Insert,
    /// The bytes of all tables and indexes.
    Bytes,
    /// The bytes of all indexes.
    IndexBytes,
    /// Those in per cent of all.
    IndexShare,
    /// Children of an internal page of an index.
    FanOut,
}

impl Claims {
    /// Those of the article.
    ///
    /// # Errors
    ///
    /// Where the file is not as it should be.
    pub fn published() -> Result<Self> {
        serde_json::from_str(PUBLISHED).context("results/published/keys.json")
    }
}

impl Claim {
    /// Our figure, where both sides were measured.
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

    /// What the figure is of.
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
