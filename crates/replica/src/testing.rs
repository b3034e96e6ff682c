//! Canisters in a developer's own tests.
//!
//! ```
//! use stablebench_replica::testing::{Canister, assert_instructions};
//!
//! # let module = wat::parse_str(r#"(module
//! #     (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
//! #     (import "ic0" "msg_reply" (func $reply))
//! #     (memory 1) (data (i32.const 0) "DIDL\00\01\78\07\00\00\00\00\00\00\00")
//! #     (func (export "canister_update add")
//! #         (call $append (i32.const 0) (i32.const 15)) (call $reply)))"#)?;
//! let mut canister = Canister::install(&module, ());
//! let execution = assert_instructions!(canister.update("add", (3_u64, 4_u64)), <= 1_000_000);
//! assert_eq!(execution.reply::<(u64,)>()?, (7,));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Counts do not depend on the machine, the operating system or the time, so a test may require them
//! exactly. [`Execution::counts`] is their text for snapshots: `insta::assert_snapshot!(execution.counts())`.
//!
//! Methods panic where a test should fail: if this machine has no memory left, or an installation
//! is rejected. Rejected messages are ordinary results.

use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

use candid::utils::ArgumentEncoder;
use ic_principal::Principal;

use crate::execution::Execution;
use crate::fault::HostError;
use crate::replica::Replica;
use crate::rules::Rules;

pub use crate::assert_instructions;

/// A canister with a caller. It dereferences to a [`Canister`](crate::Canister).
#[derive(Debug)]
pub struct Canister {
    canister: crate::Canister,
    caller: Principal,
}

impl Canister {
    /// Installs a module, plain or gzipped, under today's rules, and calls `canister_init` with
    /// `arguments`, a tuple of Candid values. The anonymous principal is the caller.
    ///
    /// # Panics
    ///
    /// If the module or the installation is rejected.
    #[track_caller]
    pub fn install(module: &[u8], arguments: impl ArgumentEncoder) -> Self {
        Self::install_under(Rules::today(), module, arguments)
    }

    /// As [`Canister::install`], under other rules.
    ///
    /// # Panics
    ///
    /// If the module or the installation is rejected.
    #[track_caller]
    pub fn install_under(rules: Rules, module: &[u8], arguments: impl ArgumentEncoder) -> Self {
        let replica = replica(rules);
        let module = match replica.compile(module) {
            Ok(module) => module,
            Err(reject) => panic!("the module is rejected: {reject}"),
        };
        let canister = replica.create_canister();
        let mut canister = canister.unwrap_or_else(|error| panic!("{error}"));
        let caller = Principal::anonymous();
        let installed = canister.install(&module, caller, &encoded(arguments));
        if let Err(reject) = worked(installed).outcome {
            panic!("the installation is rejected: {reject}");
        }
        Self { canister, caller }
    }

    /// The same canister with a copy of its state, which takes milliseconds whatever its size:
    /// prepare the state once and run each test on a fork.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { canister: self.canister.fork(), caller: self.caller }
    }

    /// Sets the caller of the messages that follow.
    pub fn set_caller(&mut self, caller: Principal) {
        self.caller = caller;
    }

    /// Calls an update method with a tuple of Candid values.
    ///
    /// # Panics
    ///
    /// If this machine has no memory left.
    #[track_caller]
    pub fn update(&mut self, method: &str, arguments: impl ArgumentEncoder) -> Execution {
        worked(self.canister.update(self.caller, method, &encoded(arguments)))
    }

    /// Calls a query method with a tuple of Candid values.
    ///
    /// # Panics
    ///
    /// If this machine has no memory left.
    #[track_caller]
    pub fn query(&self, method: &str, arguments: impl ArgumentEncoder) -> Execution {
        worked(self.canister.query(self.caller, method, &encoded(arguments)))
    }

    /// Upgrades to a module; the arguments are those of `canister_post_upgrade`.
    ///
    /// # Panics
    ///
    /// If the module is rejected, or this machine has no memory left.
    #[track_caller]
    pub fn upgrade(&mut self, module: &[u8], arguments: impl ArgumentEncoder) -> Execution {
        let rules = self.canister.module().map_or_else(Rules::today, |module| module.rules());
        let module = match replica(rules).compile(module) {
            Ok(module) => module,
            Err(reject) => panic!("the module is rejected: {reject}"),
        };
        worked(self.canister.upgrade(&module, self.caller, &encoded(arguments)))
    }
}

