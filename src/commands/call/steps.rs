//! The steps of `call`, in the order in which they are typed. An option applies to the word before it:
//!
//! ```text
//!   add '(1)' --repeat 10 --upgrade new.wasm --upgrade-args '(2)' get --calls more.txt
//!   └──── ten calls ────┘ └──────────── upgrade ────────────────┘ └─┘ └── lines ─────┘
//! ```
//!
//! A file of calls has a step in each line, which is written like that:
//!
//! ```text
//!   # Comments and empty lines are skipped.
//!   add (1) --repeat 10
//!   --upgrade new.wasm (2)
//!   get
//! ```

use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use stablebench_replica::files;

use crate::commands::interface::{Argument, MAX_ARGUMENT};

/// Steps as they were typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps(Vec<Typed>);

/// A step as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Typed {
    Step(CallStep, Option<Source>),
    /// The steps in a file.
    Lines(PathBuf),
}

/// The source of an argument that is not on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Hex(String),
    File(PathBuf),
}

/// A call or an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallStep {
    pub action: Action,
    pub argument: Option<Argument>,
    /// The number of calls.
    pub times: NonZeroU32,
    /// The line of a file, for errors.
    pub place: Option<String>,
}

/// The action of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Calls this method.
    Call(String),
    /// Upgrades the canister to this module.
    Upgrade(String),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(method) => f.write_str(method),
            Self::Upgrade(module) => write!(f, "upgrade to {module}"),
        }
    }
}

const WORDS: &str = "words";
const UPGRADE: &str = "upgrade";
const UPGRADE_ARGS: &str = "upgrade-args";
const REPEAT: &str = "repeat";
const HEX: &str = "args-hex";
const FILE: &str = "args-file";
const CALLS: &str = "calls";

impl CallStep {
    fn new(action: Action) -> Self {
        Self { action, argument: None, times: NonZeroU32::MIN, place: None }
    }

    /// The argument of one of several calls, in which `{i}` is its number.
    pub fn argument(&self, number: u32) -> Option<Argument> {
        match &self.argument {
            Some(Argument::Text(text)) if self.times.get() > 1 => {
                Some(Argument::Text(text.replace("{i}", &number.to_string())))
            }
            argument => argument.clone(),
        }
    }
}

impl Steps {
    /// Returns the steps with those of files, and with arguments that are read from files.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or a line is no step.
    pub fn read(&self) -> Result<Vec<CallStep>> {
        let inputs = self.0.iter().filter(|typed| match typed {
            Typed::Step(_, Some(Source::File(path))) | Typed::Lines(path) => is_input(path),
            Typed::Step(..) => false,
        });
        if inputs.count() > 1 {
            bail!("standard input is read once, but - is given several times");
        }
        let mut steps = Vec::new();
        for typed in &self.0 {
            match typed {
                Typed::Step(step, None) => steps.push(step.clone()),
                Typed::Step(step, Some(source)) => {
                    steps.push(CallStep { argument: Some(source.read()?), ..step.clone() });
                }
                Typed::Lines(path) => steps.extend(lines(path)?),
            }
        }
        Ok(steps)
    }

    fn last(&mut self) -> Option<(&mut CallStep, &mut Option<Source>)> {
        match self.0.last_mut() {
            Some(Typed::Step(step, source)) => Some((step, source)),
            Some(Typed::Lines(_)) | None => None,
        }
    }

    /// Adds a word: a method, or the arguments of the step before it.
    fn word(&mut self, word: &str) -> Result<(), String> {
        if !word.trim_start().starts_with('(') {
            let step = CallStep::new(Action::Call(word.to_owned()));
            self.0.push(Typed::Step(step, None));
            return Ok(());
        }
        self.argue(word)
    }

    fn argue(&mut self, text: &str) -> Result<(), String> {
        match self.last() {
            Some((step, None)) if step.argument.is_none() => {
                step.argument = Some(Argument::Text(text.to_owned()));
                Ok(())
            }
            Some((step, _)) => Err(format!("{} has two arguments, the second {text}", step.action)),
            None => Err(format!("the arguments {text} follow no method")),
        }
    }

    fn source(&mut self, source: Source) -> Result<(), String> {
        match self.last() {
            Some((step, given)) if step.argument.is_none() && given.is_none() => {
                *given = Some(source);
                Ok(())
            }
            Some((step, _)) => Err(format!("{} has two arguments", step.action)),
            None => Err("--args-hex and --args-file follow a method".to_owned()),
        }
    }

