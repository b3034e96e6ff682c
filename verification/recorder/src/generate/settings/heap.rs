//! Limits of the heap, and the hook for low memory.

use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, CanisterSettings, CreateCanisterArgs, UpdateSettingsArgs,
};
use stablebench_conformance::Kind;
use stablebench_conformance::subnet::SubnetCase;

use super::super::calls::SCRIPTED;
use super::super::calls::script::{Number, Op, Script, Send, Text};
use super::super::steps::{CREATION, Case, id, record, subject, without_heartbeat};
use super::{
    MIB, ask, count, install, limit, nat, none, script, script_of_task, set, status, touch,
};

const KIB: u64 = 1 << 10;

pub fn heap_limits() -> SubnetCase {
    let mut case = Case::default();
    set(&mut case, limit(MIB));
    case.run(1, touch(160));
    case.run(1, touch(160));
    case.run(1, count());
    case.method(Kind::Query, 1, "ask", &[]);
    let grows_in_callback = script(|script| script.send(&ask(touch(160))));
    case.run(1, grows_in_callback.clone());
    // The limit is exceeded now.
    case.run(1, count());
    case.run(1, grows_in_callback);
    set(&mut case, limit(2 * MIB));
    case.run(1, count());
    let in_timer = script(|script| {
        let grows = script_of_task(300);
        script.on_timer(&grows);
        script.number(Number::Timer(1));
        script.op(Op::Reply);
    });
    case.run(1, in_timer);
    case.rounds_after(2, 1);
    case.run(1, count());
    set(&mut case, limit(0));
    case.run(1, touch(600));
    case.run(1, count());
    let in_cleanup = script(|script| {
        let trap = super::script(|script| script.text(Text::Trap, b"trapped as asked"));
        let cleanup = script_of_task(600);
        script.send(&Send { on_cleanup: Some(cleanup), ..ask(trap) });
    });
    set(&mut case, limit(6 * MIB));
    case.run(1, in_cleanup);
    case.run(1, count());
    status(&mut case);
    case.named("heap_limits")
}

pub fn heap_limits_of_installations() -> SubnetCase {
    let mut case = Case::with_subject();
    let set = |case: &mut Case, settings| {
        let (canister_id, sender_canister_version) = (subject(), None);
        let args = UpdateSettingsArgs { canister_id, settings, sender_canister_version };
        case.manage("update_settings", (args,));
    };
    set(&mut case, limit(32 * KIB));
    case.manage("install_code", install(CanisterInstallMode::Install));
    case.rounds(40);
    set(&mut case, limit(64 * KIB));
    case.manage("install_code", install(CanisterInstallMode::Install));
    case.rounds(40);
    case.subject("hello");
    set(&mut case, limit(64 * KIB - 1));
    case.subject("hello");
    case.manage("install_code", install(CanisterInstallMode::Upgrade(None)));
    case.rounds(40);
    case.manage("install_code", install(CanisterInstallMode::Reinstall));
    case.rounds(40);
    set(&mut case, limit(0));
    case.subject("hello");
    case.manage("install_code", install(CanisterInstallMode::Upgrade(None)));
    case.named("heap_limits_of_installations")
}

/// Stores what the hook does.
fn hook(case: &mut Case, parts: impl FnOnce(&mut Script)) {
    let does = script(parts);
    case.run(
        1,
        script(|script| {
            script.on_heartbeat(&does);
            script.op(Op::Reply);
        }),
    );
}

/// The canister that runs scripts, whose script of heartbeats is its hook for low memory.
fn hooked() -> String {
    SCRIPTED.replace("canister_heartbeat", "canister_on_low_wasm_memory")
}

/// Canister 0, which only answers, and a hooked canister.
fn with_hook(case: Case, name: &str) -> SubnetCase {
    case.of(name, vec![without_heartbeat(), hooked()])
}

