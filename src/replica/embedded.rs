//! The embedded replica: canisters run in this process.
//!
//! A canister that calls others runs on a subnet:
//!
//! ```text
//!   message ──→ its execution ──→ calls, callbacks, heartbeats, timers ──→ answer, and what is left
//!               └──────────────── all of it is the cost of the message ────────────────┘
//! ```
//!
//! Cycles that came with a call and stay in the canister that was called are no cost.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use stablebench_replica::cache::Note;
use stablebench_replica::subnet::{Call, Executed, Halt, Subnet};
use stablebench_replica::{
    Difference, Effort, LoadError, Module, Principal, Rules, Settings, SubnetKind,
};

use super::{
    Answer, Canister, Copied, Cost, Identity, Inside, Messages, Messaging, Readings, Replica,
    answer_of, cycles, inside, readings, reject,
};
use crate::canisters;
use crate::interrupt;
use crate::progress::Progress;

/// The replica in this process.
#[derive(Clone, Debug)]
pub struct Embedded {
    replica: stablebench_replica::Replica,
    /// Shows the compiling of modules, which takes up to a minute if they are not cached.
    progress: Progress,
    /// The modules shown so far. Several threads may need the same module at once.
    shown: Arc<Mutex<BTreeSet<String>>>,
}

impl Embedded {
    /// Starts a replica that compiles modules with this effort, and keeps them in the folder `cache`.
    /// `note` is called if that fails.
    pub fn new(
        effort: Effort,
        rules: Rules,
        cache: Option<PathBuf>,
        note: impl Fn(Note) + Send + Sync + 'static,
    ) -> Result<Self> {
        let replica = stablebench_replica::Replica::with_effort(effort, rules, cache, note)?;
        Ok(Self { replica, progress: Progress::Quiet, shown: Arc::default() })
    }

    /// Shows the compiling of modules.
    #[must_use]
    pub fn with_progress(self, progress: &Progress) -> Self {
        Self { progress: progress.clone(), ..self }
    }

    /// The progress that shows the compiling of modules.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Returns the replica itself.
    pub fn inner(&self) -> &stablebench_replica::Replica {
        &self.replica
    }

    /// Compiles a module; returns early if Ctrl-C is pressed.
    pub fn compile(&self, wasm: &[u8]) -> Result<Module> {
        let (replica, own) = (self.replica.clone(), wasm.to_vec());
        self.compiled(wasm, move || replica.compile(&own))
    }

    /// Compiles a module for a canister of a subnet; returns early if Ctrl-C is pressed.
    pub fn compile_for_subnet(&self, id: Principal, wasm: &[u8]) -> Result<Module> {
        let (replica, own) = (self.replica.clone(), wasm.to_vec());
        self.compiled(wasm, move || replica.compile_for_subnet(&id, &own))
    }

