//! Results as CSV: a line for each case, with its raw values and then the values derived from them.
//! A missing value is empty. Tables and indexes are one field, in JSON. The last lines are the
//! messages without work, one for each canister.

use anyhow::Result;

use super::price;
use crate::cost::{Inside, Messaging, PageCosts, StableCalls, TouchedPages};
use crate::results::{Capacity, Case, Detail, Measured, Outcome, Results, Spread, Stored};
use crate::terminal::json;

/// Returns the results as CSV.
///
/// # Errors
///
/// If a line cannot be written.
pub fn csv(results: &Results) -> Result<String> {
    let mut lines = csv::Writer::from_writer(Vec::new());
    lines.write_record(FIELDS.iter().map(|(name, _)| *name).chain(DERIVED))?;
    for case in results.cases.iter().chain(&results.harness) {
        let raw = FIELDS.iter().map(|(_, value)| value(case));
        let values = raw.chain(derived(case, results));
        lines.write_record(values.map(Option::unwrap_or_default))?;
    }
    Ok(String::from_utf8(lines.into_inner()?)?)
}

/// The names of derived values: the rules of the run, instructions without the cost of pages, and
/// cycles and US dollars at the prices of the results.
const DERIVED: [&str; 5] = ["rules", "work_compute", "charge_compute", "priced_cycles", "usd"];

fn derived(case: &Case, results: &Results) -> [Option<String>; 5] {
    let measured = case.measured();
    let detail = measured.and_then(|measured| measured.detail.as_ref());
    let inside = detail.and_then(|detail| detail.cost.inside);
    let compute = |pages: Option<PageCosts>, total: Option<u64>| pages?.compute(total?);
    let work = compute(
        detail.and_then(|detail| detail.pages),
        measured.map(|measured| measured.instructions),
    );
    let charge =
        compute(inside.and_then(|inside| inside.pages), inside.map(|inside| inside.charge));
    let prices = &results.prices;
    let cycles = detail.map(|detail| price::cycles(detail.cost.cycles, prices));
    [
        text(&results.replica.rules),
        work.and_then(text),
        charge.and_then(text),
        cycles.and_then(text),
        cycles.map(|cycles| format!("{:.9}", price::usd(cycles, 1.0, prices))),
    ]
}

