//! `stablebench merge`: from the results of a run's shards to those of the whole run.

use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, bail, ensure};

use super::run::{Planned, agree_on_rows, failures, out_of, save_page, show};
use crate::canisters;
use crate::progress::Output;
use crate::report::Format;
use crate::results::{CanisterInfo, Case, FixtureInfo, Input, Results, RunFile};
use crate::suites::suite;
use crate::terminal::split;
use stablebench_suite::plan::{Fixture, Plan, Shard};

#[derive(Debug, clap::Args)]
pub struct MergeArgs {
    /// The results of all shards, in any order.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The file of the joined results [default: results.json, or the suite's name].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The format in which results are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Print all tables instead of the answer.
    #[arg(short, long)]
    pub verbose: bool,
    /// Do not write the page of the results, which is saved beside them.
    #[arg(long)]
    pub no_page: bool,
}

/// The results of a shard.
struct ShardResults {
    file: PathBuf,
    shard: Shard,
    /// The run that it is a part of.
    whole: Planned,
    results: Results,
}

/// Saves and prints the results of the whole run.
///
/// # Errors
///
/// If the files are not the complete shards of one run, or a case failed.
pub fn merge(args: &MergeArgs, output: &Output) -> Result<()> {
    let step = output.progress.spinner("reading the shards");
    let parts =
        args.files.iter().map(|file| ShardResults::read(file)).collect::<Result<Vec<_>>>()?;
    step.done("");
    let parts = in_order(parts)?;
    let Some(whole) = parts.first().map(|part| &part.whole) else {
        bail!("there are no shards");
    };
    let results = joined(whole, &parts)?;
    let out = out_of(args.out.as_deref(), &results.suite);
    let real = |path: &Path| path.canonicalize().ok();
    if real(&out).is_some() && parts.iter().any(|part| real(&part.file) == real(&out)) {
        bail!("{} is one of the shards; choose another --out", out.display());
    }
    let mut file = RunFile::new(&out)?;
    file.finish(&results, true)?;
    if !results.cases.is_empty() {
        show(whole.suite, &results, (args.format, args.verbose), &out, output)?;
    }
    output.progress.note(&file.summary());
    if !args.no_page {
        save_page(whole.suite, &results, &out, &output.progress)?;
    }
    failures(&results)?;
    agree_on_rows(&whole.plan, &results)
}

impl ShardResults {
    fn read(file: &Path) -> Result<Self> {
        let results = Results::read(file)?;
        let name = file.display();
        let words = split(&results.command).with_context(|| name.to_string())?;
        let mut words: Vec<String> = words.into_iter().skip(3).collect();
        let Some(at) = words.iter().position(|word| *word == "--shard") else {
            bail!("{name} is not a shard: its command has no --shard, {}", results.command);
        };
        let shard = words.drain(at..words.len().min(at + 2)).next_back().unwrap_or_default();
        let shard: Shard = shard.parse().map_err(Error::msg).with_context(|| name.to_string())?;
        let suite = suite(&results.suite);
        let suite = suite.with_context(|| format!("{name}: no suite {}", results.suite))?;
        let not_planned = || {
            format!(
                "{name} cannot be merged, because this stablebench does not understand its command, {}",
                results.command
            )
        };
        let whole = Planned::of(suite, &words).with_context(not_planned)?;
        let without = results.command.replacen(&format!(" --shard {shard}"), "", 1);
        ensure!(whole.command == without, not_planned());
        Ok(Self { file: file.to_owned(), shard, whole, results })
    }

