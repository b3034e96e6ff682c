//! The costs of steps, as text.

use stablebench_replica::{Execution, FunctionCost, Rules, SystemCalls};

use crate::replica::PageCosts;
use crate::replica::executed::{cycles, inside};
use crate::report::grid::{Cell, Grid, Style};
use crate::report::number::Grouped;
use crate::terminal::{Terminal, safe_line};

/// The characters of a step in the table.
const MAX_LABEL: usize = 28;

/// Describes the part of the charge that is for pages.
fn pages(pages: &PageCosts) -> String {
    let PageCosts { heap, stable, touched } = pages;
    let mut text = format!(
        "of the charge, heap pages {} and stable pages {}\n",
        Grouped(*heap),
        Grouped(*stable)
    );
    if let Some(touched) = touched {
        text += &format!(
            "wasm pages: heap {} touched, {} written; stable memory {} touched, {} written\n",
            Grouped(touched.heap),
            Grouped(touched.heap_written),
            Grouped(touched.stable),
            Grouped(touched.stable_written),
        );
    }
    text
}

/// Describes the cost of an execution.
pub fn describe(execution: &Execution, rules: Rules) -> String {
    let inside = inside(execution);
    let memory = execution.memory;
    let mut text = format!(
        "instructions {}, charge {}, cycles {}, rules {rules}\n\
         {}4 KiB pages: heap {} changed, stable memory {} accessed, {} written\n\
         heap {} and stable memory {} wasm pages",
        Grouped(inside.instructions),
        Grouped(inside.charge),
        Grouped(cycles(execution)),
        inside.pages.as_ref().map(pages).unwrap_or_default(),
        Grouped(inside.heap_pages_changed),
        Grouped(inside.stable_pages_accessed),
        Grouped(inside.stable_pages_written),
        Grouped(memory.heap.get()),
        Grouped(memory.stable.get()),
    );
    for (name, count) in execution.system_calls.iter().flat_map(SystemCalls::iter) {
        text += &format!("\n{name:<22} {:>11} calls", Grouped(count.calls).to_string());
        if count.bytes.get() > 0 {
            text += &format!(" {:>15} bytes", Grouped(count.bytes.get()).to_string());
        }
    }
    text
}

/// Lists the functions of an upgrade with their costs, each in a line of its own.
pub fn functions(execution: &Execution) -> String {
    let line = |function: &FunctionCost| {
        format!(
            "\n{:<22} instructions {}, charge {}",
            function.name,
            Grouped(function.instructions.get()),
            Grouped(function.charge.get())
        )
    };
    execution.functions.iter().map(line).collect()
}

/// The cost of a step: of all its messages, and all that they caused.
#[derive(Clone, Debug, Default)]
pub struct Row {
    label: String,
    times: u64,
    sum: Sum,
    /// The largest charge of a message.
    largest: u64,
    /// The functions of an upgrade.
    functions: Vec<(&'static str, Sum)>,
}

/// A sum of costs.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    instructions: u64,
    charge: u64,
    heap: u64,
    stable: u64,
    /// Absent for a function of an upgrade.
    cycles: Option<u64>,
}

impl Sum {
    fn add(&mut self, more: Self) {
        self.instructions = self.instructions.saturating_add(more.instructions);
        self.charge = self.charge.saturating_add(more.charge);
        self.heap = self.heap.saturating_add(more.heap);
        self.stable = self.stable.saturating_add(more.stable);
        self.cycles = match (self.cycles, more.cycles) {
            (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
            (sum, more) => sum.or(more),
        };
    }

    fn of(execution: &Execution) -> Self {
        Self {
            instructions: execution.instructions.get(),
            charge: execution.charge.get(),
            heap: execution.pages.heap.get(),
            stable: execution.pages.stable.get(),
            cycles: Some(cycles(execution)),
        }
    }

    fn of_function(function: &FunctionCost) -> Self {
        Self {
            instructions: function.instructions.get(),
            charge: function.charge.get(),
            heap: function.pages.heap.get(),
            stable: function.pages.stable.get(),
            cycles: None,
        }
    }

    /// The cells of a row in these columns.
    fn cells(
        &self,
        label: &str,
        times: Option<u64>,
        largest: Option<u64>,
        columns: Columns,
    ) -> Vec<Cell> {
        let number = |number: u64| Cell::text(Grouped(number));
        let optional = |value: Option<u64>| value.map_or(Cell::Absent, number);
        let mut cells = vec![Cell::Text(shortened(label)), optional(times)];
        cells.push(number(self.instructions));
        cells.extend(columns.charge.then(|| number(self.charge)));
        cells.extend(columns.largest.then(|| optional(largest)));
        cells.extend([number(self.heap), number(self.stable), optional(self.cycles)]);
        cells
    }
}

impl Row {
    pub fn new(label: &str) -> Self {
        Self { label: label.to_owned(), ..Self::default() }
    }

    /// Adds a message with all executions that it caused.
    pub fn add(&mut self, executions: Vec<&Execution>) {
        let mut sum = Sum::default();
        for execution in executions {
            sum.add(Sum::of(execution));
            let functions = execution.functions.iter();
            self.functions.extend(functions.map(|it| (it.name, Sum::of_function(it))));
        }
        self.times += 1;
        self.largest = self.largest.max(sum.charge);
        self.sum.add(sum);
    }
}

/// The columns that a table has only if they differ from others.
#[derive(Clone, Copy)]
struct Columns {
    /// The charge, which is the counter under most rules.
    charge: bool,
    /// The largest charge of a message.
    largest: bool,
}

/// Returns a table of steps with their sum.
pub fn sequence(rows: &[Row], rules: Rules, terminal: Terminal) -> String {
    let columns = Columns {
        charge: rows.iter().any(|row| row.sum.charge != row.sum.instructions),
        largest: rows.iter().any(|row| row.times > 1),
    };
    let mut header = vec!["step", "messages", "instructions"];
    header.extend(columns.charge.then_some("charge"));
    header.extend(columns.largest.then_some("largest"));
    header.extend(["heap pages", "stable pages", "cycles"]);
    let (mut total, mut times) = (Sum::default(), 0);
    let mut cells = Vec::new();
    for row in rows {
        total.add(row.sum);
        times += row.times;
        cells.push(row.sum.cells(&row.label, Some(row.times), Some(row.largest), columns));
        for (name, sum) in &row.functions {
            cells.push(sum.cells(&format!("- {name}"), None, None, columns));
        }
    }
    cells.push(total.cells("all", Some(times), None, columns));
    let largest = if columns.largest { " largest: of one message." } else { "" };
    let grid = Grid {
        header: header.into_iter().map(str::to_owned).collect(),
        rows: cells,
        notes: vec![format!(
            "Of all messages of a step and of what they caused, by the rules {rules}. heap pages, stable \
             pages: their part.{largest} The network also charges upgrades for compiling."
        )],
        ..Grid::default()
    };
    grid.render(Style::of(terminal))
}

fn shortened(label: &str) -> String {
    let label = safe_line(label);
    match label.char_indices().nth(MAX_LABEL) {
        Some((end, _)) => format!("{}…", &label[..end]),
        None => label.into_owned(),
    }
}
