//! Profiles: instructions of a message by function.
//!
//! A message is profiled by executing it in a form of the module that attributes charges to
//! functions (`instrument/instrumented.rs`). It does and counts the same as the normal form. The
//! result is a call tree:
//!
//! ```text
//!   canister_update add         its own instructions, its calls
//!     ├─ serve::add
//!     │    ├─ [heap page]                   charges for touching pages
//!     │    ├─ ic0.stable64_write
//!     │    │    └─ [stable page]
//!     │    └─ …
//!     └─ ic0.msg_reply
//! ```
//!
//! The instructions of all nodes together equal the counter, which is checked before a
//! [`Profile`] is returned.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use wasmparser::{ExternalKind, Parser, Payload, TypeRef};
use wasmtime::{AsContextMut, Global, Instance, Memory, Store, Val};

use crate::backtrace::function_names;
use crate::fault::HostError;
use crate::instrument::profiled::{
    HEAP_PAGE_FRAME, NODE, OS_PAGES_FRAME, STABLE_PAGE_FRAME, export, offset,
};
use crate::system_api::functions::MODULE;
use crate::text::steers;
use crate::units::Instructions;

/// The part of a message that is profiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Span {
    /// The whole message.
    #[default]
    Message,
    /// The part between two of the canister's own readings of `performance_counter`. If the
    /// message fails after the first reading, the profile ends there.
    Between {
        /// Value of the first reading.
        from: Instructions,
        /// Value of the second reading.
        to: Instructions,
    },
}

/// Instructions of a message by function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The functions that ran.
    pub frames: Vec<Frame>,
    /// The call tree: a node for each stack of functions, parents before their children.
    pub nodes: Vec<Node>,
    /// Instructions of all nodes: the difference of the counter over the span.
    pub instructions: Instructions,
    /// Charges made at the end of the message for changed heap pages, under rules that have them.
    /// The counter never includes them. 0 for a span that is not the whole message.
    pub heap_pages: Instructions,
    /// Calls without a node, because there were too many nodes or the stack was too deep. Their
    /// instructions are attributed to their callers.
    pub folded: u64,
}

/// A function, or a kind of charge that no function makes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The kind of the frame.
    pub kind: FrameKind,
    /// Its demangled name. Names are not unique.
    pub name: String,
}

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameKind {
    /// A function of the module, by index.
    Function(u32),
    /// A call of the System API.
    SystemCall,
    /// Charges for stable pages: OS pages at their first write, or Wasm pages at their first touch
    /// or write, depending on the rules.
    StablePages,
    /// Charges for Wasm pages of the heap at their first touch or write.
    HeapPages,
}

/// A node of the call tree: a stack of functions that was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Index of the caller's node; `None` if the replica called.
    pub parent: Option<usize>,
    /// Index of the called frame.
    pub frame: usize,
    /// Number of calls within the span.
    pub calls: u64,
    /// Its own instructions, without those of its callees.
    pub instructions: Instructions,
}

/// A message could not be profiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The host has no memory left.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The canister did not read this value from its counter.
    #[error("the canister did not read {0} from its instruction counter")]
    NotRead(Instructions),
    /// The call tree does not add up. This must not happen.
    #[error("the profile adds up to {profiled} instructions, but the counter is {counted}")]
    Sum {
        /// Instructions of all nodes.
        profiled: u64,
        /// Instructions by the counter.
        counted: u64,
    },
}

impl From<ProfileError> for HostError {
    fn from(error: ProfileError) -> Self {
        match error {
            ProfileError::Host(error) => error,
            error => Self::Profile(error.to_string()),
        }
    }
}

/// The parts of the profiled form that the host uses.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    memory: Memory,
    current: Global,
    mark: Global,
    end: Global,
    all_folded: Global,
}

/// Instructions and calls of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct NodeCounts {
    instructions: u64,
    calls: u64,
}

impl Tree {
    /// Finds the parts of an instance.
    ///
    /// # Errors
    ///
    /// If the instance is not of the profiled form.
    pub fn of<T: 'static>(instance: &Instance, store: &mut Store<T>) -> wasmtime::Result<Self> {
        let missing = |name: &str| wasmtime::Error::msg(format!("{name} is not exported"));
        let memory =
            instance.get_memory(&mut *store, export::TREE).ok_or_else(|| missing(export::TREE))?;
        let mut global =
            |name: &str| instance.get_global(&mut *store, name).ok_or_else(|| missing(name));
        Ok(Self {
            memory,
            current: global(export::CURRENT)?,
            mark: global(export::MARK)?,
            end: global(export::END)?,
            all_folded: global(export::ALL_FOLDED)?,
        })
    }

    /// Adjusts the mark because the counter changes without a charge.
    ///
    /// # Errors
    ///
    /// Never, unless the instance is not of the profiled form.
    pub fn counter_moved(
        &self,
        mut store: impl AsContextMut,
        from: i64,
        to: i64,
    ) -> wasmtime::Result<()> {
        let mark = self.mark.get(&mut store).i64().unwrap_or(0);
        // Charges are differences of the two, so wrapping around is harmless.
        self.mark.set(store, Val::I64(mark.wrapping_add(to.wrapping_sub(from))))
    }

    fn address(global: Global, store: impl AsContextMut) -> u32 {
        global.get(store).i32().unwrap_or(0).cast_unsigned()
    }

    /// The counts of each node with `counter` left of the slice, and the index of the current
    /// node.
    fn read(&self, mut store: impl AsContextMut, counter: i64) -> (Vec<NodeCounts>, usize) {
        let mark = self.mark.get(&mut store).i64().unwrap_or(0);
        let current = (Self::address(self.current, &mut store) / NODE) as usize;
        let end = Self::address(self.end, &mut store);
        let bytes = self.memory.data(&store);
        let of = |at| NodeCounts {
            instructions: number(bytes, at, offset::INSTRUCTIONS),
            calls: number(bytes, at, offset::CALLS),
        };
        let mut spent: Vec<NodeCounts> = (0..end).step_by(NODE as usize).map(of).collect();
        if let Some(NodeCounts { instructions, .. }) = spent.get_mut(current) {
            let charged = mark.wrapping_sub(counter).cast_unsigned();
            *instructions = instructions.wrapping_add(charged);
        }
        (spent, current)
    }
}

