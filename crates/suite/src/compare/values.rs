//! What is compared of cases and fixtures: ratios and their means, and all values by name.
//!
//! The ratio is `new / base` of the instructions, or `base / new` of the operations that fit into a
//! message if the case measures those. So more than 1 is always worse.
//!
//! Values that only one replica reports, or only newer results contain, are absent from the others.
//! Values of the run and not of the canister (wall times, revisions) are not listed.

use std::fmt;

use serde::Serialize;
use stablebench_protocol::{Digest, PhaseCost};

use crate::cost::{Inside, Messaging, PageCosts, StableCalls, TouchedPages};
use crate::report::number::Grouped;
use crate::results::{Capacity, Case, Detail, Held, Measured, Spread, Stored};

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

/// A value with its name.
pub type Named = (&'static str, Value);

/// A value of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(u64),
    Text(String),
    /// A digest of the rows that were read back, whose number depends on `--check-around`.
    Digest(Digest),
    /// The value is not in the results.
    Absent,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => Grouped(*number).fmt(f),
            Self::Text(text) => f.pad(text),
            Self::Digest(Digest { rows, low, high }) => {
                f.pad(&format!("{rows} rows, {low:016x}{high:016x}"))
            }
            Self::Absent => f.pad("–"),
        }
    }
}

impl Value {
    /// Returns `true` if the two can be compared.
    pub fn compares(&self, new: &Self) -> bool {
        match (self, new) {
            (Self::Absent, _) | (_, Self::Absent) => false,
            (Self::Digest(base), Self::Digest(new)) => base.rows == new.rows,
            _ => true,
        }
    }

    /// Returns the increase to the new value in percent, if both are numbers.
    pub fn percent(&self, new: &Self) -> Option<f64> {
        match (self, new) {
            (Self::Number(0), Self::Number(0)) => Some(0.0),
            (Self::Number(0), Self::Number(_)) => Some(f64::INFINITY),
            (Self::Number(base), Self::Number(new)) => {
                Some((*new as f64 - *base as f64) / *base as f64 * 100.0)
            }
            _ => None,
        }
    }
}

/// Returns the values of a fixture, always with the same names in the same order. Cycles are absent
/// if `cycles` is `false`.
pub fn of_fixture(held: &Held, cycles: bool) -> Vec<Named> {
    let populate = &held.populate;
    vec![
        ("messages", Value::Number(populate.messages)),
        ("counter", Value::Number(populate.instructions)),
        ("charge", or_absent(populate.charge)),
        ("cycles", or_absent(cycles.then_some(populate.cycles))),
        ("stored bytes", Value::Number(held.stored_bytes)),
        ("virtual bytes", or_absent(held.virtual_bytes)),
        ("cache bytes", or_absent(held.cache_bytes)),
        ("heap pages", Value::Number(held.heap_pages)),
        ("stable pages", Value::Number(held.stable_pages)),
        ("digest", Value::Text(Value::Digest(held.digest).to_string())),
        ("settings of SQLite", Value::Text(plain(&held.sqlite))),
    ]
}

/// Returns the values of a case, always with the same names in the same order. Cycles are absent if
/// `cycles` is `false`.
pub fn of_case(measured: &Measured, cycles: bool) -> Vec<Named> {
    let mut values = vec![
        ("instructions", Value::Number(measured.instructions)),
        ("operations", Value::Number(measured.operations)),
    ];
    capacity(&mut values, measured.capacity.as_ref());
    detail(&mut values, measured.detail.as_ref(), cycles);
    pages(&mut values, measured);
    each(&mut values, measured.each.as_ref());
    let phase = |of: &PhaseCost| format!("{:?} {} ({})", of.phase, of.instructions, of.times);
    let phases = measured.phases.as_ref().map(|all| all.iter().map(phase).collect::<Vec<_>>());
    values.push((
        "phases",
        phases.map_or(Value::Absent, |phases| Value::Text(phases.join(", ").to_lowercase())),
    ));
    values
}

fn capacity(values: &mut Vec<Named>, capacity: Option<&Capacity>) {
    let exceeds = capacity.map_or(Value::Absent, |capacity| match capacity.exceeds {
        Some(operations) => Value::Number(operations),
        None => Value::Text("nothing".to_owned()),
    });
    values.extend([
        ("limit", or_absent(capacity.map(|capacity| capacity.limit))),
        ("operations that fit", or_absent(capacity.map(|capacity| capacity.fits))),
        ("operations that do not fit", exceeds),
    ]);
}

