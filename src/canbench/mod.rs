//! Benchmarks of canbench projects on the embedded replica.
//!
//! ```text
//!   config.rs   canbench.yml
//!   run ──→ the benchmarks that a module exports, each on a fork, on all cores
//!     └──→ results.rs  canbench_results.yml: read, compared with, written
//!            └──→ output.rs  canbench's output, JSON, Markdown, CSV
//! ```
//!
//! Texts and files are those of canbench 0.7, to the last character, because scripts read them.
//! Additional output is printed on request only.
//!
//! One canister is installed, and each benchmark runs on a fork of it. A benchmark is a query of the
//! anonymous principal with one argument, `()`, on a benchmarking subnet. Forks are isolated from each
//! other, so parallel and sequential runs count the same.
//!
//! ```text
//!   message   │ setup │ performance_counter │ what is measured │ performance_counter │ reply │
//!             └ pages that it touches are not charged again ──→┘
//! ```
//!
//! The readings tell where the measured part begins. With [`Setup::Separate`] the benchmark runs
//! once more, and the replica divides the message at that reading: all pages count as untouched, and
//! memories stay. Values on the canister's stack are not lost, which real messages could not share.

pub mod config;
pub mod output;
pub mod results;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use anyhow::{Context, Result, anyhow, bail, ensure};
use candid::CandidType;
use serde::Deserialize;
use stablebench_replica::{
    Canister, Execution, Principal, Reading, Readings, Span, TouchedPages, WasmPages,
};
use stablebench_server::sign_data;
use wasm_encoder::{ExportKind, ExportSection, Module, RawSection};
use wasmparser::{Export, ExternalKind, Parser, Payload};

use crate::profile::{Flame, Heading, check, svg};
use crate::replica::decoding::decode_one;
use crate::replica::embedded::Embedded;
use crate::replica::ic_code;
use crate::terminal::safe_line;
use results::{Before, Bench, Cost, Measured, Measurement, Pages, Setup};

/// The prefix of the query methods that are benchmarks.
const PREFIX: &str = "__canbench__";
/// The prefix of queries by which canbench traces benchmarks in a module that it has instrumented.
/// They do nothing in other modules.
const TRACING: &str = "canister_query __tracing__";

/// Returns the names of the benchmarks in the order of the export section.
pub fn benches(wasm: &[u8]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        if let Payload::ExportSection(exports) = payload.context("the module cannot be read")? {
            for export in exports {
                let name = export?.name;
                let name = name.strip_prefix("canister_query ");
                names.extend(name.and_then(|name| name.strip_prefix(PREFIX)).map(str::to_owned));
            }
        }
    }
    Ok(names)
}

/// Returns the module without the queries for tracing. Their names count towards the limit on the
/// names of all methods, which a module may exceed because of them alone. All functions and their
/// indices stay.
pub fn without_tracing(wasm: &[u8]) -> Result<Vec<u8>> {
    let mut module = Module::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload.context("the module cannot be read")?;
        if let Payload::ExportSection(exports) = &payload {
            let mut kept = ExportSection::new();
            for export in exports.clone() {
                let Export { name, kind, index } = export?;
                if !name.starts_with(TRACING) {
                    kept.export(name, self::kind(kind), index);
                }
            }
            module.section(&kept);
        } else if let Some((id, range)) = payload.as_section() {
            module.section(&RawSection { id, data: &wasm[range] });
        }
    }
    Ok(module.finish())
}

fn kind(kind: ExternalKind) -> ExportKind {
    match kind {
        ExternalKind::Func | ExternalKind::FuncExact => ExportKind::Func,
        ExternalKind::Table => ExportKind::Table,
        ExternalKind::Memory => ExportKind::Memory,
        ExternalKind::Global => ExportKind::Global,
        ExternalKind::Tag => ExportKind::Tag,
    }
}

/// The stack size of a thread that runs benchmarks, in bytes: the usual size for `main`.
const STACK: usize = 8 << 20;

/// A canister to install.
#[derive(Debug)]
pub struct Project {
    /// The module.
    pub wasm: Vec<u8>,
    /// The argument of `canister_init`.
    pub init_args: Vec<u8>,
    /// The stable memory to load after that.
    pub stable_memory: Option<Vec<u8>>,
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
}

