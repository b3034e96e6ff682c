//! Which parts of a tree a certificate shows.
//!
//! Labels of a node are the leaves of a balanced tree of forks. A label that was asked for and
//! is missing is shown to be missing by those on both of its sides.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use ic_certification::hash_tree::{Hash, HashTree, empty, fork, label, leaf, pruned};

use super::{Label, Path, Tree};

type Witness = HashTree<Vec<u8>>;

/// What is to be shown below a label.
#[derive(Debug)]
enum Wanted<'a> {
    All,
    Below(BTreeMap<&'a [u8], Wanted<'a>>),
}

/// A part of a witness. Parts of which nothing is shown become one hash together.
enum Part {
    Shown(Witness),
    Hidden(Hash),
}

impl Tree {
    /// The tree with these paths, and all below them.
    pub fn witness(&self, paths: &[Path]) -> Witness {
        let mut wanted = Wanted::Below(BTreeMap::new());
        for path in paths {
            wanted.add(path);
        }
        self.part(&wanted).witness()
    }

    /// The hash of the whole tree.
    pub fn digest(&self) -> Hash {
        self.part(&Wanted::All).witness().digest()
    }

    fn part(&self, wanted: &Wanted<'_>) -> Part {
        match (self, wanted) {
            // That nothing is below a value shows in the value alone.
            (Self::Leaf(value), _) => Part::Shown(leaf(value.clone())),
            (Self::Node(children), Wanted::All) => {
                let shown = |(name, child): (&Label, &Self)| labeled(name, child.part(wanted));
                forks(children.iter().map(shown).collect())
            }
            (Self::Node(children), Wanted::Below(labels)) => {
                let beside = beside(children, labels);
                let part = |(name, child): (&Label, &Self)| match labels.get(name.as_slice()) {
                    Some(wanted) => labeled(name, child.part(wanted)),
                    None if beside.contains(name) => labeled(name, Part::Hidden(child.digest())),
                    None => Part::Hidden(label(name.clone(), hash(child.digest())).digest()),
                };
                forks(children.iter().map(part).collect())
            }
        }
    }
}

impl<'a> Wanted<'a> {
    fn add(&mut self, path: &'a [Label]) {
        match (self, path.split_first()) {
            (Self::All, _) => {}
            (whole, None) => *whole = Self::All,
            (Self::Below(labels), Some((first, rest))) => {
                labels.entry(first).or_insert_with(|| Self::Below(BTreeMap::new())).add(rest);
            }
        }
    }
}

impl Part {
    fn witness(self) -> Witness {
        match self {
            Self::Shown(witness) => witness,
            Self::Hidden(digest) => hash(digest),
        }
    }
}

fn hash(digest: Hash) -> Witness {
    pruned(digest)
}

fn labeled(name: &Label, part: Part) -> Part {
    Part::Shown(label(name.clone(), part.witness()))
}

/// Labels on both sides of those that are wanted and missing.
fn beside<'t>(
    children: &'t BTreeMap<Label, Tree>,
    labels: &BTreeMap<&[u8], Wanted<'_>>,
) -> BTreeSet<&'t Label> {
    let missing = labels.keys().filter(|name| !children.contains_key(**name));
    let both = missing.flat_map(|name| {
        let before = children.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(*name)));
        let after = children.range::<[u8], _>((Bound::Excluded(*name), Bound::Unbounded));
        [before.map(|(name, _)| name).next_back(), after.map(|(name, _)| name).next()]
    });
    both.flatten().collect()
}

fn forks(mut parts: Vec<Part>) -> Part {
    match parts.len() {
        0 => Part::Shown(empty()),
        1 => parts.remove(0),
        count => {
            let right = forks(parts.split_off(count / 2));
            match (forks(parts), right) {
                (Part::Hidden(left), Part::Hidden(right)) => {
                    Part::Hidden(fork(hash(left), hash(right)).digest())
                }
                (left, right) => Part::Shown(fork(left.witness(), right.witness())),
            }
        }
    }
}
