use stablebench_protocol::CrateVersion;

/// The versions of crates that a canister is built with, as `build.rs` read them. Which
/// crates it knows stands there.
pub fn crate_versions(names: &[&str]) -> Vec<CrateVersion> {
    env!("CRATE_VERSIONS")
        .split(',')
        .filter_map(|crate_version| crate_version.split_once(' '))
        .filter(|(name, _)| names.contains(name))
        .map(|(name, version)| CrateVersion { name: name.into(), version: version.into() })
        .collect()
}
