//! Advice that is computed from the figures:
//!
//! * crossings: the number of rows per message from which a configuration is cheaper than the map;
//! * the cheapest configuration for each kind of work;
//! * warnings: work that costs many times as much as the same work done another way.

pub mod overtaking;

use stablebench_protocol::Engine;

use super::BASE;
use super::modes::Columns;
use super::number::{Grouped, Ratio};
use super::style::Style;
use crate::engines::{SHIPPED, heading, is_floor};
use crate::results::{Case, Measured, Results};
use overtaking::{Compared, Overtaking, overtaking};

/// The ratio of costs from which a warning is given.
const MANY: f64 = 2.0;
/// Instructions of the smaller side below which a ratio is no conclusion: a hundred times what reading
/// the counter twice costs, and a quarter of what a message pays for one page of memory. Below it, the
/// ratio says how little the other side does, such as returning a number that it keeps, and not how
/// much this one does.
const FLOOR: u64 = 20_000;

/// Returns headings with their sentences, without headings that have none.
pub fn advice(results: &Results, style: Style) -> Vec<(&'static str, Vec<String>)> {
    let all = [
        ("Where they cross", crossings(results, style)),
        ("The cheapest for each kind of work", cheapest(results)),
        ("What not to do", warnings(results)),
    ];
    all.into_iter().filter(|(_, sentences)| !sentences.is_empty()).collect()
}

/// Returns the measurement, unless it is of a capacity.
fn each(case: &Case) -> Option<&Measured> {
    case.measured().filter(|measured| measured.capacity.is_none())
}

/// Returns how many times the cost of an operation `there` is its cost `here`, with both costs. `None`
/// if the smaller side is too small for a conclusion.
pub fn times(here: &Measured, there: &Measured) -> Option<(f64, Ratio)> {
    let overhead = |of: &Measured| of.detail.as_ref().map_or(0, |detail| detail.counter_overhead);
    let floor = FLOOR.max(overhead(here)).max(overhead(there));
    if here.instructions.min(there.instructions) < floor {
        return None;
    }
    let (here, there) = (here.each_operation(), there.each_operation());
    Some((here as f64 / there.max(1) as f64, Ratio(here, there)))
}

/// Compares SQLite with the map for each place of new rows; of equal journal modes, only the one that
/// tables in this style show.
fn crossings(results: &Results, style: Style) -> Vec<String> {
    const SECTION: &str = "insert";
    let mut places: Vec<&str> = Vec::new();
    for name in results.names(SECTION) {
        let place = name.split(' ').next().unwrap_or(name);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let series = |place: &str, key: &str| -> Vec<(u64, u64)> {
        let mut series: Vec<(u64, u64)> = results
            .section(SECTION)
            .filter(|case| case.configuration == key && case.name.split(' ').next() == Some(place))
            .filter_map(|case| case.measured())
            .map(|measured| (measured.operations, measured.instructions))
            .collect();
        series.sort_unstable();
        series
    };
    let sqlite = results.configurations.iter().filter(|one| one.engine == Engine::SQLITE);
    let keys = sqlite.map(|one| one.key.as_str()).collect();
    let columns = Columns::of_section(results, SECTION, keys, style);
    let mut sentences = Vec::new();
    for place in places {
        let base = series(place, BASE);
        for key in &columns.shown {
            let name = heading(key);
            if let Some(found) = overtaking(&base, &series(place, key)) {
                sentences.push(format!("{place}: {}", crossing(&name, found)));
            }
        }
    }
    sentences
}

fn crossing(name: &str, found: Compared) -> String {
    let Compared { overtaking, range: (least, most) } = found;
    let range = format!("{} to {} rows a message", Grouped(least), Grouped(most));
    match overtaking {
        Overtaking::Always => {
            format!("{name} is cheaper than StableBTreeMap at all measured sizes, {range}.")
        }
        Overtaking::Never => {
            format!("{name} is cheaper than StableBTreeMap at no measured size, {range}.")
        }
        Overtaking::From { more_expensive_at, from, about } if from == most => format!(
            "{name} is cheaper than StableBTreeMap at {} rows a message, the largest measured size, \
             and more expensive at {}. By linear interpolation, they cost the same at about {}. \
             Measured: {range}.",
            Grouped(from),
            Grouped(more_expensive_at),
            Grouped(about)
        ),
        Overtaking::From { more_expensive_at, from, about } => format!(
            "{name} is cheaper than StableBTreeMap from {} rows a message on, and more expensive at \
             {}. By linear interpolation, they cost the same at about {}. Measured: {range}.",
            Grouped(from),
            Grouped(more_expensive_at),
            Grouped(about)
        ),
        Overtaking::Sometimes => {
            format!("{name} is cheaper than StableBTreeMap at some sizes only, of {range}.")
        }
    }
}

/// Names the cheapest and the most expensive configuration for each kind of work, except floors.
fn cheapest(results: &Results) -> Vec<String> {
    let mut sentences = Vec::new();
    for section in ["insert", "work"] {
        for name in results.names(section) {
            let mut costs: Vec<(u64, &str, &Measured)> = results
                .section(section)
                .filter(|case| case.name == name && !is_floor(&case.configuration))
                .filter_map(|case| {
                    let measured = each(case)?;
                    Some((measured.each_operation(), case.configuration.as_str(), measured))
                })
                .collect();
            costs.sort_unstable_by_key(|(cost, key, _)| (*cost, *key));
            let (Some(best), Some(worst)) = (costs.first(), costs.last()) else { continue };
            let equal = costs.iter().filter(|(cost, ..)| *cost == best.0).count();
            if costs.len() < 2 || equal == costs.len() {
                continue;
            }
            let others = match equal {
                1 => String::new(),
                more => format!(" and {} more (equal)", Grouped(more as u64 - 1)),
            };
            let verb = if section == "insert" { "insert, " } else { "" };
            let ratio = times(worst.2, best.2);
            let worst = ratio.map(|(_, ratio)| format!("; {} takes {ratio}", heading(worst.1)));
            sentences.push(format!(
                "{verb}{name}: {}{others}, {} instructions an operation{}.",
                heading(best.1),
                Grouped(best.0),
                worst.unwrap_or_default()
            ));
        }
    }
    sentences
}

fn warnings(results: &Results) -> Vec<String> {
    [small_transactions(results), cold(results), settings(results), unseen(results)].concat()
}

/// Returns the configurations for which `name` costs many times as much as `other`, with the
/// ratios, the largest first.
fn many_times<'a>(
    results: &'a Results,
    section: &str,
    name: &str,
    other: &str,
) -> Vec<(f64, &'a str)> {
    let mut found: Vec<(f64, &str)> = results
        .configurations
        .iter()
        .filter(|configuration| !is_floor(&configuration.key))
        .filter_map(|configuration| {
            let cost = |name| each(results.case(section, name, &configuration.key)?);
            let (times, _) = times(cost(name)?, cost(other)?)?;
            (times >= MANY).then_some((times, configuration.key.as_str()))
        })
        .collect();
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    found
}

