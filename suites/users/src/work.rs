//! The rows of an engine, as operations select, write and leave them.
//!
//! The users workload populates ids 0, 10, 20, … and then adds rows either between the rows around
//! the half, or after the last:
//!
//! ```text
//! populated   0   10   20   30   40   50   60   70      (8 rows)
//! middle                         45   55                (2 rows; the half is row 4)
//! end                                               80  90
//! ```
//!
//! A new row contains a number of `a`. A row that was updated contains as many `b`, so that an
//! update that did not happen shows in the digest.

use crate::job::{Operation, Selection, Users, UsersTask};
use stablebench_protocol::{Digest, Engine, Error, Job, JobPart, MAX_PAYLOAD_BYTES, Result};
use stablebench_workload::{Amount, ContentDigest, Expected, Model, Neighbours, Rng};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The distance between the ids of the users workload.
pub const STEP: u64 = 10;

/// Rows before and after those that were written, which are read back with them. More than a
/// node or a page contains, so that lost neighbours are noticed.
const MARGIN: usize = 1_000;

/// Bytes of a row of the log in addition to its payload.
const LOG_ROW_BYTES: u64 = 12;

/// The ids `first`, `first + step`, …, none of which overflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    first: u64,
    step: u64,
    rows: u64,
}

impl Ids {
    /// `rows` ids from `first`, `step` apart.
    ///
    /// # Errors
    ///
    /// Without rows, with a step of 0 between several rows, or past `u64::MAX`.
    pub fn new(first: u64, step: u64, rows: u64) -> Result<Self> {
        let gaps = rows.checked_sub(1).ok_or(Error::NoRows)?;
        if step == 0 && gaps > 0 {
            return Err(Error::NoStep);
        }
        gaps.checked_mul(step)
            .and_then(|span| first.checked_add(span))
            .ok_or(Error::IdOverflow { largest: u64::MAX })?;
        Ok(Self { first, step, rows })
    }

    /// `rows` ids halfway between the ids around the half, where the ids up to `last`
    /// are multiples of [`STEP`].
    ///
    /// # Errors
    ///
    /// Without rows, or if they do not fit before `last`.
    pub fn middle(last: Option<u64>, rows: u64) -> Result<Self> {
        let last_row = last.unwrap_or(0) / STEP;
        // Not (last_row + 1) / 2: the same, but cannot overflow.
        let half = last_row / 2 + last_row % 2;
        let limit = last_row - half;
        if rows > limit {
            return Err(Error::TooManyRows { limit });
        }
        Self::new(half * STEP + STEP / 2, STEP, rows)
    }

    /// `rows` ids after `last`, or from 0 if there is no row.
    ///
    /// # Errors
    ///
    /// Without rows, or past `u64::MAX`.
    pub fn end(last: Option<u64>, rows: u64) -> Result<Self> {
        let first = match last {
            None => 0,
            Some(last) => (last / STEP)
                .checked_add(1)
                .and_then(|row| row.checked_mul(STEP))
                .ok_or(Error::IdOverflow { largest: u64::MAX })?,
        };
        Self::new(first, STEP, rows)
    }

    /// The smallest id.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The largest id.
    pub fn last(&self) -> u64 {
        self.first + self.step * (self.rows - 1)
    }

    /// The distance between two ids.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The number of ids; at least one.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The ids in ascending order.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u64> + use<> {
        let Self { first, step, rows } = *self;
        (0..rows).map(move |row| first + row * step)
    }

    /// At most `rows` ids after the first `skipped`; nothing if none is left.
    pub fn part(&self, skipped: u64, rows: u64) -> Option<Self> {
        let rows = self.rows.checked_sub(skipped)?.min(rows);
        (rows > 0).then(|| Self { first: self.first + self.step * skipped, rows, ..*self })
    }

    /// The index of one of the ids.
    pub fn index(&self, id: u64) -> u64 {
        (id - self.first).checked_div(self.step).unwrap_or(0)
    }

    /// These ids and the next ones, if those continue these.
    pub fn joined(&self, next: Self) -> Option<Self> {
        let continues = self.step > 0
            && next.step == self.step
            && self.last().checked_add(self.step) == Some(next.first);
        continues.then_some(Self { rows: self.rows + next.rows, ..*self })
    }

    /// The smallest of the ids that is at least `id`.
    pub fn at_or_after(&self, id: u64) -> Option<u64> {
        if id <= self.first {
            return Some(self.first);
        }
        if id > self.last() {
            return None;
        }
        // The step is not 0: a single row satisfies one of the conditions above.
        Some(self.first + (id - self.first).div_ceil(self.step) * self.step)
    }

    /// Returns `true` if `id` is one of the ids.
    pub fn contains(&self, id: u64) -> bool {
        self.at_or_after(id) == Some(id)
    }
}

