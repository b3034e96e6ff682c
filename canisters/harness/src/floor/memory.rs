/// Stable memory with nothing in between, in wasm pages of 64 KiB.
pub trait RawMemory {
    /// How many pages there are.
    fn pages(&self) -> u64;

    /// Adds pages, filled with zeros; tells whether there was room.
    fn grow(&mut self, pages: u64) -> bool;

    /// Writes within the pages there are.
    fn write(&mut self, offset: u64, bytes: &[u8]);

    /// Reads within the pages there are.
    fn read(&self, offset: u64, bytes: &mut [u8]);
}

/// The canister's stable memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct StableMemory;

impl RawMemory for StableMemory {
    fn pages(&self) -> u64 {
        ic_cdk::api::stable_size()
    }

    fn grow(&mut self, pages: u64) -> bool {
        ic_cdk::api::stable_grow(pages) != u64::MAX
    }

    #[inline]
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        ic_cdk::api::stable_write(offset, bytes);
    }

    #[inline]
    fn read(&self, offset: u64, bytes: &mut [u8]) {
        ic_cdk::api::stable_read(offset, bytes);
    }
}
