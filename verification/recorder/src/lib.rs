//! Records what a PocketIC server answers to cases, for the embedded replica.
//!
//! ```text
//!   generate ──► cases ──► record (PocketIC server) ──► cases with expected answers
//!                                                            │
//!                              check (embedded replica) ◄────┤
//!                              verify (another server)  ◄────┘
//! ```
//!
//! `crates/conformance` has the format of cases, the recorded ones, and the program that checks them.
//! The program is `recorder`; `docs/metering.md` describes its commands.
//!
//! Cases are generated, or come from files of cases and from bare modules. Each runs on a new instance,
//! with one canister or several, and the answers replace what was expected.

#![forbid(unsafe_code)]

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flate2::read::GzDecoder;
use stablebench_conformance::subnet::{
    self, ArgumentPart, Expected, Outcall, SubnetCase, SubnetStep,
};
use stablebench_conformance::{
    Answer, Answers, Call, Canister, Case, Error, Expect, Failure, Installed, MAX_FILE,
    MessageKind, ONLY_ON_SUBNETS, Reject, RunningSubnet, Source, Target, answers, directory, read,
};
use stablebench_pocket_ic::{
    self as server, HttpAnswer, Instance, Mode, Principal, Server, Subnet, Undetected, Version,
    detect,
};
use stablebench_replica::{Rules, files};
use wasmparser::{ExternalKind, Parser, Payload};

/// Generated cases, to be recorded.
///
/// They have no expected answers. The same seed generates the same cases on every machine.
///
/// | | |
/// |---|---|
/// | `modules` | measurements of each operator and each System API call |
/// | `random` | random programs: the cost of operators and control flow together |
/// | `calls` | random calls to the bench canister, which is real code, and between canisters |
/// | `management` | calls of the management canister |
/// | `settings` | what settings do: heap limits, low memory, environment, storage, reserved cycles |
/// | `motoko` | Motoko's actors |
/// | `services` | HTTPS outcalls and threshold signatures |
/// | `snapshots` | snapshots that are read and uploaded |
pub mod generate {
    pub mod calls;
    pub mod management;
    pub mod modules;
    pub mod motoko;
    pub mod random;
    mod script;
    pub mod services;
    pub mod settings;
    pub mod snapshots;
}

/// A module cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The file is not a module.
    #[error("{path} is not a module: {reason}")]
    NoModule {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] Error),
}

/// Returns true for the name of a module: `.wat`, `.wasm` or `.wasm.gz`.
pub fn is_module(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    [".wat", ".wasm", ".wasm.gz"].iter().any(|extension| name.ends_with(extension))
}

/// Reads the cases of a file for a file at `out`: paths of modules become relative to that.
///
/// # Errors
///
/// If the file cannot be used, or the module of a case is missing.
pub fn cases(path: &Path, out: &Path) -> Result<Vec<Case>, Error> {
    let mut cases = read(path)?;
    for case in &mut cases {
        if let Source::Wasm(file) = &mut case.module {
            *file = relative(&directory(path).join(&*file), out)?;
        }
    }
    Ok(cases)
}

