//! Ctrl-C: the first stops the run after the current message, the second immediately.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use stablebench_replica::text::note;

/// The longest time until Ctrl-C is noticed.
const TICK: Duration = Duration::from_millis(20);
/// A signal that comes this soon after the first is the same one: some programs send it to this process
/// and once more to its group.
const DOUBLED: Duration = Duration::from_millis(300);
/// The stack size of abandoned work in bytes: the usual size for `main`.
const STACK: usize = 8 << 20;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The time of the first signal.
static FIRST: OnceLock<Instant> = OnceLock::new();

/// The error of a run that the user stopped.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// `true` once the handler is registered, of which a process can have only one.
static REGISTERED: Mutex<bool> = Mutex::new(false);
/// `true` if the first Ctrl-C prints a note.
static ANNOUNCED: AtomicBool = AtomicBool::new(false);

/// Records Ctrl-C and the end of the session from now on, and prints nothing.
///
/// # Errors
///
/// If the system refuses the handler.
pub fn listen_quietly() -> anyhow::Result<()> {
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*registered {
        ctrlc::set_handler(|| {
            let first = *FIRST.get_or_init(Instant::now);
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                if first.elapsed() > DOUBLED {
                    stop();
                }
                return;
            }
            if ANNOUNCED.load(Ordering::Relaxed) {
                note("\nstopping after the current message; Ctrl-C again stops immediately");
            }
        })?;
        *registered = true;
    }
    Ok(())
}

/// Records Ctrl-C from now on instead of ending the process. Each command of a process may call it.
///
/// # Errors
///
/// If the system refuses the handler.
pub fn listen() -> anyhow::Result<()> {
    ANNOUNCED.store(true, Ordering::Relaxed);
    listen_quietly()
}

#[expect(clippy::disallowed_methods, reason = "a second Ctrl-C must not wait for main")]
fn stop() {
    std::process::exit(130);
}

/// Fails if Ctrl-C was pressed.
pub fn check() -> Result<(), Interrupted> {
    if INTERRUPTED.load(Ordering::Relaxed) { Err(Interrupted) } else { Ok(()) }
}

/// Does work that cannot be stopped on another thread, which is abandoned if Ctrl-C is pressed.
///
/// # Errors
///
/// [`Interrupted`], or an error if no thread can be started.
pub fn abandonable<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> anyhow::Result<T> {
    abandonable_if(work, check)
}

fn abandonable_if<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
    check: impl Fn() -> Result<(), Interrupted>,
) -> anyhow::Result<T> {
    let (done, waiting) = channel();
    let work = move || {
        // The receiver is gone after an interruption.
        let _ = done.send(work());
    };
    let thread = thread::Builder::new().stack_size(STACK).spawn(work)?;
    loop {
        match waiting.recv_timeout(TICK) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => check()?,
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("a thread that ends without a panic has sent its result"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_of_a_process_may_listen() {
        for _ in 0..2 {
            listen_quietly().unwrap();
            listen().unwrap();
        }
    }

    #[test]
    fn work_is_abandoned_after_ctrl_c() {
        let began = Instant::now();
        let pressed = || if began.elapsed() > TICK * 5 { Err(Interrupted) } else { Ok(()) };
        assert_eq!(abandonable_if(|| 7, pressed).unwrap(), 7);
        let endless = || thread::sleep(Duration::from_secs(600));
        let error = abandonable_if(endless, pressed).unwrap_err();
        assert!(error.is::<Interrupted>());
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    }
}
