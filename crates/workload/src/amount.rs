use std::ops::AddAssign;

/// The size of the work of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Rows written, found, removed or counted.
    pub rows: u64,
    /// Bytes of the rows' texts that were written or read.
    pub bytes: u64,
}

impl AddAssign for Amount {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
    }
}
