//! The call tree of measured messages, by names, and the formats in which it is printed and saved.
//!
//! ```text
//!   table     the most expensive functions
//!   folded    a line per stack: function;function;function instructions
//!   svg       a flame graph, or that of a difference
//!   json      everything; docs/profiling.md describes it
//!   firefox   a sample per stack, weighted with its instructions
//! ```
//!
//! The Firefox Profiler's time is instructions too, a nanosecond each: stacks follow each other in
//! the order of the tree, not in the order in which they ran, which no profile records.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Profile as FirefoxProfile,
    SamplingInterval, Timestamp, WeightType,
};
use inferno::flamegraph::color::{BackgroundColor, BasicPalette};
use inferno::flamegraph::{Options, Palette, from_lines};
use serde::Serialize;
use stablebench_replica::Profile;
use stablebench_replica::subnet::{Executed, Function as Ran};

use crate::report::number::{Factor, Fixed, Grouped};
use crate::terminal::{Terminal, json as json_of, safe_line};

/// The name of the frame for costs of heap pages, which no counter shows.
pub const HEAP_PAGES: &str = "[heap pages changed]";

/// The deepest execution with a frame below that of its cause.
pub const MAX_NESTED: u64 = 100;

/// The call tree of one or more messages, by names.
#[derive(Clone, Debug, Default)]
pub struct Flame {
    /// Names of functions.
    pub(super) names: Vec<String>,
    /// Stacks of functions, each after its parent.
    pub(super) nodes: Vec<Node>,
    /// The number of messages that were joined.
    pub messages: u64,
    /// The instructions of their counters.
    pub instructions: u64,
    /// The instructions that were charged for heap pages in addition.
    pub heap_pages: u64,
    /// Calls that have no stack of their own.
    pub folded: u64,
    /// Executions that ran functions, but have no profile.
    pub without_functions: u64,
    /// Executions whose frame is not below that of their cause.
    pub too_deep: u64,
    /// Names of executions.
    executions: BTreeSet<usize>,
    places: BTreeMap<String, usize>,
    children: BTreeMap<(Option<usize>, usize), usize>,
}

/// A stack of functions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// The stack below the function on top.
    pub(super) parent: Option<usize>,
    /// The index of the name of the function on top.
    pub(super) name: usize,
    pub(super) calls: u64,
    /// The instructions of the function on top itself.
    pub(super) own: u64,
}

/// The instructions of a function in all stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub calls: u64,
    /// Its own instructions.
    pub own: u64,
    /// Including its callees; recursive calls are counted once.
    pub total: u64,
}

impl Flame {
    /// Adds the profile of a message.
    ///
    /// # Errors
    ///
    /// If its instructions do not add up.
    pub fn add(&mut self, profile: &Profile) -> Result<()> {
        self.add_below(None, profile)
    }

    /// Adds an execution with a frame of its own below `parent`, and returns the node of the frame.
    ///
    /// # Errors
    ///
    /// If its instructions do not add up.
    pub fn add_execution(&mut self, parent: Option<usize>, executed: &Executed) -> Result<usize> {
        let Executed { function, execution, .. } = executed;
        let name = executed.to_string();
        let node = self.count(parent, &safe_line(&name), 1, 0);
        self.executions.insert(self.nodes[node].name);
        if let Some(profile) = &execution.profile {
            self.add_below(Some(node), profile)?;
            return Ok(node);
        }
        // All instructions are in the frame itself.
        let (counted, charge) = (execution.instructions.get(), execution.charge.get());
        self.nodes[node].own += charge.max(counted);
        self.messages += 1;
        self.instructions += counted;
        self.heap_pages += charge.saturating_sub(counted);
        if charge > 0 && !matches!(function, Ran::Management(_)) {
            self.without_functions += 1;
        }
        Ok(node)
    }

    fn add_below(&mut self, bottom: Option<usize>, profile: &Profile) -> Result<()> {
        let mut places: Vec<usize> = Vec::with_capacity(profile.nodes.len());
        let mut sum = profile.heap_pages.get();
        for node in &profile.nodes {
            let parent = node.parent.and_then(|parent| places.get(parent).copied()).or(bottom);
            let name = profile.frames.get(node.frame).map_or("", |frame| &frame.name);
            // The names are from the module.
            let name = &safe_line(name);
            let own = node.instructions.get();
            sum += own;
            places.push(self.count(parent, name, node.calls, own));
        }
        let pages = profile.heap_pages.get();
        if pages > 0 {
            self.count(bottom, HEAP_PAGES, 1, pages);
        }
        self.messages += 1;
        self.instructions += profile.instructions.get();
        self.heap_pages += pages;
        self.folded += profile.folded;
        let all = profile.instructions.get() + pages;
        if sum != all {
            bail!("the profile contains {sum} instructions, not {all}: this is a bug");
        }
        Ok(())
    }

