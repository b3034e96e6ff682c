use std::collections::BTreeSet;

use clap::Parser;
use stablebench_suite::plan::Effect;

use super::*;
use crate::suites::ungrouped;

#[derive(clap::Parser)]
struct Parsed {
    #[command(flatten)]
    args: ProfileArgs,
}

fn args(words: &[&str]) -> ProfileArgs {
    Parsed::try_parse_from([&["profile"], words].concat()).unwrap().args
}

fn chosen(words: &[&str]) -> Result<Chosen> {
    choose(&args(words), words[0])
}

#[test]
fn the_spelling_need_not_be_exact() {
    for typed in [
        "users/insert/middle 1 000/sqlite/delete",
        "users/insert/middle-1000/sqlite/delete",
        "Users/Insert/middle 1\u{202f}000/SQLite-delete/",
        "users/insert/middle_1000/sqlite/delete",
    ] {
        let found = chosen(&[typed]).unwrap();
        assert_eq!(found.title, "users/insert/middle 1000/sqlite/delete", "{typed}");
        assert_eq!(
            (found.name.as_str(), found.configuration.as_str()),
            ("middle 1 000", "sqlite/delete")
        );
    }
}

#[test]
fn any_number_of_rows_can_be_inserted() {
    for (typed, name, rows) in [
        ("users/insert/middle-7/sqlite/wal", "middle 7", "40"),
        ("users/insert/random-2500/btree", "random 2 500", "100000"),
    ] {
        assert_eq!(chosen(&[typed, "--rows", rows]).unwrap().name, name);
    }
    // Options that are chosen stay, and the others are those of the case.
    let random = ["users/insert/random-7/btree", "--rows=4000", "--", "--at", "random"];
    assert_eq!(chosen(&random).unwrap().name, "random 7");
    let batches = ["users/insert/middle-8/btree", "--", "--batches=8"];
    assert_eq!(chosen(&batches).unwrap().name, "middle 8");
    for (typed, option, nearest) in [
        ("users/insert/middle-7/btree", "--batches=8", "users/insert/middle 8/btree"),
        ("users/insert/middle-7/btree", "--at=random", "users/insert/random 7/btree"),
    ] {
        let error = chosen(&[typed, "--", option]).err().unwrap().to_string();
        assert!(error.contains(&format!("{typed} with {option}; the nearest are")), "{error}");
        assert!(error.contains(&format!("\n  {nearest}\n")), "{error}");
        assert!(error.contains(&format!("--list users -- {option} prints all")), "{error}");
    }
}

/// Otherwise one of the two could not be chosen.
#[test]
fn no_two_cases_have_equal_names() {
    let args = args(&["--list"]);
    let mut seen = BTreeSet::new();
    for suite in SUITES {
        let found = places(&planned(&args, suite, "", "").unwrap().plan);
        assert!(!found.is_empty(), "{}", suite.name());
        for place in found {
            let title = place.title(suite);
            assert!(seen.insert(normal(&title)), "{title}");
        }
    }
    let listed = list(&args).unwrap();
    assert_eq!(listed.lines().count(), seen.len());
}

#[test]
fn lists_begin_with_the_chosen_text() {
    for (typed, first, count) in [
        ("users/insert/end", "users/insert/end 1/btree", 6 * 10),
        ("vfs", "vfs/", 8 * 2),
        ("users/capacity", "users/capacity/rows inserted", 3 * 10),
    ] {
        let listed = list(&args(&["--list", typed])).unwrap();
        assert!(listed.starts_with(first), "{listed}");
        assert!(listed.lines().count() >= count, "{listed}");
        assert!(listed.lines().all(|line| normal(line).starts_with(&normal(typed))), "{listed}");
    }
    assert!(list(&args(&["--list", "users/nothing"])).is_err());
}

#[test]
fn options_are_the_suites() {
    let case = "users/payload/50-bytes-100-rows-of-2000-insert-end/btree";
    assert!(chosen(&[case, "--rows=2000"]).is_err());
    let found = chosen(&[case, "--rows=2000", "--seed=7", "--", "--payloads=50"]).unwrap();
    let Planned { plan, args, .. } = found.planned;
    assert_eq!((plan.fixtures[0].rows, args.seed), (2_000, 7));
    assert_eq!((plan.fixtures.len(), plan.fixtures[0].cases().count()), (1, 1));
    let error = chosen(&["db-bench/benchmarks/fillseq/btree", "--rows=100"]).err().unwrap();
    assert!(format!("{error:#}").contains("--rows"), "{error:#}");
}

#[test]
fn a_fixture_ends_with_the_case() {
    for (words, kept) in [
        // In a fork after the steps that populate.
        (&["keys", "", ""][..], None),
        (&["vfs", "", ""], None),
        (&["cuckoo", "", ""], None),
        // After all steps before it: three benchmarks, each with its preparation.
        (&["db-bench", "fillrandom", "sqlite/with-rowid"], Some(1 + 2 * 4)),
    ] {
        let [suite, name, column] = words else { unreachable!() };
        let planned = planned(&args(&["--list"]), super::suite(suite).unwrap(), "", "").unwrap();
        let places = places(&planned.plan);
        let wanted = |place: &&Place| {
            (name.is_empty() || place.name == *name)
                && (column.is_empty() || place.configuration == *column)
        };
        let place = places.iter().rfind(wanted).or(places.last()).unwrap();
        let plan = only(planned, place).unwrap().plan;
        let fixture = &plan.fixtures[0];
        let last = fixture.steps.last().unwrap();
        assert_eq!(last.row(), Some((&*place.section, &*place.name)), "{suite}");
        let before = &fixture.steps[..fixture.steps.len() - 1];
        // Nothing else is profiled.
        assert!(
            before.iter().all(|step| step.effect != Effect::Dropped && step.row().is_none()),
            "{suite}"
        );
        assert!(fixture.populated <= fixture.steps.len(), "{suite}");
        assert!(kept.is_none_or(|kept| kept == fixture.steps.len()), "{suite}");
        assert_eq!(last.details, Details::default(), "{suite}");
    }
}

#[test]
fn a_search_cannot_be_profiled() {
    let error = chosen(&["users/capacity/rows-scanned-in-one-query/btree"]).err().unwrap();
    assert!(format!("{error:#}").contains("many messages"), "{error:#}");
}

#[test]
fn an_unknown_case_is_answered_with_the_nearest() {
    let error = chosen(&["users/insert/midle-1000/sqlite/delete"]).err().unwrap();
    assert!(error.to_string().contains("\n  users/insert/middle 1000/sqlite/delete\n"), "{error}");
    let error = chosen(&["user/insert"]).err().unwrap();
    assert!(error.to_string().contains("the suites are users, "), "{error}");
}

#[test]
fn digits_stand_together() {
    for (text, expected) in [
        ("1 000", "1000"),
        ("1 000 000 rows by 1 000", "1000000 rows by 1000"),
        ("10 100 rows", "10100 rows"),
        ("1 00 rows", "1 00 rows"),
        ("1 0000 rows", "1 0000 rows"),
        ("", ""),
    ] {
        assert_eq!(ungrouped(text), expected);
    }
}
