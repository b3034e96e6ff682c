//! Scenarios of messages. The life of a canister: installs, upgrades, snapshots, traps and rejects. The
//! limits of a message, each at the limit and one beyond it, and messages of more than 2 G instructions,
//! which take several rounds.

use stablebench_protocol::{
    Description, Digest, Engine, Measurement, SqliteConfig, SqliteSettings,
};

use crate::replica::{Bench, CONTROLLER, Canister, Mode, Pair, Replica, Rules, WASM, wasm};

/// A canister with two cells of 8 bytes, one at address 0 of the heap and one at address 0 of stable
/// memory.
///
/// ```text
///   set…    writes the argument to the heap cell and the stable cell, then does what its name says
///   get     returns both cells
/// ```
const CELLS: &str = r#"(module
  (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
  (import "ic0" "msg_reply" (func $reply))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
  (import "ic0" "msg_reject" (func $reject (param i32 i32)))
  (import "ic0" "trap" (func $trap (param i32 i32)))
  (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
  (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
  (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
  (memory 1)
  (data (i32.const 64) "on purpose")

  (func (export "canister_init")
    (drop (call $grow (i64.const 1))))

  (func $set
    (call $argument (i32.const 0) (i32.const 0) (i32.const 8))
    (call $write (i64.const 0) (i64.const 0) (i64.const 8)))
  (func $get
    (call $read (i64.const 8) (i64.const 0) (i64.const 8))
    (call $append (i32.const 0) (i32.const 16))
    (call $reply))

  (func (export "canister_update set") (call $set) (call $reply))
  (func (export "canister_query get") (call $get))
  (func (export "canister_query set_and_get") (call $set) (call $get))

  (func (export "canister_update set_and_trap")
    (call $set) (call $trap (i32.const 64) (i32.const 10)))
  (func (export "canister_update set_and_reach_unreachable")
    (call $set) (unreachable))
  (func (export "canister_update set_and_divide")
    (call $set) (drop (i32.div_u (i32.const 1) (i32.const 0))))
  (func (export "canister_update set_and_leave_the_heap")
    (call $set) (drop (i32.load (i32.const 65533))))
  (func (export "canister_update set_and_leave_stable_memory")
    (call $set) (call $read (i64.const 0) (i64.const 65529) (i64.const 8)))
  (func (export "canister_update set_and_reply_twice")
    (call $set) (call $reply) (call $reply))
  (func (export "canister_update set_reply_and_trap")
    (call $set) (call $reply) (call $trap (i32.const 64) (i32.const 10)))

  (func (export "canister_update set_and_reject")
    (call $set) (call $reject (i32.const 64) (i32.const 10)))
  (func (export "canister_update set_and_be_silent") (call $set)))"#;

/// Returns the heap cell and the stable cell.
fn cells(canister: &mut dyn Canister) -> (u64, u64) {
    pair(&canister.query(CONTROLLER, "get", &[]).unwrap())
}

fn set(canister: &mut dyn Canister, value: u64) {
    let set = canister.update(CONTROLLER, "set", &value.to_le_bytes());
    assert_eq!(set.outcome, Ok(vec![]));
    assert_eq!(cells(canister), (value, value));
}

fn pair(reply: &[u8]) -> (u64, u64) {
    let (first, second) = reply.split_at(8);
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    (number(first), number(second))
}

/// Calls a method with 9 in a canister whose cells are 5. Returns the reject's code and message,
/// and the value of both cells afterwards.
fn failed(canister: &mut dyn Canister, method: &str) -> (String, String, u64) {
    set(canister, 5);
    let updated = canister.update(CONTROLLER, method, &9_u64.to_le_bytes());
    let reject = updated.outcome.expect_err(method);
    assert!(updated.cycles > 0, "{method}: a failed message is charged");
    let (heap, stable) = cells(canister);
    assert_eq!(heap, stable, "{method}");
    (reject.code, reject.message, heap)
}

pub fn traps_roll_back(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, CELLS);
    for (method, code, words) in [
        ("set_and_trap", "CanisterCalledTrap", "on purpose"),
        ("set_and_reach_unreachable", "CanisterTrapped", "unreachable"),
        ("set_and_divide", "CanisterTrapped", "integer division by 0"),
        ("set_and_leave_the_heap", "CanisterTrapped", "heap out of bounds"),
        ("set_and_leave_stable_memory", "CanisterTrapped", "stable memory out of bounds"),
        ("set_and_reply_twice", "CanisterContractViolation", "replied"),
        ("set_reply_and_trap", "CanisterCalledTrap", "on purpose"),
    ] {
        let (got, message, cell) = failed(&mut canister, method);
        assert_eq!((got.as_str(), cell), (code, 5), "{method}: {message}");
        assert!(message.contains(words), "{method}: {message}");
    }
    let (code, _, cell) = failed(&mut canister, "no_such_method");
    assert_eq!((code.as_str(), cell), ("CanisterMethodNotFound", 5));
}

/// A message that rejects or does not reply is committed.
pub fn rejects_keep_changes(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, CELLS);
    let (code, message, cell) = failed(&mut canister, "set_and_reject");
    assert_eq!((code.as_str(), cell), ("CanisterRejectedMessage", 9));
    assert!(message.contains("on purpose"), "{message}");
    let (code, _, cell) = failed(&mut canister, "set_and_be_silent");
    assert_eq!((code.as_str(), cell), ("CanisterDidNotReply", 9));
}

pub fn queries_roll_back(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, CELLS);
    set(&mut canister, 5);
    let argument = 9_u64.to_le_bytes();
    let seen = canister.query(CONTROLLER, "set_and_get", &argument).unwrap();
    assert_eq!(pair(&seen), (9, 9), "within the query");
    assert_eq!(cells(&mut canister), (5, 5));
    // A query method that is called as an update is rolled back too.
    let seen = canister.update(CONTROLLER, "set_and_get", &argument).outcome.unwrap();
    assert_eq!(pair(&seen), (9, 9));
    assert_eq!(cells(&mut canister), (5, 5));
}

