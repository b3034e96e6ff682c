//! Seeded streams of operations, for checking an engine against the model.
//!
//! Ids and lengths are from small ranges, so that operations meet: a good part of
//! them must fail, and then change nothing.

use crate::ids::{Ids, STEP};
use crate::rng::Rng;

/// One call on an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Add new rows with payloads of so many bytes.
    Insert {
        /// The rows.
        ids: Ids,
        /// Bytes a payload.
        bytes: u32,
    },
    /// Replace payloads by others of so many bytes.
    Update {
        /// The rows.
        ids: Ids,
        /// Bytes a payload.
        bytes: u32,
    },
    /// Remove rows.
    Delete {
        /// The rows.
        ids: Ids,
    },
    /// Look rows up.
    Read {
        /// The rows.
        ids: Ids,
    },
}

/// The endless stream of a seed. Ids are multiples of half a [`STEP`].
pub fn stream(seed: u64) -> impl Iterator<Item = Operation> {
    let mut rng = Rng::new(seed);
    std::iter::repeat_with(move || {
        loop {
            let half_step = STEP / 2;
            let first = half_step * rng.below(100);
            let step = half_step * (1 + rng.below(4));
            let Ok(ids) = Ids::new(first, step, 1 + rng.below(12)) else {
                continue;
            };
            let bytes = rng.below(200) as u32;
            break match rng.below(8) {
                0..4 => Operation::Insert { ids, bytes },
                4 | 5 => Operation::Update { ids, bytes },
                6 => Operation::Delete { ids },
                _ => Operation::Read { ids },
            };
        }
    })
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
