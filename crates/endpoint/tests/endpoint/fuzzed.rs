//! Bodies that nobody meant: each is answered, none with a fault of the server, and none runs.

use candid::Principal;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::server::{COUNTER, Server, number, query};

/// What is done to the body of a call that would run.
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
async fn changed_bodies_are_answered() {
    let (server, id) = Server::with(COUNTER).await;
    // A signed call: with one bit changed it is another's, or nothing.
    let agent = server.agent(super::identities::ed25519(1));
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
                let (status, _, said) = handle.block_on(server.post(&addresses[address], body));
                prop_assert!((400..500).contains(&status), "{status}");
                prop_assert!(!said.is_empty());
                Ok(())
            },
        )
    });
    answered.unwrap();
    assert_eq!(number(&query(&agent, id, "get").await), 0);
}
