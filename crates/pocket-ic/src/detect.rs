//! Detection of the rules by which a server charges.
//!
//! A canister measures the charges for single memory accesses and for one operator, and calls a
//! method that is missing (`PROBE`). The rules are those under which the embedded replica returns
//! the same measurements, and a reject that links to the same page.

use std::sync::Arc;
use std::{error, fmt};

use candid::Principal;
use stablebench_replica::subnet::Subnet as EmbeddedSubnet;
use stablebench_replica::{Replica, Rules};

use crate::Server;
use crate::client::Subnet;
use crate::instance::{Instance, Mode};

/// Measures the charges of a server: instructions of single accesses and of one operator, each
/// between two readings of the counter. The reply has the little-endian u64s of [`MEASURED`]. The
/// method `rejected` calls a method that is missing, and replies with the text of the reject.
const PROBE: &str = r#"(module
  (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
  (import "ic0" "msg_reply" (func $reply))
  (import "ic0" "msg_reject_msg_size" (func $reject_size (result i32)))
  (import "ic0" "msg_reject_msg_copy" (func $reject_copy (param i32 i32 i32)))
  (import "ic0" "canister_self_size" (func $self_size (result i32)))
  (import "ic0" "canister_self_copy" (func $self_copy (param i32 i32 i32)))
  (import "ic0" "call_new" (func $call_new (param i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "ic0" "call_perform" (func $perform (result i32)))
  (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
  (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
  (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
  (memory 4)
  (table 2 funcref)
  (elem (i32.const 0) $nothing $answered)
  (data (i32.const 131064) "missing")
  (type $nothing (func))
  (global $at (mut i32) (i32.const 0))
  (func $nothing)
  (func $tail (return_call_indirect (type $nothing) (i32.const 0)))
  ;; Appends the instructions since $from to the results, which are in the first page.
  (func $result (param $from i64)
    (i64.store (global.get $at) (i64.sub (call $counter (i32.const 0)) (local.get $from)))
    (global.set $at (i32.add (global.get $at) (i32.const 8))))
  (func $answered (param i32)
    (call $reject_copy (i32.const 0) (i32.const 0) (call $reject_size))
    (call $append (i32.const 0) (call $reject_size))
    (call $reply))
  (func (export "canister_update rejected")
    (call $self_copy (i32.const 0) (i32.const 0) (call $self_size))
    (call $call_new (i32.const 0) (call $self_size) (i32.const 131064) (i32.const 7)
      (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 0))
    (drop (call $perform)))
  (func (export "canister_update probe") (local $from i64)
    (drop (call $grow (i64.const 3)))
    ;; The page of the results is touched before anything is measured.
    (i64.store (i32.const 0) (i64.const 0))
    (local.set $from (call $counter (i32.const 0)))
    (drop (i64.load (i32.const 65536)))
    (call $result (local.get $from))
    (local.set $from (call $counter (i32.const 0)))
    (i64.store (i32.const 65536) (i64.const 1))
    (call $result (local.get $from))
    (local.set $from (call $counter (i32.const 0)))
    (i64.store (i32.const 131072) (i64.const 1))
    (call $result (local.get $from))
    (local.set $from (call $counter (i32.const 0)))
    (call $read (i64.const 65536) (i64.const 0) (i64.const 8))
    (call $result (local.get $from))
    (local.set $from (call $counter (i32.const 0)))
    (call $read (i64.const 65536) (i64.const 0) (i64.const 8))
    (call $result (local.get $from))
    (local.set $from (call $counter (i32.const 0)))
    (call $write (i64.const 0) (i64.const 65536) (i64.const 8))
    (call $result (local.get $from))
    (local.set $from (call $counter (i32.const 0)))
    (call $write (i64.const 131072) (i64.const 65536) (i64.const 8))
    (call $result (local.get $from))
    (local.set $from (call $counter (i32.const 0)))
    (call $tail)
    (call $result (local.get $from))
    (call $append (i32.const 0) (global.get $at))
    (global.set $at (i32.const 0))
    (call $reply)))"#;

/// The measurements of the probe, in the order of its reply.
const MEASURED: [&str; 8] = [
    "the first read of a heap page",
    "a first write after it",
    "a first write to another heap page",
    "the first stable_read",
    "the second stable_read of that page",
    "a stable_write to that page",
    "a stable_write to another page",
    "return_call_indirect",
];

/// The charge of each measurement.
type Charges = [u64; MEASURED.len()];

/// The numbers and the page by which rule sets differ.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Observed {
    charges: Charges,
    /// The page to which a reject links.
    page: String,
}

impl Observed {
    /// Number of differences.
    fn differing(&self, other: &Self) -> usize {
        let charges = self.charges.iter().zip(&other.charges);
        charges.filter(|(one, other)| one != other).count() + usize::from(self.page != other.page)
    }
}

/// No known rule set matches the charges of the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the replica charges by rules that are not known here: {}", self.listed())]
pub struct UnknownRules {
    found: Observed,
    nearest: &'static str,
    expected: Observed,
}

impl UnknownRules {
    /// Lists the differences to the nearest set.
    fn listed(&self) -> String {
        let Self { found, nearest, expected } = self;
        let mut differing: Vec<String> = MEASURED
            .iter()
            .zip(found.charges.iter().zip(&expected.charges))
            .filter(|(_, (found, expected))| found != expected)
            .map(|(what, (found, expected))| {
                format!("{what} costs {found} instructions, {expected} by {nearest}")
            })
            .collect();
        if found.page != expected.page {
            let (found, expected) = (&found.page, &expected.page);
            differing.push(format!("rejects link to {found}, to {expected} by {nearest}"));
        }
        differing.join("; ")
    }
}

/// The probe could not be run; not a reject.
type Failure = Box<dyn error::Error + Send + Sync>;

/// The rules of a server could not be detected.
#[derive(Debug)]
pub enum Undetected {
    /// No known set matches.
    Unknown(Box<UnknownRules>),
    /// The probe could not be run.
    Failed(Failure),
}

impl fmt::Display for Undetected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(unknown) => unknown.fmt(f),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

impl error::Error for Undetected {}

impl From<Failure> for Undetected {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Detects the rules by which a server charges on this kind of subnet.
///
/// # Errors
///
/// If no known set matches, or the probe could not be run.
pub fn detect(server: &Arc<Server>, subnet: Subnet) -> Result<Rules, Undetected> {
    matching(&on_server(server, subnet)?)
}

/// The rules under which the embedded replica measures the same.
fn matching(found: &Observed) -> Result<Rules, Undetected> {
    let mut nearest: Option<(usize, UnknownRules)> = None;
    for name in Rules::SETS.iter().rev().chain(Rules::VARIANTS) {
        let rules: Rules = name.parse().map_err(|error| Undetected::Failed(Box::new(error)))?;
        let expected = embedded(rules)?;
        let differing = found.differing(&expected);
        if differing == 0 {
            return Ok(rules);
        }
        if nearest.as_ref().is_none_or(|(fewest, _)| differing < *fewest) {
            let found = found.clone();
            nearest = Some((differing, UnknownRules { found, nearest: name, expected }));
        }
    }
    match nearest {
        Some((_, unknown)) => Err(Undetected::Unknown(Box::new(unknown))),
        None => Err(Undetected::Failed("there are no rules to compare with".into())),
    }
}

const CALLER: Principal = Principal::anonymous();

/// The measurements of a canister on a new instance.
fn on_server(server: &Arc<Server>, subnet: Subnet) -> Result<Observed, Failure> {
    let instance = Instance::create(server, subnet)?;
    let id = instance.create_canister(CALLER)?;
    let refused = |reject| format!("it refused the canister that detects its rules: {reject}");
    instance.install(id, CALLER, Mode::Install, &wat::parse_str(PROBE)?, &[])?.map_err(refused)?;
    observed(|method| {
        let outcome = instance.update(id, CALLER, method, &[])?;
        Ok(outcome.map_err(|reject| format!("{UNANSWERED}: {reject}"))?)
    })
}

const UNANSWERED: &str = "the canister that detects the rules did not reply";

/// The measurements of a canister on an embedded subnet.
fn embedded(rules: Rules) -> Result<Observed, Failure> {
    let replica = Replica::new(rules, None)?;
    let mut canister = replica.create_canister()?;
    let id = canister.settings().id;
    let module = replica.compile_for_subnet(&id, &wat::parse_str(PROBE)?)?;
    canister.install(&module, CALLER, &[])?.outcome?;
    let mut subnet = EmbeddedSubnet::new(&replica);
    subnet.add(canister)?;
    observed(|method| {
        let message = subnet.submit(CALLER, id, method, &[])??;
        // The call and its response take a few rounds.
        for _ in 0..10 {
            subnet.tick()?;
            if let Some(answer) = subnet.take_answer(message) {
                return Ok(answer?);
            }
        }
        Err(UNANSWERED.into())
    })
}

/// What a canister with the probe measures. `call` returns the reply of its methods.
fn observed(mut call: impl FnMut(&str) -> Result<Vec<u8>, Failure>) -> Result<Observed, Failure> {
    Ok(Observed { charges: charges(&call("probe")?)?, page: page(&call("rejected")?)? })
}

/// The page to which the reject of a missing method links, as a canister sees it.
fn page(reply: &[u8]) -> Result<String, Failure> {
    let text = String::from_utf8_lossy(reply);
    let link = text.split_once("See documentation: ").and_then(|(_, link)| link.split_once('#'));
    let (page, _) = link.ok_or("the reject of a missing method has no link")?;
    Ok(page.to_owned())
}

fn charges(reply: &[u8]) -> Result<Charges, Failure> {
    let (numbers, rest) = reply.as_chunks::<8>();
    let charges: Vec<u64> = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
    match Charges::try_from(charges) {
        Ok(charges) if rest.is_empty() => Ok(charges),
        _ => Err("the canister that detects the rules sent an unexpected reply".into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test panics")]

    use super::*;

    #[test]
    fn each_set_and_variant_is_detected() {
        for name in Rules::SETS.iter().chain(Rules::VARIANTS) {
            let found = embedded(name.parse().unwrap()).unwrap();
            assert_eq!(matching(&found).unwrap().name(), *name);
        }
    }

    #[test]
    fn sets_with_the_same_charges_link_to_other_pages() {
        let of = |rules| embedded(rules).unwrap();
        let (august, october) = (of(Rules::of_2026_08()), of(Rules::of_2026_10()));
        assert_eq!(august.charges, october.charges);
        assert_eq!(october.page, Rules::of_2026_10().set().error_documentation);
        assert_ne!(august.page, october.page);
    }

    /// A server that charges one more instruction for the first read of a heap page.
    #[test]
    fn other_charges_are_compared_with_the_nearest_set() {
        let mut found = embedded(Rules::of_2026_08()).unwrap();
        found.charges[0] += 1;
        let error = matching(&found).unwrap_err().to_string();
        let expected = "the replica charges by rules that are not known here: the first read of a \
                        heap page costs";
        assert!(error.starts_with(expected) && error.ends_with("by 2026-08"), "{error}");
        assert!(!error.contains(';'), "nothing else differs: {error}");
    }

    #[test]
    fn other_replies_are_no_measurements() {
        for reply in [&[0; 7][..], &[0; 8], &[0; 72]] {
            assert!(charges(reply).is_err());
        }
        assert!(page(b"there is no such method").is_err());
    }
}
