//! Calls of the bench canister are calls that it has.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use candid::types::{Type, TypeInner};
use candid_parser::utils::CandidSource;
use stablebench_conformance::generate::canister::cases;
use stablebench_conformance::{Kind, Source};

/// Methods with the kind and the types of their arguments.
fn interface() -> (candid::TypeEnv, Type) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../canisters/bench/bench.did");
    let text = fs::read_to_string(path).unwrap();
    let (env, actor) = CandidSource::Text(&text).load().unwrap();
    (env, actor.unwrap())
}

#[test]
fn calls_follow_the_interface() {
    let (env, actor) = interface();
    let mut called = BTreeSet::new();
    for case in cases(3, 40, Path::new("bench.wasm")).unwrap() {
        assert_eq!(case.module, Source::Wasm("bench.wasm".into()));
        assert!(case.calls.len() > 30);
        for call in &case.calls {
            // Refused on purpose, or no call of a method.
            if call.arg == b"DIDX" || call.method == "no_such_method" || call.method.is_empty() {
                continue;
            }
            let method = env.get_method(&actor, &call.method).unwrap();
            assert_eq!(method.is_query(), call.kind == Kind::Query, "{}", call.method);
            let types: Vec<Type> = method.args.clone();
            candid::IDLArgs::from_bytes_with_types(&call.arg, &env, &types)
                .unwrap_or_else(|error| panic!("{}: {error}", call.method));
            called.insert(call.method.clone());
        }
    }
    let TypeInner::Service(methods) = actor.as_ref() else { panic!("{actor} is no service") };
    let missing: Vec<&String> =
        methods.iter().map(|(name, _)| name).filter(|name| !called.contains(*name)).collect();
    // The short forms of add_users are for other tools; jobs and staged work make sense in the
    // order of a suite, and suites are run whole on both replicas; vacuum depends on the time.
    let left = [
        "add_users_btree",
        "add_users_sqlite",
        "content",
        "inspect",
        "perform",
        "phases",
        "results",
        "run",
        "run_query",
        "stage_part",
        "stage_work",
        "vacuum",
    ];
    assert_eq!(missing, left);
}
