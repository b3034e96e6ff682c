//! POSIX functions as the engine expects them; `include/canister.h` makes it call these.
//!
//! `VACUUM` writes the database to another file and renames that file to the one that is still open.
//! `stable-fs` does not remove the last name of an open file. So the old file gets a second name
//! first, under which it is removed once it is closed:
//!
//! ```text
//!   DB/main.db  ──link──→  DB/replaced
//!   DB/main.db-gc-tmp  ──rename──→  DB/main.db
//! ```
//!
//! No other message sees the state between these steps: a message is executed completely or not at
//! all. The engine then syncs the directory, but `stable-fs` syncs only files.

use std::ffi::{CStr, c_char, c_int};
use std::fs::{self, File};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;

const REPLACED: &str = "DB/replaced";

/// Removes the replaced file, which is closed, if there is one.
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
/// Both arguments point to strings that end with a zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn stablebench_rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller ensures this.
    let path = |text: *const c_char| unsafe { CStr::from_ptr(text) }.to_str();
    match (path(from), path(to)) {
        (Ok(from), Ok(to)) if rename(from, to).is_ok() => 0,
        _ => -1,
    }
}

/// `fsync`, which does nothing for a directory.
#[unsafe(no_mangle)]
extern "C" fn stablebench_fsync(descriptor: c_int) -> c_int {
    unsafe extern "C" {
        safe fn fsync(descriptor: c_int) -> c_int;
    }
    // SAFETY: the engine has opened the file, and it is not closed here.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) { 0 } else { fsync(descriptor) }
}
