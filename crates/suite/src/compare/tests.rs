use super::*;
use crate::results::sample::{case, full, of};
use crate::results::{Capacity, State};

/// No differences are allowed.
const SAME: Gates = Gates { threshold: Some(0.0), max_ratio: None, max_average: None };
const NONE: Gates = Gates { threshold: None, max_ratio: None, max_average: None };

fn max_ratio(ceiling: f64) -> Gates {
    Gates { max_ratio: Some(ceiling), ..NONE }
}

fn max_average(ceiling: f64) -> Gates {
    Gates { max_average: Some(ceiling), ..NONE }
}

fn threshold(percent: f64) -> Gates {
    Gates { threshold: Some(percent), ..NONE }
}

fn names(found: &Comparison) -> Vec<&str> {
    found.failures.iter().map(|failure| failure.name.as_str()).collect()
}

fn failures(base: &Results, new: &Results, gates: Gates) -> Vec<String> {
    let found = compare(base, new, None, gates).unwrap();
    names(&found).into_iter().map(str::to_owned).collect()
}

fn refusal(base: &Results, new: &Results) -> String {
    compare(base, new, None, SAME).unwrap_err().to_string()
}

/// Returns results with one case of this many instructions.
fn one(instructions: u64) -> Results {
    of(vec![case("insert", "middle 1", "btree", instructions)])
}

/// Returns results with one case of which this many operations fit into a message.
fn fitting(fits: u64) -> Results {
    let mut results = one(39_000_000_000 + fits);
    if let Outcome::Measured(measured) = &mut results.cases[0].outcome {
        let limit = 40_000_000_000;
        measured.operations = fits;
        measured.capacity = Some(Capacity { limit, fits, exceeds: Some(fits + 1), reason: None });
    }
    results
}

fn with(outcome: Outcome<crate::results::Measured>) -> Results {
    let mut results = one(100);
    results.cases[0].outcome = outcome;
    results
}

fn failed() -> Results {
    with(Outcome::Failed { reason: "it trapped".to_owned() })
}

fn not_applicable() -> Results {
    with(Outcome::NotApplicable { reason: "no transactions".to_owned() })
}

/// The run on a PocketIC server.
const ON_SERVER: &str = "verification/results/users-pocket-ic.json";

fn committed(path: &str) -> Results {
    Results::read(&crate::root().join(path)).unwrap()
}

#[test]
fn a_run_equals_itself() {
    for run in [full(), committed("suites/users/results.json"), committed(ON_SERVER)] {
        let gates = Gates { threshold: Some(0.0), max_ratio: Some(1.0), max_average: Some(1.0) };
        let found = compare(&run, &run, None, gates).unwrap();
        assert!(found.failures.is_empty() && found.notes.is_empty(), "{found:?}");
        assert_eq!(found.unmatched, 0);
        let measured = run.cases.iter().filter(|case| case.measured().is_some()).count();
        assert_eq!(found.rows.len(), measured);
        let all = found.all.unwrap();
        assert_eq!((all.arithmetic, all.geometric, all.cases), (1.0, 1.0, measured));
    }
}

/// Eleven values of a fixture; two of a case, three of its capacity, twenty of its detail, four of
/// the sizes of its tables, thirteen of its single operations.
#[test]
fn every_value_is_compared() {
    assert_eq!(compare(&full(), &full(), None, SAME).unwrap().compared, 11 + 59);
    assert_eq!(compare(&full(), &full(), None, NONE).unwrap().compared, 0);
}

/// The committed runs on both replicas, with the same modules.
#[test]
fn the_reference_run_is_equal_on_a_pocket_ic_server() {
    let (embedded, real) =
        (committed("verification/results/users-embedded.json"), committed(ON_SERVER));
    assert_eq!(real.replica.kind, "pocket-ic");
    assert_eq!(real.canisters, embedded.canisters);
    let found = compare(&real, &embedded, None, SAME).unwrap();
    assert!(found.failures.is_empty(), "{:?}", found.failures);
    assert!(found.notes.is_empty(), "{:?}", found.notes);
    // Two values of each case at least: instructions and operations.
    assert!(!found.rows.is_empty() && found.compared >= 2 * found.rows.len());
    assert!(found.rows.iter().all(|row| row.ratio == 1.0));
}

