//! Advice that is computed from the figures:
//!
//! * crossings: the number of rows per message from which a configuration is cheaper than the map;
//! * the cheapest configuration for each kind of work;
//! * warnings: work that costs many times as much as the same work done another way.

use stablebench_protocol::Engine;

use super::BASE;
use super::grid::{Columns, Style};
use super::number::{Grouped, Ratio};
use crate::engines::{SHIPPED, heading, is_floor};
use crate::results::{Case, Measured, Results};

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

/// The result of comparing the measured points of two configurations, of which there are at least two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    pub overtaking: Overtaking,
    /// The fewest and the most rows that were measured with both. Nothing is known outside of them.
    pub range: (u64, u64),
}

/// The order of two configurations at the measured points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overtaking {
    /// The challenger is cheaper at every point.
    Always,
    /// The challenger is cheaper at no point.
    Never,
    /// The challenger is not cheaper up to one point, and cheaper from the next one on.
    From {
        /// The last number of rows at which it is not cheaper.
        more_expensive_at: u64,
        /// The first number of rows from which it stays cheaper.
        from: u64,
        /// The intersection of the straight lines between the two points.
        about: u64,
    },
    /// The challenger is cheaper at some points, but not from one of them on.
    Sometimes,
}

/// Compares two series of (rows, instructions), ascending in rows. Of several points with the
/// same rows, the first counts. Returns `None` if fewer than two numbers of rows were measured with
/// both, which say nothing about others.
pub fn overtaking(base: &[(u64, u64)], challenger: &[(u64, u64)]) -> Option<Compared> {
    let mut points: Vec<(u64, u64, u64)> = base
        .iter()
        .filter_map(|(rows, cost)| {
            let other = challenger.iter().find(|(other, _)| other == rows)?;
            Some((*rows, *cost, other.1))
        })
        .collect();
    points.dedup_by_key(|point| point.0);
    let cheaper = |point: &(u64, u64, u64)| point.2 < point.1;
    let first = points.iter().position(cheaper);
    let last_other = points.iter().rposition(|point| !cheaper(point));
    let [(least, ..), .., (most, ..)] = points[..] else { return None };
    let overtaking = match (first, last_other) {
        (None, _) => Overtaking::Never,
        (Some(_), None) => Overtaking::Always,
        (Some(first), Some(last)) if last + 1 == first => {
            let (low, high) = (points[last], points[first]);
            let lead = |point: (u64, u64, u64)| point.1 as f64 - point.2 as f64;
            let (behind, ahead) = (-lead(low), lead(high));
            let share = if behind + ahead > 0.0 { behind / (behind + ahead) } else { 1.0 };
            let about = low.0 as f64 + share * (high.0 - low.0) as f64;
            let about = (about.ceil() as u64).clamp(low.0 + 1, high.0);
            Overtaking::From { more_expensive_at: low.0, from: high.0, about }
        }
        _ => Overtaking::Sometimes,
    };
    Some(Compared { overtaking, range: (least, most) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Outcome, State};

    #[test]
    fn cheaper_from_the_first_point_after_the_last_more_expensive_one() {
        let base = [(1, 100), (10, 1_000), (100, 10_000)];
        let compared = |challenger: &[(u64, u64)]| {
            overtaking(&base, challenger).map(|found| (found.overtaking, found.range))
        };
        assert_eq!(
            compared(&[(1, 190), (10, 910), (100, 5_000)]),
            Some((Overtaking::From { more_expensive_at: 1, from: 10, about: 6 }, (1, 100)))
        );
        assert_eq!(compared(&[(1, 1), (10, 1), (100, 1)]), Some((Overtaking::Always, (1, 100))));
        assert_eq!(compared(&[(1, 100), (10, 1_000)]), Some((Overtaking::Never, (1, 10))));
        assert_eq!(
            compared(&[(1, 1), (10, 2_000), (100, 1)]),
            Some((Overtaking::Sometimes, (1, 100)))
        );
        assert_eq!(compared(&[]), None);
        // Two cases may have the same rows.
        let twice = [(10, 10), (10, 1_000), (20, 10)];
        let found = overtaking(&twice, &[(10, 100), (20, 100)]).unwrap();
        assert_eq!((found.overtaking, found.range), (Overtaking::Never, (10, 20)));
    }

    #[test]
    fn one_size_is_no_conclusion() {
        for challenger in [&[(10, 1)][..], &[(10, 9_999)], &[(5, 1), (10, 1), (11, 1)]] {
            assert_eq!(overtaking(&[(1, 100), (10, 1_000)], challenger), None);
        }
        assert_eq!(overtaking(&[(10, 10), (10, 1_000)], &[(10, 100), (10, 5)]), None);
    }

    /// Returns results with these cases: section, name, configuration, thousands of instructions,
    /// operations.
    fn results(cases: &[(&str, &str, &str, u64, u64)]) -> Results {
        let exact = cases.iter().map(|(section, name, configuration, thousands, operations)| {
            (*section, *name, *configuration, thousands * 1_000, *operations)
        });
        exactly(&exact.collect::<Vec<_>>())
    }

    /// Returns results with these cases: section, name, configuration, instructions, operations.
    fn exactly(cases: &[(&str, &str, &str, u64, u64)]) -> Results {
        let mut results =
            Results::read(&crate::root().join("suites/users/published.json")).unwrap();
        results.cases.clear();
        for (section, name, configuration, instructions, operations) in cases {
            if results.configurations.iter().all(|known| known.key != *configuration) {
                let mut new = results.configurations[1].clone();
                new.key = (*configuration).to_owned();
                results.configurations.push(new);
            }
            results.cases.push(Case {
                section: (*section).to_owned(),
                name: (*name).to_owned(),
                configuration: (*configuration).to_owned(),
                rows: 1_000,
                payload: 100,
                state: State::Warm,
                outcome: Outcome::Measured(Measured {
                    instructions: *instructions,
                    operations: *operations,
                    capacity: None,
                    detail: None,
                    each: None,
                    phases: None,
                }),
            });
        }
        results
    }

    fn under(results: &Results, title: &str) -> Vec<String> {
        let found = advice(results, Style::default())
            .into_iter()
            .find(|(heading, _)| heading.contains(title));
        found.map(|(_, sentences)| sentences).unwrap_or_default()
    }

    #[test]
    fn configurations_cross_the_map() {
        let results = results(&[
            ("insert", "middle 1", "btree", 100, 1),
            ("insert", "middle 10", "btree", 1_000, 10),
            ("insert", "middle 1", "sqlite/memory", 190, 1),
            ("insert", "middle 10", "sqlite/memory", 910, 10),
            ("insert", "end 1", "btree", 100, 1),
            ("insert", "end 1", "sqlite/memory", 50, 1),
            ("insert", "end 50", "btree", 5_000, 50),
            ("insert", "end 50", "sqlite/memory", 4_000, 50),
            ("insert", "random 1", "btree", 100, 1),
            ("insert", "random 1", "sqlite/memory", 100, 1),
            ("insert", "random 2", "btree", 200, 2),
            ("insert", "random 2", "sqlite/memory", 300, 2),
        ]);
        assert_eq!(
            under(&results, "cross"),
            [
                "middle: SQLite MEMORY is cheaper than StableBTreeMap at 10 rows a message, the largest \
                 measured size, and more expensive at 1. By linear interpolation, they cost the same at \
                 about 6. Measured: 1 to 10 rows a message.",
                "end: SQLite MEMORY is cheaper than StableBTreeMap at all measured sizes, 1 to 50 rows a \
                 message.",
                "random: SQLite MEMORY is cheaper than StableBTreeMap at no measured size, 1 to 2 rows a \
                 message.",
            ]
        );
    }

    #[test]
    fn one_batch_size_is_no_conclusion() {
        for sqlite in [1, 99, 100, 9_999] {
            let results = results(&[
                ("insert", "middle 10", "btree", 100, 10),
                ("insert", "middle 10", "sqlite/memory", sqlite, 10),
                // The other size was measured with the map alone.
                ("insert", "middle 20", "btree", 200, 20),
            ]);
            assert!(under(&results, "cross").is_empty(), "{sqlite}");
        }
    }

    #[test]
    fn a_side_that_does_almost_nothing_is_no_ratio() {
        // The map keeps the number of its rows.
        let count = |map: u64| {
            exactly(&[
                ("work", "count, warm", "btree", map, 1),
                ("work", "count, warm", "sqlite/wal", 191_700_000, 1),
                ("work", "count, upgraded", "btree", 161_620, 1),
                ("transactions", "10 rows by 1, one message", "btree", 161_620, 10),
                ("transactions", "10 rows by 10, one message", "btree", map, 10),
                ("settings", "count, warm", "sqlite/persist", map, 1),
                ("settings", "count, warm", "sqlite/persist,cache_size=0", 191_700_000, 1),
            ])
        };
        for map in [294, FLOOR - 1] {
            let results = count(map);
            assert_eq!(
                under(&results, "cheapest"),
                [format!(
                    "count, warm: StableBTreeMap, {} instructions an operation.",
                    Grouped(map)
                )]
            );
            assert!(under(&results, "not to do").is_empty(), "{:?}", under(&results, "not to do"));
        }
        let results = count(FLOOR);
        let takes = "20 000 instructions an operation; SQLite WAL takes 9585×.";
        assert_eq!(under(&results, "cheapest"), [format!("count, warm: StableBTreeMap, {takes}")]);
        assert_eq!(under(&results, "not to do").len(), 3);
    }

    #[test]
    fn a_side_below_the_cost_of_the_counter_is_no_ratio() {
        let of = |instructions: u64, counter_overhead: u64| {
            let case = crate::results::sample::full().cases.swap_remove(0);
            let mut measured = case.measured().unwrap().clone();
            (measured.instructions, measured.operations) = (instructions, 1);
            measured.detail.as_mut().unwrap().counter_overhead = counter_overhead;
            measured
        };
        assert!(times(&of(90_000, 30_000), &of(30_000, 200)).is_some());
        assert!(times(&of(90_000, 30_001), &of(30_000, 200)).is_none());
        assert!(times(&of(30_000, 200), &of(90_000, 30_001)).is_none());
    }

    #[test]
    fn the_cheapest_of_each_kind_of_work_is_no_floor() {
        let results = results(&[
            ("work", "update 10 uniform, warm", "btree", 4_200, 10),
            ("work", "update 10 uniform, warm", "sqlite/memory", 1_000, 10),
            ("work", "update 10 uniform, warm", "sqlite/off", 1_000, 10),
            ("work", "update 10 uniform, warm", "array", 10, 10),
            // There is only one configuration.
            ("work", "count, warm", "btree", 5, 1),
        ]);
        assert_eq!(
            under(&results, "cheapest"),
            ["update 10 uniform, warm: SQLite MEMORY and 1 more (equal), 100 000 instructions an \
              operation; StableBTreeMap takes 4.20×."]
        );
    }

    #[test]
    fn warnings_begin_at_twice_the_cost() {
        let pair = |cold: u64| {
            results(&[
                ("work", "read 1 uniform, warm", "sqlite/memory", 100, 1),
                ("work", "read 1 uniform, upgraded", "sqlite/memory", cold, 1),
            ])
        };
        assert!(under(&pair(199), "not to do").is_empty());
        assert_eq!(
            under(&pair(200), "not to do"),
            [
                "The first work after an upgrade costs many times what it costs warm: read 1 uniform \
              2.0× (SQLite MEMORY)."
            ]
        );
    }

    #[test]
    fn small_transactions_and_expensive_settings_are_reported() {
        let results = results(&[
            ("transactions", "10 rows by 1, one message", "sqlite/delete", 900, 10),
            ("transactions", "10 rows by 10, one message", "sqlite/delete", 100, 10),
            ("transactions", "10 rows by 1, one message", "btree", 100, 10),
            ("transactions", "10 rows by 10, one message", "btree", 100, 10),
            ("settings", "scan, warm", "sqlite/persist", 100, 10),
            ("settings", "scan, warm", "sqlite/persist,cache_size=0", 350, 10),
        ]);
        assert_eq!(
            under(&results, "not to do"),
            [
                "10 rows by 1, one message, instead of 10 rows by 10, one message, costs many times \
                 as much: SQLite DELETE 9.0×.",
                "SQLite PERSIST cache_size=0 costs many times what SQLite PERSIST costs: scan, warm \
                 3.50×.",
            ]
        );
    }
}
