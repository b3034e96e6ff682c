//! A canister from outside: the module as it is installed, and the files by which other tools deploy it;
//! callers, repeated calls, and parts of jobs that are refused or fail.

use super::canister::list::SOURCES;
use super::canister::{
    Bench, CONTROLLER, Which, count, module, plain, replica, root, rows, users_part,
};
use candid::types::FuncMode;
use candid::utils::ArgumentEncoder;
use candid::{CandidType, Principal, Reserved, decode_one, encode_args};
use candid_parser::utils::CandidSource;
use serde::de::DeserializeOwned;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use stablebench_protocol::{
    Description, Digest, DigestPart, Engine, Error, Executed, Inspected, Job, JobPart, KeptPart,
    Measurement, PartCost, PhaseCost, Result, Setting, SqliteConfig, SqliteSettings,
};
use stablebench_replica::{MethodKind, Visibility};
use stablebench_suite_keys::{KeyKind, Keys, KeysTask, LinkSchema};
use stablebench_suite_sql::{Sql, Value};
use stablebench_suite_users::{Operation, Selection};
use std::collections::BTreeSet;
use std::process::Command;
use wasmparser::{Name, NameSectionReader, Parser, Payload};

/// The parts of the module.
fn payloads(wasm: &[u8]) -> impl Iterator<Item = Payload<'_>> {
    Parser::new(0).parse_all(wasm).map(|payload| payload.unwrap())
}

#[test]
fn every_module_has_the_interface() {
    Which::ALL.into_iter().for_each(check_interface);
}

/// The interface is public, and its methods are those that the module exports.
fn check_interface(which: Which) {
    let (module, text) = (which.module(), text(which.source().candid));
    let section = &module.info().custom_sections["candid:service"];
    assert_eq!(section.visibility, Visibility::Public);
    assert_eq!(String::from_utf8_lossy(&section.content), text);

    let (env, service) = CandidSource::Text(&text).load().unwrap();
    let service = service.unwrap();
    let methods = env.as_service(&service).unwrap();
    let mut interface: BTreeSet<(String, MethodKind)> = methods
        .iter()
        .map(|(name, function)| {
            let function = env.as_func(function).unwrap();
            let kind = match function.modes[..] {
                [FuncMode::Query] => MethodKind::Query,
                [FuncMode::CompositeQuery] => MethodKind::CompositeQuery,
                _ => MethodKind::Update,
            };
            (name.clone(), kind)
        })
        .collect();
    interface.extend(which.raw_methods().iter().map(|it| ((*it).to_owned(), MethodKind::Update)));
    let exported: BTreeSet<(String, MethodKind)> =
        module.info().methods.iter().map(|method| (method.name.clone(), method.kind)).collect();
    assert_eq!(exported, interface);
}

#[test]
fn the_module_imports_the_system_api_only() {
    for module in Which::ALL.map(Which::module) {
        let wasm = module.wasm();
        let mut imports = 0;
        for payload in payloads(&wasm) {
            if let Payload::ImportSection(section) = payload {
                for import in section.into_imports() {
                    let import = import.unwrap();
                    assert_eq!(import.module, "ic0", "{}", import.name);
                    imports += 1;
                }
            }
        }
        assert_eq!(imports, module.info().imports.len());
    }
}

#[test]
fn functions_have_names_for_profiles() {
    for module in Which::ALL.map(Which::module) {
        let wasm = module.wasm();
        let named = payloads(&wasm)
            .filter_map(|payload| match payload {
                Payload::CustomSection(section) if section.name() == "name" => {
                    let reader =
                        wasmparser::BinaryReader::new(section.data(), section.data_offset());
                    let names = NameSectionReader::new(reader).map(|payload| payload.unwrap());
                    names
                        .filter_map(|name| match name {
                            Name::Function(names) => Some(names.count()),
                            _ => None,
                        })
                        .next()
                }
                _ => None,
            })
            .next()
            .unwrap();
        let defined: u32 = payloads(&wasm)
            .filter_map(|payload| match payload {
                Payload::FunctionSection(section) => Some(section.count()),
                _ => None,
            })
            .sum();
        assert!(named >= defined, "{named} names, {defined} functions");
    }
}

#[test]
fn the_module_contains_no_paths_of_the_machine() {
    for module in Which::ALL.map(Which::module) {
        let wasm = module.wasm();
        let here = root().to_str().unwrap();
        // The last is that of the standard library, if its sources are installed.
        for place in [here, "/.cargo/", "/lib/rustlib/"].map(str::as_bytes) {
            assert!(!wasm.windows(place.len()).any(|bytes| bytes == place));
        }
    }
}

#[test]
fn deployed_files_fit_into_one_message() {
    for source in SOURCES {
        assert!(source.deployable().len() < 2 << 20, "{}", source.name);
    }
}

