//! Durations of steps in earlier runs, for the progress of later ones, and an estimate of the time until a
//! run ends.
//!
//! ```text
//!   [["building canister bench", 63.2], …]     name and seconds, the last one measured at the end
//! ```
//!
//! They are kept in one small file of the cache. Without a cache they are known for this run only.
//!
//! The parts of a run are fixtures, or builds of a crate:
//!
//! ```text
//!   rest = Σ expected seconds of the parts that are left × pace / threads − time since the last one
//!   pace = seconds that the parts took / seconds that were expected of them
//! ```
//!
//! The time that a part took in an earlier run is expected again. For others the proportions are
//! guessed, so that there is no estimate before the first part is done.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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
pub fn remember(durations: Durations, save: impl Fn(&str, Duration) + Send + 'static) {
    let mut known = known();
    for (name, seconds) in durations {
        set(&mut known.durations, &name, seconds);
    }
    known.save = Some(Box::new(save));
}

/// Returns the duration of a step's last run, if it was long enough to be kept.
pub fn before(name: &str) -> Option<Duration> {
    let known = known();
    let (_, seconds) = known.durations.iter().find(|(other, _)| other == name)?;
    Duration::try_from_secs_f64(*seconds).ok()
}

/// Keeps the duration of a step that has ended.
pub fn ended(name: &str, took: Duration) {
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
pub fn parse(file: &[u8]) -> Durations {
    serde_json::from_slice(file).unwrap_or_default()
}

/// Returns the file with another duration.
pub fn with(file: &[u8], name: &str, took: Duration) -> Vec<u8> {
    let mut durations = parse(file);
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
pub fn about(duration: Duration) -> String {
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
        let expected_left = seconds(parts).iter().sum();
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
pub fn seconds(parts: &[Expected]) -> Vec<f64> {
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
    use super::*;

    #[test]
    fn the_file_keeps_the_last_duration_of_each_step() {
        let mut file = Vec::new();
        for (name, seconds) in [("a", 2), ("b", 3), ("a", 4)] {
            file = with(&file, name, Duration::from_secs(seconds));
        }
        assert_eq!(String::from_utf8_lossy(&file), r#"[["b",3.0],["a",4.0]]"#);
        for at in 0..KEPT + 5 {
            file = with(&file, &at.to_string(), Duration::from_secs(1));
        }
        assert_eq!(parse(&file).len(), KEPT);
        assert_eq!(parse(&file).last(), Some(&((KEPT + 4).to_string(), 1.0)));
        assert_eq!(parse(b"no JSON"), [], "a damaged file is replaced");
    }

    #[test]
    fn only_notable_steps_are_known_later() {
        ended("durations: short", Duration::from_millis(10));
        assert_eq!(before("durations: short"), None);
        ended("durations: long", Duration::from_secs(7));
        assert_eq!(before("durations: long"), Some(Duration::from_secs(7)));
        ended("durations: long", Duration::from_millis(10));
        assert_eq!(before("durations: long"), Some(Duration::from_secs(7)), "it was cached");
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
        assert_eq!(seconds(&fixtures), [1_000.0, 3_000.0, 2_000.0]);
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
