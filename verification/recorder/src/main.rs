//! The program `recorder`, which generates and records cases, and verifies servers. See `--help`.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use stablebench_conformance::subnet::SubnetCase;
use stablebench_conformance::{
    Call, Case, Error, Failure, MessageKind, SelectedFile, answered, compared, is_selected, read,
    replaced, require_groups, subnet, write,
};
use stablebench_pocket_ic::Subnet;
use stablebench_recorder::{self as recorder, Interrupted, PocketIc, generate};
use stablebench_replica::Rules;
use stablebench_replica::text::note;

const EXAMPLES: &str = "\
Examples:
  recorder generate random --seed 7 --count 100 -o random.json.gz
  POCKET_IC_BIN=./pocket-ic recorder record random.json.gz -o recorded.json.gz
  POCKET_IC_BIN=./pocket-ic recorder record --group pages canister.json.gz -o canister.json.gz
  POCKET_IC_BIN=./pocket-ic recorder record my.wasm --call update:set:00 -o my.json
  POCKET_IC_BIN=./newer/pocket-ic recorder verify recorded.json.gz my.json

`conformance check` runs the recorded cases on the embedded replica.

Exit codes: 0 no differences, 1 differences, 2 failure.";

/// Generates cases, records the answers of a PocketIC server, and verifies servers by them
#[derive(Debug, Parser)]
#[command(name = "recorder", version, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs cases on a PocketIC server and records the answers
    Record(Record),
    /// Runs recorded cases on a PocketIC server and lists differences
    Verify(Verify),
    /// Generates cases to record
    Generate(Generate),
}

#[derive(Debug, Args)]
#[command(long_about = "Runs cases on a PocketIC server and records the answers.\n\n\
        The server is the one that POCKET_IC_BIN names. Each case runs on a new instance with its \
        canisters. Inputs are files of cases, recorded or not, and modules (.wat, .wasm, .wasm.gz): \
        each exported update and query of a module is called once with an empty argument, unless \
        --call is given. With --group, only cases of these groups are run, and OUT keeps its cases \
        of other groups. OUT is written when everything is recorded; if the server fails, the \
        cases recorded so far are kept in a file next to it.")]
struct Record {
    /// Files of cases, and modules
    #[arg(required = true, value_name = "IN")]
    inputs: Vec<PathBuf>,
    /// The file to write, gzipped if its name ends in .gz
    #[arg(short, long)]
    out: PathBuf,
    /// Only the cases of this group, which replace those in OUT; may be repeated
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    /// A call to the modules, instead of calls to all their methods; may be repeated
    #[arg(long = "call", value_name = "KIND:METHOD:HEX", value_parser = call)]
    calls: Vec<Call>,
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, Args)]
#[command(long_about = "Runs recorded cases on a PocketIC server and lists differences.\n\n\
        The server is the one that POCKET_IC_BIN names. First a canister detects the rules by which \
        the server charges. Without files, all cases of this project that were recorded under \
        those rules are run: this qualifies a new version of the server.")]
struct Verify {
    /// Files of recorded cases, plain or gzipped; by default those of this project that were
    /// recorded under the server's rules
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Only the cases of this group; may be repeated
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    #[command(flatten)]
    server: Server,
}

#[derive(Clone, Copy, Debug, Args)]
struct Server {
    /// The subnet of each instance; the cases were recorded on an application subnet
    #[arg(long, value_enum, default_value_t = SubnetKind::Application)]
    subnet: SubnetKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SubnetKind {
    /// 13 nodes, production limits
    Application,
    /// Production limits; nothing is charged
    System,
    /// An application subnet with very high instruction limits
    Benchmarking,
}

#[derive(Debug, Args)]
#[command(
    long_about = "Generates cases to record.\n\nThe same seed generates the same file. The cases \
        have no expected answers: record them on a PocketIC server, then check them."
)]
struct Generate {
    /// The kind of cases
    #[arg(value_enum)]
    what: What,
    /// The seed of the random numbers
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// modules: number of measurements of everything; random: programs; canister: sequences of
    /// calls; calls: subnets [default: 1, 100, 10, 100]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    count: Option<u16>,
    /// canister: the module of the bench canister (`stablebench module` writes it)
    #[arg(long, value_name = "FILE", required_if_eq("what", "canister"))]
    wasm: Option<PathBuf>,
    /// The file to write, gzipped if its name ends in .gz
    #[arg(short, long)]
    out: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Each operator and each System API call between two readings of the counter
    Modules,
    /// Random programs
    Random,
    /// Random calls to the bench canister
    Canister,
    /// Random calls between canisters
    Calls,
    /// Calls of the management canister, which are not random
    Management,
    /// Settings of canisters and what they do, which is not random
    Settings,
    /// Motoko's actors, which are not random
    Motoko,
    /// HTTPS outcalls and threshold signatures, which are not random
    Services,
    /// Snapshots that are read and uploaded, which is not random
    Snapshots,
}

