//! Tests of what the canister's methods cost, without a server.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

use std::process::Command;
use std::sync::LazyLock;

use stablebench_replica::testing::{Canister, assert_instructions};

/// The module, built as for deployment: here under this workspace's profile of canisters. In a
/// project of your own, that is often `release`.
static MODULE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    const TARGET: &str = "wasm32-unknown-unknown";
    const PROFILE: &str = "canister";
    // The target directory, in which cargo makes a folder for tests.
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/..");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--profile", PROFILE, "--lib"])
        .args(["--target", TARGET, "--target-dir", folder])
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
        .status()
        .expect("cargo starts");
    assert!(status.success(), "the canister does not build");
    std::fs::read(format!("{folder}/{TARGET}/{PROFILE}/tested_canister.wasm")).expect("the module")
});

/// A canister with 10 000 counters. Preparing it takes the longest, so tests run on forks of it.
fn populated() -> Canister {
    static POPULATED: LazyLock<Canister> = LazyLock::new(|| {
        let mut canister = Canister::install(&MODULE, ());
        for number in 0..10_000 {
            canister
                .update("add", (format!("counter {number:05}"), 1_u64))
                .reply::<(u64,)>()
                .unwrap();
        }
        canister
    });
    POPULATED.fork()
}

#[test]
fn adding_stays_cheap_in_a_large_map() {
    let mut canister = populated();
    let execution =
        assert_instructions!(canister.update("add", ("counter 05000", 2_u64)), <= 1_600_000);
    assert_eq!(execution.reply::<(u64,)>().unwrap(), (3,));
    assert_instructions!(canister.update("add", ("a new counter", 1_u64)), <= 2_000_000);
}

#[test]
fn reading_is_cheaper_than_writing() {
    let mut canister = populated();
    let reading = assert_instructions!(canister.query("get", ("counter 05000",)), <= 1_500_000);
    let writing =
        assert_instructions!(canister.update("add", ("counter 05000", 1_u64)), <= 2_000_000);
    assert!(reading.instructions < writing.instructions);
}

/// All counts of a message, to be reviewed when they change: `cargo insta review`, or set
/// `INSTA_UPDATE=always`. They depend on the version of the compiler.
#[test]
fn the_sum_of_ten_thousand_counters() {
    let execution = populated().query("sum", ());
    assert_eq!(execution.reply::<(u64,)>().unwrap(), (10_000,));
    insta::assert_snapshot!(execution.counts());
}

#[test]
fn an_upgrade_keeps_the_counters() {
    let mut canister = populated();
    canister.upgrade(&MODULE, ()).outcome.unwrap();
    let kept = canister.query("get", ("counter 09999",));
    assert_eq!(kept.reply::<(Option<u64>,)>().unwrap(), (Some(1),));
}
