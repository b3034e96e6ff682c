//! Diagnostics of canisters: what is in the records of a log and in the backtrace of a trap, and who
//! sees it.

use candid::{decode_one, encode_one};
use ic_management_canister_types::{
    CanisterLogFilter, CanisterLogRecord, CanisterSettings, FetchCanisterLogsArgs,
    FetchCanisterLogsResult, LogVisibility, UpdateSettingsArgs,
};
use stablebench_replica::subnet::Subnet;
use stablebench_replica::{Canister, ErrorCode, Principal, Replica, Rules, Span};

use crate::support::managed::{self, MANAGEMENT, PLENTY, USER, manage};
use crate::support::{CALLER, id, subnet_of};

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

const STRANGER: Principal = Principal::from_slice(&[7; 29]);

/// `deep` recurses without an end. `call` calls `fail` of the canister in its argument and rejects
/// with the text that it gets.
const TRAPS: &str = r#"(module
    (import "ic0" "trap" (func $trap (param i32 i32)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (import "ic0" "msg_arg_data_size" (func $size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
    (import "ic0" "call_new" (func $new (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "ic0" "call_perform" (func $perform (result i32)))
    (import "ic0" "msg_reject" (func $reject (param i32 i32)))
    (import "ic0" "msg_reject_msg_size" (func $reason_size (result i32)))
    (import "ic0" "msg_reject_msg_copy" (func $reason (param i32 i32 i32)))
    (memory 1) (table 1 funcref) (elem (i32.const 0) $failed)
    (data (i32.const 0) "fail")
    (func $inner (unreachable))
    (func $_ZN4test6middle17h0123456789abcdefE (call $inner))
    (func $failed (param i32)
        (call $reason (i32.const 100) (i32.const 0) (call $reason_size))
        (call $reject (i32.const 100) (call $reason_size)))
    (func $down (call $down))
    (func $divide (param i32) (drop (i32.div_u (i32.const 1) (local.get 0))))
    (func $method (export "canister_update fail") (export "canister_query ask")
        (call $_ZN4test6middle17h0123456789abcdefE))
    (func $says (export "canister_update say") (call $trap (i32.const 0) (i32.const 4)))
    (func (export "canister_update unnamed") (call $divide (i32.const 0)))
    (func (export "canister_update alone") (unreachable))
    (func (export "canister_update stable") (call $write (i64.const 1) (i64.const 0) (i64.const 1)))
    (func (export "canister_update contract") (drop (call $perform)))
    (func (export "canister_update deep") (call $down))
    (func (export "canister_update call")
        (call $copy (i32.const 100) (i32.const 0) (call $size))
        (call $new (i32.const 100) (call $size) (i32.const 0) (i32.const 4)
            (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
        (drop (call $perform))))"#;

const INNER: &str = "\nCanister Backtrace:\ninner\ntest::middle\nmethod\n";

fn canister(rules: Rules, wasm: &[u8]) -> Canister {
    let replica = Replica::new(rules, None).unwrap();
    let id = replica.create_canister().unwrap().id();
    let module = replica.compile_for_subnet(&id, wasm).unwrap();
    let mut canister = replica.create_canister().unwrap();
    canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
    canister
}

/// The part of a reject's message after the canister's id.
fn text(message: &str) -> &str {
    message.split_once(": ").unwrap().1
}

#[test]
fn traps_have_the_backtrace_of_the_replica() {
    let wasm = wat::parse_str(TRAPS).unwrap();
    for rules in [Rules::of_2025_10(), Rules::of_2026_08(), Rules::today()] {
        let mut canister = canister(rules, &wasm);
        for (method, expected) in [
            ("fail", format!("Canister trapped: unreachable{INNER}")),
            (
                "say",
                "Canister called `ic0.trap` with message: 'fail'\nCanister Backtrace:\nsays\n"
                    .to_owned(),
            ),
            // Its trap is repeated in another form of the module. Function 16, after 5 added imports.
            (
                "unnamed",
                "Canister trapped: integer division by 0\nCanister Backtrace:\ndivide\nunknown \
                 function at index 21\n"
                    .to_owned(),
            ),
            ("alone", "Canister trapped: unreachable".to_owned()),
            (
                "stable",
                "Canister trapped: stable memory out of bounds\nCanister Backtrace:\n\
                 stable64_write\nunknown function at index 23\n"
                    .to_owned(),
            ),
            (
                "deep",
                format!(
                    "Canister trapped: stack overflow\nCanister Backtrace:\n{}",
                    "down\n".repeat(20)
                ),
            ),
        ] {
            let mut fork = canister.fork();
            let normal = canister.update(CALLER, method, &[]).unwrap().outcome.unwrap_err();
            assert_eq!(text(&normal.message), expected, "{method} by {rules}");
            if method != "deep" {
                let (profiled, _) =
                    fork.profile_update(CALLER, method, &[], Span::Message).unwrap();
                assert_eq!(profiled.outcome.unwrap_err(), normal, "{method} by {rules}");
            }
        }
        let contract = canister.update(CALLER, "contract", &[]).unwrap().outcome.unwrap_err();
        assert!(!contract.message.contains("Backtrace"), "{contract}");
    }
}

#[test]
fn modules_without_names_have_no_backtraces() {
    let wasm = wat::parse_str(
        r#"(module
            (import "ic0" "stable64_write" (func (param i64 i64 i64)))
            (func (export "canister_update fail") (unreachable))
            (func (export "canister_update stable")
                (call 0 (i64.const 1) (i64.const 0) (i64.const 1))))"#,
    );
    let mut canister = canister(Rules::today(), &wasm.unwrap());
    for method in ["fail", "stable"] {
        let reject = canister.update(CALLER, method, &[]).unwrap().outcome.unwrap_err();
        assert!(!reject.message.contains('\n'), "{reject}");
    }
}

#[test]
fn long_names_are_cut_in_the_middle() {
    let name = "a".repeat(50_000);
    let wat = format!(
        r#"(module
            (func ${name} (unreachable))
            (func $last (export "canister_update fail") (call ${name})))"#
    );
    let mut canister = canister(Rules::today(), &wat::parse_str(wat).unwrap());
    let reject = canister.update(CALLER, "fail", &[]).unwrap().outcome.unwrap_err();
    assert!(reject.message.len() < 17_000, "{}", reject.message.len());
    assert!(reject.message.contains("\nCanister Backtrace:\naaa"));
    assert!(reject.message.contains("aaa...aaa") && reject.message.ends_with("aaa\nlast\n"));
}

/// A symbol of 326 bytes that stands for some 100 MB: a tuple of ten elements, and then eight tuples
/// whose elements refer to the tuple before.
fn nested_symbol() -> String {
    const DIGITS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let reference = |position: usize| {
        let (mut left, mut digits) = (position - 1, String::new());
        loop {
            digits.insert(0, char::from(DIGITS[left % 62]));
            left /= 62;
            if left == 0 {
                return format!("B{digits}_");
            }
        }
    };
    let mut symbol = "_RIC2ab".to_owned();
    let mut last = symbol.len() - 2;
    symbol.push_str("TllllllllllE");
    for _ in 0..8 {
        let next = symbol.len() - 2;
        symbol.push_str(&format!("T{}E", reference(last).repeat(10)));
        last = next;
    }
    symbol + "E"
}

/// A backtrace demangles no name that it does not show, and no name without an end.
#[test]
fn short_symbols_of_long_names_cost_little() {
    let symbol = nested_symbol();
    let mut names = wasm_encoder::NameMap::new();
    // Only the first is a function.
    for index in 0..20_000 {
        names.append(index, &symbol);
    }
    let mut section = wasm_encoder::NameSection::new();
    section.functions(&names);
    let mut wasm =
        wat::parse_str(r#"(module (func (export "canister_update fail") (unreachable)))"#).unwrap();
    wasm_encoder::Section::append_to(&section, &mut wasm);
    let mut canister = canister(Rules::today(), &wasm);
    let began = std::time::Instant::now();
    let reject = canister.update(CALLER, "fail", &[]).unwrap().outcome.unwrap_err();
    assert!(reject.message.len() < 17_000, "{}", reject.message.len());
    assert!(reject.message.contains("Backtrace:\nab::<(i32, i32"));
    assert!(reject.message.ends_with("i{size limit reached}\n"));
    // All names took minutes and 20 GB.
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    let mut fork = canister.fork();
    let (_, profile) = fork.profile_update(CALLER, "fail", &[], Span::Message).unwrap();
    let named = profile.frames.iter().map(|frame| frame.name.len()).max();
    assert!(named.unwrap() < 1_010, "{named:?}");
}

#[test]
fn only_who_sees_the_log_sees_backtraces() {
    let wasm = wat::parse_str(TRAPS).unwrap();
    let mut canister = canister(Rules::today(), &wasm);
    for (caller, sees) in [(CALLER, true), (STRANGER, false)] {
        let update = canister.update(caller, "fail", &[]).unwrap().outcome.unwrap_err();
        let query = canister.query(caller, "ask", &[]).unwrap().outcome.unwrap_err();
        for reject in [update, query] {
            assert_eq!(reject.message.contains(INNER), sees, "{reject}");
            assert_eq!(reject.message.contains("Backtrace"), sees, "{reject}");
        }
    }
}

#[test]
fn settings_decide_who_sees_backtraces() {
    let replica = Replica::new(Rules::today(), None).unwrap();
    let mut subnet = subnet_of(&replica, &[TRAPS; 2]);
    let [callee, relay] = [0, 1].map(id);
    let seen = |subnet: &mut Subnet| {
        let mut backtraces = Vec::new();
        for caller in [CALLER, STRANGER] {
            let update = subnet.update(caller, callee, "fail", &[]).unwrap().response;
            let query = subnet.query(caller, callee, "ask", &[]).unwrap().response;
            backtraces.extend([update, query].map(|it| it.unwrap_err().message.contains(INNER)));
        }
        // The canister that calls is no controller.
        let call = subnet.update(CALLER, relay, "call", callee.as_slice()).unwrap().response;
        let text = call.unwrap_err().message;
        assert!(text.contains("Canister trapped: unreachable"), "{text}");
        backtraces.push(text.contains(&format!("{INNER}.\nConsider")));
        backtraces
    };
    assert_eq!(seen(&mut subnet), [true, true, false, false, false]);
    let mut allow = |visibility| {
        let settings =
            CanisterSettings { log_visibility: Some(visibility), ..CanisterSettings::default() };
        let args =
            UpdateSettingsArgs { canister_id: callee, settings, sender_canister_version: None };
        manage(&mut subnet, "update_settings", args).unwrap();
        seen(&mut subnet)
    };
    assert_eq!(allow(LogVisibility::Public), [true; 5]);
    let stranger = LogVisibility::AllowedViewers(vec![STRANGER]);
    assert_eq!(allow(stranger), [true, true, true, true, false]);
    assert_eq!(allow(LogVisibility::AllowedViewers(vec![relay])), [true, true, false, false, true]);

    // The log always has them.
    let argument = FetchCanisterLogsArgs { canister_id: callee, filter: None };
    let logs =
        subnet.query(CALLER, MANAGEMENT, "fetch_canister_logs", &encode_one(argument).unwrap());
    let logs: FetchCanisterLogsResult = decode_one(&logs.unwrap().response.unwrap()).unwrap();
    for record in logs.canister_log_records {
        let text = String::from_utf8(record.content).unwrap();
        assert_eq!(text, format!("[TRAP]: unreachable{INNER}"));
    }
}
