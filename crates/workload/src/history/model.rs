//! What the work must find and leave: the table on each branch, as a list of versions.

use super::{HASH_BYTES, Version, changed_ids};
use crate::sql::{ValueRef, add_row};
use crate::{ContentDigest, Expected, Tables};
use stablebench_protocol::{Digest, History, HistoryTask, Job, Part};

/// The table, where one is, as it was committed there, and on the other branch.
#[derive(Clone, Debug, Default)]
pub struct HistoryModel {
    here: Vec<Version>,
    committed: Vec<Version>,
    other: Vec<Version>,
}

/// A function that answers a number.
const NUMBER: Expected = Expected { rows: 1, bytes: 8, results: None };
/// One that answers a commit's hash.
const HASH: Expected = Expected { rows: 1, bytes: HASH_BYTES, results: None };

impl HistoryModel {
    fn task(&mut self, job: &History, part: &Part) -> Expected {
        match job.task {
            HistoryTask::Create => Expected::default(),
            HistoryTask::Insert => {
                let ids = part.from..part.from.saturating_add(part.count);
                let bytes =
                    ids.clone().map(|id| 8 + Version::Inserted.value(id).len() as u64).sum();
                self.here.resize(ids.end as usize, Version::Inserted);
                Expected { rows: part.count, bytes, results: None }
            }
            HistoryTask::Change(changed) => {
                let rows = change(&mut self.here, changed);
                Expected { rows, bytes: 0, results: None }
            }
            HistoryTask::Commit => {
                self.committed = self.here.clone();
                HASH
            }
            HistoryTask::Branch => {
                self.other = self.committed.clone();
                NUMBER
            }
            HistoryTask::Diverge(changed) => {
                self.diverge(changed);
                Expected::default()
            }
            HistoryTask::Part(changed) => {
                self.diverge(changed);
                if let Some(last) = self.here.last_mut() {
                    *last = Version::ChangedHere;
                }
                self.committed = self.here.clone();
                Expected::default()
            }
            HistoryTask::Checkout => {
                self.here = self.other.clone();
                self.committed = self.here.clone();
                NUMBER
            }
            HistoryTask::Merge => {
                for (here, there) in self.here.iter_mut().zip(&self.other) {
                    if *there == Version::Changed {
                        *here = *there;
                    }
                }
                self.committed = self.here.clone();
                HASH
            }
            HistoryTask::Diff => diff(&self.committed, &self.here),
            HistoryTask::DiffBranch => diff(&self.committed, &self.other),
        }
    }

    fn diverge(&mut self, changed: u64) {
        self.other = self.committed.clone();
        change(&mut self.other, changed);
    }
}

/// Tells how many rows it changes.
fn change(table: &mut [Version], changed: u64) -> u64 {
    let ids: Vec<u64> = changed_ids(table.len() as u64, changed).collect();
    for id in &ids {
        table[*id as usize] = Version::Changed;
    }
    ids.len() as u64
}

/// The rows that differ, before and after.
fn diff(before: &[Version], after: &[Version]) -> Expected {
    const MODIFIED: &str = "modified";
    let mut expected = Expected::default();
    let mut results = ContentDigest::default();
    for (id, (from, to)) in (0_u64..).zip(before.iter().zip(after)) {
        if from == to {
            continue;
        }
        let (from, to, number) = (from.value(id), to.value(id), ValueRef::Integer(id as i64));
        let columns = [
            ValueRef::Text(MODIFIED.as_bytes()),
            number,
            ValueRef::Text(from.as_bytes()),
            number,
            ValueRef::Text(to.as_bytes()),
        ];
        expected.bytes += columns.iter().map(|column| column.bytes()).sum::<u64>();
        add_row(&mut results, expected.rows, columns);
        expected.rows += 1;
    }
    Expected { results: Some(results.value()), ..expected }
}

impl Tables for HistoryModel {
    fn perform(&mut self, part: &Part) -> Expected {
        match &part.job {
            Job::History(job) => self.task(job, part),
            _ => Expected::default(),
        }
    }

    fn content(&self) -> Digest {
        let mut digest = ContentDigest::default();
        for (id, version) in (0_u64..).zip(&self.here) {
            let value = version.value(id);
            let columns = [ValueRef::Integer(id as i64), ValueRef::Text(value.as_bytes())];
            add_row(&mut digest, 0, columns);
        }
        digest.value()
    }

    fn fork(&self) -> Box<dyn Tables> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::VALUE_BYTES;
    use super::*;

    fn done(model: &mut HistoryModel, task: HistoryTask) -> Expected {
        let count = if task == HistoryTask::Insert { 100 } else { 1 };
        let job = Job::History(History { rows: 100, task });
        model.perform(&Part { job, seed: 1, from: 0, count, each: false })
    }

    fn filled() -> HistoryModel {
        let mut model = HistoryModel::default();
        for task in [HistoryTask::Create, HistoryTask::Insert, HistoryTask::Commit] {
            done(&mut model, task);
        }
        model
    }

    #[test]
    fn values_have_their_length_and_tell_their_row() {
        for (version, begins) in [
            (Version::Inserted, "row-00000042-."),
            (Version::Changed, "changed-00000042-."),
            (Version::ChangedHere, "here-00000042-."),
        ] {
            let value = version.value(42);
            assert!(value.starts_with(begins) && value.len() == VALUE_BYTES, "{value}");
        }
    }

    #[test]
    fn as_many_rows_are_changed_as_asked_for_and_differ_until_they_are_committed() {
        for changed in [1, 7, 10, 99, 100] {
            let mut model = filled();
            assert_eq!(done(&mut model, HistoryTask::Change(changed)).rows, changed);
            assert_eq!(done(&mut model, HistoryTask::Diff).rows, changed);
            done(&mut model, HistoryTask::Commit);
            assert_eq!(done(&mut model, HistoryTask::Diff).rows, 0);
        }
    }

    #[test]
    fn a_branch_is_left_as_it_is_and_merged_as_a_whole() {
        let mut model = filled();
        let before = model.content();
        done(&mut model, HistoryTask::Diverge(10));
        assert_eq!(model.content(), before);
        assert_eq!(done(&mut model, HistoryTask::DiffBranch).rows, 10);
        let mut there = model.clone();
        done(&mut there, HistoryTask::Checkout);
        let mut merged = model.clone();
        done(&mut merged, HistoryTask::Merge);
        assert_eq!(there.content(), merged.content());

        let mut parted = filled();
        done(&mut parted, HistoryTask::Part(10));
        assert_eq!(done(&mut parted, HistoryTask::DiffBranch).rows, 11, "one here, ten there");
        done(&mut parted, HistoryTask::Merge);
        assert_ne!(parted.content(), merged.content());
        assert_eq!(done(&mut parted, HistoryTask::DiffBranch).rows, 1);
    }
}
