//! Progress on stderr: bars where it is a terminal, a line a step where not.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Where progress goes.
#[derive(Clone, Debug)]
pub struct Progress {
    bars: Option<MultiProgress>,
}

/// One thing that takes its time.
#[derive(Debug)]
pub struct Step {
    bar: Option<ProgressBar>,
    name: String,
}

impl Progress {
    pub fn new() -> Self {
        Self { bars: std::io::stderr().is_terminal().then(MultiProgress::new) }
    }

    /// Says something once.
    pub fn note(&self, text: &str) {
        match &self.bars {
            Some(bars) => bars.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    /// Begins something of `length` units.
    pub fn step(&self, name: &str, length: u64) -> Step {
        let bar = self.bars.as_ref().map(|bars| {
            let style = ProgressStyle::with_template("{prefix:<16} {bar:30} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = ProgressBar::new(length).with_style(style).with_prefix(name.to_owned());
            bars.add(bar)
        });
        Step { bar, name: name.to_owned() }
    }

    /// Begins something of which nobody knows how long it takes. Shown only where
    /// stderr is a terminal; elsewhere a [`Progress::note`] says what is worth a line.
    pub fn spinner(&self, name: &str) -> Step {
        let bar = self.bars.as_ref().map(|bars| {
            let style = ProgressStyle::with_template("{spinner} {prefix} {msg} {elapsed}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner());
            let bar = ProgressBar::new_spinner().with_style(style).with_prefix(name.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bars.add(bar)
        });
        Step { bar, name: name.to_owned() }
    }
}

impl Step {
    /// How far it is.
    pub fn at(&self, position: u64, message: impl Into<Cow<'static, str>>) {
        if let Some(bar) = &self.bar {
            bar.set_position(position);
            bar.set_message(message);
        }
    }

    /// It is over.
    pub fn done(self, message: &str) {
        match &self.bar {
            Some(bar) => bar.finish_and_clear(),
            None if message.is_empty() => {}
            None => eprintln!("{}: {message}", self.name),
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
