//! Single operations: percentiles and the dearest.

use super::grid::{Cell, Grid};
use crate::report::heading;
use crate::report::number::Grouped;
use crate::results::{Case, Results, Spread};

/// Fewer operations have no percentiles worth a line; results hold them all.
const FEWEST: u64 = 100;

/// The cases of many operations that were measured one by one.
pub fn grid(results: &Results) -> Option<Grid> {
    let measured = |case: &Case| {
        let measured = case.measured().filter(|measured| measured.operations >= FEWEST)?;
        measured.each.clone()
    };
    let rows: Vec<Vec<Cell>> = results
        .cases
        .iter()
        .filter_map(|case| Some(row(results, case, &measured(case)?)))
        .collect();
    let header = [
        "case",
        "setting",
        "operations",
        "min",
        "p50",
        "p90",
        "p99",
        "max",
        "the dearest",
        "allocating",
    ];
    (!rows.is_empty()).then(|| Grid {
        title: "Instructions of single operations".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows,
        notes: vec![
            "Each operation is asked for by itself in one transaction; its begin and commit are \
             not in it. The dearest: which of them, from 1, the row's id, and the nodes or pages \
             that it took. allocating: operations that took or gave back nodes or pages, and \
             their mean."
                .to_owned(),
        ],
        lines: false,
    })
}

fn row(results: &Results, case: &Case, spread: &Spread) -> Vec<Cell> {
    let worst = spread.worst;
    let took = match worst.allocated {
        0 => String::new(),
        units => format!(", {units:+} {}", unit(results, &case.column, units)),
    };
    let allocating = match spread.allocating {
        0 => Cell::Absent,
        count => {
            Cell::Text(format!("{} × {}", Grouped(count), Grouped(spread.allocating_sum / count)))
        }
    };
    let operations = case.measured().map_or(0, |measured| measured.operations);
    vec![
        Cell::Text(format!("{}: {}", case.section, case.name)),
        Cell::text(heading(&case.column)),
        Cell::text(Grouped(operations)),
        Cell::text(Grouped(spread.min)),
        Cell::text(Grouped(spread.p50)),
        Cell::text(Grouped(spread.p90)),
        Cell::text(Grouped(spread.p99)),
        Cell::text(Grouped(spread.max)),
        Cell::Text(format!("{} (id {}){took}", Grouped(worst.index + 1), Grouped(worst.id))),
        allocating,
    ]
}

/// What the engine takes of storage.
fn unit(results: &Results, column: &str, units: i64) -> &'static str {
    use stablebench_protocol::Engine;
    let column = results.columns.iter().find(|other| other.key == column);
    match (column.map(|column| column.engine), units.abs()) {
        (Some(Engine::Btree), 1) => "node",
        (Some(Engine::Btree), _) => "nodes",
        (_, 1) => "page",
        _ => "pages",
    }
}
