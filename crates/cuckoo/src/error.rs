/// The reason why a table cannot be built or opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A key is smaller than the one before it.
    #[error("item {item} is not in order: its key is smaller than the one before it")]
    NotSorted {
        /// The item, counted from 0 over the whole build.
        item: u64,
    },
    /// A key occurs twice.
    #[error("item {item} has the same key as the one before it")]
    Duplicate {
        /// The item, counted from 0 over the whole build.
        item: u64,
    },
    /// No place was found for a key within the plan's bound.
    #[error(
        "item {item} finds no place: {searched} buckets were searched, and all are full. \
         The table is {} % full ({item} items in {buckets} buckets): build it with more \
         buckets, larger blocks, or a longer search",
        percent(*.item, *.buckets)
    )]
    CannotPlace {
        /// The item, counted from 0 over the whole build, and the number of items placed.
        item: u64,
        /// The buckets that the plan gave the table.
        buckets: u64,
        /// The number of buckets that were searched for one that could be emptied.
        searched: u64,
    },
    /// An impossible plan.
    #[error("a table needs one bucket or more, blocks of one or more, and fewer than 2^64 bytes")]
    UnsoundPlan,
    /// The memory cannot grow as far as needed.
    #[error("the memory cannot grow to {pages} pages of 64 KiB")]
    OutOfMemory {
        /// The wasm pages needed.
        pages: u64,
    },
    /// The memory for a new table is not empty.
    #[error("the memory is not empty; replace() builds over an older table")]
    NotEmpty,
    /// The memory has no table.
    #[error("the memory has no cuckoo table")]
    Foreign,
    /// The table has an unknown version.
    #[error("the table has version {found}; this crate knows version {known}")]
    Version {
        /// Its version.
        found: u8,
        /// The version known here.
        known: u8,
    },
    /// Keys or values have other lengths than the types that the table is opened with.
    #[error(
        "the table has keys of {key} and values of {value} bytes, not {key_asked} and \
         {value_asked}"
    )]
    Lengths {
        /// Bytes of its keys.
        key: u32,
        /// Bytes of its values.
        value: u32,
        /// Bytes of the keys asked for.
        key_asked: u32,
        /// Bytes of the values asked for.
        value_asked: u32,
    },
    /// The header's checksum is not that of its bytes.
    #[error("the table's header is damaged")]
    Damaged,
    /// The memory ends before the table does.
    #[error("the table takes {needed} bytes, and its memory has {found}")]
    Truncated {
        /// The bytes of the table according to its header.
        needed: u64,
        /// The bytes of the memory.
        found: u64,
    },
    /// The table was not finished.
    #[error("the table is still being built: {items} items so far")]
    Unfinished {
        /// Items placed so far.
        items: u64,
    },
    /// A finished table cannot be added to.
    #[error("the table is finished: nothing can be added")]
    Finished,
}

/// A share in percent with two decimals.
fn percent(items: u64, buckets: u64) -> String {
    let hundredths = u128::from(items) * 10_000 / u128::from(buckets.max(1));
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}
