//! What operations cost beside their instructions on average: the bytes that are written for a
//! byte, and the dearest single operation.

use stablebench_protocol::Engine;

use super::db_bench::{header, measured, names};
use super::grid::{Cell, Grid, Style};
use super::keep::written;
use super::section::columns;
use crate::report::number::Short;
use crate::results::{Measured, Results, Spread};
use crate::suites::db_bench::SECTION;

/// Both.
pub fn grids(results: &Results, style: Style) -> impl Iterator<Item = Grid> {
    [amplification(results, style), dearest(results, style)].into_iter().flatten()
}

/// A line a benchmark that has something to tell of one column or more.
fn grid(
    results: &Results,
    style: Style,
    tell: impl Fn(&str, &Measured) -> Option<String>,
) -> Option<Grid> {
    let keys = columns(results, SECTION);
    let mut rows = Vec::new();
    for name in names(results) {
        let told = |key: &&str| measured(results, name, key).and_then(|of| tell(name, of));
        let cells: Vec<Option<String>> = keys.iter().map(told).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| cell.map_or(Cell::Absent, Cell::Text));
            rows.push([Cell::text(name)].into_iter().chain(cells).collect());
        }
    }
    (!rows.is_empty()).then(|| Grid {
        title: String::new(),
        header: header(&keys, style),
        rows,
        notes: Vec::new(),
        lines: false,
    })
}

fn amplification(results: &Results, style: Style) -> Option<Grid> {
    let tell = |_: &str, measured: &Measured| {
        let (bytes, _, rows) = written(measured)?;
        Some(format!("{:.2}", bytes as f64 / rows as f64))
    };
    let mut notes = vec![
        "Bytes passed to stable_write for a byte of keys and values, over all messages of the \
         benchmark."
            .to_owned(),
    ];
    if has_leveldb(results) {
        notes.push(
            "leveldb: a row is written to the log, once more when the write buffer is full and \
             becomes a table, and again by each compaction that it is part of."
                .to_owned(),
        );
    }
    Some(Grid { title: "Write amplification".to_owned(), notes, ..grid(results, style, tell)? })
}

fn has_leveldb(results: &Results) -> bool {
    results.columns.iter().any(|column| column.engine == Engine::Leveldb)
}

fn dearest(results: &Results, style: Style) -> Option<Grid> {
    let tell = |name: &str, measured: &Measured| {
        // Of a batch, engines do more or less of their work when it ends.
        let each: &Spread = measured.each.as_ref().filter(|_| !name.contains("batch"))?;
        let mean = each.sum / measured.operations.max(1);
        Some(format!("{} / {} / {}", Short(mean), Short(each.p99), Short(each.max)))
    };
    let mut notes = vec![
        "Instructions of an operation by itself: the mean, what 99 % do not exceed, and the \
         dearest. Not of …batch, whose work is in part that of the transaction's end."
            .to_owned(),
    ];
    if has_leveldb(results) {
        notes.push(
            "leveldb: what is far above 99 % is a compaction, which is part of the call that \
             sets it off: a write that fills the write buffer, or a read after many that searched \
             one file in vain. Such a call, and not the mean, has to fit into a message."
                .to_owned(),
        );
    }
    Some(Grid {
        title: "Single operations: mean / p99 / maximum".to_owned(),
        notes,
        ..grid(results, style, tell)?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Outcome, sample};

    /// The sample's cases as those of benchmarks.
    fn results(names: [&str; 2]) -> Results {
        let full = sample::full();
        let case = full.cases.iter().find(|case| {
            case.measured().is_some_and(|of| of.each.is_some() && written(of).is_some())
        });
        let mut cases = Vec::new();
        for name in names {
            let mut case = case.cloned().unwrap();
            (case.section, case.name) = (SECTION.to_owned(), name.to_owned());
            cases.push(case);
        }
        Results { suite: "db-bench".to_owned(), ..sample::of(cases) }
    }

    #[test]
    fn what_was_written_and_told_is_shown_and_the_single_operations_of_batches_are_not() {
        let mut results = results(["fillseq", "fillseqbatch"]);
        let measured = results.cases[0].measured().unwrap().clone();
        let (bytes, _, rows) = written(&measured).unwrap();
        let grids: Vec<Grid> = grids(&results, Style::MARKDOWN).collect();
        assert_eq!(grids[0].rows.len(), 2);
        assert_eq!(grids[0].rows[0][1], Cell::Text(format!("{:.2}", bytes as f64 / rows as f64)));
        assert_eq!(grids[1].rows.len(), 1);
        let max = Short(measured.each.unwrap().max).to_string();
        assert!(matches!(&grids[1].rows[0][1], Cell::Text(text) if text.ends_with(&max)));

        for case in &mut results.cases {
            case.outcome = Outcome::Failed { reason: String::new() };
        }
        assert_eq!(super::grids(&results, Style::MARKDOWN).count(), 0);
    }
}
