//! The contents that were read back from forks of a populated canister, so that none is read twice.
//!
//! The answer of a canister depends on its module, its state and the message alone. So if two forks
//! differ from the populated canister in the same way, byte for byte, they contain the same rows.

use anyhow::Result;
use stablebench_protocol::Digest;

use super::ranges::Ranges;
use crate::cache::Digests;
use crate::replica::{Difference, Messages};

/// The maximum number of digests that are kept. If there are more, only those of this run are kept.
const MAX_DIGESTS: usize = 4_096;

/// Digests of forks of a populated canister, by their differences from it.
#[derive(Default)]
pub(super) struct KnownContent {
    /// The digest of the populated canister.
    pub content: Digest,
    /// Its rows in ranges, once they were needed.
    pub ranges: Option<Ranges>,
    /// The digests of earlier runs.
    earlier: Digests,
    /// The digests of this run.
    here: Digests,
    /// The number of forks that an earlier run had read back.
    pub known: u64,
    /// The number of forks to read back.
    pub asked: u64,
}

impl KnownContent {
    /// Starts with the digest of the populated canister and those of earlier runs.
    pub(super) fn of(content: Digest, earlier: Digests) -> Self {
        Self { content, earlier, ..Self::default() }
    }

    /// Reads a fork back, unless an equal one was read back with the digest `expected`.
    pub(super) fn read_back(
        &mut self,
        fork: &mut dyn Messages,
        expected: Digest,
        read_back: impl FnOnce(&mut dyn Messages, Digest, &mut Option<Ranges>) -> Result<()>,
    ) -> Result<Digest> {
        self.asked += 1;
        let Some(Difference(hash)) = fork.difference()? else {
            read_back(fork, self.content, &mut self.ranges)?;
            return Ok(expected);
        };
        let state: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let is_it = |known: Option<&Digest>| known == Some(&expected);
        if is_it(self.earlier.get(&state)) {
            self.known += 1;
        } else if !is_it(self.here.get(&state)) {
            read_back(fork, self.content, &mut self.ranges)?;
        }
        self.here.insert(state, expected);
        Ok(expected)
    }

    /// Starts again, because the canister has changed.
    pub(super) fn clear(&mut self, content: Digest) {
        *self = Self { content, known: self.known, asked: self.asked, ..Self::default() };
    }

    /// Returns the digests to keep for later runs; `None` if nothing is new.
    pub(super) fn news(&self) -> Option<Digests> {
        let new = self.here.iter().any(|(state, digest)| self.earlier.get(state) != Some(digest));
        let all = self.earlier.len() + self.here.len() <= MAX_DIGESTS;
        let earlier = self.earlier.iter().filter(|_| all);
        new.then(|| earlier.chain(&self.here).map(|(key, digest)| (key.clone(), *digest)).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::replica::{Answer, Cost};

    /// A fork that reports this difference.
    struct Fork(Option<Difference>);

    impl Messages for Fork {
        fn update(&mut self, _: &str, _: &[u8]) -> Result<Answer> {
            unreachable!()
        }

        fn query(&mut self, _: &str, _: &[u8]) -> Result<Answer> {
            unreachable!()
        }

        fn upgrade(&mut self) -> Result<Cost> {
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

    /// Returns `true` if the rows were read.
    fn reads(seen: &mut KnownContent, mut fork: Fork, expected: Digest) -> bool {
        let read = Cell::new(false);
        let found = seen.read_back(&mut fork, expected, |_, _, _| {
            read.set(true);
            Ok(())
        });
        assert_eq!(found.unwrap(), expected);
        read.get()
    }

    #[test]
    fn an_equal_fork_is_not_read_again() {
        let mut seen = KnownContent::default();
        assert!(reads(&mut seen, fork(1), digest(5)));
        assert!(!reads(&mut seen, fork(1), digest(5)));
        assert!(reads(&mut seen, fork(1), digest(6)), "another digest is expected");
        assert!(reads(&mut seen, fork(2), digest(5)));
        for _ in 0..2 {
            assert!(reads(&mut seen, Fork(None), digest(5)), "the difference is not known");
        }
    }

    #[test]
    fn failed_reads_are_not_kept() {
        let mut seen = KnownContent::default();
        let failed = seen
            .read_back(&mut fork(1), digest(5), |_, _, _| anyhow::bail!("the content is wrong"));
        assert!(failed.is_err());
        assert!(reads(&mut seen, fork(1), digest(5)));
    }

    #[test]
    fn digests_are_kept_for_later_runs() {
        let mut seen = KnownContent::default();
        reads(&mut seen, fork(1), digest(5));
        let kept = seen.news().unwrap();
        let mut later = KnownContent::of(Digest::default(), kept.clone());
        assert!(!reads(&mut later, fork(1), digest(5)));
        assert_eq!((later.known, later.asked), (1, 1));
        assert_eq!(later.news(), None, "nothing is new");
        assert!(reads(&mut later, fork(2), digest(6)));
        assert_eq!(later.news().unwrap().len(), 2);
        later.clear(Digest::default());
        assert!(reads(&mut later, fork(1), digest(5)), "the canister has changed");
        // A wrong digest is replaced.
        let wrong = kept.keys().map(|state| (state.clone(), digest(4))).collect();
        let mut later = KnownContent::of(Digest::default(), wrong);
        assert!(reads(&mut later, fork(1), digest(5)));
        assert_eq!(later.news(), Some(kept));
    }

    #[test]
    fn the_number_of_kept_digests_is_limited() {
        let many = (0..MAX_DIGESTS).map(|number| (number.to_string(), digest(1))).collect();
        let mut seen = KnownContent::of(Digest::default(), many);
        reads(&mut seen, fork(1), digest(5));
        assert_eq!(seen.news().unwrap().len(), 1);
    }
}
