//! Logs of canisters: the records that are kept, and those that are returned.

use candid::{decode_one, encode_one};
use ic_management_canister_types::{
    CanisterLogFilter, CanisterLogRecord, CanisterSettings, FetchCanisterLogsArgs,
    FetchCanisterLogsResult, LogVisibility, UpdateSettingsArgs,
};
use stablebench_replica::subnet::Subnet;
use stablebench_replica::{ErrorCode, Principal, Rules};

use super::managed::{self, MANAGEMENT, PLENTY, USER, manage};

/// `print` prints as many texts as the first number in the argument says, as long as the second says.
/// Each begins with its number, in five digits. `trap` traps with the argument. `fetch` reads a log as
/// many times as the first number says, with the rest as the argument.
const PRINTS: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "debug_print" (func $print (param i32 i32)))
    (import "ic0" "trap" (func $trap (param i32 i32)))
    (import "ic0" "msg_arg_data_size" (func $size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
    (import "ic0" "call_new" (func $new (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "ic0" "call_data_append" (func $data (param i32 i32)))
    (import "ic0" "call_perform" (func $perform (result i32)))
    (memory 1)
    (func $digit (param $at i32) (param $number i32)
        (i32.store8 (local.get $at)
            (i32.add (i32.const 48) (i32.rem_u (local.get $number) (i32.const 10)))))
    (func (export "canister_update print") (local $n i32)
        (call $copy (i32.const 40000) (i32.const 0) (i32.const 8))
        (loop $next
            (call $digit (i32.const 0) (i32.div_u (local.get $n) (i32.const 10000)))
            (call $digit (i32.const 1) (i32.div_u (local.get $n) (i32.const 1000)))
            (call $digit (i32.const 2) (i32.div_u (local.get $n) (i32.const 100)))
            (call $digit (i32.const 3) (i32.div_u (local.get $n) (i32.const 10)))
            (call $digit (i32.const 4) (local.get $n))
            (call $print (i32.const 0) (i32.load (i32.const 40004)))
            (br_if $next (i32.lt_u
                (local.tee $n (i32.add (local.get $n) (i32.const 1)))
                (i32.load (i32.const 40000)))))
        (call $reply))
    (table 2 funcref) (elem (i32.const 0) $back $failed)
    (data (i32.const 50000) "fetch_canister_logs")
    (func $fetch
        (call $new (i32.const 0) (i32.const 0) (i32.const 50000) (i32.const 19)
            (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0))
        (call $data (i32.const 40004) (i32.sub (i32.load (i32.const 0)) (i32.const 4)))
        (drop (call $perform)))
    (func $back (param i32)
        (i32.store (i32.const 40000) (i32.sub (i32.load (i32.const 40000)) (i32.const 1)))
        (if (i32.load (i32.const 40000)) (then (call $fetch)) (else (call $reply))))
    (func $failed (param i32) (unreachable))
    (func (export "canister_composite_query fetch")
        (call $copy (i32.const 40000) (i32.const 0) (call $size))
        (i32.store (i32.const 0) (call $size))
        (call $fetch))
    (func $traps (export "canister_update trap")
        (call $copy (i32.const 0) (i32.const 0) (call $size))
        (call $trap (i32.const 0) (call $size))))"#;

/// A subnet with a canister whose log has this limit.
fn subnet(rules: Rules, limit: u64) -> (Subnet, Principal) {
    let (mut subnet, canister_id) = managed::subnet(rules, PLENTY, PRINTS);
    let settings = CanisterSettings {
        log_memory_limit: Some(limit.into()),
        log_visibility: Some(LogVisibility::Public),
        ..CanisterSettings::default()
    };
    let update = UpdateSettingsArgs { canister_id, settings, sender_canister_version: None };
    manage(&mut subnet, "update_settings", update).unwrap();
    (subnet, canister_id)
}

fn print(subnet: &mut Subnet, id: Principal, texts: u32, bytes: u32) {
    let argument = [texts.to_le_bytes(), bytes.to_le_bytes()].concat();
    subnet.update(USER, id, "print", &argument).unwrap().response.unwrap();
}

fn records(subnet: &Subnet, id: Principal) -> Vec<CanisterLogRecord> {
    filtered(subnet, id, None)
}

fn filtered(
    subnet: &Subnet,
    canister_id: Principal,
    filter: Option<CanisterLogFilter>,
) -> Vec<CanisterLogRecord> {
    let argument = encode_one(FetchCanisterLogsArgs { canister_id, filter }).unwrap();
    let reply = subnet.query(USER, MANAGEMENT, "fetch_canister_logs", &argument).unwrap();
    let reply = reply.response.unwrap();
    decode_one::<FetchCanisterLogsResult>(&reply).unwrap().canister_log_records
}

/// The first and the last record.
fn ends(records: &[CanisterLogRecord]) -> [(u64, &str); 2] {
    [records.first(), records.last()].map(|record| {
        let record = record.unwrap();
        (record.idx, str::from_utf8(&record.content[..5]).unwrap())
    })
}

#[test]
fn a_log_keeps_the_newest_records() {
    for rules in [Rules::of_2025_10(), Rules::of_2026_08(), Rules::today()] {
        let (mut subnet, id) = subnet(rules, 4_096);
        print(&mut subnet, id, 1_500, 5);
        // 91 records of 45 bytes.
        let kept = records(&subnet, id);
        assert_eq!(ends(&kept), [(1_409, "01409"), (1_499, "01499")], "{rules}");
        assert_eq!(kept.len(), 91);
        // The number of a record that is not kept is not used again.
        print(&mut subnet, id, 1, 5);
        assert_eq!(ends(&records(&subnet, id)), [(1_410, "01410"), (1_500, "00000")]);
        // Of a message, only what is kept displaces records of earlier messages.
        print(&mut subnet, id, 2, 4_000);
        assert_eq!(ends(&records(&subnet, id)), [(1_500, "00000"), (1_502, "00001")]);
    }
}

#[test]
fn a_large_log_keeps_the_newest_records() {
    let (mut subnet, id) = subnet(Rules::today(), 2 << 20);
    print(&mut subnet, id, 70, 30_000);
    let kept = records(&subnet, id);
    assert_eq!(ends(&kept)[1], (69, "00069"));
    print(&mut subnet, id, 60_000, 5);
    assert_eq!(ends(&records(&subnet, id))[1], (60_069, "59999"));
    let (mut none, id) = self::subnet(Rules::today(), 0);
    print(&mut none, id, 60_000, 5);
    assert_eq!(records(&none, id), []);
}

/// The log has 69 records of 30 040 bytes, of which 66 are returned at once.
#[test]
fn at_most_two_megabytes_of_records_are_returned() {
    let (mut subnet, id) = subnet(Rules::today(), 2 << 20);
    print(&mut subnet, id, 100, 30_000);
    let numbers = |filter| {
        let records = filtered(&subnet, id, filter);
        (records.len(), ends(&records).map(|(number, _)| number))
    };
    let by_number = |start, end| Some(CanisterLogFilter::ByIdx { start, end });
    assert_eq!(numbers(None), (66, [34, 99]));
    assert_eq!(numbers(by_number(0, u64::MAX)), (66, [31, 96]));
    assert_eq!(numbers(by_number(40, 50)), (10, [40, 49]));
    assert_eq!(numbers(by_number(90, 200)), (10, [90, 99]));
    let by_time = |start, end| Some(CanisterLogFilter::ByTimestampNanos { start, end });
    assert_eq!(numbers(by_time(0, u64::MAX)), (66, [31, 96]));
    assert_eq!(filtered(&subnet, id, by_number(50, 50)), []);
    assert_eq!(filtered(&subnet, id, by_number(0, 31)), []);
    assert_eq!(filtered(&subnet, id, by_time(0, 1)), []);
}

/// Each reading counts 50 M of the 5 G of a composite query. One of 4 000 records counts another 150 000,
/// 900 for each record, and 1 for each of their bytes.
#[test]
fn reading_a_log_counts_in_a_composite_query() {
    let (mut subnet, id) = subnet(Rules::today(), 2 << 20);
    let fetch = |subnet: &Subnet, times: u32| {
        let argument = FetchCanisterLogsArgs { canister_id: id, filter: None };
        let argument = [&times.to_le_bytes()[..], &encode_one(argument).unwrap()].concat();
        subnet.query(USER, id, "fetch", &argument).unwrap().response
    };
    let most = |subnet: &Subnet, times| {
        fetch(subnet, times).unwrap();
        let code = fetch(subnet, times + 1).unwrap_err().code;
        assert_eq!(code, ErrorCode::QueryCallGraphTotalInstructionLimitExceeded);
    };
    // 50 M, 150 000, and what the callback is charged.
    most(&subnet, 99);
    print(&mut subnet, id, 4_000, 300);
    // 3.6 M and 1.2 M more.
    most(&subnet, 90);
}

/// The text of a trap is not read from the reject, which quotes it.
#[test]
fn the_log_has_the_text_of_a_trap() {
    let (mut subnet, id) = subnet(Rules::today(), 4_096);
    for text in ["plain", "", "it's", "a'\nCanister Backtrace:\nb", "'\nCanister Backtrace:\n'\n"] {
        let refused = subnet.update(USER, id, "trap", text.as_bytes()).unwrap().response;
        assert_eq!(refused.unwrap_err().code, ErrorCode::CanisterCalledTrap);
        let last = records(&subnet, id).pop().unwrap();
        let logged = String::from_utf8(last.content).unwrap();
        assert_eq!(logged, format!("[TRAP]: {text}\nCanister Backtrace:\ntraps\n"));
    }
}
