//! Programs that found faults. The seeds that found them are given, but mean something else once the
//! generator changes.

use super::driver::replay;
use super::program::{Access, Api, Op, Program, Value, Width};
use crate::fuzzing::targets::memory::WASM_PAGE;

fn stride(first: u64, count: u32, access: Access) -> Op {
    Op::Stride { first: first * WASM_PAGE, step: WASM_PAGE, count, access }
}

/// A message touches more pages than may be open, in two ranges. The pages between them must be closed
/// for the next one, whose writes were lost. Seed 83 of memories finds it.
#[test]
fn pages_between_many_touched_ones_are_closed_again() {
    let zero = Access::Store(Value::Constant(0));
    let both = Access::LoadAndStore(Value::Constant(0));
    for (access, count) in [(zero, 8_300), (both, 4_200)] {
        for gap in [Access::Store(Value::Turn(1)), Access::Load] {
            let many = vec![stride(1_000, count, access), stride(20_000, count, access)];
            let between = vec![Op::Turn, stride(12_000, 100, gap)];
            let program = Program::of(Width::Bits32, 40_000, vec![many, between]);
            replay(&program, &[1, 0, 1, 1]);
        }
    }
}

/// A short copy from stable memory past the end of the heap writes nothing, also from a page of stable
/// memory that was touched before. Seeds 82, 87, 96 and 101 of memories and seed 94 of calls find it.
#[test]
fn a_short_copy_past_the_end_of_the_heap_writes_nothing() {
    let end = WASM_PAGE;
    for (width, api) in [
        (Width::Bits32, Api::Stable32),
        (Width::Bits32, Api::Stable64),
        (Width::Bits64, Api::Stable64),
    ] {
        let fill = vec![
            Op::Fill { at: 0, byte: 7, length: 100 },
            Op::StableWrite { api, to: 0, from: 0, length: 100 },
        ];
        let copies = [(16, 24), (16, 17), (1, 128), (0, 1), (16, 16), (128, 128)];
        let copies = copies.map(|(before, length)| {
            let read = |to, length| Op::StableRead { api, to, from: 0, length };
            vec![read(0, 8), read(end - before, length)]
        });
        let program = Program::of(width, 1, std::iter::once(fill).chain(copies).collect());
        replay(&program, &[0, 1, 2, 3, 4, 5, 6]);
    }
}
