//! The commands of networks in the documents and in `--help`.

use std::fs;
use std::path::Path;

use super::{IDENTITY, fails, succeeds};
use crate::documented::{commands, help};
use crate::server::Server;

/// Returns the words of a command; `$(…)` is one word.
fn words(command: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in command.split_whitespace() {
        match words.last_mut().filter(|last| last.contains("$(") && !last.contains(')')) {
            Some(last) => *last += word,
            None => words.push(word.to_owned()),
        }
    }
    words
}

/// The replica is a server instead of dfx, icp or the mainnet.
#[test]
fn the_documented_runs_on_a_network_succeed() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("key.pem"), IDENTITY).unwrap();
    let server = Server::start(&["bench"], directory.path());
    let target = server.target();
    let small = ["run", "users", "--rows=20", "--engines=btree", "--identity=key.pem"];
    let error = fails(&[&small, &target[..]].concat(), directory.path());
    assert!(error.contains("can read the key in key.pem; forbid it: chmod 600 key.pem"), "{error}");
    assert!(error.contains("left out: batches of 10, 50, 100, "), "{error}");
    let (_, after) = error.split_once("--add-controller ").unwrap();
    let controller = format!("--controller={}", after.split(',').next().unwrap());
    let server = Server::start(&["bench", &controller], directory.path());
    let url = format!("http://{}", server.address);

    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(root.join("docs/networks.md")).unwrap();
    let mut found = commands(&document, "stablebench run users --rows");
    found.extend(commands(&help(&["run", "--help"]), "stablebench run users --rows"));
    assert_eq!(found.len(), 5, "{found:?}");
    let mut ran = Vec::new();
    for command in found {
        let words = words(&command);
        let mut after = "";
        let args: Vec<&str> = words[1..]
            .iter()
            .map(|word| match std::mem::replace(&mut after, word) {
                "--replica" => &url,
                "--canister" => server.canisters[0].as_str(),
                _ => word,
            })
            .filter(|word| *word != "--yes")
            .collect();
        let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
        if !ran.contains(&args) {
            let typed: Vec<&str> = args.iter().map(String::as_str).collect();
            succeeds(&typed, directory.path());
            ran.push(args);
        }
    }
    assert!(!ran.is_empty());
}