    /// Returns all instructions: of the counters, and for heap pages.
    pub fn all(&self) -> u64 {
        self.instructions + self.heap_pages
    }

    /// Returns `true` if a frame with this name is an execution.
    fn is_execution(&self, name: &str) -> bool {
        self.places.get(name).is_some_and(|name| self.executions.contains(name))
    }

    /// Returns the number of messages in words, if there is more than one.
    pub fn counted(&self) -> Option<String> {
        let unit = if self.executions.is_empty() { "messages" } else { "executions" };
        (self.messages != 1).then(|| format!("{} {unit}", Grouped(self.messages)))
    }

    fn count(&mut self, parent: Option<usize>, name: &str, calls: u64, own: u64) -> usize {
        let name = match self.places.get(name) {
            Some(place) => *place,
            None => {
                self.names.push(name.to_owned());
                self.places.insert(name.to_owned(), self.names.len() - 1);
                self.names.len() - 1
            }
        };
        let nodes = &mut self.nodes;
        let place = *self.children.entry((parent, name)).or_insert_with(|| {
            nodes.push(Node { parent, name, calls: 0, own: 0 });
            nodes.len() - 1
        });
        nodes[place].calls += calls;
        nodes[place].own += own;
        place
    }

    /// Returns the instructions of each stack including its callees.
    pub(super) fn totals(&self) -> Vec<u64> {
        let mut totals: Vec<u64> = self.nodes.iter().map(|node| node.own).collect();
        for (place, node) in self.nodes.iter().enumerate().rev() {
            if let Some(parent) = node.parent {
                totals[parent] += totals[place];
            }
        }
        totals
    }

    /// Returns the functions of a stack, the one on top first.
    pub(super) fn stack(&self, place: usize) -> impl Iterator<Item = usize> {
        let up = |place: &usize| self.nodes[*place].parent;
        std::iter::successors(Some(place), up).map(|place| self.nodes[place].name)
    }

    /// Returns the functions, the one with the most own instructions first.
    pub fn functions(&self) -> Vec<Function> {
        let empty = |name: &String| Function { name: name.clone(), calls: 0, own: 0, total: 0 };
        let mut functions: Vec<Function> = self.names.iter().map(empty).collect();
        for (place, (node, total)) in self.nodes.iter().zip(self.totals()).enumerate() {
            let function = &mut functions[node.name];
            function.calls += node.calls;
            function.own += node.own;
            // The stack of the outer call includes this one.
            if self.stack(place).skip(1).all(|name| name != node.name) {
                function.total += total;
            }
        }
        functions.retain(|function| function.total > 0 || function.calls > 0);
        functions.sort_by(|one, other| {
            (other.own, other.total, &one.name).cmp(&(one.own, one.total, &other.name))
        });
        functions
    }

    /// Returns the own instructions of each stack by its text.
    pub(super) fn lines(&self) -> BTreeMap<String, u64> {
        let mut lines = BTreeMap::new();
        for (place, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.own > 0) {
            let mut stack: Vec<String> =
                self.stack(place).map(|name| frame(&self.names[name])).collect();
            stack.reverse();
            *lines.entry(stack.join(";")).or_default() += node.own;
        }
        lines
    }
}

/// Returns a name for the text of a stack, without a semicolon, which would end it, or a number
/// after a space, which would be read as instructions.
fn frame(name: &str) -> String {
    let name = name.replace(';', ":");
    match name.rsplit_once(' ') {
        Some((front, number)) if number.parse::<f64>().is_ok() => format!("{front}_{number}"),
        _ => name,
    }
}

/// The heading of a picture or a file.
#[derive(Clone, Debug)]
pub struct Heading {
    /// The name of the profiled case or call.
    pub title: String,
    /// The command that repeats the profile.
    pub command: String,
}

/// The maximum number of functions in the table.
const MAX_FUNCTIONS: usize = 15;
/// The characters before a name, and the minimum of a name.
const BEFORE: usize = 59;
const LEAST: usize = 20;

