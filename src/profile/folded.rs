//! Stacks as text, a line each: `function;function;function instructions`.

use std::collections::BTreeMap;

use super::Flame;

/// The lines, sorted.
pub fn folded(flame: &Flame) -> String {
    flame.lines().iter().map(|(stack, own)| format!("{stack} {own}\n")).collect()
}

/// The lines of two profiles: `stack before after`.
pub fn difference(before: &Flame, after: &Flame) -> String {
    let mut both: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (side, flame) in [before, after].into_iter().enumerate() {
        for (stack, own) in flame.lines() {
            both.entry(stack).or_default()[side] += own;
        }
    }
    both.iter().map(|(stack, [before, after])| format!("{stack} {before} {after}\n")).collect()
}

/// A name as a part of such a line: a semicolon would end it, and a number behind a space
/// would be taken for instructions.
pub(super) fn frame(name: &str) -> String {
    let name = name.replace(';', ":");
    match name.rsplit_once(' ') {
        Some((front, number)) if number.parse::<f64>().is_ok() => format!("{front}_{number}"),
        _ => name,
    }
}