/// The `module_hash` of an installed file. The canister is the one that compiles fastest.
#[test]
fn the_printed_hashes_are_those_that_canisters_have() {
    let folder = tempfile::tempdir().unwrap();
    let source = Which::Calls.source();
    let output = Command::new(env!("CARGO_BIN_EXE_stablebench"))
        .args(["module", source.name, "--out"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let written: Vec<(&str, &str)> =
        printed.lines().map(|line| line.split_once("  ").unwrap()).collect();
    let expected = ["wasm.gz", "wasm"].map(|extension| {
        folder.path().join(source.name).with_extension(extension).display().to_string()
    });
    assert_eq!(written.iter().map(|(_, path)| *path).collect::<Vec<_>>(), expected);
    for (hash, path) in written {
        let wasm = std::fs::read(path).unwrap();
        let mut canister = replica().create_canister().unwrap();
        let module = replica().compile(&wasm).unwrap();
        let installed = canister.install(&module, CONTROLLER, &encode_args(()).unwrap());
        installed.unwrap().outcome.unwrap();
        let found = canister.module().unwrap().hash();
        let found: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, hash);
    }
}

#[test]
fn the_documented_hashes_are_those_of_the_modules() {
    let document = text("docs/networks.md");
    let file = Which::Bench.source().deployable();
    for (bytes, name) in [(file, "bench.wasm.gz"), (&plain(file), "bench.wasm")] {
        let line = format!("{:x}  {name}\n", Sha256::digest(bytes));
        assert!(document.contains(&line), "docs/networks.md does not contain {line}");
    }
}

/// Other tools deploy the committed modules.
#[test]
#[expect(clippy::disallowed_methods, reason = "the file is the repository's own")]
fn dfx_and_icp_find_the_modules() {
    let dfx: serde_json::Value = serde_json::from_str(&text("dfx.json")).unwrap();
    let icp: serde_json::Value = yaml_serde::from_str(&text("icp.yaml")).unwrap();
    let expected = SOURCES.map(|source| {
        // dfx copies the file, so that its hash is the one that is printed here.
        let canister = json!({
            "type": "custom", "wasm": source.path(), "candid": source.candid, "shrink": false
        });
        assert!(root().join(source.path()).is_file() && root().join(source.candid).is_file());
        (source.name.to_owned(), canister)
    });
    assert_eq!(dfx["canisters"], serde_json::Value::Object(expected.into_iter().collect()));
    let expected = SOURCES.map(|source| {
        let step = json!({"type": "pre-built", "path": source.path()});
        json!({"name": source.name, "build": {"steps": [step]}})
    });
    assert_eq!(icp["canisters"], json!(expected));
}

/// Scripts find canisters by their files. Where they name one, it exists.
#[test]
fn scripts_name_canisters_that_exist() {
    let mut files =
        ["justfile", ".ci/run", ".github/workflows/release.yml"].map(Into::into).to_vec();
    for entry in std::fs::read_dir(root().join("scripts")).unwrap() {
        files.push(entry.unwrap().path());
    }
    for file in files {
        let text = std::fs::read_to_string(root().join(&file)).unwrap();
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
        for word in text.split(|letter| !is_part(letter)).filter(|word| word.starts_with("bench_"))
        {
            let name = word.split('.').next().unwrap();
            assert!(SOURCES.iter().any(|source| source.name == name), "{}: {word}", file.display());
        }
    }
}

fn text(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap()
}

const STRANGER: Principal = Principal::from_slice(&[7]);

/// Calls as a stranger, and returns the method's name.
fn refused<'a, T>(bench: &mut Bench, method: &'a str, arguments: impl ArgumentEncoder) -> &'a str
where
    T: CandidType + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let before = bench.contents();
    let (done, _) = bench.execute::<T>(STRANGER, method, arguments);
    assert_eq!(done, Err(Error::NotController), "{method}");
    assert_eq!(bench.contents(), before, "{method}");
    method
}

