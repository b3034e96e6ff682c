//! The content of a database as SQL, copying it to an engine whose database is no file, and `.import`: the
//! rows of a CSV file, many to a message.
//!
//! ```text
//!   CREATE TABLE ─→ rows ─→ CREATE INDEX, TRIGGER, VIEW
//! ```
//!
//! The rows of a table come after those that they refer to, since a library with transactions of its
//! own checks foreign keys always. A value that does not fit a message is read and sent in pieces.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use stablebench_suite_sql::Value;

use super::print;
use super::session::{Bound, KEEP, Session, TooLarge};
use super::text::name;
use crate::progress::Progress;
use crate::report::number::Binary;
use crate::terminal::safe;

/// The rows of a table that are read at a time, at most, and the bytes of their values. Each reply has
/// a part of them, and each query for one executes the statement again.
const ROWS: usize = 10_000;
const BYTES: u64 = 4 << 20;
/// The rows of a message, and the bytes of their values, at most.
const MESSAGE_ROWS: usize = 1_000;
const MESSAGE_BYTES: usize = 1 << 20;
/// The bytes of a piece of a value, of which a canister keeps as many.
const PIECE: usize = 1 << 20;
/// The bytes of a value that is sent in pieces, at least, if its row does not fit a message.
const LARGE: usize = 64 << 10;

/// A part of a database.
#[derive(Clone, Debug)]
pub enum DumpPart {
    /// A statement that makes a table, an index, a view or a trigger.
    Statement(String),
    Rows {
        table: String,
        /// Empty for all columns.
        columns: Vec<String>,
        rows: Vec<Vec<Value>>,
    },
}

impl DumpPart {
    /// Returns the part as SQL.
    pub fn sql(&self) -> String {
        match self {
            Self::Statement(statement) => format!("{statement};\n"),
            Self::Rows { rows, .. } => {
                let insert = self.insert();
                let row = |row: &Vec<Value>| {
                    let values: Vec<String> = row.iter().map(literal).collect();
                    format!("{insert}{});\n", values.join(","))
                };
                rows.iter().map(row).collect()
            }
        }
    }

    /// The beginning of the statement that inserts a row.
    fn insert(&self) -> String {
        match self {
            Self::Statement(_) => String::new(),
            Self::Rows { table, columns, .. } => {
                let list = match columns.is_empty() {
                    true => String::new(),
                    false => format!("({})", columns.join(",")),
                };
                format!("INSERT INTO {}{list} VALUES(", quoted(table))
            }
        }
    }
}

/// Visits the parts of the tables whose names are like a pattern, in an order in which they can be
/// made.
///
/// # Errors
///
/// Those of the visit; if a table cannot be read.
pub fn parts(
    session: &mut Session,
    pattern: &str,
    visit: &mut dyn FnMut(DumpPart) -> Result<()>,
) -> Result<()> {
    // Tables behind virtual ones are made by these.
    const TABLES: &str = "SELECT s.name, s.sql FROM sqlite_schema AS s JOIN pragma_table_list AS l \
                          ON l.schema = 'main' AND l.name = s.name WHERE s.type = 'table' \
                          AND l.type <> 'shadow' AND s.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
                          AND s.name LIKE ?1 ORDER BY s.rowid";
    const OTHERS: &str = "SELECT sql FROM sqlite_schema WHERE type <> 'table' \
                          AND sql IS NOT NULL AND tbl_name LIKE ?1 ORDER BY rowid";
    const SEQUENCE: &str = "SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'";
    let like = || vec![Value::Text(pattern.to_owned())];
    let (mut names, mut indexes) = (Vec::new(), Vec::new());
    for row in session.rows_of(TABLES, like())? {
        let [Value::Text(name), Value::Text(sql)] = &row[..] else { continue };
        visit(DumpPart::Statement(sql.clone()))?;
        names.push(name.clone());
        if is_text_index(name, sql)? {
            indexes.push(name.clone());
        }
    }
    for name in referred_first(names, &references(session)?) {
        let rowid = indexes.contains(&name);
        rows(session, &name, rowid, visit).with_context(|| format!("the table {name}"))?;
    }
    if pattern == "%" && !session.rows(SEQUENCE)?.is_empty() {
        visit(DumpPart::Statement("DELETE FROM sqlite_sequence".to_owned()))?;
        rows(session, "sqlite_sequence", false, visit)?;
    }
    for row in session.rows_of(OTHERS, like())? {
        if let [Value::Text(sql)] = &row[..] {
            visit(DumpPart::Statement(sql.clone()))?;
        }
    }
    Ok(())
}

