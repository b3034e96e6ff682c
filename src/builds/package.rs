//! The package that a manifest names, as cargo sees it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// A package of a workspace.
#[derive(Debug, Deserialize)]
pub struct Package {
    pub name: String,
    manifest_path: PathBuf,
}

/// The output of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

impl Package {
    /// Returns the package with this name, or the one of the manifest.
    ///
    /// # Errors
    ///
    /// If there is none, or the manifest is that of a workspace with several.
    pub fn of(manifest: &Path, name: Option<&str>) -> Result<Self> {
        let mut packages = packages(manifest)?;
        let names = packages.iter().map(|package| package.name.clone()).collect::<Vec<_>>();
        let found = match name {
            Some(name) => packages.iter().position(|package| package.name == name),
            None if packages.len() == 1 => Some(0),
            None => packages.iter().position(|package| package.manifest_path == manifest),
        };
        match (found, name) {
            (Some(found), _) => Ok(packages.swap_remove(found)),
            (None, Some(name)) => {
                bail!("{} has no package {name}; it has {}", manifest.display(), names.join(", "))
            }
            (None, None) => bail!(
                "{} is the manifest of a workspace; choose one of its packages with --package: {}",
                manifest.display(),
                names.join(", ")
            ),
        }
    }

    /// Returns the path of a file next to its manifest.
    pub fn file(&self, name: &str) -> PathBuf {
        self.manifest_path.with_file_name(name)
    }
}

/// Returns the packages of the manifest's workspace.
fn packages(manifest: &Path) -> Result<Vec<Package>> {
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"])
        .arg(manifest)
        .current_dir(manifest.parent().unwrap_or(manifest))
        // Those of the toolchain that runs this program.
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN")
        .stdin(Stdio::null())
        .output()
        .context("cannot run cargo; install Rust from https://rustup.rs")?;
    ensure!(
        output.status.success(),
        "cargo cannot read {}:\n{}",
        manifest.display(),
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    let metadata: Metadata = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("cargo describes {} in another format", manifest.display()))?;
    Ok(metadata.packages)
}
