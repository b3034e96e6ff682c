//! Progress on stderr: bars on a terminal, else a line per step, or nothing.
//!
//! Everything that may take longer than a second is a step. A step that took long in an earlier run
//! says so. The durations of earlier runs are kept in one small file of the cache; without a cache they are known
//! for this run only:
//!
//! ```text
//!   [["building canister bench", 63.2], …]     name and seconds, the last one measured at the end
//! ```
//!
//! The parts of a run are fixtures, or builds of a crate. A run shows about how long those that are left take:
//!
//! ```text
//!   rest = Σ expected seconds of the parts that are left × pace / threads − time since the last one
//!   pace = seconds that the parts took / seconds that were expected of them
//! ```
//!
//! The time that a part took in an earlier run is expected again. For others the proportions are
//! guessed, so that there is no estimate before the first part is done.

use std::borrow::Cow;
use std::fmt;
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};
use stablebench_replica::text::{note, safe};

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
pub struct ProgressStep {
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
    pub fn step(&self, name: &str, unit: &'static str, length: u64) -> ProgressStep {
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
    pub fn spinner(&self, name: &str) -> ProgressStep {
        let bar = ProgressBar::hidden();
        bar.set_style(style("{spinner} {elapsed:>4}  {wide_msg}"));
        let shown = match earlier_duration(name) {
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
    ) -> ProgressStep {
        let bar = ProgressBar::hidden();
        let write = move |_: &ProgressState, out: &mut dyn fmt::Write| {
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

    fn begin(&self, name: &str, bar: ProgressBar) -> ProgressStep {
        let name = safe(name);
        bar.set_message(name.clone().into_owned());
        let bar = match self {
            Self::Bars(bars) => bars.add(bar),
            Self::Lines | Self::Quiet => bar,
        };
        ProgressStep {
            progress: self.clone(),
            bar,
            name: name.clone().into_owned(),
            shown: name.into_owned(),
            began: None,
            short: None,
        }
    }
}

impl ProgressStep {
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
            keep_duration(&self.name, began.elapsed());
        }
        if matches!(self.progress, Progress::Lines) && !message.is_empty() {
            note(&format!("{}: {message}", self.name));
        }
    }
}

impl Drop for ProgressStep {
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
        move |state: &ProgressState, text: &mut dyn fmt::Write| {
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

/// Shorter steps need no progress, and are not kept.
pub const NOTABLE: Duration = Duration::from_secs(1);

/// The maximum number of kept durations.
const KEPT: usize = 300;

/// Durations by name, the last one measured at the end.
pub type Durations = Vec<(String, f64)>;

/// A function that adds a duration to the file.
type Save = Box<dyn Fn(&str, Duration) + Send>;

struct Known {
    durations: Durations,
    save: Option<Save>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known { durations: Vec::new(), save: None });

/// Uses the durations of earlier runs from now on. `save` is called with each new one.
pub fn remember_durations(durations: Durations, save: impl Fn(&str, Duration) + Send + 'static) {
    let mut known = known();
    for (name, seconds) in durations {
        set(&mut known.durations, &name, seconds);
    }
    known.save = Some(Box::new(save));
}

/// Returns the duration of a step's last run, if it was long enough to be kept.
pub fn earlier_duration(name: &str) -> Option<Duration> {
    let known = known();
    let (_, seconds) = known.durations.iter().find(|(other, _)| other == name)?;
    Duration::try_from_secs_f64(*seconds).ok()
}

/// Keeps the duration of a step that has ended.
pub fn keep_duration(name: &str, took: Duration) {
    if took < NOTABLE {
        // It was cached, and says nothing about the next time.
        return;
    }
    let mut known = known();
    set(&mut known.durations, name, took.as_secs_f64());
    if let Some(save) = &known.save {
        save(name, took);
    }
}

/// Reads the file; nothing if it is not such a file.
pub fn parse_durations(file: &[u8]) -> Durations {
    serde_json::from_slice(file).unwrap_or_default()
}

/// Returns the file with another duration.
pub fn with_duration(file: &[u8], name: &str, took: Duration) -> Vec<u8> {
    let mut durations = parse_durations(file);
    // Milliseconds are exact enough.
    set(&mut durations, name, (took.as_secs_f64() * 1e3).round() / 1e3);
    durations.drain(..durations.len().saturating_sub(KEPT));
    // Serializing this type does not fail.
    serde_json::to_vec(&durations).unwrap_or_default()
}

fn set(durations: &mut Durations, name: &str, seconds: f64) {
    durations.retain(|(other, _)| other != name);
    durations.push((name.to_owned(), seconds));
}

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A duration as people say it: `7 s`, `12 min`, `1 h 25 min`.
fn about(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let minutes = (seconds / 60.0).round() as u64;
    match (seconds, minutes) {
        (..=99.5, _) => format!("{seconds:.0} s"),
        (_, ..=99) => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// The parts of a run, and the time that they take.
#[derive(Debug)]
pub struct Rest {
    noun: &'static str,
    threads: usize,
    /// `true` if earlier runs tell how long all parts take.
    known: bool,
    done: Mutex<Elapsed>,
}

/// The expected work of a part: a share, and the seconds that it took in an earlier run.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub share: f64,
    pub before: Option<Duration>,
}

#[derive(Debug)]
struct Elapsed {
    left: usize,
    /// Expected seconds of the parts that are left.
    expected_left: f64,
    /// Expected and actual seconds of the parts that are done.
    expected: f64,
    took: f64,
    last: Instant,
}

/// The parts that are left, and about how long they take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Left {
    pub noun: &'static str,
    pub parts: usize,
    pub time: Option<Duration>,
}

impl Rest {
    /// Begins with parts of which none is done; `noun` names one of them.
    pub fn new(noun: &'static str, parts: &[Expected], threads: usize) -> Self {
        let known = parts.iter().all(|part| part.before.is_some());
        let expected_left = expected_seconds(parts).iter().sum();
        let done = Elapsed {
            left: parts.len(),
            expected_left,
            expected: 0.0,
            took: 0.0,
            last: Instant::now(),
        };
        Self { noun, threads, known, done: Mutex::new(done) }
    }

    /// Notes that a part is done, of which these seconds were expected. If it took no time, it
    /// was measured in the run that is resumed. Returns the rest.
    pub fn done(&self, expected: f64, took: Duration) -> Left {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.left = done.left.saturating_sub(1);
        done.expected_left = (done.expected_left - expected).max(0.0);
        if !took.is_zero() {
            done.expected += expected;
            done.took += took.as_secs_f64();
        }
        done.last = Instant::now();
        drop(done);
        self.left()
    }

    /// Returns the rest now.
    pub fn left(&self) -> Left {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let pace = match (done.expected > 0.0, self.known) {
            (true, _) => Some(done.took / done.expected),
            (false, true) => Some(1.0),
            (false, false) => None,
        };
        let threads = self.threads.clamp(1, done.left.max(1)) as f64;
        let time = pace.and_then(|pace| {
            let seconds = done.expected_left * pace / threads - done.last.elapsed().as_secs_f64();
            Duration::try_from_secs_f64(seconds.max(1.0)).ok()
        });
        Left { noun: self.noun, parts: done.left, time }
    }
}

/// Expected seconds of each part; those of unknown ones in proportion to the known ones.
pub fn expected_seconds(parts: &[Expected]) -> Vec<f64> {
    let (mut shares, mut total) = (0.0, 0.0);
    for Expected { share, before } in parts {
        if let Some(before) = before {
            shares += share;
            total += before.as_secs_f64();
        }
    }
    let each = if shares > 0.0 { total / shares } else { 1.0 };
    let seconds = |part: &Expected| match part.before {
        Some(before) => before.as_secs_f64(),
        None => part.share * each,
    };
    parts.iter().map(seconds).collect()
}

impl fmt::Display for Left {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { noun, parts, time } = self;
        let plural = if *parts == 1 { "" } else { "s" };
        write!(formatter, "{parts} {noun}{plural} left")?;
        match time {
            Some(time) => write!(formatter, ", about {}", about(*time)),
            None => Ok(()),
        }
    }
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
    fn shown(
        term: &InMemoryTerm,
        steps: &[&ProgressStep],
        expected: impl Fn(&str) -> bool,
    ) -> String {
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
        keep_duration("progress: a slow step", Duration::from_secs(63));
        let (term, progress) = bars(60);
        let step = progress.spinner("progress: a slow step");
        let end = "progress: a slow step (63 s last time)";
        let shown = shown(&term, &[&step], |text| text.ends_with(end));
        assert!(shown.ends_with(end), "{shown}");
        step.done("");
        let before = earlier_duration("progress: a slow step");
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

    #[test]
    fn the_file_keeps_the_last_duration_of_each_step() {
        let mut file = Vec::new();
        for (name, seconds) in [("a", 2), ("b", 3), ("a", 4)] {
            file = with_duration(&file, name, Duration::from_secs(seconds));
        }
        assert_eq!(String::from_utf8_lossy(&file), r#"[["b",3.0],["a",4.0]]"#);
        for at in 0..KEPT + 5 {
            file = with_duration(&file, &at.to_string(), Duration::from_secs(1));
        }
        assert_eq!(parse_durations(&file).len(), KEPT);
        assert_eq!(parse_durations(&file).last(), Some(&((KEPT + 4).to_string(), 1.0)));
        assert_eq!(parse_durations(b"no JSON"), [], "a damaged file is replaced");
    }

    #[test]
    fn only_notable_steps_are_known_later() {
        keep_duration("durations: short", Duration::from_millis(10));
        assert_eq!(earlier_duration("durations: short"), None);
        keep_duration("durations: long", Duration::from_secs(7));
        assert_eq!(earlier_duration("durations: long"), Some(Duration::from_secs(7)));
        keep_duration("durations: long", Duration::from_millis(10));
        assert_eq!(
            earlier_duration("durations: long"),
            Some(Duration::from_secs(7)),
            "it was cached"
        );
    }

    #[test]
    fn durations_are_rounded() {
        let said = [1.4, 63.0, 99.0, 100.0, 754.0, 5_100.0, 6_000.0];
        let said = said.map(|seconds| about(Duration::from_secs_f64(seconds)));
        assert_eq!(said, ["1 s", "63 s", "99 s", "2 min", "13 min", "85 min", "1 h 40 min"]);
    }

    const fn expected(share: f64, before: Option<u64>) -> Expected {
        let before = match before {
            Some(seconds) => Some(Duration::from_secs(seconds)),
            None => None,
        };
        Expected { share, before }
    }

    #[test]
    fn fixtures_without_an_earlier_run_have_the_pace_of_the_first_ones() {
        let fixtures = [expected(6.0, None), expected(2.0, None), expected(2.0, None)];
        let rest = Rest::new("fixture", &fixtures, 1);
        assert_eq!(rest.left().to_string(), "3 fixtures left");
        rest.done(6.0, Duration::from_secs(600));
        assert_eq!(rest.left().to_string(), "2 fixtures left, about 7 min");
        rest.done(2.0, Duration::from_secs(100));
        let Left { parts, time, .. } = rest.left();
        let seconds = time.unwrap().as_secs_f64();
        assert!(parts == 1 && (170.0..176.0).contains(&seconds), "{seconds}");
    }

    #[test]
    fn the_rest_is_known_from_earlier_runs_and_shared_by_threads() {
        let fixtures =
            [expected(1.0, Some(1_000)), expected(1.0, Some(3_000)), expected(1.0, None)];
        assert_eq!(expected_seconds(&fixtures), [1_000.0, 3_000.0, 2_000.0]);
        let rest = Rest::new("fixture", &fixtures[..2], 2);
        assert_eq!(rest.left().to_string(), "2 fixtures left, about 33 min");
        rest.done(1_000.0, Duration::from_secs(2_000));
        assert_eq!(rest.left().to_string(), "1 fixture left, about 1 h 40 min", "twice as slow");
    }

    #[test]
    fn a_rest_fits_sixty_columns() {
        let time = Some(Duration::from_secs(1_000_000));
        assert!(Left { noun: "fixture", parts: 1_000, time }.to_string().len() <= 60);
    }
}
