//! The plan of a run: fixtures, each a canister that is populated and then measured step by step.
//!
//! ```text
//!   Plan ─┬─ columns, rows    the tables of the results, in their order
//!         └─ Fixture          a configuration in a canister of its own
//!              ├─ step   populates:  no row of a table
//!              ├─ step   kept:       its changes remain for the steps after it
//!              └─ step   forked:     its changes are dropped
//! ```

use anyhow::Result;
use stablebench_protocol::{Digest, Job as SuiteJob, Operation, Part as SuitePart};
use stablebench_workload::Tables;

use super::rows::{self, Rows, Table, Work};
use crate::report::number::Grouped;
use crate::results::{Column, State, Store};

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
    /// Columns in the order of the tables.
    pub columns: Vec<Column>,
    /// Rows in the order of the tables: section and name.
    pub rows: Vec<(String, String)>,
    pub fixtures: Vec<Fixture>,
}

/// The largest ratios that columns may have against the first one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ceilings {
    pub max_ratio: Option<f64>,
    pub max_average: Option<f64>,
}

/// A canister and what happens in it, in this order.
#[derive(Clone, Debug)]
pub struct Fixture {
    pub column: Column,
    /// Distinguishes fixtures of one column; may be empty.
    pub name: String,
    /// Rows that its cases work on.
    pub rows: u64,
    /// Bytes of each row's value.
    pub payload: u32,
    /// Its tables before the first step.
    pub model: fn(&Fixture) -> Box<dyn Model>,
    pub steps: Vec<Step>,
    /// The number of steps that populate it. Results describe the fixture after those.
    pub populated: usize,
}

/// The properties that identify a fixture in results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixtureKey {
    pub column: String,
    pub name: String,
    pub rows: u64,
    pub payload: u32,
}

/// A job, executed in one message or in several.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Section and name of the row that it becomes; `None` if it only prepares.
    pub case: Option<(String, String)>,
    /// The state of the fixture, for results.
    pub state: State,
    pub job: Job,
    /// A job that prepares the canister in a message before, with as many operations.
    pub before: Option<Job>,
    /// Operations of the job.
    pub operations: u64,
    pub messages: Messages,
    /// True if its messages are those of a measurement although it becomes no row: the messages
    /// that a canister has received decide where data lies on its heap, and so which pages later
    /// messages touch.
    pub as_measured: bool,
    /// True if it needs nothing of the steps before it.
    pub independent: bool,
    /// True if it is executed in a fork, which is dropped.
    pub forked: bool,
    /// True if the canister is upgraded before.
    pub upgraded: bool,
    /// True if results show the size of the tables afterwards.
    pub inspected: bool,
    /// True if results show the phases of its instructions, measured in a fork of its own.
    pub phases: bool,
    /// True if each operation is measured as well, in a fork of its own.
    pub each: bool,
    /// Searches for the most operations that fit into one message, instead of executing them.
    pub search: Option<Search>,
}

/// The messages of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Messages {
    /// Exactly so many operations each; the step fails if those do not fit.
    Exactly(u64),
    /// So many operations each, and half as many where those do not fit.
    UpTo(u64),
    /// As many operations as cost well less than a message may, judged by those before.
    ByCost,
}

/// The message whose capacity is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    Update,
    Query,
}

/// Work of a canister.
#[derive(Clone, Debug, PartialEq)]
pub enum Job {
    /// Work on the rows of the users suite.
    Rows { table: Table, work: Work },
    /// Random deletes or inserts of the users suite.
    Churn { rows: u64, deletes: bool },
    /// Closes the connection of SQLite.
    Close,
    /// `VACUUM`.
    Vacuum,
    /// A job of another suite.
    Suite(SuiteJob),
}

/// The part of a job that one message executes.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    pub job: &'a Job,
    pub seed: u64,
    /// The first operation.
    pub from: u64,
    pub count: u64,
    /// True if each operation is measured as well.
    pub each: bool,
}

/// The expected outcome of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Rows written, found or removed.
    pub rows: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// The digest of what is read, if the canister reports it.
    pub results: Option<Digest>,
    pub writes: bool,
}

/// The tables of a fixture, in memory, which no engine has touched.
pub trait Model: Send {
    /// Executes a part of a job.
    ///
    /// # Errors
    ///
    /// If the rows are not those that the work needs.
    fn execute(&mut self, part: &Part<'_>) -> Result<Expected>;

    /// The digest of all rows.
    fn content(&self) -> Digest;

    /// The rows around those that the part named, in the order of an engine, if they are fewer
    /// than all.
    fn around(&self, _: &Column, _: &Part<'_>) -> Result<Option<rows::Neighbours>> {
        Ok(None)
    }

    /// The same tables once more.
    fn fork(&self) -> Box<dyn Model>;
}

impl Job {
    /// The operation on rows, if it is a job of the users suite.
    ///
    /// # Errors
    ///
    /// If the rows do not fit into the table.
    pub fn operation(&self, seed: u64) -> Result<Option<Operation>> {
        Ok(match self {
            Self::Rows { table, work } => Some(work.operation(*table, seed)?),
            Self::Churn { rows, deletes } => {
                let churn = rows::Churn::of(*rows, seed);
                Some(match deletes {
                    true => Operation::Delete(stablebench_protocol::Selection::List(churn.deleted)),
                    false => {
                        Operation::Insert(stablebench_protocol::Selection::List(churn.inserted))
                    }
                })
            }
            Self::Close | Self::Vacuum | Self::Suite(_) => None,
        })
    }
}

impl Part<'_> {
    /// The operation on the rows of this part, if it is of the users suite.
    ///
    /// # Errors
    ///
    /// If the rows do not fit into the table.
    pub fn operation(&self) -> Result<Option<Operation>> {
        let Some(whole) = self.job.operation(self.seed)? else { return Ok(None) };
        let operations = match self.job {
            Job::Rows { work, .. } => work.operations,
            _ => rows::selection(&whole).map_or(1, rows::count),
        };
        Ok(Some(match (self.from, self.count) {
            (0, count) if count >= operations => whole,
            (from, count) => rows::part(&whole, from, count),
        }))
    }

