//! Motoko's actors: calls, errors, cycles, timers, heartbeats, and upgrades of both kinds of
//! persistence.
//!
//! Their modules are those of the tests of `stablebench-replica`, whose README describes them.

use std::path::Path;

use candid::utils::ArgumentEncoder;
use candid::{Nat, Principal, encode_args, func};
use ic_management_canister_types::{
    CanisterInstallMode, InstallCodeArgs, UpgradeFlags, WasmMemoryPersistence,
};
use stablebench_conformance::subnet::{ArgumentPart, SubnetCase};
use stablebench_conformance::{Error, MessageKind};
use stablebench_replica::files;

use super::script::{Case, candid, id, of_group};
use crate::relative_text;

/// The folder of the modules.
const MODULES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/replica/tests/motoko");
/// A module that is replaced at once.
const EMPTY: &str = "(module)";
/// Nanoseconds between two ticks of a timer.
const SECOND: u64 = 1_000_000_000;

// A reference to an actor.
candid::define_service!(Other : {
    "add": func!((Nat) -> (Nat));
    "fail": func!((String) -> ());
    "pay": func!(() -> (Nat));
    "get": func!(() -> (Nat) query);
});

/// All cases, whose paths begin at the folder of `out`.
///
/// # Errors
///
/// If a module cannot be read.
pub fn cases(out: &Path) -> Result<Vec<SubnetCase>, Error> {
    let cases = vec![
        calls(out, "classical")?,
        calls(out, "enhanced")?,
        classical_upgrades(out)?,
        enhanced_upgrades(out)?,
    ];
    Ok(of_group("motoko", cases))
}

fn other(number: u8) -> Other {
    Other::new(id(number))
}

/// Two actors, and the file of the cases.
struct Actors<'a>(Case, &'a Path);

impl<'a> Actors<'a> {
    fn new(out: &'a Path, module: &str) -> Result<Self, Error> {
        let mut actors = Self(Case::default(), out);
        for number in 0..2_u8 {
            let start = encode((Nat::from(10 * (number + 1)),));
            actors.install(number.into(), CanisterInstallMode::Reinstall, module, &start)?;
        }
        Ok(actors)
    }

    /// The user installs a module.
    fn install(
        &mut self,
        actor: usize,
        mode: CanisterInstallMode,
        module: &str,
        argument: &[u8],
    ) -> Result<(), Error> {
        let path = Path::new(MODULES).join(format!("{module}.wasm.gz"));
        let wasm_module = files::read(&path, files::MAX_MODULE)
            .map_err(|cause| Error::Read { path: path.clone(), cause })?;
        let file = relative_text(&path, self.1)?;
        let install = InstallCodeArgs {
            mode,
            canister_id: id(actor as u8),
            wasm_module: wasm_module.clone(),
            arg: argument.to_vec(),
            sender_canister_version: None,
        };
        let bytes = candid((install,));
        let at = bytes.windows(wasm_module.len()).position(|part| part == wasm_module);
        let at = at.unwrap_or_default();
        let (before, after) = (&bytes[..at], &bytes[at + wasm_module.len()..]);
        let parts = vec![
            ArgumentPart::Bytes(before.to_vec()),
            ArgumentPart::File(file),
            ArgumentPart::Bytes(after.to_vec()),
        ];
        self.0.management(actor, "install_code", parts);
        // Installations are limited by time.
        self.0.rounds(60);
        Ok(())
    }

    fn update(&mut self, method: &str, arguments: impl ArgumentEncoder) {
        self.0.method(MessageKind::Update, 0, method, &encode(arguments));
    }

    fn query(&mut self, actor: usize, method: &str, arguments: impl ArgumentEncoder) {
        self.0.method(MessageKind::Query, actor, method, &encode(arguments));
    }

    fn counts(&mut self) {
        for actor in 0..2 {
            self.query(actor, "counts", ());
        }
    }

    fn named(self, name: &str) -> SubnetCase {
        self.0.of(name, vec![EMPTY.to_owned(); 2])
    }
}

fn encode(arguments: impl ArgumentEncoder) -> Vec<u8> {
    encode_args(arguments).unwrap_or_default()
}

fn nat(number: u64) -> Nat {
    Nat::from(number)
}

