//! Certificates: the parts of a state tree that they show, and the keys that sign them.
//!
//! ```text
//!   Tree ── witness(paths) ──→ HashTree    the requested paths, or proof of their absence;
//!                                          hashes of everything else
//! ```
//!
//! The labels of a node are the leaves of a balanced tree of forks. The two labels next to a
//! requested label that is missing prove its absence.
//!
//! The keys of the subnet and of its only node are not secret: they derive from a constant, so that
//! all servers have the same keys and commands with the root key stay valid.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::LazyLock;

use candid::Principal;
use ic_certification::certificate::Certificate;
use ic_certification::hash_tree::{Hash, HashTree, empty, fork, label, leaf, pruned};
use ic_transport_types::{NodeSignature, QueryResponse, RequestId};
use ic_verify_bls_signature::PrivateKey;
use sha2::{Digest, Sha256};

use crate::wire;

type Witness = HashTree<Vec<u8>>;

/// A label of the tree.
type Label = Vec<u8>;
/// The labels from the root to a node.
pub type Path = Vec<Label>;

/// A subtree of the state tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// A value.
    Leaf(Vec<u8>),
    /// Subtrees by label.
    Node(BTreeMap<Label, Tree>),
}

impl Default for Tree {
    fn default() -> Self {
        Self::Node(BTreeMap::new())
    }
}

impl Tree {
    /// Creates a leaf.
    pub fn leaf(value: impl Into<Vec<u8>>) -> Self {
        Self::Leaf(value.into())
    }

    /// Creates a node from subtrees by label.
    pub fn node<L: Into<Label>>(children: impl IntoIterator<Item = (L, Self)>) -> Self {
        Self::Node(children.into_iter().map(|(label, child)| (label.into(), child)).collect())
    }

    /// Returns the hash tree that shows the subtrees at the given paths.
    fn witness(&self, paths: &[Path]) -> Witness {
        let mut wanted = Wanted::Below(BTreeMap::new());
        for path in paths {
            wanted.add(path);
        }
        self.part(&wanted).witness()
    }

    /// Returns the root hash.
    fn digest(&self) -> Hash {
        self.part(&Wanted::All).witness().digest()
    }

    fn part(&self, wanted: &Wanted<'_>) -> Part {
        match (self, wanted) {
            // A leaf itself shows that it has no subtrees.
            (Self::Leaf(value), _) => Part::Shown(leaf(value.clone())),
            (Self::Node(children), Wanted::All) => {
                let shown = |(name, child): (&Label, &Self)| labeled(name, child.part(wanted));
                forks(children.iter().map(shown).collect())
            }
            (Self::Node(children), Wanted::Below(labels)) => {
                let neighbors = neighbors(children, labels);
                let part = |(name, child): (&Label, &Self)| match labels.get(name.as_slice()) {
                    Some(wanted) => labeled(name, child.part(wanted)),
                    None if neighbors.contains(name) => labeled(name, Part::Hidden(child.digest())),
                    None => Part::Hidden(label(name.clone(), hash(child.digest())).digest()),
                };
                forks(children.iter().map(part).collect())
            }
        }
    }
}

/// The subtrees to show below a label.
#[derive(Debug)]
enum Wanted<'a> {
    All,
    Below(BTreeMap<&'a [u8], Wanted<'a>>),
}

