//! The storage of a database, and its b-trees from SQLite's `dbstat`, which has a row per page.
//!
//! ```text
//! path      "/" is the root, "/00a/" its child 10, "/00a/000/" a child of that, and
//!           "/00a/000+000000" an overflow page
//! pagetype  internal, leaf, overflow
//! ncell     entries; an internal page has one child more
//! ```

use super::{Sql, first_number};
use stablebench_protocol::{Inspected, Result, StoredObject};
use stablebench_workload::sql::Value;
use std::ops::ControlFlow;

/// Returns the storage of the whole database.
///
/// # Errors
///
/// The engine's.
pub fn inspect(sql: &mut dyn Sql) -> Result<Inspected> {
    let settings = sql.settings()?;
    Ok(Inspected {
        stored_bytes: settings.page_count * u64::from(settings.page_size),
        virtual_bytes: sql.virtual_bytes(),
        cache_bytes: sql.cache_bytes(),
        sqlite: Some(settings),
        objects: objects(sql)?,
    })
}

const TREES: &str = "\
    SELECT dbstat.name, coalesce(sqlite_schema.tbl_name, dbstat.name), \
           coalesce(sqlite_schema.type = 'index', 0), \
           sum(pgsize), count(*), sum(pagetype = 'internal'), sum(pagetype = 'overflow'), \
           sum(CASE pagetype WHEN 'internal' THEN ncell + 1 ELSE 0 END), \
           sum(CASE pagetype WHEN 'leaf' THEN ncell ELSE 0 END), \
           sum(payload), sum(unused), \
           max(CASE pagetype WHEN 'overflow' THEN 0 ELSE length(path) - length(replace(path, '/', '')) END) \
    FROM dbstat LEFT JOIN sqlite_schema ON sqlite_schema.name = dbstat.name \
    GROUP BY dbstat.name ORDER BY 2, 3, 1";

/// The b-trees; none if the engine was built without `dbstat`.
fn objects(sql: &mut dyn Sql) -> Result<Vec<StoredObject>> {
    const KNOWN: &str = "SELECT 1 FROM pragma_module_list WHERE name = 'dbstat'";
    if first_number(sql, KNOWN, &[]).ok().flatten().is_none() {
        return Ok(Vec::new());
    }
    let mut objects = Vec::new();
    sql.prepared(&[TREES], &mut |statements| {
        statements.run(0, &[], &mut |row| {
            let text = |column| -> Result<String> {
                Ok(match row.copy(column)? {
                    Value::Text(text) => text,
                    _ => String::new(),
                })
            };
            let number = |column| -> Result<u64> {
                Ok(match row.copy(column)? {
                    Value::Integer(number) => u64::try_from(number).unwrap_or(0),
                    _ => 0,
                })
            };
            objects.push(StoredObject {
                name: text(0)?,
                table: text(1)?,
                index: number(2)? != 0,
                bytes: number(3)?,
                pages: number(4)?,
                internal_pages: number(5)?,
                overflow_pages: number(6)?,
                children: number(7)?,
                leaf_entries: number(8)?,
                payload_bytes: number(9)?,
                unused_bytes: number(10)?,
                depth: number(11)?,
            });
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(())
    })?;
    Ok(objects)
}
