//! The modules of canisters as they are installed: their interfaces, imports, names and hashes, also in the files by
//! which other tools deploy them.

use super::canister::list::SOURCES;
use super::canister::{CONTROLLER, Which, plain, replica, root};
use candid::encode_args;
use candid::types::FuncMode;
use candid_parser::utils::CandidSource;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use stablebench_replica::{MethodKind, Visibility};
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
