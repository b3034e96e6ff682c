//! Modules of canisters: `stablebench builds` builds a crate of the user's with many options, and
//! `stablebench module` writes a committed one to files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use stablebench_suite::unique;
use stablebench_suite_builds::{self as suite, BuildsSuite, COMPARED, NotBuilt, Options};

use super::interface::{Argument, Interface};
use super::replica::embedded;
use super::run::{PriceArgs, failed};
use crate::builds::{Module, Package, Project};
use crate::canisters::{self, SOURCES, Source, hash};
use crate::interrupt::{self, Interrupted};
use crate::progress::{
    Expected, Output, Progress, Rest, earlier_duration, expected_seconds, keep_duration,
};
use crate::replica::embedded::Embedded;
use crate::replica::options::ReplicaArgs;
use crate::replica::{Answer, Cost, Replica};
use crate::report::number::Grouped;
use crate::report::{self, Format};
use crate::results::{
    CanisterInfo, Case, Detail, FORMAT, Measured, Outcome, Prices, Results, RunFile, State,
};
use crate::saving;
use crate::terminal::{print, quoted};

#[derive(Debug, Args)]
pub struct BuildsArgs {
    /// The crate's Cargo.toml.
    #[arg(long, value_name = "PATH", default_value = "Cargo.toml")]
    pub manifest_path: PathBuf,
    /// The package, if the manifest is that of a workspace.
    #[arg(long)]
    pub package: Option<String>,
    /// Rust's target. Calls of WASI are replaced as `wasi2ic` does.
    #[arg(long, default_value = "wasm32-unknown-unknown")]
    pub target: String,
    /// Features of the crate.
    #[arg(long, value_delimiter = ',')]
    pub features: Vec<String>,
    /// The interface in Candid [default: NAME.did next to the package's Cargo.toml, else the one in
    /// the module].
    #[arg(long, value_name = "FILE")]
    pub candid: Option<PathBuf>,
    /// The argument of the installation as Candid text.
    #[arg(long, value_name = "ARGUMENTS")]
    pub init: Option<String>,
    /// A method and its arguments as Candid text; may be repeated. The calls are made one after
    /// another, and each is measured.
    #[arg(long = "call", num_args = 2, value_names = ["METHOD", "ARGUMENTS"], required = true)]
    pub calls: Vec<String>,
    /// The options of a build, such as `default` or `opt-level=s,lto=fat`; may be repeated. The first
    /// build is the one that others are compared with [default: each option alone, and some together].
    #[arg(long = "build", value_name = "OPTIONS")]
    pub builds: Vec<Options>,
    #[command(flatten)]
    pub prices: PriceArgs,
    /// The file of the results.
    #[arg(long, value_name = "FILE", default_value = "builds.json")]
    pub out: PathBuf,
    /// The format in which results are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    #[command(flatten)]
    pub replica: ReplicaArgs,
}

/// The crate to build.
struct Chosen {
    project: Project,
    /// Its interface, if it is in a file. Otherwise the module contains it.
    interface: Option<Interface>,
}

/// A call whose arguments are checked and encoded.
struct EncodedCall<'a> {
    method: &'a str,
    argument: Vec<u8>,
    query: bool,
    /// The name of its case.
    name: String,
}

