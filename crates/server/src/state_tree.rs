//! The state tree of the Interface Specification, of which certificates show what a request may read.
//!
//! ```text
//!   time
//!   canister/ID/{controllers, module_hash, metadata/NAME}
//!   subnet/ID/{public_key, canister_ranges, type, node/ID/public_key}
//!   canister_ranges/ID/FIRST
//!   request_status/ID/{status, reply, reject_code, reject_message, error_code}
//! ```
//!
//! A certificate has a hash tree and signatures:
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

use axum::http::StatusCode;
use candid::Principal;
use ic_certification::certificate::Certificate;
use ic_certification::hash_tree::{Hash, HashTree, empty, fork, label, leaf, pruned};
use ic_transport_types::{NodeSignature, QueryResponse, RequestId, SubnetMetrics};
use ic_verify_bls_signature::PrivateKey;
use serde_bytes::ByteBuf;
use sha2::{Digest, Sha256};
use stablebench_replica::Visibility;

use crate::host::{Host, Info, Listed};
use crate::wire::{self, Refusal, Request};

/// The most paths of a request.
pub const MAX_PATHS: usize = 1_000;
/// The labels of the longest path, `subnet/ID/node/NODE/public_key`.
pub const MAX_LABELS: usize = 5;
/// The most characters of a label in an error.
const MAX_SHOWN: usize = 64;

/// The effective id: the canister or subnet in the address of a request.
#[derive(Clone, Copy, Debug)]
pub enum Effective {
    /// A canister.
    Canister(Principal),
    /// The subnet.
    Subnet,
}

/// Returns a certificate with the time and the given paths.
///
/// Its tree contains only the canisters and calls that the paths name. So a certificate reveals no
/// others, and the work does not depend on their number.
pub fn certificate(host: &Host, paths: &[Path], now: u64) -> Vec<u8> {
    let mut paths = paths.to_vec();
    paths.push(vec![b"time".to_vec()]);
    host.keys.certify(&tree(host, &paths, now), &paths)
}

/// Returns the path of a call's status.
pub fn status_path(id: &RequestId) -> Path {
    vec![b"request_status".to_vec(), id.to_vec()]
}

fn request_id(path: &Path) -> Option<RequestId> {
    match path.as_slice() {
        [first, id, ..] if first == b"request_status" => {
            Some(RequestId::new(id.as_slice().try_into().ok()?))
        }
        _ => None,
    }
}

fn canister_id(path: &Path) -> Option<Principal> {
    match path.as_slice() {
        [first, id, ..] if first == b"canister" => Principal::try_from_slice(id).ok(),
        _ => None,
    }
}

fn tree(host: &Host, paths: &[Path], now: u64) -> Tree {
    let keys = &host.keys;
    let directory = host.directory();
    let subnets = directory.0.iter().map(|listed| {
        let node = Tree::node([("public_key", Tree::leaf(keys.node()))]);
        let about = [
            ("public_key", Tree::leaf(listed.key.clone())),
            ("canister_ranges", Tree::leaf(encoded_ranges(listed))),
            ("type", Tree::leaf("application")),
            ("node", Tree::node([(keys.node_id().as_slice(), node)])),
        ];
        let metrics = metrics(host, paths, listed).map(|metrics| ("metrics", Tree::leaf(metrics)));
        let about = Tree::node(about.into_iter().chain(metrics));
        (listed.id.as_slice(), about)
    });
    let ranges = directory.0.iter().filter_map(|listed| {
        // All of them, under the smallest first id.
        let (first, _) = listed.ranges.iter().min()?;
        let ranges = Tree::node([(first.as_slice(), Tree::leaf(encoded_ranges(listed)))]);
        Some((listed.id.as_slice(), ranges))
    });
    let calls: BTreeSet<RequestId> = paths.iter().filter_map(request_id).collect();
    let canisters: BTreeSet<Principal> = paths.iter().filter_map(canister_id).collect();
    let canisters = canisters.iter().filter_map(|id| {
        let info = host.info(id)?;
        Some((id.as_slice(), canister(&info)))
    });
    Tree::node([
        ("time", Tree::leaf(leb128(now))),
        ("canister", Tree::node(canisters)),
        ("subnet", Tree::node(subnets)),
        ("canister_ranges", Tree::node(ranges)),
        ("request_status", host.ingress.statuses(calls)),
    ])
}

