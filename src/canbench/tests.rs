//! Output for hand-made results.

use super::change::{Change, Value, entries, regressed};
use super::export::csv;
use super::results::{Bench, Benches, Measurement};
use super::text::{bench, significant, summary};
use crate::terminal::Terminal;

fn measured(instructions: u64, heap_increase: u64) -> Measurement {
    Measurement { calls: 1, instructions, heap_increase, stable_memory_increase: 0 }
}

fn benches(of: &[(&str, Measurement)]) -> Benches {
    of.iter()
        .map(|(name, total)| ((*name).to_owned(), Bench { total: *total, ..Bench::default() }))
        .collect()
}

#[test]
fn a_change_below_the_threshold_is_noise() {
    let value = |now, before| Value { now, before: Some(before) };
    for (value, change) in [
        (value(102, 100), Change::Regressed),
        (value(1_019, 1_000), Change::Unchanged),
        (value(98, 100), Change::Improved),
        (value(0, 0), Change::Unchanged),
        (value(1, 0), Change::Regressed),
        (Value { now: 1, before: None }, Change::New),
    ] {
        assert_eq!(value.change(2.0), change, "{value:?}");
    }
    assert_eq!(value(0, u64::MAX).delta(), Some(-i128::from(u64::MAX)));
}

#[test]
fn a_benchmark_is_printed_with_its_scopes() {
    let scopes = |calls| [("part".to_owned(), Measurement { calls, ..measured(970, 0) })].into();
    let now = Bench { total: measured(3_834, 2), scopes: scopes(2) };
    let before = Bench { total: measured(4_000, 0), scopes: scopes(1) };
    let plain = Terminal { colour: false, width: None };
    assert_eq!(
        bench("a", &now, Some(&before), 2.0, plain),
        "Benchmark: a\n  total:\n    instructions: 3834 (improved by 4.15%)\n    \
         heap_increase: 2 pages (regressed from 0)\n    \
         stable_memory_increase: 0 pages (no change)\n\n  part (scope):\n    \
         calls: 2 (regressed by 100.00%)\n    instructions: 970 (no change)\n    \
         heap_increase: 0 pages (no change)\n    stable_memory_increase: 0 pages (no change)\n"
    );
    let noise = bench("a", &now, Some(&before), 5.0, plain);
    assert!(noise.contains("3834 (-4.15%) (change within noise threshold)"), "{noise}");
    let coloured = bench("a\u{7}", &now, None, 2.0, Terminal { colour: true, width: None });
    assert!(coloured.starts_with("Benchmark: \u{1b}[1ma\\u{7}\u{1b}[0m "), "{coloured:?}");
}

#[test]
fn the_summary_counts_benchmarks_and_spreads_their_changes() {
    let now = benches(&[
        ("a", measured(110, 0)),
        ("b", measured(90, 0)),
        ("c", measured(100, 0)),
        ("d", measured(2_000_100, 0)),
        ("e", measured(5, 0)),
    ]);
    let mut before = benches(&[("a", measured(100, 0)), ("b", measured(100, 0))]);
    before.extend(benches(&[
        ("c", measured(100, 0)),
        ("d", measured(100, 0)),
        ("f", measured(1, 0)),
    ]));
    let entries = entries(&now, &before);
    let text = summary(&entries, 2.0);
    let expected = "Summary:\n  instructions:\n    \
        status:   Regressions, improvements, and new benchmarks 🔴🟢➕\n    \
        counts:   [total 5 | regressed 2 | improved 1 | new 1 | unchanged 1]\n    \
        change:   [max +2.00M | p75 +500.01K | median +5 | p25 -3 | min -10]\n    \
        change %: [max +2000000.00% | p75 +500007.50% | median +5.00% | p25 -2.50% | min -10.00%]\n\n  \
        heap_increase:\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(regressed(&entries, 2.0));
    let new = super::change::entries(&benches(&[("a", measured(1, 0))]), &Benches::new());
    assert!(summary(&new, 2.0).contains("    change:   n/a\n    change %: n/a\n"));
    assert!(!regressed(&new, 2.0));
}

#[test]
fn significant_changes_are_sorted_and_long_tables_cut() {
    let names: Vec<String> = (0..60).map(|at| format!("bench_{at:02}")).collect();
    let of = |instructions: &dyn Fn(u64) -> u64| -> Benches {
        let measured = |(at, name): (u64, &String)| {
            (name.clone(), Bench { total: measured(instructions(at), 0), ..Bench::default() })
        };
        (0..).zip(&names).map(measured).collect()
    };
    let (now, before) = (of(&|at| 1_000 + 10 * at), of(&|_| 1_000));
    let table = significant(&entries(&now, &before), 2.0).unwrap();
    let rows: Vec<&str> = table.lines().collect();
    // The first and the second changed by less than 2 %.
    assert!(rows[2].contains("| bench_59 ") && rows[2].contains("+59.00%"), "{table}");
    assert!(rows[27].contains("|  ...   | ... 8 rows omitted ... |"), "{table}");
    assert!(rows[52].contains("| bench_02 "), "{table}");
    assert_eq!(rows.len(), 2 + 51 + 2);
    assert!(significant(&entries(&now, &now), 2.0).is_none());

    let mut now = benches(&[("new", measured(7, 0)), ("both", measured(90, 1))]);
    now.get_mut("both").unwrap().scopes.insert("part".to_owned(), measured(1_200, 0));
    let mut before = benches(&[("both", measured(100, 0))]);
    before.get_mut("both").unwrap().scopes.insert("part".to_owned(), measured(1_000, 0));
    assert_eq!(
        significant(&entries(&now, &before), 2.0).unwrap(),
        "| status | name       | calls |   ins |  ins Δ% | HI |  HI Δ% | SMI |  SMI Δ% |\n\
         |--------|------------|-------|-------|---------|----|--------|-----|---------|\n\
         |   +    | both::part |     1 | 1.20K | +20.00% |  0 |  0.00% |   0 |   0.00% |\n\
         |  +/-   | both       |       |    90 | -10.00% |  1 |  +inf% |   0 |   0.00% |\n\
         |  new   | new        |       |     7 |         |  0 |        |   0 |         |\n\n\
         ins = instructions, HI = heap_increase, SMI = stable_memory_increase, Δ% = percent \
         change\n"
    );
}

#[test]
fn spreadsheets_get_whole_numbers() {
    let mut now = benches(&[("a,b", measured(11_000_000, 1))]);
    now.get_mut("a,b").unwrap().scopes.insert("part".to_owned(), measured(5, 0));
    let before = benches(&[("a,b", measured(10_000_000, 0))]);
    let text = csv(&entries(&now, &before)).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    assert_eq!(header.split(',').nth(3), Some("scope_calls Δ"));
    assert_eq!(
        rows,
        ",\"a,b\",,,,11000000,1000000,10.00%,1,1,1.0E99,0,0,0.00%\n\
         new,\"a,b::part\",1,,,5,,,0,,,0,,\n"
    );
}
