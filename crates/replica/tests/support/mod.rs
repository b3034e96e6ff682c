//! Canisters in WebAssembly text, and helpers to call them.

#![allow(dead_code, reason = "each test program uses a part of this module")]

use stablebench_replica::subnet::Subnet;
use stablebench_replica::{
    Canister, ErrorCode, Execution, Module, Principal, Replica, Rules, Settings,
};

/// The caller of all messages and the controller of all canisters.
pub const CALLER: Principal = Principal::anonymous();

pub fn compile(wat: &str) -> Module {
    let wasm = wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}"));
    Replica::new(Rules::of_2025_10(), None).unwrap().compile(&wasm).unwrap()
}

/// Installs a module in a new canister.
pub fn install(wat: &str) -> Canister {
    let mut canister = Replica::new(Rules::of_2025_10(), None).unwrap().create_canister().unwrap();
    let execution = canister.install(&compile(wat), CALLER, &[]).unwrap();
    execution.outcome.unwrap();
    canister
}

/// The id of the canister with this number on a subnet.
pub fn id(number: u8) -> Principal {
    Principal::from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xe0, 0, number, 1, 1])
}

/// A canister of a subnet, with a module.
pub fn member(replica: &Replica, number: u8, wat: &str) -> Canister {
    let module = replica.compile_for_subnet(&id(number), &wat::parse_str(wat).unwrap()).unwrap();
    let usual = replica.create_canister().unwrap();
    let settings = Settings { id: id(number), ..usual.settings().clone() };
    let mut canister = Canister::new(settings).unwrap();
    canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
    canister
}

/// A subnet of canisters with these modules.
pub fn subnet_of(replica: &Replica, modules: &[&str]) -> Subnet {
    let mut subnet = Subnet::new(replica);
    for (number, wat) in (0..).zip(modules) {
        subnet.add(member(replica, number, wat)).unwrap();
    }
    subnet
}

pub fn update(canister: &mut Canister, method: &str, argument: &[u8]) -> Execution {
    canister.update(CALLER, method, argument).unwrap()
}

pub fn query(canister: &Canister, method: &str, argument: &[u8]) -> Execution {
    canister.query(CALLER, method, argument).unwrap()
}

/// The code of the reject.
#[track_caller]
pub fn code(execution: &Execution) -> ErrorCode {
    execution.outcome.as_ref().expect_err("a reject").code
}

/// The 64-bit numbers of a reply.
#[track_caller]
pub fn numbers(execution: Execution) -> Vec<u64> {
    let reply = execution.outcome.expect("a reply");
    reply.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// The first line of a reject's message without `Error from Canister ID: ` and without full stops at
/// the end, which must equal the recorded one.
pub fn words(message: &str) -> &str {
    let line = message.lines().next().unwrap_or_default();
    let line = match line.strip_prefix("Error from Canister ") {
        Some(rest) => rest.split_once(": ").expect("an id and a colon").1,
        None => line,
    };
    line.trim_end_matches('.')
}

#[track_caller]
pub fn rejected(execution: &Execution, code: ErrorCode, expected: &str) {
    let reject = execution.outcome.as_ref().expect_err("a reject");
    assert_eq!((reject.code, words(&reject.message)), (code, expected));
}

#[track_caller]
pub fn trapped(execution: &Execution, expected: &str) {
    rejected(execution, ErrorCode::CanisterTrapped, &format!("Canister trapped: {expected}"));
}

/// Asserts that the message ended at its limit, which is what it is charged.
#[track_caller]
pub fn out_of_instructions(execution: &Execution, limit: u64) {
    rejected(
        execution,
        ErrorCode::CanisterInstructionLimitExceeded,
        &format!(
            "Canister exceeded the limit of {limit} instructions for single message execution"
        ),
    );
    assert_eq!(execution.charge.get(), limit);
}

/// Memory of this process: resident, and in anonymous files.
#[cfg(target_os = "linux")]
pub fn held() -> u64 {
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    const PAGE: u64 = 4_096;
    const BLOCK: u64 = 512;
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let resident: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    let in_files: u64 = fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let target = fs::read_link(&path).ok()?;
            let ours = target.to_string_lossy().contains("memfd:");
            // A file may have been closed since it was listed.
            ours.then(|| fs::metadata(path).map_or(0, |file| file.blocks() * BLOCK))
        })
        .sum();
    resident * PAGE + in_files
}

