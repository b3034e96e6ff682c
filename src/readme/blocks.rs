//! Blocks of the suites' pages: columns of the tables that `stablebench report` prints, chosen and
//! joined by the names of their rows.
//!
//! ```text
//!   results.json   "dolt_commit…"          "dolt_branch…"                  the block
//!                     1 row  | 17           go to a branch, 1 row | 14       1 row  | 17 | 14
//!                    10 rows | 16    and    make a branch         | 12   →  10 rows | 16 | 15
//!                                           go to a branch, 10 …  | 15
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use crate::report::grid::{Cell, Grid, Style, cheapest};
use crate::report::grids;
use crate::results::Results;
use crate::suites::presentation;

/// A table of a page.
pub struct Block {
    /// The name in the page.
    pub name: &'static str,
    columns: &'static [Column],
    /// The labels of its rows. Without any, they are those of the first column's table.
    rows: &'static [&'static str],
}

/// A table of results.
#[derive(Clone, Copy)]
struct Table {
    /// The file of the results.
    results: &'static str,
    /// The beginning of the table's title.
    title: &'static str,
}

/// A column of a table.
#[derive(Clone, Copy)]
struct Column {
    table: Table,
    /// The heading in the table, in one line.
    heading: &'static str,
    /// The heading in the block, if it is another.
    shown: Option<&'static str>,
    /// The label of a row in the table, with `{}` for the label in the block.
    row: &'static str,
}

impl Table {
    const fn of(results: &'static str, title: &'static str) -> Self {
        Self { results, title }
    }

    const fn column(self, heading: &'static str) -> Column {
        Column { table: self, heading, shown: None, row: "{}" }
    }
}

impl Column {
    const fn shown(self, heading: &'static str) -> Self {
        Self { shown: Some(heading), ..self }
    }

    const fn row(self, row: &'static str) -> Self {
        Self { row, ..self }
    }
}

const DB_BENCH: Table =
    Table::of("suites/db-bench/results-leveldb.json", "The benchmarks of db_bench");
const KEYS: Table = Table::of("suites/keys/results.json", "Adding a link");
const SYSBENCH: Table = Table::of("suites/sysbench/results.json", "Averages of multipliers");
const DOLTLITE: Table =
    Table::of("suites/sysbench/results-doltlite.json", "Averages of multipliers");
const CUCKOO: Table =
    Table::of("suites/cuckoo/results.json", "Lookups of existing keys, sequential keys");
const VFS: Table = Table::of("suites/vfs/results.json", "sqlite-vfs / ic-rusqlite");
const COMMIT: Table = Table::of("suites/history/results.json", "dolt_commit");
const DIFF: Table = Table::of("suites/history/results.json", "The rows that differ");
const BRANCH: Table = Table::of("suites/history/results.json", "dolt_branch");
const CALLS: Table =
    Table::of("suites/calls/results.json", "A call, by the size of its argument: cycles");
const BUILDS: Table = Table::of("suites/builds/results.json", "Builds");
const COLLECTIONS: Table =
    Table::of("suites/collections/results.json", "Instructions on a map of 1 000 000");
const MIX: Table = Table::of("suites/mix/results.json", "A message: ");
const SQL: Table = Table::of("suites/sql/results.json", "tpcb-like: instructions of");
const SQL_COST: Table = Table::of("suites/sql/results.json", "tpcb-like: the cost of");

