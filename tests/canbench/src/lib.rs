//! Benchmarks that measure, and benchmarks that fail.
//!
//! The canister also exports a timer and imports calls to other canisters, as most canisters do
//! that people benchmark.

use std::cell::RefCell;

use canbench_rs::{BenchResult, bench, bench_fn, bench_scope};
use ic_stable_structures::{
    DefaultMemoryImpl, Memory, RestrictedMemory, StableBTreeMap, VectorMemory,
};

type Stable = RestrictedMemory<DefaultMemoryImpl>;
type Map = StableBTreeMap<u64, u64, Stable>;

thread_local! {
    static ARGUMENT: RefCell<String> = const { RefCell::new(String::new()) };
    /// The map of `set_up`.
    static KEPT: RefCell<Option<Map>> = const { RefCell::new(None) };
}

#[link(wasm_import_module = "ic0")]
unsafe extern "C" {
    fn call_new(
        callee: usize,
        callee_size: usize,
        method: usize,
        method_size: usize,
        reply: usize,
        reply_environment: usize,
        reject: usize,
        reject_environment: usize,
    );
    fn global_timer_set(time: i64) -> i64;
}

#[ic_cdk::init]
fn init(argument: String) {
    ARGUMENT.set(argument);
    ic_cdk::println!("init was called");
    // SAFETY: it takes a number and returns one.
    let before = unsafe { global_timer_set(i64::MAX) };
    assert_eq!(before, 0);
}

#[unsafe(export_name = "canister_global_timer")]
extern "C" fn timer() {}

/// A map behind the first page of stable memory, which is loaded from a file.
fn map(rows: u64) -> Map {
    let mut map =
        StableBTreeMap::new(RestrictedMemory::new(DefaultMemoryImpl::default(), 1..4_096));
    (0..rows).for_each(|key| _ = map.insert(key, key));
    map
}

#[bench]
fn insert() {
    let _ = map(1_000);
}

#[bench(raw)]
fn insert_into_1_000() -> BenchResult {
    let mut map = map(1_000);
    bench_fn(|| (1_000..1_010).for_each(|key| _ = map.insert(key, key)))
}

#[bench(raw)]
fn insert_in_scopes() -> BenchResult {
    let mut map = map(100);
    bench_fn(|| {
        {
            let _scope = bench_scope("first");
            let _ = map.insert(200, 1);
        }
        for key in 300..305 {
            let _scope = bench_scope("others");
            let _ = map.insert(key, 1);
        }
    })
}

#[inline(never)]
fn add_ten(map: &mut Map) {
    (1_000..1_010).for_each(|key| _ = map.insert(key, key));
}

#[bench(raw)]
fn ten_more() -> BenchResult {
    let mut map = map(1_000);
    bench_fn(|| add_ten(&mut map))
}

/// The setup of `ten_more`, in a message of its own.
#[ic_cdk::update]
fn set_up() {
    KEPT.set(Some(map(1_000)));
}

/// The work of `ten_more`, in a message after `set_up`.
#[expect(clippy::expect_used, reason = "the benchmark fails")]
#[bench(raw)]
fn fails_unless_set_up() -> BenchResult {
    KEPT.with_borrow_mut(|map| {
        let map = map.as_mut().expect("set_up was called");
        bench_fn(|| add_ten(map))
    })
}

/// A result that is not that of one measurement.
#[bench(raw)]
fn several_measurements() -> BenchResult {
    let mut first = bench_fn(|| add_ten(&mut map(10)));
    let second = bench_fn(|| add_ten(&mut map(10)));
    first.total.instructions += second.total.instructions + 1;
    first
}

#[bench]
fn grow() {
    let memory = VectorMemory::default();
    assert_eq!(memory.grow(32), 0);
    std::hint::black_box(&memory);
}

#[bench]
fn read_argument() {
    ARGUMENT.with_borrow(|argument| assert_eq!(argument, "from init"));
}

#[bench]
fn read_stable_memory() {
    const TEXT: &[u8] = b"kept in stable memory";
    let mut bytes = [0; TEXT.len() + 1];
    assert_eq!(ic_cdk::stable::stable_size(), 1);
    ic_cdk::stable::stable_read(0, &mut bytes);
    assert_eq!(bytes.split_last(), Some((&0, TEXT)));
}

#[bench]
fn read_environment() {
    assert_eq!(ic_cdk::api::env_var_count(), 2);
    assert_eq!(ic_cdk::api::env_var_value("STAGE"), "test");
    assert!(!ic_cdk::api::env_var_name_exists("STAGES"));
}

#[bench]
fn print() {
    ic_cdk::println!("a line");
    ic_cdk::println!("another \u{1b}[31mline");
}

#[bench]
fn fails_by_a_trap() {
    assert_eq!(1 + 1, 3, "arithmetic");
}

/// Reads a byte of each 4 KiB page of a little more than the GiB that a query may touch.
#[bench]
fn fails_at_the_limit_of_stable_memory() {
    let pages = (1 << 30) / 65_536 + 1;
    assert_eq!(ic_cdk::stable::stable_grow(pages).ok(), Some(1));
    let mut byte = [0];
    (0..pages * 16).for_each(|page| ic_cdk::stable::stable_read(page * 4_096, &mut byte));
}

#[bench]
fn fails_in_a_call() {
    // SAFETY: all lengths are 0.
    unsafe { call_new(0, 0, 0, 0, 0, 0, 0, 0) };
}

#[unsafe(export_name = "canister_query __canbench__fails_silently")]
extern "C" fn silent() {}

#[expect(clippy::expect_used, reason = "a string can always be encoded")]
#[unsafe(export_name = "canister_query __canbench__fails_to_answer_as_a_benchmark")]
extern "C" fn other() {
    ic_cdk::api::msg_reply(candid::encode_one("a text").expect("a text can be encoded"));
}