/// Creates a case from a bare module with these calls. Without any, each exported update and query is
/// called once with an empty argument.
///
/// # Errors
///
/// If the file cannot be read, or is not a module.
pub fn module(path: &Path, calls: &[Call], out: &Path) -> Result<Case, Unusable> {
    let bytes = files::read(path, MAX_FILE)
        .map_err(|cause| Error::Read { path: path.to_owned(), cause })?;
    let not_a_module = |reason: &dyn ToString| Unusable::NoModule {
        path: path.to_owned(),
        reason: reason.to_string(),
    };
    let source = if path.extension() == Some(OsStr::new("wat")) {
        Source::Wat(String::from_utf8(bytes.clone()).map_err(|cause| not_a_module(&cause))?)
    } else {
        Source::Wasm(relative(path, out)?)
    };
    let calls = if calls.is_empty() {
        let mut plain = bytes;
        if plain.starts_with(&[0x1f, 0x8b]) {
            plain = files::read_at_most(GzDecoder::new(plain.as_slice()), MAX_FILE)
                .map_err(|cause| not_a_module(&cause))?;
        }
        let wasm = wat::parse_bytes(&plain).map_err(|cause| not_a_module(&cause))?;
        methods(&wasm).map_err(|cause| not_a_module(&cause))?
    } else {
        calls.to_vec()
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.split('.').next().unwrap_or_default().to_owned();
    Ok(Case { name, group: "own".to_owned(), module: source, install: None, calls })
}

/// A call of each exported method.
fn methods(wasm: &[u8]) -> Result<Vec<Call>, wasmparser::BinaryReaderError> {
    let mut calls = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::ExportSection(exports) = payload? else { continue };
        for export in exports {
            let export = export?;
            let method = match export.name.split_once(' ') {
                Some(("canister_update", method)) => Some((MessageKind::Update, method)),
                Some(("canister_query", method)) => Some((MessageKind::Query, method)),
                _ => None,
            };
            if let (ExternalKind::Func, Some((kind, method))) = (export.kind, method) {
                calls.push(Call::new(kind, method, []));
            }
        }
    }
    Ok(calls)
}

/// Reads cases of several canisters. Paths in them begin at the folder of `out` then.
///
/// # Errors
///
/// If the file, or one that it names, cannot be read.
pub fn subnet_cases(path: &Path, out: &Path) -> Result<Vec<SubnetCase>, Error> {
    let mut cases = subnet::read(path)?;
    let steps = cases.iter_mut().flat_map(|case| &mut case.steps);
    for part in steps.flat_map(|step| match step {
        SubnetStep::Call(call) => call.arg.as_mut_slice(),
        SubnetStep::Tick(_) => &mut [],
    }) {
        if let ArgumentPart::File(file) = part {
            *file = relative_text(&directory(path).join(&*file), out)?;
        }
    }
    Ok(cases)
}

/// Returns the path of `file` relative to the folder of `out`, as text.
///
/// # Errors
///
/// If one of them does not exist.
pub fn relative_text(file: &Path, out: &Path) -> Result<String, Error> {
    Ok(relative(file, out)?.to_string_lossy().into_owned())
}

/// Returns the path of `file` relative to the folder of `out`.
///
/// # Errors
///
/// If one of them does not exist.
pub fn relative(file: &Path, out: &Path) -> Result<PathBuf, Error> {
    let canonical = |path: &Path| {
        path.canonicalize().map_err(|cause| Error::Read { path: path.to_owned(), cause })
    };
    let (file, from) = (canonical(file)?, canonical(directory(out))?);
    let shared =
        file.components().zip(from.components()).take_while(|(one, other)| one == other).count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    Ok(up.chain(file.components().skip(shared)).collect())
}

/// Recording was interrupted.
#[derive(Debug, thiserror::Error)]
#[error("after {} recorded cases: {cause}", .recorded.len())]
pub struct Interrupted {
    /// The cases that were recorded.
    pub recorded: Vec<Case>,
    /// The cause.
    #[source]
    pub cause: Error,
}

/// Runs the cases, whose paths are relative to `directory`, and replaces their expected answers by the
/// actual ones. `begin` is called before each case.
///
/// # Errors
///
/// If a module cannot be read, or the target failed; the error has the cases recorded so far.
pub fn record(
    target: &mut dyn Target,
    cases: Vec<Case>,
    directory: &Path,
    mut begin: impl FnMut(&Case),
) -> Result<Vec<Case>, Interrupted> {
    let mut recorded = Vec::new();
    for mut case in cases {
        begin(&case);
        match answers(target, &case, directory) {
            Ok(answers) => fill_in(&mut case, &answers),
            Err(cause) => return Err(Interrupted { recorded, cause }),
        }
        recorded.push(case);
    }
    Ok(recorded)
}

