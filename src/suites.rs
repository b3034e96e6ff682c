//! The list of suites.

#[cfg(test)]
mod fuzzing;

use anyhow::{Context, Result, bail};
use stablebench_suite::Suite;

use crate::report::{PLAIN, Presentation};
use crate::results::Results;

/// Defines the list of suites.
macro_rules! suites {
    ($($suite:path,)*) => {
        /// Every suite.
        pub static SUITES: [&dyn Suite; [$(stringify!($suite)),*].len()] = [$(&$suite),*];
    };
}

suites! {
    stablebench_suite_users::UsersSuite,
    stablebench_suite_mix::MixSuite,
    stablebench_suite_db_bench::DbBenchSuite,
    stablebench_suite_keys::KeysSuite,
    stablebench_suite_sysbench::SysbenchSuite,
    stablebench_suite_cuckoo::CuckooSuite,
    stablebench_suite_vfs::VfsSuite,
    stablebench_suite_history::HistorySuite,
    stablebench_suite_calls::CallsSuite,
    stablebench_suite_builds::BuildsSuite,
    stablebench_suite_collections::CollectionsSuite,
    stablebench_suite_sql::script::SqlSuite,
}

/// Returns the suite with this name.
pub fn suite(name: &str) -> Option<&'static dyn Suite> {
    SUITES.iter().copied().find(|suite| suite.name() == name)
}

/// Returns the presentation of some results: that of their suite, or a plain one if this program
/// does not have the suite.
pub fn presentation(results: &Results) -> &'static dyn Presentation {
    match suite(&results.suite) {
        Some(suite) => suite,
        None => &PLAIN,
    }
}

/// Returns the name of a case among those of all suites: `users/insert/middle 1000/sqlite/wal`.
pub fn title(suite: &dyn Suite, section: &str, name: &str, configuration: &str) -> String {
    [suite.name(), section, name, configuration].map(ungrouped).join("/")
}

/// `true` if the words of a pattern follow each other in the name of a case: `middle 1000` is in
/// `users/insert/middle 1000/sqlite/wal`, and `middle 100` is not.
pub fn matches(pattern: &str, title: &str) -> bool {
    let (pattern, title) = (normal(pattern), normal(title));
    format!("-{title}-").contains(&format!("-{pattern}-"))
}

/// Returns a text in the form that is compared: lower case, digits together, and hyphens for
/// everything else.
pub fn normal(text: &str) -> String {
    let mut normal = String::new();
    for letter in ungrouped(text).chars() {
        match letter.is_alphanumeric() {
            true => normal.extend(letter.to_lowercase()),
            false if normal.ends_with('-') => {}
            false => normal.push('-'),
        }
    }
    normal.trim_matches('-').to_owned()
}

/// Returns the text with the digits of its numbers together.
pub fn ungrouped(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let digit = |at: usize| letters.get(at).is_some_and(char::is_ascii_digit);
    let groups = |at: usize| {
        at > 0
            && matches!(letters[at], ' ' | '\u{a0}' | '\u{202f}' | '_')
            && digit(at - 1)
            && (1..=3).all(|more| digit(at + more))
            && !digit(at + 4)
    };
    (0..letters.len()).filter(|at| !groups(*at)).map(|at| letters[at]).collect()
}

/// Returns the published figures with this name.
///
/// # Errors
///
/// If there are none; the message lists the known names.
pub fn published(name: &str) -> Result<Results> {
    let known = || SUITES.iter().filter(|suite| suite.published_results().is_some());
    match known().find(|suite| suite.name() == name).and_then(|suite| suite.published_results()) {
        Some(text) => Results::parse(text).with_context(|| format!("published:{name}")),
        None => {
            let names: Vec<&str> = known().map(|suite| suite.name()).collect();
            bail!("there are no published figures {name}; known names: {}", names.join(", "))
        }
    }
}

