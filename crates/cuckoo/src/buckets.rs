//! The buckets of a table, in its memory.

use crate::header::Header;
use crate::shape::Shape;
use ic_stable_structures::Memory;

/// The memory, and where in it the buckets are.
pub(crate) struct Buckets<M> {
    pub memory: M,
    pub shape: Shape,
    start: u64,
    bucket_bytes: u64,
}

impl<M: Memory> Buckets<M> {
    /// The memory is known to be as large as the header says.
    pub fn new(memory: M, header: &Header) -> Self {
        let Header { lengths, shape, .. } = header;
        Self { memory, shape: *shape, start: lengths.header(), bucket_bytes: lengths.bucket() }
    }

    /// A buffer as long as a block.
    pub fn buffer(&self) -> Vec<u8> {
        vec![0; usize::from(self.shape.block) * self.bucket_bytes as usize]
    }

    /// Reads buckets from a first one on, as many as fill `bytes`.
    #[inline]
    pub fn read(&self, first: u64, bytes: &mut [u8]) {
        self.memory.read(self.start + first * self.bucket_bytes, bytes);
    }

    /// Writes one bucket.
    pub fn write(&self, bucket: u64, item: &[u8]) {
        self.memory.write(self.start + bucket * self.bucket_bytes, item);
    }
}
