//! The management canister: what the recorded cases do not show.

use candid::{Nat, decode_one, encode_args, encode_one};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInfoArgs, CanisterInfoResult, CanisterInstallMode, CanisterSettings,
    CanisterStatusResult, CreateCanisterArgs, FetchCanisterLogsArgs, FetchCanisterLogsResult,
    HttpHeader, HttpMethod, HttpRequestArgs, HttpRequestResult, LogVisibility,
    ProvisionalCreateCanisterWithCyclesArgs, UpdateSettingsArgs, UpgradeFlags,
    WasmMemoryPersistence,
};
use stablebench_replica::subnet::Subnet;
use stablebench_replica::{Cycles, ErrorCode, Principal, Reject, RejectCode, Replica, Rules};

use crate::support::managed::{self, CREATE, MANAGEMENT, PLENTY, RELAY, USER, code, manage};

const STRANGER: Principal = Principal::from_slice(&[7; 29]);
const DAY: u64 = 86_400 * 1_000_000_000;

/// A subnet by today's rules with a canister that relays.
fn subnet() -> (Subnet, Principal) {
    managed::subnet(Rules::today(), None, RELAY)
}

/// The argument of `relay`.
fn relayed(cycles: u64, method: &str, argument: &[u8]) -> Vec<u8> {
    [&cycles.to_le_bytes(), method.as_bytes(), b" ", argument].concat()
}

#[test]
fn users_and_canisters_create_up_to_the_limit() {
    let (mut subnet, id) = subnet();
    subnet.set_max_canisters(2);
    let by_canister = |subnet: &mut Subnet| {
        let argument = encode_one(CreateCanisterArgs::default()).unwrap();
        let argument = relayed(1_000_000_000_000, "create_canister", &argument);
        subnet.update(USER, id, "relay", &argument).unwrap().response
    };
    by_canister(&mut subnet).unwrap();
    let balance = |subnet: &Subnet| subnet.canister(&id).unwrap().balance().get();
    let before = balance(&subnet);
    let full = "there are 2 canisters already";
    let refused = by_canister(&mut subnet).unwrap_err();
    assert!(refused.message.contains(full), "{refused}");
    // The cycles for the canister come back.
    assert!(before - balance(&subnet) < 100_000_000_000);
    let create = ProvisionalCreateCanisterWithCyclesArgs::default();
    let refused = manage(&mut subnet, CREATE, create).unwrap_err();
    assert!(refused.message.contains(full), "{refused}");
    subnet.set_max_canisters(3);
    managed::create(&mut subnet, None);
}

fn random(subnet: &mut Subnet, id: Principal) -> Vec<u8> {
    let argument = relayed(0, "raw_rand", &encode_args(()).unwrap());
    let call = subnet.update(USER, id, "relay", &argument).unwrap();
    decode_one(&call.response.unwrap()).unwrap()
}

#[test]
fn random_bytes_come_from_the_seed() {
    let draw = |seed| {
        let (mut subnet, id) = subnet();
        subnet.set_seed(seed);
        [random(&mut subnet, id), random(&mut subnet, id)]
    };
    let first = draw(1);
    assert_eq!(first.each_ref().map(Vec::len), [32, 32]);
    assert_ne!(first[0], first[1]);
    assert_eq!(first, draw(1));
    assert_ne!(first, draw(2));
}

fn outcall(max_response_bytes: u64) -> Vec<u8> {
    let request = HttpRequestArgs {
        url: "https://example.com".to_owned(),
        max_response_bytes: Some(max_response_bytes),
        method: HttpMethod::GET,
        headers: vec![HttpHeader { name: "a".to_owned(), value: "b".to_owned() }],
        ..HttpRequestArgs::default()
    };
    encode_one(request).unwrap()
}

