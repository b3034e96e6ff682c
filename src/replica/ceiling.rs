//! Limits of messages beyond those of the rules.
//!
//! A ceiling is for messages that no limit of instructions ends: their time, and the memory that they take.
//!
//! A limit that is proposed for the network is how much of the heap a message may touch. The rules do not
//! contain it. Today no heap is larger than the limit, so that a message can only exceed it once the
//! network, and these rules, allow larger heaps. Source: `dfinity/ic` #11400, which was open in October
//! 2026.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use stablebench_replica::{Difference, files};

use super::{Answer, Canister, Copied, Cost, Inside, Messages, PageCosts};
use crate::report::number::{Binary, Grouped};

/// The time between two checks.
const TICK: Duration = Duration::from_millis(100);

/// The most that a message may take on this machine.
#[derive(Clone, Copy, Debug)]
pub struct Ceiling {
    pub time: Duration,
    /// Bytes by which the process may grow, where the system reports its size.
    pub memory: u64,
}

/// A message went beyond its ceiling, and had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    #[error("it was ended after {} s, and had no effect: does it have an end?", .0.as_secs())]
    Time(Duration),
    #[error("it was ended after it had taken {} of memory, and had no effect: does it have an end?", Binary(*.0))]
    Memory(u64),
}

impl Ceiling {
    /// The ceiling of a message of a setup. A million rows take seconds.
    pub const SETUP: Self = Self { time: Duration::from_secs(15 * 60), memory: 4 << 30 };

    /// The ceiling that finds a single statement without an end.
    #[must_use]
    pub fn short(self) -> Self {
        Self { time: self.time.min(Duration::from_secs(20)), ..self }
    }
}

/// A canister whose updates are ended at a ceiling, if the replica can end messages. The error is
/// [`Exceeded`] then.
pub struct Below<'a> {
    canister: &'a mut dyn Canister,
    ceiling: Ceiling,
}

impl<'a> Below<'a> {
    pub fn new(canister: &'a mut dyn Canister, ceiling: Ceiling) -> Self {
        Self { canister, ceiling }
    }

    /// Sends an update. Time and memory are checked meanwhile.
    fn send(&mut self, update: impl FnOnce(&mut dyn Canister) -> Result<Answer>) -> Result<Answer> {
        let Some(halt) = self.canister.switch() else { return update(self.canister) };
        let ceiling = self.ceiling;
        let (done, waiting) = channel::<()>();
        let (began, before) = (Instant::now(), resident());
        let watch = move || {
            while waiting.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let exceeded = if began.elapsed() > ceiling.time {
                    Exceeded::Time(ceiling.time)
                } else if resident().saturating_sub(before) > ceiling.memory {
                    Exceeded::Memory(ceiling.memory)
                } else {
                    continue;
                };
                halt.halt();
                return Some(exceeded);
            }
            None
        };
        let (answer, exceeded) = thread::scope(|scope| {
            let watching = scope.spawn(watch);
            let answer = update(self.canister);
            drop(done);
            (answer, watching.join().ok().flatten())
        });
        let Some(exceeded) = exceeded else { return answer };
        // The next message is not ended.
        self.canister.switch();
        match answer {
            // It ended by itself before it was ended.
            Ok(answer) if answer.outcome.is_ok() => Ok(answer),
            _ => Err(exceeded.into()),
        }
    }
}

impl Messages for Below<'_> {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.send(|canister| canister.update(method, argument))
    }

    fn measure(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.send(|canister| canister.measure(method, argument))
    }

    fn measure_query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.canister.measure_query(method, argument)
    }

    fn call_id(&mut self) -> u64 {
        self.canister.call_id()
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.canister.query(method, argument)
    }

    fn query_all(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.canister.query_all(method, argument)
    }

    fn difference(&self) -> Result<Option<Difference>> {
        self.canister.difference()
    }

    fn copies(&self) -> Option<[Copied; 2]> {
        self.canister.copies()
    }

    fn upgrade(&mut self) -> Result<Cost> {
        self.canister.upgrade()
    }
}

/// Returns the bytes of this process that are in memory, or 0 where the system does not report them.
fn resident() -> u64 {
    let status = files::read("/proc/self/status".as_ref(), 1 << 20).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}

/// Wasm pages of the heap that a message may touch: 6 GiB.
const HEAP_PAGES: u64 = (6 << 30) >> 16;

/// Returns a warning if a message touched more of the heap than the proposed limit allows.
pub fn heap_warning(name: &str, inside: &Inside) -> Option<String> {
    let pages = inside.pages.as_ref().and_then(|PageCosts { touched, .. }| touched.as_ref())?;
    (pages.heap > HEAP_PAGES).then(|| {
        format!(
            "{name} touched {} Wasm pages of the heap in one message; a limit that is proposed for \
             the network allows {} (6 GiB)",
            Grouped(pages.heap),
            Grouped(HEAP_PAGES)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::TouchedPages;

    #[test]
    fn more_than_six_gib_are_warned_about() {
        let touching = |heap| {
            let touched = Some(TouchedPages { heap, ..TouchedPages::default() });
            let pages = Some(PageCosts { touched, ..PageCosts::default() });
            heap_warning("scan", &Inside { pages, ..Inside::default() })
        };
        assert_eq!(touching(98_304), None);
        let expected = "scan touched 98 305 Wasm pages of the heap in one message; a limit that is \
                        proposed for the network allows 98 304 (6 GiB)";
        assert_eq!(touching(98_305).as_deref(), Some(expected));
        // Older rules and older results do not tell.
        assert_eq!(heap_warning("scan", &Inside::default()), None);
    }
}
