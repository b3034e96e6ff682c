//! `stablebench profile`: where the instructions of a case, or of a call, go.

mod call;
mod case;
mod choice;

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::replica::embedded;
use super::run::print;
use super::{Output, quoted};
use crate::cli::{ProfileArgs, ProfileFormat};
use crate::interrupt;
use crate::profile::{self, Flame, Heading};
use crate::progress::Progress;
use crate::report::number::{Factor, Grouped};
use crate::results::{check_writable, save_text};
use crate::terminal::Terminal;

/// A profile, and what it is of.
struct Found {
    title: String,
    flame: Flame,
}

/// What is printed or saved.
enum Shown {
    One(Found),
    Difference(Found, Found),
}

/// Profiles what was asked for.
pub fn run(args: &ProfileArgs, output: &Output) -> Result<()> {
    if args.list {
        return print(&choice::list(args)?);
    }
    // A file that cannot be written is found out before, not after.
    let format = format(args)?;
    if let Some(out) = &args.out {
        check_writable(out)?;
    }
    let shown = shown(args, &output.progress)?;
    let heading = Heading { title: shown.title(), command: command(args) };
    let table = shown.table(output.terminal);
    match (format, &args.out) {
        (None, _) => print(&table),
        (Some(format), None) => print(&shown.text(format, &heading)?),
        (Some(format), Some(out)) => {
            save_text(out, &shown.text(format, &heading)?)?;
            print(&table)?;
            output.progress.note(&format!("saved to {}", out.display()));
            Ok(())
        }
    }
}

fn shown(args: &ProfileArgs, progress: &Progress) -> Result<Shown> {
    if let Some(wasm) = &args.wasm {
        let (replica, _) = embedded(&args.replica, progress)?;
        return call::call(args, wasm, &replica, progress).map(Shown::One);
    }
    // What cannot be is said before anything is built.
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

/// As what it is printed or saved; nothing where only the table is wanted.
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
                "{} ends in none of .svg, .folded, .txt and .json; say what it is with --format",
                out.display()
            ),
        }),
    };
    let of_one = matches!(format, Some(ProfileFormat::Json | ProfileFormat::Firefox));
    if args.diff.is_some() && of_one {
        bail!("a difference is written as svg or folded");
    }
    Ok(format)
}

/// The command that repeats the profile: what decides what is in it.
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
                bail!("a difference is written as svg or folded")
            }
        }
    }
}

impl Found {
    fn table(&self, terminal: Terminal) -> String {
        let Flame { instructions, heap_pages, messages, .. } = &self.flame;
        let mut text = format!("{}\n{} instructions", self.title, Grouped(*instructions));
        if *messages != 1 {
            text += &format!(" in {} messages", Grouped(*messages));
        }
        if *heap_pages > 0 {
            text += &format!(", and {} for heap pages", Grouped(*heap_pages));
        }
        format!("{text}\n\n{}", profile::table(&self.flame, terminal))
    }
}

/// What fails, fails on a case.
fn of<T>(result: Result<T>, title: &str) -> Result<T> {
    result.with_context(|| title.to_owned())
}
