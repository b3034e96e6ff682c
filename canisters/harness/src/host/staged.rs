//! Staged work: what a measured message does, made ready by a message before it.
//!
//! ```text
//!   stage_work, stage_part   decode, check, expand: keys, texts, parameters
//!   run                      the work, measured; without work, the harness alone
//!   stage_…                  drops what was run before
//! ```
//!
//! So a measured message costs what the work costs, and next to nothing beside it. Whether
//! ids are there is not looked for: that would load pages which the work then finds
//! loaded. Who stages work knows what is there, and reads the content back.

use super::perform::perform;
use super::task::Task;
use super::{Host, measure};
use crate::{Canister, suites};
use stablebench_protocol::{Error, Part, Result, Work, Worked};
use stablebench_workload::Amount;

/// Does work that was made ready, measured.
pub type Run<C> = Box<dyn Fn(&mut C) -> Result<Worked>>;

/// Work that was made ready.
pub struct Staged<C> {
    run: Run<C>,
    writes: bool,
}

impl<C: Canister> Host<C> {
    /// Makes work ready for [`run`](Self::run). The engine is not touched.
    ///
    /// # Errors
    ///
    /// If the arguments are unsound.
    pub fn stage_work(&mut self, work: Work) -> Result<()> {
        let (task, manner) = self.parse(&work)?;
        let (writes, payload) = (task.writes(), task.payload(self.payload_bytes));
        let limit = self.max_rows();
        let run = move |canister: &mut C| {
            let task = Task::new(&work.operation, limit)?;
            let engine = canister.engine(work.engine)?;
            engine.prepare()?;
            perform(engine, &task, &payload, manner)
        };
        self.stage(Staged { run: Box::new(run), writes });
        Ok(())
    }

    /// Makes a part of a job ready for [`run`](Self::run).
    ///
    /// # Errors
    ///
    /// If the canister cannot do it.
    pub fn stage_part(&mut self, part: &Part) -> Result<()> {
        let run = suites::staged(part)?;
        self.stage(Staged { run, writes: true });
        Ok(())
    }

    /// Does what was staged, once. Where nothing is staged, measures no work: what is left of
    /// the message is the harness.
    ///
    /// # Errors
    ///
    /// The engine's.
    pub fn run(&mut self) -> Result<Worked> {
        let Some(staged) = self.staged.take() else {
            let measurement = measure(|| Ok(Amount::default()))?;
            return Ok(Worked { measurement, each: Vec::new() });
        };
        let worked = (staged.run)(&mut self.canister);
        // Dropping its rows is no part of the message either.
        self.ran = Some(staged);
        worked
    }

    /// Does staged work that changes no rows.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run); where the work may change rows.
    pub fn run_query(&mut self) -> Result<Worked> {
        if self.staged.as_ref().is_some_and(|staged| staged.writes) {
            return Err(Error::WritesInQuery);
        }
        self.run()
    }

    fn stage(&mut self, staged: Staged<C>) {
        self.ran = None;
        self.staged = Some(staged);
    }
}
