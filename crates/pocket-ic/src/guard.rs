//! Panics of the clients as errors, told once and by us.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}
static HOOK: Once = Once::new();

/// Does the work; what it says in panicking is the error. The panic is not printed.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                before(panic);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    // The work is a request to another process: nothing here is left half done.
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    done.map_err(|panic| said(&*panic))
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_words() {
        assert_eq!(guarded(|| 1), Ok(1));
        assert_eq!(guarded(|| panic!("plain")), Err::<(), _>("plain".to_owned()));
        assert_eq!(guarded(|| panic!("with {}", 1)), Err::<(), _>("with 1".to_owned()));
    }
}
