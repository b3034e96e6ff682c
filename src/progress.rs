//! Progress on stderr: bars on a terminal, else a line per step, or nothing.
//!
//! Everything that may take longer than a second is a step. A step that took long in an earlier run
//! says so.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};
use stablebench_replica::text::{note, safe};

use crate::durations::{self, NOTABLE, about};
use crate::report::number::Grouped;
use crate::terminal::Terminal;

/// The destinations of a command's output.
#[derive(Clone, Debug)]
pub struct Output {
    pub progress: Progress,
    pub terminal: Terminal,
}

/// The form of progress.
#[derive(Clone, Debug)]
pub enum Progress {
    Bars(MultiProgress),
    Lines,
    Quiet,
}

/// An activity that takes time.
#[derive(Debug)]
pub struct Step {
    progress: Progress,
    bar: ProgressBar,
    name: String,
    /// The name as it is shown.
    shown: String,
    /// The start of a step whose duration is kept for later runs.
    began: Option<Instant>,
    /// Drops with the step, and prevents the line of a step that is still short.
    short: Option<Sender<()>>,
}

/// A terminal with fewer columns has room for less than a whole bar and its message.
const NARROW: u16 = 90;

impl Progress {
    /// Returns bars if stderr is a terminal, else lines; nothing if `quiet`.
    pub fn new(quiet: bool) -> Self {
        match quiet {
            true => Self::Quiet,
            false if std::io::stderr().is_terminal() => Self::Bars(MultiProgress::new()),
            false => Self::Lines,
        }
    }

    /// Prints a line.
    pub fn note(&self, text: &str) {
        match self {
            // The terminal may be gone.
            Self::Bars(bars) => drop(bars.println(safe(text))),
            Self::Lines => note(text),
            Self::Quiet => {}
        }
    }

    /// Begins an activity with a known number of units. Without a terminal it is a line, as soon as it
    /// takes longer than a second.
    pub fn step(&self, name: &str, unit: &'static str, length: u64) -> Step {
        let bar = ProgressBar::hidden();
        bar.set_length(length);
        bar.set_style(counting(unit, is_narrow()));
        let mut step = self.begin(name, bar);
        if matches!(self, Self::Lines) {
            step.short = self.note_later(step.name.clone());
        }
        step
    }

    /// Begins an activity of unknown length. Without a terminal it is a line, as soon as it takes
    /// longer than a second.
    pub fn spinner(&self, name: &str) -> Step {
        let bar = ProgressBar::hidden();
        bar.set_style(style("{spinner} {elapsed:>4}  {wide_msg}"));
        let shown = match durations::before(name) {
            Some(before) => format!("{name} ({} last time)", about(before)),
            None => name.to_owned(),
        };
        let mut step = self.begin(&shown, bar);
        step.name = safe(name).into_owned();
        step.began = Some(Instant::now());
        if matches!(self, Self::Bars(_)) {
            step.bar.enable_steady_tick(Duration::from_millis(120));
        } else if matches!(self, Self::Lines) {
            step.short = self.note_later(shown);
        }
        step
    }

    /// Begins an activity that shows a text that changes with time, above the bars of later steps.
    pub fn rest(
        &self,
        name: &str,
        text: impl Fn() -> String + Clone + Send + Sync + 'static,
    ) -> Step {
        let bar = ProgressBar::hidden();
        let write = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = write!(out, "{}", text());
        };
        bar.set_style(style("{rest}").with_key("rest", write));
        let step = self.begin(name, bar);
        if matches!(self, Self::Bars(_)) {
            step.bar.enable_steady_tick(Duration::from_secs(1));
        }
        step
    }

    /// Prints a line after a second, unless the result is dropped before.
    fn note_later(&self, text: String) -> Option<Sender<()>> {
        let (short, ended) = channel();
        let progress = self.clone();
        let wait = move || {
            if ended.recv_timeout(NOTABLE) == Err(RecvTimeoutError::Timeout) {
                progress.note(&text);
            }
        };
        // Without a thread there is no line, and the work goes on.
        thread::Builder::new().spawn(wait).ok().map(|_| short)
    }

    fn begin(&self, name: &str, bar: ProgressBar) -> Step {
        let name = safe(name);
        bar.set_message(name.clone().into_owned());
        let bar = match self {
            Self::Bars(bars) => bars.add(bar),
            Self::Lines | Self::Quiet => bar,
        };
        Step {
            progress: self.clone(),
            bar,
            name: name.clone().into_owned(),
            shown: name.into_owned(),
            began: None,
            short: None,
        }
    }
}

