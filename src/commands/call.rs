//! `stablebench call`: messages to a canister on the embedded replica, and all that follow from them.

mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use stablebench_replica::subnet::Executed;
use stablebench_replica::{
    Canister, Effort, Execution, FunctionCost, LoadError, Module, Principal, Reject, Rules,
    SystemCalls, files, saved_note,
};

use self::steps::{Action, CallStep, Steps};
use super::interface::{Interface, Method, Names};
use super::replica::embedded_with;
use super::subnet::{
    Chosen, Environment, EnvironmentArgs, Followed, InstallArgs, Loaded, Message, check_size,
    follow, load, save, upgrade,
};
use crate::canisters;
use crate::interrupt;
use crate::progress::{Output, Progress};
use crate::replica::ceiling::heap_warning;
use crate::replica::embedded::Embedded;
use crate::replica::options::ReplicaArgs;
use crate::replica::{PageCosts, cycles, inside};
use crate::report::grid::{Cell, Grid, Style};
use crate::report::number::Grouped;
use crate::saving::lock;
use crate::terminal::{Terminal, safe, safe_line};

#[derive(Debug, Args)]
pub struct CallArgs {
    /// The name of a canister as of `stablebench module`, or the path of a wasm file; with --state
    /// also the id of a saved canister.
    pub canister: String,
    #[command(flatten)]
    pub steps: Steps,
    /// Another canister on the same subnet, by name or path, or by NAME=PATH; may be repeated. Their
    /// ids are printed.
    #[arg(long, value_name = "CANISTER")]
    pub with: Vec<String>,
    #[command(flatten)]
    pub install: InstallArgs,
    /// Continue with the canisters that were saved in this file.
    #[arg(long)]
    pub state: Option<PathBuf>,
    /// Save all canisters of the subnet to this file afterwards.
    #[arg(long)]
    pub save: Option<PathBuf>,
    /// Show what canisters print, on standard error. Without it, only what a message printed that
    /// failed.
    #[arg(long)]
    pub show_canister_output: bool,
    #[command(flatten)]
    pub environment: EnvironmentArgs,
    #[command(flatten)]
    pub replica: ReplicaArgs,
}

/// The characters of a reply to one of several calls.
const MAX_REPLY: usize = 1_000;

/// A step that is checked.
enum Prepared {
    Call { step: CallStep, method: Method },
    Upgrade { name: String, module: Module, argument: Vec<u8> },
}

impl Prepared {
    /// The name of the step, and the number of its messages.
    fn label(&self) -> (String, u32) {
        match self {
            Self::Call { step, .. } => (step.action.to_string(), step.times.get()),
            Self::Upgrade { name, .. } => (format!("upgrade to {name}"), 1),
        }
    }
}

/// A message that was executed.
enum Done {
    Called(Box<Followed>),
    Upgraded(Box<Execution>),
}

impl Done {
    fn executions(&self) -> Vec<&Execution> {
        match self {
            Self::Called(followed) => {
                followed.call.executions.iter().map(|executed| &executed.execution).collect()
            }
            Self::Upgraded(execution) => vec![execution],
        }
    }

    /// The reply, which an upgrade has none of, or the reject.
    fn outcome(&self) -> Result<Option<&[u8]>, &Reject> {
        match self {
            Self::Called(followed) => {
                followed.call.response.as_ref().map(|reply| Some(reply.as_slice()))
            }
            Self::Upgraded(execution) => execution.outcome.as_ref().map(|_| None),
        }
    }
}

