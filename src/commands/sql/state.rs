//! A session and what the shell prints of it.

use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use anyhow::{Result, ensure};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use stablebench_suite_sql::split::{self, Control};
use stablebench_suite_sql::{Answer, Value};

use super::SqlArgs;
use super::advice::{self, Observed};
use super::print::{self, PlanLine, PrintMode, StatementCost};
use super::session::{Bound, Executed, Session};
use super::text::{note_of, positional, shortened};
use crate::interrupt;
use crate::progress::NOTABLE;
use crate::progress::{Output, Progress};
use crate::replica::embedded::Embedded;
use crate::report::number::Grouped;
use crate::results::Prices;
use crate::terminal::{Terminal, print, safe};

/// The parts of a statement's cost to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Costs {
    Off,
    #[default]
    On,
    /// With preparing, counters of SQLite, and all pages.
    Full,
}

/// Output in addition to the rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notes {
    pub costs: Costs,
    /// `true` if whole query plans are printed, above the rows.
    pub plans: bool,
    /// `true` if the time on this machine is printed.
    pub timer: bool,
}

/// The file and the line of a statement or a command, for errors.
pub type Place = Option<(String, usize)>;

/// A session and what its commands have set.
pub struct ShellState<'a> {
    pub session: Session,
    pub replica: Embedded,
    pub args: &'a SqlArgs,
    pub prices: Prices,
    pub output: &'a Output,
    pub mode: PrintMode,
    pub notes: Notes,
    /// The statements of the open transaction, which are one message.
    pub transaction: Vec<(Bound, Place)>,
    /// The place of what is executed.
    pub place: Place,
    /// The values of parameters by their names.
    pub parameters: Vec<(String, Value)>,
    /// The files that are being read, to stop at one that reads itself.
    pub reading: Vec<PathBuf>,
    /// The last statements, for advice.
    pub last: Vec<Observed>,
    /// `true` if a person types, who may interrupt a statement.
    pub interactive: bool,
    /// `true` if something failed.
    pub failed: bool,
}

impl<'a> ShellState<'a> {
    pub fn new(
        (replica, session): (Embedded, Session),
        prices: Prices,
        args: &'a SqlArgs,
        output: &'a Output,
    ) -> Self {
        Self {
            session,
            replica,
            args,
            prices,
            output,
            mode: args.mode,
            notes: Notes::default(),
            transaction: Vec::new(),
            place: None,
            parameters: Vec::new(),
            reading: Vec::new(),
            last: Vec::new(),
            interactive: false,
            failed: false,
        }
    }

    /// Executes a statement, or keeps it until the end of its transaction. Returns `false` if it
    /// failed; the reason is printed.
    pub fn statement(&mut self, text: &str) -> Result<bool> {
        let bound = (self.bind(text), self.place.clone());
        match split::control(text) {
            Control::Begin if self.transaction.is_empty() => {
                self.transaction.push(bound);
                if self.interactive {
                    self.dim(&[
                        "the statements up to COMMIT or ROLLBACK are one message, which is \
                                sent then"
                            .to_owned(),
                    ])?;
                }
                Ok(true)
            }
            Control::Commit | Control::Rollback if !self.transaction.is_empty() => {
                let mut statements = std::mem::take(&mut self.transaction);
                statements.push(bound);
                self.execute(statements)
            }
            _ if !self.transaction.is_empty() => {
                self.transaction.push(bound);
                Ok(true)
            }
            _ => self.execute(vec![bound]),
        }
    }

    /// Refuses what would not see the open transaction, or would lose it.
    pub fn check_no_transaction(&self) -> Result<()> {
        ensure!(
            self.transaction.is_empty(),
            "a transaction is open; end it with COMMIT or ROLLBACK"
        );
        Ok(())
    }

    /// Says that a transaction has no end. Returns `false` then.
    pub fn finished(&mut self) -> Result<bool> {
        let Some((_, place)) = std::mem::take(&mut self.transaction).into_iter().next() else {
            return Ok(true);
        };
        self.place = place;
        self.failure("the open transaction has no COMMIT, and nothing of it was executed")?;
        Ok(false)
    }

    /// Replaces named parameters by the values that `.parameter` has set.
    pub fn bind(&self, text: &str) -> Bound {
        let (text, names) = split::numbered(text);
        let value = |name: &str| {
            let known = self.parameters.iter().find(|(known, _)| known == name);
            known.map_or(Value::Null, |(_, value)| value.clone())
        };
        let mut parameters: Vec<Value> = names.iter().map(|name| value(name)).collect();
        // Others have numbers.
        let numbers = parameters.len() + 1..=positional(&text);
        parameters.extend(numbers.map(|number| value(&format!("?{number}"))));
        Bound { text, parameters }
    }