    fn repeat(&mut self, times: NonZeroU32) -> Result<(), String> {
        match self.last() {
            Some((CallStep { action: Action::Call(_), times: once, .. }, _)) => {
                *once = times;
                Ok(())
            }
            _ => Err("--repeat follows a method and its arguments".to_owned()),
        }
    }
}

impl Source {
    fn read(&self) -> Result<Argument> {
        match self {
            Self::Hex(digits) => {
                let digits: String = digits.split_whitespace().collect();
                let digits = digits.strip_prefix("0x").unwrap_or(&digits);
                let bytes = hex::decode(digits).context("--args-hex is not hexadecimal")?;
                Ok(Argument::Bytes(bytes))
            }
            Self::File(path) => Ok(Argument::of(read(path)?)),
        }
    }
}

fn is_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads a file, or standard input if the path is `-`.
fn read(path: &Path) -> Result<Vec<u8>> {
    match is_input(path) {
        true => files::read_at_most(std::io::stdin().lock(), MAX_ARGUMENT)
            .context("cannot read standard input"),
        false => files::read(path, MAX_ARGUMENT)
            .with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Reads the steps in a file.
fn lines(path: &Path) -> Result<Vec<CallStep>> {
    let text = String::from_utf8(read(path)?)
        .with_context(|| format!("{} is not UTF-8", path.display()))?;
    let mut steps = Steps::default();
    let text = text.trim_start_matches('\u{feff}');
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = format!("line {number} of {}", path.display());
        if let Err(error) = steps.line(line) {
            bail!("{place}: {error}");
        }
        if let Some((step, _)) = steps.last() {
            step.place = Some(place);
        }
    }
    steps.read()
}

impl Steps {
    /// Adds the step in a line.
    fn line(&mut self, line: &str) -> Result<(), String> {
        let (line, times) = match line.rsplit_once(" --repeat ") {
            Some((line, times)) if !times.contains(')') => {
                let times = times.trim().parse::<NonZeroU32>();
                (line.trim_end(), Some(times.map_err(|error| format!("--repeat: {error}"))?))
            }
            _ => (line, None),
        };
        let (step, rest) = match line.strip_prefix("--upgrade ") {
            Some(rest) => {
                let (module, rest) = word(rest.trim_start());
                (Action::Upgrade(module.to_owned()), rest)
            }
            None => {
                let (method, rest) = word(line);
                (Action::Call(method.to_owned()), rest)
            }
        };
        self.0.push(Typed::Step(CallStep::new(step), None));
        match rest {
            "" => {}
            arguments if arguments.starts_with('(') => self.argue(arguments)?,
            other => return Err(format!("arguments are in parentheses, unlike {other}")),
        }
        times.map_or(Ok(()), |times| self.repeat(times))
    }
}

/// Splits off the first word, which ends at a space or a parenthesis.
fn word(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| letter.is_whitespace() || letter == '(');
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    (word, rest.trim())
}

