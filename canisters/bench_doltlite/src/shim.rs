//! A function of POSIX that the file system lacks; `include/canister.h` has the engine call it.

use std::ffi::{CStr, c_char, c_int};
use std::fs;

/// `rename`, which puts the file in the place of another: `stable-fs` refuses where there is
/// one. Nobody sees the moment in which there is none, since a message is done as a whole or not
/// at all.
///
/// # Safety
///
/// Both are strings that end with a zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn stablebench_rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let path = |text: *const c_char| unsafe { CStr::from_ptr(text) }.to_str();
    let (Ok(from), Ok(to)) = (path(from), path(to)) else {
        return -1;
    };
    if fs::metadata(to).is_ok() && fs::remove_file(to).is_err() {
        return -1;
    }
    if fs::rename(from, to).is_ok() { 0 } else { -1 }
}
