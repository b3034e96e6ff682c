//! The plan of a run: fixtures, each a canister that is populated and then measured step by step.
//!
//! ```text
//!   Plan ─┬─ configurations, rows    of the tables, in their order
//!         └─ Fixture          a configuration in a canister of its own
//!              ├─ step   populates:  no row of a table
//!              ├─ step   kept:       its changes remain for the steps after it
//!              └─ step   forked:     its changes are dropped
//! ```

use std::collections::BTreeMap;

use anyhow::Result;
use stablebench_protocol::{
    self as protocol, Engine, Operation, Part, Selection, SuiteJob, Users, UsersTask,
};
use stablebench_workload::{Model, Selected};

use super::rows::{Churn, Table, Work};
use crate::report::number::Rows;
use crate::results::{Case, ConfigurationInfo, FixtureInfo, State};

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
    /// The engine of its rows, if the configuration is not that of an engine.
    pub rows_in: Option<Engine>,
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
    pub configuration: String,
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
    /// A job that prepares the canister in a message before, and the number of its operations.
    pub before: Option<(Job, u64)>,
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
    /// The kind of its measured messages.
    pub sent: Sent,
    /// True if the canister is upgraded before.
    pub upgraded: bool,
    pub measures: Measures,
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

/// The work of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measures {
    Job,
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

/// Work of a canister.
#[derive(Clone, Debug, PartialEq)]
pub enum Job {
    /// Work on the rows of the users suite, which follow from the seed.
    Rows { table: Table, work: Work },
    /// Random deletes or inserts of the users suite.
    Churn { rows: u64, deletes: bool },
    /// Closes the connection of SQLite.
    Close,
    /// `VACUUM`.
    Vacuum,
    /// A job of another suite, as canisters take it.
    Suite(protocol::Job),
}

/// A job whose rows are chosen, as canisters take it.
#[derive(Clone, Debug)]
pub struct Chosen {
    job: protocol::Job,
    /// The same, if it is of the users suite.
    users: Option<Users>,
    seed: u64,
    operations: u64,
}

impl Job {
    /// A job of another suite than users.
    pub fn of<J: SuiteJob>(job: &J) -> Self {
        Self::Suite(protocol::Job::new(job))
    }
}

impl Chosen {
    /// The part that one message executes. If `each` is true, each operation is measured as well.
    pub fn part(&self, from: u64, count: u64, each: bool) -> Part {
        let of = |job: protocol::Job, from, count| Part { job, seed: self.seed, from, count, each };
        match (&self.users, self.rows()) {
            // A message without the ids of other messages is shorter.
            (Some(users), Some(Selection::List(ids))) if count < self.operations => {
                let part = ids.iter().skip(from as usize).take(count as usize);
                let users = with_ids(users, part.copied().collect());
                of(protocol::Job::new(&users), 0, count)
            }
            // Reading or counting all rows is one operation of a canister.
            (Some(_), None) => of(self.job.clone(), 0, 1),
            _ => of(self.job.clone(), from, count),
        }
    }

    /// The part with all operations.
    pub fn whole(&self) -> Part {
        self.part(0, self.operations, false)
    }

    /// The ids of the rows that it selects. The other suites select none.
    ///
    /// # Errors
    ///
    /// If the ids are not valid.
    pub fn ids(&self) -> Result<Option<Vec<u64>>> {
        let Some(rows) = self.rows() else { return Ok(None) };
        let mut ids = Vec::new();
        Selected::new(rows)?.each(|id| ids.push(id));
        Ok(Some(ids))
    }

    /// True if it is of the users suite and selects no rows.
    pub fn is_single(&self) -> bool {
        self.users.is_some() && self.rows().is_none()
    }

    /// A short job on the same tables.
    pub fn tables(&self) -> protocol::Job {
        let count = UsersTask::Operation { operation: Operation::Count, transaction: None };
        match &self.users {
            Some(users) => protocol::Job::new(&Users { task: count, ..*users }),
            None => self.job.clone(),
        }
    }

    fn rows(&self) -> Option<&Selection> {
        match &self.users.as_ref()?.task {
            UsersTask::Operation { operation, .. } => operation.selection(),
            UsersTask::Close | UsersTask::Vacuum => None,
        }
    }
}