/// 1 050 / 1 000 is the ceiling of 1.05; 1 051 is one instruction more.
#[test]
fn a_ratio_at_the_ceiling_passes_and_one_instruction_more_fails() {
    assert!(failures(&one(1_000), &one(1_050), max_ratio(1.05)).is_empty());
    let found = compare(&one(1_000), &one(1_051), None, max_ratio(1.05)).unwrap();
    assert_eq!(names(&found), ["insert: middle 1, btree"]);
    let failure = &found.failures[0];
    assert_eq!((failure.base.as_str(), failure.new.as_str()), ("1 000", "1 051"));
    assert_eq!((failure.kind, failure.by), (Kind::Ratio, Some(By::Ratio(1.051))));
    // The maximum of a message.
    let most = 40_000_000_000;
    assert!(failures(&one(most), &one(most), max_ratio(1.0)).is_empty());
    assert_eq!(failures(&one(most), &one(most + 1), max_ratio(1.0)).len(), 1);
}

/// 100 / 80 operations have a ratio of 1.25, independently of the instructions.
#[test]
fn fewer_operations_that_fit_are_worse() {
    let found = compare(&fitting(100), &fitting(80), None, max_ratio(1.25)).unwrap();
    assert!(found.failures.is_empty());
    let row = &found.rows[0];
    assert_eq!((row.unit, row.base, row.new), (Unit::OperationsThatFit, 100, 80));
    assert_eq!(row.ratio, 1.25);
    assert_eq!(failures(&fitting(100), &fitting(79), max_ratio(1.25)).len(), 1);
    assert!(failures(&fitting(80), &fitting(100), max_ratio(0.8)).is_empty());
    assert_eq!(failures(&fitting(1), &fitting(0), max_ratio(1e9)).len(), 1, "nothing fits");
}

/// Of 1 and 1.5 the arithmetic mean is 1.25; of the other section 1.
#[test]
fn the_arithmetic_mean_of_each_section_has_a_ceiling() {
    let base = of(vec![
        case("insert", "middle 1", "btree", 100),
        case("insert", "end 1", "btree", 100),
        case("read", "first", "btree", 100),
    ]);
    let mut new = base.clone();
    new.cases[1] = case("insert", "end 1", "btree", 150);
    assert!(failures(&base, &new, max_average(1.25)).is_empty());
    assert_eq!(failures(&base, &new, max_average(1.249)), ["insert"]);
    let found = compare(&base, &new, None, NONE).unwrap();
    let means: Vec<(Option<&str>, f64)> = found
        .sections
        .iter()
        .chain(&found.all)
        .map(|means| (means.section.as_deref(), means.arithmetic))
        .collect();
    assert_eq!(means, [(Some("insert"), 1.25), (Some("read"), 1.0), (None, 3.5 / 3.0)]);
    // One instruction more of one case.
    new.cases[1] = case("insert", "end 1", "btree", 151);
    assert_eq!(failures(&base, &new, max_average(1.25)), ["insert"]);
}

/// Ten ratios of 1.1 add up to a little more than 11 in binary.
#[test]
fn a_mean_at_the_ceiling_passes_although_sums_are_rounded() {
    let cases = |instructions| {
        let names = (0..10).map(|index| format!("{index}"));
        of(names.map(|name| case("read", &name, "btree", instructions)).collect())
    };
    assert!(failures(&cases(10), &cases(11), max_average(1.1)).is_empty());
}

#[test]
fn messages_without_work_are_compared_and_have_no_ratio() {
    let of = |cycles: u64| {
        let mut results = full();
        results.harness = vec![results.cases[0].clone()];
        if let Outcome::Measured(measured) = &mut results.harness[0].outcome
            && let Some(detail) = &mut measured.detail
        {
            detail.cost.cycles = cycles;
        }
        results
    };
    let found = compare(&of(100), &of(101), None, threshold(0.0)).unwrap();
    let [failure] = &found.failures[..] else { panic!("{:?}", found.failures) };
    assert_eq!((failure.base.as_str(), failure.new.as_str()), ("100", "101"));
    assert_eq!(found.rows.len(), 1);
    assert_eq!(failures(&of(100), &of(100), threshold(0.0)), [""; 0]);
}