impl Deref for Canister {
    type Target = crate::Canister;

    fn deref(&self) -> &Self::Target {
        &self.canister
    }
}

impl DerefMut for Canister {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.canister
    }
}

/// The replica of all tests of a process, so that each module is compiled once.
#[track_caller]
fn replica(rules: Rules) -> Replica {
    static REPLICAS: Mutex<Vec<Replica>> = Mutex::new(Vec::new());
    let mut replicas = REPLICAS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(replica) = replicas.iter().find(|replica| replica.rules() == rules) {
        return replica.clone();
    }
    let replica = Replica::new(rules, None).unwrap_or_else(|error| panic!("{error}"));
    replicas.push(replica.clone());
    replica
}

#[track_caller]
fn encoded(arguments: impl ArgumentEncoder) -> Vec<u8> {
    candid::encode_args(arguments).unwrap_or_else(|error| panic!("the arguments: {error}"))
}

#[track_caller]
fn worked(execution: Result<Execution, HostError>) -> Execution {
    execution.unwrap_or_else(|error| panic!("{error}"))
}

/// An [`Execution`], or the result of running one.
pub trait IntoExecution {
    /// The execution.
    ///
    /// # Errors
    ///
    /// If it failed on this machine.
    fn into_execution(self) -> Result<Execution, HostError>;
}

impl IntoExecution for Execution {
    fn into_execution(self) -> Result<Execution, HostError> {
        Ok(self)
    }
}

impl IntoExecution for Result<Execution, HostError> {
    fn into_execution(self) -> Result<Execution, HostError> {
        self
    }
}

/// Asserts the instructions of a message: at most a ceiling (`<=`), or a number (`==`). Returns the
/// [`Execution`].
///
/// A message that was rejected fails the assertion, because it may have ended early.
///
/// ```no_run
/// # use stablebench_replica::testing::{Canister, assert_instructions};
/// # let mut canister = Canister::install(&[], ());
/// assert_instructions!(canister.update("add", (1_u64,)), <= 1_000_000);
/// let execution = assert_instructions!(canister.query("get", (1_u64,)), == 41_507);
/// ```
///
/// # Panics
///
/// If the message used other instructions, or failed.
#[macro_export]
macro_rules! assert_instructions {
    ($execution:expr, <= $most:expr $(,)?) => {
        $crate::testing::at_most($execution, stringify!($execution), $most)
    };
    ($execution:expr, == $number:expr $(,)?) => {
        $crate::testing::exactly($execution, stringify!($execution), $number)
    };
}

/// The ceiling of [`assert_instructions`].
#[doc(hidden)]
#[track_caller]
pub fn at_most(execution: impl IntoExecution, expression: &str, most: u64) -> Execution {
    let (execution, used) = used(execution, expression);
    if let Some(more) = used.checked_sub(most).filter(|more| *more > 0) {
        let percent = more as f64 / most as f64 * 100.0;
        panic!(
            "`{expression}` used {used} instructions, {more} ({percent:.1} %) more than the \
             ceiling of {most}"
        );
    }
    execution
}

/// The number of [`assert_instructions`].
#[doc(hidden)]
#[track_caller]
pub fn exactly(execution: impl IntoExecution, expression: &str, number: u64) -> Execution {
    let (execution, used) = used(execution, expression);
    assert!(used == number, "`{expression}` used {used} instructions instead of {number}");
    execution
}

