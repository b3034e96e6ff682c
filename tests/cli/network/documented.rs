//! The commands in the documents and in `--help`.

use std::fs;
use std::path::Path;

use super::{IDENTITY, fails, succeeds};
use crate::server::Server;
use crate::{stablebench, stdout};

/// Returns the commands of a text that begin with `start`, with joined lines and without comments.
fn commands(text: &str, start: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with(start));
    lines.map(|line| line.split(" #").next().unwrap_or_default().to_owned()).collect()
}

/// Returns the output of `--help`, with wrapped commands joined.
fn help(args: &[&str]) -> String {
    let shown = stdout(&stablebench(args, Path::new(".")));
    let mut text = String::new();
    for line in shown.lines() {
        let continues = line.starts_with("    ") && !line.starts_with("    stablebench ");
        text.push(if continues { ' ' } else { '\n' });
        text += line;
    }
    text
}

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

#[test]
fn every_documented_run_has_a_plan() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts: Vec<String> = [&["--help"][..], &["run", "--help"], &["run", "users", "--help"]]
        .into_iter()
        .map(help)
        .collect();
    texts.push(fs::read_to_string(root.join("README.md")).unwrap());
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            texts.push(fs::read_to_string(path).unwrap());
        }
    }
    let mut seen = 0;
    for text in &texts {
        let mut found = commands(text, "stablebench run ");
        found.extend(commands(text, "cargo run --release -- run "));
        for command in found {
            let words = words(command.rsplit_once("run ").map_or("", |(_, words)| words));
            // Placeholders, and `all`, which has no --list.
            let whole = |word: &String| word.contains('…') || word == "URL" || word == "[SUITE]";
            if words.iter().any(whole) || words[0] == "all" {
                continue;
            }
            let words = words.into_iter().filter(|word| word != "--list").collect::<Vec<_>>();
            let args: Vec<&str> =
                ["run"].into_iter().chain(words.iter().map(String::as_str)).collect();
            let id = "rrkah-fqaaa-aaaaa-aaaaq-cai";
            let args: Vec<&str> =
                args.into_iter().map(|it| if it.contains("$(") { id } else { it }).collect();
            let output = succeeds(&[&args[..], &["--list"]].concat(), root);
            assert!(!output.stdout.is_empty(), "{command}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
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