/// Builds a crate with many options, and measures the installation and the calls of each.
pub fn builds(args: &BuildsArgs, output: &Output) -> Result<()> {
    let progress = &output.progress;
    let options = match args.builds.as_slice() {
        [] => compared()?,
        chosen => unique(chosen),
    };
    let chosen = chosen(args)?;
    let project = &chosen.project;
    if let Some(interface) = &chosen.interface {
        // Mistakes are reported before anything is compiled.
        calls(args, interface)?;
        init(args, project, interface)?;
    }
    let mut file = RunFile::new(&args.out)?;
    interrupt::listen()?;
    let (replica, _) = embedded(&args.replica, progress)?;
    progress.note(&format!(
        "builds of {}: {}; for most of them, cargo compiles all crates again",
        project.name,
        options.len()
    ));
    let mut results = empty(args, project, &options, &replica);
    let mut replies = BTreeMap::new();
    let name = |options: &Options| format!("builds of {}: {options}", project.name);
    let expected = |options| Expected { share: 1.0, before: earlier_duration(&name(options)) };
    let expected: Vec<Expected> = options.iter().map(expected).collect();
    let rest = Arc::new(Rest::new("build", &expected, 1));
    let measured =
        options.iter().zip(expected_seconds(&expected)).try_for_each(|(options, seconds)| {
            interrupt::check()?;
            let (began, left) = (Instant::now(), Arc::clone(&rest));
            let step = progress.rest(&options.to_string(), move || left.left().to_string());
            one(args, &chosen, options, &replica, &mut results, &mut replies, progress)?;
            let took = began.elapsed();
            keep_duration(&name(options), took);
            step.done(&format!("{:.1} s; {}", took.as_secs_f64(), rest.done(seconds, took)));
            file.save(&results)
        });
    let complete = measured.is_ok();
    if complete {
        results.planned = None;
    }
    file.finish(&results, complete)?;
    if let Err(error) = measured {
        return Err(
            error.context(format!("the run is not complete; {}", file.summary_of_incomplete()))
        );
    }
    print(&report::render(&BuildsSuite, &results, args.format, output.terminal)?)?;
    if let (Format::Table | Format::Markdown, Some(profile)) =
        (args.format, suite::profile(&results))
    {
        print(&profile)?;
    }
    progress.note(&file.summary());
    let failed = failed(&results);
    ensure!(failed.is_empty(), "{} cases failed:\n{}", failed.len(), failed.join("\n"));
    Ok(())
}

/// Returns the builds that are compared if none are chosen. Few crates have a feature for another
/// allocator.
fn compared() -> Result<Vec<Options>> {
    let keys = COMPARED.iter().filter(|key| !key.starts_with("allocator="));
    Ok(keys.map(|key| key.parse()).collect::<Result<_, _>>()?)
}

/// Returns the crate, and its interface if that is in a file.
fn chosen(args: &BuildsArgs) -> Result<Chosen> {
    let manifest = fs::canonicalize(&args.manifest_path).with_context(|| {
        format!(
            "there is no {}; name the crate's Cargo.toml with --manifest-path",
            args.manifest_path.display()
        )
    })?;
    let folder = match manifest.is_dir() {
        true => manifest.as_path(),
        false => manifest.parent().unwrap_or(&manifest),
    };
    let package = Package::of(&folder.join("Cargo.toml"), args.package.as_deref())?;
    let interface = interface(args, &package)?;
    let project = Project {
        name: package.name,
        package: args.package.clone(),
        folder: folder.to_owned(),
        target: args.target.clone(),
        features: args.features.clone(),
        flags: None,
        is_own: false,
    };
    Ok(Chosen { project, interface })
}

/// Returns results without cases.
fn empty(args: &BuildsArgs, project: &Project, builds: &[Options], replica: &Embedded) -> Results {
    let mut command = vec!["stablebench builds".to_owned()];
    let mut add = |name: &str, value: &str| command.push(format!("--{name} {}", quoted(value)));
    add("manifest-path", &args.manifest_path.to_string_lossy());
    if let Some(package) = &args.package {
        add("package", package);
    }
    add("target", &args.target);
    args.features.iter().for_each(|feature| add("features", feature));
    if let Some(candid) = &args.candid {
        add("candid", &candid.to_string_lossy());
    }
    add("init", args.init.as_deref().unwrap_or("()"));
    args.builds.iter().for_each(|options| add("build", &options.to_string()));
    for call in args.calls.chunks(2) {
        command.push(format!(
            "--call {}",
            call.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
        ));
    }
    command.push(format!("--rules {}", args.replica.rules()));
    Results {
        format: FORMAT,
        stablebench: env!("CARGO_PKG_VERSION").to_owned(),
        revision: None,
        suite: suite::NAME.to_owned(),
        command: command.join(" "),
        published: None,
        seed: 1,
        prices: Prices {
            nodes: args.prices.nodes,
            usd_per_trillion_cycles: args.prices.usd_per_trillion_cycles,
        },
        replica: replica.identity(),
        inputs: Vec::new(),
        canisters: Vec::new(),
        configurations: builds
            .iter()
            .map(|options| suite::configuration(&project.name, options))
            .collect(),
        fixtures: Vec::new(),
        cases: Vec::new(),
        harness: Vec::new(),
        planned: Some(builds.len() as u64 * (2 + args.calls.len() as u64 / 2)),
    }
}