fn calls(out: &Path, kind: &str) -> Result<SubnetCase, Error> {
    let mut actors = Actors::new(out, &format!("{kind}_counter"))?;
    actors.counts();
    actors.update("add", (nat(5),));
    actors.update("get", ());
    actors.query(0, "get", ());
    actors.query(0, "add", (nat(5),));
    actors.update("add", ("no number",));
    actors.update("missing", ());
    for callee in [1, 0] {
        actors.update("addThere", (nat(7), other(callee)));
        actors.update("addAndTrap", (nat(2), other(callee)));
        actors.update("catchThere", ("a reason", other(callee)));
        actors.counts();
    }
    actors.update("addThere", (nat(7), other(9)));
    actors.update("catchThere", ("a reason", other(9)));
    actors.update("addThere", (nat(7), Other::new(Principal::anonymous())));
    actors.update("fail", ("a reason",));
    actors.update("sum", (other(0), other(1)));
    actors.update("sum", (other(1), other(1)));
    actors.query(0, "getThere", (other(1),));
    actors.query(0, "getThere", (other(9),));
    for cycles in [0, 1_001, 5_000_000_000, u64::MAX] {
        actors.update("payThere", (nat(cycles), other(1)));
    }
    actors.query(0, "costOfCall", (10_u64, 1_000_u64));
    actors.query(0, "last", ());
    actors.update("append", (3_u64,));
    actors.update("append", (4_u64,));
    actors.query(0, "last", ());
    for numbers in [1, 1_000, 100_000, 1_000_000] {
        actors.update("allocate", (nat(numbers),));
    }
    actors.update("startTimer", (SECOND,));
    actors.0.rounds_after(1, 0);
    actors.counts();
    for _ in 0..3 {
        actors.0.rounds_after(2, 1);
        actors.counts();
    }
    actors.update("add", (nat(0),));
    Ok(actors.named(&format!("{kind}_calls")))
}

fn keeping(persistence: WasmMemoryPersistence) -> CanisterInstallMode {
    CanisterInstallMode::Upgrade(Some(UpgradeFlags {
        skip_pre_upgrade: None,
        wasm_memory_persistence: Some(persistence),
    }))
}

/// Stores something of each kind in actor 0.
fn filled<'a>(out: &'a Path, module: &str) -> Result<Actors<'a>, Error> {
    let mut actors = Actors::new(out, module)?;
    actors.update("add", (nat(5),));
    actors.update("append", (17_u64,));
    actors.update("allocate", (nat(50_000),));
    actors.counts();
    Ok(actors)
}

fn classical_upgrades(out: &Path) -> Result<SubnetCase, Error> {
    let mut actors = filled(out, "classical_counter")?;
    let (upgrade, start) = (CanisterInstallMode::Upgrade(None), encode((nat(99),)));
    actors.install(0, upgrade, "classical_counter", &start)?;
    actors.counts();
    actors.query(0, "last", ());
    actors.install(0, keeping(WasmMemoryPersistence::Keep), "classical_counter", &start)?;
    actors.install(0, keeping(WasmMemoryPersistence::Replace), "classical_counter", &start)?;
    actors.counts();
    // Without the argument that the constructor wants.
    actors.install(0, upgrade, "classical_counter", &encode(()))?;
    actors.counts();
    actors.update("startTimer", (SECOND,));
    next(&mut actors, upgrade, "classical_counter_next")?;
    Ok(actors.named("classical_upgrades"))
}

fn enhanced_upgrades(out: &Path) -> Result<SubnetCase, Error> {
    let mut actors = filled(out, "enhanced_counter")?;
    let start = encode((nat(99),));
    let keep = keeping(WasmMemoryPersistence::Keep);
    actors.install(0, keep, "enhanced_counter", &start)?;
    actors.counts();
    actors.query(0, "last", ());
    let none = CanisterInstallMode::Upgrade(None);
    for mode in [none, keeping(WasmMemoryPersistence::Replace)] {
        actors.install(0, mode, "enhanced_counter", &start)?;
        actors.counts();
    }
    actors.install(0, keep, "enhanced_counter", &encode(()))?;
    actors.counts();
    actors.update("startTimer", (SECOND,));
    next(&mut actors, keep, "enhanced_counter_next")?;
    // From one kind of persistence to the other.
    actors.install(1, keep, "classical_counter", &start)?;
    actors.install(1, none, "classical_counter", &start)?;
    Ok(actors.named("enhanced_upgrades"))
}

/// Upgrades to the next version, which has a heartbeat.
fn next(actors: &mut Actors<'_>, mode: CanisterInstallMode, module: &str) -> Result<(), Error> {
    actors.install(0, mode, module, &encode(()))?;
    actors.query(0, "counts", ());
    actors.0.rounds(3);
    actors.query(0, "counts", ());
    actors.update("add", (nat(1),));
    actors.query(0, "last", ());
    actors.update("append", (18_u64,));
    Ok(())
}
