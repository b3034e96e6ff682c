//! Ctrl-C: the first stops the run after the current message, the second immediately.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::flag::register_conditional_shutdown;
use stablebench_replica::text::note;

/// The longest time until Ctrl-C is noticed.
const TICK: Duration = Duration::from_millis(20);
/// A signal that comes this soon after the first repeats it: some programs send it to this process
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

/// A function that ends the work under way of a program that then goes on.
type Stop = Box<dyn Fn() + Send>;
/// The work under way, in a program that goes on after it.
static WORK: Mutex<Option<Stop>> = Mutex::new(None);
/// `true` if Ctrl-C ends the work under way instead of the program.
static WORK_ONLY: AtomicBool = AtomicBool::new(false);
/// `true` if Ctrl-C has ended the work under way.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Does work that Ctrl-C ends by a call of `stop` on another thread. The next Ctrl-C ends the program
/// if the work goes on, or if there is none. Returns the work's result, and `true` if it was ended.
///
/// # Errors
///
/// If the system refuses the handler.
pub fn stoppable<T>(
    stop: impl Fn() + Send + 'static,
    work: impl FnOnce() -> T,
) -> anyhow::Result<(T, bool)> {
    WORK_ONLY.store(true, Ordering::Relaxed);
    listen_quietly()?;
    static SHUT: AtomicBool = AtomicBool::new(false);
    if !SHUT.swap(true, Ordering::Relaxed) {
        // What ends the session ends the program, too.
        for (signal, code) in [(SIGTERM, 143), (SIGHUP, 129)] {
            register_conditional_shutdown(signal, code, Arc::new(AtomicBool::new(true)))?;
        }
    }
    let set =
        |stop| std::mem::replace(&mut *WORK.lock().unwrap_or_else(PoisonError::into_inner), stop);
    ENDED.store(false, Ordering::Relaxed);
    // Work may be a part of other work.
    let around = set(Some(Box::new(stop)));
    let done = work();
    drop(set(around));
    Ok((done, ENDED.swap(false, Ordering::Relaxed)))
}

/// Fails if Ctrl-C has ended the work under way.
pub fn check_work() -> Result<(), Interrupted> {
    if ENDED.load(Ordering::Relaxed) { Err(Interrupted) } else { Ok(()) }
}

/// Ends the work under way. Returns `false` if there is none, or if that was tried before.
fn end_work() -> bool {
    match &*WORK.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(end) if !ENDED.swap(true, Ordering::Relaxed) => {
            end();
            true
        }
        _ => false,
    }
}

/// Records Ctrl-C and the end of the session from now on, and prints nothing.
///
/// # Errors
///
/// If the system refuses the handler.
pub fn listen_quietly() -> anyhow::Result<()> {
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*registered {
        ctrlc::set_handler(|| {
            if WORK_ONLY.load(Ordering::Relaxed) {
                static TRIED: Mutex<Option<Instant>> = Mutex::new(None);
                let mut tried = TRIED.lock().unwrap_or_else(PoisonError::into_inner);
                match end_work() {
                    true => *tried = Some(Instant::now()),
                    false if tried.is_none_or(|tried| tried.elapsed() > DOUBLED) => stop(),
                    false => {}
                }
                return;
            }
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
    fn work_is_ended_by_its_own_means() {
        let (end, ended) = channel();
        let work = move || {
            assert!(end_work() && !end_work());
            ended.recv_timeout(Duration::from_secs(60))
        };
        let stop = move || end.send(()).unwrap();
        assert_eq!(stoppable(stop, work).unwrap(), (Ok(()), true));
        assert!(!end_work());
        assert_eq!(stoppable(|| (), || 7).unwrap(), (7, false));
        WORK_ONLY.store(false, Ordering::Relaxed);
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
