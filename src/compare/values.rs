//! Every value of a case or a store by its name, for the comparison of each.
//!
//! What only one replica can tell, or only newer results hold, is untold. What belongs
//! to the run and not to the canister (wall times, revisions) has no name here.

use stablebench_protocol::Digest;

use crate::replica::{Inside, PageCosts, StableCalls, TouchedPages};
use crate::report::number::Grouped;
use crate::results::{Capacity, Detail, Held, Measured, Spread, Stored};

/// A value and what it is.
pub type Named = (&'static str, Value);

/// A value of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(u64),
    Text(String),
    /// Of the rows that were read back, whose number depends on `--check-around`.
    Digest(Digest),
    /// It is not told.
    Untold,
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => Grouped(*number).fmt(f),
            Self::Text(text) => f.pad(text),
            Self::Digest(Digest { rows, low, high }) => {
                f.pad(&format!("{rows} rows, {low:016x}{high:016x}"))
            }
            Self::Untold => f.pad("–"),
        }
    }
}

impl Value {
    /// Whether the two tell the same thing, be it alike or not.
    pub fn compares(&self, new: &Self) -> bool {
        match (self, new) {
            (Self::Untold, _) | (_, Self::Untold) => false,
            (Self::Digest(base), Self::Digest(new)) => base.rows == new.rows,
            _ => true,
        }
    }

    /// By how much the new value is more, in percent, where both are numbers.
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

/// Always the same names in the same order. Without `cycles` those are untold.
pub fn of_store(held: &Held, cycles: bool) -> Vec<Named> {
    let populate = &held.populate;
    vec![
        ("messages", Value::Number(populate.messages)),
        ("counter", Value::Number(populate.instructions)),
        ("charge", told(populate.charge)),
        ("cycles", told(cycles.then_some(populate.cycles))),
        ("stored bytes", Value::Number(held.stored_bytes)),
        ("virtual bytes", told(held.virtual_bytes)),
        ("cache bytes", told(held.cache_bytes)),
        ("heap pages", Value::Number(held.heap_pages)),
        ("stable pages", Value::Number(held.stable_pages)),
        ("digest", Value::Text(Value::Digest(held.digest).to_string())),
        ("settings of SQLite", Value::Text(format!("{:?}", held.sqlite))),
    ]
}

/// Likewise.
pub fn of_case(measured: &Measured, cycles: bool) -> Vec<Named> {
    let mut values = vec![
        ("instructions", Value::Number(measured.instructions)),
        ("operations", Value::Number(measured.operations)),
    ];
    capacity(&mut values, measured.capacity.as_ref());
    detail(&mut values, measured.detail.as_ref(), cycles);
    pages(&mut values, measured);
    each(&mut values, measured.each.as_ref());
    let phases = measured.phases.as_ref();
    values.push((
        "phases",
        phases.map_or(Value::Untold, |phases| Value::Text(format!("{phases:?}"))),
    ));
    values
}

fn capacity(values: &mut Vec<Named>, capacity: Option<&Capacity>) {
    let exceeds = capacity.map_or(Value::Untold, |capacity| match capacity.exceeds {
        Some(operations) => Value::Number(operations),
        None => Value::Text("nothing".to_owned()),
    });
    values.extend([
        ("limit", told(capacity.map(|capacity| capacity.limit))),
        ("operations that fit", told(capacity.map(|capacity| capacity.fits))),
        ("operations that do not fit", exceeds),
    ]);
}

fn detail(values: &mut Vec<Named>, detail: Option<&Detail>, cycles: bool) {
    let number = |value: fn(&Detail) -> u64| told(detail.map(value));
    values.extend([
        ("messages", number(|detail| detail.messages)),
        ("counter overhead", number(|detail| detail.counter_overhead)),
        ("counter after the work", number(|detail| detail.message_instructions)),
        ("rows", number(|detail| detail.rows)),
        ("bytes", told(detail.and_then(|detail| detail.bytes))),
        ("heap pages before", number(|detail| detail.heap_pages_before)),
        ("heap pages after", number(|detail| detail.heap_pages_after)),
        ("stable pages before", number(|detail| detail.stable_pages_before)),
        ("stable pages after", number(|detail| detail.stable_pages_after)),
        ("cycles", told(detail.filter(|_| cycles).map(|detail| detail.cost.cycles))),
    ]);
    let inside = detail.and_then(|detail| detail.cost.inside);
    let number = |value: fn(Inside) -> u64| told(inside.map(value));
    values.extend([
        ("counter at the end", number(|inside| inside.instructions)),
        ("charge", number(|inside| inside.charge)),
        ("heap pages changed", number(|inside| inside.heap_pages_changed)),
        ("stable pages accessed", number(|inside| inside.stable_pages_accessed)),
        ("stable pages written", number(|inside| inside.stable_pages_written)),
    ]);
    let calls = inside.and_then(|inside| inside.stable_calls);
    let number = |value: fn(StableCalls) -> u64| told(calls.map(value));
    values.extend([
        ("stable reads", number(|calls| calls.reads)),
        ("stable bytes read", number(|calls| calls.bytes_read)),
        ("stable writes", number(|calls| calls.writes)),
        ("stable bytes written", number(|calls| calls.bytes_written)),
        ("digest", detail.and_then(|detail| detail.digest).map_or(Value::Untold, Value::Digest)),
    ]);
    let stored = detail.and_then(|detail| detail.stored.as_ref());
    let number = |value: fn(&Stored) -> u64| told(stored.map(value));
    values.extend([
        ("stored bytes", number(|stored| stored.bytes)),
        ("virtual bytes", number(|stored| stored.virtual_bytes)),
        ("cache bytes", number(|stored| stored.cache_bytes)),
        (
            "tables and indexes",
            stored.map_or(Value::Untold, |stored| Value::Text(format!("{:?}", stored.objects))),
        ),
    ]);
}

/// Pages of the measured work, and of the whole charge.
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

/// Instructions, and what of them is for pages.
struct Pages {
    total: u64,
    pages: Option<PageCosts>,
}

impl Pages {
    fn new(total: u64, pages: Option<PageCosts>) -> Self {
        Self { total, pages }
    }

