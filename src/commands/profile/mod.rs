//! `stablebench profile`: the instructions of a case, or of a call, by function.

mod call;
mod case;
mod choice;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::replica::embedded;
use super::subnet::InstallArgs;
use crate::interrupt;
use crate::profile::{self, Flame, Heading};
use crate::progress::{Output, Progress};
use crate::replica::options::ReplicaArgs;
use crate::report::number::{Factor, Grouped};
use crate::results::{check_writable, save_text};
use crate::terminal::{Terminal, print, quoted, safe_line};

#[derive(Debug, clap::Args)]
pub struct ProfileArgs {
    /// The case, SUITE/SECTION/NAME/COLUMN as --list prints it. With --list, the beginning of the
    /// cases to list.
    #[arg(required_unless_present_any = ["list", "wasm"])]
    pub case: Option<String>,
    /// List the cases without measuring them.
    #[arg(long, conflicts_with_all = ["diff", "wasm", "out", "format"])]
    pub list: bool,
    /// A second case: show the difference from the first, stack by stack.
    #[arg(long, value_name = "CASE2")]
    pub diff: Option<String>,
    /// Rows before the work, like --rows of the suite.
    #[arg(long, conflicts_with = "wasm", value_parser = clap::value_parser!(u64).range(1..))]
    pub rows: Option<u64>,
    /// The seed of random choices, like --seed of the suite.
    #[arg(long, conflicts_with = "wasm")]
    pub seed: Option<u64>,
    /// Profile whole messages, with heap pages, instead of the measured work.
    #[arg(long, conflicts_with = "wasm")]
    pub whole_message: bool,
    /// Instead of a case, profile a call of this canister: a wasm file, or bench, bench_vfs,
    /// bench_leveldb or bench_doltlite; with --state also the id of a saved canister. Everything that
    /// the call causes is profiled.
    #[arg(long, value_name = "FILE", requires = "call", conflicts_with_all = ["case", "diff"])]
    pub wasm: Option<PathBuf>,
    /// The method and its arguments as Candid text [default: ()].
    #[arg(long, value_names = ["METHOD", "ARGUMENTS"], num_args = 1..=2, requires = "wasm")]
    pub call: Option<Vec<String>>,
    /// Another canister on the same subnet, by name or path, or by NAME=PATH; may be repeated. Their
    /// ids are printed.
    #[arg(long, value_name = "CANISTER", requires = "wasm")]
    pub with: Vec<String>,
    #[command(flatten)]
    pub install: InstallArgs,
    /// Show what canisters print, on standard error. Without it, only what a call printed that failed.
    #[arg(long, requires = "wasm")]
    pub show_canister_output: bool,
    /// Begin with the canisters that were saved in this file.
    #[arg(long, value_name = "FILE", requires = "wasm")]
    pub state: Option<PathBuf>,
    /// Save the profile to this file; the default is to print the most expensive functions.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The format [default: by the name of the file].
    #[arg(long, value_enum)]
    pub format: Option<ProfileFormat>,
    #[command(flatten)]
    pub replica: ReplicaArgs,
    /// After --, other options of the suite, such as --batches 500.
    #[arg(last = true, conflicts_with = "wasm")]
    pub options: Vec<String>,
}

/// The format of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ProfileFormat {
    /// A flame graph, for a browser (.svg).
    Svg,
    /// A line for each stack, with its instructions (.folded, .txt).
    Folded,
    /// The whole profile, described in docs/profiling.md (.json).
    Json,
    /// For profiler.firefox.com.
    Firefox,
}

/// A profile with its title.
struct Found {
    title: String,
    flame: Box<Flame>,
    /// The executions of a call, if it caused several.
    tree: Option<String>,
    /// The failure of a call.
    failed: Option<String>,
}

/// One profile, or the difference of two.
enum Shown {
    One(Found),
    Difference(Found, Found),
}

/// Profiles a case or a call.
pub fn profile(args: &ProfileArgs, output: &Output) -> Result<()> {
    if args.list {
        return print(&choice::list(args)?);
    }
    // Report a file that cannot be written before profiling.
    let format = format(args)?;
    if let Some(out) = &args.out {
        check_writable(out)?;
    }
    let shown = shown(args, &output.progress)?;
    let command = safe_line(&command(args)).into_owned();
    let heading = Heading { title: shown.title(), command };
    let table = shown.table(output.terminal);
    match (format, &args.out) {
        (None, _) => print(&table)?,
        (Some(format), None) => print(&shown.text(format, &heading)?)?,
        (Some(format), Some(out)) => {
            save_text(out, &shown.text(format, &heading)?)?;
            print(&table)?;
            output.progress.note(&format!("saved to {}", out.display()));
        }
    }
    match shown {
        Shown::One(Found { failed: Some(failed), .. }) => bail!("{failed}"),
        _ => Ok(()),
    }
}

