//! Seeded streams of operations, for checking an engine against the model.
//!
//! Ids and lengths are from small ranges, so that operations meet: a good part of
//! them must fail, and then change nothing.

use crate::ids::STEP;
use crate::rng::Rng;
use stablebench_protocol::{Operation, Selection};

/// Ids are multiples of this.
const GRAIN: u64 = STEP / 2;

/// The endless stream of a seed: operations, and the bytes of the payloads that they
/// write. Ids are multiples of half a [`STEP`].
pub fn stream(seed: u64) -> impl Iterator<Item = (Operation, u32)> {
    let mut rng = Rng::new(seed);
    std::iter::repeat_with(move || {
        let rows = selection(&mut rng);
        let operation = match rng.below(14) {
            0..5 => Operation::Insert(rows),
            5 | 6 => Operation::Overwrite(rows),
            7 | 8 => Operation::Update(rows),
            9 => Operation::Delete(rows),
            10 => Operation::Read(rows),
            11 => Operation::Range { from: rows, rows: rng.below(10) },
            12 => Operation::Scan(rng.below(200)),
            _ => Operation::Count,
        };
        (operation, rng.below(200) as u32)
    })
}

/// A step more often than a list. A list is in no order, and an id may be in it twice.
fn selection(rng: &mut Rng) -> Selection {
    let (first, rows) = (GRAIN * rng.below(100), 1 + rng.below(12));
    if rng.below(3) > 0 {
        Selection::Step { first, step: GRAIN * (1 + rng.below(4)), rows }
    } else {
        Selection::List((0..rows).map(|_| GRAIN * rng.below(100)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_stream() {
        let first: Vec<_> = stream(7).take(50).collect();
        assert_eq!(first, stream(7).take(50).collect::<Vec<_>>());
        assert_ne!(first, stream(8).take(50).collect::<Vec<_>>());
    }
}