    fn compute(&self) -> Value {
        told(self.pages.and_then(|pages| pages.compute(self.total)))
    }

    fn cost(&self, value: fn(PageCosts) -> u64) -> Value {
        told(self.pages.map(value))
    }

    fn touched(&self, value: fn(TouchedPages) -> u64) -> Value {
        told(self.pages.and_then(|pages| pages.touched).map(value))
    }
}

fn each(values: &mut Vec<Named>, each: Option<&Spread>) {
    let number = |value: fn(&Spread) -> u64| told(each.map(value));
    let allocated =
        each.map_or(Value::Untold, |each| Value::Text(each.worst.allocated.to_string()));
    let buckets = each.filter(|each| !each.buckets.is_empty());
    let buckets = buckets.map_or(Value::Untold, |each| Value::Text(format!("{:?}", each.buckets)));
    values.extend([
        ("least of an operation", number(|each| each.min)),
        ("p50 of an operation", number(|each| each.p50)),
        ("p90 of an operation", number(|each| each.p90)),
        ("p99 of an operation", number(|each| each.p99)),
        ("most of an operation", number(|each| each.max)),
        ("sum of operations", number(|each| each.sum)),
        ("dearest operation", number(|each| each.worst.index)),
        ("dearest row", number(|each| each.worst.id)),
        ("allocated by the dearest", allocated),
        ("operations that allocate", number(|each| each.allocating)),
        ("sum of those", number(|each| each.allocating_sum)),
        ("spread of operations", buckets),
    ]);
}

fn told(value: Option<u64>) -> Value {
    value.map_or(Value::Untold, Value::Number)
}