/// A part of a witness. Neighboring hidden parts are merged into one hash.
enum Part {
    Shown(Witness),
    Hidden(Hash),
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

/// Returns the labels next to those that are wanted and missing, which prove their absence.
fn neighbors<'t>(
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

/// A number of the tree, in LEB128.
pub fn leb128(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

const SEED: &str = "stablebench, a local subnet; not a secret";

/// The DER prefix of a BLS12-381 public key of the IC.
const DER: &[u8] =
    b"\x30\x81\x82\x30\x1d\x06\x0d\x2b\x06\x01\x04\x01\x82\xdc\x7c\x05\x03\x01\x02\x01\
    \x06\x0c\x2b\x06\x01\x04\x01\x82\xdc\x7c\x05\x03\x02\x01\x03\x61\x00";

/// The subnet's key, which is the root key, and the node's key.
pub struct Keys {
    root: PrivateKey,
    root_der: Vec<u8>,
    node: ic_ed25519::PrivateKey,
    node_der: Vec<u8>,
}

impl Default for Keys {
    fn default() -> Self {
        Self::from_seed(SEED)
    }
}

/// Signs the certified data of a canister, as a server with one subnet does.
pub fn sign_data(canister: Principal, data: &[u8], time: u64) -> Vec<u8> {
    static KEYS: LazyLock<Keys> = LazyLock::new(Keys::default);
    KEYS.certify_data(&canister, data, time)
}

/// Returns the first hash of the seed that is a key, a number below the order of the group.
fn root_key(seed: &str) -> PrivateKey {
    (0_u64..)
        .map(|number| Sha256::digest([seed.as_bytes(), &number.to_be_bytes()].concat()))
        .find_map(|hash| PrivateKey::deserialize(&hash).ok())
        .unwrap_or_else(|| unreachable!("almost every second hash is a key"))
}

impl Keys {
    /// Derives keys from a text.
    pub fn from_seed(seed: &str) -> Self {
        let node = ic_ed25519::PrivateKey::generate_from_seed(seed.as_bytes());
        let root = root_key(seed);
        Self {
            root_der: [DER, &root.public_key().serialize()].concat(),
            root,
            node_der: node.public_key().serialize_rfc8410_der(),
            node,
        }
    }

    /// Returns the public root key in DER.
    pub fn root(&self) -> &[u8] {
        &self.root_der
    }

    /// Returns the subnet's id.
    pub fn subnet(&self) -> Principal {
        Principal::self_authenticating(&self.root_der)
    }

    /// Returns the node's public key in DER.
    pub fn node(&self) -> &[u8] {
        &self.node_der
    }

    /// Returns the node's id.
    pub fn node_id(&self) -> Principal {
        Principal::self_authenticating(&self.node_der)
    }

    /// Returns a certificate in CBOR that shows the given paths of a state tree.
    pub fn certify(&self, tree: &Tree, paths: &[Path]) -> Vec<u8> {
        let tree = tree.witness(paths);
        let message = [b"\x0Dic-state-root".as_slice(), &tree.digest()].concat();
        let signature = self.root.sign(&message).serialize().to_vec();
        wire::encode(&Certificate { tree, signature, delegation: None })
    }

    /// Returns a certificate of a canister's certified data.
    pub fn certify_data(&self, canister: &Principal, data: &[u8], time: u64) -> Vec<u8> {
        let certified = Tree::node([("certified_data", Tree::leaf(data))]);
        let tree = Tree::node([
            ("time", Tree::leaf(leb128(time))),
            ("canister", Tree::node([(canister.as_slice(), certified)])),
        ]);
        let path = [b"canister".as_slice(), canister.as_slice(), b"certified_data"];
        self.certify(&tree, &[vec![b"time".to_vec()], path.map(<[u8]>::to_vec).to_vec()])
    }

    /// Signs the response to a query.
    pub fn sign_query(
        &self,
        response: &QueryResponse,
        request: RequestId,
        timestamp: u64,
    ) -> NodeSignature {
        let signature = self.node.sign_message(&response.signable(request, timestamp)).to_vec();
        NodeSignature { timestamp, signature, identity: self.node_id() }
    }
}

#[cfg(test)]
mod tests {
    use ic_certification::LookupResult;
    use ic_certification::hash_tree::SubtreeLookupResult;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    fn labels() -> impl Strategy<Value = Vec<u8>> {
        vec(0_u8..4, 0..3)
    }

    /// Values below two levels of labels.
    fn trees() -> impl Strategy<Value = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>> {
        btree_map(labels(), btree_map(labels(), vec(any::<u8>(), 0..3), 0..8), 0..8)
    }

    fn tree(model: &BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>) -> Tree {
        Tree::node(model.iter().map(|(name, below)| {
            let below = below.iter().map(|(name, value)| (name.clone(), Tree::leaf(value.clone())));
            (name.clone(), Tree::node(below))
        }))
    }

    proptest! {
        /// A witness has the root hash of the tree, shows each requested value or its absence, and
        /// hides all other values.
        #[test]
        fn witnesses_show_the_requested_paths_only(
            model in trees(),
            requested in vec((labels(), labels()), 0..4),
        ) {
            let tree = tree(&model);
            let paths: Vec<Path> = requested.iter().map(|(a, b)| vec![a.clone(), b.clone()]).collect();
            let witness = tree.witness(&paths);
            prop_assert_eq!(witness.digest(), tree.digest());
            for (first, second) in &requested {
                let found = witness.lookup_path([first, second]);
                match model.get(first).and_then(|below| below.get(second)) {
                    Some(value) => prop_assert_eq!(found, LookupResult::Found(value)),
                    None => prop_assert_eq!(found, LookupResult::Absent),
                }
            }
            for (first, below) in &model {
                for second in below.keys() {
                    if !requested.contains(&(first.clone(), second.clone())) {
                        let found = witness.lookup_path([first, second]);
                        prop_assert!(!matches!(found, LookupResult::Found(_)), "{found:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_whole_subtree_of_a_path_is_shown() {
        let tree = Tree::node([
            ("a", Tree::node([("x", Tree::leaf("1")), ("y", Tree::leaf("2"))])),
            ("b", Tree::node([("z", Tree::leaf("3"))])),
        ]);
        let witness = tree.witness(&[vec![b"a".to_vec()]]);
        let SubtreeLookupResult::Found(below) = witness.lookup_subtree(["a"]) else {
            panic!("{witness:?}")
        };
        assert_eq!(below.lookup_path(["y"]), LookupResult::Found(b"2"));
        assert_eq!(witness.lookup_path(["b", "z"]), LookupResult::Unknown);
        assert_eq!(tree.witness(&[]), pruned(tree.digest()));
        assert_eq!(tree.witness(&[vec![]]).digest(), tree.digest());
    }
}
