//! Ctrl-C: the first ends the run after the message at hand, the second at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// How long it may take until Ctrl-C is seen.
const TICK: Duration = Duration::from_millis(20);
/// Bytes of the stack of work that is left behind: as much as `main` usually has.
const STACK: usize = 8 << 20;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The user wants the run to end.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// From now on Ctrl-C is noted instead of ending the process.
pub fn listen() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            stop();
        }
        eprintln!("\nstopping after the message at hand; Ctrl-C again stops at once");
    })?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a second Ctrl-C must not wait for main")]
fn stop() {
    std::process::exit(130);
}

/// Fails once Ctrl-C was pressed.
pub fn check() -> Result<(), Interrupted> {
    if INTERRUPTED.load(Ordering::Relaxed) { Err(Interrupted) } else { Ok(()) }
}

/// Does work that cannot be stopped on a thread of its own, which is left behind once Ctrl-C was
/// pressed.
///
/// # Errors
///
/// [`Interrupted`], or if there are no more threads.
pub fn leaving<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> anyhow::Result<T> {
    leaving_if(work, check)
}

fn leaving_if<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
    check: impl Fn() -> Result<(), Interrupted>,
) -> anyhow::Result<T> {
    let (done, waiting) = channel();
    let work = move || {
        // Who was interrupted does not wait any more.
        let _ = done.send(work());
    };
    let thread = thread::Builder::new().stack_size(STACK).spawn(work)?;
    loop {
        match waiting.recv_timeout(TICK) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => check()?,
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("a thread that ends in order has sent what it did"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn work_is_waited_for_until_ctrl_c() {
        let began = Instant::now();
        let pressed = || if began.elapsed() > TICK * 5 { Err(Interrupted) } else { Ok(()) };
        assert_eq!(leaving_if(|| 7, pressed).unwrap(), 7);
        let endless = || thread::sleep(Duration::from_secs(600));
        let error = leaving_if(endless, pressed).unwrap_err();
        assert!(error.is::<Interrupted>());
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    }
}
