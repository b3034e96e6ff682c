//! Damaged results files: they are refused, or rendered.
//!
//! Each value is replaced by others. And bytes determine how a file is damaged: it is rendered without
//! characters that control a terminal. That runs for some seconds or, with `--ignored`, some minutes.

#[path = "../../crates/replica/tests/replica/fuzzing/bounded.rs"]
#[allow(dead_code, reason = "the replica's tests use the rest")]
mod bounded;

use std::panic::catch_unwind;
use std::sync::OnceLock;

use arbitrary::Unstructured;
use serde_json::{Value, json};
use stablebench_replica::text::steers;

use super::{committed, presentation};
use crate::canisters::root;
use crate::compare::{Gates, compare};
use crate::report::{self, Format, comparison, printable};
use crate::results::{Results, sample};
use crate::terminal::Terminal;
use bounded::{damaged, met};

const NAME: &str = "results";
/// The number of entries that are kept of each list in a committed file: enough for every table.
const KEPT: usize = 12;

/// Returns committed results of every suite.
fn whole() -> &'static [Value] {
    static WHOLE: OnceLock<Vec<Value>> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let mut whole: Vec<Value> = committed().into_iter().map(shortened).collect();
        whole.push(serde_json::to_value(sample::full()).unwrap());
        whole
    })
}

/// Returns the results with some of the cases, evenly spaced.
fn shortened(mut results: Results) -> Value {
    fn some<T>(all: Vec<T>) -> Vec<T> {
        let step = all.len().div_ceil(KEPT).max(1);
        all.into_iter().step_by(step).collect()
    }
    results.cases = some(results.cases);
    results.harness = some(results.harness);
    results.fixtures = some(results.fixtures);
    serde_json::to_value(results).unwrap()
}

/// Reads a file that the bytes have damaged, and renders it in every format.
fn results(bytes: &[u8]) {
    // Bytes that are too few for an input are ignored.
    let _ = shaped(&mut Unstructured::new(bytes));
}

fn shaped(input: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let at = input.choose_index(whole().len())?;
    let mut value = whole()[at].clone();
    for _ in 0..input.int_in_range(0..=3)? {
        change(&mut value, input)?;
    }
    let mut text = value.to_string();
    if input.ratio(1, 8)? {
        text = String::from_utf8_lossy(&damaged(text.as_bytes(), 0, input)?).into_owned();
    }
    match Results::parse(&text) {
        Ok(found) => {
            met(NAME, "read");
            show(&found);
            let mut again = Results::parse(&found.to_json().unwrap()).unwrap();
            // The last bit of a price with that many digits may differ.
            again.prices = found.prices;
            assert!(again == found, "saved results are read back");
            if let Ok(whole) = Results::parse(&whole()[at].to_string()) {
                contrast(&whole, &found);
                contrast(&found, &whole);
            }
        }
        Err(error) => {
            met(NAME, "refused");
            assert!(!format!("{error:#}").is_empty());
        }
    }
    Ok(())
}

/// Renders results in each format.
fn show(results: &Results) {
    for format in [Format::Table, Format::Markdown, Format::Csv, Format::Json] {
        let text = report::render(presentation(results), results, format, Terminal::default());
        plain(text.ok().as_deref().unwrap_or_default());
    }
    let _ = report::page(&[("name".to_owned(), presentation(results), results.clone())]);
}

/// Compares results, which renders texts of both.
fn contrast(base: &Results, new: &Results) {
    let (base, new) = (printable(base).unwrap(), printable(new).unwrap());
    let gates = Gates { threshold: Some(0.0), max_ratio: Some(1.05), max_average: Some(1.01) };
    let Ok(found) = compare(&base, &new, None, gates) else {
        return met(NAME, "not compared");
    };
    for format in [Format::Table, Format::Markdown, Format::Csv, Format::Json] {
        plain(&comparison::render(&found, format, Terminal::default()).unwrap());
    }
    met(NAME, "compared");
}

#[track_caller]
fn plain(text: &str) {
    let found = text.char_indices().find(|(_, char)| !matches!(char, '\n' | '\t') && steers(*char));
    if let Some((at, char)) = found {
        let before: String = text[..at].chars().rev().take(60).collect();
        panic!("{char:?} behind {:?}", before.chars().rev().collect::<String>());
    }
}

/// Changes one value anywhere.
fn change(value: &mut Value, input: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let deeper = input.ratio(7, 8)?;
    match value {
        Value::Object(inner) if !inner.is_empty() => {
            let keys: Vec<String> = inner.keys().cloned().collect();
            let key = input.choose(&keys)?;
            match input.int_in_range(0..=15)? {
                _ if deeper => change(&mut inner[key], input)?,
                0 => drop(inner.remove(key)),
                1 => drop(inner.insert(input.arbitrary()?, Value::Null)),
                2..=4 => {
                    let other = inner[input.choose(&keys)?].clone();
                    inner.insert(key.clone(), other);
                }
                _ => inner[key] = another(input)?,
            }
        }
        Value::Array(inner) if !inner.is_empty() => {
            let at = input.choose_index(inner.len())?;
            match input.int_in_range(0..=3)? {
                _ if deeper => change(&mut inner[at], input)?,
                0 => drop(inner.remove(at)),
                1 => inner.push(inner[at].clone()),
                2 => inner.clear(),
                _ => inner.swap(0, at),
            }
        }
        // Numbers and texts often keep their type.
        Value::Number(_) if input.ratio(3, 4)? => *value = number(input)?,
        Value::String(_) if input.ratio(3, 4)? => *value = text(input)?,
        _ => *value = another(input)?,
    }
    Ok(())
}