impl Args for Steps {
    fn augment_args(command: Command) -> Command {
        let text = |id: &'static str, name: &'static str| {
            Arg::new(id).long(id).value_name(name).action(ArgAction::Append)
        };
        command
            .arg(Arg::new(WORDS).value_name("METHOD [ARGUMENTS]").num_args(0..).help(
                "A method and its arguments as Candid text, in parentheses [default: ()]. More \
                 methods, each with its arguments, are called one after the other.",
            ))
            .arg(text(UPGRADE, "CANISTER").help(
                "Upgrade the canister to this module, after the calls before this option",
            ))
            .arg(text(UPGRADE_ARGS, "ARGUMENTS").help("The arguments of the upgrade before this option"))
            .arg(
                text(REPEAT, "N")
                    .value_parser(value_parser!(NonZeroU32))
                    .help("Make the call before this option N times; {i} in its arguments is the number"),
            )
            .arg(text(HEX, "BYTES").help("The argument of the call before this option, in hexadecimal"))
            .arg(text(FILE, "FILE").help(
                "The argument of the call before this option from a file, or - for standard input: \
                 Candid text in parentheses, or bytes",
            ))
            .arg(text(CALLS, "FILE").help(
                "Make the calls in this file, or - for standard input, one in a line: a method and its \
                 arguments. Lines that begin with # are comments, --upgrade CANISTER (ARGUMENTS) upgrades",
            ))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Steps {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let refused = |error| clap::Error::raw(ErrorKind::ValueValidation, format!("{error}\n"));
        let mut events: Vec<(usize, &str, String)> = Vec::new();
        for id in [WORDS, UPGRADE, UPGRADE_ARGS, HEX, FILE, CALLS] {
            let values = matches.get_many::<String>(id).unwrap_or_default();
            let places = matches.indices_of(id).unwrap_or_default();
            events.extend(places.zip(values).map(|(place, value)| (place, id, value.clone())));
        }
        let times = matches.get_many::<NonZeroU32>(REPEAT).unwrap_or_default();
        let places = matches.indices_of(REPEAT).unwrap_or_default();
        events.extend(places.zip(times).map(|(place, times)| (place, REPEAT, times.to_string())));
        events.sort();
        let mut steps = Self::default();
        for (_, id, value) in events {
            let added = match id {
                WORDS => steps.word(&value),
                UPGRADE => {
                    let step = CallStep::new(Action::Upgrade(value));
                    steps.0.push(Typed::Step(step, None));
                    Ok(())
                }
                UPGRADE_ARGS => match steps.last() {
                    Some((CallStep { action: Action::Upgrade(_), .. }, _)) => steps.argue(&value),
                    _ => Err("--upgrade-args follows --upgrade".to_owned()),
                },
                HEX => steps.source(Source::Hex(value)),
                FILE => steps.source(Source::File(value.into())),
                REPEAT => value
                    .parse()
                    .map_err(|error| format!("--repeat: {error}"))
                    .and_then(|times| steps.repeat(times)),
                _ => {
                    steps.0.push(Typed::Lines(value.into()));
                    Ok(())
                }
            };
            added.map_err(refused)?;
        }
        Ok(steps)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Steps, String> {
        let command = Steps::augment_args(Command::new("call").no_binary_name(true));
        let matches = command.try_get_matches_from(words).unwrap();
        Steps::from_arg_matches(&matches).map_err(|error| error.to_string())
    }

    fn shown(steps: &[CallStep]) -> Vec<String> {
        let argument = |step: &CallStep| match step.argument(7) {
            None => String::new(),
            Some(Argument::Text(text)) => text,
            Some(Argument::Bytes(bytes)) => format!("{bytes:?}"),
        };
        steps.iter().map(|it| format!("{} {} {}", it.times, it.action, argument(it))).collect()
    }

    #[test]
    fn options_belong_to_the_word_before_them() {
        let words = [
            "add",
            "({i})",
            "--repeat=10",
            "--upgrade",
            "new.wasm",
            "--upgrade-args=(2)",
            "get",
            "put",
            "--args-hex",
            "0x00 ff",
            "--upgrade=old.wasm",
            "(\"{i}\")",
        ];
        let steps = parsed(&words).unwrap().read().unwrap();
        let expected = [
            "10 add (7)",
            "1 upgrade to new.wasm (2)",
            "1 get ",
            "1 put [0, 255]",
            "1 upgrade to old.wasm (\"{i}\")",
        ];
        assert_eq!(shown(&steps), expected);
        for (words, error) in [
            (&["(1)"][..], "follow no method"),
            (&["a", "(1)", "(2)"], "a has two arguments, the second (2)"),
            (&["a", "(1)", "--args-hex=00"], "a has two arguments"),
            (&["--upgrade=x", "--repeat=2"], "--repeat follows a method"),
            (&["--repeat=2", "a"], "--repeat follows a method"),
            (&["a", "--upgrade-args=(1)"], "--upgrade-args follows --upgrade"),
        ] {
            let found = parsed(words).unwrap_err();
            assert!(found.contains(error), "{words:?}: {found}");
        }
    }

    #[test]
    fn a_file_has_a_step_in_each_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calls");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            parsed(&["first", "--calls", path.to_str().unwrap(), "last"]).unwrap().read()
        };
        let text = "\u{feff}# comment\n\n  add(1)\nput (\"a (b) # --repeat 3 c\", 2) --repeat 3\n\
                    --upgrade new.wasm (3)\r\nget\n";
        let expected = [
            "1 first ",
            "1 add (1)",
            "3 put (\"a (b) # --repeat 3 c\", 2)",
            "1 upgrade to new.wasm (3)",
            "1 get ",
            "1 last ",
        ];
        assert_eq!(shown(&read(text).unwrap()), expected);
        for (text, error) in [
            ("get\n\nadd 1", "line 3 of "),
            ("add (1) --repeat 0", "--repeat: number would be zero"),
            ("--upgrade new.wasm --repeat 2", "--repeat follows a method"),
        ] {
            let found = format!("{:#}", read(text).unwrap_err());
            assert!(found.contains(error), "{text}: {found}");
        }
    }
}
