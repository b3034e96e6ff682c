//! Access to the whole stable memory of a canister, between two messages.

use crate::canister::Canister;
use crate::fault::HostError;
use crate::instance::IdleSlot;
use crate::memory::{Image, PAGE};
use crate::rules::Rules;
use crate::units::Bytes;

/// Stable memory could not be set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StableMemoryError {
    /// The canister has no module.
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
    /// The host has no memory left.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl Canister {
    /// Replaces the stable memory by these bytes, padded with zeros to whole pages of 64 KiB. Heap
    /// and globals stay, and the version of the canister does not change.
    ///
    /// # Errors
    ///
    /// If the canister has no module, there are more bytes than the module's rules allow, or the
    /// host has no memory left. Then nothing has changed.
    pub fn set_stable_memory(&mut self, bytes: &[u8]) -> Result<(), StableMemoryError> {
        self.check_consistent()?;
        let module = self.module().ok_or(StableMemoryError::NoModule)?;
        check_stable_size(Bytes(bytes.len() as u64), module.rules())?;
        self.state.stable = Image::from_bytes(bytes).map_err(HostError::from)?;
        // An idle instance shows the old memory.
        self.idle = IdleSlot::default();
        Ok(())
    }

    /// Returns a copy of the stable memory.
    ///
    /// # Errors
    ///
    /// If the host cannot read it.
    pub fn stable_memory(&self) -> Result<Vec<u8>, HostError> {
        let (stable, mut bytes) = (&self.state.stable, Vec::new());
        stable.read(0..stable.size().div_ceil(PAGE), &mut bytes).map_err(HostError::from)?;
        bytes.truncate(stable.size());
        Ok(bytes)
    }
}

fn check_stable_size(size: Bytes, rules: Rules) -> Result<(), StableMemoryError> {
    let most = Bytes::from(rules.set().memory.stable);
    if size > most { Err(StableMemoryError::TooLarge { size, most }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More bytes than a test can allocate.
    #[test]
    fn one_byte_more_than_the_largest_stable_memory_is_refused() {
        let most = 500_u64 << 30;
        for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
            check_stable_size(Bytes(most), rules).unwrap();
            let error = check_stable_size(Bytes(most + 1), rules).unwrap_err();
            let words = "536870912001 bytes are more than stable memory can have, which is \
                         536870912000 bytes";
            assert_eq!(error.to_string(), words);
        }
    }
}
