//! The tables of the suite: a shape of key, a place, and whether rows are changed.

use crate::job::{KeyShape, SysbenchWorkload};
use crate::work::{SHAPES, writes};
use clap::ValueEnum;
use stablebench_protocol::Storage;

/// The place of the tables, and the extent of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// On the heap, as :memory:; a message is a transaction.
    Memory,
    /// In stable memory; a message is a transaction.
    Stable,
    /// In stable memory; each statement is a transaction.
    Autocommit,
}

const PLACES: [Place; 3] = [Place::Memory, Place::Stable, Place::Autocommit];

/// A table of the published layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    pub shape: KeyShape,
    pub place: Place,
    pub writes: bool,
}

impl Section {
    /// All 24, in the published order.
    pub fn all() -> impl Iterator<Item = Self> {
        SHAPES.into_iter().flat_map(|shape| {
            PLACES.into_iter().flat_map(move |place| {
                [false, true].into_iter().map(move |writes| Self { shape, place, writes })
            })
        })
    }

    /// The section of a workload.
    pub fn of(shape: KeyShape, place: Place, workload: SysbenchWorkload) -> Self {
        Self { shape, place, writes: writes(workload) }
    }

    /// The name in results: `integer memory reads`, …
    pub fn name(self) -> String {
        let place = match self.place {
            Place::Memory => "memory",
            Place::Stable => "stable",
            Place::Autocommit => "autocommit",
        };
        format!("{} {place} {}", shape_name(self.shape), self.kind())
    }

    /// `reads` or `writes`.
    pub fn kind(self) -> &'static str {
        if self.writes { "writes" } else { "reads" }
    }

    /// The title in tables.
    pub fn title(self) -> String {
        let shape = match self.shape {
            KeyShape::Integer => "INTEGER keys",
            KeyShape::Composite => "composite keys (a, b) WITHOUT ROWID",
            KeyShape::Blob => "BLOB keys of 16 bytes",
            KeyShape::Text => "TEXT keys of 32 digits",
        };
        format!("{shape}, {}, {}", self.place_title(), self.kind())
    }

    /// The place of its tables.
    pub fn place_title(self) -> &'static str {
        match self.place {
            Place::Memory => "in memory",
            Place::Stable => "on stable memory",
            Place::Autocommit => "on stable memory, each statement a transaction",
        }
    }
}

/// The title of a section, from its name in results.
pub fn describe(name: &str) -> Option<String> {
    Section::all().find(|section| section.name() == name).map(Section::title)
}

/// One word for a shape.
pub fn shape_name(shape: KeyShape) -> &'static str {
    match shape {
        KeyShape::Integer => "integer",
        KeyShape::Composite => "composite",
        KeyShape::Blob => "blob",
        KeyShape::Text => "text",
    }
}

/// The place of a database.
pub fn storage_name(storage: Storage) -> &'static str {
    match storage {
        Storage::Heap => "in memory",
        Storage::Stable => "on stable memory",
    }
}
