//! The address space of the process: reserved ranges, and the mappings that memories may have.
//!
//! To Linux, each range of a file and each range of pages with access rights of its own is a mapping,
//! and a process has a limited number of them (`vm.max_map_count`). All memories of the process take
//! theirs from one [`Budget`]: a [`Claim`] is a part of it, and each [`Space`] has one.
//!
//! ```text
//!   limit  ├─────────── memories ───────────┼── the rest ──┤   stacks, compiled code, the allocator
//!          ├─ files ─┼─ pages opened alone ─┤
//! ```
//!
//! Instances between messages hold mappings too: each waits in a [`Slot`]. If the budget runs out,
//! they are given up, the oldest first. Then opened pages are closed, and memories cannot be mapped.

use std::any::Any;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

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
            if !give_up_oldest() {
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
    while Budget::of_process().left() < count && give_up_oldest() {}
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
            Err(Errno::NOMEM) if give_up_oldest() => {}
            Err(error) => return Err(NoMappings::because_of(error)),
        }
    }
}

/// Largest number of things that wait: an instance reserves half a terabyte of the 128 terabytes of
/// address space.
const MOST_IDLE: usize = 100;

type Entries = Vec<(u64, Box<dyn Any + Send>)>;

/// All idle things of the process with the number of their slot, the one that waits longest first.
static IDLE: Mutex<Entries> = Mutex::new(Vec::new());

fn locked(idle: &Mutex<Entries>) -> MutexGuard<'_, Entries> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Drops the thing that waits longest. Returns false if there is none.
fn give_up_oldest() -> bool {
    take_oldest(&IDLE).is_some()
}

fn take_oldest(idle: &Mutex<Entries>) -> Option<(u64, Box<dyn Any + Send>)> {
    let mut idle = locked(idle);
    if idle.is_empty() { None } else { Some(idle.remove(0)) }
}

/// A slot for one thing that waits for its next use and holds mappings meanwhile. It is empty again if
/// the thing was given up.
pub struct Slot<T> {
    number: u64,
    idle: &'static Mutex<Entries>,
    holds: PhantomData<fn() -> T>,
}

impl<T: Any + Send> Slot<T> {
    fn of(idle: &'static Mutex<Entries>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { number: NEXT.fetch_add(1, Relaxed), idle, holds: PhantomData }
    }

    /// Takes the thing out of the slot.
    pub fn take(&self) -> Option<Box<T>> {
        let taken = {
            let mut idle = locked(self.idle);
            let place = idle.iter().position(|(number, _)| *number == self.number)?;
            idle.remove(place).1
        };
        taken.downcast().ok()
    }

    /// Stores a thing, unless the slot has one, as after two uses at once, or too many things are
    /// idle.
    pub fn put(&self, thing: Box<T>) {
        let mut idle = locked(self.idle);
        if idle.len() < MOST_IDLE && idle.iter().all(|(number, _)| *number != self.number) {
            idle.push((self.number, thing));
        } else {
            // Dropping it takes long.
            drop(idle);
            drop(thing);
        }
    }
}

impl<T: Any + Send> Default for Slot<T> {
    fn default() -> Self {
        Self::of(&IDLE)
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        let own = |(number, _): &mut (u64, _)| *number == self.number;
        let dropped: Vec<_> = locked(self.idle).extract_if(.., own).collect();
        drop(dropped);
    }
}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

/// A reserved range of addresses. It stays reserved as long as a mapping, its tracker or a word of it
/// exists.
#[derive(Debug)]
pub struct Space {
    base: NonNull<u8>,
    whole: usize,
    /// Number of bytes after these, which have access rights of their own.
    spare: usize,
    claim: Arc<Claim>,
}

// SAFETY: this value only says that the range is reserved; it does not access it.
unsafe impl Send for Space {}
// SAFETY: as for `Send`.
unsafe impl Sync for Space {}

