//! Arguments, fixtures and steps.
//!
//! ```text
//!   for each configuration:   database file → setup, in messages → fork: transactions, in messages
//! ```

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use clap::{ArgMatches, Args, FromArgMatches};
use stablebench_protocol::{Digest, JobPart, Setting};
use stablebench_suite::Suite;
use stablebench_suite::compare::ceiling;
use stablebench_suite::engines::{Configuration, Configurations, Kind};
use stablebench_suite::job::Job;
use stablebench_suite::plan::{Ceilings, Details, Fixture, Messages, Plan, Step};
use stablebench_suite::results::Input;
use stablebench_workload::{Expected, Model};

use super::expression::Number;
use super::setup::{Configure, Load, Setup, Source};
use super::transactions::{Agreement, Layout, Scripts, Transactions, excerpt, is_volatile, joined};
use super::{BUILTINS, Builtin, STATEMENT, Script, TRANSACTION};
use crate::split::{self, Control};

/// The suite.
pub struct SqlSuite;

/// The name of the row of all scripts.
const ALL: &str = "all scripts";
/// The built-in script that is taken if none is chosen, as in pgbench.
const DEFAULT: &str = "tpcb-like";
/// The largest file with SQL, in bytes.
const MAX_SQL: u64 = 1 << 30;
/// The largest database file, in bytes.
const MAX_DATABASE: u64 = 16 << 30;
/// The engine whose database is a file.
pub const FILES: &str = "sqlite";
/// The characters of a statement in the name of its row.
const NAME: usize = 60;

/// Options of the suite.
#[derive(Clone, Debug, Args)]
pub struct SqlSuiteArgs {
    /// SQL that prepares the database; it is not measured and has no practical limits. May be
    /// repeated.
    #[arg(long, value_name = "FILE")]
    pub setup: Vec<PathBuf>,
    /// Begin with the database in this file.
    #[arg(long, value_name = "FILE")]
    pub db: Option<PathBuf>,
    /// Script in pgbench's language, executed in each transaction. With several, each is chosen as
    /// often as its weight says [default: the built-in tpcb-like].
    #[arg(long = "script", value_name = "FILE[@WEIGHT]")]
    pub scripts: Vec<Weighted>,
    /// Built-in script, with its tables: tpcb-like, simple-update, select-only, ycsb-a to ycsb-f.
    #[arg(long = "builtin", value_name = "NAME[@WEIGHT]")]
    pub builtins: Vec<Weighted>,
    /// Value of a variable in scripts and in the setup: a number or a text.
    #[arg(long, value_name = "NAME=VALUE")]
    pub define: Vec<Define>,
    /// Size of the tables of built-in scripts, and the variable :scale.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub scale: u64,
    /// Transactions.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub transactions: u64,
    /// Transactions in a message.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub per_message: u64,
    /// Configurations of sqlite, sqlite-vfs and doltlite, which must find and leave the same rows.
    #[arg(
        long,
        value_name = "ENGINES",
        default_value = "sqlite/persist,sqlite/persist,cache_size=1000,sqlite-vfs"
    )]
    pub engines: Configurations,
    /// Maximum ratio of a configuration to the first one. The exit code is 1 if one is larger
    /// [default: none].
    #[arg(long, value_name = "X", value_parser = ceiling)]
    pub max_ratio: Option<f64>,
}

/// A script with its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weighted {
    name: String,
    weight: u64,
}

impl FromStr for Weighted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, weight) = match text.rsplit_once('@') {
            Some((name, digits)) => match digits.parse::<u32>() {
                Ok(weight) if weight > 0 => (name, weight.into()),
                Ok(_) => return Err("a weight is at least 1".to_owned()),
                Err(_) => (text, 1),
            },
            None => (text, 1),
        };
        match name {
            "" => Err("the name is missing".to_owned()),
            name => Ok(Self { name: name.to_owned(), weight }),
        }
    }
}

/// The value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Define {
    name: String,
    value: Number,
}

impl FromStr for Define {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("a variable is NAME=VALUE")?;
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!("{name} is no name of a variable: letters, digits and _"));
        }
        let value = match (value.parse::<i64>(), value.parse::<f64>()) {
            (Ok(number), _) => Number::Integer(number),
            (_, Ok(number)) if number.is_finite() => Number::Double(number),
            _ => Number::Text(value.to_owned()),
        };
        Ok(Self { name: name.to_owned(), value })
    }
}