/// An ingress message has at most 2 MiB: a larger module is sent in chunks.
pub fn install_small_and_large(replica: &dyn Replica) {
    let mut small = Pair::new(replica);
    rejects_while_empty(&mut small);
    small.install(Mode::Install, &wasm(CELLS), &[]).unwrap();
    assert_eq!(cells(&mut small), (0, 0));
    set(&mut small, 3);

    assert!(WASM.len() > 2 << 20, "the bench canister has {} bytes", WASM.len());
    let mut large = Bench::new(replica);
    let fresh: Description = large.query("describe", ());
    large.install(Mode::Upgrade);
    assert_eq!(large.query::<Description>("describe", ()).engines, fresh.engines);
    large.install(Mode::Reinstall);
    assert_eq!(large.query::<Description>("describe", ()), fresh);
}

/// A message to a canister without code is not admitted and costs nothing.
fn rejects_while_empty(canister: &mut Pair) {
    let rejected = canister.update(CONTROLLER, "set", &[]);
    assert_eq!(rejected.outcome.unwrap_err().code, "CanisterWasmModuleNotFound");
    assert_eq!(rejected.cycles, 0);
}

pub fn install_refused(replica: &dyn Replica) {
    let mut canister = Pair::new(replica);
    let mut refusal = |module: &[u8]| {
        let refused = canister.install(Mode::Install, module, &[]);
        refused.expect_err("the module is not valid").code
    };
    assert_eq!(refusal(b"\0asm, but no more"), "CanisterInvalidWasm");
    let unknown = wasm(r#"(module (import "ic0" "no_such_call" (func)))"#);
    assert_eq!(refusal(&unknown), "CanisterInvalidWasm");
    let start = wasm(r#"(module (func (export "canister_init") (param i32)))"#);
    assert_eq!(refusal(&start), "CanisterInvalidWasm");
    // The canister is still empty.
    rejects_while_empty(&mut canister);
    canister.install(Mode::Install, &wasm(CELLS), &[]).unwrap();
    assert_eq!(cells(&mut canister), (0, 0));
}

pub fn install_that_traps(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, CELLS);
    set(&mut canister, 5);
    let traps = wasm(r#"(module (func (export "canister_init") (unreachable)))"#);
    let trapped = canister.install(Mode::Reinstall, &traps, &[]).unwrap_err();
    assert_eq!(trapped.code, "CanisterTrapped");
    assert_eq!(cells(&mut canister), (5, 5), "the canister is unchanged");
}

const ENGINES: [Engine; 2] = [Engine::BTREE, Engine::SQLITE];

/// Creates a canister with 500 rows in both engines and a non-default SQLite setting.
fn filled(replica: &dyn Replica) -> Bench {
    let mut bench = Bench::new(replica);
    let config = SqliteConfig { cache_size: Some(123), ..SqliteConfig::default() };
    bench.update::<SqliteSettings>("configure_sqlite", (config,));
    for engine in ENGINES {
        bench.work("add_users", (engine, 0_u64, 10_u64, 500_u64), 500);
    }
    bench
}

fn digests(bench: &mut Bench) -> [Digest; 2] {
    ENGINES.map(|engine| bench.digest(engine))
}

/// Reads rows and returns the instructions of the work.
fn read(bench: &mut Bench) -> u64 {
    let arguments = (Engine::SQLITE, 0_u64, 100_u64, 50_u64);
    let measurement: Measurement = bench.update("read_users", arguments);
    assert_eq!(measurement.rows, 50);
    measurement.instructions
}

pub fn upgrade(replica: &dyn Replica) {
    let mut bench = filled(replica);
    let before = digests(&mut bench);
    for _ in 0..2 {
        bench.install(Mode::Upgrade);
        assert_eq!(digests(&mut bench), before);
        let settings: SqliteSettings = bench.query("sqlite_settings", ());
        assert_eq!(settings.cache_size, 123);
        // An upgrade closes the connection; the first operation opens it.
        let (cold, warm) = (read(&mut bench), read(&mut bench));
        assert!(cold > 2 * warm, "{cold} cold, {warm} warm");
    }
    for engine in ENGINES {
        bench.work("insert_end", (engine, 5_u64), 5);
        assert_eq!(bench.digest(engine).rows, 505);
    }
}

pub fn upgrade_that_traps(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, CELLS);
    set(&mut canister, 5);
    let traps = wasm(r#"(module (func (export "canister_post_upgrade") (unreachable)))"#);
    let trapped = canister.install(Mode::Upgrade, &traps, &[]).unwrap_err();
    assert_eq!(trapped.code, "CanisterTrapped");
    assert_eq!(cells(&mut canister), (5, 5), "code, heap and stable memory are unchanged");
    canister.install(Mode::Upgrade, &wasm(CELLS), &[]).unwrap();
    assert_eq!(cells(&mut canister), (0, 5), "an upgrade keeps stable memory");
}

/// A fork on a server: upgraded and used, then restored, including its heap.
pub fn upgrade_then_restore(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, CELLS);
    set(&mut canister, 5);
    canister.take_snapshot();
    for value in 6..8 {
        canister.install(Mode::Upgrade, &wasm(CELLS), &[]).unwrap();
        assert_eq!(cells(&mut canister), (0, 5));
        set(&mut canister, value);
        canister.load_snapshot();
        assert_eq!(cells(&mut canister), (5, 5));
    }
    // A restored canister can be upgraded and snapshotted again.
    canister.install(Mode::Upgrade, &wasm(CELLS), &[]).unwrap();
    canister.take_snapshot();
    set(&mut canister, 9);
    canister.load_snapshot();
    assert_eq!(cells(&mut canister), (0, 5));
}

pub fn reinstall(replica: &dyn Replica) {
    let mut bench = filled(replica);
    bench.install(Mode::Reinstall);
    for engine in ENGINES {
        assert_eq!(bench.digest(engine).rows, 0);
    }
    bench.work("add_users", (Engine::SQLITE, 0_u64, 10_u64, 5_u64), 5);

    let mut canister = Pair::with(replica, CELLS);
    set(&mut canister, 5);
    canister.install(Mode::Reinstall, &wasm(CELLS), &[]).unwrap();
    assert_eq!(cells(&mut canister), (0, 0));
}

/// Takes more snapshots than the ten that a canister may have at a time.
pub fn snapshots_replace_each_other(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, CELLS);
    for value in 1..=11 {
        set(&mut canister, value);
        canister.take_snapshot();
        set(&mut canister, 100);
        canister.load_snapshot();
        assert_eq!(cells(&mut canister), (value, value));
    }
}