/// The same work on the rows of a list.
fn with_ids(users: &Users, ids: Vec<u64>) -> Users {
    let mut users = users.clone();
    if let UsersTask::Operation { operation, .. } = &mut users.task {
        match operation {
            Operation::Insert(rows)
            | Operation::Overwrite(rows)
            | Operation::Update(rows)
            | Operation::Delete(rows)
            | Operation::Read(rows)
            | Operation::Range { from: rows, .. } => *rows = Selection::List(ids),
            Operation::Scan(_) | Operation::Count => {}
        }
    }
    users
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
            sent: Sent::Update,
            upgraded: false,
            measures: Measures::Job,
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
    /// Chooses the rows of a job with so many operations, which follow from the seed.
    ///
    /// # Errors
    ///
    /// If the rows do not fit into the table.
    pub fn choose(&self, job: &Job, operations: u64, seed: u64) -> Result<Chosen> {
        let task = match job {
            Job::Rows { table, work } => {
                let transaction = work.transaction;
                UsersTask::Operation { operation: work.operation(*table, seed)?, transaction }
            }
            Job::Churn { rows, deletes } => {
                let churn = Churn::of(*rows, seed);
                let operation = match deletes {
                    true => Operation::Delete(Selection::List(churn.deleted)),
                    false => Operation::Insert(Selection::List(churn.inserted)),
                };
                UsersTask::Operation { operation, transaction: None }
            }
            Job::Close => UsersTask::Close,
            Job::Vacuum => UsersTask::Vacuum,
            Job::Suite(job) => {
                return Ok(Chosen { job: job.clone(), users: None, seed, operations });
            }
        };
        let users = Users { engine: self.engine(), payload_bytes: self.payload, task };
        Ok(Chosen { job: protocol::Job::new(&users), users: Some(users), seed, operations })
    }

    /// The engine of its rows.
    pub fn engine(&self) -> Engine {
        self.rows_in.unwrap_or(self.configuration.engine)
    }

    /// The name in progress, notes and lists: `btree, 1 000 rows of 100 bytes`, or `sqlite-vfs, text
    /// keys, 200 rows`.
    pub fn label(&self) -> String {
        let mut label = self.configuration.key.clone();
        if !self.name.is_empty() {
            label += &format!(", {}", self.name);
        }
        label + &format!(", {}", Rows { rows: self.rows, payload: self.payload })
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

    /// Section and name of its cases, in their order.
    pub fn cases(&self) -> impl Iterator<Item = &(String, String)> {
        self.steps.iter().filter_map(|step| step.case.as_ref())
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
            configurations: Vec::new(),
            rows,
            fixtures,
        };
        for fixture in &plan.fixtures {
            if plan.configurations.iter().all(|known| known.key != fixture.configuration.key) {
                plan.configurations.push(fixture.configuration.clone());
            }
            for row in fixture.cases() {
                if !plan.rows.contains(row) {
                    plan.rows.push(row.clone());
                }
            }
        }
        plan
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

#[cfg(test)]
mod tests {
    use stablebench_workload::users::UsersModel;

    use super::super::rows::{Access, Verb};
    use super::*;
    use crate::engines::Configuration;

    fn fixture(rows: u64) -> Fixture {
        Fixture {
            rows_in: None,
            configuration: Configuration::of("btree").unwrap().info(),
            name: String::new(),
            rows,
            payload: 7,
            model: |_| Box::new(UsersModel::default()),
            steps: Vec::new(),
            populated: 0,
        }
    }

    /// Rows 0, 10, … as a model.
    fn populated(fixture: &Fixture) -> Box<dyn Model> {
        let mut model = (fixture.model)(fixture);
        let work = Work::new(Verb::Insert, Access::End, fixture.rows);
        let job = Job::Rows { table: Table::Empty, work };
        let all = fixture.choose(&job, fixture.rows, 1).unwrap();
        // Several messages continue each other.
        model.execute(&all.part(0, 30, false)).unwrap();
        model.execute(&all.part(30, fixture.rows - 30, false)).unwrap();
        model
    }

    #[test]
    fn parts_are_the_whole() {
        let fixture = fixture(100);
        for access in [Access::Middle, Access::Uniform] {
            let work = Work::new(Verb::Insert, access, 30);
            let job = Job::Rows { table: Table::Populated(100), work };
            let chosen = fixture.choose(&job, 30, 1).unwrap();
            let (mut whole, mut parts) = (populated(&fixture), populated(&fixture));
            whole.execute(&chosen.whole()).unwrap();
            for from in [0, 7, 14, 21, 28] {
                let part = chosen.part(from, 7.min(30 - from), false);
                assert!(part.job.work.len() <= chosen.whole().job.work.len());
                parts.execute(&part).unwrap();
            }
            assert_eq!(parts.content(), whole.content(), "{access}");
            assert_eq!(whole.content().rows, 130);
            assert_eq!(chosen.ids().unwrap().unwrap().len(), 30);
        }
    }

    #[test]
    fn reading_all_rows_is_one_operation_of_a_canister() {
        let fixture = fixture(100);
        for verb in [Verb::Scan, Verb::Count] {
            let work = Work::new(verb, Access::All, 100);
            let job = Job::Rows { table: Table::Populated(100), work };
            let chosen = fixture.choose(&job, 100, 1).unwrap();
            assert!(chosen.is_single() && chosen.ids().unwrap().is_none());
            assert_eq!((chosen.whole().from, chosen.whole().count), (0, 1));
            assert_eq!(populated(&fixture).execute(&chosen.whole()).unwrap().rows, 100);
        }
    }
}
