use crate::Writes;
use crate::sql::{Prepare, number};
use stablebench_protocol::Result;
use stablebench_workload::Selected;
use stablebench_workload::sql::Value;
use std::ops::ControlFlow;

/// The table in a transaction.
pub struct Writing<'a>(pub &'a mut dyn Prepare);

impl Writing<'_> {
    /// One prepared statement, executed for each row with its id in one place.
    fn execute(
        &mut self,
        statement: &str,
        rows: Selected<'_>,
        mut parameters: Vec<Value>,
        id_at: usize,
    ) -> Result<()> {
        self.0.prepared(&[statement], &mut |statements| {
            rows.try_each(|id| {
                parameters[id_at] = Value::Integer(id as i64);
                statements.run(0, &parameters, &mut |_| Ok(ControlFlow::Break(()))).map(drop)
            })
        })
    }
}

impl Writes for Writing<'_> {
    fn allocated_units(&mut self) -> Result<u64> {
        let pages: u64 = number(self.0, "page_count")?;
        let free: u64 = number(self.0, "freelist_count")?;
        Ok(pages - free)
    }

    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        let parameters = vec![Value::Null, Value::Text(payload.to_owned())];
        self.execute("insert into users (id, username) values (?, ?)", rows, parameters, 0)
    }

    fn overwrite(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        let upsert = "insert into users (id, username) values (?, ?) \
                      on conflict (id) do update set username = excluded.username";
        self.execute(upsert, rows, vec![Value::Null, Value::Text(payload.to_owned())], 0)
    }

    fn update(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        let parameters = vec![Value::Text(payload.to_owned()), Value::Null];
        self.execute("update users set username = ? where id = ?", rows, parameters, 1)
    }

    fn delete(&mut self, rows: Selected<'_>) -> Result<()> {
        self.execute("delete from users where id = ?", rows, vec![Value::Null], 0)
    }
}
