//! The commands that need a PocketIC server.

use crate::Unable;
use crate::cli::{Record, Verify};

#[cfg(feature = "pocket-ic")]
pub use with_server::{record, verify};

#[cfg(not(feature = "pocket-ic"))]
pub fn record(_: &Record) -> Result<(), Unable> {
    Err(missing("record"))
}

#[cfg(not(feature = "pocket-ic"))]
pub fn verify(_: &Verify) -> Result<bool, Unable> {
    Err(missing("verify"))
}

#[cfg(not(feature = "pocket-ic"))]
fn missing(command: &str) -> Unable {
    format!(
        "{command} needs a PocketIC server, for which this program was not built; build it with\n  \
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

    use super::*;
    use crate::cli;

    pub fn record(command: &Record) -> Result<(), Unable> {
        let Record { inputs, out, calls, server } = command;
        let cases = inputs_of(command)?;
        // Not after an hour of recording: whether the file can be written at all.
        let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
        tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))
            .map_err(|error| format!("{} cannot be written: {error}", out.display()))?;
        if !calls.is_empty() && !inputs.iter().any(|input| import::is_module(input)) {
            return Err("--call is for modules, and no module is given".into());
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

    pub fn verify(command: &Verify) -> Result<bool, Unable> {
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
                crate::compare(&mut target, &command.files, progress())
            }
            Some(rules) => crate::compare(&mut target, &recorded_under(rules)?, progress()),
            None => Ok(false),
        }
    }

    /// The files of cases of this project that were recorded under these rules.
    fn recorded_under(rules: Rules) -> Result<Vec<PathBuf>, Unable> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join(rules.name());
        let missing = |error| format!("{}: {error}; name the files to run", folder.display());
        let entries = std::fs::read_dir(&folder).map_err(missing)?;
        let mut files = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        files.retain(|path| path.is_file());
        files.sort();
        Ok(files)
    }

    fn inputs_of(command: &Record) -> Result<Vec<Case>, Unable> {
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

    /// Keeps what was recorded before the end, and says where.
    fn keep(out: &Path, interrupted: &Interrupted) -> Unable {
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
            Err(error) => format!("{cause}; what was recorded is lost: {error}"),
        }
        .into()
    }

    /// Beside `out`, so that paths from there hold.
    fn partial(out: &Path) -> PathBuf {
        let mut name = OsString::from("partial-");
        name.push(out.file_name().unwrap_or_default());
        out.with_file_name(name)
    }

    fn start(server: &cli::Server) -> Result<PocketIc, Unable> {
        let target = PocketIc::start(match server.subnet {
            cli::Subnet::Application => Subnet::Application,
            cli::Subnet::System => Subnet::System,
            cli::Subnet::Benchmarking => Subnet::Benchmarking,
        })?;
        say(&format!("PocketIC server {}", target.version()));
        Ok(target)
    }

    /// A line for each case.
    fn progress() -> impl FnMut(&Case) {
        let mut number = 0;
        move |case| {
            number += 1;
            say(&format!("{number:4} {} ({} calls)", case.name, case.calls.len()));
        }
    }

    fn say(line: &str) {
        // Where stderr is closed there is nobody to tell.
        let _ = writeln!(io::stderr(), "{}", safe(line));
    }
}
