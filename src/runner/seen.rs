//! What was read back from forks of a populated canister: none is read back twice.
//!
//! What a canister answers follows from its module, from what it keeps, and from the message
//! alone. So a fork that differs from the populated canister as one did whose rows were read
//! back, byte for byte, holds the same rows.

use anyhow::Result;
use stablebench_protocol::Digest;

use crate::cache::Digests;
use crate::replica::{Difference, Messages};

/// Most digests that are kept; beyond, those of this run.
const MOST: usize = 4_096;

/// Digests of forks of a populated canister, by what makes them differ from it.
#[derive(Default)]
pub(super) struct Seen {
    /// Of earlier runs.
    earlier: Digests,
    /// Of this one.
    here: Digests,
    /// How many forks were not read back because an earlier run had done that.
    pub known: u64,
    /// How many forks there were to read back.
    pub asked: u64,
}

impl Seen {
    /// With what earlier runs have read back.
    pub(super) fn with(earlier: Digests) -> Self {
        Self { earlier, ..Self::default() }
    }

    /// Reads a fork back, unless one like it was read back with the digest `expected`.
    pub(super) fn read_back(
        &mut self,
        fork: &mut dyn Messages,
        expected: Digest,
        read_back: impl FnOnce(&mut dyn Messages) -> Result<Digest>,
    ) -> Result<Digest> {
        self.asked += 1;
        let Some(Difference(hash)) = fork.difference()? else {
            return read_back(fork);
        };
        let state: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let is_it = |known: Option<&Digest>| known == Some(&expected);
        if is_it(self.earlier.get(&state)) {
            self.known += 1;
        } else if !is_it(self.here.get(&state)) {
            read_back(fork)?;
        }
        self.here.insert(state, expected);
        Ok(expected)
    }

    /// The canister is another one from here on.
    pub(super) fn forget(&mut self) {
        *self = Self { known: self.known, asked: self.asked, ..Self::default() };
    }

    /// What is to be kept for later runs; nothing if they know it.
    pub(super) fn news(&self) -> Option<Digests> {
        let new = self.here.iter().any(|(state, digest)| self.earlier.get(state) != Some(digest));
        let all = self.earlier.len() + self.here.len() <= MOST;
        let earlier = self.earlier.iter().filter(|_| all);
        new.then(|| earlier.chain(&self.here).map(|(key, digest)| (key.clone(), *digest)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::replica::Answer;

    /// A fork with that difference, if it tells.
    struct Fork(Option<Difference>);

    impl Messages for Fork {
        fn update(&mut self, _: &str, _: &[u8]) -> Result<Answer> {
            unreachable!()
        }

        fn query(&mut self, _: &str, _: &[u8]) -> Result<Answer> {
            unreachable!()
        }

        fn upgrade(&mut self) -> Result<()> {
            unreachable!()
        }

        fn difference(&self) -> Result<Option<Difference>> {
            Ok(self.0)
        }
    }

    fn fork(state: u8) -> Fork {
        Fork(Some(Difference([state; 32])))
    }

    fn digest(rows: u64) -> Digest {
        Digest { rows, low: 1, high: 2 }
    }

    /// Whether the rows were read.
    fn reads(seen: &mut Seen, mut fork: Fork, expected: Digest) -> bool {
        let read = Cell::new(false);
        let found = seen.read_back(&mut fork, expected, |_| {
            read.set(true);
            Ok(expected)
        });
        assert_eq!(found.unwrap(), expected);
        read.get()
    }

    #[test]
    fn a_fork_that_is_alike_is_not_read_again() {
        let mut seen = Seen::default();
        assert!(reads(&mut seen, fork(1), digest(5)));
        assert!(!reads(&mut seen, fork(1), digest(5)));
        assert!(reads(&mut seen, fork(1), digest(6)), "it must be another one");
        assert!(reads(&mut seen, fork(2), digest(5)));
        for _ in 0..2 {
            assert!(reads(&mut seen, Fork(None), digest(5)), "nothing is known");
        }
    }

    #[test]
    fn what_could_not_be_read_or_is_wrong_is_not_known() {
        let mut seen = Seen::default();
        let failed =
            seen.read_back(&mut fork(1), digest(5), |_| anyhow::bail!("the content is wrong"));
        assert!(failed.is_err());
        assert!(reads(&mut seen, fork(1), digest(5)));
    }

    #[test]
    fn earlier_runs_tell_and_later_ones_are_told() {
        let mut seen = Seen::default();
        reads(&mut seen, fork(1), digest(5));
        let told = seen.news().unwrap();
        let mut later = Seen::with(told.clone());
        assert!(!reads(&mut later, fork(1), digest(5)));
        assert_eq!((later.known, later.asked), (1, 1));
        assert_eq!(later.news(), None, "they know that");
        assert!(reads(&mut later, fork(2), digest(6)));
        assert_eq!(later.news().unwrap().len(), 2);
        later.forget();
        assert!(reads(&mut later, fork(1), digest(5)), "of another canister");
        // Of a wrong digest the right one is told.
        let wrong = told.keys().map(|state| (state.clone(), digest(4))).collect();
        let mut later = Seen::with(wrong);
        assert!(reads(&mut later, fork(1), digest(5)));
        assert_eq!(later.news(), Some(told));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let many = (0..MOST).map(|number| (number.to_string(), digest(1))).collect();
        let mut seen = Seen::with(many);
        reads(&mut seen, fork(1), digest(5));
        assert_eq!(seen.news().unwrap().len(), 1);
    }
}