#[track_caller]
fn used(execution: impl IntoExecution, expression: &str) -> (Execution, u64) {
    let execution = worked(execution.into_execution());
    if let Err(reject) = &execution.outcome {
        panic!("`{expression}` was rejected: {reject}");
    }
    let used = execution.instructions.get();
    (execution, used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorCode, ReplyError};

    /// Adds the argument, a Candid `nat64`, to a number that is kept, and replies with it.
    const COUNTER: &str = r#"(module
    (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
    (import "ic0" "msg_caller_size" (func $caller (result i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (memory 1)
    (data (i32.const 0) "DIDL\00\01\78")
    (data (i32.const 64) "DIDL\00\01\7d")
    (func $show (call $append (i32.const 0) (i32.const 15)) (call $reply))
    (func (export "canister_update add")
        (call $argument (i32.const 32) (i32.const 7) (i32.const 8))
        (i64.store (i32.const 7) (i64.add (i64.load (i32.const 7)) (i64.load (i32.const 32))))
        (call $show))
    (func (export "canister_query get") (call $show))
    (func (export "canister_query caller")
        (i32.store8 (i32.const 71) (call $caller))
        (call $append (i32.const 64) (i32.const 8)) (call $reply))
    (func (export "canister_update trap") (unreachable)))"#;

    fn counter() -> Canister {
        Canister::install(&wat::parse_str(COUNTER).unwrap(), ())
    }

    #[test]
    fn messages_take_and_return_values() {
        let mut canister = counter();
        assert_eq!(canister.update("add", (3_u64,)).reply::<(u64,)>().unwrap(), (3,));
        let mut fork = canister.fork();
        assert_eq!(fork.update("add", (4_u64,)).reply::<(u64,)>().unwrap(), (7,));
        assert_eq!(canister.query("get", ()).reply::<(u64,)>().unwrap(), (3,));
        let size =
            |canister: &Canister| canister.query("caller", ()).reply::<(candid::Nat,)>().unwrap().0;
        assert_eq!(size(&fork), 1_u8, "the anonymous principal");
        fork.set_caller(Principal::management_canister());
        assert_eq!(size(&fork), 0_u8);
        assert_eq!(size(&canister), 1_u8);
        let module = wat::parse_str(COUNTER).unwrap();
        canister.upgrade(&module, ()).outcome.unwrap();
        assert_eq!(canister.query("get", ()).reply::<(u64,)>().unwrap(), (0,), "the heap is new");
        assert_eq!(canister.heap_size().get(), 1, "it is a canister");
    }

    #[test]
    fn replies_that_are_not_there_are_errors() {
        let mut canister = counter();
        let error = canister.update("trap", ()).reply::<()>().unwrap_err();
        assert!(
            matches!(&error, ReplyError::Rejected(reject) if reject.code == ErrorCode::CanisterTrapped),
            "{error}"
        );
        let error = canister.query("get", ()).reply::<(String,)>().unwrap_err();
        assert!(error.to_string().starts_with("the reply has other types: "), "{error}");
    }

    #[test]
    fn ceilings_include_the_number_itself() {
        let mut canister = counter();
        let used = canister.update("add", (1_u64,)).instructions.get();
        let execution = assert_instructions!(canister.update("add", (1_u64,)), <= used);
        assert_eq!(execution.reply::<(u64,)>().unwrap(), (2,));
        assert_instructions!(canister.update("add", (1_u64,)), == used);
        // The result of a canister without a caller of its own, and an execution, are accepted too.
        let caller = Principal::anonymous();
        let execution =
            assert_instructions!((*canister).query(caller, "get", b"DIDL\0\0"), <= used);
        assert_instructions!(execution, <= used,);
    }

    #[test]
    #[should_panic(expected = "`canister.update(\"add\", (1_u64,))` used ")]
    fn one_more_than_the_ceiling_fails() {
        let mut canister = counter();
        let used = canister.update("add", (1_u64,)).instructions.get();
        assert_instructions!(canister.update("add", (1_u64,)), <= used - 1);
    }

    #[test]
    #[should_panic(expected = " instructions instead of 1")]
    fn another_number_fails() {
        assert_instructions!(counter().query("get", ()), == 1);
    }

    /// A message that ends early is cheap, but not what the test is about.
    #[test]
    #[should_panic(expected = "`counter().update(\"trap\", ())` was rejected: CanisterTrapped: ")]
    fn a_rejected_message_fails() {
        assert_instructions!(counter().update("trap", ()), <= 1_000_000);
    }

    #[test]
    #[should_panic(expected = "the module is rejected: CanisterInvalidWasm: ")]
    fn a_module_that_is_none_fails() {
        Canister::install(b"wasm", ());
    }

    #[test]
    #[should_panic(expected = "the installation is rejected: CanisterTrapped: ")]
    fn an_installation_that_traps_fails() {
        let module = r#"(module (func (export "canister_init") (unreachable)))"#;
        Canister::install(&wat::parse_str(module).unwrap(), ());
    }

    #[test]
    fn counts_are_lines_for_snapshots() {
        let module = wat::parse_str(COUNTER).unwrap();
        let mut text = String::new();
        for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
            let mut canister = Canister::install_under(rules, &module, ());
            for execution in [canister.update("add", (3_u64,)), canister.update("trap", ())] {
                text += &format!("{rules}\n{}\n\n", execution.counts());
            }
        }
        insta::assert_snapshot!(text.trim_end());
    }
}
