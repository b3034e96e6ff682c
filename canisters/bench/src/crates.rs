use stablebench_protocol::CrateVersion;

/// The crates that decide what the engines cost, as `build.rs` read them.
pub fn versions() -> Vec<CrateVersion> {
    env!("CRATE_VERSIONS")
        .split(',')
        .filter_map(|crate_version| crate_version.split_once(' '))
        .map(|(name, version)| CrateVersion { name: name.into(), version: version.into() })
        .collect()
}
