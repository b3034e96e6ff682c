//! What a store of byte keys implements to get every key-value workload.

/// Bytes under bytes, in the order of keys.
pub trait Records {}
