//! The embedded replica with a profiler for messages that are measurements.
//!
//! Each is executed twice from the same state: normally, which gives the measurement, and in the
//! profiled form. Both must have the same answers and costs.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail, ensure};
use candid::CandidType;
use serde::Deserialize;
use stablebench_protocol::Measurement;
use stablebench_replica::{Canister as Inner, Execution, Instructions, Principal, Profile, Span};

use super::flame::Flame;
use crate::replica::decoding::decode_one;
use crate::replica::embedded::{Embedded, needs_subnet};
use crate::replica::executed::answer;
use crate::replica::{Answer, Canister, Cost, Identity, Messages, Replica, SubnetKind};

/// A replica that profiles measurements.
pub struct Profiler {
    replica: Embedded,
    profiles: Profiles,
}

/// The profiles so far.
#[derive(Clone)]
struct Profiles {
    /// `true` if whole messages are profiled, `false` if only their measured parts.
    whole: bool,
    flame: Arc<Mutex<Flame>>,
}

impl Profiler {
    /// Profiles measurements on a replica, or whole messages with measurements.
    pub fn new(replica: Embedded, whole: bool) -> Self {
        Self { replica, profiles: Profiles { whole, flame: Arc::default() } }
    }

    /// Returns the profile of all of them.
    pub fn flame(&self) -> Flame {
        self.profiles.flame.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn canister(&self, inner: Inner) -> Box<dyn Canister> {
        Box::new(Profiled { inner, profiles: self.profiles.clone() })
    }
}

impl Replica for Profiler {
    fn identity(&self) -> Identity {
        self.replica.identity()
    }

    fn install(&self, wasm: &[u8]) -> Result<Box<dyn Canister>> {
        ensure!(
            !needs_subnet(wasm),
            "messages of a canister that calls others or sets timers cannot be profiled"
        );
        Ok(self.canister(self.replica.installed(wasm)?))
    }

    fn load(&self, wasm: &[u8], path: &Path) -> Result<Option<(Box<dyn Canister>, String)>> {
        let loaded = self.replica.loaded(wasm, path)?;
        Ok(loaded.map(|(inner, note)| (self.canister(inner), note)))
    }
}

/// A canister whose measurements are profiled, or a fork of one.
struct Profiled {
    inner: Inner,
    profiles: Profiles,
}

/// The part of a reply that all measuring methods have.
#[derive(CandidType, Deserialize)]
struct MeasuredReply {
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
        let answered: stablebench_protocol::Result<MeasuredReply> = decode_one(reply)?;
        let Ok(MeasuredReply { measurement }) = answered else {
            return Ok(answer(execution));
        };
        let measured = measurement.instructions;
        let to = measurement.message_instructions;
        ensure!(measured <= to, "the canister measured {measured} of {to} instructions");
        let span = match self.profiles.whole {
            true => Span::Message,
            false => Span::Between { from: Instructions(to - measured), to: Instructions(to) },
        };
        let (again, profile) =
            twin.profile_update(Principal::anonymous(), method, argument, span)?;
        check(&execution, &again, &profile, span)?;
        self.profiles.flame.lock().unwrap_or_else(PoisonError::into_inner).add(&profile)?;
        Ok(answer(execution))
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Messages::query(&mut self.inner, method, argument)
    }

    fn query_all(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Messages::query_all(&mut self.inner, method, argument)
    }

    fn upgrade(&mut self) -> Result<Cost> {
        Messages::upgrade(&mut self.inner)
    }
}

impl Canister for Profiled {
    fn fork(&mut self) -> Result<Box<dyn Messages + '_>> {
        Ok(Box::new(Self { inner: self.inner.fork(), profiles: self.profiles.clone() }))
    }

    fn lift_limits(&mut self) -> Option<SubnetKind> {
        Canister::lift_limits(&mut self.inner)
    }

    fn set_limits(&mut self, subnet: SubnetKind) {
        Canister::set_limits(&mut self.inner, subnet);
    }

    fn save(&self, path: &Path, note: &str) -> Result<bool> {
        Canister::save(&self.inner, path, note)
    }
}

/// Compares a profiled message with the normally executed one.
pub fn check_equal(normal: &Execution, profiled: &Execution) -> Result<()> {
    let of = |execution: &Execution| {
        let Execution { instructions, charge, cycles, memory, stable_calls, .. } = execution;
        (*instructions, *charge, *cycles, *memory, *stable_calls)
    };
    let overflows = |execution: &Execution| {
        execution.outcome.as_ref().is_err_and(|reject| reject.message.contains("stack overflow"))
    };
    if normal.outcome != profiled.outcome || of(normal) != of(profiled) {
        if overflows(normal) || overflows(profiled) {
            bail!(
                "its stack overflows, and functions with a profile need more of it, so there is no \
                 profile; stablebench call shows what it costs"
            );
        }
        bail!(
            "the profiled message differs ({:?} instead of {:?}): this is a bug, unless it exhausted \
             its stack",
            of(profiled),
            of(normal)
        );
    }
    Ok(())
}

/// Compares a profiled message with the normally executed one, and the profile with the counts.
pub fn check(
    normal: &Execution,
    profiled: &Execution,
    profile: &Profile,
    span: Span,
) -> Result<()> {
    check_equal(normal, profiled)?;
    let counted = match span {
        Span::Message => normal.instructions,
        Span::Between { from, to } => to - from,
    };
    let sum: u64 = profile.nodes.iter().map(|node| node.instructions.get()).sum();
    ensure!(
        sum == counted.get() && profile.instructions == counted,
        "the profile contains {sum} instructions, but {counted} were counted: this is a bug"
    );
    Ok(())
}