impl Suite for SqlSuite {
    fn name(&self) -> &'static str {
        "sql"
    }

    fn summary(&self) -> &'static str {
        "Transactions of your own SQL, from scripts in pgbench's language"
    }

    fn examples(&self) -> &'static str {
        "\
Examples:
  pgbench's default transaction, on three configurations:
    stablebench run sql
  A script of your own on a schema of your own:
    stablebench run sql --setup schema.sql --script tx.sql --engines sqlite/persist,sqlite/wal
  Two scripts, the first nine times as often, ten transactions in a message:
    stablebench run sql --setup schema.sql --script read.sql@9 --script write.sql --per-message 10
  YCSB's workload A on 10 000 rows:
    stablebench run sql --builtin ycsb-a --scale 10"
    }

    fn arguments(&self, command: clap::Command) -> clap::Command {
        SqlSuiteArgs::augment_args(command)
    }

    fn plan(&self, matches: &ArgMatches, seed: u64) -> Result<Plan> {
        plan(&SqlSuiteArgs::from_arg_matches(matches)?, seed)
    }

    fn gates(&self) -> &'static [&'static str] {
        &["max_ratio"]
    }
}

/// No model knows the rows of any SQL.
#[derive(Clone, Copy, Debug, Default)]
struct Unknown;

impl Model for Unknown {
    fn execute(&mut self, _: &JobPart) -> stablebench_protocol::Result<Expected> {
        Ok(Expected::default())
    }

    fn content(&self) -> Digest {
        Digest::default()
    }

    fn fork(&self) -> Box<dyn Model> {
        Box::new(*self)
    }
}

/// What prepares the database, and the scripts.
struct ScriptFiles {
    sources: Vec<Source>,
    scripts: Scripts,
    inputs: Vec<Input>,
}

/// The plan of the arguments.
///
/// # Errors
///
/// If a file cannot be read, a script is none, a transaction cannot be computed, or an engine has no SQL.
fn plan(args: &SqlSuiteArgs, seed: u64) -> Result<Plan> {
    for configuration in &args.engines.0 {
        ensure!(
            configuration.engine.kind == Kind::Sql,
            "--engines {}: this engine has no SQL; take sqlite, sqlite-vfs or doltlite",
            configuration.key()
        );
        ensure!(
            args.db.is_none() || configuration.engine.key == FILES,
            "--db: {} does not store its database as a file; take --engines {FILES}, or --setup with \
             the database as SQL: stablebench sql --db FILE -c .dump",
            configuration.engine.key
        );
    }
    let ScriptFiles { sources, scripts, mut inputs } = work(args)?;
    let mut load = None;
    if let Some(path) = &args.db {
        let (input, file) = Input::read(path, MAX_DATABASE)?;
        let sha256 = input.sha256.clone();
        load = Some(Load::new(file, sha256, path).with_context(|| input.name.clone())?);
        inputs.insert(0, input);
    }
    let setup = Setup::new(&sources, &scripts.defined)?;
    let (layout, more) = layout(&scripts, seed, args.transactions)?;
    let volatile = |text: &String| is_volatile(text);
    let transactions = Transactions {
        agreement: Arc::new(Agreement::default()),
        configuration: String::new(),
        rows: Arc::new(layout),
        is_volatile: sources.iter().any(|source| volatile(&source.text))
            || scripts.scripts.iter().any(|(_, script)| script.texts.iter().any(volatile)),
        scripts: Arc::new(scripts),
    };
    let name = match &transactions.scripts.scripts[..] {
        [(_, script)] => script.name.clone(),
        _ => ALL.to_owned(),
    };
    let fixture = |configuration: &Configuration| {
        let work = Transactions { configuration: configuration.key(), ..transactions.clone() };
        let settings = configuration.info().settings.unwrap_or_default();
        let settings = settings.iter().map(|(name, value)| Setting::new(name, value)).collect();
        let mut steps = vec![Step::new(Job::new(Configure(settings)), 1)];
        steps.extend(
            load.iter().map(|load| in_messages(Step::new(Job::new(load.clone()), load.len()))),
        );
        steps.push(in_messages(Step::new(Job::new(setup.clone()), setup.len())));
        let populated = steps.len();
        let case = Step::case(TRANSACTION, name.clone(), Job::new(work), args.transactions);
        steps.push(Step {
            messages: Messages::Exactly(args.per_message),
            details: Details { size: true, ..Details::default() },
            more: more.clone(),
            ..case
        });
        Fixture {
            engine: configuration.engine.protocol,
            configuration: configuration.info(),
            name: String::new(),
            rows: 0,
            payload: 0,
            model: || Box::new(Unknown),
            steps,
            populated,
        }
    };
    let fixtures = args.engines.0.iter().map(fixture).collect();
    let mut plan = Plan::new(SqlSuite.name(), fixtures);
    plan.inputs = inputs;
    plan.agrees = true;
    if args.max_ratio.is_some() {
        plan.ceilings = Some(Ceilings { max_ratio: args.max_ratio, max_average: None });
    }
    Ok(plan)
}

