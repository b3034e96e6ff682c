//! Tables between bars, which are Markdown too: significant changes as canbench prints them,
//! and what benchmarks cost.

use std::cmp::Ordering;
use std::iter;

use super::change::{Change, Entry, Metric, Value};
use super::measure::Measured;
use super::number;
use crate::report::number::{Factor, Grouped};
use crate::terminal::safe_line;

/// Rows of a long table that are shown, from both ends.
const SHOWN: usize = 50;

/// The alignment of a column.
#[derive(Clone, Copy, Debug)]
pub enum Side {
    Left,
    Middle,
    Right,
}

/// The changes that are no noise, the largest regressions of instructions first.
pub fn significant(entries: &[Entry], noise: f64) -> Option<String> {
    let mut changed: Vec<(String, &Entry)> =
        entries.iter().filter_map(|entry| Some((status(entry, noise)?, entry))).collect();
    if changed.is_empty() {
        return None;
    }
    let percent = |entry: &Entry| entry.value(Metric::Instructions).percent();
    // What is new has no percentage and comes last.
    changed.sort_by(|(one_status, one), (other_status, other)| {
        let (before, after) =
            (percent(other).unwrap_or(f64::MIN), percent(one).unwrap_or(f64::MIN));
        let by_percent = before.partial_cmp(&after).unwrap_or(Ordering::Equal);
        by_percent
            .then_with(|| one_status.cmp(other_status))
            .then_with(|| one.name().cmp(&other.name()))
    });
    let columns = ["status", "name", "calls", "ins", "ins Δ%", "HI", "HI Δ%", "SMI", "SMI Δ%"];
    let rows = changed.iter().map(|(status, entry)| {
        let calls = entry.scope.as_ref().map(|_| number::short(entry.now.calls));
        let first = [status.clone(), safe_line(&entry.name()).into(), calls.unwrap_or_default()];
        let values = Metric::ALL.into_iter().flat_map(|metric| {
            let value = entry.value(metric);
            let change = value.percent().map(number::percent_change);
            [number::short(value.now), change.unwrap_or_default()]
        });
        first.into_iter().chain(values).collect()
    });
    let sides: Vec<Side> =
        [Side::Middle, Side::Left].into_iter().chain(iter::repeat_n(Side::Right, 7)).collect();
    let table = bars(&columns, &sides, &ends(rows.collect(), columns.len()));
    Some(format!(
        "{table}\nins = instructions, HI = heap_increase, SMI = stable_memory_increase, Δ% = \
         percent change\n"
    ))
}

/// `new`, `+` for regressions, `-` for improvements; nothing where all is noise.
pub fn status(entry: &Entry, noise: f64) -> Option<String> {
    if entry.is_new() {
        return Some("new".to_owned());
    }
    let signs = [(Change::Regressed, "+"), (Change::Improved, "-")]
        .into_iter()
        .filter(|(change, _)| entry.has(*change, noise))
        .map(|(_, sign)| sign);
    let signs: Vec<&str> = signs.collect();
    (!signs.is_empty()).then(|| signs.join("/"))
}

/// The first and the last rows, with a row between them for those left out.
fn ends(mut rows: Vec<Vec<String>>, columns: usize) -> Vec<Vec<String>> {
    let Some(left_out @ 1..) = rows.len().checked_sub(SHOWN) else {
        return rows;
    };
    let mut between = vec![String::new(); columns];
    "...".clone_into(&mut between[0]);
    let s = if left_out == 1 { "" } else { "s" };
    between[1] = format!("... {left_out} row{s} omitted ...");
    let first = SHOWN / 2;
    rows.splice(first..first + left_out, [between]);
    rows
}

/// The costs of the benchmarks by each set of rules. All runs have the same benchmarks.
pub fn costs(runs: &[(&str, &[Measured])]) -> String {
    let mut columns = vec!["name".to_owned()];
    let several = runs.len() > 1;
    for (rules, _) in runs {
        columns.push(if several { format!("ins {rules}") } else { "ins".to_owned() });
    }
    if several {
        columns.push("ratio".to_owned());
    }
    columns.extend(["HP", "SP"].map(str::to_owned));
    for (rules, _) in runs {
        columns.push(if several { format!("cycles {rules}") } else { "cycles".to_owned() });
    }
    let count = runs.first().map_or(0, |(_, measured)| measured.len());
    let rows = (0..count).map(|at| {
        let all: Vec<&Measured> = runs.iter().filter_map(|(_, run)| run.get(at)).collect();
        let mut row = vec![safe_line(&all[0].name).into_owned()];
        let instructions = |measured: &Measured| measured.bench.total.instructions;
        row.extend(all.iter().map(|measured| Grouped(instructions(measured)).to_string()));
        if let ([first, .., last], true) = (&all[..], several) {
            let (last, first) = (instructions(last), instructions(first));
            row.push(Factor(last as f64 / first as f64).to_string());
        }
        // Only newer rules have them.
        let pages = all.iter().find_map(|measured| measured.cost.touched);
        let pages = pages.map(|pages| [pages.heap, pages.stable].map(|it| Grouped(it).to_string()));
        row.extend(pages.unwrap_or_else(|| ["–", "–"].map(str::to_owned)));
        row.extend(all.iter().map(|measured| Grouped(measured.cost.cycles).to_string()));
        row
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let sides: Vec<Side> =
        iter::once(Side::Left).chain(iter::repeat_n(Side::Right, columns.len() - 1)).collect();
    bars(&columns, &sides, &rows)
}

/// The legend of [`costs`].
pub const COSTS: &str = "\
ins = instructions, HP and SP = Wasm pages of heap and stable memory first touched inside the benchmark,
cycles = cost of the whole message if the query is called as an update";

/// A value with its change, for a cell.
pub fn changed(value: Value) -> String {
    let change = value.percent().map_or("new".to_owned(), number::percent_change);
    format!("{} ({change})", Grouped(value.now))
}

/// A table between bars.
pub fn bars(columns: &[&str], sides: &[Side], rows: &[Vec<String>]) -> String {
    // Bytes, not letters: that is how canbench does it.
    let mut widths: Vec<usize> = columns.iter().map(|column| column.len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.len().max(*width);
        }
    }
    let row = |cells: &mut dyn Iterator<Item = &str>| {
        let cells = cells.zip(widths.iter().zip(sides)).map(|(cell, (&width, side))| match side {
            Side::Left => format!(" {cell:<width$} |"),
            Side::Middle => format!(" {cell:^width$} |"),
            Side::Right => format!(" {cell:>width$} |"),
        });
        format!("|{}\n", cells.collect::<String>())
    };
    let lines = widths.iter().map(|width| format!("{}|", "-".repeat(width + 2)));
    let mut table = row(&mut columns.iter().copied());
    table += &format!("|{}\n", lines.collect::<String>());
    for cells in rows {
        table += &row(&mut cells.iter().map(String::as_str));
    }
    table
}
