//! Runs on a replica by URL, for which `stablebench serve` is used.

mod documented;
mod hostile;
mod lossy;

use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::process::Output;

use super::{stablebench, stderr, stdout};
use crate::server::Server;

/// A key that was made for these tests.
const IDENTITY: &str = include_str!("../../../src/replica/network/testdata/ed25519.pem");

const USERS: &[&str] = &[
    "run",
    "users",
    "--sections=insert,transactions,work",
    "--rows=300",
    "--batches=1,20",
    "--at=middle,random",
    "--engines=btree,sqlite,array",
    "--journal-modes=persist",
    "--operations=20",
    "--transaction-rows=30",
    "--transactions=1,30",
    "--per-operation",
];
const SMALL: &[&str] = &[
    "run",
    "users",
    "--rows=200",
    "--batches=1,20",
    "--at=middle",
    "--engines=btree,sqlite",
    "--journal-modes=memory",
];

#[track_caller]
fn succeeds(args: &[&str], directory: &Path) -> Output {
    let output = stablebench(args, directory);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    output
}

/// Returns the error of a run that fails before it measures anything.
#[track_caller]
fn fails(args: &[&str], directory: &Path) -> String {
    let output = stablebench(args, directory);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
    assert_eq!(stdout(&output), "", "{args:?}");
    stderr(&output)
}

/// Runs on the embedded replica and with `target`, and requires equal results.
#[track_caller]
fn is_the_same(suite: &[&str], target: &[&str], directory: &Path) -> String {
    succeeds(&[suite, &["--out=embedded.json"]].concat(), directory);
    let output = succeeds(&[suite, target, &["--out=network.json"]].concat(), directory);
    succeeds(&["compare", "embedded.json", "network.json", "--threshold=0%"], directory);
    stderr(&output)
}

#[test]
fn a_network_gives_the_results_of_the_embedded_replica() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&["bench"], directory.path());
    let notes = is_the_same(USERS, &server.target(), directory.path());
    assert!(notes.contains("about ") && notes.contains("on this machine nobody pays"), "{notes}");
    let saved = std::fs::read_to_string(directory.path().join("network.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&saved).unwrap();
    assert_eq!(results["replica"]["kind"], "network");
    let command = results["command"].as_str().unwrap();
    let [replica, canister] = &server.target()[..] else { panic!() };
    for option in [replica, canister] {
        assert!(command.contains(&option.replace('=', " ")), "{option}: {command}");
    }
    // Cycles are measured, but not the details inside of the replica.
    for case in results["cases"].as_array().unwrap() {
        let detail = &case["outcome"]["measured"]["detail"];
        let instructions = detail["message_instructions"].as_u64().unwrap();
        let cycles = detail["cost"]["cycles"].as_u64().unwrap();
        assert!(instructions < cycles, "{case}");
        assert!(detail["cost"]["inside"].is_null(), "{case}");
    }
    // A complete run measures and costs nothing.
    let again = [USERS, &server.target(), &["--out=network.json", "--resume"]].concat();
    let notes = stderr(&succeeds(&again, directory.path()));
    assert!(notes.contains(": 0 cycles in 0 messages"), "{notes}");
}

#[test]
fn other_suites_and_canisters_have_equal_results() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&["bench", "bench_vfs"], directory.path());
    for suite in [
        &["run", "keys", "--rows=100", "--watches=10", "--questions=3"][..],
        &["run", "vfs", "--rows=60", "--sizes=1,20"],
        &[
            "run",
            "sql",
            "--builtin=ycsb-a",
            "--transactions=20",
            "--per-message=5",
            "--engines=sqlite/persist,sqlite-vfs",
        ],
        &["run", "mix", "--rows=300", "--indexes=1", "--engines=btree,sqlite/wal,sqlite-vfs"],
    ] {
        is_the_same(suite, &server.target(), directory.path());
    }
}

/// Every message is sent to both replicas, and the answers are compared.
#[test]
fn each_answer_equals_that_of_the_embedded_replica() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&["bench"], directory.path());
    succeeds(&[SMALL, &server.target(), &["--verify-embedded"]].concat(), directory.path());
}