/// The module of recorded cases with several canisters: it calls others, has a heartbeat and sets
/// timers.
pub const RECORDED: &str = r#"(module
  (import "ic0" "performance_counter" (func $pc (param i32) (result i64)))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
  (import "ic0" "msg_reply" (func $reply))
  (import "ic0" "msg_reject" (func $reject (param i32 i32)))
  (import "ic0" "msg_reject_code" (func $reject_code (result i32)))
  (import "ic0" "msg_reject_msg_size" (func $reject_size (result i32)))
  (import "ic0" "msg_reject_msg_copy" (func $reject_copy (param i32 i32 i32)))
  (import "ic0" "msg_arg_data_size" (func $arg_size (result i32)))
  (import "ic0" "msg_arg_data_copy" (func $arg_copy (param i32 i32 i32)))
  (import "ic0" "msg_caller_size" (func $caller_size (result i32)))
  (import "ic0" "msg_caller_copy" (func $caller_copy (param i32 i32 i32)))
  (import "ic0" "msg_cycles_available128" (func $available (param i32)))
  (import "ic0" "msg_cycles_accept128" (func $accept (param i64 i64 i32)))
  (import "ic0" "msg_cycles_refunded128" (func $refunded (param i32)))
  (import "ic0" "msg_deadline" (func $deadline (result i64)))
  (import "ic0" "call_new" (func $call_new (param i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "ic0" "call_on_cleanup" (func $on_cleanup (param i32 i32)))
  (import "ic0" "call_data_append" (func $data_append (param i32 i32)))
  (import "ic0" "call_cycles_add128" (func $cycles_add (param i64 i64)))
  (import "ic0" "call_with_best_effort_response" (func $best_effort (param i32)))
  (import "ic0" "call_perform" (func $perform (result i32)))
  (import "ic0" "global_timer_set" (func $timer (param i64) (result i64)))
  (import "ic0" "time" (func $time (result i64)))
  (import "ic0" "trap" (func $trap (param i32 i32)))
  (memory 8)
  (table 4 funcref)
  (elem (i32.const 0) $on_reply $on_reject $on_clean $on_reply_trap)
  (global $n (mut i64) (i64.const 0))      ;; counts what was done and kept
  (global $ticks (mut i64) (i64.const 0))
  (data (i32.const 8) "refused as asked")
  (func $put64 (param $v i64) (i64.store (i32.const 0) (local.get $v)) (call $append (i32.const 0) (i32.const 8)))
  (func $bump (global.set $n (i64.add (global.get $n) (i64.const 1))))
  ;; argument at 1024: flags 1, callee 10, timeout 1, cycles 8, method length 1, method, payload
  (func $send (param $from i32) (param $size i32) (result i32) (local $flags i32) (local $m i32) (local $p i32)
    (local.set $flags (i32.load8_u (local.get $from)))
    (local.set $m (i32.load8_u (i32.add (local.get $from) (i32.const 20))))
    (local.set $p (i32.add (i32.add (local.get $from) (i32.const 21)) (local.get $m)))
    (call $call_new (i32.add (local.get $from) (i32.const 1)) (i32.const 10)
      (i32.add (local.get $from) (i32.const 21)) (local.get $m)
      (if (result i32) (i32.and (local.get $flags) (i32.const 8)) (then (i32.const -1)) (else
        (if (result i32) (i32.and (local.get $flags) (i32.const 4)) (then (i32.const 3)) (else (i32.const 0)))))
      (i32.const 77)
      (if (result i32) (i32.and (local.get $flags) (i32.const 8)) (then (i32.const -1)) (else (i32.const 1)))
      (i32.const 78))
    (if (i32.and (local.get $flags) (i32.const 16)) (then (call $on_cleanup (i32.const 2) (i32.const 79))))
    (call $data_append (local.get $p) (i32.sub (i32.add (local.get $from) (local.get $size)) (local.get $p)))
    (if (i32.and (local.get $flags) (i32.const 1)) (then
      (call $cycles_add (i64.const 0) (i64.load (i32.add (local.get $from) (i32.const 12))))))
    (if (i32.and (local.get $flags) (i32.const 2)) (then
      (call $best_effort (i32.load8_u (i32.add (local.get $from) (i32.const 11))))))
    (call $perform))
  (func $forward (local $code i32)
    (call $arg_copy (i32.const 1024) (i32.const 0) (call $arg_size))
    (call $bump)
    (local.set $code (call $send (i32.const 1024) (call $arg_size)))
    (if (local.get $code) (then (call $put64 (i64.extend_i32_u (local.get $code))) (call $reply)))
    (if (i32.and (i32.load8_u (i32.const 1024)) (i32.const 8)) (then (call $put64 (call $pc (i32.const 1))) (call $reply))))
  (func (export "canister_update forward") (call $forward))
  (func (export "canister_composite_query cforward") (call $forward))
  (func (export "canister_update twice")
    (call $arg_copy (i32.const 1024) (i32.const 0) (call $arg_size))
    (drop (call $send (i32.const 1024) (call $arg_size))) (drop (call $send (i32.const 1024) (call $arg_size))))
  (func $on_reply (param i32) (call $bump)
    (call $put64 (call $pc (i32.const 0))) (call $put64 (call $pc (i32.const 1)))
    (call $refunded (i32.const 32)) (call $append (i32.const 32) (i32.const 16))
    (call $arg_copy (i32.const 1024) (i32.const 0) (call $arg_size)) (call $append (i32.const 1024) (call $arg_size))
    (call $put64 (call $pc (i32.const 1))) (call $reply))
  (func $on_reject (param i32) (call $bump)
    (call $put64 (i64.extend_i32_u (call $reject_code))) (call $put64 (call $pc (i32.const 1)))
    (call $refunded (i32.const 32)) (call $append (i32.const 32) (i32.const 16))
    (call $reject_copy (i32.const 1024) (i32.const 0) (call $reject_size)) (call $append (i32.const 1024) (call $reject_size)) (call $reply))
  (func $on_clean (param i32) (global.set $n (i64.add (global.get $n) (i64.const 1000))))
  (func $on_reply_trap (param i32) (call $bump) (call $trap (i32.const 8) (i32.const 7)))
  (func (export "canister_update echo") (call $bump) (call $put64 (call $pc (i32.const 0))) (call $put64 (call $pc (i32.const 1)))
    (call $arg_copy (i32.const 1024) (i32.const 0) (call $arg_size)) (call $append (i32.const 1024) (call $arg_size)) (call $reply))
  (func (export "canister_query qecho") (call $bump) (call $put64 (call $pc (i32.const 0)))
    (call $arg_copy (i32.const 1024) (i32.const 0) (call $arg_size)) (call $append (i32.const 1024) (call $arg_size)) (call $reply))
  (func (export "canister_update who") (call $caller_copy (i32.const 64) (i32.const 0) (call $caller_size)) (call $append (i32.const 64) (call $caller_size)) (call $reply))
  (func (export "canister_update refuse") (call $bump) (call $reject (i32.const 8) (i32.const 16)))
  (func (export "canister_update fail") (call $bump) (call $trap (i32.const 8) (i32.const 7)))
  (func (export "canister_update silent") (call $bump))
  (func (export "canister_update big") (call $append (i32.const 0) (i32.const 400000)) (call $reply))
  (func (export "canister_update half") (call $bump) (call $available (i32.const 32)) (call $append (i32.const 32) (i32.const 16))
    (call $accept (i64.const 0) (i64.div_u (i64.load (i32.const 32)) (i64.const 2)) (i32.const 48)) (call $append (i32.const 48) (i32.const 16)) (call $reply))
  (func (export "canister_update arm") (call $arg_copy (i32.const 1024) (i32.const 0) (i32.const 8))
    (call $put64 (call $timer (if (result i64) (i64.eqz (i64.load (i32.const 1024))) (then (i64.const 0)) (else (i64.add (call $time) (i64.load (i32.const 1024))))))) (call $reply))
  (func (export "canister_global_timer") (global.set $ticks (i64.add (global.get $ticks) (i64.const 1))) (drop (call $timer (i64.add (call $time) (i64.const 1000000000)))))
  (func (export "canister_query state") (call $put64 (global.get $n)) (call $put64 (global.get $ticks)) (call $reply))
  (func (export "canister_heartbeat") (global.set $ticks (i64.add (global.get $ticks) (i64.const 100))))
)"#;

/// Canisters that a user controls through the management canister, and a module that calls it.
pub mod managed {
    use candid::{CandidType, Nat, decode_one, encode_one};
    use ic_management_canister_types::{
        CanisterIdRecord, CanisterInstallMode, InstallCodeArgs,
        ProvisionalCreateCanisterWithCyclesArgs,
    };
    use stablebench_replica::subnet::Subnet;
    use stablebench_replica::{Principal, Reject, Replica, Rules};

    pub const MANAGEMENT: Principal = Principal::management_canister();
    /// The caller of all messages and the controller of all canisters.
    pub const USER: Principal = Principal::anonymous();
    /// The method by which the user creates canisters.
    pub const CREATE: &str = "provisional_create_canister_with_cycles";
    /// More cycles than a test spends.
    pub const PLENTY: Option<u64> = Some(1_000_000_000_000_000);

    /// `ask` calls a query of the management canister, whose name is up to a space, with the rest of
    /// the argument, and replies or rejects with the answer. So does `relay` with any method, and with
    /// the cycles in the first 8 bytes of the argument. `say` prints, and `fail` traps.
    pub const RELAY: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reject" (func $reject (param i32 i32)))
    (import "ic0" "msg_reject_msg_size" (func $reason_size (result i32)))
    (import "ic0" "msg_reject_msg_copy" (func $reason (param i32 i32 i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_arg_data_size" (func $size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
    (import "ic0" "call_new" (func $new (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "ic0" "call_data_append" (func $data (param i32 i32)))
    (import "ic0" "call_cycles_add" (func $cycles (param i64)))
    (import "ic0" "call_perform" (func $perform (result i32)))
    (import "ic0" "debug_print" (func $print (param i32 i32)))
    (import "ic0" "trap" (func $trap (param i32 i32)))
    (memory 1) (table 2 funcref) (elem (i32.const 0) $back $failed)
    (data (i32.const 0) "a word")
    (func $back (param i32)
        (call $copy (i32.const 100) (i32.const 0) (call $size))
        (call $append (i32.const 100) (call $size)) (call $reply))
    (func $failed (param i32)
        (call $reason (i32.const 100) (i32.const 0) (call $reason_size))
        (call $reject (i32.const 100) (call $reason_size)))
    (func $call (param $name i32) (local $end i32)
        (local.set $end (local.get $name))
        (block $found (loop $next
            (br_if $found (i32.eq (i32.load8_u (local.get $end)) (i32.const 32)))
            (local.set $end (i32.add (local.get $end) (i32.const 1)))
            (br $next)))
        (call $new (i32.const 0) (i32.const 0)
            (local.get $name) (i32.sub (local.get $end) (local.get $name))
            (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0))
        (local.set $end (i32.add (local.get $end) (i32.const 1)))
        (call $data (local.get $end)
            (i32.sub (i32.add (call $size) (i32.const 100)) (local.get $end))))
    (func (export "canister_composite_query ask")
        (call $copy (i32.const 100) (i32.const 0) (call $size))
        (call $call (i32.const 100))
        (drop (call $perform)))
    (func (export "canister_update relay")
        (call $copy (i32.const 100) (i32.const 0) (call $size))
        (call $call (i32.const 108))
        (call $cycles (i64.load (i32.const 100)))
        (drop (call $perform)))
    (func (export "canister_update say") (call $print (i32.const 0) (i32.const 6)) (call $reply))
    (func (export "canister_update fail") (call $trap (i32.const 0) (i32.const 6))))"#;

    /// The answer of the management canister to the user.
    pub fn manage(
        subnet: &mut Subnet,
        method: &str,
        argument: impl CandidType,
    ) -> Result<Vec<u8>, Reject> {
        let argument = encode_one(argument).unwrap();
        subnet.update(USER, MANAGEMENT, method, &argument).unwrap().response
    }

    /// Creates a canister without a module, with so many cycles or with the usual ones.
    pub fn create(subnet: &mut Subnet, cycles: Option<u64>) -> Principal {
        let create = ProvisionalCreateCanisterWithCyclesArgs {
            amount: cycles.map(Nat::from),
            ..ProvisionalCreateCanisterWithCyclesArgs::default()
        };
        let created = manage(subnet, CREATE, create).unwrap();
        decode_one::<CanisterIdRecord>(&created).unwrap().canister_id
    }

    /// The argument that installs a module.
    pub fn code(
        mode: CanisterInstallMode,
        canister_id: Principal,
        wasm_module: Vec<u8>,
    ) -> InstallCodeArgs {
        let (arg, sender_canister_version) = (Vec::new(), None);
        InstallCodeArgs { mode, canister_id, wasm_module, arg, sender_canister_version }
    }

    /// A subnet with a canister that has a module, and so many cycles or the usual ones.
    pub fn subnet(rules: Rules, cycles: Option<u64>, wat: &str) -> (Subnet, Principal) {
        let mut subnet = Subnet::new(&Replica::new(rules, None).unwrap());
        let id = create(&mut subnet, cycles);
        let module = wat::parse_str(wat).unwrap();
        manage(&mut subnet, "install_code", code(CanisterInstallMode::Install, id, module))
            .unwrap();
        (subnet, id)
    }
}
