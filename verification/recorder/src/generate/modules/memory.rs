//! The heap, the table and stable memory: sizes, growth, copies.
//!
//! Each measurement is a message, which starts without written stable pages. Some write a page twice.

use stablebench_workload::Rng;

use super::measurement::{Group, Measurement, OPERANDS, times};

/// Size of the passive data segment of `memory.init`.
const SEGMENT: u64 = 64;

pub(super) fn heap_group(rng: &mut Rng) -> Group {
    let bulk = ["i32.const", "i32.const", "i32.const"];
    let bulk = |operator| [&bulk[..], &[operator]].concat();
    let mut measurements = vec![
        Measurement::of("memory.size", "(drop (memory.size))", &["memory.size", "drop"]),
        Measurement::of("data.drop", "(data.drop $dropped)", &["data.drop"]),
        Measurement::of("elem.drop", "(elem.drop $elements)", &["elem.drop"]),
        Measurement::of("table.size", "(drop (table.size $table))", &["table.size", "drop"]),
        Measurement::of(
            "table.get",
            format!("(drop (table.get $table (i32.const {})))", rng.below(4)),
            &["i32.const", "table.get", "drop"],
        ),
    ];
    for pages in [0, 1 + rng.below(3), 1 << 20] {
        let code = format!("(drop (memory.grow (i32.const {pages})))");
        let name = format!("memory.grow_by_{pages}");
        measurements.push(Measurement::of(name, code, &["i32.const", "memory.grow", "drop"]));
    }
    for bytes in [0, 1, 1 + rng.below(4_096), rng.below(OPERANDS)] {
        let (to, from) = (rng.below(OPERANDS), rng.below(OPERANDS));
        let fill = format!("(memory.fill (i32.const {to}) (i32.const 7) (i32.const {bytes}))");
        let copy = format!("(memory.copy (i32.const {to}) (i32.const {from}) (i32.const {bytes}))");
        measurements.extend([
            Measurement::of(format!("memory.fill_of_{bytes}"), fill, &bulk("memory.fill"))
                .about(bytes),
            Measurement::of(format!("memory.copy_of_{bytes}"), copy, &bulk("memory.copy"))
                .about(bytes),
        ]);
    }
    for bytes in [0, 1, rng.below(SEGMENT), SEGMENT] {
        let (to, from) = (rng.below(OPERANDS), rng.below(SEGMENT - bytes + 1));
        let init =
            format!("(memory.init $bytes (i32.const {to}) (i32.const {from}) (i32.const {bytes}))");
        measurements.push(
            Measurement::of(format!("memory.init_of_{bytes}"), init, &bulk("memory.init"))
                .about(bytes),
        );
    }
    measurements.sort_by(|one, other| one.name.cmp(&other.name));
    measurements.dedup_by(|one, other| one.name == other.name);
    for measurement in &mut measurements {
        measurement.times = times(rng);
    }
    Group { name: "memory", imports: String::new(), measurements, argument: Vec::new() }
}

/// Size of stable memory after the first method, in bytes.
const SIZE: u64 = 4 << 16;
/// Largest number of bytes read or written at once.
const LONGEST: u64 = 3 * 4_096;
/// Number of measurements of each kind.
const EACH: u64 = 4;

const IMPORTS: &str = r#"  (import "ic0" "stable64_size" (func $stable64_size (result i64)))
  (import "ic0" "stable64_grow" (func $stable64_grow (param i64) (result i64)))
  (import "ic0" "stable64_read" (func $stable64_read (param i64 i64 i64)))
  (import "ic0" "stable64_write" (func $stable64_write (param i64 i64 i64)))
  (import "ic0" "stable_size" (func $stable_size (result i32)))
  (import "ic0" "stable_grow" (func $stable_grow (param i32) (result i32)))
  (import "ic0" "stable_read" (func $stable_read (param i32 i32 i32)))
  (import "ic0" "stable_write" (func $stable_write (param i32 i32 i32)))
"#;

pub(super) fn stable_group(rng: &mut Rng) -> Group {
    let mut measurements = vec![
        grow("stable64_grow", "i64", SIZE >> 16),
        grow("stable_grow", "i32", 1),
        grow("stable64_grow", "i64", 0),
        grow("stable64_grow", "i64", 1 << 40),
        size("stable64_size"),
        size("stable_size"),
    ];
    for number in 0..EACH {
        for (name, ty) in [
            ("stable64_read", "i64"),
            ("stable64_write", "i64"),
            ("stable_read", "i32"),
            ("stable_write", "i32"),
        ] {
            let bytes = [0, 1, rng.below(LONGEST), 4_096][number as usize % 4];
            let stable = rng.below(SIZE - LONGEST);
            let moved = moved(name, ty, stable, rng.below(1_000), bytes);
            measurements.push(Measurement { name: format!("{name}_{number}"), ..moved });
        }
    }
    for number in 0..EACH {
        measurements.push(overlapping(number, rng));
    }
    Group { name: "stable", imports: IMPORTS.to_owned(), measurements, argument: Vec::new() }
}

fn grow(call: &'static str, ty: &str, pages: u64) -> Measurement {
    let code = format!("(drop (call ${call} ({ty}.const {pages})))");
    let constant = format!("{ty}.const");
    Measurement::of(format!("{call}_by_{pages}"), code, &[&constant, "call", "drop"])
        .calling(call, &[pages])
}

fn size(call: &'static str) -> Measurement {
    Measurement::of(call, format!("(drop (call ${call}))"), &["call", "drop"]).calling(call, &[])
}

/// A read to, or a write from, the heap.
fn moved(call: &'static str, ty: &str, stable: u64, heap: u64, bytes: u64) -> Measurement {
    let args = if call.ends_with("read") { [heap, stable, bytes] } else { [stable, heap, bytes] };
    let constants: String = args.iter().map(|arg| format!(" ({ty}.const {arg})")).collect();
    let constant = format!("{ty}.const");
    Measurement::of(
        call,
        format!("(call ${call}{constants})"),
        &[constant.as_str(), &constant, &constant, "call"],
    )
    .calling(call, &args)
}

/// A write, a read, and a write to a part of the same pages.
fn overlapping(number: u64, rng: &mut Rng) -> Measurement {
    let stable = rng.below(SIZE - 3 * LONGEST);
    let parts = [
        moved("stable64_write", "i64", stable, 0, 1 + rng.below(LONGEST)),
        moved("stable64_read", "i64", stable + rng.below(4_096), 0, 1 + rng.below(LONGEST)),
        moved("stable_write", "i32", stable + rng.below(LONGEST), 0, 1 + rng.below(LONGEST)),
    ];
    let mut whole = Measurement::of(format!("overlapping_{number}"), "", &[]);
    for Measurement { with, work, .. } in parts {
        whole.with += &with;
        whole.work.operators.extend(work.operators);
        whole.work.calls.extend(work.calls);
    }
    whole
}