#[test]
fn lost_requests_and_answers_change_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&["bench"], directory.path());
    let lossy = lossy::Proxy::start(server.address);
    let replica = format!("--replica={}", lossy.url());
    let target = [&[&*replica], &server.target()[1..]].concat();
    is_the_same(SMALL, &target, directory.path());
    let lost = lossy.lost();
    assert!(lost.requests >= 3 && lost.answers >= 3, "{lost:?}");
}

#[test]
fn canisters_with_other_modules_are_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let wasm = wat::parse_str(include_str!("../../../src/replica/counter.wat")).unwrap();
    std::fs::write(directory.path().join("counter.wasm"), wasm).unwrap();
    let server = Server::start(&["counter.wasm", "bench"], directory.path());
    let foreign = format!("--canister={}", server.canisters[0]);
    let replica = server.replica();
    let error = fails(&[SMALL, &[&replica, &foreign]].concat(), directory.path());
    for part in
        ["the module of bench that is built here", "others are not touched", "dfx deploy bench"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(error.contains(&format!("the module of {} is", server.canisters[0])), "{error}");
    // It is ignored if there is a canister of ours too.
    let ours = format!("--canister={}", server.canisters[1]);
    succeeds(&[SMALL, &[&replica, &foreign, &ours]].concat(), directory.path());
    // A canister that does not exist.
    let error = fails(
        &[SMALL, &[&replica, "--canister=rrkah-fqaaa-aaaaa-aaaaq-cai"]].concat(),
        directory.path(),
    );
    assert!(error.contains("there is no canister rrkah-fqaaa-aaaaa-aaaaq-cai"), "{error}");
}

#[test]
fn the_caller_must_be_a_controller() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("key.pem"), IDENTITY).unwrap();
    let server = Server::start(&["bench"], directory.path());
    let error =
        fails(&[SMALL, &server.target(), &["--identity=key.pem"]].concat(), directory.path());
    let (_, after) = error.split_once("--add-controller ").unwrap_or_else(|| panic!("{error}"));
    let principal = after.split(',').next().unwrap();
    assert_eq!(principal.len(), 63, "{error}");
    let controller = format!("--controller={principal}");
    let server = Server::start(&["bench", &controller], directory.path());
    succeeds(&[SMALL, &server.target(), &["--identity=key.pem"]].concat(), directory.path());
}

#[test]
fn an_unreachable_replica_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["--replica=http://127.0.0.1:1", "--canister=rrkah-fqaaa-aaaaa-aaaaq-cai"];
    let error = fails(&[SMALL, &args].concat(), directory.path());
    assert!(error.contains("no replica answers at http://127.0.0.1:1; is it running?"), "{error}");
}

/// Returns an address of this machine that is not a loopback address.
fn outer_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent.
    socket.connect("198.51.100.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

#[test]
fn cycles_on_other_machines_are_spent_with_yes_only() {
    let Some(ip) = outer_address() else {
        eprintln!("this machine has no address but its own");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&["bench", &format!("--listen={ip}")], directory.path());
    let target = server.target();
    let error = fails(&[SMALL, &target].concat(), directory.path());
    assert!(error.contains("does not sign with the expected key"), "{error}");
    let key = format!("--root-key={}", server.root_key);
    // Before each query there is a pause of seconds, so there are few.
    let one = ["run", "users", "--rows=20", "--batches=1", "--at=middle", "--engines=btree"];
    let known = [&one[..], &target, &[&*key]].concat();
    let error = fails(&known, directory.path());
    assert!(error.contains("nothing was spent: http://"), "{error}");
    assert!(error.contains("add --yes to spend them"), "{error}");
    assert!(error.contains("about ") && error.contains("US$ "), "{error}");
    assert!(!directory.path().join("results.json").exists(), "nothing was measured");
    is_the_same(&one, &[&target, &[&*key, "--yes"][..]].concat(), directory.path());
}