/// Parses `update:METHOD:HEX`.
fn call(text: &str) -> Result<Call, String> {
    let mut parts = text.splitn(3, ':');
    let (kind, method) = (parts.next().unwrap_or_default(), parts.next());
    let kind =
        [MessageKind::Update, MessageKind::Query, MessageKind::Upgrade, MessageKind::Reinstall]
            .into_iter()
            .find(|one| one.name() == kind)
            .ok_or("must start with update:, query:, upgrade: or reinstall:")?;
    let method = method.ok_or("needs a method, as in update:METHOD:HEX")?;
    Call::from_hex(kind, method, parts.next().unwrap_or_default())
}

fn make(command: &Generate) -> Result<(), Failure> {
    let Generate { what, seed, count, wasm, out } = command;
    let count = |default| count.unwrap_or(default);
    if *what != What::Canister && wasm.is_some() {
        return Err("--wasm is only for canister: the others create their own modules".into());
    }
    let of_subnets = match what {
        What::Calls => Some(generate::calls::between_canisters(*seed, count(100))),
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
            generate::calls::of_bench_canister(*seed, count(10), &recorder::relative(wasm, out)?)?
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

fn record(command: &Record) -> Result<(), Failure> {
    let Record { inputs, out, groups, calls, server } = command;
    let of_subnets = |input: &&PathBuf| {
        Ok::<_, Failure>(!recorder::is_module(input) && subnet::is_file_of_subnets(input)?)
    };
    let subnets = inputs.iter().map(|input| of_subnets(&input)).collect::<Result<Vec<_>, _>>()?;
    if subnets.contains(&true) {
        if subnets.contains(&false) {
            return Err("cases of one canister and of several are recorded separately".into());
        }
        return record_subnets(command);
    }
    let mut cases = inputs_of(command)?;
    cases.retain(|case| is_selected(groups, &case.group));
    let kept = kept(command, read)?;
    require_groups(groups, cases.iter().map(|case| &case.group))?;
    // Check at the start that the file can be written, not after an hour of recording.
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))
        .map_err(|error| format!("{} cannot be written: {error}", out.display()))?;
    if !calls.is_empty() && !inputs.iter().any(|input| recorder::is_module(input)) {
        return Err("--call is for modules, but no module is given".into());
    }
    let mut target = start(server)?;
    let folder = folder.unwrap_or(Path::new("."));
    let mut begin = progress();
    let begin = |case: &Case| begin(&case.name, case.calls.len());
    match recorder::record(&mut target, cases, folder, begin) {
        Ok(recorded) => {
            let count = recorded.len();
            write(out, &with_kept(kept, recorded, |case| &case.group))?;
            note(&format!("{}: {count} cases", out.display()));
            Ok(())
        }
        Err(interrupted) => Err(keep(out, &interrupted)),
    }
}

fn record_subnets(command: &Record) -> Result<(), Failure> {
    let Record { inputs, out, groups, server, .. } = command;
    let mut cases: Vec<SubnetCase> = Vec::new();
    for input in inputs {
        cases.extend(recorder::subnet_cases(input, out)?);
    }
    cases.retain(|case| is_selected(groups, &case.group));
    let kept = kept(command, subnet::read)?;
    require_groups(groups, cases.iter().map(|case| &case.group))?;
    let mut target = start(server)?;
    let mut begin = progress();
    let folder = out.parent().unwrap_or(Path::new("."));
    let mut recorded = Vec::new();
    for case in cases {
        begin(&case.name, case.steps.len());
        recorded.push(answered(&mut target, &case, folder)?);
    }
    let count = recorded.len();
    subnet::write(out, &with_kept(kept, recorded, |case| &case.group))?;
    note(&format!("{}: {count} cases", out.display()));
    Ok(())
}

/// The cases of OUT, if only some of their groups are recorded.
fn kept<T>(
    command: &Record,
    read: fn(&Path) -> Result<Vec<T>, Error>,
) -> Result<Option<Vec<T>>, Failure> {
    let Record { out, groups, .. } = command;
    let keeps = !groups.is_empty() && out.exists();
    Ok(keeps.then(|| read(out)).transpose()?)
}

/// The recorded cases, with the kept ones of other groups.
fn with_kept<T: Clone>(kept: Option<Vec<T>>, recorded: Vec<T>, group: fn(&T) -> &str) -> Vec<T> {
    match kept {
        Some(kept) => replaced(kept, &recorded, group),
        None => recorded,
    }
}

