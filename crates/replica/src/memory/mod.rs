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
//! Commit moves the written pages into the top layer, or into a new one if the
//! top layer is shared with a fork. Dropping the mapping undoes the message.

#[expect(unsafe_code, reason = "the engine takes memories on trust")]
mod creator;
mod file;
mod image;
#[expect(unsafe_code, reason = "address space is mapped, and lent out as slices")]
mod mapping;
#[cfg(test)]
mod tests;
mod written;

pub use creator::{Creator, prepare};
pub use image::Image;
pub use mapping::Mapping;
pub use written::written_pages;

use crate::units::OS_PAGE;

/// Bytes in a page, as a machine word.
pub const PAGE: usize = OS_PAGE as usize;
