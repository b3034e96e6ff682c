//! Populated canisters that earlier runs have left, and leaving them for later ones.

use std::time::Instant;

use stablebench_protocol::{Digest, Part};
use stablebench_workload::Tables;

use super::seen::Seen;
use super::{Runner, lock};
use crate::cache::{Setup, Stored};
use crate::replica::{Canister, Trust};
use crate::results::Held;
use crate::suites::lane::Lane;
use crate::suites::users::StorePlan;

/// What is said of a canister that an earlier run has populated.
pub(super) const EARLIER: &str = ", populated earlier";

/// A lane as an earlier run has populated it.
pub(super) struct EarlierLane {
    pub canister: Box<dyn Canister>,
    pub held: Held,
    /// Its tables as they are then.
    pub tables: Box<dyn Tables>,
}

impl Runner<'_> {
    /// The store with that digest as an earlier run has populated it.
    pub(super) fn earlier_store(
        &self,
        plan: &StorePlan,
        digest: Digest,
        began: Instant,
    ) -> Option<(Box<dyn Canister>, Held)> {
        let setup = self.setup(Stored::users(plan));
        let is_it = |held: &Held| held.digest == digest;
        // Its forks may not be read back, which would find what a stamp does not tell of.
        let trust = Trust::Nothing;
        let wasm = self.wasm(&plan.setting.column()).ok()?;
        let (canister, held) = self.cache?.take(self.replica, wasm, &setup, trust, is_it)?;
        Some((canister, Held { wall_milliseconds: self.wall_milliseconds(began), ..held }))
    }

    /// Leaves a populated store for later runs.
    pub(super) fn leave_store(&self, plan: &StorePlan, canister: &dyn Canister, held: &Held) {
        if let Some(cache) = self.cache {
            cache.keep(canister, self.setup(Stored::users(plan)), held);
        }
    }

    /// What earlier runs have read back from forks of the store.
    pub(super) fn earlier_digests(&self, plan: &StorePlan) -> Seen {
        let known = self.cache.map(|cache| cache.digests(&self.setup(Stored::users(plan))));
        Seen::with(known.unwrap_or_default())
    }

    /// Leaves what was read back for later runs.
    pub(super) fn leave_digests(&self, plan: &StorePlan, seen: &Seen) {
        if let Some((cache, digests)) = self.cache.zip(seen.news()) {
            cache.keep_digests(&self.setup(Stored::users(plan)), &digests);
        }
    }

    /// What the populated lane depends on, if it can be left and what populates it is not
    /// measured.
    pub(super) fn lane_setup(&self, lane: &Lane) -> Option<Setup> {
        self.cache?;
        Stored::lane(lane, self.outline.seed).map(|stored| self.setup(stored))
    }

    /// The lane as an earlier run has populated it.
    pub(super) fn earlier_lane(&self, lane: &Lane, setup: Option<&Setup>) -> Option<EarlierLane> {
        let (cache, setup) = self.cache.zip(setup)?;
        let mut tables = (lane.tables)(lane);
        let is_it = |held: &Held| {
            for step in &lane.steps[..lane.populated] {
                let (job, seed) = (step.job.clone(), self.outline.seed);
                tables.perform(&Part { job, seed, from: 0, count: step.operations, each: false });
            }
            held.digest == tables.content()
        };
        let wasm = self.wasm(&lane.column).ok()?;
        let (canister, held) = cache.take(self.replica, wasm, setup, Trust::Stamp, is_it)?;
        Some(EarlierLane { canister, held, tables })
    }

    /// Leaves a populated lane for later runs.
    pub(super) fn leave_lane(&self, setup: Option<&Setup>, canister: &dyn Canister, held: &Held) {
        if let Some((cache, setup)) = self.cache.zip(setup) {
            cache.keep(canister, setup.clone(), held);
        }
    }

    fn setup(&self, stored: Stored) -> Setup {
        let module = lock(&self.found).results.module(&stored.column().canister).map(str::to_owned);
        Setup::new(self.replica.identity(), module.unwrap_or_default(), stored)
    }
}