/// The name of a value, and a function that returns it.
type Field = (&'static str, fn(&Case) -> Option<String>);

/// All raw values of a case.
const FIELDS: &[Field] = &[
    ("section", |case| Some(case.section.clone())),
    ("name", |case| Some(case.name.clone())),
    ("configuration", |case| Some(case.configuration.clone())),
    ("rows", |case| text(case.rows)),
    ("payload", |case| text(case.payload)),
    ("state", |case| Some(case.state.to_string())),
    ("outcome", |case| Some(outcome(case).0.to_owned())),
    ("reason", |case| outcome(case).1),
    ("instructions", |case| measured(case, |of| text(of.instructions))),
    ("operations", |case| measured(case, |of| text(of.operations))),
    ("capacity_limit", |case| capacity(case, |of| text(of.limit))),
    ("capacity_fits", |case| capacity(case, |of| text(of.fits))),
    ("capacity_exceeds", |case| capacity(case, |of| of.exceeds.and_then(text))),
    ("capacity_reason", |case| capacity(case, |of| of.reason.clone())),
    ("messages", |case| detail(case, |of| text(of.messages))),
    ("counter_overhead", |case| detail(case, |of| text(of.counter_overhead))),
    ("message_instructions", |case| detail(case, |of| text(of.message_instructions))),
    ("work_rows", |case| detail(case, |of| text(of.rows))),
    ("work_bytes", |case| detail(case, |of| of.bytes.and_then(text))),
    ("heap_pages_before", |case| detail(case, |of| text(of.heap_pages_before))),
    ("heap_pages_after", |case| detail(case, |of| text(of.heap_pages_after))),
    ("stable_pages_before", |case| detail(case, |of| text(of.stable_pages_before))),
    ("stable_pages_after", |case| detail(case, |of| text(of.stable_pages_after))),
    ("cycles", |case| detail(case, |of| text(of.cost.cycles))),
    ("inside_instructions", |case| inside(case, |of| text(of.instructions))),
    ("charge", |case| inside(case, |of| text(of.charge))),
    ("heap_pages_changed", |case| inside(case, |of| text(of.heap_pages_changed))),
    ("stable_pages_accessed", |case| inside(case, |of| text(of.stable_pages_accessed))),
    ("stable_pages_written", |case| inside(case, |of| text(of.stable_pages_written))),
    ("stable_reads", |case| calls(case, |of| text(of.reads))),
    ("stable_bytes_read", |case| calls(case, |of| text(of.bytes_read))),
    ("stable_writes", |case| calls(case, |of| text(of.writes))),
    ("stable_bytes_written", |case| calls(case, |of| text(of.bytes_written))),
    ("executions", |case| messaging(case, |of| text(of.executions))),
    ("sending_cycles", |case| messaging(case, |of| text(of.cycles))),
    ("charge_heap_pages", |case| charged(case, |of| text(of.heap))),
    ("charge_stable_pages", |case| charged(case, |of| text(of.stable))),
    ("charge_heap_touched", |case| charge_touched(case, |of| text(of.heap))),
    ("charge_heap_written", |case| charge_touched(case, |of| text(of.heap_written))),
    ("charge_stable_touched", |case| charge_touched(case, |of| text(of.stable))),
    ("charge_stable_written", |case| charge_touched(case, |of| text(of.stable_written))),
    ("work_heap_pages", |case| work(case, |of| text(of.heap))),
    ("work_stable_pages", |case| work(case, |of| text(of.stable))),
    ("work_heap_touched", |case| work_touched(case, |of| text(of.heap))),
    ("work_heap_written", |case| work_touched(case, |of| text(of.heap_written))),
    ("work_stable_touched", |case| work_touched(case, |of| text(of.stable))),
    ("work_stable_written", |case| work_touched(case, |of| text(of.stable_written))),
    ("digest_rows", |case| detail(case, |of| of.digest.and_then(|digest| text(digest.rows)))),
    ("digest_low", |case| detail(case, |of| of.digest.and_then(|digest| text(digest.low)))),
    ("digest_high", |case| detail(case, |of| of.digest.and_then(|digest| text(digest.high)))),
    ("stored_bytes", |case| stored(case, |of| text(of.bytes))),
    ("stored_virtual_bytes", |case| stored(case, |of| text(of.virtual_bytes))),
    ("stored_cache_bytes", |case| stored(case, |of| text(of.cache_bytes))),
    ("stored_objects", |case| stored(case, |of| json(&of.objects).ok())),
    ("each_min", |case| each(case, |of| text(of.min))),
    ("each_p50", |case| each(case, |of| text(of.p50))),
    ("each_p90", |case| each(case, |of| text(of.p90))),
    ("each_p95", |case| each(case, |of| of.p95.and_then(text))),
    ("each_p99", |case| each(case, |of| text(of.p99))),
    ("each_max", |case| each(case, |of| text(of.max))),
    ("each_sum", |case| each(case, |of| text(of.sum))),
    ("each_worst_index", |case| each(case, |of| text(of.worst.index))),
    ("each_worst_id", |case| each(case, |of| text(of.worst.id))),
    ("each_worst_allocated", |case| each(case, |of| text(of.worst.allocated))),
    ("each_worst_work", |case| each(case, |of| of.worst_work.clone())),
    ("each_allocating", |case| each(case, |of| text(of.allocating))),
    ("each_allocating_sum", |case| each(case, |of| text(of.allocating_sum))),
    ("each_buckets", |case| each(case, |of| json(&of.buckets).ok())),
    ("phases", |case| measured(case, |of| json(of.phases.as_ref()?).ok())),
];

fn text(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

fn outcome(case: &Case) -> (&'static str, Option<String>) {
    match &case.outcome {
        Outcome::Measured(_) => ("measured", None),
        Outcome::NotApplicable { reason } => ("not applicable", Some(reason.clone())),
        Outcome::Failed { reason } => ("failed", Some(reason.clone())),
    }
}

fn measured(case: &Case, value: fn(&Measured) -> Option<String>) -> Option<String> {
    value(case.measured()?)
}

fn capacity(case: &Case, value: fn(&Capacity) -> Option<String>) -> Option<String> {
    value(case.measured()?.capacity.as_ref()?)
}

fn detail(case: &Case, value: fn(&Detail) -> Option<String>) -> Option<String> {
    value(case.measured()?.detail.as_ref()?)
}

fn stored(case: &Case, value: fn(&Stored) -> Option<String>) -> Option<String> {
    value(case.measured()?.detail.as_ref()?.stored.as_ref()?)
}

fn inside(case: &Case, value: fn(&Inside) -> Option<String>) -> Option<String> {
    value(case.measured()?.detail.as_ref()?.cost.inside.as_ref()?)
}

fn calls(case: &Case, value: fn(&StableCalls) -> Option<String>) -> Option<String> {
    value(case.measured()?.detail.as_ref()?.cost.inside.as_ref()?.stable_calls.as_ref()?)
}

fn messaging(case: &Case, value: fn(&Messaging) -> Option<String>) -> Option<String> {
    value(case.measured()?.detail.as_ref()?.cost.inside.as_ref()?.messaging.as_ref()?)
}

/// Returns a value of the pages in the whole charge.
fn charged(case: &Case, value: fn(&PageCosts) -> Option<String>) -> Option<String> {
    value(case.measured()?.detail.as_ref()?.cost.inside.as_ref()?.pages.as_ref()?)
}

fn charge_touched(case: &Case, value: fn(&TouchedPages) -> Option<String>) -> Option<String> {
    let inside = case.measured()?.detail.as_ref()?.cost.inside.as_ref()?;
    value(inside.pages.as_ref()?.touched.as_ref()?)
}

/// Returns a value of the pages in the measured work.
fn work(case: &Case, value: fn(&PageCosts) -> Option<String>) -> Option<String> {
    value(case.measured()?.detail.as_ref()?.pages.as_ref()?)
}

fn work_touched(case: &Case, value: fn(&TouchedPages) -> Option<String>) -> Option<String> {
    value(case.measured()?.detail.as_ref()?.pages.as_ref()?.touched.as_ref()?)
}

fn each(case: &Case, value: fn(&Spread) -> Option<String>) -> Option<String> {
    value(case.measured()?.each.as_ref()?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::results::{Prices, sample};

    /// Collects the numbers of a case, which must all be different.
    fn numbers(value: &serde_json::Value, found: &mut BTreeSet<String>) {
        match value {
            serde_json::Value::Number(number) => {
                assert!(found.insert(number.to_string()), "{number} is there twice");
            }
            serde_json::Value::Array(inner) => inner.iter().for_each(|one| numbers(one, found)),
            serde_json::Value::Object(inner) => inner.values().for_each(|one| numbers(one, found)),
            _ => {}
        }
    }

    #[test]
    fn every_value_of_a_case_is_in_its_line() {
        let results = sample::full();
        let text = csv(&results).unwrap();
        let mut lines = csv::Reader::from_reader(text.as_bytes());
        let line = lines.records().next().unwrap().unwrap();
        let mut found = BTreeSet::new();
        numbers(&serde_json::to_value(&results.cases[0]).unwrap(), &mut found);
        let raw = line.iter().take(FIELDS.len());
        let mut shown: BTreeSet<String> =
            raw.filter(|one| one.parse::<i64>().is_ok()).map(str::to_owned).collect();
        // Tables and indexes are one field, as in the file. So are lists of costs.
        for list in ["stored_objects", "each_buckets", "phases"] {
            let list = FIELDS.iter().position(|(name, _)| *name == list).unwrap();
            numbers(&serde_json::from_str(&line[list]).unwrap(), &mut shown);
        }
        assert_eq!(found, shown);
        assert_eq!(line.len(), FIELDS.len() + DERIVED.len());
        assert!(
            line.iter().zip(FIELDS).all(|(one, (name, _))| one.is_empty() == (*name == "reason"))
        );
    }

    /// Returns the derived fields of the first case.
    fn derived_of(results: &Results) -> Vec<String> {
        let text = csv(results).unwrap();
        let mut lines = csv::Reader::from_reader(text.as_bytes());
        let line = lines.records().next().unwrap().unwrap();
        line.iter().skip(FIELDS.len()).map(str::to_owned).collect()
    }

    #[test]
    fn compute_excludes_the_cost_of_pages() {
        let mut results = sample::full();
        // 577 141 375 - 81 - 82, and 241 - 75 - 76.
        assert_eq!(derived_of(&results)[..3], ["2026-08", "577141212", "90"]);
        let Outcome::Measured(measured) = &mut results.cases[0].outcome else { panic!() };
        let detail = measured.detail.as_mut().unwrap();
        detail.pages = None;
        detail.cost.inside.as_mut().unwrap().charge = 150;
        assert_eq!(derived_of(&results)[..3], ["2026-08", "", ""], "pages cost more than all");
    }

    #[test]
    fn prices_follow_from_the_cycles() {
        let mut results = sample::full();
        results.prices = Prices { nodes: 26, usd_per_trillion_cycles: 2.0 };
        if let Outcome::Measured(measured) = &mut results.cases[0].outcome
            && let Some(detail) = &mut measured.detail
        {
            detail.cost.cycles = 3_000_000_000;
        }
        let text = csv(&results).unwrap();
        let line = text.lines().nth(1).unwrap();
        assert!(line.ends_with(",6000000000,0.012000000"), "{line}");
    }

    #[test]
    fn fields_are_quoted_if_necessary() {
        let mut results = sample::full();
        results.cases[0].configuration = "sqlite/wal,page_size=512".to_owned();
        results.cases[0].outcome =
            Outcome::NotApplicable { reason: "it says \"no\",\nand why".to_owned() };
        let text = csv(&results).unwrap();
        assert!(text.contains(r#","sqlite/wal,page_size=512","#), "{text}");
        let mut lines = csv::Reader::from_reader(text.as_bytes());
        let line = lines.records().next().unwrap().unwrap();
        assert_eq!(&line[6], "not applicable");
        assert_eq!(&line[7], "it says \"no\",\nand why");
        let rules = FIELDS.len();
        assert!(line.iter().enumerate().skip(8).all(|(at, one)| one.is_empty() == (at != rules)));
    }
}
