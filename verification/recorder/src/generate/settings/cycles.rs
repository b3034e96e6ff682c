//! Cycles: storage over time, a canister without any, and reserved ones.

use candid::Principal;
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInfoArgs, CanisterInstallMode, CanisterSettings, CreateCanisterArgs,
    ProvisionalCreateCanisterWithCyclesArgs, TakeCanisterSnapshotArgs, UpdateSettingsArgs,
    UploadChunkArgs,
};
use stablebench_conformance::Kind;
use stablebench_conformance::subnet::SubnetCase;

use super::super::calls::script::{Number, Op, Send, Text};
use super::super::steps::{CREATION, Case, id, record, subject};
use super::{MIB, ask, count, install, nat, none, script, script_of_task, set, status, touch};

const GIB: u64 = 1 << 30;

pub fn storage() -> SubnetCase {
    let mut case = Case::default();
    case.rounds_after(4, 11);
    case.run(1, touch(10_000));
    case.rounds_after(3, 60);
    let allocated = |bytes: u64, compute: u64| CanisterSettings {
        memory_allocation: nat(bytes),
        compute_allocation: nat(compute),
        ..none()
    };
    for (bytes, compute) in [(GIB, 0), (10 * GIB, 5), (0, 1), (0, 0)] {
        set(&mut case, allocated(bytes, compute));
        case.rounds_after(3, 30);
    }
    // A balance below the freezing threshold.
    let freeze = |seconds: u64| CanisterSettings { freezing_threshold: nat(seconds), ..none() };
    set(&mut case, CanisterSettings { memory_allocation: nat(10 * GIB), ..freeze(1 << 40) });
    status(&mut case);
    case.run(1, count());
    case.run(0, script(|script| script.send(&ask_hooked())));
    case.method(Kind::Query, 1, "ask", &[]);
    set(&mut case, freeze(1_000));
    case.run(1, count());
    case.run(1, touch(100));
    case.rounds_after(3, 86_400);
    status(&mut case);
    case.named("storage")
}

/// A call to canister 1 whose answer is the answer of the caller.
fn ask_hooked() -> Send {
    super::super::steps::send(id(1), "run", script(|script| script.op(Op::Reply)), Some(5))
}

fn snapshot_of(canister_id: Principal) -> (TakeCanisterSnapshotArgs,) {
    (TakeCanisterSnapshotArgs {
        canister_id,
        replace_snapshot: None,
        uninstall_code: None,
        sender_canister_version: None,
    },)
}

/// A canister that cannot pay for its storage.
pub fn without_cycles() -> SubnetCase {
    let mut case = Case::default();
    let settings =
        CanisterSettings { freezing_threshold: nat(0), compute_allocation: nat(20), ..none() };
    let create = ProvisionalCreateCanisterWithCyclesArgs {
        amount: nat(20_000_000_000_000),
        settings: Some(settings),
        ..Default::default()
    };
    case.manage("provisional_create_canister_with_cycles", (create,));
    case.manage("install_code", install(CanisterInstallMode::Install));
    case.rounds(40);
    case.subject("hello");
    case.rounds_after(2, 86_400);
    case.subject("hello");
    let info = CanisterInfoArgs { canister_id: subject(), num_requested_changes: Some(5) };
    case.manage("canister_info", (info,));
    case.manage("canister_status", (record(),));
    case.manage_with(5_000_000_000_000, "deposit_cycles", (record(),));
    case.manage("canister_status", (record(),));
    case.manage("install_code", install(CanisterInstallMode::Install));
    case.rounds(40);
    case.subject("hello");
    case.named("without_cycles")
}

fn allocation(bytes: u64) -> CanisterSettings {
    CanisterSettings { memory_allocation: nat(bytes), ..none() }
}

fn reserve(cycles: u64) -> CanisterSettings {
    CanisterSettings { reserved_cycles_limit: nat(cycles), ..none() }
}

/// Most cycles, for settings.
const MANY: u64 = 900_000_000_000_000;

