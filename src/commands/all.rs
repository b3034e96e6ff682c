//! `stablebench run all`: every suite with its defaults.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

use super::{Output, run};
use crate::cli::{AllArgs, RunArgs, Suite, defaults};
use crate::interrupt::Interrupted;

/// Where the files go, unless that is said.
const FOLDER: &str = "stablebench-results";

/// Runs one suite after the other. One that fails does not keep the others from running,
/// an interruption does.
pub fn all(args: &AllArgs, output: &Output) -> Result<ExitCode> {
    let folder = args.run.out.clone().unwrap_or_else(|| PathBuf::from(FOLDER));
    let mut worst = ExitCode::SUCCESS;
    let mut failed = Vec::new();
    for (name, suite) in suites(&args.run, &folder)? {
        output.progress.note(&format!("run {name}"));
        match run::suite(&suite, output) {
            Ok(code) if code == ExitCode::SUCCESS => {}
            Ok(code) => worst = code,
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => failed.push(format!("{name}: {error:#}")),
        }
    }
    if !failed.is_empty() {
        bail!("{} suites failed:\n{}", failed.len(), failed.join("\n"));
    }
    Ok(worst)
}

/// Every suite by its name, told what all are told; not history, which needs a C compiler.
fn suites(run: &RunArgs, folder: &Path) -> Result<Vec<(&'static str, Suite)>> {
    let mut suites = vec![
        ("users", Suite::Users(defaults()?)),
        ("db-bench", Suite::DbBench(defaults()?)),
        ("keys", Suite::Keys(defaults()?)),
        ("sysbench", Suite::Sysbench(defaults()?)),
        ("cuckoo", Suite::Cuckoo(defaults()?)),
        ("vfs", Suite::Vfs(defaults()?)),
    ];
    for (name, suite) in &mut suites {
        let args = match suite {
            Suite::Users(args) => &mut args.run,
            Suite::DbBench(args) => &mut args.run,
            Suite::Keys(args) => &mut args.run,
            Suite::Sysbench(args) => &mut args.run,
            Suite::Cuckoo(args) => &mut args.run,
            Suite::Vfs(args) => &mut args.run,
            Suite::History(_) | Suite::All(_) => continue,
        };
        *args = RunArgs { out: Some(folder.join(name).with_extension("json")), ..run.clone() };
    }
    Ok(suites)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites::SUITES;
    use clap::Parser;

    /// None is forgotten, and each has the name that it is run by.
    #[test]
    fn all_suites_are_run() {
        let args: AllArgs = defaults().unwrap();
        let suites = suites(&args.run, Path::new("folder")).unwrap();
        let files: Vec<PathBuf> = suites
            .iter()
            .map(|(_, suite)| match suite {
                Suite::Users(args) => args.run.out("users"),
                Suite::DbBench(args) => args.run.out("db-bench"),
                Suite::Keys(args) => args.run.out("keys"),
                Suite::Sysbench(args) => args.run.out("sysbench"),
                Suite::Cuckoo(args) => args.run.out("cuckoo"),
                Suite::Vfs(args) => args.run.out("vfs"),
                Suite::History(args) => args.run.out("history"),
                Suite::All(args) => args.run.out("all"),
            })
            .collect();
        let names: Vec<PathBuf> =
            SUITES.iter().map(|(name, _)| PathBuf::from(format!("folder/{name}.json"))).collect();
        // The suite history needs a C compiler.
        assert_eq!(files, names[..names.len() - 1]);
        assert_eq!(names[names.len() - 1], PathBuf::from("folder/history.json"));
        for (name, _) in SUITES {
            assert!(crate::cli::Cli::try_parse_from(["stablebench", "run", name]).is_ok());
        }
    }
}