#[test]
fn outcalls_are_answered_by_the_program_that_drives_the_subnet() {
    let (mut subnet, id) = subnet();
    let argument = relayed(1_000_000_000_000, "http_request", &outcall(3));
    let refused = subnet.update(USER, id, "relay", &argument).unwrap().response.unwrap_err();
    assert!(refused.message.contains("makes no HTTPS outcalls"), "{refused}");

    subnet.allow_http_requests(true);
    let poor = relayed(1_000, "http_request", &outcall(3));
    let refused = subnet.update(USER, id, "relay", &poor).unwrap().response.unwrap_err();
    assert!(refused.message.contains("cycles are required"), "{refused}");

    let answer = |body: &[u8]| HttpRequestResult {
        status: Nat::from(200_u8),
        headers: Vec::new(),
        body: body.to_vec(),
    };
    for (given, expected) in [
        (Ok(answer(b"yes")), Ok(answer(b"yes"))),
        (Ok(answer(b"long")), Err("exceeds size limit of 3 bytes")),
        (Err((RejectCode::SysTransient, "no network".to_owned())), Err("no network")),
    ] {
        let message = subnet.submit(USER, id, "relay", &argument).unwrap().unwrap();
        for _ in 0..5 {
            subnet.tick().unwrap();
        }
        assert!(subnet.take_answer(message).is_none());
        let (number, url) = {
            let waiting: Vec<_> = subnet.http_requests().collect();
            assert_eq!((waiting.len(), waiting[0].canister), (1, id));
            (waiting[0].id, waiting[0].request.url.clone())
        };
        assert_eq!(url, "https://example.com");
        assert!(subnet.answer_http_request(number, given).unwrap());
        let again = Err((RejectCode::SysTransient, "again".to_owned()));
        assert!(!subnet.answer_http_request(number, again).unwrap());
        for _ in 0..3 {
            subnet.tick().unwrap();
        }
        let response = subnet.take_answer(message).expect("an answer");
        match (response, expected) {
            (Ok(reply), Ok(expected)) => {
                assert_eq!(decode_one::<HttpRequestResult>(&reply).unwrap(), expected);
            }
            (Err(reject), Err(text)) => assert!(reject.message.contains(text), "{reject}"),
            (response, _) => panic!("{response:?}"),
        }
    }
}

#[test]
fn logs_are_queried() {
    let (mut subnet, id) = subnet();
    subnet.update(USER, id, "say", &[]).unwrap().response.unwrap();
    subnet.update(USER, id, "fail", &[]).unwrap().response.unwrap_err();
    let stranger = Principal::from_slice(&[1]);
    let fetch = |subnet: &Subnet, caller| {
        let args = FetchCanisterLogsArgs { canister_id: id, filter: None };
        let argument = encode_one(args).unwrap();
        subnet.query(caller, MANAGEMENT, "fetch_canister_logs", &argument).unwrap().response
    };
    let records = |reply: Vec<u8>| {
        let records = decode_one::<FetchCanisterLogsResult>(&reply).unwrap().canister_log_records;
        let text = |content: Vec<u8>| String::from_utf8(content).unwrap();
        records.into_iter().map(|it| (it.idx, text(it.content))).collect::<Vec<_>>()
    };
    let expected = [(0, "a word".to_owned()), (1, "[TRAP]: a word".to_owned())];
    assert_eq!(records(fetch(&subnet, USER).unwrap()), expected);
    let refused = fetch(&subnet, stranger).unwrap_err();
    assert_eq!(refused.code, ErrorCode::CanisterRejectedMessage);
    let public = UpdateSettingsArgs {
        canister_id: id,
        settings: CanisterSettings {
            log_visibility: Some(LogVisibility::Public),
            ..CanisterSettings::default()
        },
        sender_canister_version: None,
    };
    manage(&mut subnet, "update_settings", public).unwrap();
    assert_eq!(records(fetch(&subnet, stranger).unwrap()), expected);
}

#[test]
fn a_canister_that_cannot_pay_for_storage_is_uninstalled() {
    let (mut subnet, id) = subnet();
    let settings = CanisterSettings {
        compute_allocation: Some(Nat::from(1_u8)),
        freezing_threshold: Some(Nat::from(0_u8)),
        ..CanisterSettings::default()
    };
    let update = UpdateSettingsArgs { canister_id: id, settings, sender_canister_version: None };
    manage(&mut subnet, "update_settings", update).unwrap();
    let balance = subnet.canister(&id).unwrap().balance();
    // 1 percent costs 864 G cycles a day.
    let pass = |subnet: &mut Subnet, time| {
        subnet.set_time(subnet.time() + time);
        // Storage is charged in every fiftieth.
        for _ in 0..50 {
            subnet.tick().unwrap();
        }
    };
    pass(&mut subnet, DAY);
    let after = subnet.canister(&id).unwrap().balance();
    assert!((864_000_000_000..900_000_000_000).contains(&(balance - after).get()));
    pass(&mut subnet, 1_000 * DAY);
    let canister = subnet.canister(&id).unwrap();
    assert!(canister.module().is_none());
    assert_eq!(canister.balance(), Cycles(0));
    let refused = subnet.update(USER, id, "say", &[]).unwrap().response.unwrap_err();
    assert_eq!(refused.code, ErrorCode::CanisterWasmModuleNotFound);
}

