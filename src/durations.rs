//! Durations of steps in earlier runs, for the progress of later ones.
//!
//! ```text
//!   [["building canister bench", 63.2], …]     name and seconds, the last one measured at the end
//! ```
//!
//! They are kept in one small file of the cache. Without a cache they are known for this run only.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
}