/// The manner in which benchmarks run.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    pub setup: Setup,
    /// True if flame graphs are drawn.
    pub traced: bool,
}

/// Installs the canister and returns it with the text that it printed.
///
/// # Errors
///
/// If it cannot be installed; the message is the replica's.
pub fn install(replica: &Embedded, project: &Project) -> Result<(Canister, Vec<String>)> {
    let refused = "the canister cannot be installed";
    let module = replica.inner().compile_for_queries(&project.wasm).context(refused)?;
    let mut canister = replica.inner().create_canister()?;
    canister.set_environment(project.environment.clone()).context(refused)?;
    canister.set_certifier(sign_data);
    let installed = canister.install(&module, Principal::anonymous(), &project.init_args)?;
    installed.outcome.context(refused)?;
    if let Some(bytes) = &project.stable_memory {
        canister.set_stable_memory(bytes).context("stable memory cannot be loaded")?;
    }
    canister.report_readings(Readings::Reported);
    Ok((canister, installed.printed))
}

/// Runs benchmarks on `threads` threads and passes each result to `report`, in the order of `names`.
///
/// # Errors
///
/// The error of the first benchmark that fails, in that order, or of `report`.
pub fn run(
    canister: &Canister,
    names: &[String],
    threads: usize,
    how: How,
    mut report: impl FnMut(Measured) -> Result<()>,
) -> Result<()> {
    let (next, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let (done, all_done) = channel();
        for _ in 0..threads.min(names.len()) {
            let done = done.clone();
            let work = || {
                let done = done;
                while !ended.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(name) = names.get(at) else { break };
                    if done.send((at, measure(canister.fork(), name, how))).is_err() {
                        break;
                    }
                }
            };
            thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work)?;
        }
        drop(done);
        let (mut early, mut due) = (BTreeMap::new(), 0);
        for (at, measured) in all_done {
            early.insert(at, measured);
            while let Some(measured) = early.remove(&due) {
                due += 1;
                measured.and_then(&mut report).inspect_err(|_| {
                    ended.store(true, Ordering::Relaxed);
                })?;
            }
        }
        Ok(())
    })
}

/// Returns one argument, the value `()`, as canbench sends it. No argument would be a byte shorter,
/// which changes the addresses that a canister's allocator returns.
fn argument() -> candid::Result<Vec<u8>> {
    candid::encode_one(())
}

/// Runs a benchmark.
fn measure(mut canister: Canister, name: &str, how: How) -> Result<Measured> {
    let mut ran = Ran::of(&canister, name)?;
    let before = ran.before();
    let message_instructions = ran.execution.instructions.get();
    let cycles = canister.cycles_as_update(&method(name), &argument()?, &ran.execution).get();
    if how.setup == Setup::Separate {
        let Some(begin) = ran.begin() else {
            bail!(
                "the setup of {name} cannot be separated: its result is not the difference of two \
                 readings of performance_counter, or it reads it more than a million times, so \
                 nothing tells where setup ends; run it without --separate-setup"
            );
        };
        canister.report_readings(Readings::DividedAt(begin));
        ran = Ran::of(&canister, name)?;
        ensure!(
            ran.begin() == Some(begin),
            "the setup of {name} cannot be separated: it does other work when pages are charged \
             again; run it without --separate-setup"
        );
    }
    let cost = Cost {
        touched: ran.touched(),
        before,
        message_instructions,
        cycles: u64::try_from(cycles).unwrap_or(u64::MAX),
    };
    let flame = match how.traced {
        true => Some(
            flame(&canister, name, &ran)
                .with_context(|| format!("the instructions of {name} cannot be traced"))?,
        ),
        false => None,
    };
    let Ran { execution, bench, .. } = ran;
    Ok(Measured { name: name.to_owned(), bench, cost, printed: execution.printed, flame })
}

