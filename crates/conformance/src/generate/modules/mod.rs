//! Modules that measure each operator and each call of the System API.
//!
//! A case is a module with many update methods; each is a [`Measurement`], so that a
//! difference names the operator. Operands, immediates, sizes, and how often something
//! is repeated follow from the seed.
//!
//! | | |
//! |---|---|
//! | `measurement` | what a method measures, and how |
//! | `operators` | operators that take operands and give results |
//! | `control` | control flow, variables, references |
//! | `memory` | the heap and tables: sizes, growth, bulk operators |
//! | `system` | calls of the System API |
//! | `stable` | stable memory |

mod control;
mod measurement;
mod memory;
mod operators;
mod stable;
mod system;

pub use control::UNMEASURED;
pub use measurement::{Measurement, Work};
pub use system::NOT_CALLED;

use stablebench_workload::Rng;

use crate::{Call, Case, Kind, Source};

/// Measurements that share a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What they are about.
    pub name: &'static str,
    /// Imports that they need beside those that all have.
    pub imports: String,
    /// Each is a method.
    pub measurements: Vec<Measurement>,
    /// The argument of every call.
    pub argument: Vec<u8>,
}

/// Address from which methods answer; nothing else is there.
const ANSWER: u32 = 3 << 16;
/// Addresses below are for operands.
const OPERANDS: u64 = 60_000;

/// Everything, measured once.
pub fn groups(rng: &mut Rng) -> Vec<Group> {
    let mut groups = operators::groups(rng);
    groups.extend([
        control::group(rng),
        memory::group(rng),
        system::group(rng),
        stable::group(rng),
    ]);
    groups
}

/// Cases in which everything is measured `rounds` times with other operands.
pub fn cases(seed: u64, rounds: u16) -> Vec<Case> {
    let mut rng = Rng::new(seed);
    (0..rounds)
        .flat_map(|round| {
            let groups = groups(&mut rng);
            groups.into_iter().map(move |group| case(&group, round))
        })
        .collect()
}

fn case(group: &Group, round: u16) -> Case {
    let call = |name: &str| Call::new(Kind::Update, name, group.argument.clone());
    let mut calls: Vec<Call> =
        group.measurements.iter().map(|measurement| call(&measurement.name)).collect();
    calls.push(call("unreachable"));
    Case {
        name: format!("{}_{round:02}", group.name),
        group: "measured".to_owned(),
        module: Source::Wat(module(group)),
        install: None,
        calls,
    }
}

/// What every module has: a heap, a table, globals, and functions to call.
fn module(group: &Group) -> String {
    let methods: String = group.measurements.iter().map(Measurement::method).collect();
    let imports = &group.imports;
    format!(
        r#"(module
  (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
  (import "ic0" "msg_reply" (func $reply))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
{imports}  (type $plain (func))
  (memory 4)
  (data (i32.const 0) "\04stablebench")
  (data $bytes "bytes for memory.init: sixty-four of them, so that there is choice")
  (data $dropped "gone")
  (global $narrow (mut i32) (i32.const 1))
  (global $wide (mut i64) (i64.const 1))
  (table $table 4 funcref)
  (elem (i32.const 0) $empty $returns $tail $tail_indirect)
  (elem $elements func $empty)
  (func $empty)
  (func $returns return)
  (func $tail (return_call $empty))
  (func $tail_indirect (return_call_indirect (type $plain) (i32.const 0)))
  (func $answer (param $count i64)
    (i64.store (i32.const {ANSWER}) (local.get $count))
    (call $append (i32.const {ANSWER}) (i32.const 8)))
  (func (export "canister_update unreachable") unreachable)
{methods})
"#
    )
}

/// How often something is repeated.
fn times(rng: &mut Rng) -> u64 {
    1 + rng.below(4)
}
