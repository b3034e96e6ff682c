//! Progress on stderr: bars where it is a terminal, a line a step where not, nothing where
//! nothing is wanted.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};

use crate::report::number::Grouped;
use crate::terminal::safe;

/// Where progress goes.
#[derive(Clone, Debug)]
pub enum Progress {
    Bars(MultiProgress),
    Lines,
    Quiet,
}

/// One thing that takes its time.
#[derive(Debug)]
pub struct Step {
    progress: Progress,
    bar: ProgressBar,
    name: String,
}

impl Progress {
    /// As stderr allows, or none.
    pub fn new(quiet: bool) -> Self {
        match quiet {
            true => Self::Quiet,
            false if std::io::stderr().is_terminal() => Self::Bars(MultiProgress::new()),
            false => Self::Lines,
        }
    }

    /// Says something once.
    pub fn note(&self, text: &str) {
        let text = safe(text);
        match self {
            Self::Bars(bars) => bars.suspend(|| eprintln!("{text}")),
            Self::Lines => eprintln!("{text}"),
            Self::Quiet => {}
        }
    }

    /// Begins something of so many of what `unit` calls them.
    pub fn step(&self, name: &str, unit: &'static str, length: u64) -> Step {
        let bar = ProgressBar::hidden();
        bar.set_length(length);
        bar.set_style(counting(unit));
        self.begin(name, bar)
    }

    /// Begins something of which nobody knows how long it takes. Shown only where
    /// stderr is a terminal; elsewhere a [`Progress::note`] says what is worth a line.
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
    /// How far it is.
    pub fn at(&self, position: u64, message: impl Into<Cow<'static, str>>) {
        self.bar.set_position(position);
        self.says(message);
    }

    /// What it is at.
    pub fn says(&self, message: impl Into<Cow<'static, str>>) {
        let message = message.into();
        let message = safe(&message);
        self.bar.set_message(match message.is_empty() {
            true => self.name.clone(),
            false => format!("{}  {message}", self.name),
        });
    }

    /// It is one further.
    pub fn advance(&self) {
        self.bar.inc(1);
    }

    /// The same thing goes on with so many of something else.
    pub fn next(&self, unit: &'static str, length: u64) {
        self.bar.set_style(counting(unit));
        self.bar.set_length(length);
        self.bar.reset();
    }

    /// It is over.
    pub fn done(self, message: &str) {
        if matches!(self.progress, Progress::Lines) && !message.is_empty() {
            eprintln!("{}: {}", self.name, safe(message));
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How much is done, at which rate, for how long, and for how long it will be. What it is comes
/// last, because that can be cut off.
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
    use indicatif::{InMemoryTerm, ProgressDrawTarget};

    use super::*;

    /// Bars on a terminal of that width.
    fn bars(width: u16) -> (InMemoryTerm, Progress) {
        let term = InMemoryTerm::new(10, width);
        let target = ProgressDrawTarget::term_like(Box::new(term.clone()));
        (term, Progress::Bars(MultiProgress::with_draw_target(target)))
    }

    #[test]
    fn a_bar_tells_how_far_how_fast_and_how_long() {
        let (term, progress) = bars(140);
        let step = progress.step("btree, 1 000 000 rows of 100 bytes", "rows", 1_000_000);
        step.at(250_000, "18.5 G instructions");
        step.bar.tick();
        let shown = term.contents();
        assert!(shown.starts_with("████░░░░░░░░░░░░  25 % "), "{shown}");
        assert!(shown.contains(" rows/s    0s, "), "{shown}");
        let what = " left  btree, 1 000 000 rows of 100 bytes  18.5 G instructions";
        assert!(shown.ends_with(what), "{shown}");
        step.next("cases", 12);
        step.at(3, "insert: middle 10");
        step.bar.tick();
        assert!(term.contents().contains("  25 % "), "{}", term.contents());
        assert!(term.contents().contains(" cases/s "), "{}", term.contents());
        step.done("");
        assert_eq!(term.contents(), "", "it leaves nothing behind");
    }

    #[test]
    fn a_bar_stays_in_its_line() {
        let (term, progress) = bars(80);
        let step = progress.step("btree, 1 000 000 rows of 100 bytes", "rows", 1_000_000);
        step.at(250_000, "18.5 G instructions");
        step.bar.tick();
        assert_eq!(term.contents().lines().count(), 1, "{}", term.contents());
    }
}