/// Builds the crate with some options, and measures the module. All builds must have the same
/// replies: those of the first one are kept in `replies`.
fn one(
    args: &BuildsArgs,
    chosen: &Chosen,
    options: &Options,
    replica: &Embedded,
    results: &mut Results,
    replies: &mut BTreeMap<usize, Result<Vec<u8>, String>>,
    progress: &Progress,
) -> Result<()> {
    let Chosen { project, interface } = chosen;
    let is_first = results.cases.is_empty();
    let mut keep = |section: &str, name: String, outcome| {
        results.cases.push(Case {
            section: section.to_owned(),
            name,
            configuration: options.to_string(),
            rows: 0,
            payload: 0,
            state: State::Warm,
            outcome,
        });
    };
    let Module { wasm, programs } = match project.build(options, progress) {
        Ok(module) => module,
        Err(error) => {
            let NotBuilt { reason, printed } = error.downcast()?;
            // Nothing can be compared with the first build if there is none.
            ensure!(!is_first, "{} cannot be built: {reason}\n{printed}", project.name);
            progress.note(&format!("{options}: {reason}"));
            keep_all(&mut keep, args, &Outcome::NotApplicable { reason });
            return Ok(());
        }
    };
    let of_module = || canisters::candid_of(&wasm).map(|text| Interface::parse(&text)).transpose();
    let interface = interface.clone().map_or_else(of_module, |known| Ok(Some(known)))?;
    let interface = interface.with_context(|| {
        format!(
            "the module of {name} does not contain its interface, and there is no {name}.did next to \
             its Cargo.toml; name a file with --candid",
            name = project.name
        )
    })?;
    let calls = calls(args, &interface)?;
    let init = init(args, project, &interface)?;
    let step = progress.step(&options.to_string(), "calls", calls.len() as u64);
    let (mut canister, cost) = match replica.installed_with(&wasm, &init) {
        Ok(installed) => installed,
        Err(error) if is_first || error.is::<Interrupted>() => return Err(error),
        Err(error) => {
            keep_all(&mut keep, args, &Outcome::Failed { reason: format!("{error:#}") });
            return Ok(());
        }
    };
    let compiling = replica.compiling(&wasm)?.unwrap_or_default();
    let compiling = Outcome::Measured(Measured::without_detail(compiling, 1));
    keep(suite::INSTALL, suite::COMPILE.to_owned(), compiling);
    keep(suite::INSTALL, suite::RUN.to_owned(), measured(&cost));
    for (at, call) in calls.iter().enumerate() {
        interrupt::check()?;
        let answer = match call.query {
            true => canister.query(call.method, &call.argument),
            false => canister.update(call.method, &call.argument),
        }?;
        let Answer { outcome, cost, .. } = answer;
        let reply = outcome.map_err(|reject| reject.to_string());
        let expected = replies.entry(at).or_insert_with(|| reply.clone());
        let outcome = match reply {
            Err(reject) => Outcome::Failed { reason: reject },
            Ok(reply) if Ok(&reply) != expected.as_ref() => {
                Outcome::Failed { reason: "the reply is not that of the first build".to_owned() }
            }
            Ok(_) => measured(&cost),
        };
        keep(suite::CALL, call.name.clone(), outcome);
        step.advance();
    }
    step.done("");
    results.canisters.push(CanisterInfo {
        name: format!("{}/{options}", project.name),
        sha256: hash(&wasm),
        bytes: wasm.len() as u64,
        crates: programs,
        sqlite: None,
    });
    Ok(())
}