fn shown(args: &ProfileArgs, progress: &Progress) -> Result<Shown> {
    if let Some(wasm) = &args.wasm {
        let (replica, _) = embedded(&args.replica, progress)?;
        return call::call(args, wasm, &replica, progress).map(Shown::One);
    }
    if let Some(word) = args.install.words().first() {
        bail!("{word} is for a call of a canister: --wasm FILE --call METHOD");
    }
    // Check all cases before anything is built.
    let case = args.case.as_deref().unwrap_or_default();
    let first = choice::choose(args, case)?;
    let second = args.diff.as_deref().map(|case| choice::choose(args, case)).transpose()?;
    interrupt::listen()?;
    let (replica, cache) = embedded(&args.replica, progress)?;
    let found = |chosen| -> Result<Found> {
        case::profile(chosen, args.whole_message, &replica, cache.as_ref(), progress)
    };
    let before = found(first)?;
    Ok(match second {
        None => Shown::One(before),
        Some(second) => Shown::Difference(before, found(second)?),
    })
}

/// Returns the format of the profile; `None` for the table only.
fn format(args: &ProfileArgs) -> Result<Option<ProfileFormat>> {
    let ending = |path: &Path| {
        path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default()
    };
    let format = match (args.format, &args.out) {
        (Some(format), _) => Some(format),
        (None, None) => None,
        (None, Some(out)) => Some(match ending(out).as_str() {
            "svg" => ProfileFormat::Svg,
            "folded" | "txt" => ProfileFormat::Folded,
            "json" => ProfileFormat::Json,
            _ => bail!(
                "{} does not end with .svg, .folded, .txt or .json; choose a format with --format",
                out.display()
            ),
        }),
    };
    let of_one = matches!(format, Some(ProfileFormat::Json | ProfileFormat::Firefox));
    if args.diff.is_some() && of_one {
        bail!("a difference has the format svg or folded");
    }
    Ok(format)
}

/// Returns the command that repeats the profile, with the options that affect its content.
fn command(args: &ProfileArgs) -> String {
    let mut words = vec!["stablebench profile".to_owned()];
    words.extend(args.case.as_deref().map(quoted));
    let path = |path: &Path| quoted(&path.display().to_string());
    for (option, value) in [
        ("--diff", args.diff.as_deref().map(quoted)),
        ("--rows", args.rows.map(|rows| rows.to_string())),
        ("--seed", args.seed.map(|seed| seed.to_string())),
        ("--wasm", args.wasm.as_deref().map(path)),
        (
            "--call",
            args.call
                .as_ref()
                .map(|words| words.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(" ")),
        ),
        ("--state", args.state.as_deref().map(path)),
        ("--rules", Some(args.replica.rules().to_string())),
    ] {
        words.extend(value.map(|value| format!("{option} {value}")));
    }
    words.extend(args.with.iter().map(|name| format!("--with {}", quoted(name))));
    words.extend(args.install.words());
    if args.whole_message {
        words.push("--whole-message".to_owned());
    }
    if !args.options.is_empty() {
        words.push("--".to_owned());
        words.extend(args.options.iter().map(|it| quoted(it)));
    }
    words.join(" ")
}

impl Shown {
    fn title(&self) -> String {
        match self {
            Self::One(found) => found.title.clone(),
            Self::Difference(before, after) => format!("{} → {}", before.title, after.title),
        }
    }

    fn table(&self, terminal: Terminal) -> String {
        match self {
            Self::One(found) => found.table(terminal),
            Self::Difference(before, after) => {
                let (one, other) = (before.flame.all(), after.flame.all());
                let factor = Factor(other as f64 / one as f64);
                format!(
                    "{}\n{}\n{factor} the instructions\n",
                    before.table(terminal),
                    after.table(terminal)
                )
            }
        }
    }

    fn text(&self, format: ProfileFormat, heading: &Heading) -> Result<String> {
        match (self, format) {
            (Self::One(found), ProfileFormat::Svg) => profile::svg(&found.flame, heading),
            (Self::One(found), ProfileFormat::Folded) => Ok(profile::folded(&found.flame)),
            (Self::One(found), ProfileFormat::Json) => profile::json(&found.flame, heading),
            (Self::One(found), ProfileFormat::Firefox) => profile::firefox(&found.flame, heading),
            (Self::Difference(before, after), ProfileFormat::Folded) => {
                Ok(profile::difference(&before.flame, &after.flame))
            }
            (Self::Difference(before, after), ProfileFormat::Svg) => {
                profile::svg_of_difference(&before.flame, &after.flame, heading)
            }
            (Self::Difference(..), ProfileFormat::Json | ProfileFormat::Firefox) => {
                bail!("a difference has the format svg or folded")
            }
        }
    }
}

impl Found {
    fn table(&self, terminal: Terminal) -> String {
        let Flame { instructions, heap_pages, .. } = &*self.flame;
        let mut text = format!("{}\n{} instructions", self.title, Grouped(*instructions));
        if let Some(messages) = self.flame.counted() {
            text += &format!(" in {messages}");
        }
        if *heap_pages > 0 {
            text += &format!(", and {} for heap pages", Grouped(*heap_pages));
        }
        text += &format!("\n\n{}", profile::table(&self.flame, terminal));
        if let Some(tree) = &self.tree {
            text += &format!("\n{tree}");
        }
        text
    }
}

/// Adds the title of the case to an error.
fn of<T>(result: Result<T>, title: &str) -> Result<T> {
    result.with_context(|| title.to_owned())
}
