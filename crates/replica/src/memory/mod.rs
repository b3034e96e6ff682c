//! Memories that are copied only where they are written.
//!
//! The committed content of a memory is an [`Image`]: files, one laid over the
//! other. A message works on a [`Mapping`] of the image, private to it:
//!
//! ```text
//!   mapping   ····▓▓····▓·   pages that the message wrote, its own
//!   layer 1       ░░░        pages committed since the fork
//!   layer 0   ████████████   what both forks share
//! ```
//!
//! Commit moves the changed pages into the top layer, or into a new one if the top layer
//! is shared with a fork, and takes them off the mapping, which then shows the layer's. So
//! the next message finds a mapping of which no page is its own, and need not make one.
//! Taking off the pages without moving them undoes the message.

#[expect(unsafe_code, reason = "the engine takes memories on trust")]
mod creator;
mod file;
mod image;
#[expect(unsafe_code, reason = "address space is mapped, and lent out as slices")]
mod mapping;
pub mod pages;
#[cfg(test)]
mod tests;
#[expect(unsafe_code, reason = "access rights are changed, and signals handled")]
mod touch;
mod written;

pub use creator::{Creator, prepare};
pub use file::present;
pub use image::{Image, Shown};
pub use mapping::{Mapping, Rights, copy_ahead, discard_all};
pub use touch::{Access, PageTracker, TouchPrices, Touches, faulted};
pub use written::written_pages;

use crate::units::OS_PAGE;

/// Bytes in a page, as a machine word.
pub const PAGE: usize = OS_PAGE as usize;