#[test]
fn a_difference_at_the_threshold_is_none_and_one_more_is_one() {
    let (base, new) = (one(98_000), one(100_000));
    let more = 100.0 * 2_000.0 / 98_000.0;
    assert!(failures(&base, &new, threshold(more)).is_empty());
    let found = compare(&base, &new, None, threshold(more - 1e-9)).unwrap();
    assert_eq!(names(&found), ["insert: middle 1, btree: instructions"]);
    let difference = &found.failures[0];
    assert_eq!((difference.base.as_str(), difference.new.as_str()), ("98 000", "100 000"));
    // A decrease is a difference too.
    assert_eq!(failures(&new, &base, threshold(1.9)).len(), 1);
    assert_eq!(failures(&new, &base, threshold(2.0)).len(), 0);
}

#[test]
fn another_digest_differs_at_any_threshold_and_does_not_affect_ceilings() {
    let base = full();
    let mut new = base.clone();
    if let Outcome::Measured(measured) = &mut new.cases[0].outcome {
        measured.detail.as_mut().unwrap().digest.as_mut().unwrap().low ^= 1;
    }
    let differ = failures(&base, &new, threshold(1e9));
    assert_eq!(differ, ["insert: middle 10 000, sqlite/wal: digest"]);
    assert!(failures(&base, &new, max_ratio(1.0)).is_empty());
}

#[test]
fn missing_cases_are_failures_in_every_mode() {
    let mut base = full();
    base.cases.push(case("insert", "end 1", "sqlite/wal", 100));
    let mut without_case = base.clone();
    without_case.cases.remove(0);
    let mut without_fixture = base.clone();
    without_fixture.fixtures.clear();
    for gates in [SAME, NONE, max_ratio(9.0), max_average(9.0), threshold(1e9)] {
        assert_eq!(failures(&base, &without_case, gates), ["insert: middle 10 000, sqlite/wal"]);
        let fixture = failures(&base, &without_fixture, gates);
        assert_eq!(fixture, ["populated 1000000 rows of 100 bytes, sqlite/wal"]);
    }
    let found = compare(&without_case, &base, None, SAME).unwrap();
    assert!(found.failures.is_empty());
    assert_eq!(found.notes, ["only the new run has insert: middle 10 000, sqlite/wal"]);
}

/// The refusal is the whole output, not the end of a list of all cases.
#[test]
fn runs_without_a_common_case_are_refused() {
    let mut base = one(100);
    base.cases.push(case("insert", "end 1", "btree", 100));
    let other = of(vec![case("read", "first", "btree", 100)]);
    let mut empty = full();
    empty.cases.clear();
    let nothing = "there is nothing to compare: no case is in both runs; the base has";
    for gates in [SAME, NONE, max_ratio(9.0), max_average(9.0), threshold(1e9)] {
        let refusal = |base: &Results, new: &Results| {
            compare(base, new, None, gates).unwrap_err().to_string()
        };
        assert_eq!(
            refusal(&base, &other),
            format!(
                "{nothing} 2 cases, such as insert: middle 1, btree, the new run only read: first, \
                 btree; compare runs of the same command"
            )
        );
        assert!(refusal(&full(), &empty).contains("the new run no case; "));
        assert!(refusal(&empty, &full()).starts_with(&format!("{nothing} no case, ")));
    }
    // Of two configurations, those that are compared count.
    let both = of(vec![
        case("insert", "middle 1", "btree", 200),
        case("insert", "end 1", "sqlite/wal", 300),
    ]);
    let error = compare(&both, &both, Some(("btree", "sqlite/wal")), NONE).unwrap_err();
    assert!(error.to_string().starts_with(nothing), "{error}");
}

