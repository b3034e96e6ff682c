//! Cases about settings of canisters: heap limits, the hook for low memory, environment variables,
//! allocations, storage over time, reserved cycles.

use candid::Principal;
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInfoArgs, CanisterInstallMode, CanisterSettings, CreateCanisterArgs,
    EnvironmentVariable, InstallCodeArgs, ProvisionalCreateCanisterWithCyclesArgs,
    TakeCanisterSnapshotArgs, UpdateSettingsArgs, UploadChunkArgs,
};
use stablebench_conformance::MessageKind;
use stablebench_conformance::subnet::SubnetCase;

use super::script::{
    CREATION, Case, Number, Op, SCRIPTED, Script, Send, Text, id, nat, none, of_group, record,
    send, set, status, subject, wasm, without_heartbeat,
};

/// A module with a page of heap, and a function of every kind of installation that does nothing.
const SMALL: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (memory 1)
    (func (export "canister_update hello") (call $reply)))"#;

const MIB: u64 = 1 << 20;

/// All cases.
pub fn cases() -> Vec<SubnetCase> {
    let cases = vec![
        heap_limits(),
        heap_limits_of_installations(),
        low_memory(),
        low_memory_of_allocations(),
        low_memory_without_module(),
        environment(),
        storage(),
        without_cycles(),
        reserved(),
        reserved_by_growth(),
        reservation_limits(),
    ];
    of_group("settings", cases)
}

fn limit(bytes: u64) -> CanisterSettings {
    CanisterSettings { wasm_memory_limit: nat(bytes), ..none() }
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

const KIB: u64 = 1 << 10;

fn heap_limits() -> SubnetCase {
    let mut case = Case::default();
    set(&mut case, limit(MIB));
    case.run(1, touch(160));
    case.run(1, touch(160));
    case.run(1, count());
    case.method(MessageKind::Query, 1, "ask", &[]);
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
        let trap = self::script(|script| script.text(Text::Trap, b"trapped as asked"));
        let cleanup = script_of_task(600);
        script.send(&Send { on_cleanup: Some(cleanup), ..ask(trap) });
    });
    set(&mut case, limit(6 * MIB));
    case.run(1, in_cleanup);
    case.run(1, count());
    status(&mut case);
    case.named("heap_limits")
}

