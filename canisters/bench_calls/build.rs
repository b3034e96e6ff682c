//! Translates the modules of the canister that is called, and exports the versions of the crates
//! that decide what a call costs.

use std::path::Path;
use std::{env, fs};

#[path = "../locked_versions.rs"]
mod locked_versions;

const SOURCE: &str = "src/callee.wat";

/// The modules, and the task that each exports.
const MODULES: [(&str, &str); 3] = [
    ("plain", ""),
    ("heartbeat", r#"(export "canister_heartbeat" (func $task))"#),
    ("timer", r#"(export "canister_global_timer" (func $timer))"#),
];

fn main() {
    locked_versions::main();
    println!("cargo::rerun-if-changed={SOURCE}");
    let text =
        fs::read_to_string(SOURCE).unwrap_or_else(|error| panic!("cannot read {SOURCE}: {error}"));
    let out = env::var("OUT_DIR").unwrap_or_default();
    for (name, export) in MODULES {
        let wasm = wat::parse_str(format!("(module {text} {export})"))
            .unwrap_or_else(|error| panic!("{SOURCE}: {error}"));
        let path = Path::new(&out).join(name).with_extension("wasm");
        fs::write(&path, wasm)
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }
}