/// The rows of an operation in its order: ids at equal distances, or a borrowed list; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected<'a>(SelectedIds<'a>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SelectedIds<'a> {
    Step(Ids),
    List(&'a [u64]),
}

impl From<Ids> for Selected<'_> {
    fn from(ids: Ids) -> Self {
        Self(SelectedIds::Step(ids))
    }
}

impl<'a> Selected<'a> {
    /// The rows that were asked for over the wire.
    ///
    /// # Errors
    ///
    /// Those of [`Ids::new`] and [`list`](Self::list).
    pub fn new(selection: &'a Selection) -> Result<Self> {
        match selection {
            Selection::Step { first, step, rows } => Ids::new(*first, *step, *rows).map(Self::from),
            Selection::List(ids) => Self::list(ids),
        }
    }

    /// The ids of a list.
    ///
    /// # Errors
    ///
    /// If it is empty.
    pub fn list(ids: &'a [u64]) -> Result<Self> {
        if ids.is_empty() { Err(Error::NoRows) } else { Ok(Self(SelectedIds::List(ids))) }
    }

    /// The number of ids; at least one.
    pub fn rows(self) -> u64 {
        match self.0 {
            SelectedIds::Step(ids) => ids.rows(),
            SelectedIds::List(ids) => ids.len() as u64,
        }
    }

    /// The largest of the ids.
    pub fn largest(self) -> u64 {
        match self.0 {
            SelectedIds::Step(ids) => ids.last(),
            SelectedIds::List(ids) => ids.iter().copied().max().unwrap_or(0),
        }
    }

    /// At most `rows` ids after the first `skipped`; nothing if none is left.
    pub fn part(self, skipped: u64, rows: u64) -> Option<Self> {
        match self.0 {
            SelectedIds::Step(ids) => ids.part(skipped, rows).map(Self::from),
            SelectedIds::List(ids) => {
                let rest = ids.get(usize::try_from(skipped).ok()?..)?;
                let rows = usize::try_from(rows).unwrap_or(usize::MAX).min(rest.len());
                Self::list(&rest[..rows]).ok()
            }
        }
    }

    /// Visits the ids in their order.
    #[inline(always)]
    pub fn each(self, visit: impl FnMut(u64)) {
        // One loop per kind, so that neither pays for the other.
        match self.0 {
            SelectedIds::Step(ids) => ids.iter().for_each(visit),
            SelectedIds::List(ids) => ids.iter().copied().for_each(visit),
        }
    }

    /// Visits the ids in their order until a visit fails.
    ///
    /// # Errors
    ///
    /// The visit's.
    #[inline(always)]
    pub fn try_each<E>(
        self,
        visit: impl FnMut(u64) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        match self.0 {
            SelectedIds::Step(ids) => ids.iter().try_for_each(visit),
            SelectedIds::List(ids) => ids.iter().copied().try_for_each(visit),
        }
    }
}

/// The ids of an operation in ascending order, each once; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdSet(Form);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Step(Ids),
    Sorted(Vec<u64>),
}

impl From<Ids> for IdSet {
    fn from(ids: Ids) -> Self {
        Self(Form::Step(ids))
    }
}

impl IdSet {
    /// The ids; each may be selected more than once.
    pub fn of(selected: Selected<'_>) -> Self {
        match selected.0 {
            SelectedIds::Step(ids) => ids.into(),
            SelectedIds::List(ids) => {
                let mut sorted = ids.to_vec();
                sorted.sort_unstable();
                sorted.dedup();
                Self(Form::Sorted(sorted))
            }
        }
    }

