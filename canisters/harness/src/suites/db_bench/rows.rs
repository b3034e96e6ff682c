use crate::sql::Measured;
use crate::{Sql, instructions, sql};
use stablebench_protocol::{OperationCost, Result, Worked};
use stablebench_workload::sql::Script;
use std::ops::ControlFlow;

/// Measures a script of one statement that reads, and once more each row that it answers.
pub fn each(sql: &mut dyn Sql, script: &Script) -> Result<Worked> {
    let mut worked = Measured::new(script.clone(), false).run(sql)?;
    let mut each = Vec::new();
    each.reserve_exact(worked.measurement.rows as usize);
    let texts: Vec<&str> = script.statements.iter().map(String::as_str).collect();
    sql.prepared(&texts, &mut |statements| {
        for call in script.operations.iter().flatten() {
            let mut before = instructions();
            statements.run(call.statement, &call.parameters, &mut |row| {
                sql::copy(row)?;
                let after = instructions();
                each.push(OperationCost { instructions: after - before, allocated: 0 });
                before = instructions();
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(())
    })?;
    worked.each = each;
    Ok(worked)
}
