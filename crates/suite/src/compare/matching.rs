//! Matching the cases of two runs, and checking that they ask the same question.

use anyhow::{Result, bail};
use stablebench_replica::Rules;

use crate::report::number::Grouped;
use crate::results::{CanisterInfo, Case, FixtureInfo, Results, State};

/// The compared configurations of the base and of the new run.
pub type Configurations<'a> = Option<(&'a str, &'a str)>;

/// Items of the base with their counterparts in the new run, and the items of the new run alone.
pub struct Matched<'a, T> {
    pub pairs: Vec<(&'a T, Option<&'a T>)>,
    pub only_new: Vec<&'a T>,
}

/// An item that can be found in the other run.
pub trait Matchable {
    fn configuration(&self) -> &str;
    /// Returns `true` if both are equal except for the configuration.
    fn same(&self, other: &Self) -> bool;
}

impl Matchable for Case {
    fn configuration(&self) -> &str {
        &self.configuration
    }

    fn same(&self, other: &Self) -> bool {
        self.section == other.section && self.name == other.name
    }
}

impl Matchable for FixtureInfo {
    fn configuration(&self) -> &str {
        &self.configuration
    }

    fn same(&self, other: &Self) -> bool {
        (&self.name, self.rows, self.payload) == (&other.name, other.rows, other.payload)
    }
}

/// Matches by name and configuration, or by name in two configurations that are compared.
pub fn matched<'a, T: Matchable>(
    base: &'a [T],
    new: &'a [T],
    configurations: Configurations<'_>,
) -> Matched<'a, T> {
    let of = |all: &'a [T], configuration: Option<&str>| -> Vec<&'a T> {
        all.iter()
            .filter(|one| {
                configuration.is_none_or(|configuration| one.configuration() == configuration)
            })
            .collect()
    };
    let base = of(base, configurations.map(|configurations| configurations.0));
    let new = of(new, configurations.map(|configurations| configurations.1));
    let belong = |one: &T, other: &T| {
        one.same(other)
            && (configurations.is_some() || one.configuration() == other.configuration())
    };
    let pairs: Vec<(&T, Option<&T>)> = base
        .iter()
        .map(|one| (*one, new.iter().find(|other| belong(one, other)).copied()))
        .collect();
    let only_new =
        new.into_iter().filter(|other| !base.iter().any(|one| belong(one, other))).collect();
    Matched { pairs, only_new }
}

/// Checks that there is something to compare.
///
/// # Errors
///
/// If the runs have no case in common.
pub fn common(cases: &Matched<'_, Case>) -> Result<()> {
    if cases.pairs.iter().any(|(_, new)| new.is_some()) {
        return Ok(());
    }
    let has = |cases: &[&Case]| match cases {
        [] => "no case".to_owned(),
        [only] => format!("only {}", only.title()),
        [first, ..] => {
            format!("{} cases, such as {}", Grouped(cases.len() as u64), first.title())
        }
    };
    let of_base: Vec<&Case> = cases.pairs.iter().map(|(base, _)| *base).collect();
    bail!(
        "there is nothing to compare: no case is in both runs; the base has {}, the new run {}; \
         compare runs of the same command",
        has(&of_base),
        has(&cases.only_new)
    )
}

/// Checks that matched cases ask the same question.
///
/// # Errors
///
/// If one does not.
pub fn same_questions(cases: &Matched<'_, Case>) -> Result<()> {
    for (base, new) in &cases.pairs {
        let Some(new) = new else { continue };
        let (one, other) = (question(base), question(new));
        if one != other {
            bail!(
                "these runs cannot be compared: {} is {one} in one, {other} in the other",
                base.title()
            );
        }
        let (Some(base_found), Some(new_found)) = (base.measured(), new.measured()) else {
            continue;
        };
        let limits =
            [base_found, new_found].map(|found| found.capacity.as_ref().map(|found| found.limit));
        let operations = [base_found, new_found].map(|found| found.operations);
        let differs = match limits {
            [None, None] => (operations[0] != operations[1]).then_some("operations"),
            [one, other] => (one != other).then_some("limits"),
        };
        if let Some(what) = differs {
            bail!("these runs cannot be compared: {} has other {what}", base.title());
        }
    }
    Ok(())
}