#[test]
fn updates_are_for_controllers() {
    let mut bench = Bench::filled(&[Engine::BTREE, Engine::SQLITE], 100);
    let one = &mut bench;
    let (btree, range) = (Engine::BTREE, (5_u64, 10_u64, 1_u64));
    let there = rows(btree, 0, 10, 5);
    // A controller may make each of these calls.
    let tried = BTreeSet::from([
        refused::<()>(one, "stage", (create(),)),
        refused::<PartCost>(one, "run", (1_u64,)),
        refused::<Executed>(one, "execute", (create(),)),
        refused::<Vec<Setting>>(one, "configure", (Vec::<Setting>::new(),)),
        refused::<Vec<PhaseCost>>(one, "phases", (create(),)),
        refused::<Measurement>(one, "add_users", rows(btree, 5, 10, 1)),
        refused::<Measurement>(one, "add_users_btree", range),
        refused::<Measurement>(one, "add_users_sqlite", range),
        refused::<Measurement>(one, "insert_middle", count(btree, 1)),
        refused::<Measurement>(one, "insert_end", count(btree, 1)),
        refused::<Measurement>(one, "read_users", there),
        refused::<Measurement>(one, "scan_users", count(btree, 1)),
        refused::<Measurement>(one, "update_users", there),
        refused::<Measurement>(one, "delete_users", there),
        refused::<()>(one, "set_payload", (7_u32,)),
        refused::<()>(one, "reset", (Engine::SQLITE,)),
        refused::<SqliteSettings>(one, "configure_sqlite", (small_cache(),)),
        refused::<()>(one, "close_connection", ()),
        refused::<Measurement>(one, "vacuum", ()),
        refused::<Reserved>(one, "sql", ("select 1", Vec::<Value>::new())),
    ]);
    assert_eq!(tried, methods(MethodKind::Update));
}

#[test]
fn queries_are_for_everyone() {
    let bench = Bench::filled(&[Engine::BTREE, Engine::SQLITE], 100);
    let ask = |method, arguments: Vec<u8>| {
        let execution = bench.0.query(STRANGER, method, &arguments).unwrap();
        execution.outcome.unwrap()
    };
    let count = users_part(Engine::SQLITE, Operation::Count);
    let part = encode_args((&count.job, None::<DigestPart>, 1_000_u64)).unwrap();
    let part: Result<DigestPart> = decode_one(&ask("content", part)).unwrap();
    assert_eq!(
        part.unwrap().digest,
        bench.digest(Engine::SQLITE, 1_000),
        "as the controller gets it"
    );
    let description = ask("describe", encode_args(()).unwrap());
    let description: Result<Description> = decode_one(&description).unwrap();
    assert_eq!(description, Ok(bench.describe()));
    let settings = ask("sqlite_settings", encode_args(()).unwrap());
    let settings: Result<SqliteSettings> = decode_one(&settings).unwrap();
    assert_eq!(settings, Ok(bench.settings()));
    let inspected = ask("inspect", encode_args((create().job,)).unwrap());
    let inspected: Result<Inspected> = decode_one(&inspected).unwrap();
    assert_eq!(inspected.unwrap().sqlite, Some(bench.settings()));
    // There is no such table, but the caller is accepted.
    let content = ask("content", encode_args((create().job, None::<DigestPart>, 1_u64)).unwrap());
    let content: Result<DigestPart> = decode_one(&content).unwrap();
    assert!(matches!(content, Err(Error::Sqlite { .. })), "{content:?}");
    let nothing = ask("run_query", encode_args(()).unwrap());
    let nothing: Result<PartCost> = decode_one(&nothing).unwrap();
    assert_eq!(nothing.unwrap().measurement.rows, 0, "nothing is staged");
    let results = ask("results", encode_args((create(),)).unwrap());
    let results: Result<Option<Digest>> = decode_one(&results).unwrap();
    assert_eq!(results, Ok(None), "what writes reads nothing");
    let settings = Job::new(&Sql::Configure(Vec::new()));
    let kept = ask("kept", encode_args((settings, 0_u64)).unwrap());
    let kept: Result<KeptPart> = decode_one(&kept).unwrap();
    assert_eq!(kept.unwrap().next, None);
    let asked = BTreeSet::from([
        "content",
        "describe",
        "inspect",
        "kept",
        "results",
        "run_query",
        "sqlite_settings",
    ]);
    assert_eq!(asked, methods(MethodKind::Query));
}

/// The methods of the suites take an id, and refuse it the second time.
#[test]
fn a_repeated_call_is_refused() {
    for method in ["execute", "phases"] {
        let mut bench = Bench::filled(&[Engine::SQLITE], 100);
        let mut send = |id: Option<u64>| {
            let arguments = encode_args((create(), id)).unwrap();
            let execution = bench.0.update(CONTROLLER, method, &arguments).unwrap();
            let answer: Result<Reserved> = decode_one(&execution.outcome.unwrap()).unwrap();
            answer.map(drop)
        };
        let repeated = Err(Error::Repeated { last: 10 });
        assert!(!matches!(send(Some(10)), Err(Error::Repeated { .. })), "{method}");
        assert_eq!(send(Some(10)), repeated, "{method}");
        assert_eq!(send(Some(9)), repeated, "{method}");
    }
}

