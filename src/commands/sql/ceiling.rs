//! A ceiling for messages that no limit of instructions ends: their time, and the memory that they take.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use stablebench_replica::files;

use super::session::Session;
use crate::report::number::Binary;

/// The time between two looks.
const TICK: Duration = Duration::from_millis(100);

/// The most that a message may take on this machine.
#[derive(Clone, Copy, Debug)]
pub struct Ceiling {
    pub time: Duration,
    /// Bytes that the process grows by, where the system tells them.
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

/// Does work that is ended at a ceiling, if the replica can end messages.
pub fn below<T>(
    session: &mut Session,
    ceiling: Ceiling,
    work: impl FnOnce(&mut Session) -> T,
) -> (T, Option<Exceeded>) {
    let Some(halt) = session.switch() else { return (work(session), None) };
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
    let (worked, exceeded) = thread::scope(|scope| {
        let watching = scope.spawn(watch);
        let worked = work(session);
        drop(done);
        (worked, watching.join().ok().flatten())
    });
    if exceeded.is_some() {
        session.switch();
    }
    (worked, exceeded)
}

/// Returns the bytes of this process that are in memory, or 0 where the system does not tell them.
fn resident() -> u64 {
    let status = files::read("/proc/self/status".as_ref(), 1 << 20).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}