    /// The part as other suites' jobs are sent, if it is one of those.
    pub fn of_suite(&self) -> Option<SuitePart> {
        let Job::Suite(job) = self.job else { return None };
        let Self { seed, from, count, each, .. } = *self;
        Some(SuitePart { job: job.clone(), seed, from, count, each })
    }
}

impl Model for Rows {
    fn execute(&mut self, part: &Part<'_>) -> Result<Expected> {
        let nothing = Expected { rows: 0, bytes: 0, results: None, writes: false };
        let Some(operation) = part.operation()? else { return Ok(nothing) };
        let (rows, bytes) = Self::execute(self, &operation)?;
        Ok(Expected { rows, bytes, writes: rows::writes(&operation), ..nothing })
    }

    fn content(&self) -> Digest {
        self.digest()
    }

    fn around(&self, column: &Column, part: &Part<'_>) -> Result<Option<rows::Neighbours>> {
        let around =
            part.operation()?.and_then(|operation| Self::around(self, column.engine, &operation));
        Ok(around.filter(|around| around.digest.rows < self.digest().rows))
    }

    fn fork(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }
}

/// The model of a suite with tables of its own.
pub struct OfSuite(pub Box<dyn Tables>);

impl Model for OfSuite {
    fn execute(&mut self, part: &Part<'_>) -> Result<Expected> {
        let nothing = Expected { rows: 0, bytes: 0, results: None, writes: false };
        let Some(part) = part.of_suite() else { return Ok(nothing) };
        let found = self.0.perform(&part);
        let (results, writes) = (found.results, found.results.is_none());
        Ok(Expected { rows: found.rows, bytes: found.bytes, results, writes })
    }

    fn content(&self) -> Digest {
        self.0.content()
    }

    fn fork(&self) -> Box<dyn Model> {
        Box::new(Self(self.0.fork()))
    }
}

impl Step {
    /// A step that becomes no row, in one message.
    pub fn new(job: Job, operations: u64) -> Self {
        Self {
            case: None,
            state: State::Warm,
            job,
            before: None,
            operations,
            messages: Messages::UpTo(operations.max(1)),
            as_measured: false,
            independent: false,
            forked: false,
            upgraded: false,
            inspected: false,
            phases: false,
            each: false,
            search: None,
        }
    }

    /// A row of a table, measured in a fork.
    pub fn case(section: &str, name: impl Into<String>, job: Job, operations: u64) -> Self {
        let case = Some((section.to_owned(), name.into()));
        Self { case, forked: true, ..Self::new(job, operations) }
    }
}

impl Fixture {
    /// The name in progress, notes and lists: `btree, 1 000 rows of 100 bytes`, or `sqlite-vfs, text
    /// keys, 200 rows`.
    pub fn label(&self) -> String {
        let mut label = self.column.key.clone();
        if !self.name.is_empty() {
            label += &format!(", {}", self.name);
        }
        label += &format!(", {} rows", Grouped(self.rows));
        if self.payload > 0 {
            label += &format!(" of {} bytes", Grouped(self.payload.into()));
        }
        label
    }

    /// The properties that identify it in results.
    pub fn key(&self) -> FixtureKey {
        FixtureKey {
            column: self.column.key.clone(),
            name: self.name.clone(),
            rows: self.rows,
            payload: self.payload,
        }
    }

    /// Section and name of its cases, in their order.
    pub fn cases(&self) -> impl Iterator<Item = &(String, String)> {
        self.steps.iter().filter_map(|step| step.case.as_ref())
    }
}

impl FixtureKey {
    /// True if it is the key of that fixture.
    pub fn is_of(&self, store: &Store) -> bool {
        (&self.column, &self.name, self.rows, self.payload)
            == (&store.column, &store.name, store.rows, store.payload)
    }
}

impl Plan {
    /// A plan whose columns and rows are in the order in which the fixtures have them.
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
            columns: Vec::new(),
            rows,
            fixtures,
        };
        for fixture in &plan.fixtures {
            if plan.columns.iter().all(|column| column.key != fixture.column.key) {
                plan.columns.push(fixture.column.clone());
            }
            for row in fixture.cases() {
                if !plan.rows.contains(row) {
                    plan.rows.push(row.clone());
                }
            }
        }
        plan
    }
}