/// A module whose upgrades keep the heap. `set` changes the heap and a global, and `state` replies
/// with both and the size of the heap in pages.
fn persistent(memory: &str, others: &str) -> Vec<u8> {
    let wat = format!(
        r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (import "ic0" "trap" (func $trap (param i32 i32)))
        (memory {memory}) (data (i32.const 0) "\01")
        (global $global (mut i32) (i32.const 1))
        (func (export "canister_update set")
            (i32.store (i32.const 0) (i32.const 2)) (global.set $global (i32.const 2))
            (call $reply))
        (func (export "canister_query state")
            (i32.store (i32.const 4) (global.get $global))
            (i32.store (i32.const 8) (memory.size))
            (call $append (i32.const 0) (i32.const 12)) (call $reply))
        {others}
        (@custom "icp:private enhanced-orthogonal-persistence" ""))"#
    );
    wat::parse_str(wat).unwrap()
}

fn upgrade(
    subnet: &mut Subnet,
    canister_id: Principal,
    wasm_module: Vec<u8>,
    wasm_memory_persistence: Option<WasmMemoryPersistence>,
) -> Result<Vec<u8>, Reject> {
    let flags = UpgradeFlags { skip_pre_upgrade: None, wasm_memory_persistence };
    let mode = CanisterInstallMode::Upgrade(Some(flags));
    manage(subnet, "install_code", code(mode, canister_id, wasm_module))
}

/// The byte in the heap, the global, and the size of the heap.
fn heap_state(subnet: &Subnet, id: Principal) -> [u8; 3] {
    let reply = subnet.query(USER, id, "state", &[]).unwrap().response.unwrap();
    [reply[0], reply[4], reply[8]]
}

/// Data segments are not written into a heap that is kept, and globals get their initial values.
#[test]
fn a_heap_that_is_kept_fits_the_new_module() {
    const KEEP: Option<WasmMemoryPersistence> = Some(WasmMemoryPersistence::Keep);
    let (mut subnet, id) = subnet();
    upgrade(&mut subnet, id, persistent("1", ""), None).unwrap();
    assert_eq!(heap_state(&subnet, id), [1, 1, 1]);
    subnet.update(USER, id, "set", &[]).unwrap().response.unwrap();
    assert_eq!(heap_state(&subnet, id), [2, 2, 1]);
    // The heap grows to the module's first size, and does not shrink to it.
    for (memory, pages) in [("3 5", 3), ("1", 3), ("3 3", 3)] {
        upgrade(&mut subnet, id, persistent(memory, ""), KEEP).unwrap();
        assert_eq!(heap_state(&subnet, id), [2, 1, pages], "{memory}");
    }
    let refused = upgrade(&mut subnet, id, persistent("1 2", ""), KEEP).unwrap_err();
    let words = "a heap of 3 Wasm pages, but the memory of the new module has at most 2";
    assert!(refused.message.contains(words), "{refused}");
    assert_eq!(heap_state(&subnet, id), [2, 1, 3]);
    let replace = Some(WasmMemoryPersistence::Replace);
    upgrade(&mut subnet, id, persistent("1 2", ""), replace).unwrap();
    assert_eq!(heap_state(&subnet, id), [1, 1, 1]);
}

/// A trap in `canister_pre_upgrade` comes before what is wrong with the option.
#[test]
fn the_option_for_the_heap_is_checked_after_pre_upgrade() {
    let (mut subnet, id) = subnet();
    let traps =
        r#"(func (export "canister_pre_upgrade") (call $trap (i32.const 0) (i32.const 0)))"#;
    upgrade(&mut subnet, id, persistent("1", traps), None).unwrap();
    let refused = upgrade(&mut subnet, id, persistent("1", ""), None).unwrap_err();
    assert_eq!(refused.code, ErrorCode::CanisterCalledTrap, "{refused}");
}

#[test]
fn methods_that_are_missing_are_named() {
    let (mut subnet, id) = subnet();
    for (method, words) in [
        ("vetkd_derive_key", "does not support vetkd_derive_key: it has no vetKD keys"),
        ("bitcoin_get_balance", "does not support bitcoin_get_balance"),
        ("subnet_metrics", "does not support subnet_metrics: it does not count messages"),
        ("flexible_http_request", "does not support flexible_http_request: an HTTPS outcall has"),
        ("make_coffee", "Management canister has no method 'make_coffee'"),
    ] {
        let argument = relayed(0, method, &encode_args(()).unwrap());
        let refused = subnet.update(USER, id, "relay", &argument).unwrap().response.unwrap_err();
        assert!(refused.message.contains(words), "{refused}");
    }
}

