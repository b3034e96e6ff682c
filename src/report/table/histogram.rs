//! How the costs of single operations are spread, as db_bench's `--histogram` shows it: a
//! line a bucket, with its share, the share so far, and a mark for every 5 %.

use super::grid::{Cell, Grid};
use crate::report::heading;
use crate::report::number::Grouped;
use crate::results::{Case, Results, Spread};

/// Per cent that a mark stands for.
const MARK: u64 = 5;

/// One for each case that was measured operation by operation.
pub fn grids(results: &Results) -> Vec<Grid> {
    let cases = results.cases.iter();
    cases.filter_map(|case| grid(case, case.measured()?.each.as_ref()?)).collect()
}

fn grid(case: &Case, spread: &Spread) -> Option<Grid> {
    let count: u64 = spread.buckets.iter().map(|bucket| bucket.count).sum();
    if count == 0 {
        return None;
    }
    let percent = |of: u64| format!("{:.1} %", of as f64 / count as f64 * 100.0);
    let mut so_far = 0;
    let rows = spread.buckets.iter().map(|bucket| {
        so_far += bucket.count;
        let marks = (bucket.count * 100 + count * MARK / 2) / (count * MARK);
        vec![
            Cell::Text(format!("{} …", Grouped(bucket.from))),
            Cell::text(Grouped(bucket.below)),
            Cell::text(Grouped(bucket.count)),
            Cell::Text(percent(bucket.count)),
            Cell::Text(percent(so_far)),
            Cell::Text("#".repeat(marks as usize)),
        ]
    });
    let header = ["from", "below", "operations", "", "so far", ""];
    Some(Grid {
        title: format!(
            "Instructions of each operation: {}, {}. Count {}, average {}, min {}, median {}, \
             max {}",
            case.name,
            heading(&case.column),
            Grouped(count),
            Grouped(spread.sum / count),
            Grouped(spread.min),
            Grouped(spread.p50),
            Grouped(spread.max),
        ),
        header: header.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        notes: Vec::new(),
        lines: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Bucket, Outcome, sample};

    #[test]
    fn a_bucket_is_a_line_with_its_marks() {
        let mut case = sample::full().cases.remove(0);
        if let Outcome::Measured(measured) = &mut case.outcome
            && let Some(each) = &mut measured.each
        {
            let bucket = |from, count| Bucket { from, below: from + 5, count };
            each.buckets = vec![bucket(25, 30), bucket(50, 68), bucket(5_000, 2)];
        }
        let grids = grids(&sample::of(vec![case.clone()]));
        let rows = grids[0].rows.iter().map(|row| [row[4].clone(), row[5].clone()]);
        let expected = [("30.0 %", 6), ("98.0 %", 14), ("100.0 %", 0)]
            .map(|(share, marks)| [Cell::text(share), Cell::Text("#".repeat(marks))]);
        assert_eq!(rows.collect::<Vec<_>>(), expected);
        case.outcome = Outcome::Failed { reason: String::new() };
        assert!(super::grids(&sample::of(vec![case])).is_empty());
    }
}
