//! Reads back what a case can have changed, instead of a million rows after each case.
//!
//! ```text
//!   fixture ── copy with an empty heap ── read in ranges of rows; note the pages of each range
//!   fork    ── copy with an empty heap ── compare the pages of both ── read the ranges that changed
//! ```
//!
//! The rows of a range depend on the heap, which is that of a fresh canister, and on the stable pages
//! that were read for it. If none of them has changed, neither have the rows.
//!
//! All ranges depend on the heap and on some stable pages, such as headers and the root. Almost every
//! case changes one of these *shared* pages, so the rows are counted too. If the engine visits every
//! page for that, and finds the pages of all ranges that have not changed, then these are still a part
//! of the table. If it stores the number of rows, the first fork in which a shared page has changed is
//! read completely, and later ones are not.
//!
//! No content is read twice. The answer of a canister depends on its module, its state and the message
//! alone. So if two forks differ from the populated canister in the same way, byte for byte, they contain
//! the same rows.

use std::collections::BTreeSet;
use std::ops::Range;

use anyhow::{Result, bail};
use fixedbitset::FixedBitSet;
use stablebench_protocol::{Digest, DigestPart, Engine, Job};
use stablebench_workload::Model;

use super::{interrupt, wire};
use crate::cache::Digests;
use crate::replica::{Copied, Difference, Differing, Messages};
use crate::report::number::Grouped;

/// The number of rows in a range, if they are short.
const ROWS: u64 = 16_384;
/// The size of the texts in a range, if they are long.
const BYTES: u64 = 4 << 20;
/// Tables with fewer ranges are read completely.
const FEWEST: u64 = 4;

/// The table that is read.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub engine: Engine,
    /// A job on it.
    pub job: &'a Job,
    /// The number of rows in a range.
    pub rows: u64,
}

/// The rows of a populated canister in ranges, with the pages that they depend on.
pub(super) struct Ranges {
    /// The canister with an empty heap.
    copy: Copied,
    /// The position of the first row of each range.
    starts: Vec<u64>,
    /// The stable pages that each range depends on.
    pages: Vec<FixedBitSet>,
    /// The stable pages that all ranges depend on.
    shared: FixedBitSet,
    /// True if counting the rows reads the pages of all ranges.
    counting_visits: bool,
    /// Shared pages that have changed in a fork whose content was right.
    settled: Differing,
}

/// The number of rows in a range of a table, or `None` if it is too small for ranges.
pub(super) fn rows_of_range(rows: u64, payload: u32) -> Option<u64> {
    let of_range = (BYTES / u64::from(payload.max(1))).clamp(1, ROWS);
    (rows / of_range >= FEWEST).then_some(of_range)
}

impl Ranges {
    /// Reads all rows of a populated canister, of which this is a copy with an empty heap.
    ///
    /// # Errors
    ///
    /// If they are not those that are expected.
    pub(super) fn read(mut copy: Copied, table: Table<'_>, expected: Digest) -> Result<Self> {
        let mut part = DigestPart::default();
        let (mut starts, mut pages) = (Vec::new(), Vec::new());
        while !part.done {
            interrupt::check()?;
            starts.push(part.position);
            part = wire::content(&mut copy, table.job, part, table.rows)?;
            pages.push(copy.take_read());
        }
        if part.digest != expected {
            bail!("the populated canister contains {:?}, but it must be {expected:?}", part.digest);
        }
        let visited = count(&mut copy, table.engine, expected.rows)?;
        let counting_visits = pages.iter().all(|pages| pages.is_subset(&visited));
        let mut shared = pages[0].clone();
        pages.iter().for_each(|pages| shared.intersect_with(pages));
        Ok(Self { copy, starts, pages, shared, counting_visits, settled: Differing::default() })
    }