/// Returns a line for each function, and one for the others. Names are cut off at the terminal's
/// width.
pub fn table(flame: &Flame, terminal: Terminal) -> String {
    let name = |name: &str| -> String {
        let room =
            terminal.width.map_or(usize::MAX, |width| usize::from(width).saturating_sub(BEFORE));
        match name.chars().count() > room.max(LEAST) {
            true => name.chars().take(room.max(LEAST) - 1).chain(['…']).collect(),
            false => name.to_owned(),
        }
    };
    let all = flame.all();
    let mut functions = flame.functions();
    // The call tree shows executions.
    functions.retain(|function| function.own > 0 || !flame.is_execution(&function.name));
    let mut text =
        format!("{:>7} {:>17} {:>17} {:>13}  function\n", "share", "self", "with callees", "calls");
    for function in functions.iter().take(MAX_FUNCTIONS) {
        let share = function.own as f64 / all.max(1) as f64 * 100.0;
        text += &format!(
            "{:>5} % {:>17} {:>17} {:>13}  {}\n",
            Fixed(share, 1),
            Grouped(function.own),
            Grouped(function.total),
            Grouped(function.calls),
            name(&function.name)
        );
    }
    let rest = &functions[functions.len().min(MAX_FUNCTIONS)..];
    let own: u64 = rest.iter().map(|function| function.own).sum();
    if own > 0 {
        let share = own as f64 / all.max(1) as f64 * 100.0;
        text += &format!(
            "{:>5} % {:>17} {:>17} {:>13}  {} others\n",
            Fixed(share, 1),
            Grouped(own),
            "",
            "",
            Grouped(rest.iter().filter(|function| function.own > 0).count() as u64)
        );
    }
    text += &format!("{:>5} % {:>17}\n", Fixed(100.0, 1), Grouped(all));
    if flame.folded > 0 {
        let folded = format!(
            "{} calls were too deep, or had too many kinds of stacks, to be recorded: they are part \
             of their callers",
            Grouped(flame.folded)
        );
        text += &(terminal.wrapped(&folded) + "\n");
    }
    if flame.without_functions > 0 {
        let whole = format!(
            "executions without functions, because too many stacks were recorded before them: {}",
            Grouped(flame.without_functions)
        );
        text += &(terminal.wrapped(&whole) + "\n");
    }
    if flame.too_deep > 0 {
        let beside = format!(
            "executions with a frame beside that of their cause, because that is nested {MAX_NESTED} \
             deep: {}",
            Grouped(flame.too_deep)
        );
        text += &(terminal.wrapped(&beside) + "\n");
    }
    text
}

/// Returns the lines, sorted.
pub fn folded(flame: &Flame) -> String {
    flame.lines().iter().map(|(stack, own)| format!("{stack} {own}\n")).collect()
}

/// Returns the lines of two profiles: `stack before after`.
pub fn difference(before: &Flame, after: &Flame) -> String {
    let mut both: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (side, flame) in [before, after].into_iter().enumerate() {
        for (stack, own) in flame.lines() {
            both.entry(stack).or_default()[side] += own;
        }
    }
    both.iter().map(|(stack, [before, after])| format!("{stack} {before} {after}\n")).collect()
}

/// The maximum number of characters in a line above a picture.
const MAX_LINE: usize = 165;

/// Returns the flame graph.
pub fn svg(flame: &Flame, heading: &Heading) -> Result<String> {
    let mut counted = format!("{} instructions", Grouped(flame.instructions));
    if let Some(messages) = flame.counted() {
        counted += &format!(" in {messages}");
    }
    if flame.heap_pages > 0 {
        counted += &format!(" and {} for heap pages", Grouped(flame.heap_pages));
    }
    draw(&folded(flame), heading, &counted)
}

/// Returns the flame graph of the second profile with its differences from the first: red for
/// more, blue for less. Stacks of the first profile alone are absent.
pub fn svg_of_difference(before: &Flame, after: &Flame, heading: &Heading) -> Result<String> {
    let (one, other) = (before.all(), after.all());
    let factor = Factor(other as f64 / one as f64);
    let counted =
        format!("{} instructions before, {} after: {factor}", Grouped(one), Grouped(other));
    draw(&difference(before, after), heading, &counted)
}