#[test]
fn the_status_has_the_fields_of_the_rules() {
    let (mut subnet, canister_id) = subnet();
    let reply = manage(&mut subnet, "canister_status", CanisterIdRecord { canister_id }).unwrap();
    let status = decode_one::<CanisterStatusResult>(&reply).unwrap();
    assert_eq!(status.settings.controllers, [USER]);
    let [before, replica] = [Rules::of_2025_10(), Rules::today()]
        .map(|rules| Subnet::new(&Replica::new(rules, None).unwrap()));
    for (mut subnet, decodes) in [(before, false), (replica, true)] {
        let canister_id = managed::create(&mut subnet, None);
        let about = CanisterIdRecord { canister_id };
        let reply = manage(&mut subnet, "canister_status", about).unwrap();
        assert_eq!(decode_one::<CanisterStatusResult>(&reply).is_ok(), decodes);
    }
}

/// The link of a reject is to the page of the rules, and what a user wrote stays as it is.
#[test]
fn rejects_link_to_the_page_of_the_rules() {
    let page = "https://docs.internetcomputer.org/references/execution-errors#";
    let older = "https://internetcomputer.org/docs/current/references/execution-errors#";
    for (rules, expected) in [(Rules::of_2025_10(), older), (Rules::today(), page)] {
        let mut subnet = Subnet::new(&Replica::new(rules, None).unwrap());
        let id = created_with(&mut subnet, 1_000_000_000_000_000, None).unwrap();
        let stop = CanisterIdRecord { canister_id: id };
        let refused = manage(&mut subnet, "delete_canister", stop).unwrap_err();
        let words = format!("See documentation: {expected}delete-canister-not-stopped");
        assert!(refused.message.ends_with(&words), "{rules}: {refused}");
        let written = format!("{page}written");
        let argument = encode_args(()).unwrap();
        let refused = subnet.query(USER, MANAGEMENT, &written, &argument).unwrap().response;
        let refused = refused.unwrap_err();
        assert!(refused.message.contains(&written), "{rules}: {refused}");
    }
}

fn created_with(subnet: &mut Subnet, amount: u64, log: Option<u64>) -> Result<Principal, Reject> {
    let settings = log.map(|log| CanisterSettings {
        log_memory_limit: Some(Nat::from(log)),
        ..CanisterSettings::default()
    });
    let amount = Some(Nat::from(amount));
    let create = ProvisionalCreateCanisterWithCyclesArgs { amount, settings, ..Default::default() };
    let reply = manage(subnet, CREATE, create)?;
    Ok(decode_one::<CanisterIdRecord>(&reply).unwrap().canister_id)
}

fn status_of(subnet: &mut Subnet, canister_id: Principal) -> CanisterStatusResult {
    let reply = manage(subnet, "canister_status", CanisterIdRecord { canister_id }).unwrap();
    decode_one(&reply).unwrap()
}

/// Cycles for 30 days of so many bytes, and for the base fee.
fn month(bytes: u128) -> u128 {
    let day = bytes * 317_500 * 86_400 / (1 << 30) + 10_000 * 86_400;
    30 * day
}

#[test]
fn a_canister_is_created_with_the_cycles_for_its_log() {
    let mut subnet = Subnet::new(&Replica::new(Rules::of_2026_10(), None).unwrap());
    let needed = u64::try_from(month(12_288)).unwrap();
    let refused = created_with(&mut subnet, 0, None).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InsufficientCyclesInMemoryGrow);
    let words = "Canister cannot grow memory by 12288 bytes due to insufficient cycles. At least \
                 25_929_";
    assert!(refused.message.starts_with(words), "{refused}");
    let page = "https://docs.internetcomputer.org/references/execution-errors#";
    assert!(refused.message.contains(page), "{refused}");
    assert!(created_with(&mut subnet, needed - 1, None).is_err());
    created_with(&mut subnet, needed, None).unwrap();
    // A canister without a log needs none.
    created_with(&mut subnet, 0, Some(0)).unwrap();
    // Neither do those of clients of the time before.
    subnet.allow_unpaid_logs();
    created_with(&mut subnet, 0, None).unwrap();
    let mut older = Subnet::new(&Replica::new(Rules::of_2026_08(), None).unwrap());
    created_with(&mut older, 0, None).unwrap();
}