    /// Reads back what may have changed in a fork, of which `fork` is a copy with an empty heap, and
    /// the ranges around the rows with the ids `written`. Compares all with the model. Returns the
    /// number of rows that were read.
    ///
    /// # Errors
    ///
    /// If the content is wrong.
    pub(super) fn check(
        &mut self,
        mut fork: Copied,
        table: Table<'_>,
        model: &dyn Model,
        written: &[u64],
    ) -> Result<u64> {
        let whole = model.content();
        let Some(changed) = fork.differing(&self.copy)? else {
            return read(&mut fork, table, 0, None, whole);
        };
        let (mut shared, mut own) = (changed.clone(), changed.stable);
        shared.stable.intersect_with(&self.shared);
        own.difference_with(&self.shared);
        let affected = self.affected(&own, written);
        let parts = self.parts(&affected, |from, to| model.between(table.job, from, to));
        let rows = match parts {
            Some(parts)
                if self.still_has(&mut fork, table.engine, whole.rows, &affected)?
                    || (!self.counting_visits && shared.is_subset(&self.settled)) =>
            {
                let read = |(from, to, expected)| read(&mut fork, table, from, to, expected);
                parts.into_iter().map(read).sum::<Result<u64>>()?
            }
            _ => read(&mut fork, table, 0, None, whole)?,
        };
        self.settled.union_with(&shared);
        Ok(rows)
    }

    /// The ranges that depend on one of the pages, and those of the written rows with the ranges
    /// before and after them.
    fn affected(&self, pages: &FixedBitSet, written: &[u64]) -> BTreeSet<usize> {
        let ranges = 0..self.starts.len();
        let dependent = ranges.filter(|range| !self.pages[*range].is_disjoint(pages));
        let around = written.iter().flat_map(|id| {
            let at = self.starts.partition_point(|start| start <= id).saturating_sub(1);
            at.saturating_sub(1)..(at + 2).min(self.starts.len())
        });
        dependent.chain(around).collect()
    }

    /// The parts of the table with these ranges: their positions, and the digests that they must
    /// have. `None` if reading everything is not much more.
    fn parts(
        &self,
        ranges: &BTreeSet<usize>,
        between: impl Fn(u64, Option<u64>) -> Option<Digest>,
    ) -> Option<Vec<(u64, Option<u64>, Digest)>> {
        if ranges.len() > self.starts.len() / 2 {
            return None;
        }
        let parts = neighbouring(ranges).into_iter().map(|part| {
            let (from, to) = (self.starts[part.start], self.starts.get(part.end).copied());
            // Where all rows are gone there is nothing to read.
            let digest = between(from, to).filter(|digest| digest.rows > 0)?;
            Some((from, to, digest))
        });
        parts.collect()
    }

    /// Counts the rows. Returns `true` if that shows that all ranges but those in `affected` are
    /// still a part of the table.
    fn still_has(
        &self,
        fork: &mut Copied,
        engine: Engine,
        rows: u64,
        affected: &BTreeSet<usize>,
    ) -> Result<bool> {
        let visited = count(fork, engine, rows)?;
        let mut unaffected = (0..self.starts.len()).filter(|range| !affected.contains(range));
        Ok(self.counting_visits && unaffected.all(|range| self.pages[range].is_subset(&visited)))
    }
}

/// Counts the rows of a table. Returns the pages that were read for it.
fn count(copy: &mut Copied, engine: Engine, expected: u64) -> Result<FixedBitSet> {
    copy.take_read();
    let description = wire::describe(copy)?;
    let found = description.engines.iter().find(|described| described.engine == engine);
    match found.map(|described| described.rows) {
        Some(rows) if rows == expected => Ok(copy.take_read()),
        rows => bail!(
            "the canister counts {} rows, but there must be {}",
            Grouped(rows.unwrap_or(0)),
            Grouped(expected)
        ),
    }
}