/// Returns `true` if a table is a full-text index, whose rows are found by their rowids.
///
/// # Errors
///
/// If the index keeps no content that could be read.
fn is_text_index(name: &str, sql: &str) -> Result<bool> {
    let sql: String = sql.to_lowercase().split_whitespace().collect();
    let is_index = sql.starts_with("createvirtualtable") && sql.contains("usingfts");
    if is_index && ["content=''", "content=\"\""].iter().any(|none| sql.contains(none)) {
        bail!("the table {name} keeps no content, so its rows cannot be read");
    }
    Ok(is_index)
}

/// Returns the tables that have foreign keys, in small letters, each with one to which it refers.
fn references(session: &mut Session) -> Result<Vec<(String, String)>> {
    const REFERENCES: &str = "SELECT lower(s.name), lower(f.\"table\") FROM sqlite_schema AS s \
                              JOIN pragma_foreign_key_list(s.name) AS f WHERE s.type = 'table'";
    let rows = session.rows(REFERENCES)?;
    let pair = |row: Vec<Value>| match <[Value; 2]>::try_from(row) {
        Ok([Value::Text(from), Value::Text(to)]) if from != to => Some((from, to)),
        _ => None,
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

/// Sorts tables so that each comes after those to which it refers; in a circle, one comes first.
fn referred_first(mut names: Vec<String>, references: &[(String, String)]) -> Vec<String> {
    let mut sorted = Vec::new();
    while !names.is_empty() {
        let waits = |name: &String| {
            let own = references.iter().filter(|(from, _)| *from == name.to_lowercase());
            own.into_iter().any(|(_, to)| names.iter().any(|name| name.to_lowercase() == *to))
        };
        let next = names.iter().position(|name| !waits(name)).unwrap_or(0);
        sorted.push(names.remove(next));
    }
    sorted
}

fn rows(
    session: &mut Session,
    table: &str,
    rowid: bool,
    visit: &mut dyn FnMut(DumpPart) -> Result<()>,
) -> Result<()> {
    // Neither generated columns nor hidden ones of virtual tables can be inserted.
    const COLUMNS: &str = "SELECT name, hidden FROM pragma_table_xinfo(?1) ORDER BY cid";
    let all = session.rows_of(COLUMNS, vec![Value::Text(table.to_owned())])?;
    let mut ordinary: Vec<String> = all
        .iter()
        .filter(|row| row.get(1) == Some(&Value::Integer(0)))
        .filter_map(|row| match row.first() {
            Some(Value::Text(name)) => Some(quoted(name)),
            _ => None,
        })
        .collect();
    if rowid {
        ordinary.insert(0, "rowid".to_owned());
    }
    let columns = if ordinary.len() == all.len() { Vec::new() } else { ordinary.clone() };
    let source = Source { columns: ordinary, table: quoted(table) };
    let (mut offset, mut limit) = (0, ROWS);
    while let Some(rows) = source.rows(session, limit, offset)? {
        offset += rows.len();
        limit = ROWS.min(2 * rows.len());
        visit(DumpPart::Rows { table: table.to_owned(), columns: columns.clone(), rows })?;
    }
    Ok(())
}

/// A table whose rows are read.
struct Source {
    columns: Vec<String>,
    table: String,
}

impl Source {
    /// Rows always in one order: an index that has the columns would give another one.
    fn select(&self, columns: &str, limit: usize, offset: usize) -> String {
        format!("SELECT {columns} FROM {} NOT INDEXED LIMIT {limit} OFFSET {offset}", self.table)
    }

    /// Returns some rows from an offset on; `None` after the last one.
    fn rows(
        &self,
        session: &mut Session,
        limit: usize,
        offset: usize,
    ) -> Result<Option<Vec<Vec<Value>>>> {
        let select = self.select(&self.columns.join(","), limit, offset).as_str().into();
        let mut answer = match session.first_rows(&select, BYTES) {
            Err(error) if error.is::<TooLarge>() && limit > 1 => {
                return self.rows(session, 1, offset);
            }
            Err(error) if error.is::<TooLarge>() => {
                return Ok(Some(vec![self.row(session, offset)?]));
            }
            answer => answer?,
        };
        if answer.rows.is_empty() && answer.digest.rows > 0 {
            answer = session.first_rows(&select, KEEP)?;
        }
        let mut rows = answer.rows;
        if rows.is_empty() && answer.digest.rows > 0 {
            bail!("the values of row {} have more than {}", offset + 1, Binary(KEEP));
        }
        for (row, column, _) in answer.cut {
            let (row, column) = (row as usize, column as usize);
            let bytes = self.bytes(session, offset + row, column)?;
            let value = &mut rows[row][column];
            *value = match value {
                Value::Blob(_) => Value::Blob(bytes),
                _ => text(session, bytes)?,
            };
        }
        Ok((!rows.is_empty()).then_some(rows))
    }

    /// Returns a row, each of whose values is read alone.
    fn row(&self, session: &mut Session, offset: usize) -> Result<Vec<Value>> {
        let mut row = Vec::new();
        for column in &self.columns {
            let alone = Self { columns: vec![column.clone()], table: self.table.clone() };
            row.extend(alone.rows(session, 1, offset)?.into_iter().flatten().flatten());
        }
        Ok(row)
    }

    /// Returns the bytes of a value, in the encoding of the database.
    fn bytes(&self, session: &mut Session, row: usize, column: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let start = bytes.len() + 1;
            let column = &self.columns[column];
            let piece = format!("substr(CAST({column} AS BLOB), {start}, {PIECE})");
            let rows = session.rows(&self.select(&piece, 1, row))?;
            let Some([Value::Blob(piece)]) = rows.first().map(Vec::as_slice) else {
                bail!("row {} cannot be read in pieces", row + 1);
            };
            bytes.extend(piece);
            if piece.len() < PIECE {
                return Ok(bytes);
            }
        }
    }
}

/// Decodes a text that was read as bytes.
fn text(session: &mut Session, bytes: Vec<u8>) -> Result<Value> {
    let rows = session.rows("PRAGMA encoding")?;
    let units = |unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
        Value::Text(String::from_utf16_lossy(&units))
    };
    Ok(match rows.first().map(Vec::as_slice) {
        Some([Value::Text(encoding)]) if encoding == "UTF-16le" => units(u16::from_le_bytes),
        Some([Value::Text(encoding)]) if encoding == "UTF-16be" => units(u16::from_be_bytes),
        _ => match String::from_utf8(bytes) {
            Ok(text) => Value::Text(text),
            Err(error) => Value::TextBytes(error.into_bytes()),
        },
    })
}