#[test]
fn a_ceiling_without_a_measured_case_is_refused() {
    for gates in [max_ratio(9.0), max_average(9.0)] {
        for new in [one(100), not_applicable()] {
            let error = compare(&not_applicable(), &new, None, gates).unwrap_err().to_string();
            assert!(error.starts_with("a ceiling has nothing to check: "), "{error}");
        }
    }
}

#[test]
fn failed_and_no_longer_applicable_cases_are_failures_in_every_mode() {
    for gates in [SAME, NONE, max_ratio(9.0), max_average(9.0)] {
        for base in [one(100), not_applicable(), failed()] {
            let found = compare(&base, &failed(), None, gates).unwrap();
            assert_eq!(names(&found), ["insert: middle 1, btree"]);
            assert_eq!(found.failures[0].new, "failed: it trapped");
        }
        let found = compare(&one(100), &not_applicable(), None, gates).unwrap();
        assert_eq!(found.failures[0].new, "not applicable: no transactions");
    }
    let mut more = failed();
    more.cases.push(case("read", "first", "btree", 1));
    let only = of(vec![case("read", "first", "btree", 1)]);
    assert_eq!(failures(&only, &more, NONE), ["insert: middle 1, btree"]);
}

#[test]
fn a_failed_fixture_is_a_failure() {
    let base = full();
    let mut new = base.clone();
    new.fixtures[0].outcome = Outcome::Failed { reason: "out of memory".to_owned() };
    let found = compare(&base, &new, None, NONE).unwrap();
    assert_eq!(names(&found), ["populated 1000000 rows of 100 bytes, sqlite/wal"]);
    assert_eq!(found.failures[0].new, "failed: out of memory");
}

#[test]
fn inapplicable_cases_are_equal_and_newly_measured_ones_are_noted() {
    let found = compare(&not_applicable(), &not_applicable(), None, SAME).unwrap();
    assert!(found.failures.is_empty() && found.notes.is_empty());
    for before in [not_applicable(), failed()] {
        let found = compare(&before, &one(100), None, SAME).unwrap();
        assert!(found.failures.is_empty());
        assert!(found.notes[0].ends_with("in the base, measured now"), "{:?}", found.notes);
    }
}

#[test]
fn configurations_of_one_file_are_compared_by_name() {
    let both = of(vec![
        case("insert", "middle 1", "btree", 200),
        case("insert", "middle 1", "sqlite/wal", 300),
        case("insert", "end 1", "btree", 100),
        case("insert", "end 1", "sqlite/wal", 50),
    ]);
    let found = compare(&both, &both, Some(("btree", "sqlite/wal")), NONE).unwrap();
    let ratios: Vec<(String, f64)> =
        found.rows.iter().map(|row| (row.title(), row.ratio)).collect();
    assert_eq!(ratios, [("insert: middle 1".to_owned(), 1.5), ("insert: end 1".to_owned(), 0.5)]);
    let all = found.all.as_ref().unwrap();
    // (1.5 + 0.5) / 2, and √(1.5 · 0.5).
    assert_eq!(all.arithmetic, 1.0);
    assert!((all.geometric - 0.75_f64.sqrt()).abs() < 1e-12);
    assert!(found.failures.is_empty());

    let found = compare(&both, &both, Some(("btree", "sqlite/wal")), max_ratio(1.4)).unwrap();
    assert_eq!(names(&found), ["insert: middle 1"]);
    let mut fewer = both.clone();
    fewer.cases.remove(3);
    let found = compare(&both, &fewer, Some(("btree", "sqlite/wal")), NONE).unwrap();
    assert_eq!(names(&found), ["insert: end 1, btree"]);
    let error = compare(&both, &both, Some(("btree", "array")), NONE).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the new results have no configuration array; they have btree sqlite/wal"
    );
}

#[test]
fn absent_values_are_counted_and_not_compared() {
    let base = full();
    let mut new = base.clone();
    if let Outcome::Measured(measured) = &mut new.cases[0].outcome {
        measured.detail.as_mut().unwrap().cost.inside = None;
    }
    let found = compare(&base, &new, None, SAME).unwrap();
    // Eleven values of the messages, and seven of the part of their charge that is for pages.
    assert_eq!((found.failures.len(), found.unmatched), (0, 18));
}