    /// The ids; none may be selected more than once.
    ///
    /// # Errors
    ///
    /// The smallest id that is.
    pub fn once(selected: Selected<'_>) -> Result<Self> {
        match selected.0 {
            SelectedIds::Step(ids) => Ok(ids.into()),
            SelectedIds::List(ids) => {
                let mut sorted = ids.to_vec();
                sorted.sort_unstable();
                match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                    Some(pair) => Err(Error::IdTwice { id: pair[0] }),
                    None => Ok(Self(Form::Sorted(sorted))),
                }
            }
        }
    }

    /// The ids, if they are at equal distances by definition.
    pub fn as_step(&self) -> Option<Ids> {
        match self.0 {
            Form::Step(ids) => Some(ids),
            Form::Sorted(_) => None,
        }
    }

    /// The ids in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let (step, sorted) = match &self.0 {
            Form::Step(ids) => (Some(ids.iter()), [].as_slice()),
            Form::Sorted(ids) => (None, ids.as_slice()),
        };
        step.into_iter().flatten().chain(sorted.iter().copied())
    }

    /// The smallest id.
    pub fn first(&self) -> u64 {
        match &self.0 {
            Form::Step(ids) => ids.first(),
            Form::Sorted(ids) => ids.first().copied().unwrap_or(0),
        }
    }

    /// The largest id.
    pub fn last(&self) -> u64 {
        match &self.0 {
            Form::Step(ids) => ids.last(),
            Form::Sorted(ids) => ids.last().copied().unwrap_or(0),
        }
    }

    /// The smallest of the ids that is at least `id`.
    pub fn at_or_after(&self, id: u64) -> Option<u64> {
        match &self.0 {
            Form::Step(ids) => ids.at_or_after(id),
            Form::Sorted(ids) => ids.get(ids.partition_point(|&one| one < id)).copied(),
        }
    }

    /// Returns `true` if `id` is one of the ids.
    pub fn contains(&self, id: u64) -> bool {
        self.at_or_after(id) == Some(id)
    }

    /// The smallest of the ids that is not a multiple.
    pub fn first_not_multiple(&self, multiple: u64) -> Option<u64> {
        if let Form::Step(ids) = &self.0
            && ids.step().is_multiple_of(multiple)
            && ids.first().is_multiple_of(multiple)
        {
            return None;
        }
        self.iter().find(|id| !id.is_multiple_of(multiple))
    }
}

/// The kind of text of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The text of a row as inserted.
    New,
    /// The text of a row as updated.
    Updated,
}

impl Payload {
    /// The text with `bytes` bytes, at most [`MAX_PAYLOAD_BYTES`].
    pub fn text(self, bytes: u32) -> String {
        let letter = match self {
            Self::New => "a",
            Self::Updated => "b",
        };
        letter.repeat(bytes.min(MAX_PAYLOAD_BYTES) as usize)
    }
}

/// Returns the rows of a part of an operation that selects rows.
///
/// # Errors
///
/// If the selection is invalid, or the part is not inside it.
pub fn selected(rows: &Selection, from: u64, count: u64) -> Result<Selected<'_>> {
    let all = Selected::new(rows)?;
    let part = all.part(from, count).filter(|part| part.rows() == count);
    part.ok_or(match count {
        0 => Error::NoRows,
        _ => Error::TooManyRows { limit: all.rows() },
    })
}

/// Refuses other parts of a task than all of it, which is one operation.
///
/// # Errors
///
/// If it is another part.
pub fn check_single(part: &JobPart) -> Result<()> {
    match (part.from, part.count) {
        (_, 0) => Err(Error::NoRows),
        (0, 1) => Ok(()),
        _ => Err(Error::TooManyRows { limit: 1 }),
    }
}

/// The rows of an engine.
///
/// Rows as they were populated take no memory, so that a fork of a model with a million rows costs
/// nothing. The digest of all rows is always up to date.
#[derive(Clone, Debug, Default)]
pub struct UsersModel {
    /// Rows that were inserted at equal distances, one after the other.
    populated: Option<(Ids, Row)>,
    /// Rows that differ from those; nothing for a row that was removed.
    changes: BTreeMap<u64, Option<Row>>,
    digest: ContentDigest,
}

/// The text of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    payload: Payload,
    bytes: u32,
}

