//! Reserved address space, and words in it.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

use super::budget::{Claim, with_room};

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