#[test]
fn other_rule_sets_are_noted_and_compared() {
    let base = full();
    let mut new = base.clone();
    new.replica.rules = "2025-10".to_owned();
    if let Outcome::Measured(measured) = &mut new.cases[0].outcome {
        measured.instructions += 1;
    }
    let found = compare(&base, &new, None, SAME).unwrap();
    // The work, and the compute in it.
    assert_eq!(found.failures.len(), 2);
    assert_eq!(
        found.notes,
        ["the rule sets are 2026-08 and 2025-10: the same work may count other instructions and \
          cost other cycles"]
    );
    new.replica.rules = "2026-10".to_owned();
    assert_eq!(
        compare(&base, &new, None, NONE).unwrap().notes,
        [
            "the rule sets are 2026-08 and 2026-10: the same work counts the same instructions, and may \
          cost other cycles"
        ]
    );
    new.replica.rules.clone_from(&base.replica.rules);
    assert!(compare(&base, &new, None, NONE).unwrap().notes.is_empty());
}

#[test]
fn cycles_of_other_subnets_are_not_compared() {
    let base = full();
    let mut new = base.clone();
    new.replica.subnet = "system".to_owned();
    if let Outcome::Measured(measured) = &mut new.cases[0].outcome {
        measured.detail.as_mut().unwrap().cost.cycles = 0;
    }
    let found = compare(&base, &new, None, SAME).unwrap();
    assert_eq!((found.failures.len(), found.notes.len()), (0, 1));
}

#[test]
fn another_question_is_refused() {
    let base = one(100);
    let changed = |change: fn(&mut Case)| {
        let mut new = base.clone();
        change(&mut new.cases[0]);
        refusal(&base, &new)
    };
    assert_eq!(
        changed(|case| case.rows = 7),
        "these runs cannot be compared: insert: middle 1, btree is about 1 000 000 rows of 100 \
         bytes (warm) in one, about 7 rows of 100 bytes (warm) in the other"
    );
    assert!(changed(|case| case.payload = 7).contains("rows of 7 bytes"));
    assert!(changed(|case| case.state = State::Closed).contains("(closed)"));
    let other_operations = changed(|case| {
        if let Outcome::Measured(measured) = &mut case.outcome {
            measured.operations = 2;
        }
    });
    assert!(other_operations.ends_with("insert: middle 1, btree has other operations"));
    assert!(refusal(&one(1), &fitting(1)).ends_with("has other limits"));
    let other_suite = Results { suite: "keys".to_owned(), ..base.clone() };
    assert!(refusal(&base, &other_suite).ends_with("their suites are users and keys"));
    let nothing = of(Vec::new());
    assert!(refusal(&nothing, &base).contains("the base contains no case"));
}

#[test]
fn other_seeds_are_noted_for_random_cases() {
    let base = of(vec![case("insert", "middle 1", "btree", 1)]);
    let other_seed = |results: &Results| Results { seed: 2, ..results.clone() };
    assert!(compare(&base, &other_seed(&base), None, SAME).unwrap().notes.is_empty());
    let base = of(vec![case("read", "random 1", "btree", 1)]);
    let notes = compare(&base, &other_seed(&base), None, SAME).unwrap().notes;
    assert_eq!(notes, ["the seeds are 1 and 2: what was chosen at random is not the same work"]);
}

/// The published figures contain instructions and operations of twenty cases.
#[test]
fn published_figures_are_compared_by_their_values() {
    let base = committed("suites/users/published.json");
    let mut new = Results { stablebench: "0.1.0".to_owned(), ..base.clone() };
    new.replica.kind = "embedded".to_owned();
    new.cases.push(case("insert", "end 1", "btree", 1));
    let found = compare(&base, &new, None, SAME).unwrap();
    assert_eq!((found.rows.len(), found.compared, found.failures.len()), (20, 40, 0));
    assert_eq!(
        found.notes,
        [
            "the base figures are published (developer forum post, 2025): instructions alone are \
             compared",
            "only the new run has insert: end 1, btree"
        ]
    );
}
