use std::path::Path;
use std::sync::OnceLock;

use stablebench_protocol::Part;
use stablebench_suite::job::Chosen;
use stablebench_suite::plan::{Fixture, Plan};
use stablebench_suite::plan_of;
use stablebench_suite_users::work::STEP;
use stablebench_suite_users::{
    Access, EngineRows, Operation, Selection, Table as Rows, Users, UsersTask, Verb, Work as OnRows,
};

use super::*;
use crate::canisters::Built;
use crate::progress::Progress;
use crate::replica::embedded::Embedded;
use crate::replica::{Answer, Canister, Cost, Difference, Identity, Messages, Replica};
use crate::results::{CanisterInfo, Results, sample};
use crate::runner::Runner;

const ROWS_OF_FIXTURE: u64 = 10 * ROWS;
/// A row that is far from the middle and from the end.
const FAR: u64 = ROWS * STEP;

fn embedded() -> &'static Embedded {
    static REPLICA: OnceLock<Embedded> = OnceLock::new();
    REPLICA.get_or_init(|| {
        Embedded::new(
            stablebench_replica::Effort::Full,
            stablebench_replica::Rules::today(),
            None,
            |_| {},
        )
        .unwrap()
    })
}

/// A plan for one configuration, and its canister.
fn planned(configuration: &str) -> (Plan, Built) {
    let options = format!("--engines={configuration} --rows={ROWS_OF_FIXTURE} --batches=10,100");
    let plan = plan_of(crate::suites::suite("users").unwrap(), &options).unwrap();
    let built = crate::canisters::find(&plan.configurations[0].canister, &Progress::Quiet).unwrap();
    (plan, built)
}

/// Work that a canister does in addition to each measured message, without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// Changes a row.
    Changes,
    /// Removes a row.
    Removes,
    /// Removes a row and adds another, so that the number of rows is right.
    Moves,
}

impl Fault {
    fn parts(self, engine: Engine) -> Vec<Part> {
        let row = |id| Selection::List(vec![id]);
        let operations = match self {
            Self::Nothing => Vec::new(),
            Self::Changes => vec![Operation::Overwrite(row(FAR))],
            Self::Removes => vec![Operation::Delete(row(FAR))],
            Self::Moves => vec![Operation::Delete(row(FAR)), Operation::Insert(row(FAR + 1))],
        };
        let part = |operation| {
            let task = UsersTask::Operation { operation, transaction: None };
            let job = Job::new(&Users { engine, payload_bytes: 100, task });
            Part { job, seed: 1, from: 0, count: 1, each: false }
        };
        operations.into_iter().map(part).collect()
    }
}

/// A replica whose canisters have a fault.
struct Faulty(Fault, Engine);

struct FaultyMessages<M> {
    inner: M,
    parts: Vec<Part>,
}

impl Replica for Faulty {
    fn identity(&self) -> Identity {
        embedded().identity()
    }

    fn install(&self, wasm: &[u8]) -> Result<Box<dyn Canister>> {
        let Self(fault, engine) = *self;
        Ok(Box::new(FaultyMessages {
            inner: embedded().install(wasm)?,
            parts: fault.parts(engine),
        }))
    }

    fn load(&self, _: &[u8], _: &Path) -> Result<Option<(Box<dyn Canister>, String)>> {
        unreachable!("there is no cache")
    }
}

impl<M: Messages> Messages for FaultyMessages<M> {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.inner.update(method, argument)
    }

    fn measure(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        let answer = self.inner.measure(method, argument)?;
        for part in &self.parts {
            wire::execute(&mut self.inner, part, wire::Purpose::Prepare)?;
        }
        Ok(answer)
    }

    fn call_id(&mut self) -> u64 {
        self.inner.call_id()
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.inner.query(method, argument)
    }

    fn difference(&self) -> Result<Option<Difference>> {
        self.inner.difference()
    }

    fn copies(&self) -> Option<[Copied; 2]> {
        self.inner.copies()
    }

    fn upgrade(&mut self) -> Result<Cost> {
        self.inner.upgrade()
    }
}

impl Canister for FaultyMessages<Box<dyn Canister>> {
    fn fork(&mut self) -> Result<Box<dyn Messages + '_>> {
        Ok(Box::new(FaultyMessages { inner: self.inner.fork()?, parts: self.parts.clone() }))
    }
}

fn run(configuration: &str, engine: Engine, fault: Fault) -> Result<()> {
    let (plan, built) = planned(configuration);
    let replica = Faulty(fault, engine);
    let canister = CanisterInfo {
        name: built.name.clone(),
        sha256: String::new(),
        bytes: 0,
        crates: Vec::new(),
        sqlite: None,
    };
    let results = Results {
        replica: replica.identity(),
        canisters: vec![canister],
        configurations: plan.configurations.clone(),
        ..sample::of(Vec::new())
    };
    let built = [built];
    Runner::new(&replica, &built, &plan, &Progress::Quiet, None, results)?.run(1)
}

