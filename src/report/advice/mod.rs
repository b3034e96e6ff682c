//! What follows from the figures: computed, never written by hand.
//!
//! * crossings: from how many rows a message on one setting is cheaper than the map;
//! * the cheapest setting for each kind of work;
//! * what not to do: whatever costs many times what the same work costs otherwise.

pub mod overtaking;

use super::number::{Grouped, Ratio};
use super::{heading, is_floor};
use crate::results::{Case, Measured, Results};
use overtaking::{Overtaking, overtaking};

/// What is cheaper than the map is said of settings beside this one.
const BASE: &str = "btree";
/// What `ic-rusqlite` opens its connection with.
const DEFAULT: &str = "sqlite/persist";
/// What costs at least so many times as much is worth a warning.
const MANY: f64 = 2.0;

/// Headings, each with its sentences; none without.
pub fn advice(results: &Results) -> Vec<(&'static str, Vec<String>)> {
    let all = [
        ("Where they cross", crossings(results)),
        ("The cheapest for each kind of work", cheapest(results)),
        ("What not to do", warnings(results)),
    ];
    all.into_iter().filter(|(_, sentences)| !sentences.is_empty()).collect()
}

fn each(case: &Case) -> Option<u64> {
    case.measured().filter(|measured| measured.capacity.is_none()).map(Measured::each_operation)
}

/// Names of a section's cases, each once.
fn names<'a>(results: &'a Results, section: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for case in results.cases.iter().filter(|case| case.section == section) {
        if !names.contains(&case.name.as_str()) {
            names.push(&case.name);
        }
    }
    names
}

/// SQLite against the map, place by place.
fn crossings(results: &Results) -> Vec<String> {
    const SECTION: &str = "insert";
    let mut places: Vec<&str> = Vec::new();
    for name in names(results, SECTION) {
        let place = name.split(' ').next().unwrap_or(name);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let series = |place: &str, key: &str| -> Vec<(u64, u64)> {
        let mut series: Vec<(u64, u64)> = results
            .section(SECTION)
            .filter(|case| case.column == key && case.name.split(' ').next() == Some(place))
            .filter_map(|case| case.measured())
            .map(|measured| (measured.operations, measured.instructions))
            .collect();
        series.sort_unstable();
        series
    };
    let mut sentences = Vec::new();
    for place in places {
        let base = series(place, BASE);
        for column in results.columns.iter().filter(|column| column.sqlite.is_some()) {
            let name = heading(&column.key);
            if let Some(found) = overtaking(&base, &series(place, &column.key)) {
                sentences.push(format!("{place}: {}", crossing(&name, found)));
            }
        }
    }
    sentences
}

fn crossing(name: &str, found: Overtaking) -> String {
    match found {
        Overtaking::Always => format!("{name} is cheaper than StableBTreeMap throughout."),
        Overtaking::Never => format!("{name} is never cheaper than StableBTreeMap."),
        Overtaking::From { dearer_at, from, about } => format!(
            "{name} is cheaper than StableBTreeMap from {} rows a message on, dearer at {}; \
             straight lines between cross at about {}.",
            Grouped(from),
            Grouped(dearer_at),
            Grouped(about)
        ),
        Overtaking::Sometimes => {
            format!("{name} is cheaper than StableBTreeMap at some sizes only.")
        }
    }
}

/// The cheapest and the dearest setting of each kind of work, floors aside.
fn cheapest(results: &Results) -> Vec<String> {
    let mut sentences = Vec::new();
    for section in ["insert", "work"] {
        for name in names(results, section) {
            let mut costs: Vec<(u64, &str)> = results
                .section(section)
                .filter(|case| case.name == name && !is_floor(&case.column))
                .filter_map(|case| Some((each(case)?, case.column.as_str())))
                .collect();
            costs.sort_unstable();
            let (Some(best), Some(worst)) = (costs.first(), costs.last()) else { continue };
            let alike = costs.iter().filter(|(cost, _)| *cost == best.0).count();
            if costs.len() < 2 || alike == costs.len() {
                continue;
            }
            let others = match alike {
                1 => String::new(),
                more => format!(" and {} alike", Grouped(more as u64 - 1)),
            };
            let verb = if section == "insert" { "insert, " } else { "" };
            sentences.push(format!(
                "{verb}{name}: {}{others}, {} instructions an operation; {} takes {}.",
                heading(best.1),
                Grouped(best.0),
                heading(worst.1),
                Ratio(worst.0, best.0)
            ));
        }
    }
    sentences
}

fn warnings(results: &Results) -> Vec<String> {
    [small_transactions(results), cold(results), settings(results), unseen(results)].concat()
}

/// Columns whose cost of `name` is many times that of `other`, with the range of times.
fn many_times<'a>(
    results: &'a Results,
    section: &str,
    name: &str,
    other: &str,
) -> Vec<(f64, &'a str)> {
    let mut found: Vec<(f64, &str)> = results
        .columns
        .iter()
        .filter(|column| !is_floor(&column.key))
        .filter_map(|column| {
            let cost = |name| each(results.case(section, name, &column.key)?);
            let times = cost(name)? as f64 / cost(other)?.max(1) as f64;
            (times >= MANY).then_some((times, column.key.as_str()))
        })
        .collect();
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    found
}

