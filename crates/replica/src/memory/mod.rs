//! Copy-on-write memories.
//!
//! The committed content of a memory is an [`Image`]: files stacked in layers. A message works on a
//! private [`Mapping`] of the image:
//!
//! ```text
//!   mapping   ····▓▓····▓····   private pages that the message wrote
//!   layer 1       ░░░           pages committed since the fork
//!   layer 0   ███████████       shared with the fork
//! ```
//!
//! Pages in no layer were never written and are zero: the mapping has no file there, so that reading
//! them takes no space and a first write copies nothing.
//!
//! Commit moves the changed pages into the top layer, or into a new one if the top layer is shared
//! with a fork, and discards them from the mapping, which then shows the layer's pages. The next
//! message can use the same mapping. Discarding the pages without moving them undoes the message.
//! [`os`] has what differs between operating systems.

mod image;
#[expect(unsafe_code, reason = "maps address space, and lends it out as slices and to the engine")]
mod mapping;
pub mod os;
pub mod pages;
#[expect(unsafe_code, reason = "reserves addresses, and lends out words of them")]
mod space;
#[expect(unsafe_code, reason = "changes access rights and handles signals")]
mod touch;

pub use image::{Image, MappingState};
pub use mapping::{Creator, Mapping, Rights, prepare};
pub use pages::PAGE;
pub use space::{Claim, NoMappings, Slot, Word};
pub use touch::{Access, PageTracker, TouchPrices, Touches, faulted};
