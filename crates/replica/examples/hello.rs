//! Runs a canister and prints its reply and its cost.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use stablebench_replica::{Principal, Replica};

const CANISTER: &str = r#"(module
    (import "ic0" "msg_arg_data_size" (func $size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (memory 1) (data (i32.const 0) "Hello, ")
    (func (export "canister_update greet")
        (call $argument (i32.const 7) (i32.const 0) (call $size))
        (call $append (i32.const 0) (i32.add (i32.const 7) (call $size)))
        (call $reply)))"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let replica = Replica::new(stablebench_replica::Rules::of_2025_10(), None)?;
    let module = replica.compile(&wat::parse_str(CANISTER)?)?;
    let mut canister = replica.create_canister()?;
    canister.install(&module, Principal::anonymous(), &[])?.outcome?;
    let execution = canister.update(Principal::anonymous(), "greet", b"world")?;
    println!("{}", String::from_utf8(execution.outcome?)?);
    println!("{} instructions, {} cycles", execution.instructions, execution.cycles);
    Ok(())
}
