//! Parts of a subnet: ranges of canister ids, with the rules of their kind of subnet.
//!
//! A subnet has one part. A server that offers several subnets has a part for each of them. Canisters
//! of all parts run in the same rounds and call each other as canisters of one subnet do.
//!
//! A new canister gets the next id of the last range of its part. Ids of the other ranges are for
//! those who ask for an id.

use std::ops::RangeInclusive;
use std::sync::Arc;

use ic_principal::Principal;

use super::Subnet;
use crate::cycles::{KEYS, NODES};
use crate::replica::Replica;
use crate::rules::Rules;
use crate::units::Bytes;

/// The number of the first canister id.
const FIRST: u64 = 0xffff_ffff_ffe0_0000;
/// Number of canister ids.
const COUNT: u64 = 0x10_0000;

/// What calls to the management canister are routed by.
#[derive(Clone, Debug)]
pub struct Routes {
    /// The numbers of the canister ids of all parts.
    ranges: Arc<[RangeInclusive<u64>]>,
    /// The names of the threshold keys.
    keys: Arc<[&'static str]>,
}

impl Routes {
    /// Returns true if an id is in one of the ranges.
    pub fn host(&self, id: &Principal) -> bool {
        number(id).is_some_and(|number| self.ranges.iter().any(|range| range.contains(&number)))
    }

    /// The names of the threshold keys.
    pub fn keys(&self) -> &[&'static str] {
        &self.keys
    }
}

/// A range of canister ids, and the rules by which their canisters are charged.
#[derive(Clone, Debug)]
pub struct Part {
    replica: Replica,
    ranges: Vec<RangeInclusive<u64>>,
    /// The number of the next canister id.
    next: u64,
    /// Number of nodes.
    nodes: u32,
}

impl Part {
    /// Creates a part with the usual ids.
    pub fn new(replica: &Replica) -> Self {
        Self::with_ranges(replica, vec![FIRST..=FIRST + COUNT - 1])
    }

    /// Creates a part whose ids have numbers in the given ranges. New canisters get the ids of the
    /// last one.
    pub fn with_ranges(replica: &Replica, ranges: Vec<RangeInclusive<u64>>) -> Self {
        let next = ranges.last().map_or(FIRST, |last| *last.start());
        Self { replica: replica.clone(), ranges, next, nodes: NODES as u32 }
    }

    /// Sets the number of nodes that canisters read. Fees are those of 13 nodes in any case.
    pub fn set_nodes(&mut self, nodes: u32) {
        self.nodes = nodes;
    }

    /// The rules of the part.
    pub fn rules(&self) -> Rules {
        self.replica.rules()
    }

    /// The number of the next canister id.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// Sets the number of the next canister id. Returns false if it is not in the last range, nor the
    /// one after it.
    pub fn set_next_number(&mut self, next: u64) -> bool {
        let fits = self
            .ranges
            .last()
            .is_some_and(|last| last.contains(&next) || last.end().checked_add(1) == Some(next));
        if fits {
            self.next = next;
        }
        fits
    }

    /// The first and the last id of each range.
    pub fn ranges(&self) -> impl Iterator<Item = (Principal, Principal)> {
        self.ranges.iter().map(|range| (canister_id(*range.start()), canister_id(*range.end())))
    }

    /// Returns true if an id is in one of its ranges.
    pub fn hosts(&self, id: &Principal) -> bool {
        number(id).is_some_and(|number| self.ranges.iter().any(|range| range.contains(&number)))
    }
}

impl Subnet {
    /// Creates a subnet of these parts, without canisters. The first part is that of callers that name
    /// none.
    pub fn with_parts(first: Part, others: Vec<Part>) -> Self {
        let replica = first.replica.clone();
        let mut subnet = Self::new(&replica);
        subnet.parts = [vec![first], others].concat();
        subnet.share_routes();
        subnet
    }

    /// Adds a part, whose ids must not be in a range of another one. Returns its number.
    pub fn add_part(&mut self, part: Part) -> usize {
        self.parts.push(part);
        self.share_routes();
        self.parts.len() - 1
    }