#[test]
fn too_few_cycles_for_the_log_come_back() {
    let (mut subnet, id) = subnet();
    // What is allowed to clients is not allowed to canisters.
    subnet.allow_unpaid_logs();
    let mut create = |cycles: u64| {
        let argument = encode_one(CreateCanisterArgs::default()).unwrap();
        let argument = relayed(cycles, "create_canister", &argument);
        subnet.update(USER, id, "relay", &argument).unwrap().response
    };
    let fee = 500_000_000_000;
    let needed = u64::try_from(month(12_288)).unwrap();
    let refused = create(fee + needed - 1).unwrap_err();
    assert!(refused.message.contains("cannot grow memory by 12288 bytes"), "{refused}");
    assert!(refused.message.contains("At least 1 additional cycles"), "{refused}");
    create(fee + needed).unwrap();
}

#[test]
fn the_log_counts_as_memory() {
    let mut subnet = Subnet::new(&Replica::new(Rules::of_2026_10(), None).unwrap());
    let id = created_with(&mut subnet, 1_000_000_000_000, None).unwrap();
    let log = |status: &CanisterStatusResult| status.memory_metrics.log_memory_store_size.clone();
    let status = status_of(&mut subnet, id);
    assert_eq!(log(&status), 12_288_u64);
    let history = status.memory_metrics.canister_history_size.clone();
    assert_eq!(status.memory_size, history + 12_288_u64);
    let limit = |subnet: &mut Subnet, limit: u64| {
        let settings = CanisterSettings {
            log_memory_limit: Some(limit.into()),
            ..CanisterSettings::default()
        };
        let args = UpdateSettingsArgs { canister_id: id, settings, sender_canister_version: None };
        manage(subnet, "update_settings", args).map(|_| ())
    };
    for (bytes, store) in [(2 << 20, (2 << 20) + 8_192), (4_096, 12_288), (0, 0_u64)] {
        limit(&mut subnet, bytes).unwrap();
        let status = status_of(&mut subnet, id);
        assert_eq!(log(&status), store);
        assert_eq!(status.settings.log_memory_limit, bytes);
    }
    for bytes in [1, 4_095, (2 << 20) + 1] {
        let refused = limit(&mut subnet, bytes).unwrap_err();
        assert!(refused.message.contains("log memory limit"), "{refused}");
    }
    // Uninstalling does not release it.
    limit(&mut subnet, 4_096).unwrap();
    manage(&mut subnet, "uninstall_code", CanisterIdRecord { canister_id: id }).unwrap();
    assert_eq!(log(&status_of(&mut subnet, id)), 12_288_u64);
    // An allocation has room for it.
    let settings =
        CanisterSettings { memory_allocation: Some(12_288_u64.into()), ..Default::default() };
    let args = UpdateSettingsArgs { canister_id: id, settings, sender_canister_version: None };
    let refused = manage(&mut subnet, "update_settings", args).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InsufficientMemoryAllocation);
    // Before October, status has the field, and nothing is stored.
    let mut older = Subnet::new(&Replica::new(Rules::of_2026_08(), None).unwrap());
    let id = created_with(&mut older, 1_000_000_000_000, None).unwrap();
    assert_eq!(log(&status_of(&mut older, id)), 0_u64);
}

#[test]
fn storage_is_charged_every_fifty_rounds_since_october() {
    for (rules, rounds) in [(Rules::of_2026_08(), 1), (Rules::of_2026_10(), 50)] {
        let mut subnet = Subnet::new(&Replica::new(rules, None).unwrap());
        let id = created_with(&mut subnet, 100_000_000_000, None).unwrap();
        let balance = |subnet: &Subnet| subnet.canister(&id).unwrap().balance();
        let full = balance(&subnet);
        subnet.set_time(subnet.time() + DAY);
        // One round has created the canister.
        for round in 2..=50 {
            subnet.tick().unwrap();
            assert_eq!(balance(&subnet) < full, round >= rounds, "{rules}, round {round}");
        }
        let paid = full.get() - balance(&subnet).get();
        assert!(paid >= 10_000 * 86_400, "the time of all rounds is paid for: {paid}");
    }
}