    fn compiled<E: std::error::Error + Send + Sync + 'static>(
        &self,
        wasm: &[u8],
        compile: impl FnOnce() -> Result<Module, E> + Send + 'static,
    ) -> Result<Module> {
        let name = canisters::name_of(wasm).unwrap_or_else(|| {
            // The size tells modules apart.
            format!("a module of {:.1} MB", wasm.len() as f64 / 1e6)
        });
        let is_new = self.shown.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        let progress = if is_new { &self.progress } else { &Progress::Quiet };
        let step = progress.spinner(&format!("compiling {name}"));
        let compiled = interrupt::abandonable(compile)?;
        step.done("");
        compiled.context("the module was refused")
    }

    /// Creates a canister and installs the module without Candid arguments.
    pub fn installed(&self, wasm: &[u8]) -> Result<stablebench_replica::Canister> {
        self.installed_after(wasm, |_| Ok(()))
    }

    /// Creates a canister, prepares it with `before`, and installs the module.
    fn installed_after(
        &self,
        wasm: &[u8],
        before: impl FnOnce(&mut stablebench_replica::Canister) -> Result<()>,
    ) -> Result<stablebench_replica::Canister> {
        let module = self.compile(wasm)?;
        install(self.replica.create_canister()?, &module, before)
    }

    /// Creates the canister with this id on a subnet.
    pub fn created_on_subnet(&self, id: Principal) -> Result<stablebench_replica::Canister> {
        let usual = self.replica.create_canister()?;
        let settings = Settings { id, ..usual.settings().clone() };
        Ok(stablebench_replica::Canister::new(settings)?)
    }

    /// Creates a canister and installs the module with an argument. Returns the cost, too.
    pub fn installed_with(
        &self,
        wasm: &[u8],
        argument: &[u8],
    ) -> Result<(Box<dyn Canister>, Cost)> {
        if needs_subnet(wasm) {
            let mut canister = self.replica.create_canister()?;
            let module = self.compile_for_subnet(canister.id(), wasm)?;
            let cost = install_with(&mut canister, &module, argument)?;
            return Ok((Box::new(OnSubnet::new(&self.replica, canister)?), cost));
        }
        let module = self.compile(wasm)?;
        let mut canister = self.replica.create_canister()?;
        let cost = install_with(&mut canister, &module, argument)?;
        Ok((Box::new(canister), cost))
    }

    /// Loads a saved canister with this module, and its note, or `None` if there is no such file.
    pub fn loaded(
        &self,
        wasm: &[u8],
        path: &Path,
    ) -> Result<Option<(stablebench_replica::Canister, String)>> {
        let module = self.compile(wasm)?;
        match self.replica.load_with_note(path, &module) {
            Ok(loaded) => Ok(Some(loaded)),
            Err(LoadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns `true` if a module can call other canisters or set timers, and so runs on a subnet only.
pub fn needs_subnet(wasm: &[u8]) -> bool {
    ["call_new", "global_timer_set"].iter().any(|function| canisters::imports(wasm, function))
}

fn install(
    mut canister: stablebench_replica::Canister,
    module: &Module,
    before: impl FnOnce(&mut stablebench_replica::Canister) -> Result<()>,
) -> Result<stablebench_replica::Canister> {
    before(&mut canister)?;
    install_with(&mut canister, module, &candid::encode_args(())?)?;
    Ok(canister)
}

/// Installs a module with an argument, and returns the cost.
pub fn install_with(
    canister: &mut stablebench_replica::Canister,
    module: &Module,
    argument: &[u8],
) -> Result<Cost> {
    let installed = answer_of(canister.install(module, Principal::anonymous(), argument)?);
    installed.outcome.context("installing failed")?;
    Ok(installed.cost)
}

impl Replica for Embedded {
    fn identity(&self) -> Identity {
        Identity {
            kind: "embedded".to_owned(),
            version: stablebench_replica::VERSION.to_owned(),
            subnet: self.replica.rules().subnet().to_string(),
            rules: self.replica.rules().to_string(),
        }
    }

    fn install(&self, wasm: &[u8]) -> Result<Box<dyn Canister>> {
        let (canister, _) = self.installed_with(wasm, &candid::encode_args(())?)?;
        Ok(canister)
    }

    fn installation(&self, wasm: &[u8]) -> Result<Option<Cost>> {
        let (_, cost) = self.installed_with(wasm, &candid::encode_args(())?)?;
        Ok(Some(cost))
    }

    fn compiling(&self, wasm: &[u8]) -> Result<Option<u64>> {
        Ok(Some(self.compile(wasm)?.compiling().get()))
    }

    fn load(&self, wasm: &[u8], path: &Path) -> Result<Option<(Box<dyn Canister>, String)>> {
        let loaded = self.loaded(wasm, path)?;
        Ok(loaded.map(|(canister, note)| (Box::new(canister) as Box<dyn Canister>, note)))
    }
}

impl Messages for stablebench_replica::Canister {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Ok(answer_of(self.update(Principal::anonymous(), method, argument)?))
    }

    fn measure(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.report_readings(stablebench_replica::Readings::Reported);
        let execution = self.update(Principal::anonymous(), method, argument);
        self.report_readings(stablebench_replica::Readings::Ignored);
        Ok(answer_of(execution?))
    }

    fn measure_query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.report_readings(stablebench_replica::Readings::Reported);
        let execution = Self::query(self, Principal::anonymous(), method, argument);
        self.report_readings(stablebench_replica::Readings::Ignored);
        Ok(answer_of(execution?))
    }

    /// Every update makes a new version. Ids of equal canisters are equal, and so are the heaps that
    /// contain them.
    fn call_id(&mut self) -> u64 {
        self.version() + 1
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Ok(answer_of(Self::query(self, Principal::anonymous(), method, argument)?))
    }

    fn query_all(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        let execution = Self::query_all(self, Principal::anonymous(), method, argument)?;
        // Its counts are not those of an ordinary query.
        Ok(Answer { cost: Cost::default(), ..answer_of(execution) })
    }

    fn copies(&self) -> Option<[Copied; 2]> {
        Some([self, self].map(|canister| Copied::from(canister.fork())))
    }

    fn upgrade(&mut self) -> Result<Cost> {
        let module = self.module().context("there is no module to upgrade to")?.clone();
        let argument = candid::encode_args(())?;
        let caller = Principal::anonymous();
        let upgraded = answer_of(match module.has_enhanced_persistence() {
            true => self.upgrade_keeping_heap(&module, caller, &argument)?,
            false => self.upgrade(&module, caller, &argument)?,
        });
        upgraded.outcome.context("upgrading failed")?;
        Ok(upgraded.cost)
    }
}

impl Canister for stablebench_replica::Canister {
    fn fork(&mut self) -> Result<Box<dyn Messages + '_>> {
        Ok(Box::new(Fork { canister: Self::fork(self), origin: self }))
    }

    fn lift_limits(&mut self) -> Option<SubnetKind> {
        let subnet = self.module()?.rules().subnet();
        self.move_to(match subnet {
            SubnetKind::Application => SubnetKind::Benchmarking,
            SubnetKind::System | SubnetKind::Free => SubnetKind::FreeBenchmarking,
            unlimited => unlimited,
        });
        Some(subnet)
    }

    fn set_limits(&mut self, subnet: SubnetKind) {
        self.move_to(subnet);
    }

    fn switch(&mut self) -> Option<Halt> {
        let halt = Halt::default();
        self.end_with(halt.clone());
        Some(halt)
    }

    fn save(&self, path: &Path, note: &str) -> Result<bool> {
        self.save_with_note(path, note)?;
        Ok(true)
    }
}

