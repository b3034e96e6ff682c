//! One canister: populated, and then forked for each of its cases.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use stablebench_protocol::{
    Description, Digest, Engine, LeveldbConfig, Measurement, SqliteSettings,
};
use stablebench_workload::{Ids, ids::STEP};

use super::earlier::EARLIER;
use super::seen::Seen;
use super::{Runner, refused};
use crate::interrupt;
use crate::progress::Step;
use crate::replica::{Canister, Messages, query, update};
use crate::report::number::Grouped;
use crate::results::{Case, Held, Measured, Outcome, State, Store};
use crate::suites::outline::StoreKey;
use crate::suites::users::content::Content;
use crate::suites::users::{CasePlan, StorePlan};

/// A populated canister and what it must hold.
pub(super) struct Populated<'a> {
    pub canister: &'a mut dyn Canister,
    pub plan: &'a StorePlan,
    pub content: Content,
    pub digest: Digest,
    /// What was read back from forks of it.
    pub seen: Seen,
}

impl Runner<'_> {
    /// Measures what is not measured yet of a store.
    pub fn store(&self, plan: &StorePlan) -> Result<()> {
        self.populated(plan).with_context(|| plan.setting.key())
    }

    fn populated(&self, plan: &StorePlan) -> Result<()> {
        let todo: Vec<&CasePlan> = plan
            .cases
            .iter()
            .filter(|case| !self.is_measured(&case.section.name(), &case.name, &plan.setting.key()))
            .collect();
        let known = self.known(&plan.key());
        if todo.is_empty() && known.is_some() {
            return Ok(());
        }
        let key = plan.setting.key();
        let label =
            format!("{key}, {} rows of {} bytes", Grouped(plan.rows), Grouped(plan.payload.into()));
        let step = self.progress.step(&label, "rows", plan.rows);
        let began = Instant::now();
        let content = Content::populated(plan.rows);
        let digest = content.digest(plan.payload);
        let (mut canister, held, how) = match self.earlier_store(plan, digest, began) {
            Some((canister, held)) => (canister, held, EARLIER),
            None => {
                let mut canister = self.replica.install(self.wasm(&plan.setting.column())?)?;
                let held = match self.fill(&mut *canister, plan, digest, &step, began) {
                    Ok(held) => held,
                    Err(error) => return self.keep_refused(plan, error),
                };
                self.leave_store(plan, &*canister, &held);
                (canister, held, "")
            }
        };
        if let Some(mut known) = known {
            known.wall_milliseconds = held.wall_milliseconds;
            if known != held {
                bail!(
                    "{key} does not hold what the run to go on with says; begin anew, without \
                     --resume"
                );
            }
        } else {
            self.keep_store(stored(plan, Outcome::Measured(held)))?;
        }
        let seen = self.earlier_digests(plan);
        let mut populated = Populated { canister: &mut *canister, plan, content, digest, seen };
        self.cases(&mut populated, &todo, &step)?;
        let Seen { known, asked, .. } = populated.seen;
        let known = match known {
            0 => String::new(),
            known => format!(", {known} of {asked} contents read back earlier"),
        };
        step.done(&format!("{:.1} s{how}{known}", began.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Cases of the populated store in forks; then the store itself is changed.
    fn cases(&self, store: &mut Populated<'_>, todo: &[&CasePlan], step: &Step) -> Result<()> {
        step.next("cases", todo.len() as u64);
        let of = |states: &[State]| -> Vec<&CasePlan> {
            todo.iter().copied().filter(|case| states.contains(&case.state)).collect()
        };
        let fresh = [State::Warm, State::Closed, State::Upgraded, State::Vacuumed];
        let measured = self.measure_all(store, &of(&fresh), step);
        self.leave_digests(store.plan, &store.seen);
        measured?;
        let (churned, vacuumed) = (of(&[State::Churned]), of(&[State::ChurnedAndVacuumed]));
        if churned.is_empty() && vacuumed.is_empty() {
            return Ok(());
        }
        let engine = store.plan.setting.engine;
        step.says("random deletes and inserts");
        let churn = store.content.churn(self.outline.seed);
        if let Err(error) = self.churn(store.canister, engine, &churn) {
            return self.keep_refused_cases(store.plan, &[churned, vacuumed].concat(), error);
        }
        store.content = store.content.churned(&churn);
        store.digest = store.content.digest(store.plan.payload);
        store.seen.forget();
        self.check(store.canister, engine, store.digest)?;
        self.measure_all(store, &churned, step)?;
        if !vacuumed.is_empty() {
            if let Err(error) = update::<Measurement>(store.canister, "vacuum", ()) {
                return self.keep_refused_cases(store.plan, &vacuumed, error);
            }
            store.seen.forget();
            self.check(store.canister, engine, store.digest)?;
            self.measure_all(store, &vacuumed, step)?;
        }
        Ok(())
    }

    /// A state that cannot be reached refuses its cases, not the run.
    fn keep_refused_cases(
        &self,
        plan: &StorePlan,
        cases: &[&CasePlan],
        error: anyhow::Error,
    ) -> Result<()> {
        let outcome = refused(error)?;
        cases.iter().try_for_each(|case| self.keep_case(measured(plan, case, outcome.clone())))
    }

    fn measure_all(
        &self,
        store: &mut Populated<'_>,
        cases: &[&CasePlan],
        step: &Step,
    ) -> Result<()> {
        for case in cases {
            interrupt::check()?;
            step.says(format!("{}: {}", case.section.name(), case.name));
            let outcome = match self.case(store, case) {
                Ok(measured) => Outcome::Measured(measured),
                Err(error) => refused(error).with_context(|| case.name.clone())?,
            };
            self.keep_case(measured(store.plan, case, outcome))?;
            step.advance();
        }
        Ok(())
    }

    /// Configures, populates, checks, and tells what is held then.
    fn fill(
        &self,
        canister: &mut dyn Messages,
        plan: &StorePlan,
        digest: Digest,
        step: &Step,
        began: Instant,
    ) -> Result<Held> {
        let engine = plan.setting.engine;
        update::<()>(canister, "set_payload", (plan.payload,))?;
        if engine == Engine::Sqlite {
            // The canister reads the settings back and refuses what was not taken.
            update::<SqliteSettings>(canister, "configure_sqlite", (plan.setting.sqlite,))?;
        }
        if engine == Engine::Leveldb {
            update::<LeveldbConfig>(canister, "configure_leveldb", (plan.setting.leveldb,))?;
        }
        let all = Ids::new(0, STEP, plan.rows)?;
        let populate = self.populate(canister, engine, all, step)?;
        let digest = self.check(canister, engine, digest)?;
        let description: Description = query(canister, "describe", ())?;
        let held = description.engines.iter().find(|held| held.engine == engine);
        let held = held.context("the canister does not tell what its engine holds")?;
        let sqlite = match engine {
            Engine::Sqlite => Some(query::<SqliteSettings>(canister, "sqlite_settings", ())?),
            _ => None,
        };
        Ok(Held {
            sqlite,
            populate,
            stored_bytes: held.stored_bytes,
            virtual_bytes: Some(held.virtual_bytes),
            cache_bytes: Some(held.cache_bytes),
            heap_pages: description.heap_pages,
            stable_pages: description.stable_pages,
            digest,
            wall_milliseconds: self.wall_milliseconds(began),
        })
    }

    /// What refuses to be populated refuses all cases.
    fn keep_refused(&self, plan: &StorePlan, error: anyhow::Error) -> Result<()> {
        let outcome: Outcome<Held> = refused(error)?;
        let reason = match &outcome {
            Outcome::Measured(_) => String::new(),
            Outcome::NotApplicable { reason } | Outcome::Failed { reason } => reason.clone(),
        };
        self.progress.note(&format!(
            "{}, {} rows: {reason}",
            plan.setting.key(),
            Grouped(plan.rows)
        ));
        for case in &plan.cases {
            let outcome = match &outcome {
                Outcome::NotApplicable { .. } => Outcome::NotApplicable { reason: reason.clone() },
                _ => Outcome::Failed { reason: reason.clone() },
            };
            self.keep_case(measured(plan, case, outcome))?;
        }
        self.keep_store(stored(plan, outcome))
    }
}

fn stored(plan: &StorePlan, outcome: Outcome<Held>) -> Store {
    let StoreKey { column, name, rows, payload } = plan.key();
    Store { column, name, rows, payload, outcome }
}

fn measured(store: &StorePlan, case: &CasePlan, outcome: Outcome<Measured>) -> Case {
    Case {
        section: case.section.name(),
        name: case.name.clone(),
        column: store.setting.key(),
        rows: store.rows,
        payload: store.payload,
        state: case.state,
        outcome,
    }
}
