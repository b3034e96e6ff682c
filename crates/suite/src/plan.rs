//! The plan of a run: fixtures, each a canister that is populated and then measured step by step.
//!
//! ```text
//!   Plan ─┬─ configurations, rows    of the tables, in their order
//!         └─ Fixture          a configuration in a canister of its own
//!              ├─ step   populates:  no row of a table
//!              ├─ step   kept:       its changes remain for the steps after it
//!              └─ step   forked:     its changes are dropped
//! ```
//!
//! A [`Shard`] is a part of a run: every Nth fixture, from the Ith on. `stablebench merge` joins the
//! parts.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use stablebench_protocol::Engine;
use stablebench_workload::Model;

use crate::job::Job;
use crate::report::number::Rows;
use crate::results::{Case, ConfigurationInfo, FixtureInfo, Input, State};

/// The work of one run of a suite.
#[derive(Debug)]
pub struct Plan {
    pub suite: &'static str,
    /// The published figures that results show beside ours.
    pub published: Option<String>,
    /// True if only the rows around those written are read back after a case.
    pub check_around: bool,
    pub ceilings: Option<Ceilings>,
    /// Remarks for the user, before the run.
    pub notes: Vec<String>,
    /// The files that it depends on.
    pub inputs: Vec<Input>,
    /// `true` if all configurations must find and leave the same rows.
    pub agrees: bool,
    /// In the order of the tables.
    pub configurations: Vec<ConfigurationInfo>,
    /// Rows in the order of the tables: section and name.
    pub rows: Vec<(String, String)>,
    pub fixtures: Vec<Fixture>,
}

/// Places of cases by section, name and configuration.
#[derive(Debug)]
pub struct Order(BTreeMap<[String; 3], usize>);

/// The largest ratios that configurations may have against the first one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceilings {
    pub max_ratio: Option<f64>,
    pub max_average: Option<f64>,
}

/// A canister and what happens in it, in this order.
#[derive(Clone, Debug)]
pub struct Fixture {
    pub configuration: ConfigurationInfo,
    /// Distinguishes fixtures of one configuration; may be empty.
    pub name: String,
    /// The engine of its rows.
    pub engine: Engine,
    /// Rows that its cases work on.
    pub rows: u64,
    /// Bytes of each row's value.
    pub payload: u32,
    /// Its tables before the first step.
    pub model: fn() -> Box<dyn Model>,
    pub steps: Vec<Step>,
    /// The number of steps that populate it. Results describe the fixture after those.
    pub populated: usize,
}

/// The properties that identify a fixture in results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixtureKey {
    pub configuration: String,
    pub name: String,
    pub rows: u64,
    pub payload: u32,
}

/// A job, executed in one message or in several.
#[derive(Clone, Debug)]
pub struct Step {
    pub role: Role,
    pub job: Job,
    /// Operations of the job.
    pub operations: u64,
    pub messages: Messages,
    pub before: Before,
    pub measures: Measures,
    pub effect: Effect,
    pub details: Details,
    /// Section and name of further rows of tables that its work yields.
    pub more: Vec<(String, String)>,
}

/// The part of a step in the results.
#[derive(Clone, Debug, PartialEq)]
pub enum Role {
    /// No row of a table.
    Prepare,
    /// No row either, but its messages are those of a measurement: the messages that a canister has
    /// received decide where data lies on its heap, and so which pages later messages touch.
    AsMeasured,
    /// A row of a table.
    Measure {
        section: String,
        /// Unique in the section.
        name: String,
        /// The state of the fixture, for results.
        state: State,
    },
}

/// The messages of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Messages {
    /// Exactly this number of operations each; the step fails if they do not fit.
    Exactly(u64),
    /// This number of operations each, and half of it where they do not fit.
    UpTo(u64),
    /// As many operations as cost well less than a message may, judged by those before.
    ByCost,
}

/// The message before the work.
#[derive(Clone, Debug)]
pub enum Before {
    Nothing,
    /// An upgrade to the same module.
    Upgrade,
    /// A job that prepares the canister, with this number of operations.
    Job(Job, u64),
}

/// The work that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measures {
    /// The job, in messages of this kind.
    Job(Sent),
    /// The most operations of the job that fit into one message.
    Capacity(Search),
    /// An upgrade, which must keep the tables of the job.
    Upgrade,
    /// The installation of the module in another canister.
    Installation,
    /// The compilation of the module, estimated.
    Compilation,
}