/// Every block.
pub static BLOCKS: [Block; 11] = [
    Block {
        name: "mix messages",
        columns: &[
            MIX.column("instructions"),
            MIX.column("compute"),
            MIX.column("heap pages"),
            MIX.column("stable pages"),
            MIX.column("cycles"),
        ],
        rows: &[],
    },
    Block {
        name: "sql transactions",
        columns: &[
            SQL.column("mean"),
            SQL.column("median"),
            SQL.column("95 %"),
            SQL.column("99 %"),
            SQL.column("most"),
            SQL_COST.column("cycles"),
        ],
        rows: &[],
    },
    Block {
        name: "db-bench operations",
        columns: &[
            DB_BENCH.column("SQLite WITH ROWID"),
            DB_BENCH.column("SQLite WITHOUT ROWID"),
            DB_BENCH.column("StableBTreeMap"),
            DB_BENCH.column("LevelDB none"),
        ],
        rows: &[
            "fillseq",
            "fillseqbatch",
            "fillrandom",
            "fillrandbatch",
            "overwrite",
            "readrandom",
            "readseq",
            "fillseq100K",
            "readseq (100K)",
            "readrand100K",
        ],
    },
    Block {
        name: "keys adding",
        columns: &[
            KEYS.column("integer"),
            KEYS.column("ULID"),
            KEYS.column("UUIDv4"),
            KEYS.column("UUIDv7"),
        ],
        rows: &[],
    },
    Block {
        name: "sysbench averages",
        columns: &[
            SYSBENCH
                .column("SQLite DELETE locking_mode=normal, average")
                .shown("SQLite DELETE<br>locking_mode=normal"),
            SYSBENCH.column("sqlite-vfs, average").shown("sqlite-vfs"),
            DOLTLITE.column("DoltLite, average").shown("DoltLite"),
            DOLTLITE.column("published").shown("published:<br>DoltLite, time"),
        ],
        rows: &[
            "INTEGER keys, in memory, reads",
            "INTEGER keys, in memory, writes",
            "INTEGER keys, on stable memory, reads",
            "INTEGER keys, on stable memory, writes",
            "INTEGER keys, on stable memory, each statement a transaction, reads",
            "INTEGER keys, on stable memory, each statement a transaction, writes",
        ],
    },
    Block {
        name: "cuckoo hits",
        columns: &[
            CUCKOO.column("cuckoo murmur"),
            CUCKOO.column("cuckoo identity"),
            CUCKOO.column("StableBTreeMap"),
            CUCKOO.column("SQLite PERSIST"),
            CUCKOO.column("floor: array"),
        ],
        rows: &[],
    },
    Block {
        name: "vfs ratios",
        columns: &[
            VFS.column("pages of 16384"),
            VFS.column("pages of 4096"),
            VFS.column("as they come"),
        ],
        rows: &[
            "transactions: insert 1, warm",
            "transactions: insert 1, cold",
            "transactions: insert 10 000 by 1",
            "transactions: update 1, warm",
            "reads: point read 1, warm",
            "reads: point read 1, cold",
            "reads: point read 1 000, warm",
            "reads: point read 1 000, cold",
            "reads: scan 10 000, warm",
            "reads: scan 10 000, cold",
        ],
    },
    Block {
        name: "history operations",
        columns: &[
            COMMIT.column("DoltLite").shown("commit"),
            DIFF.column("DoltLite")
                .shown("diff since the<br>last commit")
                .row("{} since the last commit"),
            BRANCH.column("DoltLite").shown("go to a branch").row("go to a branch, {} differ"),
            BRANCH
                .column("DoltLite")
                .shown("merge, nothing<br>new here")
                .row("merge {}, nothing new here"),
            BRANCH
                .column("DoltLite")
                .shown("merge, one<br>row new here")
                .row("merge {}, one row new here"),
        ],
        rows: &[],
    },
    Block {
        name: "calls cycles",
        columns: &[
            CALLS.column("another canister"),
            CALLS.column("itself"),
            CALLS.column("best-effort"),
        ],
        rows: &[],
    },
    Block {
        name: "builds",
        columns: &[
            BUILDS.column("instructions, mean"),
            BUILDS.column("module bytes"),
            BUILDS.column("install: compile, estimated"),
        ],
        rows: &[
            "default",
            "opt-level=s",
            "opt-level=z",
            "lto=thin",
            "lto=fat",
            "codegen-units=1",
            "overflow-checks=on",
            "wasm-opt=O3",
            "lto=fat,codegen-units=1",
            "lto=fat,codegen-units=1,wasm-opt=O3",
            "opt-level=z,lto=fat,codegen-units=1,wasm-opt=Oz",
        ],
    },
    Block {
        name: "collections",
        columns: &[
            COLLECTIONS.column("get"),
            COLLECTIONS.column("put"),
            COLLECTIONS.column("remove"),
            COLLECTIONS.column("generate"),
            COLLECTIONS.column("upgrade"),
        ],
        rows: &[
            "Rust, BTreeMap",
            "Rust, FxHashMap",
            "Motoko, core/Map",
            "Motoko, core/pure/Map",
            "Motoko, base/HashMap",
            "Rust, StableBTreeMap",
            "Rust, table in stable memory",
            "Motoko, table in a Region",
        ],
    },
];

impl Block {
    /// Returns the block's table in Markdown.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or lacks the table, a column or a row.
    pub fn render(&self, repository: &Path) -> Result<String> {
        let mut files: BTreeMap<&str, Vec<Grid>> = BTreeMap::new();
        for Column { table, .. } in self.columns {
            if !files.contains_key(table.results) {
                let results = Results::read(&repository.join(table.results))?;
                let grids = grids(presentation(&results), &results, Style::MARKDOWN)?;
                files.insert(table.results, grids);
            }
        }
        let of = |column: &'static Column| -> Result<(&'static Column, &Grid)> {
            let grids = files.get(column.table.results).map_or(&[][..], Vec::as_slice);
            Ok((column, column.table.find(grids)?))
        };
        let columns: Vec<_> = self.columns.iter().map(of).collect::<Result<_>>()?;
        Ok(join(&columns, self.rows)?.render(Style::MARKDOWN))
    }
}

impl Table {
    fn find<'g>(&self, grids: &'g [Grid]) -> Result<&'g Grid> {
        let found = only(grids.iter().filter(|grid| grid.title.starts_with(self.title)));
        found.with_context(|| format!("{} has not one table {:?}", self.results, self.title))
    }
}

impl Column {
    /// Returns the place of the column in its table.
    fn place(&self, grid: &Grid) -> Result<usize> {
        let is = |heading: &String| heading.replace("<br>", " ") == self.heading;
        let found = only(grid.header.iter().enumerate().filter(|(_, heading)| is(heading)));
        let (place, _) = found
            .with_context(|| format!("{} has not one column {:?}", grid.title, self.heading))?;
        Ok(place)
    }