fn draw(lines: &str, heading: &Heading, counted: &str) -> Result<String> {
    let mut options = Options::default();
    options.title = heading.title.clone();
    options.subtitle = Some(short(format!("{counted} · {}", heading.command)));
    options.count_name = "instructions".to_owned();
    // A function has the same colour in all pictures.
    options.colors = Palette::Basic(BasicPalette::Hot);
    options.bgcolors = Some(BackgroundColor::Grey);
    options.deterministic = true;
    let mut picture = Vec::new();
    from_lines(&mut options, lines.lines(), &mut picture)
        .context("the flame graph cannot be drawn")?;
    String::from_utf8(picture).context("the flame graph is not UTF-8")
}

/// Cuts a line at the width of the picture.
fn short(line: String) -> String {
    match line.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The version of the format.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    stablebench: &'static str,
    title: &'a str,
    command: &'a str,
    unit: &'static str,
    messages: u64,
    /// The instructions of the counters.
    instructions: u64,
    /// The instructions that were charged for heap pages in addition.
    heap_pages: u64,
    folded_calls: u64,
    functions: Vec<JsonFunction>,
    nodes: Vec<JsonNode>,
}

#[derive(Serialize)]
struct JsonFunction {
    name: String,
    calls: u64,
    #[serde(rename = "self")]
    own: u64,
    total: u64,
}

#[derive(Serialize)]
struct JsonNode {
    /// The index of the parent node.
    parent: Option<usize>,
    /// The index of the function.
    function: usize,
    calls: u64,
    #[serde(rename = "self")]
    own: u64,
    total: u64,
}

/// Returns the profile as JSON.
pub fn json(flame: &Flame, heading: &Heading) -> Result<String> {
    let functions = flame.functions();
    let place = |name: usize| {
        functions.iter().position(|function| function.name == flame.names[name]).unwrap_or(0)
    };
    let places: Vec<usize> = (0..flame.names.len()).map(place).collect();
    let nodes = flame.nodes.iter().zip(flame.totals()).map(|(node, total)| JsonNode {
        parent: node.parent,
        function: places[node.name],
        calls: node.calls,
        own: node.own,
        total,
    });
    let document = Document {
        format: FORMAT,
        stablebench: env!("CARGO_PKG_VERSION"),
        title: &heading.title,
        command: &heading.command,
        unit: "instructions",
        messages: flame.messages,
        instructions: flame.instructions,
        heap_pages: flame.heap_pages,
        folded_calls: flame.folded,
        nodes: nodes.collect(),
        functions: functions
            .iter()
            .map(|of| JsonFunction {
                name: of.name.clone(),
                calls: of.calls,
                own: of.own,
                total: of.total,
            })
            .collect(),
    };
    Ok(json_of(&document)? + "\n")
}

/// Returns the profile as JSON of the Firefox Profiler.
pub fn firefox(flame: &Flame, heading: &Heading) -> Result<String> {
    let interval = SamplingInterval::from_nanos(1);
    // Equal profiles give equal files.
    let mut profile = FirefoxProfile::new(&heading.title, SystemTime::UNIX_EPOCH.into(), interval);
    let begin = Timestamp::from_nanos_since_reference(0);
    let process = profile.add_process("stablebench", 0, begin);
    let thread = profile.add_thread(process, 0, begin, true);
    profile.set_thread_name(thread, &heading.command);
    profile.set_thread_samples_weight_type(thread, WeightType::Samples);
    let mut time = 0;
    for (place, node) in flame.nodes.iter().enumerate() {
        let mut names: Vec<usize> = flame.stack(place).collect();
        names.reverse();
        let frames: Vec<FrameInfo> = names
            .into_iter()
            .map(|name| FrameInfo {
                frame: Frame::Label(profile.intern_string(&flame.names[name])),
                category_pair: CategoryHandle::OTHER.into(),
                flags: FrameFlags::empty(),
            })
            .collect();
        let stack = profile.intern_stack_frames(thread, frames.into_iter());
        let mut left = node.own;
        while left > 0 {
            // A weight has 32 bits.
            let weight = i32::try_from(left).unwrap_or(i32::MAX);
            let at = Timestamp::from_nanos_since_reference(time);
            profile.add_sample(thread, at, stack, CpuDelta::ZERO, weight);
            left -= u64::from(weight.unsigned_abs());
            time += u64::from(weight.unsigned_abs());
        }
    }
    Ok(json_of(&profile)? + "\n")
}