/// Reads the rows from one position up to another, or to the end, and compares their digest. Returns
/// their number.
fn read(
    copy: &mut Copied,
    table: Table<'_>,
    from: u64,
    to: Option<u64>,
    expected: Digest,
) -> Result<u64> {
    let mut part = DigestPart { position: from, ..DigestPart::default() };
    let is_end = |part: &DigestPart| part.done || to.is_some_and(|to| part.position >= to);
    while !is_end(&part) && part.digest.rows < expected.rows {
        interrupt::check()?;
        let left = expected.rows - part.digest.rows;
        part = wire::content(copy, table.job, part, left.min(table.rows))?;
    }
    if part.digest != expected || !is_end(&part) {
        bail!(
            "the content from position {} on is wrong: {:?}, but it must be {expected:?}",
            Grouped(from),
            part.digest
        );
    }
    Ok(expected.rows)
}

/// Joins numbers that follow each other.
fn neighbouring(numbers: &BTreeSet<usize>) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for &number in numbers {
        match joined.last_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => joined.push(number..number + 1),
        }
    }
    joined
}

/// The maximum number of digests that are kept. If there are more, only those of this run are kept.
const MAX_DIGESTS: usize = 4_096;

/// Digests of forks of a populated canister, by their differences from it.
#[derive(Default)]
pub(super) struct KnownContent {
    /// The digest of the populated canister.
    pub content: Digest,
    /// Its rows in ranges, once they were needed.
    pub ranges: Option<Ranges>,
    /// The digests of earlier runs.
    earlier: Digests,
    /// The digests of this run.
    here: Digests,
    /// The number of forks that an earlier run had read back.
    pub known: u64,
    /// The number of forks to read back.
    pub asked: u64,
}

impl KnownContent {
    /// Starts with the digest of the populated canister and those of earlier runs.
    pub(super) fn of(content: Digest, earlier: Digests) -> Self {
        Self { content, earlier, ..Self::default() }
    }

    /// Reads a fork back, unless an equal one was read back with the digest `expected`.
    pub(super) fn read_back(
        &mut self,
        fork: &mut dyn Messages,
        expected: Digest,
        read_back: impl FnOnce(&mut dyn Messages, Digest, &mut Option<Ranges>) -> Result<()>,
    ) -> Result<Digest> {
        self.asked += 1;
        let Some(Difference(hash)) = fork.difference()? else {
            read_back(fork, self.content, &mut self.ranges)?;
            return Ok(expected);
        };
        let state: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let is_it = |known: Option<&Digest>| known == Some(&expected);
        if is_it(self.earlier.get(&state)) {
            self.known += 1;
        } else if !is_it(self.here.get(&state)) {
            read_back(fork, self.content, &mut self.ranges)?;
        }
        self.here.insert(state, expected);
        Ok(expected)
    }

    /// Starts again, because the canister has changed.
    pub(super) fn clear(&mut self, content: Digest) {
        *self = Self { content, known: self.known, asked: self.asked, ..Self::default() };
    }