/// Returns the metrics of a subnet if a path names them. Consumed cycles are not counted, and the
/// transactions are the executions on all subnets.
fn metrics(host: &Host, paths: &[Path], listed: &Listed) -> Option<Vec<u8>> {
    let wanted = [b"subnet".as_slice(), listed.id.as_slice(), b"metrics"];
    paths.iter().find(|path| path.iter().map(Vec::as_slice).eq(wanted))?;
    let subnet = host.subnet();
    let part = listed.ranges.first().and_then(|(first, _)| subnet.part_of(first));
    let (count, bytes) = part.map(|part| subnet.occupied(part)).unwrap_or_default();
    Some(wire::encode(&SubnetMetrics {
        num_canisters: count as u64,
        canister_state_bytes: bytes.get(),
        consumed_cycles_total: 0,
        update_transactions_total: subnet.executed(),
    }))
}

fn encoded_ranges(listed: &Listed) -> Vec<u8> {
    let ranges: Vec<_> =
        listed.ranges.iter().map(|(first, last)| [bytes(first), bytes(last)]).collect();
    wire::encode(&ranges)
}

fn canister(info: &Info) -> Tree {
    let controllers: Vec<ByteBuf> = info.controllers.iter().map(bytes).collect();
    let mut parts =
        BTreeMap::from([(b"controllers".to_vec(), Tree::leaf(wire::encode(&controllers)))]);
    if let Some(module) = &info.module {
        parts.insert(b"module_hash".to_vec(), Tree::leaf(module.hash));
        let sections = module.sections.iter();
        let metadata =
            sections.map(|(name, section)| (name.as_str(), Tree::leaf(&*section.content)));
        parts.insert(b"metadata".to_vec(), Tree::node(metadata));
    }
    Tree::Node(parts)
}

fn bytes(id: &Principal) -> ByteBuf {
    ByteBuf::from(id.as_slice())
}

/// Returns `true` if all paths are about calls. Calls that create canisters may be sent to the
/// address of any canister, so their statuses are readable there.
pub fn are_about_calls(paths: &[Path]) -> bool {
    paths.iter().all(|path| {
        path.first().is_some_and(|label| label == b"time" || label == b"request_status")
    })
}

/// Checks that the sender may read the paths.
///
/// # Errors
///
/// 404 for paths that do not exist, 403 for those of other senders, 400 for malformed ones.
pub fn check(
    host: &Host,
    request: &Request,
    paths: &[Path],
    effective: Effective,
) -> Result<(), Refusal> {
    if paths.len() > MAX_PATHS {
        return Err(Refusal::bad_request(format!("More than {MAX_PATHS} paths are requested.")));
    }
    let mut status_of = None;
    for path in paths {
        let path: Vec<&[u8]> = path.iter().map(Vec::as_slice).collect();
        match (path.as_slice(), effective) {
            ([b"time"], _) => {}
            (path, _) if is_about_subnets(path) => {}
            ([b"canister", id, rest @ ..], Effective::Canister(effective)) => {
                if *id != effective.as_slice() {
                    return Err(Refusal::bad_request(format!(
                        "The effective canister id is {effective}, the path is about another canister."
                    )));
                }
                check_canister(host, request, &effective, rest)?;
            }
            (
                [b"request_status", id]
                | [
                    b"request_status",
                    id,
                    b"status" | b"reply" | b"reject_code" | b"reject_message" | b"error_code",
                ],
                _,
            ) => {
                let id: &[u8; 32] = (*id).try_into().map_err(|_| {
                    Refusal::bad_request(format!("A request id has 32 bytes, not {}.", id.len()))
                })?;
                if status_of.replace(id).is_some_and(|before| before != id) {
                    return Err(Refusal::bad_request(
                        "The statuses of two requests are requested; only one is allowed.",
                    ));
                }
                check_status(host, request, id)?;
            }
            (path, _) => {
                let labels = path.iter().take(MAX_LABELS);
                let mut names: Vec<String> = labels.map(|label| shown(label)).collect();
                if path.len() > names.len() {
                    names.push("…".to_owned());
                }
                return Err(Refusal::new(
                    StatusCode::NOT_FOUND,
                    format!("There is no path /{} to read here.", names.join("/")),
                ));
            }
        }
    }
    Ok(())
}

