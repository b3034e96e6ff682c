use super::*;

fn refusal(text: &str) -> String {
    format!("{:#}", Results::parse(text).unwrap_err())
}

#[test]
fn saved_results_are_complete() {
    let results = sample::full();
    assert_eq!(Results::parse(&results.to_json().unwrap()).unwrap(), results);
}

/// Keys of this crate's types, and of those of the canisters' interface.
#[test]
fn unknown_keys_are_refused() {
    let text = sample::full().to_json().unwrap();
    for place in ["\"suite\":", "\"instructions\":", "\"page_size\":", "\"low\":", "\"kind\":"] {
        assert!(text.contains(place), "{place}");
        let more = text.replacen(place, &format!("\"colour\": 1, {place}"), 1);
        let error = refusal(&more);
        assert!(error.contains("colour"), "{place}: {error}");
    }
    let reason = r#""outcome": {"failed": {"reason": "none", "colour": 1}}"#;
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["cases"][0] = serde_json::from_str(&format!(
        r#"{{"section": "insert", "name": "middle 1", "configuration": "btree", "rows": 1,
            "payload": 1, "state": "warm", {reason}}}"#
    ))
    .unwrap();
    assert_eq!(refusal(&value.to_string()), "results have no key cases.0.outcome.failed.colour");
}

#[test]
fn other_formats_are_refused_with_the_next_step() {
    assert_eq!(
        refusal(r#"{"format": 8, "news": true}"#),
        "format 8 is newer than format 7 of this stablebench; use a newer version"
    );
    assert_eq!(
        refusal(r#"{"format": 6}"#),
        "no release has written format 6; measure again to get format 7"
    );
}

#[test]
fn a_file_that_was_cut_off_is_one_clear_error() {
    let text = sample::full().to_json().unwrap();
    for length in [0, 1, text.len() / 2, text.len() - 3] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cut.json");
        std::fs::write(&path, &text.as_bytes()[..length]).unwrap();
        let error = format!("{:#}", Results::read(&path).unwrap_err());
        assert!(error.contains("cut.json does not contain results: the file was cut"), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn the_documentation_names_every_key() {
    fn walk(value: &serde_json::Value, keys: &mut std::collections::BTreeSet<String>) {
        match value {
            serde_json::Value::Array(inner) => inner.iter().for_each(|one| walk(one, keys)),
            serde_json::Value::Object(inner) => {
                keys.extend(inner.keys().cloned());
                inner.values().for_each(|one| walk(one, keys));
            }
            _ => {}
        }
    }
    let mut results = sample::full();
    for outcome in [
        Outcome::Failed { reason: String::new() },
        Outcome::NotApplicable { reason: String::new() },
    ] {
        results.cases.push(Case { outcome, ..results.cases[0].clone() });
    }
    let mut keys = std::collections::BTreeSet::new();
    walk(&serde_json::to_value(&results).unwrap(), &mut keys);
    assert!(keys.len() > 80, "{}", keys.len());
    let path = crate::root().join("docs/running.md");
    let text = std::fs::read_to_string(path).unwrap();
    for state in ["warm", "closed", "upgraded", "vacuumed", "churned", "churned_and_vacuumed"] {
        assert!(serde_json::from_str::<State>(&format!("\"{state}\"")).is_ok());
        keys.insert(state.to_owned());
    }
    let missing: Vec<&String> =
        keys.iter().filter(|key| !text.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "docs/running.md does not describe {missing:?}");
}
