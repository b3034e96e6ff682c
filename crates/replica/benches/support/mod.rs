//! Canisters for benchmarks.

#![allow(dead_code, reason = "each benchmark uses a part of this module")]

use std::sync::OnceLock;

use stablebench_replica::{Canister, Execution, Module, Principal, Replica};

/// A canister with StableBTreeMap and SQLite (`ic-rusqlite`), compiled from Rust. The recorded cases
/// use the same module.
const USERS: &[u8] = include_bytes!("../../../conformance/cases/users.wasm.gz");

/// Runs the benchmarks on a stack that is large enough for WebAssembly code.
pub fn on_a_large_stack(run: fn()) {
    std::thread::Builder::new().stack_size(32 << 20).spawn(run).unwrap().join().unwrap();
}

/// The replica.
pub fn replica() -> &'static Replica {
    static REPLICA: OnceLock<Replica> = OnceLock::new();
    REPLICA.get_or_init(|| Replica::new(stablebench_replica::Rules::of_2025_10(), None).unwrap())
}

/// A module from text.
pub fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

/// Installs a module in a new canister.
pub fn install(module: &Module) -> Canister {
    install_on(replica(), module)
}

/// Installs a module in a new canister of a replica.
pub fn install_on(replica: &Replica, module: &Module) -> Canister {
    let mut canister = replica.create_canister().unwrap();
    let none = [0x44, 0x49, 0x44, 0x4c, 0, 0];
    canister.install(module, Principal::anonymous(), &none).unwrap().outcome.unwrap();
    canister
}

/// Sends an update that must succeed.
pub fn update(canister: &mut Canister, method: &str, argument: &[u8]) -> Execution {
    let execution = canister.update(Principal::anonymous(), method, argument).unwrap();
    if let Err(reject) = &execution.outcome {
        panic!("{method}: {reject}");
    }
    execution
}

/// Sends a query that must succeed.
pub fn query(canister: &Canister, method: &str, argument: &[u8]) -> Execution {
    let execution = canister.query(Principal::anonymous(), method, argument).unwrap();
    if let Err(reject) = &execution.outcome {
        panic!("{method}: {reject}");
    }
    execution
}

/// The canister of `users.wasm.gz`.
pub mod users {
    use super::*;

    /// Its module with charges.
    pub fn metered() -> &'static Module {
        static MODULE: OnceLock<Module> = OnceLock::new();
        MODULE.get_or_init(|| replica().compile(USERS).unwrap())
    }

    /// The module as it was uploaded.
    pub fn uploaded() -> &'static [u8] {
        USERS
    }

    /// A journal in memory: one text in Candid.
    pub const JOURNAL: &[u8] = b"DIDL\0\x01\x71\x06memory";

    /// Creates an empty SQLite table.
    pub fn create_table(canister: &mut Canister) {
        update(canister, "create_tables", JOURNAL);
    }

    /// Adds rows with the ids first, first + 10, ….
    pub fn add(canister: &mut Canister, method: &str, first: u64, rows: u64) -> Execution {
        update(canister, method, &self::rows(first, rows))
    }

    /// The argument of [`add`].
    pub fn rows(first: u64, rows: u64) -> Vec<u8> {
        // Three numbers of 64 bits in Candid.
        let mut argument = b"DIDL\0\x03\x78\x78\x78".to_vec();
        for number in [first, 10, rows] {
            argument.extend(number.to_le_bytes());
        }
        argument
    }

    /// Creates a canister with `rows` rows in SQLite or in the map.
    pub fn with_rows(method: &'static str, rows: u64) -> Canister {
        let mut canister = install(metered());
        create_table(&mut canister);
        for first in (0..rows).step_by(100_000) {
            add(&mut canister, method, first * 10, 100_000.min(rows - first));
        }
        canister
    }
}
