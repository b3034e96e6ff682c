//! Differences between a fork and its base, as hashes.
//!
//! The answer to a query depends only on the module, the state and the message. Two forks of one
//! canister that differ from it in the same way therefore give the same answers to all queries.

use std::io;
use std::ops::Range;

use sha2::{Digest, Sha256};

use crate::memory::Image;
use crate::state::State;
use crate::units::Cycles;

/// The difference between a fork and its base: SHA-256 of everything that messages can observe,
/// which is pages of the heap and of stable memory, sizes, globals, certified data, timer, time,
/// version and cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference(pub [u8; 32]);

impl Difference {
    /// Returns the difference between a state and that of the base. The other arguments are those
    /// of the fork. Returns `None` if the memories no longer share the pages of the base.
    pub(crate) fn between(
        state: &State,
        base: &State,
        time: u64,
        version: u64,
        balance: Cycles,
    ) -> io::Result<Option<Self>> {
        let Some(heap) = of_memory(&state.heap, &base.heap)? else {
            return Ok(None);
        };
        let Some(stable) = of_memory(&state.stable, &base.stable)? else {
            return Ok(None);
        };
        let (globals, certified_data) = (&state.globals, &state.certified_data);
        let small = (globals, certified_data, state.timer, time, version, balance.to_string());
        let small = serde_json::to_vec(&small).map_err(io::Error::from)?;
        let all = Sha256::new().chain_update(heap).chain_update(stable).chain_update(small);
        Ok(Some(Self(all.finalize().into())))
    }
}

/// The pages of 4 KiB whose content differs between two canisters, as ascending ranges. Pages beyond
/// the end of a memory are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DifferingPages {
    /// True if one canister has a larger heap or stable memory.
    pub size: bool,
    /// Pages of the heap.
    pub heap: Vec<Range<usize>>,
    /// Pages of stable memory.
    pub stable: Vec<Range<usize>>,
}

impl DifferingPages {
    /// Returns the pages in which two states differ, or `None` if they also differ in a global, in
    /// certified data or in the timer.
    pub(crate) fn between(one: &State, other: &State) -> io::Result<Option<Self>> {
        let rest = |state: &State| {
            let State { globals, certified_data, timer, .. } = state;
            serde_json::to_vec(&(globals, certified_data, timer))
        };
        if rest(one)? != rest(other)? {
            return Ok(None);
        }
        let sizes = |state: &State| (state.heap.size(), state.stable.size());
        let heap = one.heap.differing_from(&other.heap)?;
        let stable = one.stable.differing_from(&other.stable)?;
        Ok(Some(Self { size: sizes(one) != sizes(other), heap, stable }))
    }
}

