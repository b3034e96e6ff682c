//! `.import`: the rows of a CSV file, many to a message.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use stablebench_suite_sql::Value;

use super::session::{Bound, Session};
use super::text::name;
use crate::progress::Progress;

/// The rows of a message, and the bytes of their values, at most.
const ROWS: u64 = 20_000;
const BYTES: usize = 1 << 20;
/// A row after the last one. Where a quote has no end, it is a part of the last value instead.
const END: &str = "\u{1}end\u{1}";

/// Inserts the rows of a CSV file into a table. A new table gets its columns from the first line. The
/// file is read in parts. Returns the number of rows.
///
/// # Errors
///
/// If the file is no CSV, a row does not fit, or SQLite refuses one: the rows of earlier messages stay.
pub fn import(session: &mut Session, path: &Path, table: &str, progress: &Progress) -> Result<u64> {
    let shown = name(path);
    let file =
        stablebench_replica::files::open(path).with_context(|| format!("cannot read {shown}"))?;
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    let end = format!("\n{END}\n");
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(std::io::BufReader::new(file).chain(end.as_bytes()));
    let mut record = csv::StringRecord::new();
    let known = session.rows_of(
        "SELECT count(*) FROM pragma_table_info(?1)",
        vec![Value::Text(table.to_owned())],
    )?;
    let columns = match known.first().and_then(|row| row.first()) {
        Some(Value::Integer(columns)) if *columns > 0 => *columns as usize,
        _ => {
            reader.read_record(&mut record).with_context(|| shown.clone())?;
            if record.iter().eq([END]) {
                bail!("{shown} is empty");
            }
            closed(&record).with_context(|| shown.clone())?;
            let names: Vec<String> =
                record.iter().map(|column| format!("{} TEXT", quoted(column))).collect();
            let create = format!("CREATE TABLE {}({})", quoted(table), names.join(", "));
            send(session, &[create.as_str().into()])?;
            record.len()
        }
    };
    // One statement for all rows of a message takes a third of the time of one for each.
    let values: Vec<String> = (0..columns).map(|place| format!("value ->> {place}")).collect();
    let insert =
        format!("INSERT INTO {} SELECT {} FROM json_each(?1)", quoted(table), values.join(", "));
    let step = progress.step(&format!("importing {shown}"), "bytes", size);
    let (mut rows, mut waiting) = (0_u64, 0);
    let mut json = String::new();
    loop {
        reader
            .read_record(&mut record)
            .with_context(|| format!("{shown}, after row {}", rows + waiting))?;
        let more = !record.iter().eq([END]);
        if more {
            closed(&record).with_context(|| shown.clone())?;
            if record.len() != columns {
                let line = record.position().map_or(0, csv::Position::line);
                bail!(
                    "{shown}, line {line}: {} values, and the table has {columns} columns",
                    record.len()
                );
            }
            json.push(if waiting == 0 { '[' } else { ',' });
            json += &crate::terminal::json(&record.iter().collect::<Vec<_>>())?;
            waiting += 1;
        }
        if waiting > 0 && (!more || waiting == ROWS || json.len() > BYTES) {
            json.push(']');
            let parameters = vec![Value::Text(std::mem::take(&mut json))];
            send(session, &[Bound { text: insert.clone(), parameters }])
                .with_context(|| format!("{shown}, rows {} to {}", rows + 1, rows + waiting))?;
            rows += waiting;
            waiting = 0;
            step.at(reader.position().byte(), "");
        }
        if !more {
            break;
        }
    }
    step.done("");
    Ok(rows)
}

/// Fails if a quote in the row has no end.
fn closed(record: &csv::StringRecord) -> Result<()> {
    let line = record.position().map_or(0, csv::Position::line);
    match record.iter().next_back().is_some_and(|value| value.ends_with(&format!("\n{END}\n"))) {
        true => bail!("a quote in the row of line {line} has no end"),
        false => Ok(()),
    }
}

fn send(session: &mut Session, statements: &[Bound]) -> Result<()> {
    let executed = session.execute(statements)?;
    match executed.answers.iter().find_map(|answer| answer.error.as_ref()) {
        Some(failure) => bail!("{}", failure.message),
        None => Ok(()),
    }
}

/// Returns a name as an identifier of SQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
