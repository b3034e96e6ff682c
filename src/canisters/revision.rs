//! The revision of the sources.

use std::path::Path;
use std::process::Command;

/// The files that runs and reports change. None of them changes a result.
const OUTCOMES: [&str; 5] = [
    ":!suites/*/results*.json",
    ":!suites/*/README.md",
    ":!verification/results",
    ":!docs",
    ":!README.md",
];

/// Returns the revision of the sources in a folder, with `-dirty` if they were changed since, if
/// git knows it.
pub fn revision_of(root: &Path) -> Option<String> {
    let at = git(root, &["rev-parse", "--short", "HEAD"])?;
    let status = ["status", "--porcelain", "--untracked-files=no", "--", "."];
    let changed = git(root, &[&status[..], &OUTCOMES].concat())?;
    Some(if changed.is_empty() { at } else { format!("{at}-dirty") })
}

fn git(root: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).current_dir(root).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn changed_sources_are_dirty_and_changed_outcomes_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        assert_eq!(revision_of(root), None, "there is no repository");
        fs::create_dir_all(root.join("suites/users")).unwrap();
        for file in ["source.rs", "README.md", "suites/users/results.json"] {
            fs::write(root.join(file), "before").unwrap();
        }
        let who = [
            "-c",
            "user.name=nobody",
            "-c",
            "user.email=nobody@localhost",
            "-c",
            "commit.gpgsign=false",
        ];
        for args in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "all"]] {
            git(root, &[&who, args].concat()).unwrap();
        }
        let clean = revision_of(root).unwrap();
        assert!(clean.len() >= 7 && clean.bytes().all(|byte| byte.is_ascii_hexdigit()), "{clean}");
        for (file, dirty) in
            [("README.md", false), ("suites/users/results.json", false), ("source.rs", true)]
        {
            fs::write(root.join(file), "after").unwrap();
            let expected = if dirty { format!("{clean}-dirty") } else { clean.clone() };
            assert_eq!(revision_of(root).unwrap(), expected, "{file}");
        }
    }
}