pub fn snapshot(replica: &dyn Replica) {
    let mut bench = filled(replica);
    let before = digests(&mut bench);
    bench.0.take_snapshot();
    for round in 1..4 {
        for engine in ENGINES {
            bench.work("insert_end", (engine, 10 * round), 10 * round);
            bench.work("delete_users", (engine, 0_u64, 10_u64, 10_u64), 10);
        }
        assert_ne!(digests(&mut bench), before);
        bench.0.load_snapshot();
        assert_eq!(digests(&mut bench), before, "round {round}");
    }
    // A later snapshot replaces the first.
    bench.work("insert_end", (Engine::BTREE, 10_u64), 10);
    let later = digests(&mut bench);
    bench.0.take_snapshot();
    bench.update::<()>("reset", (Engine::BTREE,));
    bench.0.load_snapshot();
    assert_eq!(digests(&mut bench), later);
}

/// A snapshot includes the heap: a restored canister has an open connection if the snapshot has.
pub fn snapshot_of_an_open_connection(replica: &dyn Replica) {
    let mut bench = filled(replica);
    read(&mut bench);
    bench.0.take_snapshot();
    let warm = read(&mut bench);
    bench.update::<()>("close_connection", ());
    let cold = read(&mut bench);
    assert!(cold > 2 * warm, "{cold} cold, {warm} warm");
    bench.0.load_snapshot();
    assert_eq!(read(&mut bench), warm);
}

