//! The module as it is installed, and the files by which other tools deploy it.

use super::canister::{BuiltFile, BuiltFiles, CONTROLLER, Which, replica, root};
use candid::encode_args;
use candid::types::FuncMode;
use candid_parser::utils::CandidSource;
use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use stablebench_replica::{MethodKind, Visibility};
use std::collections::BTreeSet;
use std::io::Read;
use wasmparser::{Name, NameSectionReader, Parser, Payload};

fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// The parts of the module.
fn payloads(wasm: &[u8]) -> impl Iterator<Item = Payload<'_>> {
    Parser::new(0).parse_all(wasm).map(Result::unwrap)
}

#[test]
fn every_module_has_the_interface() {
    Which::ALL.into_iter().for_each(check_interface);
}

/// The interface is public, and its methods are those that the module exports.
pub fn check_interface(which: Which) {
    let (module, text) = (which.module(), text(which.candid()));
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
                    let names = NameSectionReader::new(reader).map(Result::unwrap);
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
fn the_deployed_file_is_the_compressed_module_and_fits_into_one_message() {
    for which in Which::DEPLOYABLE {
        let BuiltFiles { deployable, plain } = which.built();
        let file = std::fs::read(root().join(&deployable.path)).unwrap();
        let wasm = std::fs::read(root().join(&plain.path)).unwrap();
        let mut inside = Vec::new();
        GzDecoder::new(file.as_slice()).read_to_end(&mut inside).unwrap();
        assert!(inside == wasm);
        assert!(file.len() < 2 << 20, "{which:?}: {} bytes", file.len());
        assert_eq!((&deployable.sha256, &plain.sha256), (&sha256(&file), &sha256(&wasm)));
    }
}

/// The `module_hash` of an installed file. The canister is the one that compiles fastest.
#[test]
fn the_printed_hashes_are_those_that_canisters_have() {
    let BuiltFiles { deployable, plain } = Which::Calls.built();
    for BuiltFile { sha256, path } in [deployable, plain] {
        let wasm = std::fs::read(root().join(path)).unwrap();
        let mut canister = replica().create_canister().unwrap();
        let module = replica().compile(&wasm).unwrap();
        let installed = canister.install(&module, CONTROLLER, &encode_args(()).unwrap());
        installed.unwrap().outcome.unwrap();
        let hash = canister.module().unwrap().hash();
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, *sha256);
    }
}

#[test]
fn paths_are_relative_to_the_current_directory_and_builds_have_the_same_hashes() {
    for which in Which::DEPLOYABLE {
        let (here, within) = (which.built(), root().join("canisters"));
        let elsewhere = BuiltFiles::in_place(which, &within);
        for (here, elsewhere) in
            [(&here.deployable, &elsewhere.deployable), (&here.plain, &elsewhere.plain)]
        {
            assert_eq!(here.sha256, elsewhere.sha256);
            assert!(here.path.is_relative() && elsewhere.path.is_absolute());
            assert_eq!(sha256(&std::fs::read(&elsewhere.path).unwrap()), here.sha256);
        }
    }
}

#[test]
fn the_documented_hashes_are_those_of_the_modules() {
    let document = std::fs::read_to_string(root().join("docs/networks.md")).unwrap();
    let BuiltFiles { deployable, plain } = Which::Bench.built();
    for BuiltFile { sha256, path } in [deployable, plain] {
        let line = format!("{sha256}  {}\n", path.display());
        assert!(document.contains(&line), "docs/networks.md does not contain {line}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the file is the repository's own")]
fn dfx_and_icp_find_the_modules() {
    let dfx: serde_json::Value = serde_json::from_str(&text("dfx.json")).unwrap();
    assert_eq!(dfx["canisters"].as_object().unwrap().len(), Which::NUMBER);
    let icp: serde_json::Value = yaml_serde::from_str(&text("icp.yaml")).unwrap();
    assert_eq!(icp["canisters"].as_array().unwrap().len(), Which::NUMBER);
    Which::DEPLOYABLE.into_iter().for_each(check_deployment);
}

fn text(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap()
}

/// Other tools build the canister with this one, and find its module and interface.
#[expect(clippy::disallowed_methods, reason = "the file is the repository's own")]
pub fn check_deployment(which: Which) {
    let build = format!("cargo run --release -- build {}", which.name());
    let module = which.built().deployable.path.to_str().unwrap();

    let dfx: serde_json::Value = serde_json::from_str(&text("dfx.json")).unwrap();
    let canister = &dfx["canisters"][which.name()];
    assert_eq!(canister["type"], "custom");
    assert_eq!(canister["wasm"], module);
    // dfx then copies the file, so that its hash is the one that is printed here.
    assert_eq!(canister["shrink"], false);
    assert!(canister["gzip"].is_null() && canister["optimize"].is_null());
    assert_eq!(canister["candid"], which.candid());
    assert_eq!(canister["build"], build);
    assert!(root().join(module).is_file() && root().join(which.candid()).is_file());

    let icp: serde_json::Value = yaml_serde::from_str(&text("icp.yaml")).unwrap();
    let canisters = icp["canisters"].as_array().unwrap();
    let canister = canisters.iter().find(|canister| canister["name"] == which.name()).unwrap();
    let commands: Vec<&str> = canister["build"]["steps"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|step| step["commands"].as_array().unwrap())
        .map(|command| command.as_str().unwrap())
        .collect();
    assert_eq!(commands, [build, format!("cp {module} \"$ICP_WASM_OUTPUT_PATH\"")]);
}
