//! Modules that measure each operator and each call of the System API.
//!
//! A case is a module with many update methods. Each is a [`Measurement`], so that a difference names
//! the operator. Operands, immediates, sizes and repetitions follow from the seed.
//!
//! | | |
//! |---|---|
//! | `measurement` | measurements and their methods |
//! | `operators` | operators that take operands and give results |
//! | `control` | control flow, variables, references |
//! | `memory` | heap, tables and stable memory: sizes, growth, copies |
//! | `system` | System API calls |

mod control;
mod measurement;
mod memory;
mod operators;
mod system;

pub use control::UNMEASURED;
pub use measurement::{Group, Measurement, Work};
pub use system::NOT_CALLED;

use stablebench_conformance::{Call, Case, Kind, Source};
use stablebench_workload::Rng;

/// Address of the reply, which nothing else uses.
const ANSWER: u32 = 3 << 16;

/// Measurements of everything, once.
pub fn groups(rng: &mut Rng) -> Vec<Group> {
    let mut groups = operators::groups(rng);
    groups.extend([
        control::group(rng),
        memory::heap_group(rng),
        system::group(rng),
        memory::stable_group(rng),
    ]);
    groups
}

/// Generates cases in which everything is measured `rounds` times with different operands.
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

/// The text of a module: a heap, a table, globals, helper functions, and the methods.
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
