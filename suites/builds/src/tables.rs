//! The tables of the suite builds, a row for each build, and the advice that is computed from the
//! figures: the builds to choose for speed, for size, and for both.

use anyhow::Result;

use crate::options::{Options, Tool};
use crate::plan::{BuildsSuite, CALL, COMPILE, COMPUTE, INSERT, INSTALL, READ, RUN};
use stablebench_suite::report::Presentation;
use stablebench_suite::report::grid::{Cell, Grid, Style};
use stablebench_suite::report::number::Factor;
use stablebench_suite::results::{Case, ConfigurationInfo, Measured, Outcome, Results};

impl Presentation for BuildsSuite {
    fn question(&self) -> Option<&'static str> {
        Some("What do options of the compiler cost and save?")
    }

    fn section(&self, name: &str) -> Option<String> {
        let title = match name {
            INSERT => "Insert rows into the middle",
            READ => "Look rows up",
            COMPUTE => "Compute without rows",
            CALL => "Calls",
            INSTALL => "Install the module",
            _ => return None,
        };
        Some(title.to_owned())
    }

    fn has_section_tables(&self) -> bool {
        false
    }

    fn compares_engines(&self) -> bool {
        false
    }

    fn lists_fixtures(&self) -> bool {
        false
    }

    fn to_do(&self, results: &Results) -> Option<Vec<String>> {
        Some(advice(results))
    }

    fn tables(&self, results: &Results, style: Style) -> Result<Vec<Grid>> {
        let mut grids = vec![summary(results)];
        for (title, value) in [
            ("Instructions", instructions as fn(&Measured) -> Option<u64>),
            ("Wasm pages touched, heap and stable", touched),
            ("Cycles of the messages", cycles),
        ] {
            grids.push(by_work(results, title, value, style));
        }
        grids.retain(|grid| !grid.rows.is_empty());
        Ok(grids)
    }
}

fn instructions(measured: &Measured) -> Option<u64> {
    Some(measured.instructions)
}

fn cycles(measured: &Measured) -> Option<u64> {
    Some(measured.detail.as_ref()?.cost.cycles)
}

/// Wasm pages that the measured work touched.
fn touched(measured: &Measured) -> Option<u64> {
    let touched = measured.detail.as_ref()?.pages?.touched?;
    Some(touched.heap + touched.stable)
}

/// Returns the table of the modules: bytes, installation, and the mean of all work.
fn summary(results: &Results) -> Grid {
    let builds = compared(results);
    let base = results.configurations.first();
    let bytes = |build: &ConfigurationInfo| {
        let module = results.canisters.iter().find(|of| of.name == build.canister)?;
        Some(module.bytes)
    };
    let installed = |build: &ConfigurationInfo, name| results.case(INSTALL, name, &build.key);
    let row = |build: &ConfigurationInfo| {
        let mean = builds.iter().find(|of| of.key == build.key);
        let bytes = match bytes(build) {
            Some(value) => Cell::Number { value, base: base.and_then(bytes), best: false },
            None => Cell::Absent,
        };
        let of_installation = |name: &'static str| {
            let base = base.and_then(|base| installed(base, name));
            cell(installed(build, name), base, instructions)
        };
        vec![
            Cell::text(&build.key),
            mean.map_or(Cell::Absent, |of| Cell::text(Factor(of.instructions))),
            bytes,
            of_installation(COMPILE),
            of_installation(RUN),
        ]
    };
    let header =
        ["", "instructions, mean", "module bytes", "install: compile, estimated", "install: init"];
    let mut notes = vec![
        "The mean is the geometric one of the ratios of all work below to the first build."
            .to_owned(),
        "An installation costs 5 000 000 cycles, and on 13 nodes a cycle for each instruction in the \
         last two columns. The cost of compiling is an estimate from the replica's source: 6 000 \
         instructions for each operator, with those that the replica's metering adds."
            .to_owned(),
    ];
    notes.extend(missing(results));
    notes.extend(advice(results));
    Grid {
        title: "Builds".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows: results.configurations.iter().map(row).collect(),
        notes,
        lines: false,
    }
}

/// Returns a cell with a value next to that of the first build.
fn cell(case: Option<&Case>, base: Option<&Case>, value: fn(&Measured) -> Option<u64>) -> Cell {
    let Some(case) = case else { return Cell::Absent };
    let Some(measured) = case.measured() else { return Cell::missing(&case.outcome) };
    match value(measured) {
        Some(found) => {
            let base = base.and_then(Case::measured).and_then(value).filter(|base| *base > 0);
            Cell::Number { value: found, base, best: false }
        }
        None => Cell::Absent,
    }
}

/// Returns a table of one value: a row for each build, a column for each kind of work.
fn by_work(
    results: &Results,
    title: &str,
    value: fn(&Measured) -> Option<u64>,
    style: Style,
) -> Grid {
    let base = results.configurations.first().map(|base| base.key.as_str());
    let work: Vec<(&str, &str)> = [INSERT, READ, COMPUTE, CALL]
        .into_iter()
        .flat_map(|section| results.names(section).into_iter().map(move |name| (section, name)))
        .collect();
    let row = |build: &ConfigurationInfo| -> Vec<Cell> {
        let of = |(section, name): &(&str, &str)| {
            let base = base.and_then(|base| results.case(section, name, base));
            cell(results.case(section, name, &build.key), base, value)
        };
        [Cell::text(&build.key)].into_iter().chain(work.iter().map(of)).collect()
    };
    let heading = |(section, name): &(&str, &str)| match *section {
        COMPUTE | CALL => style.narrow(name),
        section => style.narrow(&format!("{section}, {name}")),
    };
    let rows =
        if work.is_empty() { Vec::new() } else { results.configurations.iter().map(row).collect() };
    Grid {
        title: title.to_owned(),
        header: [String::new()].into_iter().chain(work.iter().map(heading)).collect(),
        rows,
        notes: Vec::new(),
        lines: true,
    }
}