#[test]
fn a_repeated_part_is_executed_once() {
    let mut bench = Bench::filled(&[Engine::SQLITE], 100);
    let rows = Selection::Step { first: 7, step: 10, rows: 3 };
    let part = users_part(Engine::SQLITE, Operation::Insert(rows));
    let insert = |bench: &mut Bench, id: u64| {
        let executed: Result<Executed> = bench.update("execute", (&part, Some(id)));
        executed.map(|executed| executed.measurement.rows)
    };
    assert_eq!(insert(&mut bench, 5), Ok(3));
    let before = bench.contents();
    assert_eq!(insert(&mut bench, 5), Err(Error::Repeated { last: 5 }));
    assert_eq!(bench.contents(), before);
    // A call with a later id is executed, and refused for its rows.
    assert!(matches!(insert(&mut bench, 6), Err(Error::Sqlite { .. })));
    // The heap stores the last id.
    bench.upgrade();
    assert!(matches!(insert(&mut bench, 5), Err(Error::Sqlite { .. })));
}

fn small_cache() -> SqliteConfig {
    SqliteConfig { cache_size: Some(10), ..SqliteConfig::default() }
}

/// The methods that the module exports.
fn methods(kind: MethodKind) -> BTreeSet<&'static str> {
    let methods = module().info().methods.iter();
    methods.filter(|method| method.kind == kind).map(|method| method.name.as_str()).collect()
}

/// The maximum number of operations that are measured one by one.
const MAX_EACH: u64 = 100_000;

/// One user with one movie on the list.
fn keys(task: KeysTask) -> Job {
    Job::new(&Keys {
        schema: LinkSchema::Id,
        key: KeyKind::Integer,
        users: 1,
        movies: 1,
        watches: 1,
        rows_a_millisecond: 1,
        foreign_keys: false,
        task,
    })
}

/// A part that creates the tables of the suite keys.
fn create() -> JobPart {
    JobPart { job: keys(KeysTask::Create), seed: 1, from: 0, count: 1, each: false }
}

#[test]
fn invalid_parts_are_refused() {
    let mut bench = Bench::new();
    for (part, error) in [
        (JobPart { count: 0, ..create() }, Error::NoRows),
        (JobPart { from: u64::MAX, ..create() }, Error::IdOverflow { largest: u64::MAX }),
        (
            JobPart { count: MAX_EACH + 1, each: true, ..create() },
            Error::TooManyEach { limit: MAX_EACH },
        ),
    ] {
        assert_eq!(bench.execute_part(&part), Err(error), "{part:?}");
    }
    let content: Result<DigestPart> =
        bench.query("content", (create().job, None::<DigestPart>, 0_u64));
    assert_eq!(content, Err(Error::NoRows));
}

/// A failure after rows may have changed traps, and the next message finds no change.
#[test]
fn a_part_that_fails_leaves_nothing() {
    let mut bench = Bench::new();
    let users = JobPart { job: keys(KeysTask::Users), ..create() };
    for part in [&create(), &users] {
        assert_eq!(bench.run_part(part).results, None);
    }
    let before = inspected(&bench);
    let reject = bench.trapped(&users);
    assert!(reject.contains("UNIQUE constraint failed"), "{reject}");
    assert_eq!(inspected(&bench), before);
    let movies = JobPart { job: keys(KeysTask::Movies), ..create() };
    assert_eq!(bench.run_part(&movies).measurement.rows, 1, "no transaction was left open");
}

fn inspected(bench: &Bench) -> Inspected {
    bench.query("inspect", (create().job,)).unwrap()
}

#[test]
fn a_staged_part_is_the_part() {
    let mut staged = Bench::new();
    let mut at_once = staged.fork();
    staged.call("stage", (create(),));
    let run: PartCost = staged.update("run", (1_u64,)).unwrap();
    assert_eq!(run.measurement.rows, at_once.run_part(&create()).measurement.rows);
    let none = JobPart { count: 0, ..create() };
    assert_eq!(staged.update::<()>("stage", (none,)), Err(Error::NoRows));
}

#[test]
fn other_suites_are_refused() {
    for (which, suite) in [(Which::Bench, "history"), (Which::Leveldb, "keys")] {
        let mut bench = Bench::of(which);
        let job = Job { suite: suite.to_owned(), ..create().job };
        let refused = Error::SuiteUnavailable { suite: suite.to_owned() };
        let part = JobPart { job, ..create() };
        assert_eq!(bench.execute_part(&part), Err(refused.clone()));
        assert_eq!(bench.query::<Inspected>("inspect", (part.job,)), Err(refused));
    }
    let mut bench = Bench::new();
    let job = Job { work: create().job.work[1..].to_vec(), ..create().job };
    let refused = bench.execute_part(&JobPart { job, ..create() });
    assert!(matches!(&refused, Err(Error::InvalidJob { suite, .. }) if suite == "keys"));
}
