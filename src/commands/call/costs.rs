//! The costs of steps as text, and the executions of a call that involves several as a tree.

use std::collections::{BTreeMap, BTreeSet};

use stablebench_replica::subnet::Executed;
use stablebench_replica::{Execution, FunctionCost, Rules, SystemCalls};

use crate::replica::{PageCosts, cycles, inside};
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

/// Executions that are shown.
const MAX_SHOWN: usize = 100;

/// Lists executions with their costs, each below the one that caused it.
pub fn tree(executions: &[Executed]) -> String {
    let mut children: BTreeMap<Option<u64>, Vec<&Executed>> = BTreeMap::new();
    let mut listed = BTreeSet::new();
    for execution in executions {
        // The cause of a callback may have been executed before this call, or not be kept.
        let cause = execution.cause.filter(|cause| listed.contains(cause));
        listed.insert(execution.number);
        children.entry(cause).or_default().push(execution);
    }
    let mut lines = Vec::new();
    let mut open: Vec<(&Executed, String, &str)> = Vec::new();
    let roots = children.get(&None).into_iter().flatten();
    open.extend(roots.rev().map(|root| (*root, String::new(), "")));
    while let Some((execution, indent, branch)) = open.pop() {
        let name = execution.to_string();
        lines.push((format!("{indent}{branch}{}", safe_line(&name)), execution));
        let indent = match branch {
            "" => indent,
            "├─ " => format!("{indent}│  "),
            _ => format!("{indent}   "),
        };
        let caused = children.get(&Some(execution.number)).into_iter().flatten();
        for (position, child) in caused.rev().enumerate() {
            let branch = if position == 0 { "└─ " } else { "├─ " };
            open.push((child, indent.clone(), branch));
        }
    }
    let hidden = lines.len().saturating_sub(MAX_SHOWN);
    lines.truncate(MAX_SHOWN);
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let mut text = format!(
        "{:width$}  {:>13}  {:>13}  {:>9}  {:>13}  {:>13}\n",
        "executions", "instructions", "charge", "pages", "cycles", "cycles sent"
    );
    for (name, executed) in lines {
        let execution = &executed.execution;
        text += &format!(
            "{name:width$}  {:>13}  {:>13}  {:>9}  {:>13}  {:>13}\n",
            Grouped(execution.instructions.get()).to_string(),
            Grouped(execution.charge.get()).to_string(),
            Grouped(wasm_pages(executed)).to_string(),
            Grouped(u64::try_from(execution.cycles.get()).unwrap_or(u64::MAX)).to_string(),
            signed(executed.cycles_sent),
        );
    }
    if hidden > 0 {
        text += &format!("… and {hidden} more\n");
    }
    text
}

/// Wasm pages touched, or under older rules 4 KiB pages changed and written.
fn wasm_pages(executed: &Executed) -> u64 {
    let execution = &executed.execution;
    match execution.pages.touched {
        Some(touched) => (touched.heap + touched.stable).get(),
        None => (execution.memory.heap_changed + execution.memory.stable_written).get(),
    }
}

/// Cycles that came back are negative.
fn signed(cycles: i128) -> String {
    let amount = Grouped(u64::try_from(cycles.unsigned_abs()).unwrap_or(u64::MAX));
    if cycles < 0 { format!("-{amount}") } else { amount.to_string() }
}