fn question(case: &Case) -> String {
    format!(
        "about {} rows of {} bytes ({})",
        Grouped(case.rows),
        Grouped(u64::from(case.payload)),
        case.state
    )
}

/// Checks that the runs can be compared.
///
/// # Errors
///
/// If they belong to different suites, or lack one of the configurations.
pub fn same_suite(base: &Results, new: &Results, configurations: Configurations<'_>) -> Result<()> {
    if base.suite != new.suite {
        bail!("these runs cannot be compared: their suites are {} and {}", base.suite, new.suite);
    }
    if base.cases.is_empty() && base.fixtures.is_empty() {
        bail!("there is nothing to compare: the base contains no case");
    }
    let Some((one, other)) = configurations else { return Ok(()) };
    for (which, results, key) in [("base", base, one), ("new", new, other)] {
        let known: Vec<&str> =
            results.configurations.iter().map(|configuration| &*configuration.key).collect();
        if !known.contains(&key) {
            bail!("the {which} results have no configuration {key}; they have {}", known.join(" "));
        }
    }
    Ok(())
}

/// Returns notes on differences of the runs that a reader must know.
pub fn notes(base: &Results, new: &Results, cases: &Matched<'_, Case>) -> Vec<String> {
    let mut notes = Vec::new();
    let published = |results: &Results| results.replica.kind == "published";
    for (which, results) in [("base", base), ("new", new)] {
        if published(results) {
            notes.push(format!(
                "the {which} figures are published ({}): instructions alone are compared",
                results.stablebench
            ));
        }
    }
    if notes.is_empty() {
        let other = |of: &CanisterInfo| new.module(&of.name).is_some_and(|hash| hash != of.sha256);
        if base.canisters.iter().any(other) {
            notes.push("the canisters' modules are not the same".to_owned());
        }
        if base.replica.subnet != new.replica.subnet {
            notes.push(format!(
                "cycles are not compared: a subnet of kind {} and one of kind {}",
                base.replica.subnet, new.replica.subnet
            ));
        }
    }
    let (one, other) = (&base.replica.rules, &new.replica.rules);
    if one != other {
        let parsed = (one.parse::<Rules>(), other.parse::<Rules>());
        let same = matches!(parsed, (Ok(one), Ok(other)) if one.counts_as(other));
        notes.push(match same {
            true => format!(
                "the rule sets are {one} and {other}: the same work counts the same instructions, and \
                 may cost other cycles"
            ),
            false => format!(
                "the rule sets are {one} and {other}: the same work may count other instructions and \
                 cost other cycles"
            ),
        });
    }
    let random = |(base, new): &(&Case, Option<&Case>)| new.is_some() && may_be_random(base);
    if base.seed != new.seed && cases.pairs.iter().any(random) {
        notes.push(format!(
            "the seeds are {} and {}: what was chosen at random is not the same work",
            base.seed, new.seed
        ));
    }
    let others = base.inputs.iter().filter(|input| !new.inputs.contains(input));
    let others: Vec<&str> = others.map(|input| input.name.as_str()).collect();
    if !others.is_empty() {
        notes.push(format!("the files are not the same: {}", others.join(", ")));
    }
    if let Some(first) = cases.only_new.first() {
        let more = match cases.only_new.len() - 1 {
            0 => String::new(),
            more => format!(" and {} more", Grouped(more as u64)),
        };
        notes.push(format!("only the new run has {}{more}", first.title()));
    }
    notes
}

/// Returns `false` for insertions in the middle or at the end of a fixture, which alone do not
/// depend on the seed.
fn may_be_random(case: &Case) -> bool {
    let ordered = ["middle ", "end "].iter().any(|place| case.name.starts_with(place));
    let churned = matches!(case.state, State::Churned | State::ChurnedAndVacuumed);
    case.section != "insert" || !ordered || churned
}