/// The same step with one operation in a message.
fn in_messages(step: Step) -> Step {
    Step { messages: Messages::Exactly(1), ..step }
}

/// Reads the files of the arguments.
fn work(args: &SqlSuiteArgs) -> Result<ScriptFiles> {
    let mut inputs = Vec::new();
    let mut sources: Vec<Source> = Vec::new();
    let mut scripts: Vec<(u64, Script)> = Vec::new();
    let mut builtins: Vec<(&Builtin, u64)> = Vec::new();
    for Weighted { name, weight } in &args.builtins {
        builtins.push((named(name)?, *weight));
    }
    if args.builtins.is_empty() && args.scripts.is_empty() {
        builtins.push((named(DEFAULT)?, 1));
    }
    for (builtin, weight) in builtins {
        if sources.iter().all(|source| source.text != builtin.setup) {
            let name = format!("the tables of {}", builtin.name);
            sources.push(Source { name, text: builtin.setup.to_owned() });
        }
        for (part, text) in builtin.scripts {
            let mut script = Script::parse(builtin.name, text)?;
            if builtin.scripts.len() > 1 {
                script.name = format!("{} {}", builtin.name, verbs(&script));
            }
            scripts.push((weight * u64::from(*part), script));
        }
    }
    for path in &args.setup {
        let (input, text) = Input::text(path, MAX_SQL)?;
        sources.push(Source { name: input.name.clone(), text });
        inputs.push(input);
    }
    for Weighted { name, weight } in &args.scripts {
        let (input, text) = Input::text(Path::new(name), MAX_SQL)?;
        let shown = Path::new(name).file_name().map_or(name.into(), |name| name.to_string_lossy());
        let script = Script::parse(&shown, &text).with_context(|| input.name.clone())?;
        scripts.push((*weight, script));
        inputs.push(input);
    }
    unique_names(scripts.iter_mut().map(|(_, script)| &mut script.name));
    let scale = i64::try_from(args.scale).unwrap_or(i64::MAX);
    let mut defined = vec![("scale".to_owned(), Number::Integer(scale))];
    defined.extend(args.define.iter().map(|one| (one.name.clone(), one.value.clone())));
    Ok(ScriptFiles { sources, scripts: Scripts { scripts, defined }, inputs })
}

/// Returns the built-in script with a name.
fn named(name: &str) -> Result<&'static Builtin> {
    let Some(builtin) = Builtin::named(name) else {
        let known: Vec<&str> = BUILTINS.iter().map(|builtin| builtin.name).collect();
        bail!("there is no built-in script {name}; there are {}", known.join(", "));
    };
    Ok(builtin)
}

/// Returns the first words of a script's statements: `select+update`.
fn verbs(script: &Script) -> String {
    let mut verbs: Vec<String> = Vec::new();
    for text in script.texts.iter().filter(|text| split::control(text) == Control::None) {
        let verb = split::first_word(text).unwrap_or_default().to_ascii_lowercase();
        if !verbs.contains(&verb) {
            verbs.push(verb);
        }
    }
    verbs.join("+")
}

/// Adds numbers to names that are there twice.
fn unique_names<'a>(names: impl Iterator<Item = &'a mut String>) {
    let mut seen: Vec<String> = Vec::new();
    for name in names {
        let first = name.clone();
        let mut number = 1;
        while seen.contains(name) {
            number += 1;
            *name = format!("{first} ({number})");
        }
        seen.push(name.clone());
    }
}

