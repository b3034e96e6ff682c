//! Advice that is computed from the figures: the builds to choose for speed, for size, and for both.

use crate::options::Options;
use crate::plan::INSTALL;
use stablebench_suite::report::number::Factor;
use stablebench_suite::results::Results;

/// A build next to the one that it is compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared<'a> {
    pub key: &'a str,
    /// The geometric mean of the ratios of instructions.
    pub instructions: f64,
    /// The ratio of the sizes of the modules.
    pub bytes: f64,
}

/// Returns the builds for which all work was measured, next to the first one.
pub fn compared(results: &Results) -> Vec<Compared<'_>> {
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
pub fn advice(results: &Results) -> Vec<String> {
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
    steps.extend(options.tools().iter().map(crate::tools::Tool::command));
    match steps.is_empty() {
        true => String::new(),
        false => format!(" That is: {}.", steps.join("; ")),
    }
}