/// Returns all committed results of the suites, in the order of their paths.
#[cfg(test)]
fn committed() -> Vec<Results> {
    let files = |folder: std::path::PathBuf| {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let name = |path: &std::path::Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let of_suites = files(crate::canisters::root().join("suites")).into_iter().flat_map(files);
    let results = of_suites.filter(|path| {
        name(path).starts_with("results") && path.extension().is_some_and(|end| end == "json")
    });
    results.map(|path| Results::read(&path).unwrap()).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use flate2::read::GzDecoder;
    use serde_json::Value;
    use sha2::{Digest, Sha256};
    use stablebench_suite::plan::{Plan, Shard};
    use stablebench_suite::{Suite, plan_of, words};

    use super::*;
    use crate::canisters::root;
    use crate::report::answer::{LINES, WIDTH, answer};
    use crate::report::{Presentation, page};
    use crate::results::{Results, sample};
    use crate::terminal::{Terminal, split};

    /// The suite of the sample.
    const SUITE: &dyn Presentation = &stablebench_suite_users::UsersSuite;

    const STYLE: &str = include_str!("../page/dist/page.css");
    const SCRIPT: &str = include_str!("../page/dist/page.js");

    /// The maximum size of a page in bytes.
    const LIMIT: usize = 2_000_000;

    fn committed_reports() -> Vec<(String, &'static dyn Presentation, Results)> {
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
        let results = committed_reports();
        let page = page(&results).unwrap();
        assert!(page.len() < LIMIT, "{} bytes", page.len());
        let data = unpacked(&page);
        for ((file, _, results), report) in results.iter().zip(data["reports"].as_array().unwrap())
        {
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
        for (file, suite, results) in committed_reports() {
            for (width, height) in
                [(None, None), (Some(100), Some(45)), (Some(60), None), (Some(80), Some(24))]
            {
                let terminal = Terminal { colour: false, width };
                let text = answer(suite, &results, terminal, height).unwrap();
                // Commands are not wrapped, so that they can be copied.
                let lines = text.lines().filter(|line| !line.starts_with("Repeat with: "));
                let longest = lines.map(|line| line.chars().count()).max().unwrap();
                assert!(
                    longest <= usize::from(width.unwrap_or(WIDTH)),
                    "{file}: {longest}\n{text}"
                );
                assert!(width == Some(60) || text.lines().count() < LINES, "{file}:\n{text}");
                assert!(text.contains("What to do\n* "), "{file}:\n{text}");
                // The command for all tables, two notes of which one may be wrapped, and the prompt follow. A
                // long sentence pushes out the heading.
                assert!(
                    height != Some(24) || text.lines().count() <= 24 - 5 + 2,
                    "{file}:\n{text}"
                );
            }
        }
    }

    /// The tables above the sentences contain their figures.
    #[test]
    fn the_figures_of_sentences_are_in_the_tables() {
        let mut checked = 0;
        for (file, suite, results) in committed_reports() {
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

    #[test]
    fn names_are_unique_and_sections_have_titles() {
        for suite in SUITES {
            let found = SUITES.iter().filter(|other| other.name() == suite.name());
            assert_eq!(found.count(), 1, "{}", suite.name());
            let plan = plan_of(suite, "").unwrap();
            for (section, _) in &plan.rows {
                assert!(suite.section(section).is_some(), "{}: {section}", suite.name());
            }
            assert!(suite.section("nothing").is_none());
        }
    }

    /// No two cases of a plan have the same section, name and configuration.
    #[test]
    fn cases_are_unique() {
        for (suite, typed) in SUITES.iter().map(|suite| (suite.name(), "")).chain([
            ("users", "--sections=all"),
            ("keys", "--schemas a,a --keys ulid,ulid --engines sqlite,sqlite"),
        ]) {
            let plan = plan_of(super::suite(suite).unwrap(), typed).unwrap();
            let mut seen = std::collections::BTreeSet::new();
            for fixture in &plan.fixtures {
                for (section, name) in fixture.cases() {
                    let case = (section, name, &fixture.configuration.key);
                    assert!(seen.insert(case), "{suite}: {case:?}");
                }
            }
        }
    }

    /// The words that repeat a command line plan the same run.
    #[test]
    fn words_repeat_the_run() {
        for (name, typed) in [
            ("users", ""),
            ("users", "--sections=all --per-operation --check-around --curve-rows=500"),
            ("users", "--sections=settings --product --page-sizes=512 --cache-sizes=-100,5"),
            (
                "users",
                "--batches=3,9 --at=random --engines=array,sqlite/wal,page_size=512 --rows=50",
            ),
            ("users", "--as-published"),
            ("db-bench", "--histogram --num=500 --reads=7"),
            ("db-bench", "--benchmarks=fillseq,readseq --histogram=1 --page_size=512"),
            ("db-bench", "--engines=leveldb/snappy,write_buffer_size=70000,sqlite-vfs"),
            ("keys", "--rows 400000 --watches 200 --movies 10000"),
            ("keys", "--schemas d,c-rowid --keys uuidv7,integer --foreign-keys off"),
            ("sysbench", "--base=sqlite/off,page_size=512 --keys=text,text --rows=7"),
            ("sysbench", "--other=sqlite/wal --other=doltlite --max-ratio=6"),
            ("cuckoo", "--num 256 --engines cuckoo/identity,array --keys scattered"),
            ("mix", "--insert 3 --scan 1 --indexes 2 --at middle --engines btree,doltlite"),
            ("vfs", "--other doltlite --sections reads --rows 50 --sizes 1,50"),
            ("history", "--rows 500 --changes 1,7"),
            ("builds", "--build lto=fat,wasm-opt=O3 --build default --work heap,install"),
            ("collections", "--entries 70,50 --maps motoko-map,rust-table"),
            (
                "sql",
                "--builtin ycsb-a@3 --define n=5 --scale 2 --per-message 10 --engines sqlite/wal",
            ),
            ("calls", "--sizes 0,5 --fan-out 2 --states 7 --sections size,fan-out,upgrade"),
        ] {
            let suite = suite(name).unwrap();
            let command = || suite.arguments(clap::Command::new(name));
            let given = [name.to_owned()].into_iter().chain(split(typed).unwrap());
            let matches = command().try_get_matches_from(given).unwrap();
            let again = words(&command(), &matches, |_| true).join(" ");
            let first = plan_of(suite, typed).unwrap();
            let second = plan_of(suite, &again).unwrap();
            assert_eq!(format!("{first:?}"), format!("{second:?}"), "{again}");
        }
    }

    /// Each fixture is in exactly one shard, with its configuration, and the shards are of about the
    /// same size.
    #[test]
    fn shards_are_the_whole() {
        for suite in SUITES {
            let plan = || plan_of(suite, "").unwrap();
            let whole = plan();
            for of in [1, 2, 3, whole.fixtures.len() + 1] {
                let parts: Vec<Plan> =
                    (1..=of).map(|number| Shard { number, of }.of(plan())).collect();
                let mut found = 0;
                for (fixture, place) in whole.fixtures.iter().zip(0..) {
                    let key = fixture.key();
                    let has = |part: &&Plan| part.fixtures.iter().any(|of| of.key() == key);
                    let of = parts.iter().filter(has).collect::<Vec<_>>();
                    let [part] = of[..] else { panic!("{key:?} is in {} shards", of.len()) };
                    assert!(part.configurations.contains(&fixture.configuration));
                    assert_eq!(part.fixtures[place / parts.len()].key(), key);
                    found += 1;
                }
                let sizes = parts.iter().map(|part| part.fixtures.len());
                assert!(sizes.clone().max() <= sizes.clone().min().map(|least| least + 1));
                assert_eq!(sizes.sum::<usize>(), found);
                let empty = parts.iter().filter(|part| part.fixtures.is_empty());
                assert!(empty.clone().all(|part| part.notes.iter().any(|of| of.contains("shard"))));
                assert_eq!(empty.count(), of.saturating_sub(whole.fixtures.len()));
            }
        }
    }
}
