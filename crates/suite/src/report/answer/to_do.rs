//! Sentences on what to do, computed from the figures. Each names a configuration, what it saves, and
//! the cases for which that was measured.

use crate::engines::{heading, is_floor};
use crate::report::Presentation;
use crate::report::advice::times;
use crate::report::grid::{Cell, Grid};
use crate::report::number::{Fixed, Grouped, Ratio, Short};
use crate::results::{Case, Measured, Results};

/// The ratio to the default's cost up to which a setting is advised.
const LESS: f64 = 0.95;
/// The setting of SQLite that cannot undo a transaction.
const WITHOUT_JOURNAL: &str = "sqlite/off";
/// The most configurations that are recommended.
const RECOMMENDED: usize = 3;
/// The share of instructions from which pages are mentioned.
const MANY: f64 = 0.3;

/// Returns the sentences for any suite, the most important ones first.
pub fn sentences(suite: &dyn Presentation, results: &Results) -> Vec<String> {
    let mut found = winners(results);
    if suite.compares_engines() {
        found.extend(cache_sizes(results));
    }
    found.extend(shares(results));
    found
}

/// The configuration to take for a case.
#[derive(Debug)]
pub struct Winner<'r> {
    pub key: &'r str,
    pub case: &'r Case,
    pub measured: &'r Measured,
    /// The cheapest of the others.
    pub next: Option<(&'r str, &'r Measured)>,
}

/// Returns the configuration to take for a case: the cheapest, except for floors and for SQLite without a
/// journal.
pub fn winner<'r>(results: &'r Results, section: &str, name: &str) -> Option<Winner<'r>> {
    let measured = |case: &'r Case| {
        let measured = case.measured().filter(|measured| measured.capacity.is_none())?;
        let choice = !is_floor(&case.configuration) && !is_without_journal(&case.configuration);
        choice.then_some((case, measured))
    };
    let cases = results.section(section).filter(|case| case.name == name);
    let all: Vec<(&Case, &Measured)> = cases.filter_map(measured).collect();
    let cost = |of: &(&Case, &Measured)| of.1.each_operation();
    let (case, best) = *all.iter().min_by_key(|of| cost(of))?;
    let others = all.iter().filter(|(other, _)| other.configuration != case.configuration);
    let next =
        others.min_by_key(|of| cost(of)).map(|(case, of)| (case.configuration.as_str(), *of));
    Some(Winner { key: &case.configuration, case, measured: best, next })
}

/// Returns the configuration to take for each case.
fn every_winner(results: &Results) -> Vec<Winner<'_>> {
    let mut cases: Vec<(&str, &str)> = Vec::new();
    for case in &results.cases {
        let of = (case.section.as_str(), case.name.as_str());
        if !cases.contains(&of) {
            cases.push(of);
        }
    }
    cases.iter().filter_map(|(section, name)| winner(results, section, name)).collect()
}

/// `true` if a configuration is SQLite without a journal, which cannot undo a transaction.
pub fn is_without_journal(key: &str) -> bool {
    key.split(',').next() == Some(WITHOUT_JOURNAL)
}

/// Returns sentences on the configurations that are the cheapest in most cases.
fn winners(results: &Results) -> Vec<String> {
    let winners = every_winner(results).into_iter();
    let all: Vec<Winner<'_>> = winners.filter(|winner| winner.next.is_some()).collect();
    if let [Winner { key, case, measured, next: Some((next, other)) }] = all[..] {
        return vec![format!(
            "{}: take {}, {} instructions. The next, {}, takes {}.",
            case.name,
            heading(key),
            Short(measured.each_operation()),
            heading(next),
            Ratio(other.each_operation(), measured.each_operation())
        )];
    }
    let several = all.iter().any(|one| one.case.section != all[0].case.section);
    let mut by_key: Vec<(&str, Vec<&Winner<'_>>)> = Vec::new();
    for one in &all {
        match by_key.iter_mut().find(|(key, _)| *key == one.key) {
            Some((_, won)) => won.push(one),
            None => by_key.push((one.key, vec![one])),
        }
    }
    by_key.sort_by_key(|(_, won)| std::cmp::Reverse(won.len()));
    let sentence = |(key, won): &(&str, Vec<&Winner<'_>>)| {
        let name = |winner: &&Winner<'_>| match several {
            true => format!("{}: {}", winner.case.section, winner.case.name),
            false => winner.case.name.clone(),
        };
        let names: Vec<String> = won.iter().map(name).collect();
        let some = names[..names.len().min(3)].join("; ");
        let ratios = won.iter().filter_map(|winner| times(winner.next?.1, winner.measured));
        let ratios: Vec<f64> = ratios.map(|(ratio, _)| ratio).collect();
        let most = ratios.iter().copied().max_by(f64::total_cmp).filter(|most| *most > 1.0);
        let gain = match most.and_then(|most| range(&[most])) {
            Some(most) => format!("; the next one takes up to {most}"),
            None => String::new(),
        };
        format!(
            "{}: the cheapest for {} of {} kinds of work ({some}{}){gain}.",
            heading(key),
            Grouped(won.len() as u64),
            Grouped(all.len() as u64),
            if names.len() > 3 { "; …" } else { "" }
        )
    };
    by_key.iter().take(RECOMMENDED).map(sentence).collect()
}