/// Takes the steps, and prints replies and costs.
pub fn call(args: &CallArgs, output: &Output) -> Result<()> {
    let progress = &output.progress;
    // Files are checked before anything is executed.
    let _lock = match &args.save {
        Some(path) => {
            files::replaceable(path).with_context(|| not_saved(path))?;
            check_replaced(path)?;
            Some(lock(path, "--save")?)
        }
        None => None,
    };
    let environment = Environment::read(&args.environment)?;
    let steps = args.steps.read()?;
    // A single message ends before optimising its module would.
    let effort = match steps.as_slice() {
        [CallStep { times: NonZeroU32::MIN, .. }] => Effort::Least,
        _ => Effort::Full,
    };
    let (replica, _) = embedded_with(effort, &args.replica, progress)?;
    let chosen = Chosen {
        canister: &args.canister,
        with: &args.with,
        state: args.state.as_deref(),
        install: &args.install,
    };
    let mut loaded = load(chosen, &environment, &replica, progress)?;
    let prepared = prepare(steps, &loaded, &replica, progress)?;
    let text = match prepared.as_slice() {
        [only] if only.label().1 == 1 => alone(only, &mut loaded, args, progress)?,
        several => all(several, &mut loaded, args, output)?,
    };
    if let Some(path) = &args.save {
        let step = progress.spinner(&format!("saving {}", path.display()));
        save(&mut loaded.subnet, &loaded.listed, path).with_context(|| not_saved(path))?;
        step.done("");
    }
    write!(std::io::stdout().lock(), "{text}")?;
    Ok(())
}

fn not_saved(path: &Path) -> String {
    format!("cannot save the canisters to {}", path.display())
}

/// Refuses to replace a file that contains something else than canisters.
fn check_replaced(path: &Path) -> Result<()> {
    match saved_note(path) {
        Ok(_) | Err(LoadError::Subnet | LoadError::Version { .. } | LoadError::Rules { .. }) => {
            Ok(())
        }
        Err(LoadError::Io(error)) if error.kind() == ErrorKind::NotFound => Ok(()),
        // A new file, as mktemp makes it.
        Err(_) if std::fs::metadata(path).is_ok_and(|metadata| metadata.len() == 0) => Ok(()),
        Err(error) => {
            bail!(
                "{} is replaced by saved canisters only ({error}); choose another --save",
                path.display()
            )
        }
    }
}

/// Finds methods and modules, and checks all arguments, before anything is executed.
fn prepare(
    steps: Vec<CallStep>,
    loaded: &Loaded,
    replica: &Embedded,
    progress: &Progress,
) -> Result<Vec<Prepared>> {
    let canister = loaded.subnet.canister(&loaded.callee).context("the canister is gone")?;
    let module = canister.module().context("the canister has no module")?.clone();
    let interface = loaded.interface.clone();
    if steps.is_empty() {
        bail!("name a method of the canister; {}", interface.methods("", &module));
    }
    let mut check = Check { loaded, canister, replica, progress, module, interface };
    let mut prepared = Vec::new();
    for step in steps {
        let place = step.place.clone();
        let checked = check.step(step, prepared.last());
        prepared.push(match place {
            Some(place) => checked.context(place)?,
            None => checked?,
        });
    }
    Ok(prepared)
}

/// The check of steps, with the module and the interface that the steps before leave.
struct Check<'a> {
    loaded: &'a Loaded,
    canister: &'a Canister,
    replica: &'a Embedded,
    progress: &'a Progress,
    module: Module,
    interface: Interface,
}

impl Check<'_> {
    fn step(&mut self, mut step: CallStep, before: Option<&Prepared>) -> Result<Prepared> {
        if let Some(argument) = &mut step.argument {
            argument.fill(&self.loaded.names)?;
        }
        match &step.action {
            Action::Call(name) => {
                let found = self.interface.method(name, &self.module);
                let method = match (found, before) {
                    // The word may be the argument of the method before it.
                    (
                        Err(error),
                        Some(Prepared::Call { step: CallStep { argument: None, .. }, method }),
                    ) if step.place.is_none() => {
                        return Err(error.context(format!(
                            "arguments are in parentheses, and texts in quotes: {} '({name})'",
                            method.name
                        )));
                    }
                    (found, _) => found?,
                };
                // The numbers between are of the same types.
                for number in [1, step.times.get()] {
                    let argument = method.encode(step.argument(number).as_ref())?;
                    check_size(&argument, self.module.rules(), &method.name)?;
                }
                Ok(Prepared::Call { step, method })
            }
            Action::Upgrade(name) => {
                let built = canisters::find(name, self.progress)?;
                let callee = self.loaded.callee;
                let module = self.replica.compile_for_subnet(callee, &built.wasm)?;
                self.interface = Interface::of(&module, self.canister, None, self.progress)?;
                let option = match step.place {
                    Some(_) => format!("--upgrade {name}"),
                    None => "--upgrade-args".to_owned(),
                };
                let argument = step.argument.as_ref();
                let argument = self.interface.constructor(argument, &built.name, &option)?;
                check_size(&argument, module.rules(), &format!("the upgrade to {}", built.name))?;
                self.module = module.clone();
                Ok(Prepared::Upgrade { name: built.name, module, argument })
            }
        }
    }
}