const QUERY: u64 = 5_000_000_000;
const UPDATE: u64 = 40_000_000_000;
const MIB: u32 = 1 << 20;

pub fn query_instructions(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, FILL);
    let (argument, counter) = querying(replica.rules(), QUERY);
    assert_eq!(number(&canister.query(CONTROLLER, "query", &argument).unwrap()), counter);
    let (argument, _) = querying(replica.rules(), QUERY + 1);
    let refused = canister.query(CONTROLLER, "query", &argument).unwrap_err();
    assert_eq!(refused.code, "CanisterInstructionLimitExceeded");
    assert!(refused.message.contains("5000000000"), "{}", refused.message);
}

pub fn update_instructions(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, FILL);
    let (argument, counter) = updating(replica.rules(), UPDATE);
    let most = canister.update(CONTROLLER, "update", &argument);
    assert_eq!(number(&most.outcome.unwrap()), counter);
    let (argument, _) = updating(replica.rules(), UPDATE + 1);
    let refused = canister.update(CONTROLLER, "update", &argument).outcome.unwrap_err();
    assert_eq!(refused.code, "CanisterInstructionLimitExceeded");
    assert!(refused.message.contains("40000000000"), "{}", refused.message);
    let last = canister.query(CONTROLLER, "last", &[]).unwrap();
    assert_eq!(number(&last), counter, "the rejected update is rolled back");
}