fn of_memory(memory: &Image, base: &Image) -> io::Result<Option<[u8; 32]>> {
    let Some(pages) = memory.changed_since(base) else {
        return Ok(None);
    };
    let mut hash = Sha256::new().chain_update((memory.size() as u64).to_le_bytes());
    memory.differing(base, &pages, |page, bytes| {
        hash.update((page as u64).to_le_bytes());
        hash.update(bytes);
    })?;
    Ok(Some(hash.finalize().into()))
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use ic_principal::Principal;

    use super::DifferingPages;
    use crate::{Canister, Cycles, Module, Replica};

    /// Each method stores the byte `argument[1]`, in memories on page `argument[0]`, and has no
    /// other effect.
    const MODULE: &str = r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
        (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
        (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
        (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
        (import "ic0" "global_timer_set" (func $timer (param i64) (result i64)))
        (memory 2)
        (data (i32.const 65536) "own")
        (global $global (mut i32) (i32.const 0))
        (func $take (call $argument (i32.const 0) (i32.const 0) (i32.const 2)))
        (func $leave (i64.store (i32.const 0) (i64.const 0)) (call $reply))
        (func (export "canister_init") (drop (call $grow (i64.const 2))))
        (func (export "canister_update heap")
            (call $take)
            (i32.store8 (i32.mul (i32.load8_u (i32.const 0)) (i32.const 4096))
                (i32.load8_u (i32.const 1)))
            (call $leave))
        (func (export "canister_update stable")
            (call $take)
            (call $write (i64.mul (i64.load8_u (i32.const 0)) (i64.const 4096))
                (i64.const 1) (i64.const 1))
            (call $leave))
        (func (export "canister_update grow")
            (call $take)
            (drop (call $grow (i64.load8_u (i32.const 1))))
            (call $leave))
        (func (export "canister_update global")
            (call $take)
            (global.set $global (i32.load8_u (i32.const 1)))
            (call $leave))
        (func (export "canister_update timer")
            (call $take)
            (drop (call $timer (i64.load8_u (i32.const 1))))
            (call $leave))
        (func (export "canister_update certify")
            (call $take)
            (call $certify (i32.const 1) (i32.const 1))
            (call $leave))
        (func (export "canister_update nothing") (call $reply)))"#;

    fn canister() -> (Canister, Module) {
        let replica = Replica::new(crate::Rules::of_2025_10(), None).unwrap();
        let module = replica.compile(&wat::parse_str(MODULE).unwrap()).unwrap();
        let mut canister = replica.create_canister().unwrap();
        let installed = canister.install(&module, Principal::anonymous(), &[]).unwrap();
        installed.outcome.unwrap();
        (canister, module)
    }

    fn sent(canister: &Canister, messages: &[(&str, [u8; 2])]) -> Canister {
        let mut fork = canister.fork();
        for (method, argument) in messages {
            let done = fork.update(Principal::anonymous(), method, argument).unwrap();
            done.outcome.unwrap();
        }
        fork
    }

    #[test]
    fn equal_messages_make_equal_differences() {
        let (base, _) = canister();
        let messages = [("heap", [3, 7]), ("stable", [1, 9]), ("grow", [0, 1])];
        let (one, other) = (sent(&base, &messages), sent(&base, &messages));
        let difference = one.difference(&base).unwrap();
        assert!(difference.is_some());
        assert_eq!(difference, other.difference(&base).unwrap());
    }

    /// The forks differ in nothing else: their instructions are the same.
    #[test]
    fn each_part_of_the_state_changes_the_difference() {
        let (base, _) = canister();
        let pairs = [
            ("heap", [3, 7], [3, 8]),
            ("heap", [3, 7], [4, 7]),
            ("stable", [1, 7], [1, 8]),
            ("stable", [1, 7], [2, 7]),
            ("grow", [0, 1], [0, 2]),
            ("global", [0, 1], [0, 2]),
            ("timer", [0, 1], [0, 2]),
            ("certify", [0, 1], [0, 2]),
        ];
        for (method, one, other) in pairs {
            let [one, other] = [one, other].map(|argument| sent(&base, &[(method, argument)]));
            assert_eq!(one.balance(), other.balance(), "{method}");
            let difference = |fork: &Canister| fork.difference(&base).unwrap().unwrap();
            assert_ne!(difference(&one), difference(&other), "{method}");
        }
        type Change = fn(&mut Canister);
        let changes: [Change; 3] = [
            |canister| canister.time += 1,
            |canister| canister.version += 1,
            |canister| canister.balance = Cycles(canister.balance.get() - 1),
        ];
        let unchanged = base.fork().difference(&base).unwrap().unwrap();
        for change in changes {
            let mut fork = base.fork();
            change(&mut fork);
            assert_ne!(fork.difference(&base).unwrap().unwrap(), unchanged);
        }
    }

    #[test]
    fn restored_content_is_no_difference() {
        let (base, _) = canister();
        // The same number of messages and instructions, so that the balances are equal.
        let there_and_back = sent(&base, &[("stable", [1, 9]), ("stable", [1, 0])]);
        let nowhere = sent(&base, &[("stable", [1, 0]), ("stable", [1, 0])]);
        let difference = |fork: Canister| fork.difference(&base).unwrap().unwrap();
        assert_eq!(difference(there_and_back), difference(nowhere));
    }

    #[test]
    fn forks_of_forks_differ_from_the_first_too() {
        let (base, _) = canister();
        let middle = sent(&base, &[("stable", [1, 9])]);
        let last = sent(&middle, &[("heap", [3, 7])]);
        let straight = sent(&base, &[("stable", [1, 9]), ("heap", [3, 7])]);
        assert_eq!(last.difference(&base).unwrap(), straight.difference(&base).unwrap());
        assert_ne!(last.difference(&middle).unwrap(), last.difference(&base).unwrap());
    }

    #[test]
    fn unrelated_canisters_have_no_difference() {
        let (base, module) = canister();
        let (stranger, _) = canister();
        assert_eq!(stranger.difference(&base).unwrap(), None);
        let mut upgraded = base.fork();
        upgraded.upgrade(&module, Principal::anonymous(), &[]).unwrap().outcome.unwrap();
        assert_eq!(upgraded.difference(&base).unwrap(), None);
        // The base has changed since.
        let fork = base.fork();
        let after = sent(&base, &[("heap", [3, 7])]);
        assert_eq!(fork.difference(&after).unwrap(), None);
    }

    #[test]
    fn differing_pages_are_those_with_other_content() {
        let (base, module) = canister();
        let pages = |one: &Canister, other: &Canister| one.differing_pages(other).unwrap();
        let only = |range: Range<usize>| std::iter::once(range).collect::<Vec<_>>();
        let none = DifferingPages::default();
        assert_eq!(pages(&base, &base.fork()), Some(none.clone()));
        let one = sent(&base, &[("heap", [3, 7]), ("stable", [1, 9]), ("stable", [2, 9])]);
        let other = sent(&base, &[("heap", [4, 7]), ("stable", [2, 9]), ("stable", [3, 0])]);
        let expected = DifferingPages { size: false, heap: only(3..5), stable: only(1..2) };
        assert_eq!(pages(&one, &other), Some(expected.clone()));
        assert_eq!(pages(&other, &one), Some(expected));
        let grown = sent(&base, &[("grow", [0, 1])]);
        assert_eq!(pages(&grown, &base), Some(DifferingPages { size: true, ..none.clone() }));
        for change in ["global", "timer", "certify"] {
            assert_eq!(pages(&sent(&base, &[(change, [0, 5])]), &base), None, "{change}");
        }
        // Stable memory is shared after an upgrade, and the heap is new.
        let upgraded = |canister: &Canister| {
            let mut fork = canister.fork();
            let done = fork.upgrade_without_pre_upgrade(&module, Principal::anonymous(), &[]);
            done.unwrap().outcome.unwrap();
            fork
        };
        let expected = DifferingPages { stable: only(1..3), ..none };
        assert_eq!(pages(&upgraded(&one), &upgraded(&base)), Some(expected));
        // A stranger's pages are compared one by one.
        let (stranger, _) = canister();
        let stable = only(1..2);
        let stranger = sent(&stranger, &[("heap", [3, 7]), ("stable", [2, 9])]);
        let differing = pages(&stranger, &one).unwrap();
        assert_eq!((differing.heap, differing.stable), (Vec::new(), stable));
    }

    #[test]
    fn an_execution_names_the_stable_pages_that_it_accessed() {
        let (base, _) = canister();
        let mut fork = base.fork();
        let done = fork.update(Principal::anonymous(), "stable", &[5, 1]).unwrap();
        assert_eq!(done.stable_pages, std::iter::once(5..6).collect::<Vec<_>>());
        let done = fork.query(Principal::anonymous(), "nothing", &[]);
        assert!(done.unwrap().stable_pages.is_empty());
    }
}
