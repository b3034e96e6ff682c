//! Reads the tree of a running instance: in the end, and where the span begins and ends.

use std::collections::BTreeMap;

use wasmtime::{AsContextMut, Global, Instance, Memory, Store, Val};

use super::names::Names;
use super::{Node, Profile, ProfileError, Span};
use crate::instrument::profiled::{NODE, export, offset};
use crate::units::Instructions;

/// Parts of the profiled form that the host works with.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    memory: Memory,
    current: Global,
    mark: Global,
    end: Global,
    all_folded: Global,
}

/// What a node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    instructions: u64,
    calls: u64,
}

impl Tree {
    /// Those of an instance.
    ///
    /// # Errors
    ///
    /// If it is none of a profiled form.
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

    /// The counter is moved, from here on, without anything being charged.
    ///
    /// # Errors
    ///
    /// Never, unless the instance is none of a profiled form.
    pub fn counter_moved(
        &self,
        mut store: impl AsContextMut,
        from: i64,
        to: i64,
    ) -> wasmtime::Result<()> {
        let mark = self.mark.get(&mut store).i64().unwrap_or(0);
        // What is charged is a difference of the two: what wraps here wraps back.
        self.mark.set(store, Val::I64(mark.wrapping_add(to.wrapping_sub(from))))
    }

    fn address(global: Global, store: impl AsContextMut) -> u32 {
        global.get(store).i32().unwrap_or(0).cast_unsigned()
    }

    /// What each node has so far, with `counter` left of the slice, and which is the current
    /// one.
    fn read(&self, mut store: impl AsContextMut, counter: i64) -> (Vec<Spent>, usize) {
        let mark = self.mark.get(&mut store).i64().unwrap_or(0);
        let current = (Self::address(self.current, &mut store) / NODE) as usize;
        let end = Self::address(self.end, &mut store);
        let bytes = self.memory.data(&store);
        let of = |at| Spent {
            instructions: number(bytes, at, offset::INSTRUCTIONS),
            calls: number(bytes, at, offset::CALLS),
        };
        let mut spent: Vec<Spent> = (0..end).step_by(NODE as usize).map(of).collect();
        if let Some(Spent { instructions, .. }) = spent.get_mut(current) {
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

/// What is recorded of a message while it runs.
#[derive(Clone, Debug)]
pub struct Recorder {
    span: Span,
    tree: Tree,
    /// What each node had where the span began and where it ended.
    from: Option<Vec<Spent>>,
    to: Option<Vec<Spent>>,
}

/// A call tree without names.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Nodes, whose frames are those of the instrumented module.
    nodes: Vec<(Node, u32)>,
    instructions: Instructions,
    folded: u64,
}

impl Recorder {
    /// Of that span of a message that has not begun.
    pub fn new(span: Span, tree: Tree) -> Self {
        Self { span, tree, from: None, to: None }
    }

    /// Where the tree is.
    pub fn tree(&self) -> Tree {
        self.tree
    }

    /// Whether the span begins or ends where the canister reads that from its counter.
    pub fn is_bound(&self, used: Instructions) -> bool {
        matches!(self.span, Span::Between { from, to } if used == from || used == to)
    }

    /// Notes the tree as it is where the canister reads `used` from its counter, with
    /// `counter` left of the slice.
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

    /// What was recorded of a message that used `used` instructions in the end, with
    /// `counter` left of the slice; `failed` says whether it was cut short.
    ///
    /// # Errors
    ///
    /// If the span is not there, or the sum is not what was counted.
    pub fn finish(
        self,
        mut store: impl AsContextMut,
        counter: i64,
        used: Instructions,
        failed: bool,
    ) -> Result<Recorded, ProfileError> {
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
        Ok(Recorded { nodes, instructions: counted, folded })
    }
}

/// A charge so large that it saturates leaves the counter at its end: the current node has
/// what the others have not.
fn saturate(spent: &mut [Spent], current: usize, used: Instructions) {
    let all = sum(spent);
    if let Some(current) = spent.get_mut(current) {
        let others = all.wrapping_sub(current.instructions);
        current.instructions = used.get().wrapping_sub(others);
    }
}

fn sum(spent: &[Spent]) -> u64 {
    spent.iter().fold(0, |sum, node| sum.wrapping_add(node.instructions))
}

fn expect(profiled: u64, counted: Instructions) -> Result<(), ProfileError> {
    let counted = counted.get();
    if profiled == counted { Ok(()) } else { Err(ProfileError::Sum { profiled, counted }) }
}

/// The nodes in which something happened between `first` and `last`, and those above them.
fn nodes(tree: &[u8], first: &[Spent], last: &[Spent]) -> Vec<(Node, u32)> {
    let parent = |place: usize| (index(tree, place as u32 * NODE, offset::PARENT) / NODE) as usize;
    let before = |place: usize| first.get(place).copied().unwrap_or_default();
    let mut wanted = vec![false; last.len()];
    // Parents stand before their children. The root is the replica.
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

impl Recorded {
    /// Whether nothing ran.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The same with names; `heap_pages` is what the message was charged for those.
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
