//! The module as it is installed, and the files that other tools deploy it by.

use super::canister::{Bench, BuiltFile, BuiltFiles, Which, root};
use candid::types::FuncMode;
use candid_parser::utils::CandidSource;
use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use stablebench_replica::{MethodKind, Visibility};
use std::collections::BTreeSet;
use std::io::Read;
use wasmparser::{Name, NameSectionReader, Parser, Payload};

fn candid(which: Which) -> String {
    std::fs::read_to_string(root().join(which.candid())).unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// The parts of the module.
fn payloads(wasm: &[u8]) -> impl Iterator<Item = Payload<'_>> {
    Parser::new(0).parse_all(wasm).map(Result::unwrap)
}

#[test]
fn the_interface_is_in_the_module_for_everyone() {
    for which in Which::WITH_C.into_iter().filter(|which| which.can_be_built()) {
        let module = which.module();
        let sections = &module.info().custom_sections;
        let section = &sections["candid:service"];
        assert_eq!(section.visibility, Visibility::Public);
        assert_eq!(String::from_utf8_lossy(&section.content), candid(which));
    }
}

#[test]
fn the_module_has_the_methods_of_the_interface() {
    for which in Which::WITH_C.into_iter().filter(|which| which.can_be_built()) {
        let (module, text) = (which.module(), candid(which));
        let (env, service) = CandidSource::Text(&text).load().unwrap();
        let service = service.unwrap();
        let methods = env.as_service(&service).unwrap();
        let interface: BTreeSet<(String, MethodKind)> = methods
            .iter()
            .map(|(name, function)| {
                let function = env.as_func(function).unwrap();
                let query = function.modes.contains(&FuncMode::Query);
                let kind = if query { MethodKind::Query } else { MethodKind::Update };
                (name.clone(), kind)
            })
            .collect();
        let exported: BTreeSet<(String, MethodKind)> =
            module.info().methods.iter().map(|method| (method.name.clone(), method.kind)).collect();
        assert_eq!(exported, interface);
    }
}

#[test]
fn the_module_asks_the_system_alone() {
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
fn the_module_does_not_tell_where_it_was_built() {
    for module in Which::ALL.map(Which::module) {
        let wasm = module.wasm();
        let here = root().to_str().unwrap();
        // The last: of the standard library, where its sources are installed.
        for place in [here, "/.cargo/", "/lib/rustlib/"].map(str::as_bytes) {
            assert!(!wasm.windows(place.len()).any(|bytes| bytes == place));
        }
    }
}

#[test]
fn what_is_deployed_is_the_module_in_gzip_and_small_enough_for_one_message() {
    for which in Which::ALL {
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

/// `module_hash`, which is of what was installed.
#[test]
fn the_printed_hash_is_the_one_that_the_canister_has() {
    for which in Which::ALL {
        let mut bench = Bench::of(which);
        let hash = bench.0.module().unwrap().hash();
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, which.built().deployable.sha256);
        bench.do_it("set_payload", (1_u32,));
    }
}

#[test]
fn paths_are_printed_from_where_one_is_and_a_second_build_has_the_same_hashes() {
    for which in Which::ALL {
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
fn dfx_finds_the_modules_and_the_interface() {
    let text = std::fs::read_to_string(root().join("dfx.json")).unwrap();
    let dfx: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(dfx["canisters"].as_object().unwrap().len(), Which::WITH_C.len());
    for which in Which::WITH_C.into_iter().filter(|which| which.can_be_built()) {
        let canister = &dfx["canisters"][which.name()];
        assert_eq!(canister["type"], "custom");
        assert_eq!(canister["wasm"], which.built().deployable.path.to_str().unwrap());
        // dfx copies what it need not change, so that the hash is the one that is printed here.
        assert_eq!(canister["shrink"], false);
        assert!(canister["gzip"].is_null() && canister["optimize"].is_null());
        assert_eq!(canister["candid"], which.candid());
        for file in ["wasm", "candid"] {
            let path = root().join(canister[file].as_str().unwrap());
            assert!(path.is_file(), "{}", path.display());
        }
        assert_builds(which, canister["build"].as_str().unwrap());
    }
}

#[test]
fn icp_finds_the_modules() {
    let text = std::fs::read_to_string(root().join("icp.yaml")).unwrap();
    let icp: serde_json::Value = yaml_serde::from_str(&text).unwrap();
    assert_eq!(icp["canisters"].as_array().unwrap().len(), Which::WITH_C.len());
    let built = Which::WITH_C.into_iter().enumerate().filter(|(_, which)| which.can_be_built());
    for (place, which) in built {
        let canister = &icp["canisters"][place];
        assert_eq!(canister["name"], which.name());
        let commands: Vec<&str> = canister["build"]["steps"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|step| step["commands"].as_array().unwrap())
            .map(|command| command.as_str().unwrap())
            .collect();
        assert_builds(which, commands[0]);
        let module = which.built().deployable.path.to_str().unwrap();
        assert!(root().join(module).is_file());
        assert_eq!(commands[1..], [format!("cp {module} \"$ICP_WASM_OUTPUT_PATH\"")]);
    }
}

/// The command is this tool, building this canister.
fn assert_builds(which: Which, command: &str) {
    assert_eq!(command, format!("cargo run --release -- build {}", which.name()));
}
