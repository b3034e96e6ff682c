//! Canisters that a user controls through the management canister, and a module that calls it.

use candid::{CandidType, Nat, decode_one, encode_one};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, InstallCodeArgs, ProvisionalCreateCanisterWithCyclesArgs,
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

/// `ask` calls a query of the management canister, whose name is up to a space, with the rest of the
/// argument, and replies or rejects with the answer. So does `relay` with any method, and with the cycles
/// in the first 8 bytes of the argument. `say` prints, and `fail` traps.
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
    manage(&mut subnet, "install_code", code(CanisterInstallMode::Install, id, module)).unwrap();
    (subnet, id)
}
