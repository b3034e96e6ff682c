//! What the tables must hold, and what must be read of them: maps, without any SQL.

mod read;
mod table;
mod write;

use stablebench_protocol::{Digest, Job, KeyShape, Part};

use self::table::Rows;
use super::action::{Table, actions};
use super::schema::CONTENT;
use super::shape::{key, of_table};
use super::workload::changes_rows;
use crate::expected::{Expected, Tables};
use crate::sql::{Value, add_row};
use crate::{Amount, ContentDigest};

/// The four tables.
#[derive(Clone, Debug)]
pub struct Model {
    shape: KeyShape,
    main: Rows,
    second: Rows,
    types: Rows,
    bulk: Rows,
}

impl Model {
    /// Empty tables with keys of a shape.
    pub fn new(shape: KeyShape) -> Self {
        let [main, second, types, bulk] = Default::default();
        Self { shape, main, second, types, bulk }
    }

    fn table(&self, table: Table) -> &Rows {
        match table {
            Table::Main => &self.main,
            Table::Second => &self.second,
            Table::Types => &self.types,
            Table::Bulk => &self.bulk,
        }
    }

    fn table_mut(&mut self, table: Table) -> &mut Rows {
        match table {
            Table::Main => &mut self.main,
            Table::Second => &mut self.second,
            Table::Types => &mut self.types,
            Table::Bulk => &mut self.bulk,
        }
    }
}

/// What a reader or writer of these columns copies.
fn bytes(columns: &[Value]) -> u64 {
    columns.iter().map(|value| value.as_ref().bytes()).sum()
}

impl Tables for Model {
    fn perform(&mut self, part: &Part) -> Expected {
        // Work of other suites is on other tables.
        let Job::Sysbench(job) = &part.job else { return Expected::default() };
        let (mut amount, mut digest, mut answered) = Default::default();
        for index in part.from..part.from.saturating_add(part.count) {
            for action in actions(job, part.seed, index) {
                match self.read(&action) {
                    Some(answer) => {
                        amount += answer.amount();
                        answer.add_to(&mut digest, &mut answered);
                    }
                    None => amount += self.write(action),
                }
            }
        }
        let Amount { rows, bytes } = amount;
        let results = (!changes_rows(job.task)).then(|| digest.value());
        Expected { rows, bytes, results }
    }

    fn content(&self) -> Digest {
        let mut digest = ContentDigest::default();
        for (place, table) in (0..).zip(CONTENT) {
            let shape = of_table(self.shape, table);
            for (row, record) in self.table(table).all() {
                let columns = [key(shape, row), record.values()].concat();
                add_row(&mut digest, place, columns.iter().map(Value::as_ref));
            }
        }
        digest.value()
    }

    fn fork(&self) -> Box<dyn Tables> {
        Box::new(self.clone())
    }
}