    fn execute(&mut self, statements: Vec<(Bound, Place)>) -> Result<bool> {
        let (statements, places): (Vec<Bound>, Vec<Place>) = statements.into_iter().unzip();
        let (done, ended) = match self.interactive {
            true => self.stoppable(|state| state.execute_and_print(&statements, &places))?,
            false => (self.execute_and_print(&statements, &places), false),
        };
        let error = match done? {
            Ok(succeeded) => return Ok(succeeded),
            Err(error) => error,
        };
        self.place = places.into_iter().next().flatten();
        match ended {
            true => self.failure("interrupted; the message had no effect")?,
            false => self.whole_failure(&statements, &error)?,
        }
        Ok(false)
    }

    /// Does work that Ctrl-C ends. Returns `true` if it was ended.
    pub fn stoppable<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> Result<(T, bool)> {
        let _echo = WithoutSigns::new();
        let switch = self.session.switch();
        let stop = move || switch.iter().for_each(stablebench_replica::subnet::Halt::halt);
        let (done, ended) = interrupt::stoppable(stop, || work(self))?;
        if ended {
            self.session.switch();
        }
        Ok((done, ended))
    }

    fn whole_failure(&self, statements: &[Bound], error: &anyhow::Error) -> Result<()> {
        let first = statements.first().map_or("", |statement| &statement.text);
        let more = match statements.len() {
            0 | 1 => String::new(),
            all => format!(" and {} more statements", all - 1),
        };
        self.failure(&format!("{}{more}: {error:#}", shortened(first, 60)))
    }

    /// Executes a message and prints its answers. The inner error is that of the whole message.
    fn execute_and_print(
        &mut self,
        statements: &[Bound],
        places: &[Place],
    ) -> Result<Result<bool>> {
        let began = Instant::now();
        let name = statements.first().map_or("", |statement| &statement.text);
        let later = later(&self.output.progress, shortened(name, 60));
        let executed = self.session.execute(statements);
        drop(later);
        let executed = match executed {
            Ok(executed) => executed,
            Err(error) => return Ok(Err(error)),
        };
        let took = began.elapsed();
        self.last.clear();
        let alone = executed.answers.len() == 1;
        for (number, answer) in executed.answers.iter().enumerate() {
            let statement = &statements[answer.call as usize];
            if !alone && self.notes.costs != Costs::Off {
                self.dim(&[shortened(&statement.text, 76)])?;
            }
            self.place = places.get(answer.call as usize).cloned().flatten();
            self.answer(statement, answer, &executed, number)?;
            self.last.push(Observed::new(statement, answer));
        }
        if let Some(message) = print::message(&executed, &self.prices)
            && self.notes.costs != Costs::Off
        {
            self.dim(&[message])?;
        }
        if self.notes.timer {
            self.dim(&[format!("Run Time: real {:.3}", took.as_secs_f64())])?;
        }
        Ok(Ok(executed.answers.iter().all(|answer| answer.error.is_none())))
    }

    fn answer(
        &mut self,
        statement: &Bound,
        answer: &Answer,
        executed: &Executed,
        number: usize,
    ) -> Result<()> {
        let shows = self.notes.plans || self.notes.costs != Costs::Off;
        let plan = match shows && answer.error.is_none() {
            true => advice::plan(&mut self.session, statement),
            false => Vec::new(),
        };
        if self.notes.plans && !plan.is_empty() {
            print(&print::tree(&plan))?;
        }
        print(&print::rows(answer, self.mode, self.terminal().width))?;
        if let Some((row, column, bytes)) = answer.cut.first() {
            self.dim(&[format!(
                "row {}, column {}: only the first MiB of {} bytes is shown",
                row + 1,
                column + 1,
                Grouped(*bytes)
            )])?;
        }
        if let Some(failure) = &answer.error {
            let mut message = failure.message.clone();
            if failure.rolled_back {
                message += "; the transaction was rolled back";
            }
            self.failure(&message)?;
            let place = |offset: u32| print::place(&statement.text, offset as usize);
            match failure.offset.and_then(place) {
                Some(place) => error_line(&place),
                None if self.place.is_some() => {
                    error_line(&format!("  {}", shortened(&statement.text, 90)));
                }
                None => {}
            }
            return Ok(());
        }
        if let Some(note) = note_of(&statement.text) {
            self.dim(&[note.to_owned()])?;
        }
        if self.notes.costs == Costs::Off {
            return Ok(());
        }
        let spent = StatementCost::of(answer, executed.pages.get(number).copied().flatten());
        let charged = (executed.answers.len() == 1).then_some(executed.cost.cycles);
        let mut parts = print::cost(answer, spent, charged, &self.prices);
        parts.extend(brief(&plan));
        self.dim(&parts)?;
        if self.notes.costs == Costs::Full {
            for line in print::details(answer, spent, executed) {
                self.dim(&[line])?;
            }
        }
        Ok(())
    }

