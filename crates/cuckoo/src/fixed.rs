//! Keys and values of fixed length.

/// A key or a value: a type with a fixed number of bytes.
///
/// Unsigned integers, in big-endian order, and arrays of bytes are such types. Keys are ordered by their
/// bytes.
///
/// ```
/// use stablebench_cuckoo::Fixed;
///
/// struct Account([u8; 32]);
///
/// impl Fixed for Account {
///     type Bytes = [u8; 32];
///
///     fn to_bytes(&self) -> [u8; 32] {
///         self.0
///     }
///
///     fn from_bytes(bytes: [u8; 32]) -> Self {
///         Self(bytes)
///     }
/// }
/// ```
pub trait Fixed {
    /// An array of bytes.
    type Bytes: Bytes;

    /// As bytes.
    fn to_bytes(&self) -> Self::Bytes;

    /// From bytes.
    fn from_bytes(bytes: Self::Bytes) -> Self;
}

/// An array of bytes: `[u8; N]`, and nothing else.
pub trait Bytes: AsRef<[u8]> + Array {
    /// The number of bytes.
    const LENGTH: usize;

    /// All of them zero.
    const ZERO: Self;
}

/// Only arrays are arrays of bytes, so that nothing here depends on other implementations.
mod private {
    pub trait Array {
        /// The first bytes of a slice; zeros if it is shorter.
        fn of(bytes: &[u8]) -> Self;
    }
}

pub(crate) use private::Array;

impl<const N: usize> Array for [u8; N] {
    #[inline]
    fn of(bytes: &[u8]) -> Self {
        bytes.first_chunk().copied().unwrap_or([0; N])
    }
}

impl<const N: usize> Bytes for [u8; N] {
    const LENGTH: usize = N;
    const ZERO: Self = [0; N];
}

impl<const N: usize> Fixed for [u8; N] {
    type Bytes = Self;

    #[inline]
    fn to_bytes(&self) -> Self {
        *self
    }

    #[inline]
    fn from_bytes(bytes: Self) -> Self {
        bytes
    }
}

macro_rules! big_endian {
    ($($number:ty),*) => {$(
        impl Fixed for $number {
            type Bytes = [u8; size_of::<$number>()];

            #[inline]
            fn to_bytes(&self) -> Self::Bytes {
                self.to_be_bytes()
            }

            #[inline]
            fn from_bytes(bytes: Self::Bytes) -> Self {
                Self::from_be_bytes(bytes)
            }
        }
    )*};
}

big_endian!(u8, u16, u32, u64, u128);
