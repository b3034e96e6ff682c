//! The page and the answers of committed results.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use stablebench_suite::Suite;

use super::SUITES;
use crate::canisters::root;
use crate::report::answer::{LINES, WIDTH, answer};
use crate::report::{Presentation, page};
use crate::results::{Results, sample};
use crate::terminal::Terminal;

/// The suite of the sample.
const SUITE: &dyn Presentation = &stablebench_suite_users::UsersSuite;

const STYLE: &str = include_str!("../../page/dist/page.css");
const SCRIPT: &str = include_str!("../../page/dist/page.js");

/// The maximum size of a page in bytes.
const LIMIT: usize = 2_000_000;

fn committed() -> Vec<(String, &'static dyn Presentation, Results)> {
    let read = |suite: &'static dyn Suite| {
        let path = root().join("suites").join(suite.name()).join("results.json");
        let presentation: &dyn Presentation = suite;
        (format!("{}.json", suite.name()), presentation, Results::read(&path).unwrap())
    };
    SUITES.iter().map(|suite| read(*suite)).collect()
}

/// Returns the text between the first `begin` and the next `end`.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(begin).unwrap();
    rest.split_once(end).unwrap().0
}

fn unpacked(page: &str) -> Value {
    let packed = between(page, "<script type=\"text/plain\" id=\"data\">", "</script>");
    let mut text = String::new();
    let compressed = STANDARD.decode(packed).unwrap();
    GzDecoder::new(compressed.as_slice()).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn all_committed_results_are_one_small_page() {
    let results = committed();
    let page = page(&results).unwrap();
    assert!(page.len() < LIMIT, "{} bytes", page.len());
    let data = unpacked(&page);
    for ((file, _, results), report) in results.iter().zip(data["reports"].as_array().unwrap()) {
        assert_eq!(report["file"], **file);
        let cases = report["results"]["cases"].as_array().unwrap();
        assert_eq!(cases.len(), results.cases.len(), "{file}");
        assert!(report["question"].is_string(), "{file}");
        for case in &results.cases {
            assert!(
                report["configurations"][&case.configuration]["heading"].is_string(),
                "{}",
                case.configuration
            );
            assert!(report["sections"][&case.section].is_string(), "{}", case.section);
        }
    }
}

#[test]
fn the_answer_of_each_suite_fits_one_screen() {
    for (file, suite, results) in committed() {
        for (width, height) in
            [(None, None), (Some(100), Some(45)), (Some(60), None), (Some(80), Some(24))]
        {
            let terminal = Terminal { colour: false, width };
            let text = answer(suite, &results, terminal, height).unwrap();
            // Commands are not wrapped, so that they can be copied.
            let lines = text.lines().filter(|line| !line.starts_with("Repeat with: "));
            let longest = lines.map(|line| line.chars().count()).max().unwrap();
            assert!(longest <= usize::from(width.unwrap_or(WIDTH)), "{file}: {longest}\n{text}");
            assert!(width == Some(60) || text.lines().count() < LINES, "{file}:\n{text}");
            assert!(text.contains("What to do\n* "), "{file}:\n{text}");
            // The command for all tables, two notes of which one may be wrapped, and the prompt follow. A
            // long sentence pushes out the heading.
            assert!(height != Some(24) || text.lines().count() <= 24 - 5 + 2, "{file}:\n{text}");
        }
    }
}

/// The tables above the sentences contain their figures.
#[test]
fn the_figures_of_sentences_are_in_the_tables() {
    let mut checked = 0;
    for (file, suite, results) in committed() {
        let text = answer(suite, &results, Terminal::default(), None).unwrap();
        let (tables, sentences) = text.split_once("What to do").unwrap();
        let words: Vec<&str> = sentences.split_whitespace().collect();
        let figures: Vec<String> = match results.suite.as_str() {
            "sysbench" => {
                let ratios = words.iter().filter(|word| word.ends_with('×'));
                ratios.map(|word| (*word).to_owned()).collect()
            }
            "calls" => {
                let cycles = words.windows(3).filter(|three| three[2].starts_with("cycles"));
                cycles.map(|three| format!("{} {}", three[0], three[1])).collect()
            }
            _ => continue,
        };
        checked += figures.len();
        for figure in figures {
            assert!(tables.contains(&figure), "{file}: {figure}\n{text}");
        }
    }
    assert!(checked >= 8, "{checked}");
}

#[test]
fn the_page_contains_the_prices_of_each_rule_set() {
    let page = page(&[("users.json".to_owned(), SUITE, sample::full())]).unwrap();
    let data = unpacked(&page);
    let names: Vec<&String> = data["rules"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["2025-10", "2026-08", "2026-08-recorded", "2026-10"]);
    let rules = &data["rules"]["2026-08"];
    assert!(rules["charge"].as_str().unwrap().starts_with("Rules 2026-08: "));
    let fees = serde_json::json!({
        "execution": 5_000_000, "ingress": 1_200_000, "ingress_byte": 2_000, "instruction": 1,
        "storage_gib_second": 317_500, "canister_second": 10_000
    });
    assert_eq!(rules["fees"], fees);
}

#[test]
fn pages_are_deterministic() {
    let results = [("users.json".to_owned(), SUITE, sample::full())];
    assert!(page(&results).unwrap() == page(&results).unwrap());
}

#[test]
fn only_the_pages_own_script_may_run() {
    let page = page(&[("users.json".to_owned(), SUITE, sample::full())]).unwrap();
    let script = between(&page, "<script>", "</script>");
    assert!(script == SCRIPT);
    let policy = between(&page, "http-equiv=\"Content-Security-Policy\" content=\"", "\"");
    let hash = STANDARD.encode(Sha256::digest(script));
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; script-src 'sha256-{hash}'; style-src 'unsafe-inline'; img-src \
             data: blob:; base-uri 'none'; form-action 'none'"
        )
    );
    // The block of data, and the script.
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
    assert!(!STYLE.contains("</style") && !SCRIPT.contains("<!--"));
    assert!(["{{style}}", "{{data}}", "{{script}}"].iter().all(|name| !page.contains(name)));
}

#[test]
fn no_text_of_the_results_is_in_the_html() {
    const HOSTILE: &str = "</script><script>alert('canary')</script>{{script}}<!--\"'&]]>";
    let mut results = sample::full();
    let (canister, case) = (&mut results.canisters[0], &mut results.cases[0]);
    let texts = [
        &mut results.stablebench,
        &mut results.suite,
        &mut results.command,
        &mut results.replica.kind,
        &mut canister.name,
        &mut canister.sha256,
        &mut canister.crates[0].name,
        &mut results.configurations[0].key,
        &mut case.section,
        &mut case.name,
        &mut case.configuration,
    ];
    for text in texts {
        *text = HOSTILE.to_owned();
    }
    results.revision = Some(HOSTILE.to_owned());
    let harmless = page(&[("users.json".to_owned(), SUITE, sample::full())]).unwrap();
    let hostile = page(&[(HOSTILE.to_owned(), SUITE, results)]).unwrap();
    assert!(!hostile.contains("canary"));
    let without_data = |page: &str| {
        let (before, rest) = page.split_once("id=\"data\">").unwrap();
        format!("{before}{}", rest.split_once("</script>").unwrap().1)
    };
    assert!(without_data(&hostile) == without_data(&harmless));
    assert_eq!(unpacked(&hostile)["reports"][0]["results"]["command"], HOSTILE);
}