/// A fork and its origin.
struct Fork<'a> {
    canister: stablebench_replica::Canister,
    origin: &'a stablebench_replica::Canister,
}

impl Messages for Fork<'_> {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Messages::update(&mut self.canister, method, argument)
    }

    fn measure(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Messages::measure(&mut self.canister, method, argument)
    }

    fn measure_query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Messages::measure_query(&mut self.canister, method, argument)
    }

    fn call_id(&mut self) -> u64 {
        Messages::call_id(&mut self.canister)
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Messages::query(&mut self.canister, method, argument)
    }

    fn query_all(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Messages::query_all(&mut self.canister, method, argument)
    }

    fn difference(&self) -> Result<Option<Difference>> {
        Ok(self.canister.difference(self.origin)?)
    }

    fn copies(&self) -> Option<[Copied; 2]> {
        Some([&self.canister, self.origin].map(|canister| Copied::from(canister.fork())))
    }

    fn upgrade(&mut self) -> Result<Cost> {
        Messages::upgrade(&mut self.canister)
    }
}

/// Rounds that are executed after an answer, for calls that go on.
const MAX_ROUNDS: usize = 100;

/// A canister and the subnet on which it runs.
struct OnSubnet {
    subnet: Subnet,
    id: Principal,
}

impl OnSubnet {
    /// Adds a canister to a new subnet.
    fn new(
        replica: &stablebench_replica::Replica,
        canister: stablebench_replica::Canister,
    ) -> Result<Self> {
        let id = canister.id();
        let mut subnet = Subnet::new(replica);
        subnet.set_time(canister.time());
        subnet.add(canister)?;
        Ok(Self { subnet, id })
    }

    fn canister(&self) -> Result<&stablebench_replica::Canister> {
        self.subnet.canister(&self.id).context("the canister is gone")
    }

    fn canister_mut(&mut self) -> Result<&mut stablebench_replica::Canister> {
        self.subnet.canister_mut(&self.id).context("the canister is gone")
    }

    fn report_readings(&mut self, readings: stablebench_replica::Readings) -> Result<()> {
        self.canister_mut()?.report_readings(readings);
        Ok(())
    }
}

impl Messages for OnSubnet {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        let caller = Principal::anonymous();
        let mut call = self.subnet.update(caller, self.id, method, argument)?;
        for _ in 0..MAX_ROUNDS {
            if self.subnet.is_idle() {
                return Ok(answer_of_call(call));
            }
            self.subnet.tick()?;
            call.executions.append(&mut self.subnet.take_executions());
        }
        bail!("{method}: calls go on {MAX_ROUNDS} rounds after the answer")
    }

    fn measure(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.report_readings(stablebench_replica::Readings::Reported)?;
        let measured = self.update(method, argument);
        self.report_readings(stablebench_replica::Readings::Ignored)?;
        measured
    }

    /// As for a canister that runs by itself.
    fn call_id(&mut self) -> u64 {
        self.canister().map_or(0, |canister| canister.version() + 1)
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Ok(answer_of_call(self.subnet.query(Principal::anonymous(), self.id, method, argument)?))
    }

    fn query_all(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        let execution = self.canister()?.query_all(Principal::anonymous(), method, argument)?;
        // Its counts are not those of an ordinary query.
        Ok(Answer { cost: Cost::default(), ..answer_of(execution) })
    }

    fn upgrade(&mut self) -> Result<Cost> {
        Messages::upgrade(self.canister_mut()?)
    }
}

