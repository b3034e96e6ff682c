//! Where instructions go: profiles of messages, joined, and what is made of them.
//!
//! ```text
//!   profiler.rs   the embedded replica, which profiles measured messages
//!     └──→ Flame  their call tree, by names
//!            ├─ folded.rs    a line a stack
//!            ├─ svg.rs       a flame graph, and that of a difference
//!            ├─ json.rs      all of it
//!            ├─ firefox.rs   for the Firefox Profiler
//!            └─ table.rs     the dearest functions
//! ```

mod firefox;
mod folded;
mod json;
mod profiler;
mod svg;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use stablebench_replica::Profile;

use crate::terminal::safe_line;

pub use firefox::firefox;
pub use folded::{difference, folded};
pub use json::json;
pub use profiler::{Profiler, check};
pub use svg::{svg, svg_of_difference};
pub use table::table;

/// The name of what heap pages cost, which no counter shows.
pub const HEAP_PAGES: &str = "[heap pages changed]";

/// What stands above a picture, and in files.
#[derive(Clone, Debug)]
pub struct Heading {
    /// What was profiled.
    pub title: String,
    /// The command that repeats it.
    pub command: String,
}

/// The call tree of one or more messages, by names.
#[derive(Clone, Debug, Default)]
pub struct Flame {
    /// Names of functions.
    names: Vec<String>,
    /// Stacks of functions, each after the one that it is on.
    nodes: Vec<Node>,
    /// Messages that were joined.
    pub messages: u64,
    /// What their counters counted.
    pub instructions: u64,
    /// What they were charged for heap pages beside.
    pub heap_pages: u64,
    /// Calls that have no stack of their own.
    pub folded: u64,
    places: BTreeMap<String, usize>,
    children: BTreeMap<(Option<usize>, usize), usize>,
}

/// A stack of functions.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// The stack that it is on.
    parent: Option<usize>,
    /// The function on top, by its place among the names.
    name: usize,
    calls: u64,
    /// Instructions of the function on top.
    own: u64,
}

/// What a function took, in all stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    pub calls: u64,
    /// Its own instructions.
    pub own: u64,
    /// With those of what it called; once where it called itself.
    pub total: u64,
}

impl Flame {
    /// Joins the profile of one more message.
    ///
    /// # Errors
    ///
    /// If it does not hold what it says.
    pub fn add(&mut self, profile: &Profile) -> Result<()> {
        let mut places: Vec<usize> = Vec::with_capacity(profile.nodes.len());
        for node in &profile.nodes {
            let parent = node.parent.and_then(|parent| places.get(parent).copied());
            let name = profile.frames.get(node.frame).map_or("", |frame| &frame.name);
            // The module says what its functions are called.
            let name = &safe_line(name);
            let own = node.instructions.get();
            places.push(self.count(parent, name, node.calls, own));
        }
        let pages = profile.heap_pages.get();
        if pages > 0 {
            self.count(None, HEAP_PAGES, 1, pages);
        }
        self.messages += 1;
        self.instructions += profile.instructions.get();
        self.heap_pages += pages;
        self.folded += profile.folded;
        let sum: u64 = self.nodes.iter().map(|node| node.own).sum();
        if sum != self.all() {
            bail!("the profile holds {sum} instructions, not {}: this is a bug", self.all());
        }
        Ok(())
    }

    /// All instructions: of the counters, and for heap pages.
    pub fn all(&self) -> u64 {
        self.instructions + self.heap_pages
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

    /// What each stack took with what was called on it.
    fn totals(&self) -> Vec<u64> {
        let mut totals: Vec<u64> = self.nodes.iter().map(|node| node.own).collect();
        for (place, node) in self.nodes.iter().enumerate().rev() {
            if let Some(parent) = node.parent {
                totals[parent] += totals[place];
            }
        }
        totals
    }

    /// The functions of a stack, the one on top first.
    fn stack(&self, place: usize) -> impl Iterator<Item = usize> {
        let up = |place: &usize| self.nodes[*place].parent;
        std::iter::successors(Some(place), up).map(|place| self.nodes[place].name)
    }

    /// The functions, the one that took most itself first.
    pub fn functions(&self) -> Vec<Function> {
        let empty = |name: &String| Function { name: name.clone(), calls: 0, own: 0, total: 0 };
        let mut functions: Vec<Function> = self.names.iter().map(empty).collect();
        for (place, (node, total)) in self.nodes.iter().zip(self.totals()).enumerate() {
            let function = &mut functions[node.name];
            function.calls += node.calls;
            function.own += node.own;
            // The stacks below it hold this one.
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

    /// Each stack that took instructions itself, as text, with those.
    fn lines(&self) -> BTreeMap<String, u64> {
        let mut lines = BTreeMap::new();
        for (place, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.own > 0) {
            let mut stack: Vec<String> =
                self.stack(place).map(|name| folded::frame(&self.names[name])).collect();
            stack.reverse();
            *lines.entry(stack.join(";")).or_default() += node.own;
        }
        lines
    }
}