/// Returns the reasons why builds have no figures.
fn missing(results: &Results) -> Vec<String> {
    let reason = |build: &ConfigurationInfo| {
        let cases = results.cases.iter().filter(|case| case.configuration == build.key);
        let mut reasons = cases.filter_map(|case| match &case.outcome {
            Outcome::NotApplicable { reason } | Outcome::Failed { reason } => Some(reason),
            Outcome::Measured(_) => None,
        });
        Some(format!("{}: {}", build.key, reasons.next()?))
    };
    results.configurations.iter().filter_map(reason).collect()
}

/// A build next to the one that it is compared with.
#[derive(Clone, Debug, PartialEq)]
struct Compared<'a> {
    key: &'a str,
    /// The geometric mean of the ratios of instructions.
    instructions: f64,
    /// The ratio of the sizes of the modules.
    bytes: f64,
}

/// Returns the builds for which all work was measured, next to the first one.
fn compared(results: &Results) -> Vec<Compared<'_>> {
    let Some(base) = results.configurations.first() else { return Vec::new() };
    let bytes = |name: &str| {
        let module = results.canisters.iter().find(|canister| canister.name == name)?;
        Some(module.bytes as f64)
    };
    let all = results.configurations.iter();
    all.filter_map(|build| {
        Some(Compared {
            key: &build.key,
            instructions: mean(results, &base.key, &build.key)?,
            bytes: bytes(&build.canister)? / bytes(&base.canister)?,
        })
    })
    .collect()
}

/// Returns the geometric mean of the ratios of instructions over all work but installing. `None` if
/// one of the builds does not have all of it.
fn mean(results: &Results, base: &str, key: &str) -> Option<f64> {
    let work = results.cases.iter().filter(|case| case.configuration == base);
    let (mut sum, mut count) = (0.0, 0_u32);
    for case in work.filter(|case| case.section != INSTALL) {
        let base = case.measured()?.instructions.max(1);
        let other = results.case(&case.section, &case.name, key)?.measured()?.instructions;
        sum += (other.max(1) as f64 / base as f64).ln();
        count += 1;
    }
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

/// A quantity that is the smaller the better.
type Score = fn(&Compared<'_>) -> f64;

/// Returns the advice as sentences.
fn advice(results: &Results) -> Vec<String> {
    let builds = compared(results);
    let Some(base) = builds.first().map(|base| base.key) else { return Vec::new() };
    let all: [(&str, Score); 3] = [
        ("speed", |build| build.instructions),
        ("size", |build| build.bytes),
        ("both", |build| build.instructions * build.bytes),
    ];
    let sentence = |(aim, by): (&str, Score)| {
        let build = best(&builds, by)?;
        Some(format!(
            "For {aim}: {}, with {} the instructions and {} the bytes of {base}.{}",
            build.key,
            Factor(build.instructions),
            Factor(build.bytes),
            steps(build.key),
        ))
    };
    all.into_iter().filter_map(sentence).collect()
}

/// Returns the profile to copy into a crate's Cargo.toml, that of the build for both speed and size.
/// `None` if the first build is the best.
pub fn profile(results: &Results) -> Option<String> {
    let builds = compared(results);
    let build = best(&builds, |build| build.instructions * build.bytes)?;
    let options: Options = build.key.parse().ok()?;
    let mut text = String::new();
    let lines = options.profile();
    if !lines.is_empty() {
        text += &format!("\n[profile.release]\n{}\n", lines.join("\n"));
    }
    for flag in options.flags() {
        text += &format!("\nRUSTFLAGS=\"{flag}\"\n");
    }
    for tool in options.tools() {
        text += &format!("\n{}\n", tool.command());
    }
    (!text.is_empty()).then_some(text)
}

/// Returns the build with the smallest score, if there is a choice.
fn best<'a>(compared: &'a [Compared<'a>], by: Score) -> Option<&'a Compared<'a>> {
    let compared = (compared.len() > 1).then_some(compared)?;
    compared.iter().min_by(|one, other| by(one).total_cmp(&by(other)))
}

/// Returns a sentence on how to build that.
fn steps(key: &str) -> String {
    let Ok(options) = key.parse::<Options>() else { return String::new() };
    let mut steps = Vec::new();
    let profile = options.profile();
    if !profile.is_empty() {
        steps.push(format!("[profile.release] {}", profile.join(", ")));
    }
    steps.extend(options.flags().iter().map(|flag| format!("rustc {flag}")));
    steps.extend(options.tools().iter().map(Tool::command));
    match steps.is_empty() {
        true => String::new(),
        false => format!(" That is: {}.", steps.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_suite::results::sample::{case, of};

    #[test]
    fn one_build_is_no_choice() {
        let advised = |keys: &[&str]| {
            let case = |key: &&str| case("work", "insert", key, 100_000);
            let results = of(keys.iter().map(case).collect());
            (advice(&results).len(), profile(&results).is_some())
        };
        assert_eq!(advised(&["lto=fat"]), (0, false));
        assert_eq!(advised(&["lto=fat", "default"]), (3, true));
    }
}