fn verify(command: &Verify) -> Result<bool, Failure> {
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
        _ if !command.files.is_empty() => {
            let files = SelectedFile::of(&command.files, &command.groups);
            compared(&mut target, &files, progress())
        }
        Some(rules) => {
            let mut files = recorded_under(rules)?;
            require_groups(&command.groups, files.iter().flat_map(|file| &file.groups))?;
            for file in &mut files {
                file.groups.retain(|group| is_selected(&command.groups, group));
            }
            files.retain(|file| !file.groups.is_empty());
            compared(&mut target, &files, progress())
        }
        None => Ok(false),
    }
}

/// The recorded cases of this project.
const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/conformance/cases");

/// Groups of cases of this project that hold under these rules: those that were recorded under
/// them, and those of rules with the same charges that were not recorded again.
fn recorded_under(rules: Rules) -> Result<Vec<SelectedFile>, Failure> {
    let folder = |name| Path::new(CASES).join(name);
    let mut folders = vec![folder(rules.name())];
    if rules == Rules::of_2026_10() {
        folders.push(folder(Rules::of_2026_08().name()));
    }
    let mut recorded = BTreeSet::new();
    let mut files = Vec::new();
    for folder in folders {
        let missing = |error| format!("{}: {error}; pass the files to run", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(missing)? {
            let entry = entry?;
            if entry.path().is_file() {
                let mut groups = groups(&entry.path())?;
                groups.retain(|group| recorded.insert((entry.file_name(), group.clone())));
                files.push(SelectedFile { path: entry.path(), groups });
            }
        }
    }
    files.retain(|file| !file.groups.is_empty());
    files.sort_by_key(|file| file.path.file_name().map(ToOwned::to_owned));
    Ok(files)
}

/// The groups of a file of cases, in order.
fn groups(path: &Path) -> Result<Vec<String>, Failure> {
    let mut groups: Vec<String> = match subnet::is_file_of_subnets(path)? {
        true => subnet::read(path)?.into_iter().map(|case| case.group).collect(),
        false => read(path)?.into_iter().map(|case| case.group).collect(),
    };
    groups.dedup();
    Ok(groups)
}

fn inputs_of(command: &Record) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for input in &command.inputs {
        if recorder::is_module(input) {
            cases.push(recorder::module(input, &command.calls, &command.out)?);
        } else {
            cases.extend(recorder::cases(input, &command.out)?);
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

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Record(command) => record(&command).map(|()| true),
        Command::Verify(command) => verify(&command),
        Command::Generate(command) => make(&command).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            note(&format!("recorder: {error}"));
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use stablebench_conformance::Source;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn recording_a_group_keeps_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out.json");
        let case = |group: &str, wat: &str| Case {
            name: "case".to_owned(),
            group: group.to_owned(),
            module: Source::Wat(wat.to_owned()),
            install: None,
            calls: Vec::new(),
        };
        let recorded = vec![case("b", "new")];
        let after = |options: &[&str]| {
            let out = out.to_str().unwrap();
            let words = [&["recorder", "record", "in.json", "-o", out], options].concat();
            let Command::Record(command) = Arguments::parse_from(words).command else { panic!() };
            let kept = kept(&command, read).unwrap();
            with_kept(kept, recorded.clone(), |case| &case.group)
        };
        assert_eq!(after(&["--group", "b"]), recorded, "there is no file");
        let [one, last] = [case("a", "old"), case("c", "old")];
        write(&out, &[one.clone(), case("b", "old"), last.clone()]).unwrap();
        assert_eq!(after(&["--group", "b"]), [one, recorded[0].clone(), last]);
        assert_eq!(after(&[]), recorded, "without groups, the file is replaced");
    }

    #[test]
    fn recorded_groups_hold_until_they_are_recorded_again() {
        let files = recorded_under(Rules::of_2026_10()).unwrap();
        let names = |file: &SelectedFile| -> (String, String) {
            let name = |path: Option<&std::ffi::OsStr>| path.unwrap().to_str().unwrap().to_owned();
            let folder = file.path.parent().unwrap();
            (name(folder.file_name()), name(file.path.file_name()))
        };
        let listed: Vec<(String, String)> = files.iter().map(names).collect();
        let expected = [
            ("2026-08", "canister.json.gz"),
            ("2026-08", "modules.json"),
            ("2026-10", "subnets.json.gz"),
        ];
        assert_eq!(listed, expected.map(|(rules, file)| (rules.to_owned(), file.to_owned())));
        assert_eq!(files[0].groups, ["edges", "pages", "random", "users"]);
    }

    #[test]
    fn calls_are_parsed() {
        assert_eq!(call("update:set:00ff"), Ok(Call::new(MessageKind::Update, "set", [0, 255])));
        assert_eq!(call("query:get"), Ok(Call::new(MessageKind::Query, "get", [])));
        assert_eq!(call("upgrade::"), Ok(Call::new(MessageKind::Upgrade, "", [])));
        for wrong in ["", "set", "update", "update:set:0", "update:set:zz", "Update:set:"] {
            assert!(call(wrong).is_err(), "{wrong:?}");
        }
    }
}
