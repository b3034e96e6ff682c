//! One case: a fork, brought into a state, that does its work and is checked.

use anyhow::{Result, bail};
use stablebench_protocol::{Engine, Measurement, Operation, Work, Worked};

use super::Runner;
use super::content::Known;
use super::spread::spread;
use super::staged;
use super::store::Populated;
use crate::interrupt;
use crate::replica::{Cost, Inside, Messages, Receipt, StableCalls, update};
use crate::results::{Detail, Measured, State};
use crate::suites::users::content::{Content, rows_of};
use crate::suites::users::task::{self, Task, narrowed, selection};
use crate::suites::users::{CasePlan, Section};

/// How work is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Update,
    Query,
}

impl Runner<'_> {
    /// Measures a case.
    pub(super) fn case(&self, store: &mut Populated<'_>, case: &CasePlan) -> Result<Measured> {
        let mut measured = match case.task {
            Task::One(work) => self.work(store, case.state, &work, work.operations)?,
            Task::Messages(work, each) => self.work(store, case.state, &work, each)?,
            Task::UpdateCapacity(work) => self.capacity(store, &work, Sent::Update)?,
            Task::QueryCapacity(work) => self.capacity(store, &work, Sent::Query)?,
        };
        let one_by_one = matches!(case.section, Section::Insert | Section::Work);
        if let (true, true, Task::One(work)) = (self.outline.each, one_by_one, case.task) {
            measured.each = self.each(store, case.state, &work)?;
        }
        Ok(measured)
    }

    /// Does work in messages of so many operations, in one fork, and checks.
    fn work(
        &self,
        store: &mut Populated<'_>,
        state: State,
        work: &task::Work,
        operations_a_message: u64,
    ) -> Result<Measured> {
        let Populated { canister, plan, content, digest, seen } = store;
        let engine = plan.setting.engine;
        let known = Known { engine, payload: plan.payload, content, digest: *digest };
        let operation = work.operation(content, self.outline.seed)?;
        content.check(&operation)?;
        let mut fork = canister.fork()?;
        prepare(&mut *fork, state)?;
        let mut sum: Option<Detail> = None;
        let mut instructions = 0;
        let mut done = 0;
        while done < work.operations {
            interrupt::check()?;
            let count = operations_a_message.min(work.operations - done);
            let operation = match count == work.operations {
                true => operation.clone(),
                false => narrowed(&operation, done, count),
            };
            let transaction = work.transaction;
            let (worked, receipt) =
                send(&mut *fork, Sent::Update, engine, operation, transaction, false)?;
            instructions += worked.measurement.instructions;
            sum = Some(add(sum, &worked.measurement, &receipt));
            done += count;
        }
        let Some(mut detail) = sum else {
            bail!("there is no work to do");
        };
        check_rows(content, plan.payload, &operation, &detail)?;
        if work.verb.writes() {
            detail.digest = Some(self.check_after(&mut *fork, &known, &operation, seen)?);
        }
        Ok(Measured {
            instructions,
            operations: work.operations,
            capacity: None,
            detail: Some(detail),
            each: None,
            phases: None,
        })
    }

    /// The same work in another fork, measured operation by operation; nothing where
    /// there is but one.
    fn each(
        &self,
        store: &mut Populated<'_>,
        state: State,
        work: &task::Work,
    ) -> Result<Option<crate::results::Spread>> {
        let operation = work.operation(&store.content, self.outline.seed)?;
        let Some(rows) = selection(&operation) else {
            return Ok(None);
        };
        if work.operations < 2 {
            return Ok(None);
        }
        let Populated { canister, plan, content, digest, seen } = store;
        let engine = plan.setting.engine;
        let known = Known { engine, payload: plan.payload, content, digest: *digest };
        let mut fork = canister.fork()?;
        prepare(&mut *fork, state)?;
        let (worked, _) =
            send(&mut *fork, Sent::Update, engine, operation.clone(), work.transaction, true)?;
        if work.verb.writes() {
            self.check_after(&mut *fork, &known, &operation, seen)?;
        }
        spread(&worked.each, task::ids(rows)).map(Some)
    }
}