fn another(input: &mut Unstructured<'_>) -> arbitrary::Result<Value> {
    Ok(match input.int_in_range(0..=6)? {
        0 => Value::Null,
        1 => json!([]),
        2 => json!({}),
        3 => json!(input.arbitrary::<bool>()?),
        4 => text(input)?,
        _ => number(input)?,
    })
}

fn number(input: &mut Unstructured<'_>) -> arbitrary::Result<Value> {
    let most = 1_000_000_000_000_000_u64;
    let odd = [0, 1, 2, 7, most, most + 1, u64::from(u32::MAX), u64::MAX];
    Ok(match input.int_in_range(0..=4)? {
        0 => json!(-1),
        1 => json!(input.arbitrary::<f64>()?),
        2 => json!(input.int_in_range(0..=most)?),
        _ => json!(input.choose(&odd)?),
    })
}

fn text(input: &mut Unstructured<'_>) -> arbitrary::Result<Value> {
    let odd = [
        "",
        "\u{1b}[2J",
        "\u{9b}31m\r\u{7f}",
        "\u{202e}\u{2066}",
        "a\nb\tc",
        "|`*_<script>",
        "/",
        "users",
        "sysbench",
        "insert",
        "sqlite/wal",
        "btree",
        "-",
        "=1+1",
        "\"",
        "ﬀ\u{301}",
    ];
    Ok(match input.ratio(1, 4)? {
        true => json!(input.arbitrary::<&str>()?),
        false => json!(input.choose(&odd)?),
    })
}

#[test]
fn results_are_refused_or_shown() {
    bounded::run(results, 700, 200);
    bounded::enough(NAME, &[("read", 200), ("refused", 100), ("compared", 200)]);
}

/// Ten times as many other inputs.
#[test]
#[ignore = "some minutes: cargo test --release --lib -- --ignored many_more"]
fn many_more_results() {
    for number in 10_000..20_000 {
        println!("input {number}");
        results(&bounded::input(number, 400));
    }
}

/// Collects the JSON pointers of all values.
fn places(value: &Value, here: &mut Vec<String>, found: &mut Vec<String>) {
    found.push(here.iter().map(|key| format!("/{}", key.replace('/', "~1"))).collect());
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(inner) => inner.iter().map(|(key, of)| (key.clone(), of)).collect(),
        Value::Array(inner) => {
            inner.iter().take(3).enumerate().map(|(at, of)| (at.to_string(), of)).collect()
        }
        _ => Vec::new(),
    };
    for (key, value) in inner {
        here.push(key);
        places(value, here, found);
        here.pop();
    }
}

/// Renders results in all formats. Returns `false` if they were refused.
fn renders(text: &str) -> bool {
    let Ok(results) = Results::parse(text) else { return false };
    for format in [Format::Table, Format::Markdown, Format::Csv, Format::Json] {
        let _ = report::render(presentation(&results), &results, format, Terminal::default());
    }
    let _ = report::page(&[("name".to_owned(), presentation(&results), results.clone())]);
    let gates = Gates { threshold: Some(0.0), max_ratio: None, max_average: None };
    let _ = compare(&results, &results, None, gates);
    true
}

/// Replaces each value by others. All results that are then accepted can be rendered.
#[test]
fn damaged_results_do_not_make_reports_panic() {
    let root = root();
    let mut texts = vec![sample::full().to_json().unwrap()];
    for name in ["suites/users/results-as-published.json", "suites/history/results.json"] {
        texts.push(std::fs::read_to_string(root.join(name)).unwrap());
    }
    let (mut tried, mut read) = (0, 0);
    for text in &texts {
        let whole: Value = serde_json::from_str(text).unwrap();
        let mut found = Vec::new();
        places(&whole, &mut Vec::new(), &mut found);
        for (place, at) in found.iter().zip(0..) {
            let other = match at % 5 {
                0 => Value::Null,
                1 => Value::from(""),
                2 => Value::from("a \u{1b}[2J\n"),
                3 => Value::from(u64::MAX),
                _ => Value::from(-1),
            };
            for other in [Value::from(0), Value::from(1), Value::Array(Vec::new()), other] {
                let mut damaged = whole.clone();
                *damaged.pointer_mut(place).unwrap() = other;
                let damaged = damaged.to_string();
                let shown = catch_unwind(|| renders(&damaged));
                assert!(shown.is_ok(), "{place} of {damaged}");
                read += usize::from(shown.unwrap_or_default());
                tried += 1;
            }
        }
    }
    assert!(tried > 606 && read > 100 && read < tried, "{read} of {tried}");
}
