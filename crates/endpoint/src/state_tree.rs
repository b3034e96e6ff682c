//! The state tree of the interface specification, and who may read what of it.
//!
//! ```text
//!   time
//!   canister/ID/{controllers, module_hash, metadata/NAME}
//!   subnet/ID/{public_key, canister_ranges, type, node/ID/public_key}
//!   canister_ranges/ID/FIRST
//!   request_status/ID/{status, reply, reject_code, reject_message, error_code}
//! ```

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use candid::Principal;
use ic_transport_types::RequestId;
use serde_bytes::ByteBuf;
use stablebench_replica::Visibility;

use crate::canister::Info;
use crate::cbor;
use crate::envelope::Request;
use crate::refusal::Refusal;
use crate::subnet::Subnet;
use crate::tree::{Path, Tree};

/// The most paths that a request may name.
pub const MOST_PATHS: usize = 1_000;
/// Labels of the longest path that there is: `subnet/ID/node/NODE/public_key`.
pub const MOST_LABELS: usize = 5;
/// Characters of a label that an error shows.
const MOST_SHOWN: usize = 64;

/// Whose paths are asked for: the id in the request's address.
#[derive(Clone, Copy, Debug)]
pub enum Effective {
    /// A canister's.
    Canister(Principal),
    /// The subnet's.
    Subnet,
}

/// A certificate with the time and these paths.
///
/// Its tree has the canisters and calls that the paths name, and no others. Nobody can tell from
/// a certificate what else there is, and the work does not grow with it.
pub fn certificate(subnet: &Subnet, paths: &[Path], now: u64) -> Vec<u8> {
    let mut paths = paths.to_vec();
    paths.push(vec![b"time".to_vec()]);
    subnet.keys.certify(&tree(subnet, &paths, now), &paths)
}

/// The path of a call's status.
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

fn tree(subnet: &Subnet, paths: &[Path], now: u64) -> Tree {
    let keys = &subnet.keys;
    let (first, last) = subnet.range();
    let range = cbor::encode(&[[bytes(&first), bytes(&last)]]);
    let id = keys.subnet();
    let node = Tree::node([("public_key", Tree::leaf(keys.node()))]);
    let about = Tree::node([
        ("public_key", Tree::leaf(keys.root())),
        ("canister_ranges", Tree::leaf(range.clone())),
        ("type", Tree::leaf("application")),
        ("node", Tree::node([(keys.node_id().as_slice(), node)])),
    ]);
    let ranges = Tree::node([(first.as_slice(), Tree::leaf(range))]);
    let calls: BTreeSet<RequestId> = paths.iter().filter_map(request_id).collect();
    let canisters: BTreeSet<Principal> = paths.iter().filter_map(canister_id).collect();
    let canisters = canisters.iter().filter_map(|id| {
        let handle = subnet.canister(id)?;
        Some((id.as_slice(), canister(&handle.info())))
    });
    Tree::node([
        ("time", Tree::leaf(leb128(now))),
        ("canister", Tree::node(canisters)),
        ("subnet", Tree::node([(id.as_slice(), about)])),
        ("canister_ranges", Tree::node([(id.as_slice(), ranges)])),
        ("request_status", subnet.ingress.statuses(calls)),
    ])
}

fn canister(info: &Info) -> Tree {
    let controllers: Vec<ByteBuf> = info.controllers.iter().map(bytes).collect();
    let mut parts =
        BTreeMap::from([(b"controllers".to_vec(), Tree::leaf(cbor::encode(&controllers)))]);
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

/// Whether all paths are of calls. Those that create canisters may come to the address of any
/// canister, and are asked for there.
pub fn of_calls(paths: &[Path]) -> bool {
    paths.iter().all(|path| {
        path.first().is_some_and(|label| label == b"time" || label == b"request_status")
    })
}

/// Refuses paths that are not there to be read, or not by this sender.
///
/// # Errors
///
/// 404 for paths that there are not, 403 for those of others, 400 for malformed ones.
pub fn check(
    subnet: &Subnet,
    request: &Request,
    paths: &[Path],
    effective: Effective,
) -> Result<(), Refusal> {
    if paths.len() > MOST_PATHS {
        return Err(Refusal::bad_request(format!("More than {MOST_PATHS} paths are asked for.")));
    }
    let mut status_of = None;
    for path in paths {
        let path: Vec<&[u8]> = path.iter().map(Vec::as_slice).collect();
        match (path.as_slice(), effective) {
            ([b"time"], _) => {}
            (path, _) if of_subnet(path) => {}
            ([b"canister", id, rest @ ..], Effective::Canister(effective)) => {
                if *id != effective.as_slice() {
                    return Err(Refusal::bad_request(format!(
                        "The effective canister id is {effective}, the path is of another one."
                    )));
                }
                check_canister(subnet, request, &effective, rest)?;
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
                        "The statuses of two requests are asked for; one is possible.",
                    ));
                }
                check_status(subnet, request, id)?;
            }
            (path, _) => {
                let labels = path.iter().take(MOST_LABELS);
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

/// Whether the interface specification has that path below a subnet. Some of these are never
/// there on this endpoint, which the certificate shows.
fn of_subnet(path: &[&[u8]]) -> bool {
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

/// A label for people, cut where it is long.
fn shown(label: &[u8]) -> String {
    let text =
        std::str::from_utf8(label).ok().filter(|text| text.chars().all(|c| c.is_ascii_graphic()));
    let text = text.map_or_else(
        || hex::encode(&label[..label.len().min(MOST_SHOWN)]),
        |text| text.chars().take(MOST_SHOWN + 1).collect(),
    );
    // Hexadecimal digits and graphic characters are a byte each.
    if text.len() > MOST_SHOWN { format!("{}…", &text[..MOST_SHOWN]) } else { text }
}

fn check_canister(
    subnet: &Subnet,
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
            let Some(info) = subnet.canister(id).map(|handle| handle.info()) else {
                return Ok(());
            };
            let section = info.module.as_ref().and_then(|module| module.sections.get(name));
            let private = section.is_some_and(|section| section.visibility == Visibility::Private);
            if private && !info.controllers.contains(&request.sender()) {
                return Err(Refusal::forbidden(format!(
                    "The custom section {name} is for the canister's controllers."
                )));
            }
            Ok(())
        }
        _ => Err(Refusal::new(
            StatusCode::NOT_FOUND,
            "Of a canister, its controllers, module_hash and metadata/NAME can be read.",
        )),
    }
}

fn check_status(subnet: &Subnet, request: &Request, id: &[u8; 32]) -> Result<(), Refusal> {
    let Some(known) = subnet.ingress.get(&RequestId::new(id)) else {
        return Ok(());
    };
    if known.sender != request.sender() {
        return Err(Refusal::forbidden("The request was sent by another principal."));
    }
    if !request.is_for(&known.receiver) {
        return Err(Refusal::forbidden("The delegations are not for the request's canister."));
    }
    Ok(())
}
