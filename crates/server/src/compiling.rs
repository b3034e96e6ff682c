//! Modules are compiled before they are installed, while the subnet is free for others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use candid::Principal;
use stablebench_replica::{Replica, text};

/// Compiling that takes longer is announced on stderr.
const NOTABLE: Duration = Duration::from_secs(1);

/// Compiles a module for a canister, which is installed later. If that takes longer than a second, a
/// line on stderr says so.
pub fn compile(replica: &Replica, canister: Principal, wasm: &[u8]) {
    let (ended, ending) = channel::<()>();
    let note = format!("compiling a module of {:.1} MB for {canister}", wasm.len() as f64 / 1e6);
    let wait = move || {
        if ending.recv_timeout(NOTABLE) == Err(RecvTimeoutError::Timeout) {
            text::note(&note);
        }
    };
    // Without a thread there is no line.
    let _ = thread::Builder::new().name("note".into()).spawn(wait);
    // The reject of an invalid module comes when it is installed.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let _ = replica.compile_for_subnet(&canister, wasm);
    }));
    drop(ended);
}