    fn cell(&self, grid: &Grid, label: &str) -> Result<Cell> {
        let name = self.row.replace("{}", label);
        let found = only(grid.rows.iter().filter(|row| is_label(row, &name)));
        let row = found.with_context(|| format!("{} has not one row {name:?}", grid.title))?;
        Ok(row.get(self.place(grid)?).cloned().unwrap_or(Cell::Absent))
    }
}

fn is_label(row: &[Cell], name: &str) -> bool {
    matches!(row.first(), Some(Cell::Text(label)) if label == name)
}

/// Returns the only item; `None` if there are none or several.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

/// Returns one table of columns of several.
fn join(columns: &[(&Column, &Grid)], rows: &[&str]) -> Result<Grid> {
    let (_, first) = columns.first().context("a block has no columns")?;
    let all = first.rows.iter().filter_map(|row| row.first());
    let all: Vec<String> = all.map(|label| label.render(Style::MARKDOWN)).collect();
    let labels =
        if rows.is_empty() { all.iter().map(String::as_str).collect() } else { rows.to_vec() };
    let mut header = vec![first.header.first().cloned().unwrap_or_default()];
    for (column, grid) in columns {
        let own = grid.header.get(column.place(grid)?).cloned().unwrap_or_default();
        header.push(column.shown.map_or(own, str::to_owned));
    }
    let mut joined = Grid { header, ..Grid::default() };
    for label in labels {
        let cells = columns.iter().map(|(column, grid)| column.cell(grid, label));
        let cells: Vec<Cell> = cells.collect::<Result<_>>()?;
        joined.rows.push([Cell::text(label)].into_iter().chain(cells).collect());
    }
    if columns.iter().any(|(_, grid)| grid.marks_best()) {
        mark(&mut joined);
    }
    Ok(joined)
}

/// Marks the cheapest of each row again, since the cheapest of all columns may not be shown.
fn mark(grid: &mut Grid) {
    let floors: Vec<bool> =
        grid.header.iter().map(|heading| heading.starts_with("floor:")).collect();
    for row in &mut grid.rows {
        let rated = row.iter().zip(&floors).filter(|(_, floor)| !**floor);
        let least = cheapest(rated.filter_map(|(cell, _)| match cell {
            Cell::Number { value, .. } => Some(*value),
            _ => None,
        }));
        for (cell, floor) in row.iter_mut().zip(&floors) {
            if let Cell::Number { value, best, .. } = cell {
                *best = !floor && Some(*value) == least;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(title: &str, header: &[&str], rows: &[(&str, &[u64])]) -> Grid {
        let header = [""].iter().chain(header).map(|heading| (*heading).to_owned()).collect();
        let row = |(label, values): &(&str, &[u64])| {
            let least = values.iter().min();
            let cell = |value: &u64| Cell::Number {
                value: *value,
                base: None,
                best: Some(value) == least,
            };
            [Cell::text(label)].into_iter().chain(values.iter().map(cell)).collect()
        };
        Grid {
            title: title.to_owned(),
            header,
            rows: rows.iter().map(row).collect(),
            ..Grid::default()
        }
    }

    const ONE: Table = Table::of("results.json", "one");
    const TWO: Table = Table::of("results.json", "two");

    #[test]
    fn columns_of_several_tables_are_joined() {
        let one = grid("one table", &["a<br>wal", "b"], &[("1 row", &[5, 3]), ("2 rows", &[6, 9])]);
        let two = grid("two", &["c"], &[("2 rows, later", &[4]), ("1 row, later", &[7])]);
        let (a, c) = (ONE.column("a wal"), TWO.column("c").row("{}, later").shown("d"));
        let columns = [(&a, &one), (&c, &two)];
        let joined = join(&columns, &[]).unwrap();
        assert_eq!(joined.header, ["", "a<br>wal", "d"]);
        assert_eq!(joined.texts(), [["1 row", "5", "7"], ["2 rows", "6", "4"]]);
        assert_eq!(join(&columns, &["2 rows"]).unwrap().texts(), [["2 rows", "6", "4"]]);
        let error = join(&columns, &["3 rows"]).unwrap_err().to_string();
        assert_eq!(error, r#"one table has not one row "3 rows""#);
        assert!(ONE.find(std::slice::from_ref(&two)).is_err() && ONE.find(&[one]).is_ok());
    }

    #[test]
    fn the_cheapest_of_the_shown_columns_is_marked() {
        let all = grid("one", &["a", "b", "hidden", "floor:<br>array"], &[("row", &[5, 6, 3, 1])]);
        let columns = ["a", "b", "floor: array"].map(|heading| ONE.column(heading));
        let columns: Vec<_> = columns.iter().map(|column| (column, &all)).collect();
        let joined = join(&columns, &[]).unwrap();
        let shown = joined.rows[0].iter().map(|cell| cell.render(Style::MARKDOWN));
        assert_eq!(shown.collect::<Vec<_>>(), ["row", "**5**", "6", "1"]);
    }
}