/// Keeps the same outcome for the installation and all calls of a build.
fn keep_all(
    keep: &mut impl FnMut(&str, String, Outcome<Measured>),
    args: &BuildsArgs,
    outcome: &Outcome<Measured>,
) {
    for name in [suite::COMPILE, suite::RUN] {
        keep(suite::INSTALL, name.to_owned(), outcome.clone());
    }
    for name in names(&args.calls) {
        keep(suite::CALL, name, outcome.clone());
    }
}

/// Returns the names of the calls: method and arguments, with a number from the second time on.
fn names(calls: &[String]) -> Vec<String> {
    let name = |(at, call): (usize, &[String])| {
        let before = calls.chunks(2).take(at).filter(|other| *other == call).count();
        match before {
            0 => call.join(" "),
            _ => format!("{}, {}", call.join(" "), before + 1),
        }
    };
    calls.chunks(2).enumerate().map(name).collect()
}

/// Returns the interface in the file of `--candid`, or in the one that `dfx` expects.
fn interface(args: &BuildsArgs, package: &Package) -> Result<Option<Interface>> {
    let expected = package.file(&format!("{}.did", package.name));
    let path = args.candid.as_deref().or_else(|| Some(&*expected).filter(|path| path.is_file()));
    path.map(Interface::read).transpose()
}

/// Encodes the argument of the installation.
fn init(args: &BuildsArgs, project: &Project, interface: &Interface) -> Result<Vec<u8>> {
    let argument = args.init.as_deref().map(Argument::typed).transpose()?;
    interface.constructor(argument.as_ref(), &project.name, "--init")
}

/// Encodes the arguments of the calls.
fn calls<'a>(args: &'a BuildsArgs, interface: &Interface) -> Result<Vec<EncodedCall<'a>>> {
    let call = |(words, name): (&'a [String], String)| {
        let [method, arguments] = words else { bail!("--call has a method and its arguments") };
        let described = interface.described(method)?;
        let argument = described.encode(Some(&Argument::Text(arguments.clone())))?;
        Ok(EncodedCall { method, argument, query: described.query, name })
    };
    args.calls.chunks(2).zip(names(&args.calls)).map(call).collect()
}

/// Returns the outcome of a message or an installation.
fn measured(cost: &Cost) -> Outcome<Measured> {
    let Some(inside) = cost.inside else {
        return Outcome::NotApplicable { reason: "the replica reports no instructions".to_owned() };
    };
    let detail = Detail { pages: inside.pages, ..Detail::of_message(inside.instructions, *cost) };
    Outcome::Measured(Measured {
        detail: Some(detail),
        ..Measured::without_detail(inside.instructions, 1)
    })
}

#[derive(Debug, Args)]
pub struct ModuleArgs {
    /// The canister.
    #[arg(default_value = "bench", value_parser = canister_names())]
    pub canister: String,
    /// The folder of the files [default: the current one].
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}

/// Names of the canisters.
fn canister_names() -> clap::builder::PossibleValuesParser {
    SOURCES.map(|source| source.name).into()
}

/// Writes the two files of a canister, and prints their hashes and paths in the form that
/// `sha256sum --check` reads. The first is the one to deploy.
pub fn module(args: &ModuleArgs, output: &Output) -> Result<()> {
    let source = Source::named(&args.canister).unwrap_or(canisters::BENCH);
    let plain = canisters::embedded(source)?.wasm;
    let folder = args.out.as_deref().unwrap_or(Path::new(""));
    let mut printed = String::new();
    for (extension, file) in [("wasm.gz", source.deployable()), ("wasm", &plain)] {
        let path = folder.join(source.name).with_extension(extension);
        saving::save(&path, file).with_context(|| format!("cannot write {}", path.display()))?;
        printed += &format!("{}  {}\n", hash(file), path.display());
    }
    output.progress.note(&format!(
        "{}: {} bytes to deploy, {} as plain module",
        source.name,
        Grouped(source.deployable().len() as u64),
        Grouped(plain.len() as u64),
    ));
    print(&printed)
}
