//! Access to the whole stable memory of a canister, between two messages.

use std::io::ErrorKind;
use std::ops::Range;

use crate::canister::Canister;
use crate::fault::HostError;
use crate::instance::IdleSlot;
use crate::memory::Image;
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
    /// If the copy does not fit into the memory of this machine, or the host cannot read it.
    pub fn stable_memory(&self) -> Result<Vec<u8>, HostError> {
        self.stable_memory_part(0..self.state.stable.size() as u64)
    }

    /// Returns a copy of a part of the stable memory, up to its end.
    ///
    /// # Errors
    ///
    /// As [`Canister::stable_memory`].
    pub fn stable_memory_part(&self, part: Range<u64>) -> Result<Vec<u8>, HostError> {
        let size = self.state.stable.size();
        let at = |offset: u64| usize::try_from(offset).map_or(size, |offset| offset.min(size));
        let range = at(part.start).min(at(part.end))..at(part.end);
        let bytes = Bytes(range.len() as u64);
        self.state.stable.bytes(range).map_err(|error| match error.kind() {
            ErrorKind::OutOfMemory => HostError::TooLarge(bytes),
            _ => error.into(),
        })
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

    #[test]
    fn a_copy_that_does_not_fit_is_an_error() {
        let replica = crate::Replica::new(Rules::today(), None).unwrap();
        let mut canister = replica.create_canister().unwrap();
        // More than any machine has.
        canister.state.stable = Image::zeros(1 << 62);
        let error = canister.stable_memory().unwrap_err().to_string();
        assert_eq!(
            error,
            "4611686018427387904 bytes do not fit into the memory of this machine; read them in parts"
        );
        assert_eq!(canister.stable_memory_part(1 << 40..(1 << 40) + 5).unwrap(), [0; 5]);
        assert_eq!(canister.stable_memory_part((1 << 62) - 2..u64::MAX).unwrap(), [0; 2]);
    }
}
