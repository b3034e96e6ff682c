//! The functions that took most themselves.

use super::Flame;
use crate::report::number::{Fixed, Grouped};
use crate::terminal::Terminal;

/// Functions that are listed.
const MOST: usize = 15;
/// Characters before a name, and the least of a name.
const BEFORE: usize = 59;
const LEAST: usize = 20;

/// A line a function, and what is left out. Names are cut off where the terminal ends.
pub fn table(flame: &Flame, terminal: Terminal) -> String {
    let name = |name: &str| -> String {
        let room =
            terminal.width.map_or(usize::MAX, |width| usize::from(width).saturating_sub(BEFORE));
        match name.chars().count() > room.max(LEAST) {
            true => name.chars().take(room.max(LEAST) - 1).chain(['…']).collect(),
            false => name.to_owned(),
        }
    };
    let all = flame.all();
    let functions = flame.functions();
    let mut text =
        format!("{:>7} {:>17} {:>17} {:>13}  function\n", "share", "self", "with callees", "calls");
    for function in functions.iter().take(MOST) {
        let share = function.own as f64 / all.max(1) as f64 * 100.0;
        text += &format!(
            "{:>5} % {:>17} {:>17} {:>13}  {}\n",
            Fixed(share, 1),
            Grouped(function.own),
            Grouped(function.total),
            Grouped(function.calls),
            name(&function.name)
        );
    }
    let rest = &functions[functions.len().min(MOST)..];
    let own: u64 = rest.iter().map(|function| function.own).sum();
    if own > 0 {
        let share = own as f64 / all.max(1) as f64 * 100.0;
        text += &format!(
            "{:>5} % {:>17} {:>17} {:>13}  {} others\n",
            Fixed(share, 1),
            Grouped(own),
            "",
            "",
            Grouped(rest.iter().filter(|function| function.own > 0).count() as u64)
        );
    }
    text += &format!("{:>5} % {:>17}\n", Fixed(100.0, 1), Grouped(all));
    if flame.folded > 0 {
        let folded = format!(
            "{} calls were too deep, or of too many kinds, to be told apart: they are part of \
             their callers",
            Grouped(flame.folded)
        );
        text += &(terminal.wrapped(&folded) + "\n");
    }
    text
}
