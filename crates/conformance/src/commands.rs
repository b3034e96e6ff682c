//! The commands. Those that record or verify need a PocketIC server.

use std::io::{self, Write};
use std::path::PathBuf;

use stablebench_conformance::{
    Case, Embedded, Error, Outcome, Target, check_file, generate, import, write,
};
use stablebench_replica::text::safe;

use crate::cli::{Check, Generate, Record, Verify, What};

/// A failure: the differences are not known.
pub type Failed = stablebench_conformance::Failure;

pub fn check(command: &Check) -> Result<bool, Failed> {
    let mut replica = Embedded::new(command.rules)?;
    compare_files(&mut replica, &command.files, |_| {})
}

/// Runs files of cases on a target and prints the differences. Returns true if there are none. If the
/// target fails, the differences found so far are printed.
fn compare_files(
    target: &mut dyn Target,
    files: &[PathBuf],
    mut begin: impl FnMut(&Case),
) -> Result<bool, Failed> {
    let mut outcome = Outcome::default();
    let checked: Result<(), Error> =
        files.iter().try_for_each(|file| check_file(target, file, &mut outcome, &mut begin));
    let mut text = String::new();
    for difference in &outcome.differences {
        text += &format!("{}\n", safe(&difference.to_string()));
    }
    if checked.is_ok() {
        text += &format!("{} passed, {} failed\n", outcome.passed, outcome.differences.len());
    }
    match io::stdout().write_all(text.as_bytes()) {
        // A closed pipe is not an error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written?,
    }
    checked?;
    Ok(outcome.differences.is_empty())
}

pub fn make(command: &Generate) -> Result<(), Failed> {
    let Generate { what, seed, count, wasm, out } = command;
    let count = |default| count.unwrap_or(default);
    let cases = match (what, wasm) {
        (What::Modules, None) => generate::modules::cases(*seed, count(1)),
        (What::Random, None) => generate::random::cases(*seed, count(100)),
        (What::Canister, Some(wasm)) => {
            generate::canister::cases(*seed, count(10), &import::relative(wasm, out)?)?
        }
        (What::Modules | What::Random, Some(_)) => {
            return Err("--wasm is only for canister: modules and random create their own".into());
        }
        // clap requires it.
        (What::Canister, None) => return Err("canister needs --wasm FILE".into()),
    };
    write(out, &cases)?;
    let calls: usize = cases.iter().map(|case| case.calls.len()).sum();
    let _ = writeln!(io::stderr(), "{}: {} cases, {calls} calls", out.display(), cases.len());
    Ok(())
}

#[cfg(feature = "pocket-ic")]
pub use with_server::{record, verify};

#[cfg(not(feature = "pocket-ic"))]
pub fn record(_: &Record) -> Result<(), Failed> {
    Err(missing("record"))
}

#[cfg(not(feature = "pocket-ic"))]
pub fn verify(_: &Verify) -> Result<bool, Failed> {
    Err(missing("verify"))
}

#[cfg(not(feature = "pocket-ic"))]
fn missing(command: &str) -> Failed {
    format!(
        "{command} needs a PocketIC server, but this program was built without support for it; \
         build it with\n  \
         cargo run --release --features pocket-ic --bin conformance -- {command} …"
    )
    .into()
}

#[cfg(feature = "pocket-ic")]
mod with_server {
    use std::ffi::OsString;
    use std::io::{self, Write};
    use std::path::{Path, PathBuf};

    use stablebench_conformance::{Case, Interrupted, PocketIc, detect, import, write};
    use stablebench_pocket_ic::Subnet;
    use stablebench_replica::Rules;
    use stablebench_replica::text::safe;

    use super::{Failed, Record, Verify, compare_files};
    use crate::cli;

    pub fn record(command: &Record) -> Result<(), Failed> {
        let Record { inputs, out, calls, server } = command;
        let cases = inputs_of(command)?;
        // Check at the start that the file can be written, not after an hour of recording.
        let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
        tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))
            .map_err(|error| format!("{} cannot be written: {error}", out.display()))?;
        if !calls.is_empty() && !inputs.iter().any(|input| import::is_module(input)) {
            return Err("--call is for modules, but no module is given".into());
        }
        let mut target = start(server)?;
        let folder = folder.unwrap_or(Path::new("."));
        match stablebench_conformance::record(&mut target, cases, folder, progress()) {
            Ok(recorded) => {
                write(out, &recorded)?;
                say(&format!("{}: {} cases", out.display(), recorded.len()));
                Ok(())
            }
            Err(interrupted) => Err(keep(out, &interrupted)),
        }
    }

    pub fn verify(command: &Verify) -> Result<bool, Failed> {
        let mut target = start(&command.server)?;
        let rules = match detect(&mut target) {
            Ok(rules) => {
                say(&format!("charges by the rules {rules}"));
                Some(rules)
            }
            Err(undetected) => {
                say(&undetected.to_string());
                None
            }
        };
        match rules {
            _ if !command.files.is_empty() => {
                compare_files(&mut target, &command.files, progress())
            }
            Some(rules) => compare_files(&mut target, &recorded_under(rules)?, progress()),
            None => Ok(false),
        }
    }

    /// Files of cases of this project that were recorded under these rules.
    fn recorded_under(rules: Rules) -> Result<Vec<PathBuf>, Failed> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join(rules.name());
        let missing = |error| format!("{}: {error}; pass the files to run", folder.display());
        let entries = std::fs::read_dir(&folder).map_err(missing)?;
        let mut files = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        files.retain(|path| path.is_file());
        files.sort();
        Ok(files)
    }

    fn inputs_of(command: &Record) -> Result<Vec<Case>, Failed> {
        let mut cases = Vec::new();
        for input in &command.inputs {
            if import::is_module(input) {
                cases.push(import::module(input, &command.calls, &command.out)?);
            } else {
                cases.extend(import::cases(input, &command.out)?);
            }
        }
        Ok(cases)
    }

    /// Keeps the cases recorded so far and returns an error that names the file.
    fn keep(out: &Path, interrupted: &Interrupted) -> Failed {
        let Interrupted { recorded, cause } = interrupted;
        if recorded.is_empty() {
            return format!("{cause}; nothing was recorded").into();
        }
        let kept = partial(out);
        match write(&kept, recorded) {
            Ok(()) => format!(
                "recorded {} cases, which are in {}, but not the rest: {cause}",
                recorded.len(),
                kept.display()
            ),
            Err(error) => format!("{cause}; the recorded cases are lost: {error}"),
        }
        .into()
    }

    /// Next to `out`, so that relative paths stay valid.
    fn partial(out: &Path) -> PathBuf {
        let mut name = OsString::from("partial-");
        name.push(out.file_name().unwrap_or_default());
        out.with_file_name(name)
    }

    fn start(server: &cli::Server) -> Result<PocketIc, Failed> {
        let target = PocketIc::start(match server.subnet {
            cli::Subnet::Application => Subnet::Application,
            cli::Subnet::System => Subnet::System,
            cli::Subnet::Benchmarking => Subnet::Benchmarking,
        })?;
        say(&format!("PocketIC server {}", target.version()));
        Ok(target)
    }

    /// Prints a line for each case.
    fn progress() -> impl FnMut(&Case) {
        let mut number = 0;
        move |case| {
            number += 1;
            say(&format!("{number:4} {} ({} calls)", case.name, case.calls.len()));
        }
    }

    fn say(line: &str) {
        // A closed stderr is ignored.
        let _ = writeln!(io::stderr(), "{}", safe(line));
    }
}