/// Returns sentences on the configurations of SQLite that were measured with and without a `cache_size`.
pub fn cache_sizes(results: &Results) -> Vec<String> {
    let keys = || results.configurations.iter().map(|configuration| configuration.key.as_str());
    let pair = |small: &'_ str| -> Option<String> {
        let (own, setting) = small.rsplit_once(',')?;
        let setting = setting.starts_with("cache_size=").then_some(setting)?;
        let default = keys().find(|key| *key == own)?;
        let mut found: Vec<(f64, &Case)> = Vec::new();
        for case in results.cases.iter().filter(|case| case.configuration == small) {
            let other = results.case(&case.section, &case.name, default);
            let both = case.measured().zip(other.and_then(Case::measured));
            let ratio = both.and_then(|(here, there)| times(here, there));
            found.extend(ratio.map(|(ratio, _)| (ratio, case)));
        }
        let ratios: Vec<f64> = found.iter().map(|(ratio, _)| *ratio).collect();
        let (least, most) = found.iter().min_by(|one, other| one.0.total_cmp(&other.0))?;
        let costs = range(&ratios)?;
        let cases = match found.len() {
            1 => String::new(),
            cases => format!(" in {} cases, least in {}", Grouped(cases as u64), most.name),
        };
        (*least < LESS).then(|| {
            format!(
                "{}: set {setting}, which costs {costs} of the default's{cases}.",
                heading(default)
            )
        })
    };
    keys().filter_map(pair).collect()
}

/// Returns a sentence on the share of pages in the instructions of the configurations to take.
pub fn shares(results: &Results) -> Option<String> {
    let (mut all, mut heap, mut stable) = (0, 0, 0);
    for Winner { measured, .. } in every_winner(results) {
        let Some(pages) = measured.detail.as_ref().and_then(|detail| detail.pages) else {
            continue;
        };
        all += measured.instructions;
        heap += pages.heap;
        stable += pages.stable;
    }
    let share = |part: u64| part as f64 / all.max(1) as f64;
    (share(heap + stable) >= MANY).then(|| {
        format!(
            "Where it is cheapest, heap pages are {} % and stable pages {} % of the instructions: a \
             message pays for each page once.",
            Fixed(100.0 * share(heap), 1),
            Fixed(100.0 * share(stable), 1)
        )
    })
}

/// Returns sentences on the rows of a table that are the cheapest of its columns of numbers.
pub fn cheapest_rows(grid: &Grid) -> Vec<String> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for (column, heading) in grid.header.iter().enumerate() {
        let value = |row: &Vec<Cell>| match (row.first(), row.get(column)) {
            (Some(Cell::Text(label)), Some(Cell::Number { value, .. })) => {
                Some((*value, label.clone()))
            }
            _ => None,
        };
        let Some((_, label)) = grid.rows.iter().filter_map(value).min() else { continue };
        match found.iter_mut().find(|(known, _)| *known == label) {
            Some((_, columns)) => columns.push(heading.clone()),
            None => found.push((label, vec![heading.clone()])),
        }
    }
    let sentence = |(label, columns): (String, Vec<String>)| {
        format!("{label}: the cheapest for {}.", columns.join(", "))
    };
    found.into_iter().map(sentence).collect()
}

/// Returns a sentence on the growth of a configuration's cost from the first to the last case of a
/// section.
pub fn growth(results: &Results, section: &str, key: &str) -> Option<String> {
    let names = results.names(section);
    let of = |name: &&str| results.case(section, name, key)?.measured();
    let (first, last) = (names.first()?, names.last()?);
    let (_, ratio) = times(of(last)?, of(first)?)?;
    Some(format!(
        "{section}: {last} takes {ratio} the instructions of {first}, {}.",
        Short(of(first)?.each_operation())
    ))
}

/// Returns the least and the largest ratio: `1.10× to 2.30×`.
fn range(ratios: &[f64]) -> Option<String> {
    let least = ratios.iter().copied().min_by(f64::total_cmp)?;
    let most = ratios.iter().copied().max_by(f64::total_cmp)?;
    let ratio = |ratio: f64| Ratio((ratio * 1e6).round() as u64, 1_000_000).to_string();
    Some(match ratio(least) == ratio(most) {
        true => ratio(least),
        false => format!("{} to {}", ratio(least), ratio(most)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::PLAIN;
    use crate::results::sample::{case, of};

    #[test]
    fn the_cheapest_that_can_undo_a_transaction_is_named() {
        let cases =
            [("sqlite/wal", 104_000), ("btree", 100_000), ("sqlite/off", 90_000), ("array", 1_000)];
        let cases = cases.map(|(key, cost)| case("work", "read", key, cost)).to_vec();
        let found = of(cases);
        let winner = winner(&found, "work", "read").unwrap();
        assert_eq!((winner.key, winner.next.unwrap().0), ("btree", "sqlite/wal"));
    }

    #[test]
    fn sentences_name_configuration_gain_and_range() {
        let cases = [
            case("work", "read", "btree", 300_000),
            case("work", "read", "sqlite/persist", 200_000),
            case("work", "read", "sqlite/persist,cache_size=1000", 100_000),
            case("work", "insert", "btree", 100_000),
            case("work", "insert", "sqlite/persist", 400_000),
            case("work", "insert", "sqlite/persist,cache_size=1000", 150_000),
        ];
        insta::assert_snapshot!(sentences(&PLAIN, &of(cases.to_vec())).join("\n"));
    }
}
