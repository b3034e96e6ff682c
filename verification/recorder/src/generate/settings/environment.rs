//! Environment variables, and the calls that read them.

use ic_management_canister_types::{CanisterSettings, EnvironmentVariable};
use stablebench_conformance::Kind;
use stablebench_conformance::subnet::SubnetCase;

use super::super::steps::{Case, without_heartbeat};
use super::{none, set, status};

/// A module that reads environment variables. Each method returns what it read and the instructions
/// so far. `name` and `value` copy into a buffer of 1 000 bytes, from the offset in their argument.
const ENVIRONMENT: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_arg_data_size" (func $arg_size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $arg_copy (param i32 i32 i32)))
    (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
    (import "ic0" "env_var_count" (func $count (result i32)))
    (import "ic0" "env_var_name_size" (func $name_size (param i32) (result i32)))
    (import "ic0" "env_var_name_copy" (func $name_copy (param i32 i32 i32 i32)))
    (import "ic0" "env_var_name_exists" (func $exists (param i32 i32) (result i32)))
    (import "ic0" "env_var_value_size" (func $value_size (param i32 i32) (result i32)))
    (import "ic0" "env_var_value_copy" (func $value_copy (param i32 i32 i32 i32 i32)))
    (memory 1)
    (func $argument
        (call $arg_copy (i32.const 1000) (i32.const 0) (call $arg_size)))
    (func $done (param $size i32)
        (call $append (i32.const 8) (local.get $size))
        (i64.store (i32.const 0) (call $counter (i32.const 0)))
        (call $append (i32.const 0) (i32.const 8)) (call $reply))
    (func $number (param $number i32)
        (i32.store (i32.const 8) (local.get $number)) (call $done (i32.const 4)))
    (func (export "canister_update count") (call $number (call $count)))
    (func (export "canister_query count_in_query") (call $number (call $count)))
    (func (export "canister_update name_size") (call $argument)
        (call $number (call $name_size (i32.load (i32.const 1000)))))
    (func (export "canister_update name") (call $argument)
        (call $name_copy (i32.load (i32.const 1000)) (i32.const 8) (i32.load (i32.const 1004))
            (i32.load (i32.const 1008)))
        (call $done (i32.load (i32.const 1008))))
    (func (export "canister_update exists") (call $argument)
        (call $number (call $exists (i32.const 1000) (call $arg_size))))
    (func (export "canister_update value_size") (call $argument)
        (call $number (call $value_size (i32.const 1000) (call $arg_size))))
    (func (export "canister_update value") (call $argument)
        (call $value_copy (i32.const 1008) (i32.sub (call $arg_size) (i32.const 8)) (i32.const 8)
            (i32.load (i32.const 1000)) (i32.load (i32.const 1004)))
        (call $done (i32.load (i32.const 1004))))
    (func (export "canister_update outside")
        (call $number (call $exists (i32.const 65530) (i32.const 10)))))"#;

pub fn environment() -> SubnetCase {
    let mut case = Case::default();
    let variables = |variables: &[(&str, &str)]| {
        let variable = |(name, value): &(&str, &str)| EnvironmentVariable {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        };
        let variables = variables.iter().map(variable).collect();
        CanisterSettings { environment_variables: Some(variables), ..none() }
    };
    let update = |case: &mut Case, method: &str, argument: &[u8]| {
        case.method(Kind::Update, 1, method, argument);
    };
    let numbers =
        |numbers: [u32; 3]| numbers.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<_>>();
    update(&mut case, "count", &[]);
    update(&mut case, "name_size", &numbers([0, 0, 0]));
    update(&mut case, "exists", b"name");
    update(&mut case, "value_size", b"name");
    let long = "n".repeat(128);
    set(
        &mut case,
        variables(&[("name", "value"), ("b", ""), (&long, "long"), ("ä", "ö\u{1f600}")]),
    );
    update(&mut case, "count", &[]);
    case.method(Kind::Query, 1, "count_in_query", &[]);
    for index in 0..5 {
        update(&mut case, "name_size", &numbers([index, 0, 0]));
        update(&mut case, "name", &numbers([index, 0, 1]));
    }
    update(&mut case, "name", &numbers([2, 1, 3]));
    update(&mut case, "name", &numbers([2, 0, 5]));
    update(&mut case, "name", &numbers([2, 4, 0]));
    update(&mut case, "name", &numbers([2, 5, 0]));
    update(&mut case, "name", &numbers([2, u32::MAX, 2]));
    for name in ["name", "b", "ä", "other", "", "NAME", &long, &"n".repeat(129)] {
        update(&mut case, "exists", name.as_bytes());
        update(&mut case, "value_size", name.as_bytes());
        update(&mut case, "value", &[&[0; 8], name.as_bytes()].concat());
    }
    let from = |offset: u32, size: u32, name: &[u8]| {
        [offset.to_le_bytes().as_slice(), &size.to_le_bytes(), name].concat()
    };
    for (offset, size) in [(0, 5), (1, 4), (1, 5), (5, 0), (6, 0), (u32::MAX, 1)] {
        update(&mut case, "value", &from(offset, size, b"name"));
    }
    update(&mut case, "value", &from(0, 6, "ä".as_bytes()));
    update(&mut case, "exists", &[0xff, 0xfe]);
    update(&mut case, "value_size", &[0xff]);
    update(&mut case, "outside", &[]);
    set(&mut case, variables(&[]));
    update(&mut case, "count", &[]);
    update(&mut case, "exists", b"name");
    status(&mut case);
    case.of("environment", vec![without_heartbeat(), ENVIRONMENT.to_owned()])
}
