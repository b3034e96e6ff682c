//! The figures of the forum post "Writing into StableBTreeMap vs SQLite".

use crate::work::STEP;
use anyhow::Result;

use stablebench_suite::results::Results;

/// The figures as results, for `published:users`.
pub const TEXT: &str = include_str!("../published.json");

/// The numbers that the post calls "new elements".
///
/// The post counts the span of the new ids, ten times the number of rows: its loop is
/// `while i < count { add(offset + i); i += 10 }`. `users.json` lists the figures by the rows that
/// were actually added, so that 1 and 10 are one case.
pub const SPANS: [u64; 6] = [1, 10, 50, 100, 1_000, 10_000];

/// The rows of such a span, whose ids are [`STEP`] apart.
pub fn rows_of_span(span: u64) -> u64 {
    span.div_ceil(STEP)
}

/// The figures.
///
/// # Errors
///
/// If the text is broken; a test reads it.
pub fn published() -> Result<Results> {
    Results::parse(TEXT)
}

/// The author of published figures, and the crates that were measured.
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
    use stablebench_suite::report::number::Grouped;

    /// The post's table.
    const USERS: [(u64, [u64; 4]); 6] = [
        (1, [49_359, 407_462, 202_686, 149_520]),
        (10, [49_359, 407_462, 202_686, 149_520]),
        (50, [256_551, 453_089, 248_313, 195_171]),
        (100, [548_249, 529_542, 324_840, 271_660]),
        (1_000, [5_706_594, 2_334_600, 2_064_459, 1_993_575]),
        (10_000, [57_301_658, 20_441_029, 18_909_213, 18_612_903]),
    ];
    /// "StableBTree", "SQLite", "SQLite in-memory journal", "SQLite no journal".
    const CONFIGURATIONS: [&str; 4] = ["btree", "sqlite/delete", "sqlite/memory", "sqlite/off"];

    #[test]
    fn users_are_the_posts_figures_at_the_rows_that_were_added() {
        let results = published().unwrap();
        for (span, figures) in USERS {
            let rows = rows_of_span(span);
            let name = format!("middle {}", Grouped(rows));
            for (configuration, instructions) in CONFIGURATIONS.into_iter().zip(figures) {
                let case = results.case("insert", &name, configuration).unwrap();
                let measured = case.measured().unwrap();
                assert_eq!((measured.instructions, measured.operations), (instructions, rows));
                assert_eq!((case.rows, case.payload), (100_000, 100));
                assert!(measured.detail.is_none());
            }
        }
        assert_eq!(results.cases.len(), 5 * CONFIGURATIONS.len(), "spans 1 and 10 are one row");
        let configurations: Vec<&str> =
            results.configurations.iter().map(|configuration| &*configuration.key).collect();
        assert_eq!(configurations, CONFIGURATIONS);
        assert_eq!(results.replica.kind, "published");
        assert_eq!(USERS.map(|(span, _)| span), SPANS);
    }

    #[test]
    fn the_text_is_formatted_like_saved_results() {
        assert_eq!(published().unwrap().to_json().unwrap(), TEXT);
    }

    #[test]
    fn a_span_is_ten_times_its_rows() {
        assert_eq!(SPANS.map(rows_of_span), [1, 1, 5, 10, 100, 1_000]);
    }

    #[test]
    fn the_source_names_the_crates() {
        assert_eq!(
            source(&published().unwrap()),
            "developer forum post, 2025: ic-rusqlite 0.4.3, ic-stable-structures 0.7"
        );
    }
}
