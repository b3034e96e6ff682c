//! Results files in which values are replaced: they are refused, or rendered.

use std::panic::catch_unwind;

use serde_json::Value;

use super::presentation;
use crate::canisters::root;
use crate::compare::{Gates, compare};
use crate::report::{self, Format};
use crate::results::{Results, sample};
use crate::terminal::Terminal;

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
fn show(text: &str) -> bool {
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
                let shown = catch_unwind(|| show(&damaged));
                assert!(shown.is_ok(), "{place} of {damaged}");
                read += usize::from(shown.unwrap_or_default());
                tried += 1;
            }
        }
    }
    assert!(tried > 606 && read > 100 && read < tried, "{read} of {tried}");
}
