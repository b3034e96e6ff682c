//! The executions of a call that involves several, as a tree.

use std::collections::{BTreeMap, BTreeSet};

use stablebench_replica::subnet::Executed;

use crate::report::number::Grouped;
use crate::terminal::safe_line;

/// Executions that are shown.
const MAX_SHOWN: usize = 100;

/// Lists executions with their costs, each below the one that caused it.
pub fn tree(executions: &[Executed]) -> String {
    let mut children: BTreeMap<Option<u64>, Vec<&Executed>> = BTreeMap::new();
    let mut listed = BTreeSet::new();
    for execution in executions {
        // The cause of a callback may have been executed before this call, or not be kept.
        let cause = execution.cause.filter(|cause| listed.contains(cause));
        listed.insert(execution.number);
        children.entry(cause).or_default().push(execution);
    }
    let mut lines = Vec::new();
    let mut open: Vec<(&Executed, String, &str)> = Vec::new();
    let roots = children.get(&None).into_iter().flatten();
    open.extend(roots.rev().map(|root| (*root, String::new(), "")));
    while let Some((execution, indent, branch)) = open.pop() {
        let name = execution.to_string();
        lines.push((format!("{indent}{branch}{}", safe_line(&name)), execution));
        let indent = match branch {
            "" => indent,
            "├─ " => format!("{indent}│  "),
            _ => format!("{indent}   "),
        };
        let caused = children.get(&Some(execution.number)).into_iter().flatten();
        for (position, child) in caused.rev().enumerate() {
            let branch = if position == 0 { "└─ " } else { "├─ " };
            open.push((child, indent.clone(), branch));
        }
    }
    let hidden = lines.len().saturating_sub(MAX_SHOWN);
    lines.truncate(MAX_SHOWN);
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let mut text = format!(
        "{:width$}  {:>13}  {:>13}  {:>9}  {:>13}  {:>13}\n",
        "executions", "instructions", "charge", "pages", "cycles", "cycles sent"
    );
    for (name, executed) in lines {
        let execution = &executed.execution;
        text += &format!(
            "{name:width$}  {:>13}  {:>13}  {:>9}  {:>13}  {:>13}\n",
            Grouped(execution.instructions.get()).to_string(),
            Grouped(execution.charge.get()).to_string(),
            Grouped(pages(executed)).to_string(),
            Grouped(u64::try_from(execution.cycles.get()).unwrap_or(u64::MAX)).to_string(),
            signed(executed.cycles_sent),
        );
    }
    if hidden > 0 {
        text += &format!("… and {hidden} more\n");
    }
    text
}

/// Wasm pages touched, or under older rules 4 KiB pages changed and written.
fn pages(executed: &Executed) -> u64 {
    let execution = &executed.execution;
    match execution.pages.touched {
        Some(touched) => (touched.heap + touched.stable).get(),
        None => (execution.memory.heap_changed + execution.memory.stable_written).get(),
    }
}

/// Cycles that came back are negative.
fn signed(cycles: i128) -> String {
    let amount = Grouped(u64::try_from(cycles.unsigned_abs()).unwrap_or(u64::MAX));
    if cycles < 0 { format!("-{amount}") } else { amount.to_string() }
}