    /// The properties that all parts of a run have in common.
    fn identity(&self) -> [(&'static str, String); 6] {
        let Results { stablebench, revision, prices, replica, .. } = &self.results;
        [
            ("command", self.whole.command.clone()),
            ("number of shards", self.shard.of.to_string()),
            ("stablebench", stablebench.clone()),
            ("revision", revision.clone().unwrap_or_default()),
            ("replica", format!("{replica:?}")),
            ("prices", format!("{prices:?}")),
        ]
    }
}

/// Returns the parts by their numbers, if they are all parts of one run.
fn in_order(mut parts: Vec<ShardResults>) -> Result<Vec<ShardResults>> {
    parts.sort_by_key(|part| part.shard.number);
    for pair in parts.windows(2) {
        let [base, other] = pair else { continue };
        let names = format!("{} and {}", base.file.display(), other.file.display());
        let same = |input: &&Input| other.results.inputs.contains(input);
        if let Some(input) = base.results.inputs.iter().find(|input| !same(input)) {
            bail!(
                "{names} are not shards of one run, because their input differs: {} is another one",
                input.name
            );
        }
        for ((what, base), (_, other)) in base.identity().into_iter().zip(other.identity()) {
            ensure!(
                base == other,
                "{names} are not shards of one run, because their {what} differs:\n  {base}\n  {other}"
            );
        }
        ensure!(base.shard != other.shard, "{names} are both shard {}", base.shard);
    }
    let of = parts.first().map_or(0, |part| part.shard.of);
    let missing: Vec<String> = (1..=of)
        .filter(|number| parts.iter().all(|part| part.shard.number != *number))
        .map(|number| Shard { number, of }.to_string())
        .collect();
    ensure!(missing.is_empty(), "the file of shard {} is missing", missing.join(", of "));
    Ok(parts)
}

/// Returns the results that one run would have saved.
fn joined(whole: &Planned, parts: &[ShardResults]) -> Result<Results> {
    let Planned { plan, command, .. } = whole;
    for part in parts {
        complete(part)?;
    }
    let results = || parts.iter().map(|part| &part.results);
    let first = results().next().context("there are no shards")?;
    let canisters = canisters(plan, parts)?;
    let harness = canisters.iter().filter_map(|canister| {
        let of = |case: &&Case| case.configuration == canister.name;
        results().flat_map(|part| &part.harness).find(of).cloned()
    });
    let harness = harness.collect();
    let mut fixtures: Vec<FixtureInfo> =
        results().flat_map(|part| &part.fixtures).cloned().collect();
    let keys: Vec<_> = plan.fixtures.iter().map(Fixture::key).collect();
    fixtures.sort_by_key(|fixture| keys.iter().position(|key| key.is_of(fixture)));
    let mut cases: Vec<Case> = results().flat_map(|part| &part.cases).cloned().collect();
    let order = plan.order();
    cases.sort_by_key(|case| order.place(case));
    Ok(Results {
        command: command.clone(),
        configurations: plan.configurations.clone(),
        canisters,
        fixtures,
        cases,
        harness,
        ..first.clone()
    })
}

/// Fails if cases or fixtures of a part are missing, or others are in it.
fn complete(part: &ShardResults) -> Result<()> {
    let ShardResults { file, shard, whole, results } = part;
    let name = file.display();
    let fixtures: Vec<&Fixture> = shard.fixtures(&whole.plan).collect();
    let mut expected = 0;
    let mut missing = 0;
    for fixture in &fixtures {
        let key = &fixture.configuration.key;
        for (section, case) in fixture.cases() {
            expected += 1;
            missing += usize::from(results.case(section, case, key).is_none());
        }
        let key = fixture.key();
        missing += usize::from(!results.fixtures.iter().any(|known| key.is_of(known)));
    }
    ensure!(
        missing == 0,
        "{name} is not complete; finish shard {shard} first:\n  {} --out {name} --resume",
        results.command
    );
    ensure!(
        (results.cases.len(), results.fixtures.len()) == (expected, fixtures.len()),
        "{name} contains more than shard {shard} measures: {} cases of {} fixtures instead of {} of {}",
        results.cases.len(),
        results.fixtures.len(),
        expected,
        fixtures.len()
    );
    Ok(())
}

/// Returns the canisters of all parts, in the order of a run.
fn canisters(plan: &Plan, parts: &[ShardResults]) -> Result<Vec<CanisterInfo>> {
    let mut found = Vec::new();
    for name in canisters::in_order(plan.configurations.iter().map(|of| of.canister.as_str())) {
        let mut named = parts.iter().filter_map(|part| {
            let of = part.results.canisters.iter().find(|canister| canister.name == name)?;
            Some((part, of))
        });
        let Some((base, known)) = named.next() else { continue };
        for (part, canister) in named {
            ensure!(
                known == canister,
                "{} and {} are not shards of one run, because their canister {} differs:\n  {}\n  {}",
                base.file.display(),
                part.file.display(),
                name,
                known.sha256,
                canister.sha256
            );
        }
        found.push(known.clone());
    }
    Ok(found)
}
