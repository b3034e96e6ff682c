//! Address space of one memory during one message.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};

/// What a mapping allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading, and writing to pages that become the mapping's own.
    Private,
    /// Reading.
    ReadOnly,
}

impl Access {
    fn protection(self) -> ProtFlags {
        match self {
            Self::Private => ProtFlags::READ | ProtFlags::WRITE,
            Self::ReadOnly => ProtFlags::READ,
        }
    }
}

/// A reserved range of addresses of which the first `size` bytes may be used.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    size: usize,
    reserved: usize,
    whole: usize,
    access: Access,
}

// SAFETY: the range belongs to this value alone, wherever it is sent.
unsafe impl Send for Mapping {}
// SAFETY: through a shared reference it can only be read.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves addresses, none of them usable yet.
    ///
    /// # Errors
    ///
    /// If the system has no such range left.
    pub fn reserve(access: Access, reserved: usize, guard: usize) -> io::Result<Self> {
        let whole = reserved
            .checked_add(guard)
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?
            .max(1);
        // SAFETY: a fresh range at an address of the system's choice.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                whole,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        let base =
            NonNull::new(base.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { base, size: 0, reserved, whole, access })
    }

    fn at(&self, offset: usize) -> *mut c_void {
        debug_assert!(offset <= self.reserved);
        // SAFETY: callers pass offsets within the reserved range.
        unsafe { self.base.as_ptr().add(offset).cast() }
    }

    /// Lays `file` from `offset` on over the start, then zeros, and makes `size`
    /// bytes usable.
    ///
    /// # Errors
    ///
    /// If the system refuses the mapping.
    pub fn extend_with(&mut self, file: &File, offset: u64, size: usize) -> io::Result<()> {
        let in_file = file.metadata()?.len().saturating_sub(offset);
        let length = usize::try_from(in_file).unwrap_or(usize::MAX).min(size);
        self.lay(file, offset, 0..length)?;
        self.size = length;
        self.grow(size)
    }

    /// Lays a range of `file` over the same range of the mapping.
    ///
    /// # Errors
    ///
    /// If the system refuses the mapping.
    pub fn lay_over(&mut self, file: &File, bytes: Range<usize>) -> io::Result<()> {
        self.lay(file, bytes.start as u64, bytes)
    }

    fn lay(&mut self, file: &File, offset: u64, bytes: Range<usize>) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        assert!(bytes.end <= self.reserved, "outside the reserved range");
        // SAFETY: the range was reserved by this value and nobody else uses it.
        unsafe {
            mmap(
                self.at(bytes.start),
                bytes.len(),
                self.access.protection(),
                MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE,
                file,
                offset,
            )?;
        }
        Ok(())
    }

    /// Makes the first `size` bytes usable; new ones are zero.
    ///
    /// # Errors
    ///
    /// If `size` is more than was reserved.
    pub fn grow(&mut self, size: usize) -> io::Result<()> {
        if size > self.reserved {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        }
        if size > self.size {
            // SAFETY: the range was reserved by this value and was unusable so far.
            unsafe {
                mprotect(
                    self.at(self.size),
                    size - self.size,
                    MprotectFlags::from_bits_retain(self.access.protection().bits()),
                )?;
            }
            self.size = size;
        }
        Ok(())
    }

    /// Bytes that may be used.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes up to which the mapping can grow.
    pub fn reserved(&self) -> usize {
        self.reserved
    }

    /// Bytes behind `reserved` that are never usable.
    pub fn guard(&self) -> usize {
        self.whole - self.reserved
    }

    /// Address of the first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// The usable bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the first `size` bytes are mapped for reading.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.size) }
    }

    /// The usable bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        assert_eq!(self.access, Access::Private, "mapped for reading only");
        // SAFETY: the first `size` bytes are mapped for writing and are ours.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.size) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was reserved by this value; no reference outlives it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.whole) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}
