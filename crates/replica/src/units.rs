//! Units of measurement as types, so that instructions are never added to bytes.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub struct $name(pub $inner);

        impl $name {
            /// The number without its unit.
            pub const fn get(self) -> $inner {
                self.0
            }

            /// The difference, or 0 if it is negative.
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }
        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self::default(), Add::add)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

unit! {
    /// Instructions as the Internet Computer counts them.
    Instructions(u64)
}
unit! {
    /// Cycles, with which canisters pay.
    Cycles(u128)
}
unit! {
    /// Pages of a WebAssembly memory, 64 KiB each.
    WasmPages(u64)
}
unit! {
    /// Pages of the operating system, 4 KiB each.
    OsPages(u64)
}
unit! {
    /// Bytes.
    Bytes(u64)
}

/// Nanoseconds of a second.
pub(crate) const SECOND: u64 = 1_000_000_000;
/// Bytes of a WebAssembly page.
pub const WASM_PAGE: u64 = 65_536;
/// Bytes of an OS page, by which the Internet Computer tracks reads and writes.
pub const OS_PAGE: u64 = 4_096;

impl From<WasmPages> for Bytes {
    fn from(pages: WasmPages) -> Self {
        Self(pages.0 * WASM_PAGE)
    }
}