pub fn low_memory() -> SubnetCase {
    let mut case = Case::default();
    let threshold = |limit: u64, threshold: u64| CanisterSettings {
        wasm_memory_limit: nat(limit),
        wasm_memory_threshold: nat(threshold),
        ..none()
    };
    hook(&mut case, |script| script.op(Op::Bump));
    set(&mut case, threshold(2 * MIB, MIB));
    case.rounds(2);
    case.run(1, count());
    // Exactly the threshold is left.
    case.run(1, touch(192));
    case.run(1, touch(1));
    case.run(1, count());
    case.run(1, touch(40));
    case.rounds(2);
    case.run(1, count());
    // It runs again once there was enough.
    set(&mut case, limit(4 * MIB));
    case.rounds(2);
    set(&mut case, limit(2 * MIB));
    case.run(1, count());
    case.rounds(2);
    case.run(1, count());
    let again = |case: &mut Case| {
        set(case, limit(8 * MIB));
        case.rounds(1);
        set(case, limit(2 * MIB));
        case.rounds(2);
        case.run(1, count());
    };
    hook(&mut case, |script| script.text(Text::Trap, b"trapped as asked"));
    again(&mut case);
    hook(&mut case, |script| {
        script.op(Op::Bump);
        script.number(Number::Touch(40));
    });
    again(&mut case);
    hook(&mut case, |script| {
        let mut on_reply = Script::default();
        on_reply.op(Op::Bump);
        script.send(&ask(on_reply));
    });
    again(&mut case);
    hook(&mut case, |script| script.op(Op::Reply));
    again(&mut case);
    hook(&mut case, |script| {
        script.op(Op::Bump);
        script.number(Number::Spin(50_000));
    });
    again(&mut case);
    // Memory that a failed message or a query wanted does not count.
    set(&mut case, threshold(8 * MIB, 4 * MIB));
    case.rounds(1);
    let fails = script(|script| {
        script.number(Number::Touch(900));
        script.text(Text::Trap, b"trapped as asked");
    });
    case.run(1, fails);
    case.run(1, count());
    let grows = script(|script| script.send(&ask(touch(900))));
    case.run(1, grows);
    case.run(1, count());
    // Without a function for it.
    let settings = threshold(2 * MIB, 2 * MIB);
    let args = UpdateSettingsArgs { canister_id: id(0), settings, sender_canister_version: None };
    case.user(0, "update_settings", (args,));
    case.rounds(2);
    case.run(0, touch(100));
    // While the canister is stopped.
    set(&mut case, threshold(64 * MIB, MIB));
    case.rounds(1);
    let canister = || (CanisterIdRecord { canister_id: id(1) },);
    case.user(1, "stop_canister", canister());
    set(&mut case, threshold(64 * MIB, 62 * MIB));
    case.rounds(2);
    case.user(1, "start_canister", canister());
    case.rounds(2);
    case.run(1, count());
    with_hook(case, "low_memory")
}

pub fn low_memory_of_allocations() -> SubnetCase {
    let mut case = Case::default();
    hook(&mut case, |script| script.op(Op::Bump));
    let allocated = |bytes: u64| CanisterSettings {
        memory_allocation: nat(bytes),
        wasm_memory_threshold: nat(MIB),
        ..none()
    };
    set(&mut case, allocated(3 * MIB));
    case.rounds(2);
    case.run(1, count());
    case.run(1, touch(400));
    case.run(1, count());
    case.rounds(1);
    case.run(1, count());
    set(&mut case, allocated(0));
    case.rounds(1);
    // Stable memory takes part of the allocation.
    set(&mut case, allocated(4 * MIB));
    case.rounds(1);
    case.run(1, count());
    let stable = script(|script| {
        for _ in 0..20 {
            script.number(Number::Stable(1));
        }
        script.op(Op::Reply);
    });
    case.run(1, stable);
    case.rounds(1);
    case.run(1, count());
    // No limit, and no threshold.
    set(&mut case, CanisterSettings { memory_allocation: nat(0), ..limit(0) });
    case.rounds(1);
    case.run(1, count());
    set(&mut case, CanisterSettings { wasm_memory_threshold: nat(0), ..none() });
    case.rounds(1);
    case.run(1, touch(20));
    case.rounds(1);
    case.run(1, count());
    set(&mut case, limit(16 * MIB));
    case.rounds(1);
    set(&mut case, limit(0));
    case.rounds(1);
    case.run(1, count());
    with_hook(case, "low_memory_of_allocations")
}

/// A canister without a module has little memory too.
pub fn low_memory_without_module() -> SubnetCase {
    let mut case = Case::default();
    let settings = CanisterSettings { wasm_memory_threshold: nat(2 * MIB), ..limit(MIB) };
    let create =
        CreateCanisterArgs { settings: Some(settings.clone()), sender_canister_version: None };
    case.manage_with(CREATION, "create_canister", (create,));
    case.rounds(2);
    case.manage("canister_status", (record(),));
    case.rounds(2);
    case.manage("canister_status", (record(),));
    for settings in [limit(8 * MIB), settings] {
        let (canister_id, sender_canister_version) = (subject(), None);
        let args = UpdateSettingsArgs { canister_id, settings, sender_canister_version };
        case.manage("update_settings", (args,));
        case.rounds(2);
        case.manage("canister_status", (record(),));
    }
    case.named("low_memory_without_module")
}