/// The kind of a measured message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    Update,
    Query,
    CompositeQuery,
}

/// The message whose capacity is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    Update,
    Query,
    /// An upgrade: the operations are rows that the canister has.
    Upgrade,
}

/// The effect of a step on the steps after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Its changes remain.
    Kept,
    /// Its changes remain, and it needs nothing of the steps before it.
    KeptAfresh,
    /// It is executed in a fork, which is dropped.
    Dropped,
}

/// Additional results of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The size of the tables afterwards.
    pub size: bool,
    /// The phases of its instructions, measured in a fork of its own.
    pub phases: bool,
    /// The cost of each operation, measured in a fork of its own.
    pub each: bool,
}

impl Step {
    /// A step that becomes no row, in one message.
    pub fn new(job: Job, operations: u64) -> Self {
        Self {
            role: Role::Prepare,
            job,
            operations,
            messages: Messages::UpTo(operations.max(1)),
            before: Before::Nothing,
            measures: Measures::Job(Sent::Update),
            effect: Effect::Kept,
            details: Details::default(),
            more: Vec::new(),
        }
    }

    /// A row of a table, measured in a fork.
    pub fn case(section: &str, name: impl Into<String>, job: Job, operations: u64) -> Self {
        Self { effect: Effect::Dropped, ..Self::new(job, operations) }.named(section, name)
    }

    /// The same step as a row of a table.
    #[must_use]
    pub fn named(self, section: &str, name: impl Into<String>) -> Self {
        let (section, name) = (section.to_owned(), name.into());
        Self { role: Role::Measure { section, name, state: State::Warm }, ..self }
    }

    /// Section and name of all rows that it becomes.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &str)> {
        let more = self.more.iter().map(|(section, name)| (section.as_str(), name.as_str()));
        self.row().into_iter().chain(more)
    }

    /// Section and name of its row, if it becomes one.
    pub fn row(&self) -> Option<(&str, &str)> {
        match &self.role {
            Role::Measure { section, name, .. } => Some((section, name)),
            Role::Prepare | Role::AsMeasured => None,
        }
    }
}

impl Fixture {
    /// The name in progress, notes and lists: `btree, 1 000 rows of 100 bytes`, or `sqlite-vfs, text
    /// keys, 200 rows`.
    pub fn label(&self) -> String {
        let mut label = self.configuration.key.clone();
        if !self.name.is_empty() {
            label += &format!(", {}", self.name);
        }
        match (self.rows, self.payload) {
            // Their number is not known.
            (0, 0) => label,
            (rows, payload) => label + &format!(", {}", Rows { rows, payload }),
        }
    }

    /// The properties that identify it in results.
    pub fn key(&self) -> FixtureKey {
        FixtureKey {
            configuration: self.configuration.key.clone(),
            name: self.name.clone(),
            rows: self.rows,
            payload: self.payload,
        }
    }

    /// Leaves out the steps that become rows, by their places, and all steps after the last one that is
    /// kept. Those that others depend on are executed, but not measured.
    pub fn retain(&mut self, keep: impl Fn(usize, &Step) -> bool) {
        let kept = |(at, step): (usize, &Step)| step.row().is_some() && keep(at, step);
        let Some(last) = self.steps.iter().enumerate().rposition(kept) else {
            self.steps.clear();
            self.populated = 0;
            return;
        };
        self.steps.truncate(last + 1);
        let populated = self.populated;
        let mut left = Vec::new();
        for (at, mut step) in std::mem::take(&mut self.steps).into_iter().enumerate() {
            if step.row().is_none() || keep(at, &step) {
                left.push(step);
            } else if step.effect != Effect::Dropped {
                step.role = Role::AsMeasured;
                step.more.clear();
                step.details = Details::default();
                left.push(step);
            }
            if at + 1 == populated {
                self.populated = left.len();
            }
        }
        // The cache does not contain fixtures whose populating is measured.
        self.populated = self.populated.min(left.len());
        self.steps = left;
    }

    /// Section and name of its cases, in their order.
    pub fn cases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.steps.iter().flat_map(Step::rows)
    }
}

impl FixtureKey {
    /// True if it is the key of that fixture.
    pub fn is_of(&self, fixture: &FixtureInfo) -> bool {
        (&self.configuration, &self.name, self.rows, self.payload)
            == (&fixture.configuration, &fixture.name, fixture.rows, fixture.payload)
    }
}

