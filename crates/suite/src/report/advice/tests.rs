use super::*;
use crate::results::{Outcome, State};

/// Returns results with these cases: section, name, configuration, thousands of instructions,
/// operations.
fn results(cases: &[(&str, &str, &str, u64, u64)]) -> Results {
    let exact = cases.iter().map(|(section, name, configuration, thousands, operations)| {
        (*section, *name, *configuration, thousands * 1_000, *operations)
    });
    exactly(&exact.collect::<Vec<_>>())
}

/// Returns results with these cases: section, name, configuration, instructions, operations.
fn exactly(cases: &[(&str, &str, &str, u64, u64)]) -> Results {
    let mut results = Results::read(&crate::root().join("suites/users/published.json")).unwrap();
    results.cases.clear();
    for (section, name, configuration, instructions, operations) in cases {
        if results.configurations.iter().all(|known| known.key != *configuration) {
            let mut new = results.configurations[1].clone();
            new.key = (*configuration).to_owned();
            results.configurations.push(new);
        }
        results.cases.push(Case {
            section: (*section).to_owned(),
            name: (*name).to_owned(),
            configuration: (*configuration).to_owned(),
            rows: 1_000,
            payload: 100,
            state: State::Warm,
            outcome: Outcome::Measured(Measured {
                instructions: *instructions,
                operations: *operations,
                capacity: None,
                detail: None,
                each: None,
                phases: None,
            }),
        });
    }
    results
}

fn under(results: &Results, title: &str) -> Vec<String> {
    let found =
        advice(results, Style::default()).into_iter().find(|(heading, _)| heading.contains(title));
    found.map(|(_, sentences)| sentences).unwrap_or_default()
}

#[test]
fn configurations_cross_the_map() {
    let results = results(&[
        ("insert", "middle 1", "btree", 100, 1),
        ("insert", "middle 10", "btree", 1_000, 10),
        ("insert", "middle 1", "sqlite/memory", 190, 1),
        ("insert", "middle 10", "sqlite/memory", 910, 10),
        ("insert", "end 1", "btree", 100, 1),
        ("insert", "end 1", "sqlite/memory", 50, 1),
        ("insert", "end 50", "btree", 5_000, 50),
        ("insert", "end 50", "sqlite/memory", 4_000, 50),
        ("insert", "random 1", "btree", 100, 1),
        ("insert", "random 1", "sqlite/memory", 100, 1),
        ("insert", "random 2", "btree", 200, 2),
        ("insert", "random 2", "sqlite/memory", 300, 2),
    ]);
    assert_eq!(
        under(&results, "cross"),
        [
            "middle: SQLite MEMORY is cheaper than StableBTreeMap at 10 rows a message, the largest \
             measured size, and more expensive at 1. By linear interpolation, they cost the same at \
             about 6. Measured: 1 to 10 rows a message.",
            "end: SQLite MEMORY is cheaper than StableBTreeMap at all measured sizes, 1 to 50 rows a \
             message.",
            "random: SQLite MEMORY is cheaper than StableBTreeMap at no measured size, 1 to 2 rows a \
             message.",
        ]
    );
}

#[test]
fn one_batch_size_is_no_conclusion() {
    for sqlite in [1, 99, 100, 9_999] {
        let results = results(&[
            ("insert", "middle 10", "btree", 100, 10),
            ("insert", "middle 10", "sqlite/memory", sqlite, 10),
            // The other size was measured with the map alone.
            ("insert", "middle 20", "btree", 200, 20),
        ]);
        assert!(under(&results, "cross").is_empty(), "{sqlite}");
    }
}

