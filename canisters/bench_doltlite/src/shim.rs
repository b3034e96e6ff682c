//! Functions of POSIX as the engine expects them; `include/canister.h` has it call these.
//!
//! `VACUUM` writes the database into another file, which `rename` then puts into the place of the one
//! that is still open. `stable-fs` takes an open file's last name from nobody. So it gets a
//! second name first, under which it is removed once it is closed:
//!
//! ```text
//!   DB/main.db  ──link──→  DB/replaced
//!   DB/main.db-gc-tmp  ──rename──→  DB/main.db
//! ```
//!
//! What is between these steps nobody sees: a message is done as a whole or not at all. Then it
//! syncs the folder, and `stable-fs` knows of files only.

use std::ffi::{CStr, c_char, c_int};
use std::fs::{self, File};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;

const REPLACED: &str = "DB/replaced";

/// Removes the file that was replaced, where one was, and is closed.
pub fn remove_replaced() -> io::Result<()> {
    match fs::remove_file(REPLACED) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn rename(from: &str, to: &str) -> io::Result<()> {
    remove_replaced()?;
    if fs::metadata(to).is_ok() {
        fs::hard_link(to, REPLACED)?;
    }
    fs::rename(from, to)
}

/// `rename` of POSIX, without `errno`.
///
/// # Safety
///
/// Both are strings that end with a zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn stablebench_rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let path = |text: *const c_char| unsafe { CStr::from_ptr(text) }.to_str();
    match (path(from), path(to)) {
        (Ok(from), Ok(to)) if rename(from, to).is_ok() => 0,
        _ => -1,
    }
}

/// `fsync`, which has nothing to do for a folder.
#[unsafe(no_mangle)]
extern "C" fn stablebench_fsync(descriptor: c_int) -> c_int {
    unsafe extern "C" {
        safe fn fsync(descriptor: c_int) -> c_int;
    }
    // SAFETY: the engine has it open, and it is not closed here.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) { 0 } else { fsync(descriptor) }
}