impl UsersModel {
    /// Does an operation on all rows that it selects, with texts of `bytes` bytes if it writes. A
    /// scan reads rows in the order of their ids.
    ///
    /// # Errors
    ///
    /// If an id to insert exists or is listed twice, or one to update or to delete does not exist;
    /// then nothing changes.
    pub fn apply(&mut self, operation: &Operation, bytes: u32) -> Result<Expected> {
        let count = operation.selection().map_or(1, Selection::rows);
        self.operation(operation, 0, count, bytes)
    }

    fn operation(
        &mut self,
        operation: &Operation,
        from: u64,
        count: u64,
        bytes: u32,
    ) -> Result<Expected> {
        let select = |rows| selected(rows, from, count);
        match operation {
            Operation::Insert(rows) => {
                let rows = select(rows)?;
                let ids = IdSet::once(rows)?;
                if let Some(id) = ids.iter().find(|id| self.get(*id).is_some()) {
                    return Err(Error::IdExists { id });
                }
                self.write(&ids, Row { payload: Payload::New, bytes });
                Ok(written(rows, bytes))
            }
            Operation::Overwrite(rows) => {
                let rows = select(rows)?;
                self.write(&IdSet::of(rows), Row { payload: Payload::Updated, bytes });
                Ok(written(rows, bytes))
            }
            Operation::Update(rows) => {
                let rows = select(rows)?;
                let ids = IdSet::of(rows);
                self.require(&ids)?;
                self.write(&ids, Row { payload: Payload::Updated, bytes });
                Ok(written(rows, bytes))
            }
            Operation::Delete(rows) => {
                let rows = select(rows)?;
                let ids = IdSet::once(rows)?;
                self.require(&ids)?;
                ids.iter().for_each(|id| self.remove(id));
                Ok(written(rows, 0))
            }
            Operation::Read(rows) => {
                let mut found = Found::default();
                select(rows)?.each(|id| {
                    if let Some(row) = self.get(id) {
                        found.add(id, row);
                    }
                });
                Ok(found.into())
            }
            Operation::Range { rows: 0, .. } | Operation::Scan(0) => Err(Error::NoRows),
            Operation::Range { from, rows } => {
                let mut found = Found::default();
                select(from)?.each(|id| found.add_all(self.rows_from(id), *rows));
                Ok(found.into())
            }
            Operation::Scan(rows) => {
                let mut found = Found::default();
                found.add_all(self.rows_from(0), *rows);
                Ok(found.into())
            }
            Operation::Count => {
                let results = Some(Digest::default());
                Ok(Expected { rows: self.rows(), bytes: 0, results })
            }
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.digest.value().rows
    }

    /// The largest id.
    pub fn last_id(&self) -> Option<u64> {
        self.rows_up_to(u64::MAX).next().map(|(id, _)| id)
    }

    /// The ids in ascending order.
    pub fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.rows_from(0).map(|(id, _)| id)
    }

    fn get(&self, id: u64) -> Option<Row> {
        match self.changes.get(&id) {
            Some(change) => *change,
            None => self.populated.filter(|(ids, _)| ids.contains(id)).map(|(_, row)| row),
        }
    }