fn detail(values: &mut Vec<Named>, detail: Option<&Detail>, cycles: bool) {
    let of = |value: fn(&Detail) -> u64| or_absent(detail.map(value));
    values.extend([
        ("messages", of(|detail| detail.messages)),
        ("counter overhead", of(|detail| detail.counter_overhead)),
        ("counter after the work", of(|detail| detail.message_instructions)),
        ("rows", of(|detail| detail.rows)),
        ("bytes", or_absent(detail.and_then(|detail| detail.bytes))),
        ("heap pages before", of(|detail| detail.heap_pages_before)),
        ("heap pages after", of(|detail| detail.heap_pages_after)),
        ("stable pages before", of(|detail| detail.stable_pages_before)),
        ("stable pages after", of(|detail| detail.stable_pages_after)),
        ("cycles", or_absent(detail.filter(|_| cycles).map(|detail| detail.cost.cycles))),
    ]);
    let inside = detail.and_then(|detail| detail.cost.inside);
    let of = |value: fn(Inside) -> u64| or_absent(inside.map(value));
    values.extend([
        ("counter at the end", of(|inside| inside.instructions)),
        ("charge", of(|inside| inside.charge)),
        ("heap pages changed", of(|inside| inside.heap_pages_changed)),
        ("stable pages accessed", of(|inside| inside.stable_pages_accessed)),
        ("stable pages written", of(|inside| inside.stable_pages_written)),
    ]);
    let calls = inside.and_then(|inside| inside.stable_calls);
    let of = |value: fn(StableCalls) -> u64| or_absent(calls.map(value));
    values.extend([
        ("stable reads", of(|calls| calls.reads)),
        ("stable bytes read", of(|calls| calls.bytes_read)),
        ("stable writes", of(|calls| calls.writes)),
        ("stable bytes written", of(|calls| calls.bytes_written)),
    ]);
    let messaging = inside.and_then(|inside| inside.messaging);
    let of = |value: fn(Messaging) -> u64| or_absent(messaging.map(value));
    values.extend([
        ("executions", of(|messaging| messaging.executions)),
        ("cycles for sending", of(|messaging| messaging.cycles)),
        ("digest", detail.and_then(|detail| detail.digest).map_or(Value::Absent, Value::Digest)),
    ]);
    let stored = detail.and_then(|detail| detail.stored.as_ref());
    let of = |value: fn(&Stored) -> u64| or_absent(stored.map(value));
    values.extend([
        ("stored bytes", of(|stored| stored.bytes)),
        ("virtual bytes", of(|stored| stored.virtual_bytes)),
        ("cache bytes", of(|stored| stored.cache_bytes)),
        (
            "tables and indexes",
            stored.map_or(Value::Absent, |stored| Value::Text(plain(&stored.objects))),
        ),
    ]);
}

/// Adds the pages of the measured work and of the whole charge.
fn pages(values: &mut Vec<Named>, measured: &Measured) {
    let detail = measured.detail.as_ref();
    let inside = detail.and_then(|detail| detail.cost.inside);
    let work = Pages::new(measured.instructions, detail.and_then(|detail| detail.pages));
    let charge = Pages::new(
        inside.map_or(0, |inside| inside.charge),
        inside.and_then(|inside| inside.pages),
    );
    values.extend([
        ("compute of the work", work.compute()),
        ("heap pages of the work", work.cost(|pages| pages.heap)),
        ("stable pages of the work", work.cost(|pages| pages.stable)),
        ("heap touched by the work", work.touched(|touched| touched.heap)),
        ("heap written by the work", work.touched(|touched| touched.heap_written)),
        ("stable memory touched by the work", work.touched(|touched| touched.stable)),
        ("stable memory written by the work", work.touched(|touched| touched.stable_written)),
        ("compute of the charge", charge.compute()),
        ("heap pages of the charge", charge.cost(|pages| pages.heap)),
        ("stable pages of the charge", charge.cost(|pages| pages.stable)),
        ("heap touched by the messages", charge.touched(|touched| touched.heap)),
        ("heap written by the messages", charge.touched(|touched| touched.heap_written)),
        ("stable memory touched by the messages", charge.touched(|touched| touched.stable)),
        ("stable memory written by the messages", charge.touched(|touched| touched.stable_written)),
    ]);
}

/// Instructions, and the part of them that is for pages.
struct Pages {
    total: u64,
    pages: Option<PageCosts>,
}

impl Pages {
    fn new(total: u64, pages: Option<PageCosts>) -> Self {
        Self { total, pages }
    }

    fn compute(&self) -> Value {
        or_absent(self.pages.and_then(|pages| pages.compute(self.total)))
    }

    fn cost(&self, value: fn(PageCosts) -> u64) -> Value {
        or_absent(self.pages.map(value))
    }

    fn touched(&self, value: fn(TouchedPages) -> u64) -> Value {
        or_absent(self.pages.and_then(|pages| pages.touched).map(value))
    }
}

fn each(values: &mut Vec<Named>, each: Option<&Spread>) {
    let of = |value: fn(&Spread) -> u64| or_absent(each.map(value));
    let allocated =
        each.map_or(Value::Absent, |each| Value::Text(each.worst.allocated.to_string()));
    let buckets = each.filter(|each| !each.buckets.is_empty());
    let buckets = buckets.map_or(Value::Absent, |each| Value::Text(plain(&each.buckets)));
    values.extend([
        ("least of an operation", of(|each| each.min)),
        ("p50 of an operation", of(|each| each.p50)),
        ("p90 of an operation", of(|each| each.p90)),
        ("p95 of an operation", or_absent(each.and_then(|each| each.p95))),
        ("p99 of an operation", of(|each| each.p99)),
        ("most of an operation", of(|each| each.max)),
        ("sum of operations", of(|each| each.sum)),
        ("most expensive operation", of(|each| each.worst.index)),
        ("row of the most expensive operation", of(|each| each.worst.id)),
        ("allocated by the most expensive operation", allocated),
        ("operations that allocate", of(|each| each.allocating)),
        ("sum of those", of(|each| each.allocating_sum)),
        ("spread of operations", buckets),
    ]);
}

/// Returns all values of a structure, without the names of types.
fn plain(value: &impl fmt::Debug) -> String {
    let text = format!("{value:?}");
    let (before, last) = text.rsplit_once(" { ").unwrap_or(("", &text));
    let parts = before.split(" { ").map(|part| part.trim_end_matches(char::is_alphanumeric));
    (parts.collect::<String>() + last).replace(" }", "")
}

fn or_absent(value: Option<u64>) -> Value {
    value.map_or(Value::Absent, Value::Number)
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
