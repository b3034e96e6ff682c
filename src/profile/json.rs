//! A profile as JSON. `docs/profiling.md` is the description for readers.

use anyhow::Result;
use serde::Serialize;

use super::{Flame, Heading};

/// Version of the format.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    stablebench: &'static str,
    title: &'a str,
    command: &'a str,
    unit: &'static str,
    messages: u64,
    /// What the counters counted.
    instructions: u64,
    /// What was charged for heap pages beside.
    heap_pages: u64,
    folded_calls: u64,
    functions: Vec<Function>,
    nodes: Vec<Node>,
}

#[derive(Serialize)]
struct Function {
    name: String,
    calls: u64,
    #[serde(rename = "self")]
    own: u64,
    total: u64,
}

#[derive(Serialize)]
struct Node {
    /// The place of the node that it is below.
    parent: Option<usize>,
    /// The place of its function.
    function: usize,
    calls: u64,
    #[serde(rename = "self")]
    own: u64,
    total: u64,
}

/// The profile as text.
pub fn json(flame: &Flame, heading: &Heading) -> Result<String> {
    let functions = flame.functions();
    let place = |name: usize| {
        functions.iter().position(|function| function.name == flame.names[name]).unwrap_or(0)
    };
    let places: Vec<usize> = (0..flame.names.len()).map(place).collect();
    let nodes = flame.nodes.iter().zip(flame.totals()).map(|(node, total)| Node {
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
            .map(|of| Function {
                name: of.name.clone(),
                calls: of.calls,
                own: of.own,
                total: of.total,
            })
            .collect(),
    };
    Ok(serde_json::to_string(&document)? + "\n")
}