fn ratios(found: &[(f64, &str)]) -> String {
    let parts: Vec<String> =
        found.iter().map(|(times, key)| format!("{} {times:.1}×", heading(key))).collect();
    parts.join(", ")
}

fn small_transactions(results: &Results) -> Vec<String> {
    const SECTION: &str = "transactions";
    let names = results.names(SECTION);
    // The others are compared with the largest transactions in one message.
    let Some(base) = names.iter().rfind(|name| name.ends_with("one message")) else {
        return Vec::new();
    };
    let others = names.iter().filter(|name| *name != base);
    let sentences = others.filter_map(|name| {
        let found = many_times(results, SECTION, name, base);
        (!found.is_empty()).then(|| {
            format!("{name}, instead of {base}, costs many times as much: {}.", ratios(&found))
        })
    });
    sentences.collect()
}

/// Compares the first work after an upgrade or a closed connection with the same work, warm.
fn cold(results: &Results) -> Vec<String> {
    let mut sentences = Vec::new();
    for (state, when) in
        [("upgraded", "after an upgrade"), ("closed", "after the connection was closed")]
    {
        let mut parts: Vec<String> = Vec::new();
        for name in results.names("work") {
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

/// Names the settings that cost many times as much as the library's defaults.
fn settings(results: &Results) -> Vec<String> {
    const SECTION: &str = "settings";
    let measured = |key: &str| results.section(SECTION).any(|case| case.configuration == key);
    let first = results.section(SECTION).map(|case| case.configuration.as_str()).next();
    let Some(default) = Some(SHIPPED).filter(|key| measured(key)).or(first) else {
        return Vec::new();
    };
    let mut sentences = Vec::new();
    for configuration in
        results.configurations.iter().filter(|configuration| configuration.key != default)
    {
        let mut found: Vec<String> = Vec::new();
        for name in results.names(SECTION) {
            let cost = |key: &str| each(results.case(SECTION, name, key)?);
            let costs = cost(&configuration.key).zip(cost(default));
            let Some((times, ratio)) = costs.and_then(|(here, there)| times(here, there)) else {
                continue;
            };
            if times >= MANY {
                found.push(format!("{name} {ratio}"));
            }
        }
        if !found.is_empty() {
            sentences.push(format!(
                "{} costs many times what {} costs: {}.",
                heading(&configuration.key),
                heading(default),
                found.join("; ")
            ));
        }
    }
    sentences
}

/// Warns of messages whose counter shows less than half of the charge.
fn unseen(results: &Results) -> Vec<String> {
    let mut found: Vec<(f64, &Case)> = results
        .cases
        .iter()
        .filter(|case| !is_floor(&case.configuration))
        .filter_map(|case| {
            let measured = case.measured()?;
            let inside = measured.detail.as_ref()?.cost.inside?;
            let times = inside.charge as f64 / inside.instructions.max(1) as f64;
            (times >= MANY && inside.instructions >= FLOOR).then_some((times, case))
        })
        .collect();
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    let Some((times, worst)) = found.first() else { return Vec::new() };
    vec![format!(
        "Do not trust the counter alone: in {} cases the whole charge is at least {MANY} times what \
         it reads, because of heap pages that change; most in {} ({}), {times:.1}×.",
        Grouped(found.len() as u64),
        worst.name,
        heading(&worst.configuration)
    )]
}

#[cfg(test)]
mod tests;
