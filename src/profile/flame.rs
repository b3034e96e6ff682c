//! The call tree of measured messages, by names.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use stablebench_replica::Profile;
use stablebench_replica::subnet::{Executed, Function as Ran};

use crate::report::number::Grouped;
use crate::terminal::safe_line;

/// The name of the frame for costs of heap pages, which no counter shows.
pub const HEAP_PAGES: &str = "[heap pages changed]";

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
    pub(super) fn is_execution(&self, name: &str) -> bool {
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