#[test]
fn a_fault_far_from_the_written_rows_fails_the_run() {
    for (configuration, engine) in [
        ("btree", Engine::BTREE),
        ("sqlite/persist", Engine::SQLITE),
        ("sqlite/wal", Engine::SQLITE),
    ] {
        run(configuration, engine, Fault::Nothing).unwrap();
        for fault in [Fault::Changes, Fault::Removes, Fault::Moves] {
            let error = format!("{:#}", run(configuration, engine, fault).unwrap_err());
            let counted = error.contains("counts 163 849 rows") && fault == Fault::Removes;
            assert!(counted || error.contains("is wrong"), "{configuration} {fault:?}: {error}");
        }
    }
}

/// A canister, its fixture, and the model of its rows.
struct Populated {
    fixture: Fixture,
    canister: Box<dyn Canister>,
    model: Box<dyn Model>,
}

impl Populated {
    fn new(configuration: &str) -> Self {
        let (plan, built) = planned(configuration);
        let fixture = plan.fixtures[0].clone();
        let mut canister = embedded().install(&built.wasm).unwrap();
        wire::configure(&mut *canister, &fixture.configuration).unwrap();
        let mut model = (fixture.model)();
        let all = OnRows::new(Verb::Insert, Access::End, ROWS_OF_FIXTURE);
        let chosen = choose(&fixture, Rows::Empty, all);
        for from in (0..ROWS_OF_FIXTURE).step_by(ROWS as usize) {
            let part = chosen.part(from, ROWS, false);
            model.execute(&part).unwrap();
            wire::execute(&mut *canister, &part, wire::Purpose::Prepare).unwrap();
        }
        Self { fixture, canister, model }
    }
}

fn choose(fixture: &Fixture, table: Rows, work: OnRows) -> Box<dyn Chosen> {
    let users = EngineRows { engine: fixture.engine, payload: fixture.payload };
    users.rows(table, work).choose(work.operations, 1).unwrap()
}

#[test]
fn few_rows_are_read_after_a_small_change() {
    for (configuration, engine) in [("btree", Engine::BTREE), ("sqlite/memory", Engine::SQLITE)] {
        let Populated { fixture, mut canister, model } = Populated::new(configuration);
        let emptied = |copy| super::super::step::emptied(&fixture, copy).unwrap();
        let table = Rows::Populated(ROWS_OF_FIXTURE);
        let tables = choose(&fixture, table, OnRows::new(Verb::Count, Access::All, 1)).tables();
        let table_of = Table { engine, job: &tables, rows: ROWS };
        let [copy, _] = canister.copies().unwrap();
        let mut ranges = Ranges::read(emptied(copy), table_of, model.content()).unwrap();
        // The table of SQLite is walked when its rows are counted, and the map's is not.
        assert_eq!(ranges.counting_visits, engine == Engine::SQLITE);
        let mut read = Vec::new();
        for access in [Access::Middle, Access::Middle, Access::End, Access::Spread] {
            let chosen = choose(&fixture, table, OnRows::new(Verb::Insert, access, 100));
            let (mut fork, mut model) = (canister.fork().unwrap(), model.fork());
            model.execute(&chosen.whole()).unwrap();
            wire::execute(&mut *fork, &chosen.whole(), wire::Purpose::Prepare).unwrap();
            let [copy, _] = fork.copies().unwrap();
            let written = chosen.ids().unwrap().unwrap();
            read.push(ranges.check(emptied(copy), table_of, &*model, &written).unwrap());
        }
        // The first change of the map's header is followed by reading all rows.
        let few = read.iter().map(|rows| (2 * ROWS..ROWS_OF_FIXTURE / 2).contains(rows));
        let first = engine == Engine::SQLITE;
        assert!(few.eq([first, true, true, false]), "{configuration}: {read:?}");
        assert_eq!(read.pop(), Some(ROWS_OF_FIXTURE + 100), "{configuration}");
    }
}

#[test]
fn a_table_with_few_ranges_is_read_completely() {
    assert_eq!(rows_of_range(FEWEST * ROWS, 100), Some(ROWS));
    assert_eq!(rows_of_range(FEWEST * ROWS - 1, 100), None);
    assert_eq!(rows_of_range(1_000, 100_000), Some(41));
    assert_eq!(rows_of_range(3, u32::MAX), None);
}

#[test]
fn numbers_in_a_row_are_joined() {
    assert_eq!(neighbouring(&[1, 2, 5, 7, 8, 9].into()), [1..3, 5..6, 7..10]);
    assert!(neighbouring(&BTreeSet::new()).is_empty());
}