/// What the canister says that it did must be what had to be done.
fn check_rows(
    content: &Content,
    payload: u32,
    operation: &Operation,
    detail: &Detail,
) -> Result<()> {
    let rows = rows_of(content, operation)?;
    if detail.rows != rows {
        bail!("the canister says that it was about {} rows, not {rows}", detail.rows);
    }
    let reads =
        matches!(operation, Operation::Read(_) | Operation::Range { .. } | Operation::Scan(_));
    let bytes = rows * u64::from(payload);
    if reads && detail.bytes != Some(bytes) {
        bail!("the canister read {:?} bytes of text, not {bytes}", detail.bytes);
    }
    Ok(())
}

/// Brings a fork into a state.
fn prepare(fork: &mut dyn Messages, state: State) -> Result<()> {
    match state {
        // The store itself was churned.
        State::Warm | State::Churned | State::ChurnedAndVacuumed => Ok(()),
        State::Closed => update::<()>(fork, "close_connection", ()).map(drop),
        State::Upgraded => fork.upgrade(),
        State::Vacuumed => update::<Measurement>(fork, "vacuum", ()).map(drop),
    }
}

/// Sends work as an update or a query.
pub(super) fn send(
    canister: &mut dyn Messages,
    sent: Sent,
    engine: Engine,
    operation: Operation,
    transaction: Option<u64>,
    each: bool,
) -> Result<(Worked, Receipt)> {
    let work = Work { engine, operation, transaction, each };
    match sent {
        Sent::Update => staged::work(canister, &work),
        Sent::Query => staged::look(canister, &work),
    }
}

/// Counts a message in.
pub(super) fn add(sum: Option<Detail>, measured: &Measurement, receipt: &Receipt) -> Detail {
    let cost = receipt.cost;
    let after = measured.message_instructions;
    let before = after.saturating_sub(measured.instructions);
    let message = Detail {
        messages: 1,
        counter_overhead: measured.counter_overhead,
        message_instructions: measured.message_instructions,
        rows: measured.rows,
        bytes: Some(measured.bytes),
        heap_pages_before: measured.heap_pages_before,
        heap_pages_after: measured.heap_pages_after,
        stable_pages_before: measured.stable_pages_before,
        stable_pages_after: measured.stable_pages_after,
        cost,
        pages: receipt.readings.between(before, after),
        digest: None,
        stored: None,
    };
    let Some(sum) = sum else {
        return message;
    };
    Detail {
        messages: sum.messages + 1,
        message_instructions: sum.message_instructions + message.message_instructions,
        rows: sum.rows + message.rows,
        bytes: sum.bytes.zip(message.bytes).map(|(sum, more)| sum + more),
        heap_pages_after: message.heap_pages_after,
        stable_pages_after: message.stable_pages_after,
        pages: sum.pages.zip(message.pages).map(|(sum, more)| sum + more),
        cost: Cost {
            cycles: sum.cost.cycles + cost.cycles,
            inside: sum.cost.inside.zip(cost.inside).map(|(sum, more)| add_inside(sum, more)),
        },
        ..sum
    }
}

fn add_inside(sum: Inside, more: Inside) -> Inside {
    let calls = sum.stable_calls.zip(more.stable_calls);
    Inside {
        instructions: sum.instructions + more.instructions,
        charge: sum.charge + more.charge,
        heap_pages_changed: sum.heap_pages_changed + more.heap_pages_changed,
        stable_pages_accessed: sum.stable_pages_accessed + more.stable_pages_accessed,
        stable_pages_written: sum.stable_pages_written + more.stable_pages_written,
        stable_calls: calls.map(|(sum, more)| StableCalls {
            reads: sum.reads + more.reads,
            bytes_read: sum.bytes_read + more.bytes_read,
            writes: sum.writes + more.writes,
            bytes_written: sum.bytes_written + more.bytes_written,
        }),
        pages: sum.pages.zip(more.pages).map(|(sum, more)| sum + more),
    }
}