/// Sends a message of a step, and prints what canisters print.
fn execute(
    step: &Prepared,
    number: u32,
    loaded: &mut Loaded,
    args: &CallArgs,
    progress: &Progress,
) -> Result<Done> {
    let done = match step {
        Prepared::Call { step, method } => {
            let argument = method.encode(step.argument(number).as_ref())?;
            let message = Message {
                callee: loaded.callee,
                method: &method.name,
                argument: &argument,
                query: method.query,
            };
            let followed = follow(&mut loaded.subnet, message)?;
            followed.note(progress);
            let shows = args.show_canister_output || followed.call.response.is_err();
            note(&followed.call.executions, shows, &loaded.names, progress);
            Done::Called(Box::new(followed))
        }
        Prepared::Upgrade { module, argument, .. } => {
            let execution = upgrade(&mut loaded.subnet, &loaded.callee, module, argument)?;
            if args.show_canister_output || execution.outcome.is_err() {
                printed(&loaded.names, &loaded.callee, &execution, progress);
            }
            Done::Upgraded(Box::new(execution))
        }
    };
    Ok(done)
}

/// Takes the only step, and returns its reply and its cost in detail.
fn alone(
    step: &Prepared,
    loaded: &mut Loaded,
    args: &CallArgs,
    progress: &Progress,
) -> Result<String> {
    let rules = args.replica.rules();
    if let Some(canister) = loaded.subnet.canister_mut(&loaded.callee) {
        canister.report_calls(true);
    }
    let calling = progress.spinner(&format!("calling {}", step.label().0));
    let done = execute(step, 1, loaded, args, progress)?;
    calling.done("");
    let mut costs = match &done {
        Done::Called(followed) => {
            let first = followed.first(&step.label().0);
            let mut costs = first.map_or_else(String::new, |it| describe(&it.execution, rules));
            if followed.call.executions.len() > 1 {
                costs += &format!("\n{}", tree(&followed.call.executions).trim_end());
            }
            costs
        }
        Done::Upgraded(execution) => describe(execution, rules) + &functions(execution),
    };
    let reply = done.outcome().map_err(|reject| anyhow!("{reject}\n{costs}"))?;
    let reply = match step {
        Prepared::Call { method, .. } => method
            .decode(reply.unwrap_or_default())
            .map_err(|error| anyhow!("{error:#}\n{costs}"))?,
        Prepared::Upgrade { name, module, .. } => {
            costs += &format!(
                "\nthe network also charges for compiling the module: about {} instructions",
                Grouped(module.compiling().get())
            );
            format!("upgraded to {name}")
        }
    };
    Ok(format!("{}\n{costs}\n", safe(&reply)))
}

