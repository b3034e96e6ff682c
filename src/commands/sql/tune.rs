//! `--tune`: the settings with which a script costs least.
//!
//! ```text
//!   library's defaults ── journal modes ── cache sizes ── page sizes ── locking modes
//!         the best of each goes into the next          ↓
//!   around the best:  half and twice its cache and page size, the other journal modes again
//!   the best of all:  more transactions in a message
//! ```
//!
//! A setting that `--engines` or `--per-message` names stays as it is. All points execute the same
//! transactions and must find and leave the same rows.

use std::process::ExitCode;

use anyhow::{Result, bail};
use stablebench_suite::engines::{Configuration, Configurations, heading};
use stablebench_suite_sql::script::{SqlSuite, TRANSACTION};

use crate::cache::Cache;
use crate::commands::replica::embedded;
use crate::commands::run::{Planned, empty, needed};
use crate::interrupt;
use crate::progress::Output;
use crate::replica::embedded::Embedded;
use crate::replica::options::ReplicaArg;
use crate::report::grid::{Cell, Grid, Style};
use crate::report::number::{Factor, Fixed, Grouped, Short};
use crate::report::price::{cycles, usd};
use crate::results::{Outcome, Prices};
use crate::runner::Runner;
use crate::terminal::print;

const JOURNAL_MODES: [&str; 6] = ["delete", "truncate", "persist", "memory", "off", "wal"];
/// Pages.
const CACHE_SIZES: [u64; 4] = [50, 200, 1_000, 5_000];
const PAGE_SIZES: [u64; 4] = [1_024, 4_096, 16_384, 65_536];
const LOCKING_MODES: [&str; 2] = ["exclusive", "normal"];
/// Transactions in a message, besides one.
const MORE: [u64; 2] = [10, 100];
/// The transactions of a point, unless others are chosen.
const TRANSACTIONS: u64 = 200;
/// The rows of the ranking.
const SHOWN: usize = 12;
/// Differences below this part of the cost are not worth a setting.
const NOTABLE: f64 = 0.01;

/// The messages that prices are shown for.
const MESSAGES: f64 = 1e6;

/// The columns of the tables.
const HEADER: [&str; 6] =
    ["", "a message", "instructions", "cycles", "$ a million", "of the first"];

/// A configuration, and the transactions of a message.
#[derive(Clone, Debug, PartialEq)]
struct Point {
    configuration: Configuration,
    per_message: u64,
}

/// What a transaction costs on average.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MeanCost {
    instructions: u64,
    cycles: u64,
}

/// A point that was measured, or the reason why it was not.
#[derive(Clone, Debug)]
struct Tried {
    point: Point,
    spent: Result<MeanCost, Unmeasured>,
}

/// The reason why a point was not measured.
#[derive(Clone, Debug)]
enum Unmeasured {
    /// The library does not take a setting.
    NotTaken,
    Reason(String),
}

/// The settings of a search.
struct Tuner<'a> {
    words: &'a [String],
    /// The transactions of a point.
    transactions: u64,
    replica: Embedded,
    cache: Option<Cache>,
    prices: Prices,
    output: &'a Output,
    tried: Vec<Tried>,
}

/// The choices of the command line.
#[derive(Debug)]
pub struct Choice {
    /// The options of the suite but those that are varied.
    pub words: Vec<String>,
    pub engines: Option<Configurations>,
    pub per_message: Option<u64>,
    pub transactions: Option<u64>,
}

