//! Modules that are taken, and modules that are not.

use stablebench_protocol::Description;

use super::traps::{CELLS, cells, set};
use crate::bench::{Bench, WASM};
use crate::beside::{Beside, wasm};
use crate::canister::{CONTROLLER, Canister, Mode, Replica};

/// An ingress message has at most 2 MiB: a larger module goes in chunks.
pub fn small_and_large(replica: &dyn Replica) {
    let mut small = Beside::new(replica);
    refuses_while_empty(&mut small);
    small.install(Mode::Install, &wasm(CELLS), &[]).unwrap();
    assert_eq!(cells(&mut small), (0, 0));
    set(&mut small, 3);

    assert!(WASM.len() > 2 << 20, "the bench canister has {} bytes", WASM.len());
    let mut large = Bench::new(replica);
    let fresh: Description = large.query("describe", ());
    large.install(Mode::Upgrade);
    assert_eq!(large.query::<Description>("describe", ()).engines, fresh.engines);
    large.install(Mode::Reinstall);
    assert_eq!(large.query::<Description>("describe", ()), fresh);
}

/// A message to a canister without code is not let in and costs nothing.
fn refuses_while_empty(canister: &mut Beside) {
    let refused = canister.update(CONTROLLER, "set", &[]);
    assert_eq!(refused.outcome.unwrap_err().code, "CanisterWasmModuleNotFound");
    assert_eq!(refused.cycles, 0);
}

pub fn refused(replica: &dyn Replica) {
    let mut canister = Beside::new(replica);
    let mut refusal = |module: &[u8]| {
        let refused = canister.install(Mode::Install, module, &[]);
        refused.expect_err("this is no module for a canister").code
    };
    assert_eq!(refusal(b"\0asm, but no more"), "CanisterInvalidWasm");
    let unknown = wasm(r#"(module (import "ic0" "no_such_call" (func)))"#);
    assert_eq!(refusal(&unknown), "CanisterInvalidWasm");
    let start = wasm(r#"(module (func (export "canister_init") (param i32)))"#);
    assert_eq!(refusal(&start), "CanisterInvalidWasm");
    // The canister is as empty as before.
    refuses_while_empty(&mut canister);
    canister.install(Mode::Install, &wasm(CELLS), &[]).unwrap();
    assert_eq!(cells(&mut canister), (0, 0));
}

pub fn that_traps(replica: &dyn Replica) {
    let mut canister = Beside::with(replica, CELLS);
    set(&mut canister, 5);
    let traps = wasm(r#"(module (func (export "canister_init") (unreachable)))"#);
    let trapped = canister.install(Mode::Reinstall, &traps, &[]).unwrap_err();
    assert_eq!(trapped.code, "CanisterTrapped");
    assert_eq!(cells(&mut canister), (5, 5), "the canister is as it was");
}