/// Copies a database to an empty one: as a file if both engines use files, else as SQL.
///
/// # Errors
///
/// If a statement is refused there.
pub fn copy(from: &mut Session, to: &mut Session) -> Result<()> {
    if let Ok(file) = from.file()
        && to.load(&file, |_| ()).is_ok()
    {
        return Ok(());
    }
    // Some libraries do not check them at all, others check them always.
    let checks = to.rows("PRAGMA foreign_keys")? == [[Value::Integer(1)]];
    execute(to, &["PRAGMA foreign_keys = OFF".into()])?;
    parts(from, "%", &mut |part| send(to, &part))?;
    for pragma in ["user_version", "application_id"] {
        if let Some([Value::Integer(number)]) =
            from.rows(&format!("PRAGMA {pragma}"))?.first().map(Vec::as_slice)
            && *number != 0
        {
            execute(to, &[format!("PRAGMA {pragma} = {number}").as_str().into()])?;
        }
    }
    match checks {
        true => execute(to, &["PRAGMA foreign_keys = ON".into()]),
        false => Ok(()),
    }
}

fn send(to: &mut Session, part: &DumpPart) -> Result<()> {
    let DumpPart::Rows { rows, .. } = part else {
        let DumpPart::Statement(statement) = part else { return Ok(()) };
        return execute(to, &[statement.as_str().into()]);
    };
    let width = rows.first().map_or(0, Vec::len);
    let places: Vec<String> = (1..=width).map(|place| format!("?{place}")).collect();
    let insert = format!("{}{})", part.insert(), places.join(","));
    let begin = || vec![Bound::from("BEGIN"), "PRAGMA defer_foreign_keys = ON".into()];
    let (mut statements, mut bytes) = (begin(), 0);
    for row in rows {
        let bound = Bound { text: insert.clone(), parameters: row.clone() };
        let size = bound.bytes() - insert.len();
        if size > MESSAGE_BYTES {
            statements.push("COMMIT".into());
            execute(to, &std::mem::replace(&mut statements, begin()))?;
            bytes = 0;
            send_in_pieces(to, &part.insert(), row)?;
            continue;
        }
        if statements.len() > begin().len()
            && (statements.len() > MESSAGE_ROWS || bytes + size > MESSAGE_BYTES)
        {
            statements.push("COMMIT".into());
            execute(to, &std::mem::replace(&mut statements, begin()))?;
            bytes = 0;
        }
        bytes += size;
        statements.push(bound);
    }
    statements.push("COMMIT".into());
    execute(to, &statements)
}

