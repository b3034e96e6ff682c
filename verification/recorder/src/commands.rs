//! The commands. Those that record or verify start a PocketIC server.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use stablebench_conformance::{Case, Failure, compared, subnet, write};
use stablebench_pocket_ic::Subnet;
use stablebench_recorder::{Interrupted, PocketIc, generate, import};
use stablebench_replica::Rules;
use stablebench_replica::text::note;

use crate::cli::{Generate, Record, Server, Subnet as SubnetKind, Verify, What};

pub fn make(command: &Generate) -> Result<(), Failure> {
    let Generate { what, seed, count, wasm, out } = command;
    let count = |default| count.unwrap_or(default);
    if *what != What::Canister && wasm.is_some() {
        return Err("--wasm is only for canister: the others create their own modules".into());
    }
    let of_subnets = match what {
        What::Calls => Some(generate::calls::cases(*seed, count(100))),
        What::Management => Some(generate::management::cases()),
        What::Settings => Some(generate::settings::cases()),
        What::Motoko => Some(generate::motoko::cases(out)?),
        What::Services => Some(generate::services::cases()),
        What::Snapshots => Some(generate::snapshots::cases()),
        What::Modules | What::Random | What::Canister => None,
    };
    if let Some(cases) = of_subnets {
        subnet::write(out, &cases)?;
        let steps: usize = cases.iter().map(|case| case.steps.len()).sum();
        note(&format!("{}: {} cases, {steps} steps", out.display(), cases.len()));
        return Ok(());
    }
    let cases = match (what, wasm) {
        (What::Modules, _) => generate::modules::cases(*seed, count(1)),
        (What::Canister, Some(wasm)) => {
            generate::canister::cases(*seed, count(10), &import::relative(wasm, out)?)?
        }
        // clap requires it.
        (What::Canister, None) => return Err("canister needs --wasm FILE".into()),
        _ => generate::random::cases(*seed, count(100)),
    };
    write(out, &cases)?;
    let calls: usize = cases.iter().map(|case| case.calls.len()).sum();
    note(&format!("{}: {} cases, {calls} calls", out.display(), cases.len()));
    Ok(())
}

pub fn record(command: &Record) -> Result<(), Failure> {
    let Record { inputs, out, calls, server } = command;
    let of_subnets = |input: &&PathBuf| {
        Ok::<_, Failure>(!import::is_module(input) && subnet::is_file_of_subnets(input)?)
    };
    let subnets = inputs.iter().map(|input| of_subnets(&input)).collect::<Result<Vec<_>, _>>()?;
    if subnets.contains(&true) {
        if subnets.contains(&false) {
            return Err("cases of one canister and of several are recorded separately".into());
        }
        return record_subnets(command);
    }
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
    let mut begin = progress();
    let begin = |case: &Case| begin(&case.name, case.calls.len());
    match stablebench_recorder::record(&mut target, cases, folder, begin) {
        Ok(recorded) => {
            write(out, &recorded)?;
            note(&format!("{}: {} cases", out.display(), recorded.len()));
            Ok(())
        }
        Err(interrupted) => Err(keep(out, &interrupted)),
    }
}

fn record_subnets(command: &Record) -> Result<(), Failure> {
    let Record { inputs, out, server, .. } = command;
    let mut target = start(server)?;
    let mut begin = progress();
    let folder = out.parent().unwrap_or(Path::new("."));
    let mut recorded = Vec::new();
    for input in inputs {
        for case in import::subnet_cases(input, out)? {
            begin(&case.name, case.steps.len());
            recorded.push(subnet::answered(&mut target, &case, folder)?);
        }
    }
    subnet::write(out, &recorded)?;
    note(&format!("{}: {} cases", out.display(), recorded.len()));
    Ok(())
}

pub fn verify(command: &Verify) -> Result<bool, Failure> {
    let mut target = start(&command.server)?;
    let rules = match target.rules() {
        Ok(rules) => {
            note(&format!("charges by the rules {rules}"));
            Some(rules)
        }
        Err(undetected) => {
            note(&undetected.to_string());
            None
        }
    };
    match rules {
        _ if !command.files.is_empty() => compared(&mut target, &command.files, progress()),
        Some(rules) => compared(&mut target, &recorded_under(rules)?, progress()),
        None => Ok(false),
    }
}

/// The recorded cases of this project.
const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/conformance/cases");

/// Files of cases of this project that hold under these rules: those that were recorded under
/// them, and those of rules with the same charges that were not recorded again.
fn recorded_under(rules: Rules) -> Result<Vec<PathBuf>, Failure> {
    let folder = |name| Path::new(CASES).join(name);
    let mut folders = vec![folder(rules.name())];
    if rules == Rules::of_2026_10() {
        folders.push(folder(Rules::of_2026_08().name()));
    }
    let mut files = BTreeMap::new();
    for folder in folders {
        let missing = |error| format!("{}: {error}; pass the files to run", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(missing)? {
            let entry = entry?;
            if entry.path().is_file() {
                files.entry(entry.file_name()).or_insert_with(|| entry.path());
            }
        }
    }
    Ok(files.into_values().collect())
}

fn inputs_of(command: &Record) -> Result<Vec<Case>, Failure> {
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
fn keep(out: &Path, interrupted: &Interrupted) -> Failure {
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

fn start(server: &Server) -> Result<PocketIc, Failure> {
    let target = PocketIc::start(match server.subnet {
        SubnetKind::Application => Subnet::Application,
        SubnetKind::System => Subnet::System,
        SubnetKind::Benchmarking => Subnet::Benchmarking,
    })?;
    note(&format!("PocketIC server {}", target.version()));
    Ok(target)
}

/// Prints a line for each case.
fn progress() -> impl FnMut(&str, usize) {
    let mut number = 0;
    move |case, calls| {
        number += 1;
        note(&format!("{number:4} {case} ({calls} calls)"));
    }
}