#[test]
fn canister_info_is_a_query() {
    let ask = |rules, canister_id: Option<Principal>| {
        let (subnet, id) = managed::subnet(rules, PLENTY, RELAY);
        let canister_id = canister_id.unwrap_or(id);
        let args = CanisterInfoArgs { canister_id, num_requested_changes: Some(1) };
        let argument = encode_one(args).unwrap();
        subnet.query(STRANGER, MANAGEMENT, "canister_info", &argument).unwrap().response
    };
    let info = decode_one::<CanisterInfoResult>(&ask(Rules::today(), None).unwrap()).unwrap();
    assert_eq!((info.total_num_changes, info.recent_changes.len()), (2, 1));
    assert_eq!(info.controllers, [USER]);
    let missing = ask(Rules::today(), Some(STRANGER)).unwrap_err();
    assert_eq!(missing.code, ErrorCode::CanisterNotFound, "{missing}");
    let older = ask(Rules::of_2026_08(), None).unwrap_err();
    assert_eq!(older.code, ErrorCode::CanisterMethodNotFound, "{older}");
    // As an update it is still for canisters only.
    let (mut subnet, canister_id) = managed::subnet(Rules::today(), PLENTY, RELAY);
    let args = CanisterInfoArgs { canister_id, num_requested_changes: None };
    let argument = encode_one(args).unwrap();
    let refused = subnet.update(USER, MANAGEMENT, "canister_info", &argument).unwrap().response;
    assert_eq!(refused.unwrap_err().message, "Only canisters can call ic00 method canister_info");
}

#[test]
fn composite_queries_ask_the_management_canister() {
    let (subnet_of_today, id) = managed::subnet(Rules::today(), PLENTY, RELAY);
    let ask = |subnet: &Subnet, method: &str, argument: Vec<u8>| -> Result<Vec<u8>, Reject> {
        let argument = [method.as_bytes(), b" ", &argument].concat();
        subnet.query(USER, id, "ask", &argument).unwrap().response
    };
    let record = || encode_one(CanisterIdRecord { canister_id: id }).unwrap();
    let status = ask(&subnet_of_today, "canister_status", record()).unwrap();
    // A canister sees its own status.
    assert_eq!(decode_one::<CanisterStatusResult>(&status).unwrap().settings.controllers, [USER]);
    let info = CanisterInfoArgs { canister_id: id, num_requested_changes: None };
    let info = ask(&subnet_of_today, "canister_info", encode_one(info).unwrap()).unwrap();
    assert_eq!(decode_one::<CanisterInfoResult>(&info).unwrap().controllers, [USER]);
    // It is subject to the access control of the caller, which is the canister.
    let logs = encode_one(FetchCanisterLogsArgs { canister_id: id, filter: None }).unwrap();
    let refused = ask(&subnet_of_today, "fetch_canister_logs", logs).unwrap_err();
    assert!(refused.message.contains(&format!("Caller {id} is not allowed")), "{refused}");
    let empty = || encode_args(()).unwrap();
    for (method, words) in [
        ("list_canisters", "list_canisters is only available on subnets with subnet admins"),
        ("canister_metrics", "The embedded replica does not support canister_metrics"),
        ("raw_rand", "Query method raw_rand not found."),
        ("start_canister", "Query method start_canister not found."),
    ] {
        let refused = ask(&subnet_of_today, method, empty()).unwrap_err();
        assert!(refused.message.starts_with(words), "{refused}");
    }
    let (older, other) = managed::subnet(Rules::of_2026_08(), PLENTY, RELAY);
    assert_eq!(other, id);
    ask(&older, "canister_status", record()).unwrap_err();
}

/// Instructions of `canister_init` cost the same whatever the heap.
#[test]
fn installing_a_64_bit_module_costs_as_a_32_bit_one() {
    let cost = |rules: Rules, memory: &str| {
        let wat = format!(
            r#"(module (memory {memory}) (func (export "canister_init") (local $n i32)
                (loop $next
                    (br_if $next (i32.lt_u
                        (local.tee $n (i32.add (local.get $n) (i32.const 1)))
                        (i32.const 1000000))))))"#
        );
        let replica = Replica::new(rules, None).unwrap();
        let module = replica.compile(&wat::parse_str(&wat).unwrap()).unwrap();
        let mut canister = replica.create_canister().unwrap();
        let installed = canister.install(&module, USER, &[]).unwrap();
        (installed.instructions.get(), installed.cycles.get())
    };
    for (rules, factor) in [(Rules::today(), 1), (Rules::of_2026_08(), 2)] {
        let [(used, narrow), (same, wide)] = ["1", "i64 1"].map(|memory| cost(rules, memory));
        assert_eq!(used, same);
        assert_eq!(wide - narrow, u128::from(used) * (factor - 1), "{rules}");
    }
}