/// Inserts a row whose large values are collected in a table of pieces before.
fn send_in_pieces(to: &mut Session, insert: &str, row: &[Value]) -> Result<()> {
    // No table of the database has this name, which would hide it.
    const PIECES: &str = "temp.\"pieces of stablebench\"";
    let mut places = Vec::new();
    let mut parameters = Vec::new();
    execute(to, &[format!("CREATE TABLE {PIECES}(value, number, bytes)").as_str().into()])?;
    for (number, value) in row.iter().enumerate() {
        let (bytes, kind) = match value {
            Value::Text(text) => (text.as_bytes(), "TEXT"),
            Value::TextBytes(bytes) => (&bytes[..], "TEXT"),
            Value::Blob(bytes) => (&bytes[..], "BLOB"),
            _ => (&[][..], ""),
        };
        if bytes.len() < LARGE {
            parameters.push(value.clone());
            places.push(format!("?{}", parameters.len()));
            continue;
        }
        for (piece, bytes) in bytes.chunks(PIECE).enumerate() {
            let text = format!("INSERT INTO {PIECES} VALUES ({number}, {piece}, ?1)");
            execute(to, &[Bound { text, parameters: vec![Value::Blob(bytes.to_vec())] }])?;
        }
        places.push(format!(
            "(SELECT CAST(group_concat(bytes, '') AS {kind}) FROM (SELECT bytes FROM {PIECES} \
             WHERE value = {number} ORDER BY number))"
        ));
    }
    let insert = Bound { text: format!("{insert}{})", places.join(",")), parameters };
    execute(to, &[insert, format!("DROP TABLE {PIECES}").as_str().into()])
}

fn execute(to: &mut Session, statements: &[Bound]) -> Result<()> {
    let executed = to.execute(statements)?;
    match executed.answers.iter().find_map(|answer| answer.error.as_ref()) {
        Some(failure) => bail!("{}", failure.message),
        None => Ok(()),
    }
}

/// Returns a value as a literal of SQL.
fn literal(value: &Value) -> String {
    let text = |bytes: &[u8]| format!("CAST(x'{}' AS TEXT)", hex::encode(bytes));
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Real(number) if number.is_infinite() => {
            if *number > 0.0 { "1e999" } else { "-1e999" }.to_owned()
        }
        Value::Real(number) => format!("{number:?}"),
        // Letters that steer a terminal would be printed as others.
        Value::Text(value) if safe(value) != *value || value.contains('\0') => {
            text(value.as_bytes())
        }
        Value::Text(value) => format!("'{}'", value.replace('\'', "''")),
        Value::TextBytes(bytes) => text(bytes),
        other => print::text(other),
    }
}

/// The rows of a message, and the bytes of their values, at most.
const IMPORTED_ROWS: u64 = 20_000;
const IMPORTED_BYTES: usize = 1 << 20;
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
            execute(session, &[create.as_str().into()])?;
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
        if waiting > 0 && (!more || waiting == IMPORTED_ROWS || json.len() > IMPORTED_BYTES) {
            json.push(']');
            let parameters = vec![Value::Text(std::mem::take(&mut json))];
            execute(session, &[Bound { text: insert.clone(), parameters }])
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

/// Returns a name as an identifier of SQL.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_exact() {
        for (value, text) in [
            (Value::Real(0.1 + 0.2), "0.30000000000000004"),
            (Value::Real(2.0), "2.0"),
            (Value::Real(f64::NEG_INFINITY), "-1e999"),
            (Value::Text("it's".to_owned()), "'it''s'"),
            (Value::Text("\u{1b}".to_owned()), "CAST(x'1b' AS TEXT)"),
            (Value::Blob(vec![1, 255]), "x'01ff'"),
            (Value::Null, "NULL"),
        ] {
            assert_eq!(literal(&value), text);
        }
    }

    #[test]
    fn tables_come_after_those_to_which_they_refer() {
        let names = ["a", "B", "c", "d"].map(str::to_owned).to_vec();
        let references = [("a", "b"), ("b", "c"), ("d", "d2"), ("c", "a")]
            .map(|(from, to)| (from.to_owned(), to.to_owned()));
        assert_eq!(referred_first(names.clone(), &references[..3]), ["c", "B", "a", "d"]);
        assert_eq!(referred_first(names, &references).len(), 4, "a circle has an end");
    }

    #[test]
    fn rows_are_inserted_into_their_columns() {
        let part = DumpPart::Rows {
            table: "a b".to_owned(),
            columns: vec!["\"x\"".to_owned()],
            rows: vec![vec![Value::Integer(1)], vec![Value::Null]],
        };
        assert_eq!(
            part.sql(),
            "INSERT INTO \"a b\"(\"x\") VALUES(1);\nINSERT INTO \"a b\"(\"x\") VALUES(NULL);\n"
        );
    }
}