impl Canister for OnSubnet {
    fn fork(&mut self) -> Result<Box<dyn Messages + '_>> {
        Ok(Box::new(Self { subnet: self.subnet.fork(), id: self.id }))
    }
}

/// Converts a call with everything that it caused.
fn answer_of_call(call: Call) -> Answer {
    let cost = call.executions.iter().map(cost).reduce(|one, other| one + other);
    let outcome = call.response.map_err(reject);
    let readings = match call.executions.as_slice() {
        [only] => readings(&only.execution),
        // Those of several executions would not be in one order.
        _ => Readings::default(),
    };
    Answer { outcome, cost: cost.unwrap_or_default(), readings }
}

fn cost(executed: &Executed) -> Cost {
    let transmission = u64::try_from(executed.transmission.get()).unwrap_or(u64::MAX);
    let messaging = Some(Messaging { executions: 1, cycles: transmission });
    let inside = Inside { messaging, ..inside(&executed.execution) };
    Cost { cycles: cycles(&executed.execution), inside: Some(inside) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::{Reject, StableCalls};

    const COUNTER: &str = include_str!("counter.wat");

    fn counter() -> Box<dyn Canister> {
        Embedded::new(Effort::Full, Rules::today(), None, |_| {})
            .unwrap()
            .install(&wat::parse_str(COUNTER).unwrap())
            .unwrap()
    }

    #[track_caller]
    fn counts(canister: &mut dyn Messages, heap: u8, stable: u8) {
        let answer = canister.update("count", &[]).unwrap();
        assert_eq!(answer.outcome.unwrap(), [heap, stable]);
    }

    #[test]
    fn an_upgrade_keeps_stable_memory() {
        let mut canister = counter();
        counts(&mut *canister, 1, 1);
        canister.upgrade().unwrap();
        counts(&mut *canister, 1, 2);
        let mut fork = canister.fork().unwrap();
        fork.upgrade().unwrap();
        counts(&mut *fork, 1, 3);
        drop(fork);
        counts(&mut *canister, 2, 3);
    }

    /// The limits are the network's again afterwards, and the canister's state is kept.
    #[test]
    fn limits_can_be_lifted() {
        let replica = Embedded::new(Effort::Full, Rules::today(), None, |_| {}).unwrap();
        let mut canister = replica.installed(&wat::parse_str(COUNTER).unwrap()).unwrap();
        let limit = |canister: &stablebench_replica::Canister| {
            canister.module().unwrap().rules().instructions().update.get()
        };
        let network = limit(&canister);
        counts(&mut canister, 1, 1);
        let subnet = Canister::lift_limits(&mut canister).unwrap();
        assert!(limit(&canister) > 1_000 * network);
        counts(&mut canister, 2, 2);
        Canister::set_limits(&mut canister, subnet);
        assert_eq!(limit(&canister), network);
        counts(&mut canister, 3, 3);
    }

    #[test]
    fn a_refused_upgrade_is_an_error_with_the_reject() {
        let mut canister = counter();
        counts(&mut *canister, 1, 1);
        canister.update("trap in upgrades", &[]).unwrap().outcome.unwrap();
        let error = canister.upgrade().unwrap_err();
        assert_eq!(error.downcast_ref::<Reject>().unwrap().code, "CanisterTrapped");
        counts(&mut *canister, 2, 2);
    }

    #[test]
    fn a_message_that_is_ended_has_no_effect() {
        const SPIN: &str = r#"(module
            (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
            (import "ic0" "msg_reply" (func $reply))
            (memory 1)
            (func (export "canister_update spin") (i32.store8 (i32.const 0) (i32.const 7)) (loop (br 0)))
            (func (export "canister_update read")
                (call $append (i32.const 0) (i32.const 1)) (call $reply)))"#;
        let replica = Embedded::new(Effort::Full, Rules::today(), None, |_| {}).unwrap();
        let mut canister = replica.install(&wat::parse_str(SPIN).unwrap()).unwrap();
        canister.switch().unwrap().halt();
        let ended = canister.update("spin", &[]).unwrap().outcome.unwrap_err();
        assert!(ended.message.contains("was stopped meanwhile"), "{ended}");
        // Short messages do not notice, and a new switch is off.
        assert_eq!(canister.update("read", &[]).unwrap().outcome.unwrap(), [0]);
        canister.switch().unwrap();
        let limit = canister.update("spin", &[]).unwrap().outcome.unwrap_err();
        assert_eq!(limit.code, "CanisterInstructionLimitExceeded");
    }

    #[test]
    fn stable_calls_are_reported() {
        let cost = counter().update("count", &[]).unwrap().cost;
        let expected = StableCalls { reads: 1, bytes_read: 1, writes: 1, bytes_written: 1 };
        assert_eq!(cost.inside.unwrap().stable_calls, Some(expected));
    }

    /// Calls itself, and replies with the total number of its calls.
    const CALLS_ITSELF: &str = r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (import "ic0" "canister_self_copy" (func $self (param i32 i32 i32)))
        (import "ic0" "call_new" (func $new (param i32 i32 i32 i32 i32 i32 i32 i32)))
        (import "ic0" "call_perform" (func $perform (result i32)))
        (memory 1) (table 1 funcref) (elem (i32.const 0) $back)
        (data (i32.const 16) "count")
        (func $count (i32.store8 (i32.const 32) (i32.add (i32.load8_u (i32.const 32)) (i32.const 1)))
            (call $append (i32.const 32) (i32.const 1)) (call $reply))
        (export "canister_update count" (func $count))
        (export "canister_query look" (func $count))
        (func $back (param i32) (call $append (i32.const 32) (i32.const 1)) (call $reply))
        (func (export "canister_update go")
            (call $self (i32.const 0) (i32.const 0) (i32.const 10))
            (call $new (i32.const 0) (i32.const 10) (i32.const 16) (i32.const 5)
                (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
            (drop (call $perform))))"#;

    fn canister() -> Box<dyn Canister> {
        let replica = Embedded::new(Effort::Full, Rules::today(), None, |_| {}).unwrap();
        replica.install(&wat::parse_str(CALLS_ITSELF).unwrap()).unwrap()
    }

    #[test]
    fn a_message_costs_all_that_it_causes() {
        let mut canister = canister();
        let alone = canister.update("count", &[]).unwrap();
        assert_eq!(alone.outcome, Ok(vec![1]));
        let messaging = |cost: &Cost| cost.inside.unwrap().messaging.unwrap();
        assert_eq!(messaging(&alone.cost).executions, 1);
        let calls = canister.update("go", &[]).unwrap();
        assert_eq!(calls.outcome, Ok(vec![2]));
        // The message, the call, the callback.
        assert_eq!(messaging(&calls.cost).executions, 3);
        let (called, all) = (alone.cost.inside.unwrap(), calls.cost.inside.unwrap());
        assert!(all.instructions > called.instructions && all.charge > called.charge);
        // A call is sent twice, there and back, an ingress message once; both are in the cycles.
        assert!(messaging(&calls.cost).cycles > messaging(&alone.cost).cycles);
        assert!(calls.cost.cycles > messaging(&calls.cost).cycles + alone.cost.cycles);
    }

    /// The canister reads its counter twice; the pages that it touches between cost what they do in a
    /// canister that runs alone.
    #[test]
    fn a_message_without_calls_reports_its_readings() {
        let reads = CALLS_ITSELF.replace(
            "(memory 1)",
            r#"(import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
               (memory 1)
               (func (export "canister_update reads")
                   (drop (call $counter (i32.const 0)))
                   (i32.store (i32.const 4096) (i32.const 1))
                   (drop (call $counter (i32.const 0)))
                   (call $reply))"#,
        );
        let replica = Embedded::new(Effort::Full, Rules::today(), None, |_| {}).unwrap();
        let mut canister = replica.install(&wat::parse_str(reads).unwrap()).unwrap();
        let Readings(readings) = canister.measure("reads", &[]).unwrap().readings;
        let [(_, before), (_, after)] = readings.as_slice() else { panic!("{readings:?}") };
        assert!(after.heap > before.heap);
        assert!(canister.update("reads", &[]).unwrap().readings.0.is_empty());
    }

    #[test]
    fn forks_are_equal_and_leave_the_canister_as_it_is() {
        let mut canister = canister();
        canister.update("go", &[]).unwrap();
        let mut costs = Vec::new();
        for _ in 0..2 {
            let mut fork = canister.fork().unwrap();
            let id = fork.call_id();
            let went = fork.update("go", &[]).unwrap();
            assert_eq!(went.outcome, Ok(vec![2]));
            assert!(fork.call_id() > id);
            costs.push((id, went.cost));
        }
        assert_eq!(costs[0], costs[1]);
        assert_eq!(canister.query("look", &[]).unwrap().outcome, Ok(vec![2]));
        let cost = canister.upgrade().unwrap();
        assert!(cost.cycles > 0);
        assert_eq!(canister.query_all("look", &[]).unwrap().outcome, Ok(vec![1]));
    }
}