/// Measures a script with many settings, and prints a ranking.
///
/// # Errors
///
/// If a point fails, other than by a setting that the engine does not take.
pub fn tune(mut choice: Choice, output: &Output) -> Result<ExitCode> {
    let transactions = choice.transactions.unwrap_or(TRANSACTIONS);
    if choice.transactions.is_none() {
        choice.words.push(format!("--transactions={TRANSACTIONS}"));
    }
    let first = Planned::of(&SqlSuite, &choice.words)?;
    if first.args.target.replica != ReplicaArg::Embedded {
        bail!("--tune measures on the embedded replica; leave out --replica");
    }
    interrupt::listen()?;
    let (replica, cache) = embedded(&first.args.replica, &output.progress)?;
    let prices = Prices {
        nodes: first.args.prices.nodes,
        usd_per_trillion_cycles: first.args.prices.usd_per_trillion_cycles,
    };
    let mut tuner = Tuner {
        words: &choice.words,
        transactions,
        replica,
        cache,
        prices,
        output,
        tried: Vec::new(),
    };
    let starts = match choice.engines {
        Some(engines) => engines.0,
        None => vec![Configuration::of("sqlite")?],
    };
    for start in &starts {
        tuner.search(start, choice.per_message)?;
    }
    print(&tuner.report(&starts, choice.per_message.unwrap_or(1))?)?;
    Ok(ExitCode::SUCCESS)
}