fn number(tree: &[u8], node: u32, offset: u64) -> u64 {
    let at = node as usize + offset as usize;
    tree.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn index(tree: &[u8], node: u32, offset: u64) -> u32 {
    let at = node as usize + offset as usize;
    tree.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// Records a profile while a message runs.
#[derive(Clone, Debug)]
pub struct Recorder {
    span: Span,
    tree: Tree,
    /// Counts of each node at the start and at the end of the span.
    from: Option<Vec<NodeCounts>>,
    to: Option<Vec<NodeCounts>>,
}

/// A call tree without names of functions.
#[derive(Clone, Debug, Default)]
pub struct CallTree {
    /// Nodes with the frame numbers of the instrumented module.
    nodes: Vec<(Node, u32)>,
    instructions: Instructions,
    folded: u64,
}

impl Recorder {
    /// Creates a recorder for a message that has not started.
    pub fn new(span: Span, tree: Tree) -> Self {
        Self { span, tree, from: None, to: None }
    }

    /// The parts of the instance.
    pub fn tree(&self) -> Tree {
        self.tree
    }

    /// Returns true if the counter value `used` starts or ends the span.
    pub fn is_bound(&self, used: Instructions) -> bool {
        matches!(self.span, Span::Between { from, to } if used == from || used == to)
    }

    /// Records the counts when the canister reads `used` from its counter, with `counter` left of
    /// the slice.
    pub fn note<T: 'static>(
        mut store: impl AsContextMut<Data = T>,
        recorder: impl Fn(&mut T) -> Option<&mut Self>,
        used: Instructions,
        counter: i64,
    ) {
        let Some(tree) = recorder(store.as_context_mut().data_mut()).map(|it| it.tree) else {
            return;
        };
        let (spent, _) = tree.read(&mut store, counter);
        let mut context = store.as_context_mut();
        if let Some(recorder) = recorder(context.data_mut())
            && let Span::Between { from, .. } = recorder.span
        {
            let place = if used == from { &mut recorder.from } else { &mut recorder.to };
            *place = Some(spent);
        }
    }

    /// Returns the call tree of a message that used `used` instructions, with `counter` left of
    /// the slice. `failed` is true if the message was cut short.
    ///
    /// # Errors
    ///
    /// If the span was not found, or the sum differs from the counter.
    pub fn finish(
        self,
        mut store: impl AsContextMut,
        counter: i64,
        used: Instructions,
        failed: bool,
    ) -> Result<CallTree, ProfileError> {
        let Self { span, tree, from, to } = self;
        let (mut last, current) = tree.read(&mut store, counter);
        if counter == i64::MIN {
            saturate(&mut last, current, used);
        }
        expect(sum(&last), used)?;
        let (first, last, counted) = match span {
            Span::Message => (Vec::new(), last, used),
            Span::Between { from: began, to: ended } => {
                let first = from.ok_or(ProfileError::NotRead(began))?;
                match to {
                    Some(second) => (first, second, ended - began),
                    None if failed => (first, last, used - began),
                    None => return Err(ProfileError::NotRead(ended)),
                }
            }
        };
        let folded = tree.all_folded.get(&mut store).i64().unwrap_or(0).cast_unsigned();
        let nodes = nodes(tree.memory.data(&store), &first, &last);
        expect(nodes.iter().map(|(node, _)| node.instructions.get()).sum(), counted)?;
        Ok(CallTree { nodes, instructions: counted, folded })
    }
}

/// A charge that saturates leaves the counter at its minimum. The current node then gets the
/// instructions that the other nodes do not have.
fn saturate(spent: &mut [NodeCounts], current: usize, used: Instructions) {
    let all = sum(spent);
    if let Some(current) = spent.get_mut(current) {
        let others = all.wrapping_sub(current.instructions);
        current.instructions = used.get().wrapping_sub(others);
    }
}

fn sum(spent: &[NodeCounts]) -> u64 {
    spent.iter().fold(0, |sum, node| sum.wrapping_add(node.instructions))
}

fn expect(profiled: u64, counted: Instructions) -> Result<(), ProfileError> {
    let counted = counted.get();
    if profiled == counted { Ok(()) } else { Err(ProfileError::Sum { profiled, counted }) }
}

/// The nodes that changed between `first` and `last`, and their ancestors.
fn nodes(tree: &[u8], first: &[NodeCounts], last: &[NodeCounts]) -> Vec<(Node, u32)> {
    let parent = |place: usize| (index(tree, place as u32 * NODE, offset::PARENT) / NODE) as usize;
    let before = |place: usize| first.get(place).copied().unwrap_or_default();
    let mut wanted = vec![false; last.len()];
    // Parents precede their children. The root is the replica.
    for place in (1..last.len()).rev() {
        wanted[place] |= last[place] != before(place);
        if wanted[place] {
            wanted[parent(place)] = true;
        }
    }
    let mut nodes = Vec::new();
    let mut places = vec![None; last.len()];
    for place in (1..last.len()).filter(|place| wanted[*place]) {
        let node = Node {
            parent: places[parent(place)],
            frame: 0,
            calls: last[place].calls.wrapping_sub(before(place).calls),
            instructions: Instructions(
                last[place].instructions.wrapping_sub(before(place).instructions),
            ),
        };
        places[place] = Some(nodes.len());
        nodes.push((node, index(tree, place as u32 * NODE, offset::FRAME)));
    }
    nodes
}

impl CallTree {
    /// Returns true if nothing ran.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds names; `heap_pages` is the charge for changed heap pages.
    pub fn named(self, names: &Names, heap_pages: Instructions) -> Profile {
        let mut frames = Vec::new();
        let mut places = BTreeMap::new();
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for (node, number) in self.nodes {
            let frame = *places.entry(number).or_insert_with(|| {
                frames.push(names.frame(number));
                frames.len() - 1
            });
            nodes.push(Node { frame, ..node });
        }
        let Self { instructions, folded, .. } = self;
        Profile { frames, nodes, instructions, heap_pages, folded }
    }
}

/// Longest name of a frame; longer names are truncated with an ellipsis.
const MAX_NAME: usize = 1_000;

/// Names of a module's functions.
#[derive(Debug, Default)]
pub struct Names {
    /// Imported functions, by index.
    imports: Vec<String>,
    /// Names from the section `name`, by index.
    named: BTreeMap<u32, String>,
    /// Names of exported functions, by index.
    exports: BTreeMap<u32, String>,
}

impl Names {
    /// Reads the names of a valid module. A `name` section that cannot be read is ignored.
    pub fn of(wasm: &[u8]) -> Self {
        let mut names = Self::default();
        let mut own = 0;
        for payload in Parser::new(0).parse_all(wasm).map_while(Result::ok) {
            match payload {
                Payload::ImportSection(reader) => {
                    for import in reader.into_imports().map_while(Result::ok) {
                        if let TypeRef::Func(_) = import.ty {
                            names.imports.push(import.name.to_owned());
                        }
                    }
                }
                Payload::ExportSection(reader) => {
                    for export in reader.into_iter().map_while(Result::ok) {
                        if export.kind == ExternalKind::Func {
                            let name = || export.name.to_owned();
                            names.exports.entry(export.index).or_insert_with(name);
                        }
                    }
                }
                Payload::FunctionSection(reader) => own = reader.count(),
                _ => {}
            }
        }
        let count = own.saturating_add(names.imports.len() as u32);
        names.named = function_names(wasm, count).unwrap_or_default();
        names
    }

    /// The frame with the number that the profiled form uses.
    pub fn frame(&self, frame: u32) -> Frame {
        let pages = match frame {
            OS_PAGES_FRAME => Some((FrameKind::StablePages, "[stable pages written]")),
            STABLE_PAGE_FRAME => Some((FrameKind::StablePages, "[stable page]")),
            HEAP_PAGE_FRAME => Some((FrameKind::HeapPages, "[heap page]")),
            _ => None,
        };
        if let Some((kind, name)) = pages {
            return Frame { kind, name: name.to_owned() };
        }
        if let Some(import) = self.imports.get(frame as usize) {
            return Frame { kind: FrameKind::SystemCall, name: format!("{MODULE}.{import}") };
        }
        let kind = FrameKind::Function(frame);
        let given = self.named.get(&frame).or_else(|| self.exports.get(&frame));
        let name = given.filter(|name| !name.is_empty());
        Frame { kind, name: name.map_or_else(|| format!("func[{frame}]"), |name| readable(name)) }
    }
}

/// A demangled name without the hash, in one line.
fn readable(name: &str) -> String {
    let mut short = Short(String::new());
    // Only a name that is too long fails.
    if write!(short, "{:#}", rustc_demangle::demangle(name)).is_err() {
        short.0.push('…');
    }
    short.0
}

/// A writer that limits the length and replaces control characters.
struct Short(String);

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            if self.0.len() >= MAX_NAME {
                return Err(fmt::Error);
            }
            self.0.push(if steers(letter) { '?' } else { letter });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
