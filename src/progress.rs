//! Progress on stderr: bars on a terminal, else a line per step, or nothing.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};
use stablebench_replica::text::{note, safe};

use crate::report::number::Grouped;

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
}

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

    /// Begins an activity with a known number of units.
    pub fn step(&self, name: &str, unit: &'static str, length: u64) -> Step {
        let bar = ProgressBar::hidden();
        bar.set_length(length);
        bar.set_style(counting(unit));
        self.begin(name, bar)
    }

    /// Begins an activity of unknown length. It is shown on a terminal only; [`Progress::note`] prints
    /// a line everywhere.
    pub fn spinner(&self, name: &str) -> Step {
        let bar = ProgressBar::hidden();
        bar.set_style(style("{spinner} {elapsed:>4}  {wide_msg}"));
        let step = self.begin(name, bar);
        step.bar.enable_steady_tick(Duration::from_millis(120));
        step
    }

    fn begin(&self, name: &str, bar: ProgressBar) -> Step {
        let name = safe(name);
        bar.set_message(name.clone().into_owned());
        let bar = match self {
            Self::Bars(bars) => bars.add(bar),
            Self::Lines | Self::Quiet => bar,
        };
        Step { progress: self.clone(), bar, name: name.into_owned() }
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
            true => self.name.clone(),
            false => format!("{}  {message}", self.name),
        });
    }

    /// Advances by one unit.
    pub fn advance(&self) {
        self.bar.inc(1);
    }

    /// Continues the activity with other units.
    pub fn next(&self, unit: &'static str, length: u64) {
        self.bar.set_style(counting(unit));
        self.bar.set_length(length);
        self.bar.reset();
    }

    /// Ends the activity.
    pub fn done(self, message: &str) {
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
/// last, because it may be cut off.
fn counting(unit: &'static str) -> ProgressStyle {
    style("{bar:16} {percent:>3} % {rate:>15}  {elapsed:>4}, {eta:>4} left  {wide_msg}").with_key(
        "rate",
        move |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = write!(text, "{} {unit}/s", Grouped(state.per_sec() as u64));
        },
    )
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
    fn notes_are_above_bars() {
        let (term, progress) = bars(80);
        let step = progress.spinner("compiling");
        progress.note("one\ntwo \u{202e}");
        step.bar.tick();
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
    fn a_bar_is_one_line() {
        let (term, progress) = bars(80);
        let step = progress.step("btree, 1 000 000 rows of 100 bytes", "rows", 1_000_000);
        step.at(250_000, "18.5 G instructions");
        step.bar.tick();
        assert_eq!(term.contents().lines().count(), 1, "{}", term.contents());
    }
}