fn heap_limits_of_installations() -> SubnetCase {
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

fn low_memory() -> SubnetCase {
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

fn low_memory_of_allocations() -> SubnetCase {
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
fn low_memory_without_module() -> SubnetCase {
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

/// A module that reads environment variables. Each method returns what it read and the instructions
/// so far. `name` and `value` copy into a buffer of 1 000 bytes, from the offset in their argument.
const ENVIRONMENT: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_arg_data_size" (func $arg_size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $arg_copy (param i32 i32 i32)))
    (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
    (import "ic0" "env_var_count" (func $count (result i32)))
    (import "ic0" "env_var_name_size" (func $name_size (param i32) (result i32)))
    (import "ic0" "env_var_name_copy" (func $name_copy (param i32 i32 i32 i32)))
    (import "ic0" "env_var_name_exists" (func $exists (param i32 i32) (result i32)))
    (import "ic0" "env_var_value_size" (func $value_size (param i32 i32) (result i32)))
    (import "ic0" "env_var_value_copy" (func $value_copy (param i32 i32 i32 i32 i32)))
    (memory 1)
    (func $argument
        (call $arg_copy (i32.const 1000) (i32.const 0) (call $arg_size)))
    (func $done (param $size i32)
        (call $append (i32.const 8) (local.get $size))
        (i64.store (i32.const 0) (call $counter (i32.const 0)))
        (call $append (i32.const 0) (i32.const 8)) (call $reply))
    (func $number (param $number i32)
        (i32.store (i32.const 8) (local.get $number)) (call $done (i32.const 4)))
    (func (export "canister_update count") (call $number (call $count)))
    (func (export "canister_query count_in_query") (call $number (call $count)))
    (func (export "canister_update name_size") (call $argument)
        (call $number (call $name_size (i32.load (i32.const 1000)))))
    (func (export "canister_update name") (call $argument)
        (call $name_copy (i32.load (i32.const 1000)) (i32.const 8) (i32.load (i32.const 1004))
            (i32.load (i32.const 1008)))
        (call $done (i32.load (i32.const 1008))))
    (func (export "canister_update exists") (call $argument)
        (call $number (call $exists (i32.const 1000) (call $arg_size))))
    (func (export "canister_update value_size") (call $argument)
        (call $number (call $value_size (i32.const 1000) (call $arg_size))))
    (func (export "canister_update value") (call $argument)
        (call $value_copy (i32.const 1008) (i32.sub (call $arg_size) (i32.const 8)) (i32.const 8)
            (i32.load (i32.const 1000)) (i32.load (i32.const 1004)))
        (call $done (i32.load (i32.const 1004))))
    (func (export "canister_update outside")
        (call $number (call $exists (i32.const 65530) (i32.const 10)))))"#;

fn environment() -> SubnetCase {
    let mut case = Case::default();
    let variables = |variables: &[(&str, &str)]| {
        let variable = |(name, value): &(&str, &str)| EnvironmentVariable {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        };
        let variables = variables.iter().map(variable).collect();
        CanisterSettings { environment_variables: Some(variables), ..none() }
    };
    let update = |case: &mut Case, method: &str, argument: &[u8]| {
        case.method(MessageKind::Update, 1, method, argument);
    };
    let numbers =
        |numbers: [u32; 3]| numbers.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<_>>();
    update(&mut case, "count", &[]);
    update(&mut case, "name_size", &numbers([0, 0, 0]));
    update(&mut case, "exists", b"name");
    update(&mut case, "value_size", b"name");
    let long = "n".repeat(128);
    set(
        &mut case,
        variables(&[("name", "value"), ("b", ""), (&long, "long"), ("ä", "ö\u{1f600}")]),
    );
    update(&mut case, "count", &[]);
    case.method(MessageKind::Query, 1, "count_in_query", &[]);
    for index in 0..5 {
        update(&mut case, "name_size", &numbers([index, 0, 0]));
        update(&mut case, "name", &numbers([index, 0, 1]));
    }
    update(&mut case, "name", &numbers([2, 1, 3]));
    update(&mut case, "name", &numbers([2, 0, 5]));
    update(&mut case, "name", &numbers([2, 4, 0]));
    update(&mut case, "name", &numbers([2, 5, 0]));
    update(&mut case, "name", &numbers([2, u32::MAX, 2]));
    for name in ["name", "b", "ä", "other", "", "NAME", &long, &"n".repeat(129)] {
        update(&mut case, "exists", name.as_bytes());
        update(&mut case, "value_size", name.as_bytes());
        update(&mut case, "value", &[&[0; 8], name.as_bytes()].concat());
    }
    let from = |offset: u32, size: u32, name: &[u8]| {
        [offset.to_le_bytes().as_slice(), &size.to_le_bytes(), name].concat()
    };
    for (offset, size) in [(0, 5), (1, 4), (1, 5), (5, 0), (6, 0), (u32::MAX, 1)] {
        update(&mut case, "value", &from(offset, size, b"name"));
    }
    update(&mut case, "value", &from(0, 6, "ä".as_bytes()));
    update(&mut case, "exists", &[0xff, 0xfe]);
    update(&mut case, "value_size", &[0xff]);
    update(&mut case, "outside", &[]);
    set(&mut case, variables(&[]));
    update(&mut case, "count", &[]);
    update(&mut case, "exists", b"name");
    status(&mut case);
    case.of("environment", vec![without_heartbeat(), ENVIRONMENT.to_owned()])
}

const GIB: u64 = 1 << 30;

fn storage() -> SubnetCase {
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
    case.method(MessageKind::Query, 1, "ask", &[]);
    set(&mut case, freeze(1_000));
    case.run(1, count());
    case.run(1, touch(100));
    case.rounds_after(3, 86_400);
    status(&mut case);
    case.named("storage")
}

/// A call to canister 1 whose answer is the answer of the caller.
fn ask_hooked() -> Send {
    send(id(1), "run", script(|script| script.op(Op::Reply)), Some(5))
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
fn without_cycles() -> SubnetCase {
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

fn reserved() -> SubnetCase {
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

fn reserved_by_growth() -> SubnetCase {
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
    case.method(MessageKind::Query, 1, "compose", &[]);
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
fn reservation_limits() -> SubnetCase {
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
