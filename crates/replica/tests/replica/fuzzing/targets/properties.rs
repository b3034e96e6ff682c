//! Properties of every message of any module: only successful messages change the state, a fork does
//! the same at the same price, and charges are within limits.

use stablebench_replica::{Canister, ErrorCode, Execution, MethodKind, Module};

use super::content::Content;
use super::{CALLER, met, replica};

const UPDATE: u64 = 40_000_000_000;
const QUERY: u64 = 5_000_000_000;
const INSTALL: u64 = 300_000_000_000;

/// Compares executions except for their duration and the number of pages written without a change.
#[track_caller]
pub fn same(one: &Execution, other: &Execution) {
    assert_eq!(one.outcome, other.outcome);
    assert_eq!(one.instructions, other.instructions);
    assert_eq!((one.charge, one.cycles), (other.charge, other.cycles));
    assert_eq!(one.stable_calls, other.stable_calls);
    let pages = |execution: &Execution| {
        let memory = execution.memory;
        (memory.heap_changed, memory.stable_written, memory.stable_accessed)
    };
    assert_eq!(pages(one), pages(other));
    let sizes = |execution: &Execution| (execution.memory.heap, execution.memory.stable);
    assert_eq!(sizes(one), sizes(other));
    assert_eq!(one.printed, other.printed);
}

#[track_caller]
fn within(execution: &Execution, limit: u64) {
    assert!(execution.charge.get() <= limit, "{} of {limit}", execution.charge);
    assert!(execution.charge.get() >= execution.instructions.get().min(limit));
    let memory = &execution.memory;
    assert!(memory.stable_written <= memory.stable_accessed);
    match &execution.outcome {
        Ok(reply) => {
            assert!(reply.len() <= 3 << 20);
            // The counter is not checked at the end of a function.
            assert!(execution.instructions.get() <= limit + 1_000_000);
        }
        Err(reject) => assert!(reject.message.len() <= 3 << 20),
    }
    let printed = execution.printed.iter().map(|text| text.len() + 40);
    assert!(printed.sum::<usize>() <= 2 << 20);
}

/// Installs a module into an empty canister and calls its methods in turn.
pub fn exercise(target: &'static str, module: &Module, argument: &[u8], messages: usize) {
    let mut canister = replica().create_canister().unwrap();
    let before = canister.balance();
    let installed = canister.install(module, CALLER, argument).unwrap();
    within(&installed, INSTALL);
    assert_eq!(canister.balance(), before - installed.cycles);
    met(target, if installed.outcome.is_ok() { "installed" } else { "not installed" });
    if installed.outcome.is_err() {
        assert!(canister.module().is_none());
        assert_eq!((canister.heap_size().get(), canister.stable_size().get()), (0, 0));
        assert!(canister.certified_data().is_empty());
        return;
    }
    for method in module.info().methods.iter().cycle().take(messages) {
        match method.kind {
            MethodKind::Update => update(target, &mut canister, &method.name, argument),
            MethodKind::Query => {
                query(target, &canister, &method.name, argument);
                update(target, &mut canister, &method.name, argument);
            }
            MethodKind::CompositeQuery => {
                query(target, &canister, &method.name, argument);
                let refused = canister.update(CALLER, &method.name, argument).unwrap();
                assert!(refused.outcome.is_err());
            }
        }
    }
    upgrade(target, &mut canister, module, argument);
}

fn update(target: &'static str, canister: &mut Canister, method: &str, argument: &[u8]) {
    let before = Content::of(canister);
    let mut fork = canister.fork();
    let execution = canister.update(CALLER, method, argument).unwrap();
    let again = fork.update(CALLER, method, argument).unwrap();
    same(&execution, &again);
    within(&execution, UPDATE);

    let after = Content::of(canister);
    assert_eq!(after, Content::of(&fork));
    assert_eq!(before.balance - after.balance, execution.cycles.get());
    // A message that is not inducted costs nothing and does not advance the time.
    let inducted = after.time > before.time;
    assert_eq!(inducted, execution.cycles.get() > 0);
    let kept = match &execution.outcome {
        Ok(_) => true,
        Err(reject) => {
            inducted
                && matches!(
                    reject.code,
                    ErrorCode::CanisterDidNotReply | ErrorCode::CanisterRejectedMessage
                )
        }
    };
    met(target, if kept { "kept" } else { "undone" });
    assert_eq!(after.version, before.version + u64::from(kept));
    let is_query = canister.module().is_some_and(|module| {
        let mut methods = module.info().methods.iter();
        methods.any(|found| found.name == method && found.kind == MethodKind::Query)
    });
    if !kept || is_query {
        assert_eq!(after.kept(), before.kept());
    } else if after.kept() != before.kept() {
        met(target, "changed");
    }
}

fn query(target: &'static str, canister: &Canister, method: &str, argument: &[u8]) {
    let before = Content::of(canister);
    let execution = canister.query(CALLER, method, argument).unwrap();
    within(&execution, QUERY);
    met(target, if execution.outcome.is_ok() { "answered" } else { "not answered" });
    assert_eq!(execution.cycles.get(), 0);
    assert_eq!(Content::of(canister), before);
    same(&execution, &canister.fork().query(CALLER, method, argument).unwrap());
    same(&execution, &canister.query_all(CALLER, method, argument).unwrap());
}

fn upgrade(target: &'static str, canister: &mut Canister, module: &Module, argument: &[u8]) {
    let before = Content::of(canister);
    let mut fork = canister.fork();
    let execution = canister.upgrade(module, CALLER, argument).unwrap();
    within(&execution, INSTALL);
    same(&execution, &fork.upgrade(module, CALLER, argument).unwrap());
    let after = Content::of(canister);
    assert_eq!(after, Content::of(&fork));
    assert_eq!(before.balance - after.balance, execution.cycles.get());
    met(target, if execution.outcome.is_ok() { "upgraded" } else { "not upgraded" });
    if execution.outcome.is_err() {
        assert_eq!(after.kept(), before.kept());
        assert_eq!(after.version, before.version);
    }
}