#[test]
fn a_side_that_does_almost_nothing_is_no_ratio() {
    // The map keeps the number of its rows.
    let count = |map: u64| {
        exactly(&[
            ("work", "count, warm", "btree", map, 1),
            ("work", "count, warm", "sqlite/wal", 191_700_000, 1),
            ("work", "count, upgraded", "btree", 161_620, 1),
            ("transactions", "10 rows by 1, one message", "btree", 161_620, 10),
            ("transactions", "10 rows by 10, one message", "btree", map, 10),
            ("settings", "count, warm", "sqlite/persist", map, 1),
            ("settings", "count, warm", "sqlite/persist,cache_size=0", 191_700_000, 1),
        ])
    };
    for map in [294, FLOOR - 1] {
        let results = count(map);
        assert_eq!(
            under(&results, "cheapest"),
            [format!("count, warm: StableBTreeMap, {} instructions an operation.", Grouped(map))]
        );
        assert!(under(&results, "not to do").is_empty(), "{:?}", under(&results, "not to do"));
    }
    let results = count(FLOOR);
    let takes = "20 000 instructions an operation; SQLite WAL takes 9585×.";
    assert_eq!(under(&results, "cheapest"), [format!("count, warm: StableBTreeMap, {takes}")]);
    assert_eq!(under(&results, "not to do").len(), 3);
}

#[test]
fn a_side_below_the_cost_of_the_counter_is_no_ratio() {
    let of = |instructions: u64, counter_overhead: u64| {
        let case = crate::results::sample::full().cases.swap_remove(0);
        let mut measured = case.measured().unwrap().clone();
        (measured.instructions, measured.operations) = (instructions, 1);
        measured.detail.as_mut().unwrap().counter_overhead = counter_overhead;
        measured
    };
    assert!(times(&of(90_000, 30_000), &of(30_000, 200)).is_some());
    assert!(times(&of(90_000, 30_001), &of(30_000, 200)).is_none());
    assert!(times(&of(30_000, 200), &of(90_000, 30_001)).is_none());
}

#[test]
fn the_cheapest_of_each_kind_of_work_is_no_floor() {
    let results = results(&[
        ("work", "update 10 uniform, warm", "btree", 4_200, 10),
        ("work", "update 10 uniform, warm", "sqlite/memory", 1_000, 10),
        ("work", "update 10 uniform, warm", "sqlite/off", 1_000, 10),
        ("work", "update 10 uniform, warm", "array", 10, 10),
        // There is only one configuration.
        ("work", "count, warm", "btree", 5, 1),
    ]);
    assert_eq!(
        under(&results, "cheapest"),
        ["update 10 uniform, warm: SQLite MEMORY and 1 more (equal), 100 000 instructions an \
          operation; StableBTreeMap takes 4.20×."]
    );
}

#[test]
fn warnings_begin_at_twice_the_cost() {
    let pair = |cold: u64| {
        results(&[
            ("work", "read 1 uniform, warm", "sqlite/memory", 100, 1),
            ("work", "read 1 uniform, upgraded", "sqlite/memory", cold, 1),
        ])
    };
    assert!(under(&pair(199), "not to do").is_empty());
    assert_eq!(
        under(&pair(200), "not to do"),
        ["The first work after an upgrade costs many times what it costs warm: read 1 uniform \
          2.0× (SQLite MEMORY)."]
    );
}

#[test]
fn small_transactions_and_expensive_settings_are_reported() {
    let results = results(&[
        ("transactions", "10 rows by 1, one message", "sqlite/delete", 900, 10),
        ("transactions", "10 rows by 10, one message", "sqlite/delete", 100, 10),
        ("transactions", "10 rows by 1, one message", "btree", 100, 10),
        ("transactions", "10 rows by 10, one message", "btree", 100, 10),
        ("settings", "scan, warm", "sqlite/persist", 100, 10),
        ("settings", "scan, warm", "sqlite/persist,cache_size=0", 350, 10),
    ]);
    assert_eq!(
        under(&results, "not to do"),
        [
            "10 rows by 1, one message, instead of 10 rows by 10, one message, costs many times \
             as much: SQLite DELETE 9.0×.",
            "SQLite PERSIST cache_size=0 costs many times what SQLite PERSIST costs: scan, warm \
             3.50×.",
        ]
    );
}