fn method(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// A benchmark's query and its result.
struct Ran {
    execution: Execution,
    bench: Bench,
    /// The readings of the counter between which it measured, by their numbers.
    span: Option<[usize; 2]>,
}

impl Ran {
    /// Runs it.
    fn of(canister: &Canister, name: &str) -> Result<Self> {
        let method = method(name);
        let execution = canister.query(Principal::anonymous(), &method, &argument()?)?;
        let reply = match &execution.outcome {
            Ok(reply) => reply,
            Err(reject) => {
                let code = ic_code(reject.code.name()).unwrap_or_else(|| reject.code.to_string());
                return Err(anyhow!(
                    "Error executing benchmark {name}. Error:\n{code}: {}",
                    reject.message
                ));
            }
        };
        // The cause would be a page of Candid types.
        let bench = decode(reply).map_err(|_| {
            anyhow!("the reply of {method} is not that of a benchmark of canbench-rs")
        })?;
        let span = span(&execution.readings, bench.total.instructions);
        Ok(Self { execution, bench, span })
    }

    /// The number of the reading at which the measured part begins.
    fn begin(&self) -> Option<usize> {
        self.span.map(|[from, _]| from)
    }

    /// The readings before and after the measured part.
    fn read(&self) -> Option<[Reading; 2]> {
        Some(self.span?.map(|at| self.execution.readings[at]))
    }

    /// Pages first touched in the measured part.
    fn touched(&self) -> Option<Pages> {
        let [from, to] = self.read()?;
        Some(touched(from.pages.touched.unwrap_or_default(), to.pages.touched?))
    }

    /// Pages touched before the measured part.
    fn before(&self) -> Option<Before> {
        let [Reading { pages, .. }, _] = self.read()?;
        Some(Before {
            touched: pages.touched.map(|pages| touched(TouchedPages::default(), pages)),
            charged: (pages.heap + pages.stable).get(),
        })
    }
}

/// The reply of a benchmark. Older versions of canbench-rs lack some of the fields.
#[derive(CandidType, Deserialize)]
struct Reply {
    total: BenchReply,
    scopes: Option<BTreeMap<String, BenchReply>>,
}

#[derive(CandidType, Deserialize)]
struct BenchReply {
    calls: Option<u64>,
    instructions: u64,
    heap_increase: Option<u64>,
    stable_memory_increase: Option<u64>,
}

impl From<BenchReply> for Measurement {
    fn from(answered: BenchReply) -> Self {
        Self {
            calls: answered.calls.unwrap_or_default(),
            instructions: answered.instructions,
            heap_increase: answered.heap_increase.unwrap_or_default(),
            stable_memory_increase: answered.stable_memory_increase.unwrap_or_default(),
        }
    }
}

fn decode(reply: &[u8]) -> Result<Bench> {
    let Reply { total, scopes } = decode_one(reply)?;
    let scopes = scopes.unwrap_or_default().into_iter();
    Ok(Bench { total: total.into(), scopes: scopes.map(|(name, it)| (name, it.into())).collect() })
}

/// Returns the numbers of the last two readings of the counter that differ by this number of
/// instructions.
fn span(readings: &[Reading], instructions: u64) -> Option<[usize; 2]> {
    readings.iter().enumerate().rev().find_map(|(to, reading)| {
        let from = reading.used.get().checked_sub(instructions)?;
        let from = readings.binary_search_by_key(&from, |reading| reading.used.get()).ok()?;
        Some([from, to])
    })
}

fn touched(from: TouchedPages, to: TouchedPages) -> Pages {
    let more = |from: WasmPages, to: WasmPages| to.get().saturating_sub(from.get());
    Pages { heap: more(from.heap, to.heap), stable: more(from.stable, to.stable) }
}

/// Returns the flame graph of a benchmark, or of the whole message if the benchmark's part of it is
/// not known.
fn flame(canister: &Canister, name: &str, ran: &Ran) -> Result<String> {
    let shown = safe_line(name);
    let (span, title) = match ran.read() {
        Some([from, to]) => (Span::Between { from: from.used, to: to.used }, shown.to_string()),
        None => (Span::Message, format!("{shown} (the whole message)")),
    };
    let (execution, profile) =
        canister.profile_query(Principal::anonymous(), &method(name), &argument()?, span)?;
    check(&ran.execution, &execution, &profile, span)?;
    let mut flame = Flame::default();
    flame.add(&profile)?;
    let command = format!("stablebench canbench {shown} --instruction-tracing");
    svg(&flame, &Heading { title, command })
}

#[cfg(test)]
mod tests {
    use stablebench_replica::{Instructions, PageCharges};

    use super::output::{bench, csv, significant, summary};
    use super::results::{Bench, Benches, Change, Measurement, Value, entries, regressed};
    use super::*;
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
        let scopes =
            |calls| [("part".to_owned(), Measurement { calls, ..measured(970, 0) })].into();
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
        let changes = entries(&now, &before);
        let text = summary(&changes, 2.0);
        let expected = "Summary:\n  instructions:\n    \
            status:   Regressions, improvements, and new benchmarks 🔴🟢➕\n    \
            counts:   [total 5 | regressed 2 | improved 1 | new 1 | unchanged 1]\n    \
            change:   [max +2.00M | p75 +500.01K | median +5 | p25 -3 | min -10]\n    \
            change %: [max +2000000.00% | p75 +500007.50% | median +5.00% | p25 -2.50% | min -10.00%]\n\n  \
            heap_increase:\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(regressed(&changes, 2.0));
        let new = entries(&benches(&[("a", measured(1, 0))]), &Benches::new());
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

    #[test]
    fn only_queries_for_tracing_are_removed() {
        let wasm = |tracing: &str| {
            wat::parse_str(format!(
                r#"(module
                    (memory (export "memory") 1)
                    (func $a (export "canister_query __canbench__b"))
                    {tracing}
                    (func (export "canister_query __canbench__a") call $a)
                    (func (export "canister_query other"))
                    (func (export "__prepare_tracing"))
                    (data (i32.const 0) "text"))"#
            ))
            .unwrap()
        };
        let traced = wasm(r#"(export "canister_query __tracing__b" (func $a))"#);
        assert_eq!(super::benches(&traced).unwrap(), ["b", "a"]);
        assert_eq!(without_tracing(&traced).unwrap(), wasm(""));
        assert_eq!(without_tracing(&wasm("")).unwrap(), wasm(""));
        assert!(super::benches(b"\0asm\x01\0\0\0\xff").is_err() && without_tracing(b"no").is_err());
    }

    #[derive(CandidType)]
    struct First {
        total: FirstMeasurement,
    }

    #[derive(CandidType)]
    struct FirstMeasurement {
        instructions: u64,
        heap_increase: u64,
    }

    #[derive(CandidType)]
    struct Next {
        total: NextMeasurement,
        scopes: BTreeMap<String, NextMeasurement>,
        more: String,
    }

    #[derive(CandidType)]
    struct NextMeasurement {
        start_instructions: u64,
        calls: u64,
        instructions: u64,
        heap_increase: u64,
        stable_memory_increase: u64,
    }

    #[test]
    fn results_of_all_generations_are_understood() {
        let total = FirstMeasurement { instructions: 7, heap_increase: 2 };
        let bench = decode(&candid::encode_one(First { total }).unwrap()).unwrap();
        let expected = Measurement { instructions: 7, heap_increase: 2, ..Measurement::default() };
        assert_eq!(bench, Bench { total: expected, ..Bench::default() });

        let of = |instructions| NextMeasurement {
            start_instructions: 99,
            calls: 1,
            instructions,
            heap_increase: 0,
            stable_memory_increase: 3,
        };
        let scopes = [("a".to_owned(), of(4))].into();
        let next = Next { total: of(8), scopes, more: "text".to_owned() };
        let bench = decode(&candid::encode_one(next).unwrap()).unwrap();
        assert_eq!((bench.total.calls, bench.total.stable_memory_increase), (1, 3));
        assert_eq!(bench.scopes["a"].instructions, 4);

        for none in [&b""[..], &candid::encode_one(7_u64).unwrap(), b"DIDL\0\0"] {
            assert!(decode(none).is_err(), "{none:?}");
        }
    }

    #[test]
    fn a_benchmark_lies_between_two_readings() {
        let reading = |used| Reading { used: Instructions(used), pages: PageCharges::default() };
        let readings = [100, 250, 300, 400, 550].map(reading);
        let found = |instructions| {
            span(&readings, instructions).map(|span| span.map(|at| readings[at].used.get()))
        };
        assert_eq!(found(450), Some([100, 550]));
        assert_eq!(found(150), Some([400, 550]));
        assert_eq!(found(200), Some([100, 300]));
        assert_eq!((found(451), span(&[], 0).is_none()), (None, true));
    }
}