impl Space {
    /// Reserves addresses that are inaccessible. `mappings` is the number that they can become when
    /// their access rights change.
    ///
    /// # Errors
    ///
    /// If the system has no such range, or no mappings left.
    pub fn reserve(whole: usize, mappings: usize) -> io::Result<Arc<Self>> {
        let claim = Claim::none();
        claim.extend(mappings)?;
        let (at, flags) = (std::ptr::null_mut(), MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a fresh range at an address of the system's choice.
        let base = with_room(|| unsafe { mmap_anonymous(at, whole, ProtFlags::empty(), flags) })?;
        let base =
            NonNull::new(base.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Arc::new(Self { base, whole, spare: 0, claim: Arc::new(claim) }))
    }

    /// Reserves addresses, and a mapping that can be given up ([`Space::give_up_spare`]).
    ///
    /// # Errors
    ///
    /// As [`Space::reserve`].
    pub fn reserve_with_spare(whole: usize, mappings: usize) -> io::Result<Arc<Self>> {
        let page = rustix::param::page_size();
        let whole = whole.next_multiple_of(page);
        let length = whole.checked_add(page);
        let length = length.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut space = Self::reserve(length, mappings + 1)?;
        if let Some(space) = Arc::get_mut(&mut space) {
            (space.whole, space.spare) = (whole, page);
            with_room(|| space.protect_spare(MprotectFlags::READ))?;
        }
        Ok(space)
    }

    /// Gives up a mapping, so that the rights of other pages can be changed if the system has none
    /// left. Takes no lock and allocates nothing.
    pub fn give_up_spare(&self) {
        let _ = self.protect_spare(MprotectFlags::empty());
    }

    fn protect_spare(&self, flags: MprotectFlags) -> rustix::io::Result<()> {
        if self.spare == 0 {
            return Ok(());
        }
        // SAFETY: nobody accesses these bytes.
        unsafe { mprotect(self.base.add(self.whole).as_ptr().cast(), self.spare, flags) }
    }

    /// Address of the first byte.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Number of bytes.
    pub fn whole(&self) -> usize {
        self.whole
    }

    /// The claim on the mappings of these addresses.
    pub fn claim(&self) -> &Arc<Claim> {
        &self.claim
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // SAFETY: this value reserved the range; no reference outlives it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.whole + self.spare) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

/// A word of a mapping, which a signal handler may change.
#[derive(Debug)]
pub struct Word {
    /// Keeps the address valid.
    _space: Arc<Space>,
    at: NonNull<AtomicI64>,
}

// SAFETY: the word is atomic, and its address is valid as long as this value.
unsafe impl Send for Word {}
// SAFETY: as for `Send`.
unsafe impl Sync for Word {}

impl Word {
    /// The word at an address.
    ///
    /// # Safety
    ///
    /// The address is that of an aligned word inside of `space` that stays accessible as long as this
    /// value, and that others change only as an atomic number.
    pub unsafe fn new(space: Arc<Space>, at: NonNull<AtomicI64>) -> Self {
        Self { _space: space, at }
    }

    /// The word.
    pub fn get(&self) -> &AtomicI64 {
        // SAFETY: guaranteed by the creator.
        unsafe { self.at.as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

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

    fn registry() -> &'static Mutex<Entries> {
        Box::leak(Box::default())
    }

    /// Two threads that return a thing at once: one of them is kept, more often than things can be.
    #[test]
    fn one_of_two_things_is_kept() {
        let idle = registry();
        let (slot, barrier) = (Slot::of(idle), Barrier::new(2));
        let alive = Arc::new(());
        for _ in 0..3 * MOST_IDLE {
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let thing = slot.take().unwrap_or_else(|| Box::new(Arc::clone(&alive)));
                        barrier.wait();
                        slot.put(thing);
                    });
                }
            });
            assert_eq!((locked(idle).len(), Arc::strong_count(&alive)), (1, 2));
        }
        assert!(slot.take().is_some() && slot.take().is_none());
    }

    #[test]
    fn a_slot_that_is_dropped_gives_up_its_thing() {
        let idle = registry();
        let alive = Arc::new(());
        let slots: Vec<Slot<Arc<()>>> = (0..MOST_IDLE + 5).map(|_| Slot::of(idle)).collect();
        slots.iter().for_each(|slot| slot.put(Box::new(Arc::clone(&alive))));
        assert_eq!(Arc::strong_count(&alive), 1 + MOST_IDLE, "there are not more");
        drop(slots);
        assert_eq!((locked(idle).len(), Arc::strong_count(&alive)), (0, 1));
    }

    #[test]
    fn the_oldest_is_given_up_first() {
        let idle = registry();
        let slots: Vec<Slot<u8>> = (0..3).map(|_| Slot::of(idle)).collect();
        for (slot, thing) in slots.iter().zip(0..) {
            slot.put(Box::new(thing));
        }
        // The first one is used once more.
        slots[0].put(slots[0].take().unwrap());
        let mut order = Vec::new();
        while let Some((number, _)) = take_oldest(idle) {
            order.push(slots.iter().position(|slot| slot.number == number));
        }
        assert_eq!(order, [Some(1), Some(2), Some(0)]);
        assert!(slots.iter().all(|slot| slot.take().is_none()));
    }
}
