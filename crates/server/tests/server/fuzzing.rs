//! Bounded runs of the fuzz targets, and mutated requests. `fuzz/` runs the targets with
//! `cargo fuzz` for any time.

use candid::Principal;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::server::{COUNTER, Server, ed25519, number, query};
use super::targets::{self, bounded};

/// Runs `target` on bounded inputs, and checks that they cover the given cases often enough.
fn run(target: fn(&[u8]), name: &str, inputs: u64, cases: &[(&str, usize)]) {
    bounded::run(target, inputs, 2_000);
    bounded::enough(name, cases);
}

#[test]
fn request_bodies() {
    let cases = [("let in", 100), ("refused", 200), ("not there", 20)];
    run(targets::request_body, "request_body", 200, &cases);
}

#[test]
fn management_arguments() {
    let cases = [("ran", 100), ("not decoded", 100), ("rejected", 50)];
    run(targets::management_argument, "management_argument", 200, &cases);
}

#[test]
fn state_paths() {
    let cases = [("read", 100), ("refused", 100)];
    run(targets::state_path, "state_path", 200, &cases);
}

/// Runs ten times as many other inputs.
#[test]
#[ignore = "some minutes: cargo test --release --test server -- --ignored"]
fn many_more() {
    for number in 10_000..12_000 {
        println!("input {number}");
        let input = bounded::input(number, 2_000);
        targets::request_body(&input);
        targets::management_argument(&input);
        targets::state_path(&input);
    }
}

/// A change of the body of a valid call.
#[derive(Clone, Debug)]
enum Change {
    Flip(usize, u8),
    Cut(usize),
    Insert(usize, Vec<u8>),
    Replace(Vec<u8>),
}

fn changes() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (any::<prop::sample::Index>(), 1_u8..).prop_map(|(at, by)| Change::Flip(at.index(100_000), by)),
        1 => any::<prop::sample::Index>().prop_map(|at| Change::Cut(at.index(100_000))),
        2 => (any::<prop::sample::Index>(), vec(any::<u8>(), 1..9))
            .prop_map(|(at, bytes)| Change::Insert(at.index(100_000), bytes)),
        1 => vec(any::<u8>(), 0..200).prop_map(Change::Replace),
    ]
}

impl Change {
    fn apply(self, body: &mut Vec<u8>) {
        let length = body.len().max(1);
        match self {
            Self::Flip(at, by) if !body.is_empty() => body[at % length] ^= by,
            Self::Flip(..) => {}
            Self::Cut(at) => body.truncate(at % length),
            Self::Insert(at, bytes) => {
                let at = (at % length).min(body.len());
                drop(body.splice(at..at, bytes));
            }
            Self::Replace(bytes) => *body = [b"\xd9\xd9\xf7".as_slice(), &bytes].concat(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mutated_bodies_are_refused() {
    let (server, id) = Server::with(COUNTER).await;
    // A signed call: a change of any bit invalidates it.
    let agent = server.agent(ed25519(1));
    let call = agent.update(&id, "add").sign().unwrap().signed_update;
    let addresses = [
        format!("/api/v2/canister/{id}/call"),
        format!("/api/v4/canister/{id}/call"),
        format!("/api/v3/canister/{id}/query"),
        format!("/api/v3/canister/{id}/read_state"),
        format!("/api/v2/subnet/{}/read_state", Principal::self_authenticating(&server.root_key)),
    ];
    let handle = tokio::runtime::Handle::current();
    let answered = tokio::task::block_in_place(|| {
        let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
        let seeded = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        TestRunner::new_with_rng(config, seeded).run(
            &(vec(changes(), 1..4), 0_usize..5),
            |(changes, address)| {
                let mut body = call.clone();
                changes.into_iter().for_each(|change| change.apply(&mut body));
                prop_assume!(body != call);
                let (status, _, answer) = handle.block_on(server.post(&addresses[address], body));
                prop_assert!((400..500).contains(&status), "{status}");
                prop_assert!(!answer.is_empty());
                Ok(())
            },
        )
    });
    answered.unwrap();
    assert_eq!(number(&query(&agent, id, "get").await), 0);
}
