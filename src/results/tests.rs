use super::*;

const OLDER: [&str; 2] =
    [include_str!("fixtures/format-1.json"), include_str!("fixtures/format-2.json")];

fn refusal(text: &str) -> String {
    format!("{:#}", Results::parse(text).unwrap_err())
}

/// Both are cut from a committed run: two settings, and a case of each.
#[test]
fn settings_of_older_formats_are_columns_and_stores() {
    for text in OLDER {
        let results = Results::parse(text).unwrap();
        assert_eq!(results.format, FORMAT);
        assert_eq!((results.replica.subnet.as_str(), results.seed), ("application", 0));
        let keys: Vec<&str> = results.columns.iter().map(|column| &*column.key).collect();
        assert_eq!(keys, ["btree", "sqlite/delete"]);
        assert_eq!((results.columns[0].engine, results.columns[0].sqlite), (Engine::Btree, None));
        let asked = results.columns[1].sqlite.unwrap();
        assert_eq!(asked.journal_mode, Some(stablebench_protocol::JournalMode::Delete));
        assert_eq!(results.columns[1].engine, Engine::Sqlite);

        let store = results.stores.iter().find(|store| store.column == "sqlite/delete").unwrap();
        assert_eq!((store.rows, store.payload), (1_000_000, 100));
        let held = store.outcome.measured().unwrap();
        assert_eq!(held.stored_bytes, 113_459_200);
        assert_eq!((held.heap_pages, held.stable_pages), (1_856, 2_945));
        assert_eq!(held.sqlite.unwrap().page_count, 27_700);
        assert_eq!((held.virtual_bytes, held.cache_bytes), (None, None));
        assert_eq!(held.populate.messages, 4);
        assert!(held.populate.charge.unwrap() > held.populate.instructions);
    }
}

#[test]
fn insertions_of_older_formats_are_cases() {
    for (text, instructions, charge, cycles) in [
        (OLDER[0], 577_141_375, 594_918_756, 601_474_756),
        (OLDER[1], 555_807_535, 573_529_382, 580_085_382),
    ] {
        let results = Results::parse(text).unwrap();
        let names: Vec<String> = results.cases.iter().map(Case::title).collect();
        assert_eq!(names, ["insert: middle 10 000, btree", "insert: end 1, sqlite/delete"]);
        let case = results.case("insert", "middle 10 000", "btree").unwrap();
        assert_eq!((case.rows, case.payload, case.state), (1_000_000, 100, State::Warm));
        let measured = case.measured().unwrap();
        assert_eq!((measured.instructions, measured.operations), (instructions, 10_000));
        let detail = measured.detail.as_ref().unwrap();
        assert_eq!((detail.messages, detail.rows, detail.bytes), (1, 10_000, None));
        let inside = detail.cost.inside.unwrap();
        assert_eq!((inside.charge, detail.cost.cycles), (charge, cycles));
        assert_eq!(inside.stable_calls, None);
        assert_eq!(detail.digest.unwrap().rows, 1_010_000);
    }
}

#[test]
fn a_run_as_published_has_the_users_figures_beside_it() {
    let published = OLDER.map(|text| Results::parse(text).unwrap().published);
    assert_eq!(published, [None, Some("users".to_owned())]);
}

/// What is read from an older file and saved is read again as the same.
#[test]
fn nothing_is_lost_in_saving() {
    for text in OLDER {
        let results = Results::parse(text).unwrap();
        assert_eq!(Results::parse(&results.to_json().unwrap()).unwrap(), results);
    }
}