    /// The rows with ids of at least `from`, ascending.
    fn rows_from(&self, from: u64) -> impl Iterator<Item = (u64, Row)> + '_ {
        let populated = self.populated.into_iter().flat_map(move |(ids, row)| {
            let skipped = ids.at_or_after(from).map_or(ids.rows(), |id| ids.index(id));
            let rest = ids.part(skipped, u64::MAX);
            rest.into_iter().flat_map(|ids| ids.iter()).map(move |id| (id, row))
        });
        merged(populated, self.changes.range(from..), Ordering::Less)
    }

    /// The rows with ids of at most `to`, descending.
    fn rows_up_to(&self, to: u64) -> impl Iterator<Item = (u64, Row)> + '_ {
        let populated = self.populated.into_iter().flat_map(move |(ids, row)| {
            let part = match ids.at_or_after(to) {
                None => Some(ids),
                Some(id) => ids.part(0, ids.index(id) + u64::from(id == to)),
            };
            let ids = part.into_iter().flat_map(|ids| ids.iter().rev());
            ids.map(move |id| (id, row))
        });
        merged(populated, self.changes.range(..=to).rev(), Ordering::Greater)
    }

    fn require(&self, ids: &IdSet) -> Result<()> {
        match ids.iter().find(|id| self.get(*id).is_none()) {
            Some(id) => Err(Error::IdMissing { id }),
            None => Ok(()),
        }
    }

    fn write(&mut self, ids: &IdSet, row: Row) {
        let text = row.payload.text(row.bytes);
        let populates = self.extended(ids, row);
        for id in ids.iter() {
            if populates.is_none() {
                if let Some(old) = self.get(id) {
                    self.digest.remove(id, old.payload.text(old.bytes).as_bytes());
                }
                self.changes.insert(id, Some(row));
            }
            self.digest.add(id, text.as_bytes());
        }
        if populates.is_some() {
            self.populated = populates;
        }
    }

    /// The populated rows together with new ones, if those continue them.
    fn extended(&self, ids: &IdSet, row: Row) -> Option<(Ids, Row)> {
        let new = ids.as_step()?;
        if self.changes.range(new.first()..=new.last()).next().is_some() {
            return None;
        }
        match self.populated {
            None if self.changes.is_empty() => Some((new, row)),
            Some((ids, known)) if known == row => Some((ids.joined(new)?, row)),
            _ => None,
        }
    }

    fn remove(&mut self, id: u64) {
        if let Some(old) = self.get(id) {
            self.digest.remove(id, old.payload.text(old.bytes).as_bytes());
            match self.populated {
                Some((ids, _)) if ids.contains(id) => drop(self.changes.insert(id, None)),
                _ => drop(self.changes.remove(&id)),
            }
        }
    }

    fn neighbours_of(&self, engine: Engine, ids: &IdSet, payload_bytes: u32) -> Option<Neighbours> {
        if engine == Engine::APPEND {
            return self.end_of_log(ids, payload_bytes);
        }
        let first = self.rows_up_to(ids.first()).take(1 + MARGIN).last().map(|(id, _)| id);
        let first = first.unwrap_or(0);
        let last = self.rows_from(ids.last()).take(1 + MARGIN).last();
        let last = last.map_or(u64::MAX, |(id, _)| id);
        let mut found = Found::default();
        found.add_all(self.rows_from(first).take_while(|(id, _)| *id <= last), u64::MAX);
        Some(Neighbours { position: first, digest: found.digest.value() })
    }

    /// The last rows of the log and the new ones after them. Only rows as they were populated are
    /// known to be in the order of their ids.
    fn end_of_log(&self, ids: &IdSet, payload_bytes: u32) -> Option<Neighbours> {
        let new = |id: &u64| ids.contains(*id);
        let (populated, row) = self.populated?;
        let others = self.changes.keys().any(|id| !new(id));
        let before = populated.part(0, populated.iter().take_while(|id| !new(id)).count() as u64);
        let before = before.filter(|_| !others && row.bytes == payload_bytes)?;
        let skipped = before.rows().saturating_sub(MARGIN as u64);
        let mut found = Found::default();
        before.iter().skip(skipped as usize).for_each(|id| found.add(id, row));
        ids.iter().for_each(|id| found.add(id, row));
        let position = skipped * (LOG_ROW_BYTES + u64::from(payload_bytes));
        Some(Neighbours { position, digest: found.digest.value() })
    }
}

/// Rows as they were populated and changes, both in one order. `first` is the ordering of two ids
/// of which the first is read first.
fn merged<'a>(
    populated: impl Iterator<Item = (u64, Row)> + 'a,
    changes: impl Iterator<Item = (&'a u64, &'a Option<Row>)> + 'a,
    first: Ordering,
) -> impl Iterator<Item = (u64, Row)> + 'a {
    let (mut populated, mut changes) = (populated.peekable(), changes.peekable());
    std::iter::from_fn(move || {
        loop {
            let (old, change) = (populated.peek().copied(), changes.peek().copied());
            let Some((changed, now)) = change else { return populated.next() };
            match old {
                Some((id, _)) if id.cmp(changed) == first => return populated.next(),
                Some((id, _)) if id == *changed => drop(populated.next()),
                _ => {}
            }
            changes.next();
            if let Some(row) = now {
                return Some((*changed, *row));
            }
        }
    })
}

