//! The parts of a subnet, and the ids that it gives to canisters.

use candid::Principal;

use super::parts::{Part, all, canister_id, number};
use super::subnet_state::Subnet;
use crate::cycles::{KEYS, NODES};
use crate::replica::Replica;
use crate::units::Bytes;

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