impl Tuner<'_> {
    /// Searches from a configuration on.
    fn search(&mut self, start: &Configuration, per_message: Option<u64>) -> Result<()> {
        let mut best = Point {
            configuration: start.clone().without_defaults(),
            per_message: per_message.unwrap_or(1),
        };
        let is_free = |name: &str| start.value(name).is_none();
        let words = |values: &[&str]| values.iter().map(|word| (*word).to_owned()).collect();
        let numbers = |values: &[u64]| values.iter().map(u64::to_string).collect();
        let stages: [(&str, Vec<String>); 4] = [
            ("journal_mode", words(&JOURNAL_MODES)),
            ("cache_size", numbers(&CACHE_SIZES)),
            ("page_size", numbers(&PAGE_SIZES)),
            ("locking_mode", words(&LOCKING_MODES)),
        ];
        self.measure(std::slice::from_ref(&best))?;
        for (name, values) in &stages {
            if is_free(name) {
                let points: Vec<Point> =
                    values.iter().filter_map(|value| best.with(name, value)).collect();
                best = self.best_of(&points, best)?;
            }
        }
        // Around the best.
        let mut points: Vec<Point> = Vec::new();
        for name in ["cache_size", "page_size"].into_iter().filter(|name| is_free(name)) {
            let Some(value) = best.configuration.effective(name) else { continue };
            let Ok(value) = value.parse::<i64>() else { continue };
            points.extend([value / 2, value * 2].iter().filter_map(|value| best.with(name, value)));
        }
        if is_free("journal_mode") {
            points.extend(JOURNAL_MODES.iter().filter_map(|mode| best.with("journal_mode", mode)));
            points.retain(|point| !self.is_refused(point));
        }
        best = self.best_of(&points, best)?;
        if per_message.is_none() {
            let more = MORE.iter().filter(|more| **more <= self.transactions);
            let more = more.map(|more| Point { per_message: *more, ..best.clone() });
            self.measure(&more.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Measures some points. Returns the cheapest of them and of another one.
    fn best_of(&mut self, points: &[Point], other: Point) -> Result<Point> {
        self.measure(points)?;
        let cost = |point: &Point| self.spent(point).map_or(u64::MAX, |spent| spent.cycles);
        let cheapest = points.iter().chain([&other]).min_by_key(|point| cost(point));
        Ok(cheapest.cloned().unwrap_or(other))
    }

    fn spent(&self, point: &Point) -> Option<MeanCost> {
        let tried = self.tried.iter().find(|tried| tried.point.is(point))?;
        tried.spent.as_ref().ok().copied()
    }

    /// Measures those of the points that were not.
    fn measure(&mut self, points: &[Point]) -> Result<()> {
        let mut rest: Vec<Point> = Vec::new();
        for point in points {
            let known = self.tried.iter().map(|tried| &tried.point).chain(&rest);
            if !known.into_iter().any(|known| known.is(point)) {
                rest.push(point.clone());
            }
        }
        while let Some(per_message) = rest.first().map(|point| point.per_message) {
            let (now, later): (Vec<Point>, _) =
                rest.into_iter().partition(|point| point.per_message == per_message);
            rest = later;
            self.together(&now, per_message)?;
        }
        Ok(())
    }

    /// Measures configurations in one run.
    fn together(&mut self, points: &[Point], per_message: u64) -> Result<()> {
        let keys: Vec<String> = points.iter().map(|point| point.configuration.key()).collect();
        let mut words = self.words.to_vec();
        words.push(format!("--engines={}", keys.join(",")));
        words.push(format!("--per-message={per_message}"));
        let planned = Planned::of(&SqlSuite, &words)?;
        let progress = &self.output.progress;
        let (built, missing) = needed(&planned.plan, progress)?;
        let results = empty(&planned, &self.replica, &built);
        let runner = Runner::new(&self.replica, &built, &planned.plan, progress, None, results)?
            .with_wall_time(false)
            .with_cache(self.cache.as_ref())
            .with_missing(missing);
        runner.run(usize::try_from(planned.args.output.jobs).unwrap_or(1))?;
        let results = runner.results();
        let name = results.names(TRANSACTION).first().copied().unwrap_or_default().to_owned();
        for (point, key) in points.iter().zip(&keys) {
            let outcome = results.case(TRANSACTION, &name, key).map(|case| &case.outcome);
            let spent = match outcome {
                Some(Outcome::Measured(measured)) => {
                    let detail = measured.detail.as_ref();
                    let all = detail.map_or(0, |detail| detail.cost.cycles);
                    Ok(MeanCost {
                        instructions: measured.each_operation(),
                        cycles: cycles(all, &self.prices) / measured.operations.max(1),
                    })
                }
                Some(Outcome::NotApplicable { .. }) => Err(Unmeasured::NotTaken),
                Some(Outcome::Failed { reason }) => Err(Unmeasured::Reason(reason.clone())),
                None => Err(Unmeasured::Reason("it was not measured".to_owned())),
            };
            self.tried.push(Tried { point: point.clone(), spent });
        }
        Ok(())
    }

    /// Returns the measured points with so many transactions in a message, or others, cheapest first.
    fn ranked(&self, wanted: impl Fn(&Point) -> bool) -> Vec<(&Point, MeanCost)> {
        let measured = self.tried.iter().filter(|tried| wanted(&tried.point));
        let mut ranked: Vec<(&Point, MeanCost)> = measured
            .filter_map(|tried| Some((&tried.point, *tried.spent.as_ref().ok()?)))
            .collect();
        ranked.sort_by_key(|(_, spent)| spent.cycles);
        ranked
    }

    /// Returns the ranking, and the settings to paste.
    fn report(&self, starts: &[Configuration], per_message: u64) -> Result<String> {
        let style = Style::of(self.output.terminal);
        let ranked = self.ranked(|point| point.per_message == per_message);
        if ranked.is_empty() {
            bail!("nothing could be measured:\n{}", self.failures().join("\n"));
        }
        let start = starts
            .first()
            .map(|start| Point { configuration: start.clone().without_defaults(), per_message });
        let base = start.and_then(|start| Some((start.clone(), self.spent(&start)?)));
        let spent = base.as_ref().map(|(_, spent)| *spent);
        let mut text = self.ranking(&ranked, spent).render(style);
        let more = self.ranked(|point| point.per_message != per_message);
        if !more.is_empty() {
            let one = ranked.iter().filter(|(point, _)| {
                more.iter().any(|(more, _)| more.configuration == point.configuration)
            });
            let mut rows: Vec<(&Point, MeanCost)> = one.chain(&more).copied().collect();
            rows.sort_by_key(|(point, _)| point.per_message);
            let grid = Grid {
                title: "More transactions in a message".to_owned(),
                header: HEADER.map(str::to_owned).to_vec(),
                rows: rows.iter().map(|row| self.row(row, spent)).collect(),
                notes: vec!["A trap undoes all transactions of its message.".to_owned()],
                lines: false,
            };
            text += &format!("\n{}", grid.render(style));
        }
        if let Some((start, base)) = base {
            text += &advice(&ranked, &start, base, style);
        }
        Ok(text)
    }

    /// Returns sentences on the points that were not measured.
    fn failures(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let mut refused: Vec<String> = Vec::new();
        for Tried { point, spent } in &self.tried {
            match spent {
                Err(Unmeasured::Reason(reason)) => {
                    sentences.push(format!("{}: {reason}", point.key()))
                }
                Err(Unmeasured::NotTaken) => refused.push(point.key()),
                Ok(_) => {}
            }
        }
        if !refused.is_empty() {
            sentences.push(format!("Not taken by the library: {}.", refused.join("; ")));
        }
        sentences
    }

    /// Returns `true` if the library did not take a setting of a point before.
    fn is_refused(&self, point: &Point) -> bool {
        self.tried.iter().any(|tried| {
            matches!(tried.spent, Err(Unmeasured::NotTaken))
                && tried.point.configuration.engine == point.configuration.engine
                && ["journal_mode", "locking_mode"].iter().any(|name| {
                    let value = tried.point.configuration.value(name);
                    value.is_some() && value == point.configuration.value(name)
                })
        })
    }

    fn row(&self, (point, spent): &(&Point, MeanCost), base: Option<MeanCost>) -> Vec<Cell> {
        let ratio = base.map(|base| spent.cycles as f64 / base.cycles.max(1) as f64);
        vec![
            Cell::Text(heading(&point.key())),
            Cell::text(Grouped(point.per_message)),
            Cell::text(Short(spent.instructions)),
            Cell::text(Short(spent.cycles)),
            Cell::Text(format!("${:.2}", usd(spent.cycles, MESSAGES, &self.prices))),
            ratio.map_or(Cell::Absent, |ratio| Cell::text(Factor(ratio))),
        ]
    }

    fn ranking(&self, ranked: &[(&Point, MeanCost)], base: Option<MeanCost>) -> Grid {
        let mut rows: Vec<Vec<Cell>> =
            ranked.iter().take(SHOWN).map(|row| self.row(row, base)).collect();
        // The settings to begin with are always shown.
        let begin = ranked.iter().skip(SHOWN).find(|(_, spent)| Some(*spent) == base);
        rows.extend(begin.map(|row| self.row(row, base)));
        let mut notes = vec![format!(
            "The best {} of {}, and the settings to begin with. cycles: of a transaction, its part of \
             the message included.",
            Grouped(ranked.len().min(SHOWN) as u64),
            Grouped(ranked.len() as u64)
        )];
        notes.extend(self.failures());
        Grid {
            title: "What a transaction costs, cheapest first".to_owned(),
            header: HEADER.map(str::to_owned).to_vec(),
            rows,
            notes,
            lines: false,
        }
    }
}

impl Point {
    /// Returns the same point with another value of a setting; `None` if the engine does not have it.
    fn with(&self, name: &str, value: &impl ToString) -> Option<Self> {
        let configuration = self.configuration.clone().with(name, value.to_string()).ok()?;
        Some(Self { configuration: configuration.without_defaults(), ..self.clone() })
    }

    fn is(&self, other: &Self) -> bool {
        (self.configuration.key(), self.per_message)
            == (other.configuration.key(), other.per_message)
    }

    fn key(&self) -> String {
        self.configuration.key()
    }

    fn journal_mode(&self) -> &str {
        self.configuration.effective("journal_mode").unwrap_or_default()
    }
}

/// Returns sentences on the best point, and on the best one with a journal in stable memory.
fn advice(ranked: &[(&Point, MeanCost)], start: &Point, base: MeanCost, style: Style) -> String {
    let share = |less: u64, more: u64| 1.0 - less as f64 / more.max(1) as f64;
    let gain = |of: &MeanCost| share(of.cycles, base.cycles);
    let is_kept = |point: &Point| !["off", "memory"].contains(&point.journal_mode());
    let say = |sentence: String| format!("\n{}\n", style.sentence(&sentence));
    let described = |title: &str, point: &Point, spent: &MeanCost| {
        if gain(spent) < NOTABLE {
            return say(format!("{title}: nothing costs notably less than {}.", start.key()));
        }
        let sentence = format!(
            "{title}: {}, {} % fewer cycles and {} % fewer instructions than {}.",
            point.key(),
            Fixed(gain(spent) * 100.0, 1),
            Fixed(share(spent.instructions, base.instructions) * 100.0, 1),
            start.key()
        );
        say(sentence) + &pasted(point) + &say(given_up(point))
    };
    let best = ranked.first().map(|(point, spent)| described("Best", point, spent));
    let kept = ranked.iter().find(|(point, _)| is_kept(point));
    let kept = kept.filter(|(point, _)| ranked.first().is_some_and(|(best, _)| best != point));
    let title = "Best with a journal in stable memory";
    let kept = kept.map(|(point, spent)| described(title, point, spent));
    best.into_iter().chain(kept).collect()
}

/// Returns the settings of a point as SQL.
fn pasted(point: &Point) -> String {
    // The size of pages has to be set before the first table is created, and before WAL.
    let names = ["page_size", "journal_mode", "cache_size", "locking_mode", "synchronous"];
    let line = |name: &&str| {
        let value = point.configuration.effective(name)?;
        Some(format!("  PRAGMA {name} = {value};\n"))
    };
    format!("\n{}", names.iter().filter_map(line).collect::<String>())
}

/// Returns what the settings of a point protect in a canister, and what they do not.
fn given_up(point: &Point) -> String {
    let journal = match point.journal_mode() {
        "off" => {
            "journal_mode=off keeps no journal: ROLLBACK does not work, and a statement that fails may \
             leave a part of its changes. A trap still undoes the whole message, back to its last await, so trap after each \
             error, and end each transaction in the message in which it begins."
        }
        "memory" => {
            "journal_mode=memory keeps the journal on the heap: ROLLBACK works, and a trap undoes the \
             whole message. If an upgrade comes while a transaction of an earlier message is open, the \
             journal is lost and the database may be damaged: end each transaction in its message."
        }
        "wal" => {
            "journal_mode=wal gives up nothing: ROLLBACK works, a trap undoes the whole message, and \
             what was not committed before an upgrade is ignored. Changes are in a log in stable \
             memory until a checkpoint copies them, and the first message after an upgrade reads it."
        }
        _ => {
            "This journal is in stable memory and gives up nothing: ROLLBACK works, a trap undoes the \
             whole message, and a transaction that was open at an upgrade is rolled back when the \
             database is opened again."
        }
    };
    let mut text = journal.to_owned();
    if point.configuration.value("page_size").is_some() {
        text +=
            " The size of pages is that of the database: set it before the first table, or VACUUM.";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(key: &str) -> Point {
        Point { configuration: Configuration::of(key).unwrap(), per_message: 1 }
    }

    #[test]
    fn a_default_is_no_other_point() {
        let start = point("sqlite");
        assert!(start.with("cache_size", &500_000).unwrap().is(&start));
        assert!(start.with("journal_mode", &"persist").unwrap().is(&start));
        assert!(!start.with("journal_mode", &"wal").unwrap().is(&start));
        assert!(start.with("page_size", &131_072).is_none());
        assert!(!Point { per_message: 10, ..start.clone() }.is(&start));
    }

    #[test]
    fn settings_are_pasted_in_an_order_that_works() {
        let text = pasted(&point("sqlite/wal,page_size=8192,cache_size=100"));
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(
            lines,
            [
                "PRAGMA page_size = 8192;",
                "PRAGMA journal_mode = wal;",
                "PRAGMA cache_size = 100;",
                "PRAGMA locking_mode = exclusive;",
                "PRAGMA synchronous = off;"
            ]
        );
    }

    #[test]
    fn each_journal_mode_says_what_it_protects() {
        for mode in JOURNAL_MODES {
            let text = given_up(&point(&format!("sqlite/{mode}")));
            assert!(text.contains("ROLLBACK") && text.contains("trap"), "{mode}: {text}");
            let gives_up = ["off", "memory"].contains(&mode);
            assert_eq!(!text.contains("gives up nothing"), gives_up, "{mode}");
        }
        let text = given_up(&point("sqlite/wal,page_size=8192"));
        assert!(text.contains("before the first table"), "{text}");
    }
}
