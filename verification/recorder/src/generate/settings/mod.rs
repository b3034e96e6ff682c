//! Cases about settings of canisters: heap limits, the hook for low memory, environment variables,
//! allocations, storage over time, reserved cycles.

mod cycles;
mod environment;
mod heap;

use candid::Nat;
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, CanisterSettings, InstallCodeArgs, UpdateSettingsArgs,
};
use stablebench_conformance::subnet::SubnetCase;

use super::calls::script::{Number, Op, Script, Send};
use super::steps::{Case, id, subject, wasm};

/// A module with a page of heap, and a function of every kind of installation that does nothing.
const SMALL: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (memory 1)
    (func (export "canister_update hello") (call $reply)))"#;

const MIB: u64 = 1 << 20;

/// All cases.
pub fn cases() -> Vec<SubnetCase> {
    vec![
        heap::heap_limits(),
        heap::heap_limits_of_installations(),
        heap::low_memory(),
        heap::low_memory_of_allocations(),
        heap::low_memory_without_module(),
        environment::environment(),
        cycles::storage(),
        cycles::without_cycles(),
        cycles::reserved(),
        cycles::reserved_by_growth(),
        cycles::reservation_limits(),
    ]
}

fn nat(number: u64) -> Option<Nat> {
    Some(Nat::from(number))
}

fn none() -> CanisterSettings {
    CanisterSettings::default()
}

fn limit(bytes: u64) -> CanisterSettings {
    CanisterSettings { wasm_memory_limit: nat(bytes), ..none() }
}

/// The user changes settings of canister 1.
fn set(case: &mut Case, settings: CanisterSettings) {
    let sender_canister_version = None;
    let canister_id = id(1);
    case.user(
        1,
        "update_settings",
        (UpdateSettingsArgs { canister_id, settings, sender_canister_version },),
    );
}

fn status(case: &mut Case) {
    case.user(1, "canister_status", (CanisterIdRecord { canister_id: id(1) },));
}

fn script(parts: impl FnOnce(&mut Script)) -> Script {
    let mut script = Script::default();
    parts(&mut script);
    script
}

/// Writes to so many 4 KiB pages of new memory.
fn touch(pages: u16) -> Script {
    script(|script| {
        script.number(Number::Touch(pages));
        script.op(Op::Count);
        script.op(Op::Reply);
    })
}

fn count() -> Script {
    script(|script| {
        script.op(Op::Count);
        script.op(Op::Counter0);
        script.op(Op::Reply);
    })
}

/// A call to canister 0, which replies.
fn ask(on_reply: Script) -> Send {
    Send {
        callee: Script::id(0),
        method: "run",
        argument: script(|script| script.op(Op::Reply)),
        on_reply,
        on_reject: script(|script| script.op(Op::Reply)),
        ..Send::default()
    }
}

fn script_of_task(pages: u16) -> Script {
    script(|script| {
        script.number(Number::Touch(pages));
        script.op(Op::Bump);
    })
}

fn install(mode: CanisterInstallMode) -> (InstallCodeArgs,) {
    (InstallCodeArgs {
        mode,
        canister_id: subject(),
        wasm_module: wasm(SMALL),
        arg: Vec::new(),
        sender_canister_version: None,
    },)
}