    /// Removes the ids of a part and its canisters, whose messages and calls are lost. The numbers of
    /// the other parts stay.
    pub fn empty_part(&mut self, number: usize) {
        let Some(part) = self.parts.get_mut(number) else { return };
        let removed = Part { ranges: std::mem::take(&mut part.ranges), ..part.clone() };
        self.members.retain(|id, _| !removed.hosts(id));
        self.share_routes();
    }

    /// Limits the threshold keys to those with the given names. There are `key_1`, `test_key_1` and
    /// `dfx_test_key` otherwise.
    pub fn set_keys(&mut self, names: &[&str]) {
        let known = KEYS.iter().map(|(name, _)| *name);
        self.routes.keys = known.filter(|name| names.contains(name)).collect();
        self.share_routes();
    }

    /// The parts by number.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the number of the part with an id.
    pub fn part_of(&self, id: &Principal) -> Option<usize> {
        self.parts.iter().position(|part| part.hosts(id))
    }

    /// Number of the canisters of a part, and the bytes that they occupy.
    pub fn occupied(&self, part: usize) -> (usize, Bytes) {
        let Some(part) = self.parts.get(part) else { return (0, Bytes(0)) };
        let members = self.members.iter().filter(|(id, _)| part.hosts(id));
        let sizes = members.map(|(_, member)| member.occupied());
        sizes.fold((0, Bytes(0)), |(count, sum), size| (count + 1, sum + size))
    }

    /// Returns true if an id is one of those that the subnet gives to canisters.
    pub fn hosts(&self, id: &Principal) -> bool {
        self.routes.host(id)
    }

    /// Takes the id of the next canister of the first part. `None` if there is none left.
    pub fn next_id(&mut self) -> Option<Principal> {
        self.next_id_in(0)
    }

    /// Takes the id of the next canister of a part. `None` if there is none left.
    pub(super) fn next_id_in(&mut self, part: usize) -> Option<Principal> {
        let last = *self.parts.get(part)?.ranges.last()?.end();
        while self.parts[part].next <= last {
            let id = canister_id(self.parts[part].next);
            self.parts[part].next += 1;
            if !self.exists(&id) {
                return Some(id);
            }
        }
        None
    }

    /// Makes an id that was taken last the next one again.
    pub(super) fn return_id(&mut self, part: usize, id: &Principal) {
        if let Some(number) = number(id)
            && let Some(part) = self.parts.get_mut(part)
            && part.next == number + 1
        {
            part.next = number;
        }
    }

    /// The replica on which a canister's modules are compiled.
    pub fn replica_of(&self, id: &Principal) -> &Replica {
        let part = self.parts.iter().find(|part| part.hosts(id));
        part.map_or(&self.replica, |part| &part.replica)
    }

    /// The number of nodes of the part with a canister.
    pub(super) fn nodes_of(&self, id: &Principal) -> u32 {
        let part = self.parts.iter().find(|part| part.hosts(id));
        part.map_or(NODES as u32, |part| part.nodes)
    }

    fn share_routes(&mut self) {
        self.routes.ranges = all(&self.parts);
        for member in self.members.values_mut() {
            member.routes = self.routes.clone();
        }
    }
}

/// The routes to parts, with all keys.
pub fn routes(parts: &[Part]) -> Routes {
    Routes { ranges: all(parts), keys: KEYS.iter().map(|(name, _)| *name).collect() }
}

fn all(parts: &[Part]) -> Arc<[RangeInclusive<u64>]> {
    parts.iter().flat_map(|part| part.ranges.iter().cloned()).collect()
}

/// The canister id with a number.
pub fn canister_id(number: u64) -> Principal {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.extend([1, 1]);
    Principal::from_slice(&bytes)
}

/// The number of a canister id.
fn number(id: &Principal) -> Option<u64> {
    let number = id.as_slice().first_chunk().copied().map(u64::from_be_bytes)?;
    (canister_id(number) == *id).then_some(number)
}