/// Takes several steps, and returns their replies and a table of their costs.
fn all(
    prepared: &[Prepared],
    loaded: &mut Loaded,
    args: &CallArgs,
    output: &Output,
) -> Result<String> {
    let messages = prepared.iter().map(|step| u64::from(step.label().1)).sum();
    let bar = output.progress.step("calling", "messages", messages);
    interrupt::listen()?;
    let (mut rows, mut replies, mut failed) = (Vec::new(), String::new(), None);
    for step in prepared {
        let (label, times) = step.label();
        let mut row = StepCost::new(&label);
        let mut last = None;
        for number in 1..=times {
            if let Err(interrupted) = interrupt::check() {
                failed = Some(interrupted.into());
                break;
            }
            let done = execute(step, number, loaded, args, &output.progress)?;
            row.add(done.executions());
            bar.advance();
            if let Err(reject) = done.outcome() {
                failed = Some(match times {
                    1 => anyhow!("{}: {reject}", safe_line(&label)),
                    _ => anyhow!("{}, call {number}: {reject}", safe_line(&label)),
                });
                break;
            }
            last = Some(done);
        }
        rows.push(row);
        if failed.is_some() {
            break;
        }
        if let (Prepared::Call { method, .. }, Some(done)) = (step, last)
            && let Ok(Some(reply)) = done.outcome()
        {
            match method.decode(reply) {
                Ok(reply) => {
                    let reply = short_reply(&reply);
                    replies += &format!("{}: {}\n", safe_line(&label), safe(&reply));
                }
                Err(error) => {
                    failed = Some(error.context(safe_line(&label).into_owned()));
                    break;
                }
            }
        }
    }
    bar.done("");
    let text = format!("{replies}{}", sequence(&rows, args.replica.rules(), output.terminal));
    let Some(error) = failed else { return Ok(text) };
    write!(std::io::stdout().lock(), "{text}")?;
    Err(error)
}

fn short_reply(reply: &str) -> String {
    match reply.char_indices().nth(MAX_REPLY) {
        Some((end, _)) => format!("{}…", &reply[..end]),
        None => reply.to_owned(),
    }
}

/// Notes warnings about executions, and with `shows` what they have printed.
pub fn note(executions: &[Executed], shows: bool, names: &Names, progress: &Progress) {
    for Executed { canister, function, execution, .. } in executions {
        if shows {
            printed(names, canister, execution, progress);
        }
        if let Some(warning) = heap_warning(&function.to_string(), &inside(execution)) {
            progress.note(&warning);
        }
    }
}

fn printed(names: &Names, id: &Principal, execution: &Execution, progress: &Progress) {
    let name = names.of(id);
    if execution.printed_before > 0 {
        let more = Grouped(execution.printed_before);
        progress.note(&format!("{name} printed {more} texts before these"));
    }
    for line in execution.printed.iter().flat_map(|text| text.lines()) {
        progress.note(&format!("{name}: {}", safe_line(line)));
    }
}

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
fn describe(execution: &Execution, rules: Rules) -> String {
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
fn functions(execution: &Execution) -> String {
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
struct StepCost {
    label: String,
    times: u64,
    sum: CostSum,
    /// The largest charge of a message.
    largest: u64,
    /// The functions of an upgrade.
    functions: Vec<(&'static str, CostSum)>,
}

/// A sum of costs.
#[derive(Clone, Copy, Debug, Default)]
struct CostSum {
    instructions: u64,
    charge: u64,
    heap: u64,
    stable: u64,
    /// Absent for a function of an upgrade.
    cycles: Option<u64>,
}

impl CostSum {
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
        let mut cells = vec![Cell::Text(short_label(label)), optional(times)];
        cells.push(number(self.instructions));
        cells.extend(columns.charge.then(|| number(self.charge)));
        cells.extend(columns.largest.then(|| optional(largest)));
        cells.extend([number(self.heap), number(self.stable), optional(self.cycles)]);
        cells
    }
}

impl StepCost {
    fn new(label: &str) -> Self {
        Self { label: label.to_owned(), ..Self::default() }
    }

    /// Adds a message with all executions that it caused.
    fn add(&mut self, executions: Vec<&Execution>) {
        let mut sum = CostSum::default();
        for execution in executions {
            sum.add(CostSum::of(execution));
            let functions = execution.functions.iter();
            self.functions.extend(functions.map(|it| (it.name, CostSum::of_function(it))));
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
fn sequence(rows: &[StepCost], rules: Rules, terminal: Terminal) -> String {
    let columns = Columns {
        charge: rows.iter().any(|row| row.sum.charge != row.sum.instructions),
        largest: rows.iter().any(|row| row.times > 1),
    };
    let mut header = vec!["step", "messages", "instructions"];
    header.extend(columns.charge.then_some("charge"));
    header.extend(columns.largest.then_some("largest"));
    header.extend(["heap pages", "stable pages", "cycles"]);
    let (mut total, mut times) = (CostSum::default(), 0);
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

fn short_label(label: &str) -> String {
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