    /// Standard output, whose width may have changed.
    fn terminal(&self) -> Terminal {
        match self.output.terminal.width {
            None => self.output.terminal,
            Some(_) => Terminal { width: Terminal::stdout().width, ..self.output.terminal },
        }
    }

    /// Prints notes below the rows, in one line if they fit. If the rows are for a program, they go to
    /// stderr.
    pub fn dim(&self, parts: &[String]) -> Result<()> {
        let terminal = self.terminal();
        let parts: Vec<String> = parts.iter().map(|part| safe(part).into_owned()).collect();
        for line in print::joined(&parts, terminal.width) {
            match (terminal.colour, self.mode) {
                (true, _) => print(&coloured(&line))?,
                (false, PrintMode::List | PrintMode::Csv | PrintMode::Json) => error_line(&line),
                (false, _) => print(&(line + "\n"))?,
            }
        }
        Ok(())
    }

    /// Prints an error with its place, and goes on.
    pub fn failure(&self, text: &str) -> Result<()> {
        let place = match &self.place {
            Some((file, line)) => format!("{file}, line {line}: "),
            None => String::new(),
        };
        // As in sqlite3, where a person types.
        let begin = if self.interactive { "Error" } else { "stablebench" };
        error_line(&format!("{begin}: {place}{text}"));
        Ok(())
    }
}

/// Returns a line in dim letters, in which scans are highlighted.
fn coloured(line: &str) -> String {
    let dim = anstyle::Style::new().dimmed();
    let scan = anstyle::AnsiColor::Yellow.on_default().bold();
    let parts: Vec<String> = line
        .split(" · ")
        .map(|part| match part.starts_with("SCAN ") || part.starts_with("USE TEMP") {
            true => format!("{scan}{part}{scan:#}"),
            false => format!("{dim}{part}{dim:#}"),
        })
        .collect();
    parts.join(&format!("{dim} · {dim:#}")) + "\n"
}

/// Prints a line to stderr.
fn error_line(text: &str) {
    // Nobody may be able to read it.
    let _ = writeln!(std::io::stderr().lock(), "{}", safe(text.trim_end_matches('\n')));
}

/// Returns what a plan reads, the full scans first.
fn brief(plan: &[PlanLine]) -> Vec<String> {
    let mut parts = print::brief(plan);
    parts.sort_by_key(|part| !part.starts_with("SCAN "));
    parts
}

/// The terminal of standard input shows no `^C` for Ctrl-C, until this is dropped. Otherwise it shows it
/// on the line below a progress bar, where the bar would be cleared instead of on its own.
struct WithoutSigns {
    before: Option<Termios>,
}

impl WithoutSigns {
    pub fn new() -> Self {
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).ok();
        if let Some(mut without) = before.clone() {
            without.local_modes.remove(LocalModes::ECHOCTL);
            // The terminal may be gone.
            let _ = tcsetattr(&stdin, OptionalActions::Now, &without);
        }
        Self { before }
    }
}

impl Drop for WithoutSigns {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Work that may take long. Its spinner disappears when it is dropped.
#[derive(Debug)]
struct Later {
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Begins something with this name.
fn later(progress: &Progress, name: String) -> Later {
    let (done, waiting) = channel();
    let progress = progress.clone();
    let wait = move || {
        if waiting.recv_timeout(NOTABLE) == Err(RecvTimeoutError::Timeout) {
            let _step = progress.spinner(&name);
            // Until the other end is dropped.
            let _ = waiting.recv();
        }
    };
    // Without a thread there is no spinner, and the work goes on.
    Later { done: Some(done), thread: Builder::new().spawn(wait).ok() }
}

impl Drop for Later {
    fn drop(&mut self) {
        self.done = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