pub fn reserved() -> SubnetCase {
    let mut case = Case::default();
    // In a round, a canister can use a quarter of what is free.
    set(&mut case, allocation(180 * GIB));
    set(&mut case, allocation(0));
    set(&mut case, allocation(200 * GIB));
    set(&mut case, reserve(MANY));
    set(&mut case, allocation(200 * GIB));
    status(&mut case);
    case.rounds_after(3, 20);
    status(&mut case);
    set(&mut case, allocation(350 * GIB));
    status(&mut case);
    set(&mut case, reserve(1_000_000_000_000));
    // What is reserved stays.
    set(&mut case, allocation(0));
    status(&mut case);
    case.rounds_after(3, 20);
    status(&mut case);
    set(&mut case, allocation(230 * GIB));
    status(&mut case);
    // More than the balance.
    set(&mut case, reserve(u64::MAX));
    set(&mut case, allocation(600 * GIB));
    // More than the canister can pay for until it freezes.
    let freeze = |seconds: u64| CanisterSettings { freezing_threshold: nat(seconds), ..none() };
    set(&mut case, freeze(100_000_000));
    status(&mut case);
    case.run(1, count());
    set(&mut case, freeze(0));
    case.rounds_after(2, 86_400);
    status(&mut case);
    case.rounds_after(5, 864_000);
    status(&mut case);
    case.named("reserved")
}

/// Canister 0 takes so much of the subnet that others reserve cycles when they grow.
fn crowded(case: &mut Case) {
    let canister_id = id(0);
    let sizes = [185, 320, 425, 500, 560, 600, 640, 665, 684, 764];
    let sizes = sizes.map(|gib| allocation(gib * GIB));
    for settings in [reserve(MANY)].into_iter().chain(sizes) {
        let args = UpdateSettingsArgs { canister_id, settings, sender_canister_version: None };
        case.user(0, "update_settings", (args,));
    }
    case.user(0, "canister_status", (CanisterIdRecord { canister_id },));
}

pub fn reserved_by_growth() -> SubnetCase {
    let mut case = Case::default();
    crowded(&mut case);
    status(&mut case);
    case.run(1, touch(100));
    status(&mut case);
    let stable = script(|script| {
        for _ in 0..10 {
            script.number(Number::Stable(100));
        }
        script.op(Op::Reply);
    });
    case.run(1, stable.clone());
    case.run(1, script(|script| script.send(&ask(touch(100)))));
    let timer = script(|script| {
        script.on_timer(&script_of_task(100));
        script.number(Number::Timer(1));
        script.op(Op::Reply);
    });
    case.run(1, timer);
    case.rounds_after(2, 1);
    let fails = script(|script| {
        script.number(Number::Touch(100));
        script.text(Text::Trap, b"trapped as asked");
    });
    case.run(1, fails);
    case.method(Kind::Query, 1, "compose", &[]);
    status(&mut case);
    case.rounds_after(3, 20);
    status(&mut case);
    // Within an allocation, nothing is reserved.
    set(&mut case, allocation(100 * MIB));
    status(&mut case);
    case.run(1, touch(100));
    case.run(1, stable);
    status(&mut case);
    set(&mut case, allocation(0));
    let chunk = UploadChunkArgs { canister_id: id(1), chunk: vec![7; 100] };
    case.user(1, "upload_chunk", (&chunk,));
    status(&mut case);
    case.user(1, "take_canister_snapshot", snapshot_of(id(1)));
    status(&mut case);
    case.named("reserved_by_growth")
}

/// Without reserved cycles, a canister cannot grow on a subnet with little free memory.
pub fn reservation_limits() -> SubnetCase {
    let mut case = Case::default();
    crowded(&mut case);
    set(&mut case, reserve(0));
    case.run(1, touch(100));
    case.run(1, script(|script| script.number(Number::Stable(100))));
    case.run(1, script(|script| script.send(&ask(touch(100)))));
    case.run(1, count());
    let chunk = UploadChunkArgs { canister_id: id(1), chunk: vec![7; 100] };
    case.user(1, "upload_chunk", (chunk,));
    case.user(1, "take_canister_snapshot", snapshot_of(id(1)));
    set(&mut case, allocation(10 * MIB));
    let create = CreateCanisterArgs {
        settings: Some(CanisterSettings { memory_allocation: nat(MIB), ..reserve(0) }),
        ..Default::default()
    };
    case.manage_with(CREATION, "create_canister", (create,));
    let create = CreateCanisterArgs { settings: Some(reserve(0)), ..Default::default() };
    case.manage_with(CREATION, "create_canister", (create,));
    case.manage("install_code", install(CanisterInstallMode::Install));
    case.rounds(40);
    case.named("reservation_limits")
}