fn told(found: &[(f64, &str)]) -> String {
    let parts: Vec<String> =
        found.iter().map(|(times, key)| format!("{} {times:.1}×", heading(key))).collect();
    parts.join(", ")
}

fn small_transactions(results: &Results) -> Vec<String> {
    const SECTION: &str = "transactions";
    let names = names(results, SECTION);
    // Large transactions in one message are what the others are held against.
    let Some(base) = names.iter().rfind(|name| name.ends_with("one message")) else {
        return Vec::new();
    };
    let others = names.iter().filter(|name| *name != base);
    let sentences = others.filter_map(|name| {
        let found = many_times(results, SECTION, name, base);
        (!found.is_empty()).then(|| {
            format!("{name}, instead of {base}, costs many times as much: {}.", told(&found))
        })
    });
    sentences.collect()
}

/// First work after an upgrade or a closed connection beside the same work warm.
fn cold(results: &Results) -> Vec<String> {
    let mut sentences = Vec::new();
    for (state, when) in
        [("upgraded", "after an upgrade"), ("closed", "after the connection was closed")]
    {
        let mut parts: Vec<String> = Vec::new();
        for name in names(results, "work") {
            let Some(what) = name.strip_suffix(&format!(", {state}")) else { continue };
            let found = many_times(results, "work", name, &format!("{what}, warm"));
            let (Some(most), Some(least)) = (found.first(), found.last()) else { continue };
            let mut part = format!("{what} {:.1}× ({})", most.0, heading(most.1));
            if found.len() > 1 {
                part = format!("{part} to {:.1}× ({})", least.0, heading(least.1));
            }
            parts.push(part);
        }
        if !parts.is_empty() {
            sentences.push(format!(
                "The first work {when} costs many times what it costs warm: {}.",
                parts.join("; ")
            ));
        }
    }
    sentences
}

/// Settings that cost many times what the library's defaults cost.
fn settings(results: &Results) -> Vec<String> {
    const SECTION: &str = "settings";
    let measured = |key: &str| results.section(SECTION).any(|case| case.column == key);
    let first = results.section(SECTION).map(|case| case.column.as_str()).next();
    let Some(default) = Some(DEFAULT).filter(|key| measured(key)).or(first) else {
        return Vec::new();
    };
    let mut sentences = Vec::new();
    for column in results.columns.iter().filter(|column| column.key != default) {
        let mut found: Vec<String> = Vec::new();
        for name in names(results, SECTION) {
            let cost = |key: &str| each(results.case(SECTION, name, key)?);
            let Some((here, there)) = cost(&column.key).zip(cost(default)) else { continue };
            if here as f64 >= MANY * there as f64 {
                found.push(format!("{name} {}", Ratio(here, there)));
            }
        }
        if !found.is_empty() {
            sentences.push(format!(
                "{} costs many times what {} costs: {}.",
                heading(&column.key),
                heading(default),
                found.join("; ")
            ));
        }
    }
    sentences
}

/// Messages of which the counter shows less than half.
fn unseen(results: &Results) -> Vec<String> {
    let mut found: Vec<(f64, &Case)> = results
        .cases
        .iter()
        .filter(|case| !is_floor(&case.column))
        .filter_map(|case| {
            let measured = case.measured()?;
            let inside = measured.detail.as_ref()?.cost.inside?;
            let times = inside.charge as f64 / inside.instructions.max(1) as f64;
            (times >= MANY).then_some((times, case))
        })
        .collect();
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    let Some((times, worst)) = found.first() else { return Vec::new() };
    vec![format!(
        "Do not trust the counter alone: in {} cases the whole charge is at least {MANY} times what \
         it reads, because of heap pages that change; most in {} ({}), {times:.1}×.",
        Grouped(found.len() as u64),
        worst.name,
        heading(&worst.column)
    )]
}

#[cfg(test)]
mod tests;
