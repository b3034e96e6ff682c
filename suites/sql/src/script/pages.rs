//! The pages that a statement touched, from the canister's readings of its counter.
//!
//! ```text
//!   ├─ opening ─┤ ├─ prepare ─┤ ├─ step ─┤ row ├─ step ─┤ row … ├─ step ─┤ ├─ ending ─┤
//!    the first      unless it                                               the last
//!    of a group     was prepared                                            of a group
//! ```

use stablebench_suite::cost::PageCosts;

use crate::Answer;

/// Returns the cost of the pages that a statement touched, without those of the copies of its rows, from
/// all readings of a message, each with the cost of pages up to it. It is a part of the statement's
/// instructions. `None` if the replica knows none.
///
/// The sum of the intervals is the number of the statement's instructions, and so tells which of those
/// above are between its first and its last reading.
pub fn pages_of(readings: &[(u64, PageCosts)], answer: &Answer) -> Option<PageCosts> {
    let place = |used: u64| readings.binary_search_by_key(&used, |(used, _)| *used).ok();
    let own = readings.get(place(answer.readings.0)?..=place(answer.readings.1)?)?;
    // The first two readings of a message tell what a reading costs.
    let reading = readings.get(1)?.0 - readings.first()?.0;
    let instructions = answer.prepare + answer.step + answer.around;
    (0..16).map(|bits| [1, 2, 4, 8].map(|bit| bits & bit != 0)).find_map(|parts| {
        let starts = starts(own.len(), parts)?;
        let pairs = || starts.iter().filter_map(|at| Some((own.get(*at)?, own.get(*at + 1)?)));
        let spent: u64 = pairs().map(|(from, to)| (to.0 - from.0).saturating_sub(reading)).sum();
        let pages = || pairs().map(|(from, to)| to.1 - from.1).reduce(|one, other| one + other);
        (spent == instructions).then(pages).flatten()
    })
}

/// Returns the numbers of the readings with which intervals begin, if so many readings can be these
/// parts.
fn starts(readings: usize, [opens, prepares, steps, ends]: [bool; 4]) -> Option<Vec<usize>> {
    let end = readings.checked_sub(if ends { 2 } else { 0 })?;
    let mut starts: Vec<usize> = opens.then_some(0).into_iter().collect();
    let mut at = if opens { 2 } else { 0 };
    if prepares {
        starts.push(at);
        at += if steps { 1 } else { 2 };
    }
    if steps {
        // The reading at which the statement begins.
        at += 1;
        if at >= end || !(end - at).is_multiple_of(2) {
            return None;
        }
        starts.extend((at..end).step_by(2));
        at = end;
    }
    starts.extend(ends.then_some(end));
    (at == end).then_some(starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings at these instructions; each interval touches a page of the heap.
    fn readings(used: &[u64]) -> Vec<(u64, PageCosts)> {
        let page = |heap: usize| PageCosts { heap: heap as u64, stable: 0, touched: None };
        used.iter().enumerate().map(|(at, used)| (*used, page(at))).collect()
    }

    fn heap(used: &[u64], answer: &Answer) -> Option<u64> {
        pages_of(&readings(used), answer).map(|pages| pages.heap)
    }

    #[test]
    fn copies_of_rows_are_left_out() {
        // A reading costs 1. The library opens in 20, two rows and the end take 10 each, the copies 100.
        let used = [0, 1, 10, 31, 40, 46, 50, 61, 161, 172, 272, 283, 300, 331];
        let answer = Answer { prepare: 5, step: 30, readings: (40, 283), ..Answer::default() };
        assert_eq!(heap(&used, &answer), Some(4));
        let first = Answer { around: 20, readings: (10, 283), ..answer.clone() };
        assert_eq!(heap(&used, &first), Some(5));
        let only = Answer { around: 50, readings: (10, 331), ..answer.clone() };
        assert_eq!(heap(&used, &only), Some(6));
        let again = Answer { prepare: 0, readings: (46, 283), ..answer };
        assert_eq!(heap(&used, &again), Some(3));
    }

    #[test]
    fn the_transactions_of_a_library_have_pages() {
        let used = [0, 1, 10, 31, 40, 71];
        let of = |around, readings| Answer { around, readings, ..Answer::default() };
        assert_eq!(heap(&used, &of(20, (10, 31))), Some(1), "BEGIN");
        assert_eq!(heap(&used, &of(30, (40, 71))), Some(1), "COMMIT");
        assert_eq!(heap(&used, &of(50, (10, 71))), Some(2), "both");
    }

    #[test]
    fn pages_are_unknown_without_readings() {
        let answer = Answer { step: 10, readings: (10, 21), ..Answer::default() };
        assert_eq!(heap(&[], &answer), None);
        assert_eq!(heap(&[0, 1, 10, 25], &answer), None);
    }
}