fn written(rows: Selected<'_>, bytes: u32) -> Expected {
    let rows = rows.rows();
    Expected { rows, bytes: rows * u64::from(bytes), results: None }
}

/// Rows that were read.
#[derive(Default)]
struct Found {
    amount: Amount,
    digest: ContentDigest,
    /// The text of the last row, since most rows have the same.
    text: Option<(Row, String)>,
}

impl Found {
    fn add(&mut self, id: u64, row: Row) {
        self.amount += Amount { rows: 1, bytes: row.bytes.into() };
        let text = match self.text.take() {
            Some((known, text)) if known == row => text,
            _ => row.payload.text(row.bytes),
        };
        self.digest.add(id, text.as_bytes());
        self.text = Some((row, text));
    }

    fn add_all(&mut self, rows: impl Iterator<Item = (u64, Row)>, limit: u64) {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        rows.take(limit).for_each(|(id, row)| self.add(id, row));
    }
}

impl From<Found> for Expected {
    fn from(found: Found) -> Self {
        let Amount { rows, bytes } = found.amount;
        Self { rows, bytes, results: Some(found.digest.value()) }
    }
}

impl Model for UsersModel {
    fn execute(&mut self, part: &JobPart) -> Result<Expected> {
        let Users { payload_bytes, task, .. } = part.job.decode()?;
        let UsersTask::Operation { operation, .. } = task else {
            return check_single(part).map(|()| Expected::default());
        };
        if operation.selection().is_none() {
            check_single(part)?;
        }
        self.operation(&operation, part.from, part.count, payload_bytes)
    }

    fn content(&self) -> Digest {
        self.digest.value()
    }

    fn neighbours(&self, part: &JobPart) -> Option<Neighbours> {
        let Users { engine, payload_bytes, task } = part.job.decode().ok()?;
        let UsersTask::Operation { operation, .. } = task else { return None };
        let rows = operation.selection().filter(|_| operation.writes())?;
        let ids = IdSet::of(selected(rows, part.from, part.count).ok()?);
        self.neighbours_of(engine, &ids, payload_bytes)
    }

    fn between(&self, tables: &Job, from: u64, to: Option<u64>) -> Option<Digest> {
        let Users { engine, .. } = tables.decode().ok()?;
        if [Engine::APPEND, Engine::ARRAY].contains(&engine) {
            return None;
        }
        let mut found = Found::default();
        let rows = self.rows_from(from).take_while(|(id, _)| to.is_none_or(|to| *id < to));
        found.add_all(rows, u64::MAX);
        Some(found.digest.value())
    }

    fn fork(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }
}

/// Ids of [`stream`] are multiples of this.
const GRAIN: u64 = STEP / 2;

/// The endless stream of a seed: operations, and the bytes of the texts that they write.
///
/// Ids and lengths are from small ranges, so that operations collide: a good part of them must fail
/// and change nothing. Ids are multiples of half a [`STEP`].
pub fn stream(seed: u64) -> impl Iterator<Item = (Operation, u32)> {
    let mut rng = Rng::new(seed);
    std::iter::repeat_with(move || {
        let rows = selection(&mut rng);
        let operation = match rng.below(14) {
            0..5 => Operation::Insert(rows),
            5 | 6 => Operation::Overwrite(rows),
            7 | 8 => Operation::Update(rows),
            9 => Operation::Delete(rows),
            10 => Operation::Read(rows),
            11 => Operation::Range { from: rows, rows: rng.below(10) },
            12 => Operation::Scan(rng.below(200)),
            _ => Operation::Count,
        };
        (operation, rng.below(200) as u32)
    })
}

/// Equal distances more often than a list. A list has no order, and may contain an id twice.
fn selection(rng: &mut Rng) -> Selection {
    let (first, rows) = (GRAIN * rng.below(100), 1 + rng.below(12));
    if rng.below(3) > 0 {
        Selection::Step { first, step: GRAIN * (1 + rng.below(4)), rows }
    } else {
        Selection::List((0..rows).map(|_| GRAIN * rng.below(100)).collect())
    }
}

#[cfg(test)]
mod tests;
