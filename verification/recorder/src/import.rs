//! Imports cases to record from files of cases and from bare modules.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use stablebench_conformance::subnet::{self, Part, Step, SubnetCase};
use stablebench_conformance::{Call, Case, Error, Kind, MAX_FILE, Source, directory, read};
use stablebench_replica::files;
use wasmparser::{ExternalKind, Parser, Payload};

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
                Some(("canister_update", method)) => Some((Kind::Update, method)),
                Some(("canister_query", method)) => Some((Kind::Query, method)),
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
        Step::Call(call) => call.arg.as_mut_slice(),
        Step::Tick(_) => &mut [],
    }) {
        if let Part::File(file) = part {
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
        let calls = [Call::new(Kind::Update, "set", []), Call::new(Kind::Query, "get", [])];
        assert_eq!((case.name.as_str(), case.calls.as_slice()), ("some", calls.as_slice()));
        let calls = [Call::new(Kind::Query, "get", [1])];
        let case = module(&path, &calls, &folder.path().join("out.json")).unwrap();
        assert_eq!(case.calls, calls);
    }
}