impl Step {
    /// Sets the position and the message.
    pub fn at(&self, position: u64, message: impl Into<Cow<'static, str>>) {
        self.bar.set_position(position);
        self.says(message);
    }

    /// Sets the message.
    pub fn says(&self, message: impl Into<Cow<'static, str>>) {
        let message = message.into();
        let message = safe(&message);
        self.bar.set_message(match message.is_empty() {
            true => self.shown.clone(),
            false => format!("{}  {message}", self.shown),
        });
    }

    /// Advances by one unit.
    pub fn advance(&self) {
        self.bar.inc(1);
    }

    /// Continues the activity with other units.
    pub fn next(&self, unit: &'static str, length: u64) {
        self.bar.set_style(counting(unit, is_narrow()));
        self.bar.set_length(length);
        self.bar.reset();
    }

    /// Ends the activity, and keeps its duration for later runs.
    pub fn done(mut self, message: &str) {
        self.short = None;
        if let Some(began) = self.began {
            durations::ended(&self.name, began.elapsed());
        }
        if matches!(self.progress, Progress::Lines) && !message.is_empty() {
            note(&format!("{}: {message}", self.name));
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Returns a style with the percentage, the rate, the elapsed and the remaining time. The message is
/// last, because it may be cut off. A narrow bar has neither the rate nor the elapsed time.
fn counting(unit: &'static str, narrow: bool) -> ProgressStyle {
    if narrow {
        return style("{bar:8} {percent:>3} % {eta:>4} left  {wide_msg}");
    }
    style("{bar:16} {percent:>3} % {rate:>15}  {elapsed:>4}, {eta:>4} left  {wide_msg}").with_key(
        "rate",
        move |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = write!(text, "{} {unit}/s", Grouped(state.per_sec() as u64));
        },
    )
}

/// Returns `true` if the terminal of stderr is narrow.
fn is_narrow() -> bool {
    let mut table = comfy_table::Table::new();
    table.use_stderr().width().is_some_and(|width| width < NARROW)
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use std::io;

    use indicatif::{InMemoryTerm, ProgressDrawTarget, TermLike};

    use super::*;

    /// Returns bars on a terminal of this width.
    fn bars(width: u16) -> (InMemoryTerm, Progress) {
        let term = InMemoryTerm::new(10, width);
        let target = ProgressDrawTarget::term_like(Box::new(term.clone()));
        (term, Progress::Bars(MultiProgress::with_draw_target(target)))
    }

    /// Waits for a terminal to show the expected text: bars are drawn at most 20 times a second.
    fn shown(term: &InMemoryTerm, steps: &[&Step], expected: impl Fn(&str) -> bool) -> String {
        let mut text = String::new();
        for _ in 0..200 {
            steps.iter().for_each(|step| step.bar.tick());
            text = term.contents();
            if expected(&text) {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
        text
    }

    #[test]
    fn a_bar_shows_percentage_rate_and_time() {
        let (term, progress) = bars(140);
        let step = progress.step("btree, 1 000 000 rows of 100 bytes", "rows", 1_000_000);
        step.at(250_000, "18.5 G instructions");
        step.bar.tick();
        let shown = term.contents();
        assert!(shown.starts_with("████░░░░░░░░░░░░  25 % "), "{shown}");
        assert!(shown.contains(" rows/s    0s, "), "{shown}");
        let end = " left  btree, 1 000 000 rows of 100 bytes  18.5 G instructions";
        assert!(shown.ends_with(end), "{shown}");
        step.next("cases", 12);
        step.at(3, "insert: middle 10");
        step.bar.tick();
        assert!(term.contents().contains("  25 % "), "{}", term.contents());
        assert!(term.contents().contains(" cases/s "), "{}", term.contents());
        step.done("");
        assert_eq!(term.contents(), "", "the bar is cleared");
    }

    #[test]
    fn a_step_without_a_terminal_has_a_line_before_it_ends() {
        assert!(Progress::Lines.step("btree", "rows", 10).short.is_some());
        assert!(Progress::Lines.spinner("compiling").short.is_some());
        assert!(Progress::Quiet.step("btree", "rows", 10).short.is_none());
    }

    #[test]
    fn notes_are_above_bars() {
        let (term, progress) = bars(80);
        let step = progress.step("compiling", "modules", 2);
        step.bar.tick();
        progress.note("one\ntwo \u{202e}");
        let shown = term.contents();
        assert!(shown.starts_with("one\ntwo \\u{202e}\n"), "{shown}");
        assert!(shown.ends_with("compiling"), "{shown}");
    }

    /// A terminal that was closed.
    #[derive(Debug)]
    struct Gone;

    fn gone() -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    impl TermLike for Gone {
        fn width(&self) -> u16 {
            80
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            gone()
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            gone()
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            gone()
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            gone()
        }

        fn write_line(&self, _: &str) -> io::Result<()> {
            gone()
        }

        fn write_str(&self, _: &str) -> io::Result<()> {
            gone()
        }

        fn clear_line(&self) -> io::Result<()> {
            gone()
        }

        fn flush(&self) -> io::Result<()> {
            gone()
        }
    }

    #[test]
    fn work_goes_on_without_its_terminal() {
        let target = ProgressDrawTarget::term_like(Box::new(Gone));
        let progress = Progress::Bars(MultiProgress::with_draw_target(target));
        let step = progress.step("inserting", "rows", 2);
        progress.note("a note");
        step.at(1, "one");
        step.bar.tick();
        progress.note("another");
        step.done("two");
    }

    #[test]
    fn a_narrow_bar_has_room_for_its_message() {
        let (term, progress) = bars(60);
        let step = progress.step("sqlite/persist, 1 000 000 rows", "rows", 1_000_000);
        step.bar.set_style(counting("rows", true));
        step.at(250_000, "18.5 G instructions");
        step.bar.tick();
        let shown = term.contents();
        assert!(shown.contains(" 25 % "), "{shown}");
        assert!(shown.contains(" left  sqlite/persist, 1 000 000 rows"), "{shown}");
        assert_eq!(shown.lines().count(), 1, "{shown}");
    }

    #[test]
    fn a_step_says_how_long_it_took_before() {
        durations::ended("progress: a slow step", Duration::from_secs(63));
        let (term, progress) = bars(60);
        let step = progress.spinner("progress: a slow step");
        let end = "progress: a slow step (63 s last time)";
        let shown = shown(&term, &[&step], |text| text.ends_with(end));
        assert!(shown.ends_with(end), "{shown}");
        step.done("");
        let before = durations::before("progress: a slow step");
        assert_eq!(before, Some(Duration::from_secs(63)), "it was cached this time");
    }

    #[test]
    fn a_rest_is_above_the_bars_and_fits() {
        let (term, progress) = bars(60);
        let rest = progress.rest("", || "12 of 20 fixtures left, about 1 h 25 min".to_owned());
        let step = progress.step("btree", "rows", 10);
        let shown = shown(&term, &[&rest, &step], |text| text.lines().count() == 2);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 2, "{shown}");
        assert_eq!(lines[0], "12 of 20 fixtures left, about 1 h 25 min");
    }

    #[test]
    fn a_bar_is_one_line() {
        let (term, progress) = bars(80);
        let step = progress.step("btree, 1 000 000 rows of 100 bytes", "rows", 1_000_000);
        step.at(250_000, "18.5 G instructions");
        step.bar.tick();
        assert_eq!(term.contents().lines().count(), 1, "{}", term.contents());
    }
}
