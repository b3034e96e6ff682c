//! The embedded replica, which profiles the messages that are measurements.
//!
//! Each is executed twice from the same state: as always, which says what was measured, and
//! in the profiled form. Both must answer and cost the same.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail, ensure};
use candid::CandidType;
use serde::Deserialize;
use stablebench_protocol::Measurement;
use stablebench_replica::{Canister as Inner, Execution, Instructions, Principal, Profile, Span};

use super::Flame;
use crate::replica::decoding::decode_one;
use crate::replica::embedded::{Embedded, answer};
use crate::replica::{Answer, Canister, Identity, Messages, Replica, Trust};

/// The replica.
pub struct Profiler {
    replica: Embedded,
    found: Found,
}

/// What was found so far.
#[derive(Clone)]
struct Found {
    /// Whether messages are profiled as a whole, not only what they measure.
    whole: bool,
    flame: Arc<Mutex<Flame>>,
}

impl Profiler {
    /// Profiles measurements on that replica, or whole messages with measurements.
    pub fn new(replica: Embedded, whole: bool) -> Self {
        Self { replica, found: Found { whole, flame: Arc::default() } }
    }

    /// The profile of all of them.
    pub fn flame(&self) -> Flame {
        self.found.flame.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn canister(&self, inner: Inner) -> Box<dyn Canister> {
        Box::new(Profiled { inner, found: self.found.clone() })
    }
}

impl Replica for Profiler {
    fn identity(&self) -> Identity {
        self.replica.identity()
    }

    fn install(&self, wasm: &[u8]) -> Result<Box<dyn Canister>> {
        Ok(self.canister(self.replica.installed(wasm)?))
    }

    fn load(
        &self,
        wasm: &[u8],
        path: &Path,
        trust: Trust,
    ) -> Result<Option<(Box<dyn Canister>, String)>> {
        let loaded = self.replica.loaded(wasm, path, trust)?;
        Ok(loaded.map(|(inner, note)| (self.canister(inner), note)))
    }
}

/// A canister whose measurements are profiled, or a fork of one.
struct Profiled {
    inner: Inner,
    found: Found,
}

/// What every method that measures answers, and more.
#[derive(CandidType, Deserialize)]
struct Answered {
    measurement: Measurement,
}

impl Messages for Profiled {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Messages::update(&mut self.inner, method, argument)
    }

    fn call_id(&mut self) -> u64 {
        Messages::call_id(&mut self.inner)
    }

    fn measure(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        let mut twin = self.inner.fork();
        let execution = self.inner.update(Principal::anonymous(), method, argument)?;
        let Ok(reply) = &execution.outcome else {
            return Ok(answer(execution));
        };
        let answered: stablebench_protocol::Result<Answered> = decode_one(reply)?;
        let Ok(Answered { measurement }) = answered else {
            return Ok(answer(execution));
        };
        let measured = measurement.instructions;
        let to = measurement.message_instructions;
        ensure!(measured <= to, "the canister measured {measured} of {to} instructions");
        let span = match self.found.whole {
            true => Span::Message,
            false => Span::Between { from: Instructions(to - measured), to: Instructions(to) },
        };
        let (again, profile) =
            twin.profile_update(Principal::anonymous(), method, argument, span)?;
        check(&execution, &again, &profile, span)?;
        self.found.flame.lock().unwrap_or_else(PoisonError::into_inner).add(&profile)?;
        Ok(answer(execution))
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Messages::query(&mut self.inner, method, argument)
    }

    fn query_all(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Messages::query_all(&mut self.inner, method, argument)
    }

    fn upgrade(&mut self) -> Result<()> {
        Messages::upgrade(&mut self.inner)
    }
}

impl Canister for Profiled {
    fn fork(&mut self) -> Result<Box<dyn Messages + '_>> {
        Ok(Box::new(Self { inner: self.inner.fork(), found: self.found.clone() }))
    }

    fn save(&self, path: &Path, note: &str) -> Result<bool> {
        Canister::save(&self.inner, path, note)
    }
}

/// Holds a profiled message against the same message as it is always executed, and the
/// profile against what was counted.
pub fn check(
    normal: &Execution,
    profiled: &Execution,
    profile: &Profile,
    span: Span,
) -> Result<()> {
    let of = |execution: &Execution| {
        let Execution { instructions, charge, cycles, memory, stable_calls, .. } = execution;
        (*instructions, *charge, *cycles, *memory, *stable_calls)
    };
    if normal.outcome != profiled.outcome || of(normal) != of(profiled) {
        bail!(
            "the profiled message did something else ({:?} instead of {:?}): this is a bug, unless \
             it used up its stack",
            of(profiled),
            of(normal)
        );
    }
    let counted = match span {
        Span::Message => normal.instructions,
        Span::Between { from, to } => to - from,
    };
    let sum: u64 = profile.nodes.iter().map(|node| node.instructions.get()).sum();
    ensure!(
        sum == counted.get() && profile.instructions == counted,
        "the profile holds {sum} instructions, but {counted} were counted: this is a bug"
    );
    Ok(())
}
