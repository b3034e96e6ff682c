//! Published figures that ours are printed beside: results in the same format, with
//! what is known of them.

use anyhow::{Result, bail};
use stablebench_workload::ids::STEP;

use crate::results::Results;

/// Names and texts of all of them.
const PUBLISHED: &[(&str, &str)] = &[("users", include_str!("../../results/published/users.json"))];

/// What the forum post "Writing into StableBTreeMap vs SQLite" calls "new elements".
///
/// It counts the span of the new ids, ten times the number of rows: its loop is
/// `while i < count { add(offset + i); i += 10 }`. The figures in `users.json` stand at
/// the rows that were in fact added, so that its 1 and its 10 are one case.
pub const USERS_SPANS: [u64; 6] = [1, 10, 50, 100, 1_000, 10_000];

/// The rows of such a span, where ids are [`STEP`] apart.
pub fn rows_of_span(span: u64) -> u64 {
    span.div_ceil(STEP)
}

/// The figures of that name.
pub fn get(name: &str) -> Result<Results> {
    match PUBLISHED.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Results::parse(text),
        None => {
            let known: Vec<&str> = PUBLISHED.iter().map(|(known, _)| *known).collect();
            bail!("no figures are published as {name}; there are: {}", known.join(", "))
        }
    }
}

/// Who published them, and what they were measured with.
pub fn source(published: &Results) -> String {
    let crates: Vec<String> = published
        .canisters
        .iter()
        .flat_map(|of| &of.crates)
        .map(|of| format!("{} {}", of.name, of.version))
        .collect();
    format!("{}: {}", published.stablebench, crates.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::number::Grouped;

    /// The post's table as it stands there.
    const USERS: [(u64, [u64; 4]); 6] = [
        (1, [49_359, 407_462, 202_686, 149_520]),
        (10, [49_359, 407_462, 202_686, 149_520]),
        (50, [256_551, 453_089, 248_313, 195_171]),
        (100, [548_249, 529_542, 324_840, 271_660]),
        (1_000, [5_706_594, 2_334_600, 2_064_459, 1_993_575]),
        (10_000, [57_301_658, 20_441_029, 18_909_213, 18_612_903]),
    ];
    /// "StableBTree", "SQLite", "SQLite in-memory journal", "SQLite no journal".
    const COLUMNS: [&str; 4] = ["btree", "sqlite/delete", "sqlite/memory", "sqlite/off"];

    #[test]
    fn users_are_the_posts_figures_at_the_rows_that_were_added() {
        let results = get("users").unwrap();
        for (span, figures) in USERS {
            let rows = rows_of_span(span);
            let name = format!("middle {}", Grouped(rows));
            for (column, instructions) in COLUMNS.into_iter().zip(figures) {
                let case = results.case("insert", &name, column).unwrap();
                let measured = case.measured().unwrap();
                assert_eq!((measured.instructions, measured.operations), (instructions, rows));
                assert_eq!((case.rows, case.payload), (100_000, 100));
                assert!(measured.detail.is_none());
            }
        }
        assert_eq!(results.cases.len(), 5 * COLUMNS.len(), "spans 1 and 10 are one row");
        let columns: Vec<&str> = results.columns.iter().map(|column| &*column.key).collect();
        assert_eq!(columns, COLUMNS);
        assert_eq!(results.replica.kind, "published");
        assert_eq!(USERS.map(|(span, _)| span), USERS_SPANS);
    }

    #[test]
    fn every_text_is_as_it_would_be_saved() {
        for (name, text) in PUBLISHED {
            assert_eq!(get(name).unwrap().to_json().unwrap(), *text, "{name}");
        }
        let error = get("nothing").unwrap_err().to_string();
        assert_eq!(error, "no figures are published as nothing; there are: users");
    }

    #[test]
    fn a_span_is_ten_times_its_rows() {
        assert_eq!(USERS_SPANS.map(rows_of_span), [1, 1, 5, 10, 100, 1_000]);
    }

    #[test]
    fn the_source_names_the_crates() {
        assert_eq!(
            source(&get("users").unwrap()),
            "developer forum post, 2025: ic-rusqlite 0.4.3, ic-stable-structures 0.7"
        );
    }
}