/// A canister that replies with as many bytes as its argument requests.
const REPLIES: &str = r#"(module
    (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (memory 64)
    (func $answer
        (call $argument (i32.const 0) (i32.const 0) (i32.const 4))
        (call $append (i32.const 4) (i32.load (i32.const 0)))
        (call $reply))
    (export "canister_update update" (func $answer))
    (export "canister_query query" (func $answer)))"#;

pub fn reply_size(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, REPLIES);
    for (called_as_update, method, limit) in
        [(true, "update", 2 * MIB), (true, "query", 2 * MIB), (false, "query", 3 * MIB)]
    {
        let mut answer = |bytes: u32| {
            let argument = bytes.to_le_bytes();
            if called_as_update {
                canister.update(CONTROLLER, method, &argument).outcome
            } else {
                canister.query(CONTROLLER, method, &argument)
            }
        };
        assert_eq!(answer(limit).unwrap().len(), limit as usize, "{method}");
        let refused = answer(limit + 1).unwrap_err();
        assert_eq!(refused.code, "CanisterContractViolation", "{method}");
    }
}

/// Stable pages of 4 KiB that one query may access, 1 GiB in total.
const STABLE_PAGES: u32 = 1 << 18;

/// A canister that reads one byte of each of as many stable pages as its argument requests.
const STABLE_READS: &str = r#"(module
    (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (memory 1)
    (func (export "canister_init")
        ;; 16 384 wasm pages of 64 KiB are 1 GiB.
        (drop (call $grow (i64.const 16385))))
    (func (export "canister_query query") (local $left i32) (local $at i64)
        (call $argument (i32.const 0) (i32.const 0) (i32.const 4))
        (local.set $left (i32.load (i32.const 0)))
        (loop $next
            (call $read (i64.const 4) (local.get $at) (i64.const 1))
            (local.set $at (i64.add (local.get $at) (i64.const 4096)))
            (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
        (call $reply)))"#;

pub fn query_stable_pages(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, STABLE_READS);
    let most = canister.query(CONTROLLER, "query", &STABLE_PAGES.to_le_bytes());
    assert_eq!(most, Ok(vec![]));
    let more = canister.query(CONTROLLER, "query", &(STABLE_PAGES + 1).to_le_bytes());
    assert_eq!(more.unwrap_err().code, "CanisterMemoryAccessLimitExceeded");
}

const SLICE: u64 = 2_000_000_000;

/// Slicing changes no count: the counter shows the cost of the operators only.
pub fn long_message(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, FILL);
    for instructions in [SLICE - 1, SLICE, SLICE + 1, 2 * SLICE + SLICE / 2] {
        let (argument, counter) = updating(replica.rules(), instructions);
        let updated = canister.update(CONTROLLER, "update", &argument);
        assert_eq!(number(&updated.outcome.unwrap()), counter);
        let last = canister.query(CONTROLLER, "last", &[]).unwrap();
        assert_eq!(number(&last), counter, "the change is committed");
    }
}

/// A trap also rolls back the changes of earlier slices.
pub fn long_message_that_traps(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, FILL);
    let (argument, counter) = updating(replica.rules(), SLICE / 1_000);
    let first = canister.update(CONTROLLER, "update", &argument);
    assert_eq!(number(&first.outcome.unwrap()), counter);
    let (argument, _) = updating(replica.rules(), 2 * SLICE + SLICE / 2);
    let trapped = canister.update(CONTROLLER, "update_and_trap", &argument);
    assert_eq!(trapped.outcome.unwrap_err().code, "CanisterTrapped");
    assert!(trapped.cycles > u128::from(2 * SLICE), "all slices are charged");
    let last = canister.query(CONTROLLER, "last", &[]).unwrap();
    assert_eq!(number(&last), counter);
}

