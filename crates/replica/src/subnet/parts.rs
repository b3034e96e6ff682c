//! The canister ids of a subnet, in parts, and calls to remote canisters, which are not on the subnet.
//!
//! A subnet has one part. A server that offers several subnets has a part for each of them, with the
//! rules of its kind of subnet. Canisters of all parts run in the same rounds and call each other as
//! canisters of one subnet do. A function may answer calls to remote canisters.
//!
//! A new canister gets the next id of the last range of its part. Ids of the other ranges are for
//! those who ask for an id.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use ic_principal::Principal;

use crate::cycles::{KEYS, NODES};
use crate::replica::Replica;
use crate::rules::Rules;
use crate::units::Cycles;

/// The number of the first canister id.
const FIRST: u64 = 0xffff_ffff_ffe0_0000;
/// Number of canister ids.
const COUNT: u64 = 0x10_0000;

/// What calls to the management canister are routed by.
#[derive(Clone, Debug)]
pub struct Routes {
    /// The numbers of the canister ids of all parts.
    pub(super) ranges: Arc<[RangeInclusive<u64>]>,
    /// The names of the threshold keys.
    pub(super) keys: Arc<[&'static str]>,
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
    pub(super) replica: Replica,
    pub(super) ranges: Vec<RangeInclusive<u64>>,
    /// The number of the next canister id.
    pub(super) next: u64,
    /// Number of nodes.
    pub(super) nodes: u32,
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

/// The routes to parts, with all keys.
pub fn routes(parts: &[Part]) -> Routes {
    Routes { ranges: all(parts), keys: KEYS.iter().map(|(name, _)| *name).collect() }
}

/// The numbers of the canister ids of all parts.
pub fn all(parts: &[Part]) -> Arc<[RangeInclusive<u64>]> {
    parts.iter().flat_map(|part| part.ranges.iter().cloned()).collect()
}

/// The canister id with a number.
pub fn canister_id(number: u64) -> Principal {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.extend([1, 1]);
    Principal::from_slice(&bytes)
}

/// The number of a canister id.
pub fn number(id: &Principal) -> Option<u64> {
    let number = id.as_slice().first_chunk().copied().map(u64::from_be_bytes)?;
    (canister_id(number) == *id).then_some(number)
}

/// A call to a canister that is not on the subnet.
#[derive(Clone, Copy, Debug)]
pub struct RemoteCall<'a> {
    /// The canister that calls.
    pub caller: Principal,
    /// The canister that it calls.
    pub callee: Principal,
    /// The method.
    pub method: &'a str,
    /// The argument.
    pub argument: &'a [u8],
    /// Cycles that come with the call. A reply accepts all of them.
    pub cycles: Cycles,
}

/// Answers calls: a reply or the text of a reject. `None` if there is no such canister.
type Answer = dyn Fn(&RemoteCall<'_>) -> Option<Result<Vec<u8>, String>> + Send + Sync;

/// A function that answers calls.
#[derive(Clone)]
pub struct RemoteAnswers(pub(super) Arc<Answer>);

impl fmt::Debug for RemoteAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteAnswers")
    }
}