fn fill_in(case: &mut Case, answers: &Answers) {
    match answers {
        Answers::Refused(answer) => {
            case.install = Some(expectation(answer));
            for call in &mut case.calls {
                call.expect = None;
            }
        }
        Answers::Calls(answers) => {
            case.install = None;
            for (call, answer) in case.calls.iter_mut().zip(answers) {
                call.expect = Some(expectation(answer));
            }
        }
    }
}

/// The form of an answer in a file.
fn expectation(answer: &Answer) -> Expect {
    let cycles_charged = answer.cycles.unwrap_or_default();
    match &answer.outcome {
        Ok(reply) => Expect::Reply { hex: reply.clone(), counts: counts(reply), cycles_charged },
        Err(reject) => Expect::Reject {
            code: reject.code.clone(),
            message: reject.message.clone(),
            cycles_charged,
        },
    }
}

/// The reply as numbers, if its length fits and it is not Candid.
fn counts(reply: &[u8]) -> Option<Vec<u64>> {
    let (numbers, rest) = reply.as_chunks::<8>();
    let is_numbers = rest.is_empty() && !reply.starts_with(b"DIDL");
    is_numbers.then(|| numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
}

const CALLER: Principal = Principal::anonymous();

/// A PocketIC server, which ends when this value is dropped.
pub struct PocketIc {
    server: Arc<Server>,
    subnet: Subnet,
}

impl PocketIc {
    /// Starts the server that `POCKET_IC_BIN` names, or one that the client downloads.
    ///
    /// # Errors
    ///
    /// If there is none, or it does not start.
    pub fn start(subnet: Subnet) -> Result<Self, server::Error> {
        Ok(Self { server: Server::start()?, subnet })
    }

    /// Detects the rules by which the server charges.
    ///
    /// # Errors
    ///
    /// If no known rule set matches, or the server failed.
    pub fn rules(&self) -> Result<Rules, Undetected> {
        detect(&self.server, self.subnet)
    }

    /// The server's version.
    pub fn version(&self) -> Version {
        self.server.version()
    }
}

impl Target for PocketIc {
    fn install(&mut self, wasm: &[u8]) -> Result<Installed, Failure> {
        let instance = Instance::create(&self.server, self.subnet)?;
        let id = instance.create_canister(CALLER)?;
        let canister = Installation { instance, id, wasm: wasm.to_vec() };
        let answer = canister.paid(|canister| canister.put(Mode::Install, &[]))?;
        Ok(match answer.outcome {
            Ok(_) => Installed::Canister(Box::new(canister)),
            Err(_) => Installed::Refused(answer),
        })
    }

    fn create(
        &mut self,
        case: &SubnetCase,
        modules: &[Vec<u8>],
    ) -> Result<Box<dyn RunningSubnet>, Failure> {
        let subnet = if case.keys { Subnet::WithKeys } else { self.subnet };
        let instance = Instance::create(&self.server, subnet)?;
        let mut ids = Vec::new();
        for _ in modules {
            let id = instance.create_canister(CALLER)?;
            // A small part for the fees of installing, which only the server charges.
            instance.add_cycles(id, EXTRA)?;
            ids.push(id);
        }
        for (id, wasm) in ids.iter().zip(modules) {
            let installed = instance.install(*id, CALLER, Mode::Install, wasm, &[])?;
            installed.map_err(|reject| format!("a module was refused: {reject}"))?;
        }
        Ok(Box::new(Canisters { instance, ids }))
    }
}

/// Cycles of canisters that call each other, in addition to those of a single one.
const EXTRA: u128 = 100_000_000_000_000;

struct Canisters {
    instance: Instance,
    ids: Vec<Principal>,
}

impl RunningSubnet for Canisters {
    fn ids(&self) -> Vec<Principal> {
        self.ids.clone()
    }

    fn balances(&self) -> Result<Vec<u128>, Failure> {
        let balances = self.ids.iter().map(|id| self.instance.balance(*id));
        Ok(balances.collect::<Result<_, _>>()?)
    }

    fn call(
        &mut self,
        to: Principal,
        kind: MessageKind,
        method: &str,
        argument: &[u8],
        outcalls: &[Outcall],
    ) -> Result<Expected, Failure> {
        let outcome = match kind {
            MessageKind::Update => {
                let answers: Vec<_> = outcalls.iter().map(answer).collect();
                self.instance.update_with_outcalls(to, CALLER, method, argument, &answers)?
            }
            MessageKind::Query => self.instance.query(to, CALLER, method, argument)?,
            MessageKind::Management => self.instance.manage(to, CALLER, method, argument)?,
            MessageKind::Upgrade | MessageKind::Reinstall => {
                return Err("a case only has calls".into());
            }
        };
        Ok(match outcome {
            Ok(reply) => Expected::Reply(reply),
            Err(reject) => Expected::Reject { code: reject.code, message: reject.message },
        })
    }

    fn tick(&mut self, advance_ns: u64) -> Result<(), Failure> {
        if advance_ns > 0 {
            self.instance.advance(Duration::from_nanos(advance_ns))?;
        }
        Ok(self.instance.round()?)
    }
}

fn answer(outcall: &Outcall) -> HttpAnswer {
    match outcall.clone() {
        Outcall::Response { status, headers, body } => {
            HttpAnswer::Response { status, headers, body }
        }
        Outcall::Reject { code, message } => HttpAnswer::Reject { code: code.into(), message },
    }
}

struct Installation {
    instance: Instance,
    id: Principal,
    wasm: Vec<u8>,
}

type Outcome = Result<Vec<u8>, server::Reject>;

impl Installation {
    fn put(&self, mode: Mode, arg: &[u8]) -> Result<Outcome, server::Error> {
        let done = self.instance.install(self.id, CALLER, mode, &self.wasm, arg)?;
        Ok(done.map(|()| Vec::new()))
    }

    /// Sends a message. Returns the answer with the decrease of the balance.
    fn paid(
        &self,
        message: impl FnOnce(&Self) -> Result<Outcome, server::Error>,
    ) -> Result<Answer, Failure> {
        let before = self.instance.balance(self.id)?;
        let outcome = message(self)?;
        let after = self.instance.balance(self.id)?;
        let outcome =
            outcome.map_err(|reject| Reject { code: reject.code, message: reject.message });
        Ok(Answer { outcome, cycles: Some(before.saturating_sub(after)) })
    }
}

impl Canister for Installation {
    fn call(&mut self, kind: MessageKind, method: &str, arg: &[u8]) -> Result<Answer, Failure> {
        if kind == MessageKind::Management {
            return Err(ONLY_ON_SUBNETS.into());
        }
        self.paid(|canister| match kind {
            MessageKind::Update => canister.instance.update(canister.id, CALLER, method, arg),
            MessageKind::Query => canister.instance.query(canister.id, CALLER, method, arg),
            MessageKind::Upgrade => canister.put(Mode::Upgrade, arg),
            MessageKind::Reinstall | MessageKind::Management => canister.put(Mode::Reinstall, arg),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn modules_are_recognized_by_their_names() {
        for name in ["a.wat", "a/b.wasm", "b.wasm.gz"] {
            assert!(is_module(Path::new(name)), "{name}");
        }
        for name in ["a.json", "a.json.gz", "wasm", ""] {
            assert!(!is_module(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn paths_are_relative_to_the_file_of_cases() {
        let folder = tempfile::tempdir().unwrap();
        let (cases, modules) = (folder.path().join("cases"), folder.path().join("modules"));
        fs::create_dir(&cases).unwrap();
        fs::create_dir(&modules).unwrap();
        fs::write(modules.join("a.wasm"), b"").unwrap();
        let path = relative(&modules.join("a.wasm"), &cases.join("out.json")).unwrap();
        assert_eq!(path, Path::new("../modules/a.wasm"));
        let path = relative(&modules.join("a.wasm"), &modules.join("out.json")).unwrap();
        assert_eq!(path, Path::new("a.wasm"));
        assert!(relative(&modules.join("b.wasm"), &cases.join("out.json")).is_err());
    }

    #[test]
    fn each_method_of_a_bare_module_is_called_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.wat");
        let text = r#"(module (func (export "canister_update set")) (func (export "canister_init"))
            (func (export "canister_query get")) (func (export "canister_composite_query all"))
            (memory (export "canister_query memory") 1))"#;
        fs::write(&path, text).unwrap();
        let case = module(&path, &[], &folder.path().join("out.json")).unwrap();
        let calls =
            [Call::new(MessageKind::Update, "set", []), Call::new(MessageKind::Query, "get", [])];
        assert_eq!((case.name.as_str(), case.calls.as_slice()), ("some", calls.as_slice()));
        let calls = [Call::new(MessageKind::Query, "get", [1])];
        let case = module(&path, &calls, &folder.path().join("out.json")).unwrap();
        assert_eq!(case.calls, calls);
    }

    /// A replica that echoes the arguments of a number of messages and then fails.
    struct Echo(usize);

    struct Echoing(usize);

    impl Target for Echo {
        fn install(&mut self, wasm: &[u8]) -> Result<Installed, Failure> {
            let refused = Reject { code: "No".to_owned(), message: "first\nsecond".to_owned() };
            Ok(match wasm.len() {
                8 => Installed::Refused(Answer { outcome: Err(refused), cycles: None }),
                _ => Installed::Canister(Box::new(Echoing(self.0))),
            })
        }
    }

    impl Canister for Echoing {
        fn call(&mut self, _: MessageKind, _: &str, arg: &[u8]) -> Result<Answer, Failure> {
            self.0 = self.0.checked_sub(1).ok_or("the server is gone")?;
            Ok(Answer { outcome: Ok(arg.to_vec()), cycles: Some(5) })
        }
    }

    fn case(wat: &str, calls: usize) -> Case {
        let call = |number: usize| Call::new(MessageKind::Update, "go", [number as u8; 8]);
        Case {
            name: format!("with {calls}"),
            group: "tests".to_owned(),
            module: Source::Wat(wat.to_owned()),
            install: None,
            calls: (0..calls).map(call).collect(),
        }
    }

    #[test]
    fn answers_replace_expectations() {
        let cases = vec![case("(module (memory 1))", 2), case("(module)", 1)];
        let recorded = record(&mut Echo(2), cases, Path::new("."), |_| {}).unwrap();
        let reply = Expect::Reply {
            hex: vec![1; 8],
            counts: Some(vec![0x0101_0101_0101_0101]),
            cycles_charged: 5,
        };
        assert_eq!(recorded[0].calls[1].expect, Some(reply));
        let reject = Expect::Reject {
            code: "No".to_owned(),
            message: "first\nsecond".to_owned(),
            cycles_charged: 0,
        };
        assert_eq!(recorded[1].install, Some(reject));
        assert_eq!(recorded[1].calls[0].expect, None);
        // Recorded again without a refusal, nothing of the first recording is left.
        let again = vec![Case { module: recorded[0].module.clone(), ..recorded[1].clone() }];
        let again = record(&mut Echo(2), again, Path::new("."), |_| {}).unwrap();
        assert_eq!(again[0].install, None);
        assert!(again[0].calls[0].expect.is_some());
    }

    #[test]
    fn cases_recorded_before_a_failure_are_kept() {
        let wat = "(module (memory 1))";
        let cases = vec![case(wat, 1), case(wat, 3), case(wat, 1)];
        let mut begun = 0;
        let ended = record(&mut Echo(2), cases, Path::new("."), |_| begun += 1).unwrap_err();
        assert_eq!((begun, ended.recorded.len()), (2, 1));
        assert!(ended.to_string().contains("the server is gone"), "{ended}");
    }

    #[test]
    fn counts_are_whole_numbers() {
        assert_eq!(counts(&[1, 0, 0, 0, 0, 0, 0, 0]), Some(vec![1]));
        assert_eq!(counts(&[1; 9]), None);
        assert_eq!(counts(b""), Some(vec![]));
        assert_eq!(counts(b"DIDL\0\x01\x78\0"), None);
    }
}