/// Formats 3 and 4 had one canister, and 3 had two keys less.
#[test]
fn formats_with_one_canister_are_read() {
    for format in [3, 4] {
        let mut results = sample::full();
        for measured in results.cases.iter_mut().filter_map(|case| match &mut case.outcome {
            Outcome::Measured(measured) => Some(measured),
            Outcome::NotApplicable { .. } | Outcome::Failed { .. } => None,
        }) {
            measured.phases = None;
            if let (3, Some(detail)) = (format, measured.detail.as_mut()) {
                detail.stored = None;
            }
        }
        let mut old = serde_json::to_value(&results).unwrap();
        old["format"] = format.into();
        let fields = old.as_object_mut().unwrap();
        let canisters = fields.remove("canisters").unwrap();
        fields.insert("canister".to_owned(), canisters[0].clone());
        for column in old["columns"].as_array_mut().unwrap() {
            column.as_object_mut().unwrap().remove("canister").unwrap();
        }
        if format == 3 {
            old["stores"][0].as_object_mut().unwrap().remove("name").unwrap();
            let detail = &mut old["cases"][0]["outcome"]["measured"]["detail"];
            detail.as_object_mut().unwrap().remove("stored").unwrap();
        }
        let text = old.to_string();
        assert_eq!(Results::parse(&text).unwrap(), results);
        let more = text.replacen("\"suite\":", "\"news\": 1, \"suite\":", 1);
        assert!(refusal(&more).contains("news"));
        assert_eq!(refusal(&text.replacen("\"canister\":", "\"none\":", 1)), "no canister");
    }
}

/// Keys of this crate's types, and of those of the canisters' interface.
#[test]
fn unknown_keys_are_refused_in_every_format() {
    let newest = Results::parse(OLDER[1]).unwrap().to_json().unwrap();
    for text in [OLDER[0], OLDER[1], &newest] {
        for place in ["\"suite\":", "\"instructions\":", "\"page_size\":", "\"low\":", "\"kind\":"]
        {
            assert!(text.contains(place), "{place}");
            let more = text.replacen(place, &format!("\"colour\": 1, {place}"), 1);
            let error = refusal(&more);
            assert!(error.contains("unknown") && error.contains("colour"), "{place}: {error}");
        }
    }
    let reason = r#""outcome": {"failed": {"reason": "none", "colour": 1}}"#;
    let mut value: serde_json::Value = serde_json::from_str(&newest).unwrap();
    value["cases"][0] = serde_json::from_str(&format!(
        r#"{{"section": "insert", "name": "middle 1", "column": "btree", "rows": 1,
            "payload": 1, "state": "warm", {reason}}}"#
    ))
    .unwrap();
    assert_eq!(
        refusal(&value.to_string()),
        "unknown key cases.0.outcome.failed.colour; results with more keys than that are not read"
    );
}

#[test]
fn a_newer_format_is_refused_with_the_next_step() {
    assert_eq!(
        refusal(r#"{"format": 7, "news": true}"#),
        "they have format 7, this stablebench reads up to 6; take a newer one"
    );
    assert_eq!(refusal(r#"{"format": 0}"#), "there was no format 0");
}

#[test]
fn a_file_that_was_cut_off_is_one_clear_error() {
    let newest = Results::parse(OLDER[1]).unwrap().to_json().unwrap();
    for text in [OLDER[0], OLDER[1], &newest] {
        for length in [0, 1, text.len() / 2, text.len() - 3] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("cut.json");
            std::fs::write(&path, &text.as_bytes()[..length]).unwrap();
            let error = format!("{:#}", Results::read(&path).unwrap_err());
            assert!(error.contains("cut.json holds no results: the file was cut off"), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }
}

#[test]
fn a_setting_that_never_was_is_refused() {
    for other in ["rocksdb", "sqlite/lock"] {
        let text = OLDER[0].replace("\"sqlite/delete\"", &format!("\"{other}\""));
        assert!(refusal(&text).starts_with(&format!("there was no setting called {other}")));
    }
}

/// Every key of the types is described.
#[test]
fn the_description_names_every_key() {
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
    let path = crate::canisters::root().join("docs/results.md");
    let text = std::fs::read_to_string(path).unwrap();
    for state in ["warm", "closed", "upgraded", "vacuumed", "churned", "churned_and_vacuumed"] {
        assert!(serde_json::from_str::<State>(&format!("\"{state}\"")).is_ok());
        keys.insert(state.to_owned());
    }
    let missing: Vec<&String> =
        keys.iter().filter(|key| !text.contains(&format!("`{key}`"))).collect();
    assert!(missing.is_empty(), "docs/results.md says nothing of {missing:?}");
}
