//! The terminal's echo of control characters while a statement is executed.

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The terminal of standard input shows no `^C` for Ctrl-C, until this is dropped. Otherwise it shows it
/// on the line below a progress bar, where the bar would be cleared instead of on its own.
pub struct WithoutSigns {
    before: Option<Termios>,
}

impl WithoutSigns {
    pub fn new() -> Self {
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).ok();
        if let Some(mut without) = before.clone() {
            without.local_modes.remove(LocalModes::ECHOCTL);
            // The terminal may be gone.
            let _ = tcsetattr(&stdin, OptionalActions::Now, &without);
        }
        Self { before }
    }
}

impl Drop for WithoutSigns {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}
