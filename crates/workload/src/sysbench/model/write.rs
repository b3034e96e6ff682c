//! What statements change.

use super::{Model, bytes};
use crate::Amount;
use crate::sql::Value;
use crate::sysbench::action::Action;
use crate::sysbench::record::{Record, integer};
use crate::sysbench::shape::{key, of_table};

impl Model {
    /// Does a change; tells the rows that changed, and the bytes of the parameters that it
    /// takes in SQL.
    pub(super) fn write(&mut self, action: Action) -> Amount {
        let shape = self.shape;
        let amount = |rows: bool, key: Vec<Value>, columns: &[Value]| Amount {
            rows: u64::from(rows),
            bytes: bytes(&key) + bytes(columns),
        };
        match action {
            Action::Insert(table, row, record) | Action::Replace(table, row, record) => {
                let amount = amount(true, key(of_table(shape, table), row), &record.values());
                self.table_mut(table).put(row, record);
                amount
            }
            Action::SetK(row, new) => {
                let there = self.main.change(row, |record| {
                    if let Record::Main { k, .. } = record {
                        *k = new;
                    }
                });
                amount(there, key(shape, row), &[integer(new)])
            }
            Action::SetC(row, new) => {
                let columns = [Value::Text(new.clone())];
                let there = self.main.change(row, |record| {
                    if let Record::Main { c, .. } = record {
                        *c = new;
                    }
                });
                amount(there, key(shape, row), &columns)
            }
            Action::Delete(table, row) => {
                let there = self.table_mut(table).remove(row);
                amount(there, key(of_table(shape, table), row), &[])
            }
            Action::Point(_)
            | Action::Range(_)
            | Action::Sum(_)
            | Action::Order(_)
            | Action::Distinct(_)
            | Action::WithK(_)
            | Action::Points(_)
            | Action::Count(_)
            | Action::CountK(_)
            | Action::Group(_)
            | Action::Join(_)
            | Action::JoinScan(_)
            | Action::Like(..) => Amount::default(),
        }
    }
}