/// A canister that uses as many instructions as its argument requests. It does so quickly, because
/// filling memory costs one instruction a byte. The filled bytes keep their values, so only the second
/// page changes, which takes the argument and the counter. The cost of its operators is added up below.
const FILL: &str = r#"(module
  (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
  (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
  (import "ic0" "msg_reply" (func $reply))
  (memory 2)

  ;; The argument: the number of times to fill 64 KiB, at least 1, and a number of further bytes.
  (func $fill (local $times i32)
    (call $argument (i32.const 65536) (i32.const 0) (i32.const 8))
    (local.set $times (i32.load (i32.const 65536)))
    (loop $again
      (memory.fill (i32.const 0) (i32.const 0) (i32.const 65536))
      (br_if $again (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))
    (memory.fill (i32.const 0) (i32.const 0) (i32.load (i32.const 65540))))

  (func $answer
    (call $fill)
    (i64.store (i32.const 65536) (call $counter (i32.const 0)))
    (call $append (i32.const 65536) (i32.const 8))
    (call $reply))
  (export "canister_update update" (func $answer))
  (export "canister_query query" (func $answer))

  ;; The reply of the last update.
  (func (export "canister_query last")
    (call $append (i32.const 65536) (i32.const 8))
    (call $reply))
  (func (export "canister_update update_and_trap") (call $fill) (unreachable)))"#;

/// A function, and each operator without a constant of its own.
const ONE: u64 = 1;
const BR_IF: u64 = 2;
const CALL: u64 = 5;
const MEMORY_FILL: u64 = 100;
const SYSTEM_CALL: u64 = 500;
const PERFORMANCE_COUNTER: u64 = 200;
/// One byte of a reply.
const REPLIED: u64 = 50;

/// Bytes that one iteration fills.
const CHUNK: u64 = 65_536;
/// One iteration: three constants, the fill; `get`, constant, `sub`, `tee`, `br_if`.
const ITERATION: u64 = 3 * ONE + MEMORY_FILL + CHUNK + 4 * ONE + BR_IF;
/// `$fill` without iterations and bytes: the function, three constants and the argument of
/// 8 bytes; constant, `load`, `set`; three operands, one with an address, and the fill.
const FILLING: u64 = ONE + 3 * ONE + CALL + SYSTEM_CALL + 8 + 3 * ONE + 4 * ONE + MEMORY_FILL;
/// `$answer` until it reads the counter, by when all operators of the function have been charged:
/// the function, four constants, `store`, four calls.
const READING: u64 = ONE + 4 * ONE + ONE + 4 * CALL + PERFORMANCE_COUNTER;
/// `$answer` after that.
const ANSWERING: u64 = SYSTEM_CALL + 8 * REPLIED + SYSTEM_CALL;

/// Wasm pages of the heap: one is filled, the other takes the argument.
const PAGES: u64 = 2;

/// Returns the argument with which an update uses exactly `instructions`, and its reply.
fn updating(rules: Rules, instructions: u64) -> ([u8; 8], u64) {
    let prices = rules.pages();
    using(instructions, PAGES * (prices.wasm_page_touched + prices.wasm_page_written).get())
}

/// The same for a query, which is not charged for written pages.
fn querying(rules: Rules, instructions: u64) -> ([u8; 8], u64) {
    using(instructions, PAGES * rules.pages().wasm_page_touched.get())
}

fn using(instructions: u64, pages: u64) -> ([u8; 8], u64) {
    let filling = instructions - (FILLING + READING + ANSWERING + pages);
    let times = u32::try_from(filling / ITERATION).unwrap();
    let rest = u32::try_from(filling % ITERATION).unwrap();
    assert!(times > 0 && u64::from(rest) <= CHUNK, "{instructions} cannot be used");
    let mut argument = [0; 8];
    argument[..4].copy_from_slice(&times.to_le_bytes());
    argument[4..].copy_from_slice(&rest.to_le_bytes());
    (argument, instructions - ANSWERING)
}

/// Decodes the number in a reply.
fn number(reply: &[u8]) -> u64 {
    u64::from_le_bytes(reply.try_into().unwrap())
}
