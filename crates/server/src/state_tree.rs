//! The state tree of the Interface Specification, and the permissions to read it.
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
use ic_transport_types::{RequestId, SubnetMetrics};
use serde_bytes::ByteBuf;
use stablebench_replica::Visibility;

use crate::certificates::{Path, Tree, leb128};
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