/// Returns `true` if the Interface Specification defines the path for subnets. Some of these paths
/// never exist on this server, which the certificate shows.
fn is_about_subnets(path: &[&[u8]]) -> bool {
    match path {
        [b"subnet" | b"canister_ranges" | b"api_boundary_nodes"]
        | [b"subnet" | b"canister_ranges" | b"api_boundary_nodes", _]
        | [b"canister_ranges", _, _] => true,
        [b"subnet", _, name] => {
            matches!(*name, b"public_key" | b"canister_ranges" | b"type" | b"metrics" | b"node")
        }
        [b"subnet", _, b"node", _] | [b"subnet", _, b"node", _, b"public_key"] => true,
        [b"api_boundary_nodes", _, name] => {
            matches!(*name, b"domain" | b"ipv4_address" | b"ipv6_address")
        }
        _ => false,
    }
}

/// Formats a label for an error, truncated if it is long.
fn shown(label: &[u8]) -> String {
    let text =
        std::str::from_utf8(label).ok().filter(|text| text.chars().all(|c| c.is_ascii_graphic()));
    let text = text.map_or_else(
        || hex::encode(&label[..label.len().min(MAX_SHOWN)]),
        |text| text.chars().take(MAX_SHOWN + 1).collect(),
    );
    // Hexadecimal digits and graphic characters are one byte each.
    if text.len() > MAX_SHOWN { format!("{}…", &text[..MAX_SHOWN]) } else { text }
}

fn check_canister(
    host: &Host,
    request: &Request,
    id: &Principal,
    path: &[&[u8]],
) -> Result<(), Refusal> {
    match path {
        [b"controllers" | b"module_hash"] => Ok(()),
        [b"metadata", name] => {
            let name = std::str::from_utf8(name).map_err(|error| {
                Refusal::bad_request(format!("The section's name is not UTF-8: {error}."))
            })?;
            let Some(info) = host.info(id) else {
                return Ok(());
            };
            let section = info.module.as_ref().and_then(|module| module.sections.get(name));
            let private = section.is_some_and(|section| section.visibility == Visibility::Private);
            if private && !info.controllers.contains(&request.sender()) {
                return Err(Refusal::forbidden(format!(
                    "Only the canister's controllers may read the custom section {name}."
                )));
            }
            Ok(())
        }
        _ => Err(Refusal::new(
            StatusCode::NOT_FOUND,
            "Only controllers, module_hash and metadata/NAME of a canister can be read.",
        )),
    }
}

fn check_status(host: &Host, request: &Request, id: &[u8; 32]) -> Result<(), Refusal> {
    let Some(known) = host.ingress.get(&RequestId::new(id)) else {
        return Ok(());
    };
    if known.sender != request.sender() {
        // Tests of clients compare this text with the replica's.
        return Err(Refusal::forbidden(
            "The user tries to access Request ID not signed by the caller.",
        ));
    }
    if !request.permits(&known.receiver) {
        return Err(Refusal::forbidden(
            "The delegations do not permit requests to the call's canister.",
        ));
    }
    Ok(())
}

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
fn leb128(mut number: u64) -> Vec<u8> {
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