impl Plan {
    /// A plan whose configurations and rows are in the order in which the fixtures have them.
    pub fn new(suite: &'static str, fixtures: Vec<Fixture>) -> Self {
        Self::in_order(suite, Vec::new(), fixtures)
    }

    /// A plan whose tables begin with these rows.
    pub fn in_order(
        suite: &'static str,
        rows: Vec<(String, String)>,
        fixtures: Vec<Fixture>,
    ) -> Self {
        let mut plan = Self {
            suite,
            published: None,
            check_around: false,
            ceilings: None,
            notes: Vec::new(),
            inputs: Vec::new(),
            agrees: false,
            configurations: Vec::new(),
            rows,
            fixtures,
        };
        for fixture in &plan.fixtures {
            if plan.configurations.iter().all(|known| known.key != fixture.configuration.key) {
                plan.configurations.push(fixture.configuration.clone());
            }
            for (section, name) in fixture.cases() {
                let row = (section.to_owned(), name.to_owned());
                if !plan.rows.contains(&row) {
                    plan.rows.push(row);
                }
            }
        }
        plan
    }

    /// Leaves out cases, by section, name and configuration, and what only they need.
    pub fn retain(&mut self, keep: impl Fn(&str, &str, &str) -> bool) {
        for fixture in &mut self.fixtures {
            let key = fixture.configuration.key.clone();
            fixture.retain(|_, step| step.rows().any(|(section, name)| keep(section, name, &key)));
        }
        self.fixtures.retain(|fixture| fixture.cases().next().is_some());
        let left = |fixture: &Fixture, row: &(String, String)| {
            fixture.cases().any(|(section, name)| (section, name) == (&row.0, &row.1))
        };
        self.rows.retain(|row| self.fixtures.iter().any(|fixture| left(fixture, row)));
        let keys = |fixture: &Fixture| fixture.configuration.key.clone();
        let keys: Vec<String> = self.fixtures.iter().map(keys).collect();
        self.configurations.retain(|configuration| keys.contains(&configuration.key));
    }

    /// The place of each case in results: row by row, in the order of the configurations.
    pub fn order(&self) -> Order {
        let mut places = BTreeMap::new();
        for (section, name) in &self.rows {
            for configuration in &self.configurations {
                let place = places.len();
                let key = configuration.key.clone();
                places.insert([section.clone(), name.clone(), key], place);
            }
        }
        Order(places)
    }
}

impl Order {
    /// The place of a case. Those that are not in the plan follow all others.
    pub fn place(&self, case: &Case) -> usize {
        let identity = [&case.section, &case.name, &case.configuration].map(Clone::clone);
        self.0.get(&identity).copied().unwrap_or(usize::MAX)
    }
}

/// `I/N`: the part with the number I, from 1, of N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    pub number: usize,
    pub of: usize,
}

/// The maximum number of shards.
const MOST: usize = 1_000;

impl Shard {
    /// The fixtures of this part of a plan.
    pub fn fixtures(self, plan: &Plan) -> impl Iterator<Item = &Fixture> {
        plan.fixtures.iter().skip(self.number - 1).step_by(self.of)
    }

    /// Returns the plan of this part: its fixtures and their configurations.
    pub fn of(self, mut plan: Plan) -> Plan {
        let all = plan.fixtures.len();
        plan.fixtures = self.fixtures(&plan).cloned().collect();
        let Plan { configurations, fixtures, .. } = &mut plan;
        configurations
            .retain(|one| fixtures.iter().any(|fixture| fixture.configuration.key == one.key));
        if plan.fixtures.is_empty() {
            plan.notes.push(format!(
                "shard {self} has nothing to measure: the run has {all} fixtures, so {all} shards \
                 are enough"
            ));
        }
        plan
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(number, of)| {
            let (number, of) = (number.parse().ok()?, of.parse().ok()?);
            ((1..=of).contains(&number) && of <= MOST).then_some(Self { number, of })
        });
        parsed.ok_or_else(|| {
            format!("a shard is I/N, with I from 1 to N and N up to {MOST}, such as 2/3")
        })
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_written_as_they_are_read() {
        for text in ["1/1", "2/3", "1000/1000"] {
            assert_eq!(text.parse::<Shard>().unwrap().to_string(), text);
        }
        for text in ["", "1", "0/2", "3/2", "1/1001", "1/0", "-1/2", "1/2/3", "a/b"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