/// Computes all transactions. Returns the rows of tables after the step's own: the scripts, if there are
/// several, and the statements that are executed.
fn layout(
    scripts: &Scripts,
    seed: u64,
    transactions: u64,
) -> Result<(Layout, Vec<(String, String)>)> {
    let mut executed: Vec<Vec<bool>> =
        scripts.scripts.iter().map(|(_, script)| vec![false; script.texts.len()]).collect();
    let mut chosen = vec![false; executed.len()];
    for number in 0..transactions {
        let transaction = scripts.transaction(seed, number)?;
        chosen[transaction.script] = true;
        for call in &transaction.calls {
            executed[transaction.script][call.text as usize] = true;
        }
    }
    let several = scripts.scripts.len() > 1;
    let mut layout = Layout::default();
    let mut rows: Vec<(String, String)> = Vec::new();
    for ((_, script), chosen) in scripts.scripts.iter().zip(&chosen) {
        let shown = several && *chosen;
        layout.scripts.push(shown.then_some(rows.len()));
        if shown {
            rows.push((TRANSACTION.to_owned(), script.name.clone()));
        }
    }
    let first = rows.len();
    for ((_, script), executed) in scripts.scripts.iter().zip(&executed) {
        let mut places = Vec::new();
        for (number, (source, executed)) in script.sources.iter().zip(executed).enumerate() {
            places.push(executed.then_some(rows.len()));
            if *executed {
                let line = script.statement(number).map_or(0, |(line, _)| line);
                let text = excerpt(&joined(source), NAME);
                let place =
                    if several { format!("{} {line}", script.name) } else { line.to_string() };
                rows.push((STATEMENT.to_owned(), format!("{place} {text}")));
            }
        }
        layout.statements.push(places);
    }
    unique_names(rows[first..].iter_mut().map(|(_, name)| name));
    layout.count = rows.len();
    ensure!(layout.count > 0, "no transaction executes a statement");
    Ok((layout, rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_suite::plan_of;

    fn rows(typed: &str) -> Vec<String> {
        let plan = plan_of(&SqlSuite, typed).unwrap();
        plan.rows.iter().map(|(section, name)| format!("{section}: {name}")).collect()
    }

    #[test]
    fn the_default_is_the_transaction_of_pgbench() {
        let plan = plan_of(&SqlSuite, "").unwrap();
        let keys: Vec<&str> = plan.configurations.iter().map(|of| of.key.as_str()).collect();
        assert_eq!(keys, ["sqlite/persist", "sqlite/persist,cache_size=1000", "sqlite-vfs"]);
        let rows = rows("");
        assert_eq!(rows.len(), 8);
        assert_eq!(rows[..2], ["transaction: tpcb-like", "statement: 5 BEGIN;"]);
        let fixture = &plan.fixtures[0];
        assert_eq!((fixture.steps.len(), fixture.populated), (3, 2));
        assert_eq!(fixture.steps[2].operations, 1_000);
        assert_eq!(fixture.cases().count(), 8);
    }

    #[test]
    fn several_scripts_have_a_row_each() {
        let rows = rows("--builtin ycsb-f --builtin ycsb-c@2");
        let transactions: Vec<&str> =
            rows.iter().filter_map(|row| row.strip_prefix("transaction: ")).collect();
        assert_eq!(
            transactions,
            ["all scripts", "ycsb-f select", "ycsb-f select+update", "ycsb-c"]
        );
        // Both have the same tables.
        let plan = plan_of(&SqlSuite, "--builtin ycsb-f --builtin ycsb-c").unwrap();
        assert_eq!(plan.fixtures[0].steps[1].operations, 1);
    }

    #[test]
    fn every_builtin_script_has_a_plan() {
        for builtin in BUILTINS {
            let typed = format!("--builtin {} --scale 3 --transactions 200", builtin.name);
            assert!(plan_of(&SqlSuite, &typed).unwrap().rows.len() > 1, "{}", builtin.name);
        }
    }

    #[test]
    fn weights_and_variables_are_read() {
        let weighted = |text: &str| text.parse::<Weighted>().map(|of| (of.name, of.weight));
        assert_eq!(weighted("a.sql@9"), Ok(("a.sql".to_owned(), 9)));
        assert_eq!(weighted("me@home.sql"), Ok(("me@home.sql".to_owned(), 1)));
        assert!(weighted("a.sql@0").is_err() && weighted("@3").is_err());
        let define = |text: &str| text.parse::<Define>().map(|of| of.value);
        assert_eq!(define("n=7"), Ok(Number::Integer(7)));
        assert_eq!(define("n=0.5"), Ok(Number::Double(0.5)));
        assert_eq!(define("n=a=b"), Ok(Number::Text("a=b".to_owned())));
        assert!(define("n").is_err() && define("a-b=1").is_err());
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        for (typed, part) in [
            ("--builtin nosuch", "there is no built-in script nosuch; there are tpcb-like, "),
            ("--engines btree", "--engines btree: this engine has no SQL"),
            ("--script /nosuch/tx.sql", "cannot read /nosuch/tx.sql"),
            ("--setup /nosuch/a.sql", "cannot read /nosuch/a.sql"),
            ("--db a.sqlite", "--db: sqlite-vfs does not store its database as a file"),
            ("--db /nosuch/a.sqlite --engines sqlite", "cannot read /nosuch/a.sqlite"),
        ] {
            let error = format!("{:#}", plan_of(&SqlSuite, typed).unwrap_err());
            assert!(error.contains(part), "{typed}: {error}");
        }
    }

    #[test]
    fn equal_names_get_numbers() {
        let mut names = ["a", "b", "a", "a"].map(str::to_owned);
        unique_names(names.iter_mut());
        assert_eq!(names, ["a", "b", "a (2)", "a (3)"]);
    }
}
