//! All values of a case or a fixture by name.
//!
//! Values that only one replica reports, or only newer results contain, are absent from the others.
//! Values of the run and not of the canister (wall times, revisions) are not listed.

use std::fmt;

use stablebench_protocol::{Digest, PhaseCost};

use crate::cost::{Inside, Messaging, PageCosts, StableCalls, TouchedPages};
use crate::report::number::Grouped;
use crate::results::{Capacity, Detail, Held, Measured, Spread, Stored};

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
