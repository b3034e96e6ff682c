//! Formats in which profiles are printed and saved.
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

use std::collections::BTreeMap;
use std::time::SystemTime;

use anyhow::{Context, Result};
use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Profile, SamplingInterval, Timestamp,
    WeightType,
};
use inferno::flamegraph::color::{BackgroundColor, BasicPalette};
use inferno::flamegraph::{Options, Palette, from_lines};
use serde::Serialize;

use super::executions::MAX_NESTED;
use super::flame::Flame;
use crate::report::number::{Factor, Fixed, Grouped};
use crate::terminal::{Terminal, json as json_of};

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
    let mut profile = Profile::new(&heading.title, SystemTime::UNIX_EPOCH.into(), interval);
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
