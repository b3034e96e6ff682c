//! Which keys are there, without their values: how far a sequential read comes.

use super::operation::write;
use stablebench_protocol::DbBenchTask;
use std::collections::BTreeSet;

/// The numbers of the keys of a store.
#[derive(Clone, Debug, Default)]
pub struct Keys(BTreeSet<u64>);

impl Keys {
    /// Does the first `count` operations of a task.
    pub fn perform(&mut self, seed: u64, task: &DbBenchTask, count: u64) {
        match task {
            DbBenchTask::Ready { fresh: true, .. } => self.0.clear(),
            DbBenchTask::Write(benchmark) => {
                self.0.extend((0..count).map(|index| write(seed, benchmark, index).0));
            }
            DbBenchTask::Ready { .. }
            | DbBenchTask::ReadRandom { .. }
            | DbBenchTask::ReadSequential => {}
        }
    }

    /// How many there are.
    pub fn rows(&self) -> u64 {
        self.0.len() as u64
    }

    /// Below which number the first `rows` keys are, or all where there are not as many.
    pub fn end_of_first(&self, rows: u64) -> u64 {
        let last = match usize::try_from(rows) {
            Ok(0) => None,
            Ok(rows) => self.0.iter().take(rows).next_back(),
            Err(_) => self.0.last(),
        };
        last.map_or(0, |last| last + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_protocol::DbBenchWrite;

    #[test]
    fn the_first_keys_end_somewhere() {
        let mut keys = Keys::default();
        assert_eq!((keys.rows(), keys.end_of_first(3)), (0, 0));
        let mut write =
            DbBenchWrite { random: true, keys: 100, value_bytes: 1, batch: 1, stream: 0 };
        keys.perform(1, &DbBenchTask::Write(write), 100);
        let sorted: Vec<u64> = keys.0.iter().copied().collect();
        assert!(sorted.len() < 100);
        assert_eq!(keys.end_of_first(0), 0);
        assert_eq!(keys.end_of_first(1), sorted[0] + 1);
        assert_eq!(keys.end_of_first(20), sorted[19] + 1);
        assert_eq!(keys.end_of_first(1_000), sorted[sorted.len() - 1] + 1);
        write.random = false;
        keys.perform(1, &DbBenchTask::Write(write), 100);
        assert_eq!((keys.rows(), keys.end_of_first(40)), (100, 40));
        keys.perform(1, &DbBenchTask::Ready { fresh: false, sync: true }, 1);
        assert_eq!(keys.rows(), 100);
        keys.perform(1, &DbBenchTask::Ready { fresh: true, sync: false }, 1);
        assert_eq!(keys.rows(), 0);
    }
}
