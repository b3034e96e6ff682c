//! The state tree, and what of it a certificate shows.
//!
//! ```text
//!   Tree ── witness(paths) ──→ HashTree    what was asked for, and that what is missing is not
//!                                          there; hashes of everything else
//! ```

#[cfg(test)]
mod tests;
mod witness;

use std::collections::BTreeMap;

/// A label of the tree.
pub type Label = Vec<u8>;
/// The way from the root.
pub type Path = Vec<Label>;

/// A part of the state tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// A value.
    Leaf(Vec<u8>),
    /// Labels and what is below them.
    Node(BTreeMap<Label, Tree>),
}

impl Default for Tree {
    fn default() -> Self {
        Self::Node(BTreeMap::new())
    }
}

impl Tree {
    /// A value.
    pub fn leaf(value: impl Into<Vec<u8>>) -> Self {
        Self::Leaf(value.into())
    }

    /// Labels and what is below them.
    pub fn node<L: Into<Label>>(children: impl IntoIterator<Item = (L, Self)>) -> Self {
        Self::Node(children.into_iter().map(|(label, child)| (label.into(), child)).collect())
    }
}
