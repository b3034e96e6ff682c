//! Holds the embedded replica against recorded cases:
//! `conformance FILE…`, exit code 1 on any difference.

use std::path::PathBuf;
use std::process::ExitCode;

use stablebench_replica::Replica;

#[path = "../tests/conformance/mod.rs"]
mod conformance;

fn main() -> ExitCode {
    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if files.is_empty() {
        eprintln!("usage: conformance FILE…");
        return ExitCode::from(2);
    }
    // Cases that share a module compile it once.
    let cache = tempfile::tempdir().ok();
    let replica = match Replica::new(cache.as_ref().map(|cache| cache.path().to_owned())) {
        Ok(replica) => replica,
        Err(error) => {
            eprintln!("conformance: {error}");
            return ExitCode::from(2);
        }
    };
    let mut total = conformance::Outcome::default();
    for file in &files {
        if let Err(error) = conformance::run_file(&replica, file, &mut total) {
            eprintln!("conformance: {error}");
            return ExitCode::from(2);
        }
    }
    for difference in &total.differences {
        println!("{difference}");
    }
    println!("{} passed, {} failed", total.passed, total.differences.len());
    if total.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
