//! Stable memory that comes from outside, not from code.
//!
//! Source: `set_stable_memory` in `rs/state_machine_tests/src/lib.rs` of the replica, which is
//! what a PocketIC server does.

use std::io;

use crate::canister::{Canister, HostError};
use crate::live::Spare;
use crate::memory::pages::{Pages, push};
use crate::memory::{Image, PAGE, Rights};
use crate::rules::Rules;
use crate::units::{Bytes, WASM_PAGE};

/// Stable memory that could not be set.
#[derive(Debug, thiserror::Error)]
pub enum StableMemoryError {
    /// There is no module whose stable memory it could be.
    #[error("the canister has no module, so it has no stable memory; install one first")]
    NoModule,
    /// The bytes do not fit.
    #[error("{size} bytes are more than stable memory can have, which is {most} bytes")]
    TooLarge {
        /// The size that was requested.
        size: Bytes,
        /// The largest stable memory of the module's rules.
        most: Bytes,
    },
    /// The host could not go on.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl Canister {
    /// Replaces the stable memory by these bytes, in as few pages of 64 KiB as hold them; what
    /// follows the bytes in the last one is zero. Of no bytes it has no page. Heap, globals and
    /// all else stay, and no new version of the canister is counted.
    ///
    /// # Errors
    ///
    /// If the canister has no module, the bytes are more than the largest stable memory of the
    /// module's rules, or the host has no memory left. Then nothing has changed.
    pub fn set_stable_memory(&mut self, bytes: &[u8]) -> Result<(), StableMemoryError> {
        self.whole()?;
        let module = self.module().ok_or(StableMemoryError::NoModule)?;
        check_size(Bytes(bytes.len() as u64), module.rules())?;
        self.state.stable = image(bytes).map_err(HostError::from)?;
        // An instance that is left shows the memory that was.
        self.spare = Spare::default();
        Ok(())
    }
}

fn check_size(size: Bytes, rules: Rules) -> Result<(), StableMemoryError> {
    let most = Bytes::from(rules.set().memory.stable);
    if size > most { Err(StableMemoryError::TooLarge { size, most }) } else { Ok(()) }
}

/// An image of so many bytes. Pages of zeros take no room.
fn image(bytes: &[u8]) -> io::Result<Image> {
    let mut image = Image::new()?;
    let size = bytes.len().next_multiple_of(WASM_PAGE as usize);
    let mut mapping = image.map(size, 0)?;
    mapping.grow(size)?;
    let mut ranges: Vec<Pages> = Vec::new();
    for (page, content) in bytes.chunks(PAGE).enumerate() {
        if content.iter().any(|byte| *byte != 0) {
            mapping.bytes_mut()[page * PAGE..][..content.len()].copy_from_slice(content);
            push(&mut ranges, page);
        }
    }
    let _ = image.commit(mapping.bytes_mut(), &ranges, &ranges, Rights::ReadWrite)?;
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More bytes than a test can have.
    #[test]
    fn one_byte_more_than_the_largest_stable_memory_is_refused() {
        let most = 500_u64 << 30;
        for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
            check_size(Bytes(most), rules).unwrap();
            let error = check_size(Bytes(most + 1), rules).unwrap_err();
            let words = "536870912001 bytes are more than stable memory can have, which is \
                         536870912000 bytes";
            assert_eq!(error.to_string(), words);
        }
    }
}