    /// Returns the digests to keep for later runs; `None` if nothing is new.
    pub(super) fn news(&self) -> Option<Digests> {
        let new = self.here.iter().any(|(state, digest)| self.earlier.get(state) != Some(digest));
        let all = self.earlier.len() + self.here.len() <= MAX_DIGESTS;
        let earlier = self.earlier.iter().filter(|_| all);
        new.then(|| earlier.chain(&self.here).map(|(key, digest)| (key.clone(), *digest)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::Path;
    use std::sync::OnceLock;

    use stablebench_protocol::JobPart;
    use stablebench_suite::job::Chosen;
    use stablebench_suite::plan::{Fixture, Plan};
    use stablebench_suite::plan_of;
    use stablebench_suite_users::work::STEP;
    use stablebench_suite_users::{
        Access, EngineRows, Operation, RowWork as OnRows, Selection, TableIds as Rows, Users,
        UsersTask, Verb,
    };

    use super::*;
    use crate::canisters::Built;
    use crate::progress::Progress;
    use crate::replica::embedded::Embedded;
    use crate::replica::{Answer, Canister, Cost, Identity, Replica};
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
        let options =
            format!("--engines={configuration} --rows={ROWS_OF_FIXTURE} --batches=10,100");
        let plan = plan_of(crate::suites::suite("users").unwrap(), &options).unwrap();
        let built =
            crate::canisters::find(&plan.configurations[0].canister, &Progress::Quiet).unwrap();
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
        fn parts(self, engine: Engine) -> Vec<JobPart> {
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
                JobPart { job, seed: 1, from: 0, count: 1, each: false }
            };
            operations.into_iter().map(part).collect()
        }
    }

    /// A replica whose canisters have a fault.
    struct Faulty(Fault, Engine);

    struct FaultyMessages<M> {
        inner: M,
        parts: Vec<JobPart>,
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
                assert!(
                    counted || error.contains("is wrong"),
                    "{configuration} {fault:?}: {error}"
                );
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
        for (configuration, engine) in [("btree", Engine::BTREE), ("sqlite/memory", Engine::SQLITE)]
        {
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

    /// A fork that reports this difference.
    struct Fork(Option<Difference>);

    impl Messages for Fork {
        fn update(&mut self, _: &str, _: &[u8]) -> Result<Answer> {
            unreachable!()
        }

        fn query(&mut self, _: &str, _: &[u8]) -> Result<Answer> {
            unreachable!()
        }

        fn upgrade(&mut self) -> Result<Cost> {
            unreachable!()
        }

        fn difference(&self) -> Result<Option<Difference>> {
            Ok(self.0)
        }
    }

    fn fork(state: u8) -> Fork {
        Fork(Some(Difference([state; 32])))
    }

    fn digest(rows: u64) -> Digest {
        Digest { rows, low: 1, high: 2 }
    }

    /// Returns `true` if the rows were read.
    fn reads(seen: &mut KnownContent, mut fork: Fork, expected: Digest) -> bool {
        let read = Cell::new(false);
        let found = seen.read_back(&mut fork, expected, |_, _, _| {
            read.set(true);
            Ok(())
        });
        assert_eq!(found.unwrap(), expected);
        read.get()
    }

    #[test]
    fn an_equal_fork_is_not_read_again() {
        let mut seen = KnownContent::default();
        assert!(reads(&mut seen, fork(1), digest(5)));
        assert!(!reads(&mut seen, fork(1), digest(5)));
        assert!(reads(&mut seen, fork(1), digest(6)), "another digest is expected");
        assert!(reads(&mut seen, fork(2), digest(5)));
        for _ in 0..2 {
            assert!(reads(&mut seen, Fork(None), digest(5)), "the difference is not known");
        }
    }

    #[test]
    fn failed_reads_are_not_kept() {
        let mut seen = KnownContent::default();
        let failed = seen
            .read_back(&mut fork(1), digest(5), |_, _, _| anyhow::bail!("the content is wrong"));
        assert!(failed.is_err());
        assert!(reads(&mut seen, fork(1), digest(5)));
    }

    #[test]
    fn digests_are_kept_for_later_runs() {
        let mut seen = KnownContent::default();
        reads(&mut seen, fork(1), digest(5));
        let kept = seen.news().unwrap();
        let mut later = KnownContent::of(Digest::default(), kept.clone());
        assert!(!reads(&mut later, fork(1), digest(5)));
        assert_eq!((later.known, later.asked), (1, 1));
        assert_eq!(later.news(), None, "nothing is new");
        assert!(reads(&mut later, fork(2), digest(6)));
        assert_eq!(later.news().unwrap().len(), 2);
        later.clear(Digest::default());
        assert!(reads(&mut later, fork(1), digest(5)), "the canister has changed");
        // A wrong digest is replaced.
        let wrong = kept.keys().map(|state| (state.clone(), digest(4))).collect();
        let mut later = KnownContent::of(Digest::default(), wrong);
        assert!(reads(&mut later, fork(1), digest(5)));
        assert_eq!(later.news(), Some(kept));
    }

    #[test]
    fn the_number_of_kept_digests_is_limited() {
        let many = (0..MAX_DIGESTS).map(|number| (number.to_string(), digest(1))).collect();
        let mut seen = KnownContent::of(Digest::default(), many);
        reads(&mut seen, fork(1), digest(5));
        assert_eq!(seen.news().unwrap().len(), 1);
    }
}
