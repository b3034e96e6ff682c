//! The source of random numbers for `rand`: a sequence that is the same in every canister.
//!
//! A canister cannot get randomness and continue in the same message, and two runs of one build must
//! cost the same. LevelDB uses random numbers to sample its reads for files that are searched too
//! often. The heights of nodes of its table on the heap follow from its own seed.

use getrandom::{Error, register_custom_getrandom};
use std::cell::Cell;

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// SplitMix64, starting at 0.
fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    for part in bytes.chunks_mut(8) {
        STATE.set(STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut word = STATE.get();
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        part.copy_from_slice(&word.to_le_bytes()[..part.len()]);
    }
    Ok(())
}

register_custom_getrandom!(fill);
