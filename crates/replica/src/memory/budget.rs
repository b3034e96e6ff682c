//! The mappings that memories may have.
//!
//! To Linux, each range of a file and each range of pages with access rights of its own is a mapping,
//! and a process has a limited number of them (`vm.max_map_count`). All memories of the process take
//! theirs from one [`Budget`]: a [`Claim`] is a part of it.
//!
//! ```text
//!   limit  ├─────────── memories ───────────┼── the rest ──┤   stacks, compiled code, the allocator
//!          ├─ files ─┼─ pages opened alone ─┤
//! ```
//!
//! If it runs out, idle instances are given up ([`idle`](super::idle)), the oldest first. Then opened
//! pages are closed, and memories cannot be mapped.

use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rustix::io::Errno;

use super::idle;

/// Mappings of a process if the system does not tell, which is the default of Linux.
const DEFAULT_LIMIT: usize = 65_530;

/// The system allows this process no more mappings of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no memory can be mapped: this process may have {limit} mappings (vm.max_map_count), and they \
     are in use; run fewer messages at once, or raise the limit: sysctl -w vm.max_map_count={}",
    limit.saturating_mul(4)
)]
pub struct NoMappings {
    /// Mappings that the process may have.
    pub limit: usize,
}

impl NoMappings {
    fn new() -> Self {
        Self { limit: limit() }
    }

    /// The error of a system call that was refused.
    pub fn because_of(error: Errno) -> io::Error {
        match error {
            Errno::NOMEM if cfg!(target_os = "linux") => Self::new().into(),
            other => other.into(),
        }
    }
}

impl From<NoMappings> for io::Error {
    fn from(error: NoMappings) -> Self {
        Self::new(io::ErrorKind::OutOfMemory, error)
    }
}

/// Mappings that this process may have.
fn limit() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        if !cfg!(target_os = "linux") {
            return usize::MAX;
        }
        let limit = crate::files::read_text(Path::new("/proc/sys/vm/max_map_count"), 64).ok();
        limit.and_then(|limit| limit.trim().parse().ok()).unwrap_or(DEFAULT_LIMIT)
    })
}

/// A number of mappings.
#[derive(Debug)]
struct Budget {
    most: usize,
    used: AtomicUsize,
}

impl Budget {
    const fn new(most: usize) -> Self {
        Self { most, used: AtomicUsize::new(0) }
    }

    /// The budget of all memories of this process.
    fn of_process() -> &'static Self {
        static BUDGET: OnceLock<Budget> = OnceLock::new();
        BUDGET.get_or_init(|| Self::new(limit() / 4 * 3))
    }

    /// Takes mappings if `rest` are left after that.
    fn take(&self, count: usize, rest: usize) -> bool {
        let most = self.most.saturating_sub(rest);
        let more = |used: usize| used.checked_add(count).filter(|used| *used <= most);
        self.used.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    fn give_back(&self, count: usize) {
        self.used.fetch_sub(count, Relaxed);
    }

    fn left(&self) -> usize {
        self.most.saturating_sub(self.used.load(Relaxed))
    }
}

/// Mappings that one memory may have, taken from the budget of the process.
#[derive(Debug)]
pub struct Claim {
    budget: &'static Budget,
    held: AtomicUsize,
}

impl Claim {
    /// Claims nothing.
    pub fn none() -> Self {
        Self { budget: Budget::of_process(), held: AtomicUsize::new(0) }
    }

    /// Claims more mappings. Idle instances are given up if too few are left.
    ///
    /// # Errors
    ///
    /// If too few are left even then.
    pub fn extend(&self, count: usize) -> Result<(), NoMappings> {
        while !self.try_extend(count) {
            if !idle::give_up_oldest() {
                return Err(NoMappings::new());
            }
        }
        Ok(())
    }

    /// Claims more mappings if they are left. Takes no lock and allocates nothing.
    pub fn try_extend(&self, count: usize) -> bool {
        self.take(count, 0)
    }

    /// Claims more mappings that can be done without. A quarter of the budget is left for memories of
    /// other messages, which cannot begin without. Takes no lock and allocates nothing.
    pub fn try_extend_further(&self, count: usize) -> bool {
        self.take(count, self.budget.most / 4)
    }

    fn take(&self, count: usize, rest: usize) -> bool {
        let taken = self.budget.take(count, rest);
        if taken {
            self.held.fetch_add(count, Relaxed);
        }
        taken
    }

    /// Gives back all but `count` mappings. Takes no lock and allocates nothing.
    pub fn shrink_to(&self, count: usize) {
        let before = self.held.fetch_min(count, Relaxed);
        self.budget.give_back(before.saturating_sub(count));
    }

    /// Number of mappings claimed.
    pub fn held(&self) -> usize {
        self.held.load(Relaxed)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

/// Gives up idle instances until `count` mappings are left for memories.
pub fn make_room(count: usize) {
    while Budget::of_process().left() < count && idle::give_up_oldest() {}
}

/// Makes a system call that maps memory or changes access rights. If the system has no mapping left,
/// idle instances are given up.
///
/// # Errors
///
/// If the system returns an error.
pub fn with_room<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Ok(value) => return Ok(value),
            Err(Errno::NOMEM) if idle::give_up_oldest() => {}
            Err(error) => return Err(NoMappings::because_of(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_do_not_exceed_the_budget() {
        static BUDGET: Budget = Budget::new(10);
        let claim = || Claim { budget: &BUDGET, held: AtomicUsize::new(0) };
        let (one, other) = (claim(), claim());
        assert!(one.try_extend(6) && !other.try_extend(5) && other.try_extend(4));
        assert!(!one.try_extend(1) && !one.try_extend(usize::MAX) && one.try_extend(0));
        one.shrink_to(8);
        assert_eq!((one.held(), BUDGET.left()), (6, 0));
        one.shrink_to(2);
        assert_eq!((one.held(), BUDGET.left()), (2, 4));
        assert!(!one.try_extend_further(3), "a quarter is left");
        assert!(one.try_extend_further(2));
        one.shrink_to(2);
        drop(other);
        assert_eq!(BUDGET.left(), 8);
    }

    #[test]
    fn threads_share_a_budget() {
        static BUDGET: Budget = Budget::new(1_000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let claim = Claim { budget: &BUDGET, held: AtomicUsize::new(0) };
                    for round in 0..10_000 {
                        if !claim.try_extend(7) || round % 100 == 0 {
                            claim.shrink_to(3);
                        }
                    }
                });
            }
        });
        assert_eq!(BUDGET.left(), 1_000);
    }

    #[test]
    fn the_error_names_the_limit_and_the_next_step() {
        let error = io::Error::from(NoMappings { limit: 65_530 });
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        let words = "no memory can be mapped: this process may have 65530 mappings \
                     (vm.max_map_count), and they are in use; run fewer messages at once, or raise \
                     the limit: sysctl -w vm.max_map_count=262120";
        assert_eq!(error.to_string(), words);
    }
}
