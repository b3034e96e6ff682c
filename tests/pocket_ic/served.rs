//! The tool itself as a PocketIC server, as its users start it.

use stablebench_replica::Rules;

use crate::replica::CACHE_HOME;

/// The tool.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_stablebench");

/// The versions on which all scenarios run, with the rules of their time.
pub const VERSIONS: [(&str, &str); 2] = [("served_16", "16.1.0"), ("served_10", "10.0.0")];

/// Returns the rules of the servers of a version.
pub fn rules_of(version: &str) -> Rules {
    if version.starts_with("10.") { Rules::of_2025_10() } else { Rules::of_2026_10() }
}

/// Returns the environment in which clients start the tool as a server of a version.
pub fn environment(version: &str) -> Vec<(&'static str, String)> {
    vec![
        (stablebench_pocket_ic::BINARY, PROGRAM.to_owned()),
        ("STABLEBENCH_POCKET_IC_VERSION", version.to_owned()),
        ("STABLEBENCH_RULES", rules_of(version).name().to_owned()),
        ("XDG_CACHE_HOME", CACHE_HOME.to_owned()),
    ]
}
