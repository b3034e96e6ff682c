//! Which keys are there, without their values: how many rows a sequential read finds.

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
            | DbBenchTask::ReadSequential { .. } => {}
        }
    }

    /// How many there are.
    pub fn rows(&self) -> u64 {
        self.0.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_protocol::DbBenchWrite;

    #[test]
    fn a_key_is_there_once() {
        let mut keys = Keys::default();
        let mut write =
            DbBenchWrite { random: true, keys: 100, value_bytes: 1, batch: 1, stream: 0 };
        keys.perform(1, &DbBenchTask::Write(write), 100);
        // As many draws as keys leave 1/e of them out.
        assert!((50..80).contains(&keys.rows()), "{}", keys.rows());
        write.random = false;
        keys.perform(1, &DbBenchTask::Write(write), 100);
        keys.perform(1, &DbBenchTask::Ready { fresh: false, sync: true }, 1);
        assert_eq!(keys.rows(), 100);
        keys.perform(1, &DbBenchTask::Ready { fresh: true, sync: false }, 1);
        assert_eq!(keys.rows(), 0);
    }
}
