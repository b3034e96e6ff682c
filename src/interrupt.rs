//! Ctrl-C: the first ends the run after the message at hand, the second at once.

use std::sync::atomic::{AtomicBool, Ordering};

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
