//! Rewrites a canister's module so that it counts instructions as the Internet Computer does.
//!
//! ```text
//!   validate → [operator_cost → blocks → body + wide → rewrite + stable] → compile → execute
//! ```
//!
//! Exports that the rewriting adds:
//!
//! | export      | meaning                                           |
//! |-------------|---------------------------------------------------|
//! | `counter`   | global: instructions left of the slice            |
//! | `accessible`, `writable` | globals: stable pages left for the message |
//! | `calls N`, `bytes N` | globals: calls and bytes of the stable call number N |
//! | `heap`, `stable`, `byte map` | memories                         |
//! | `page map`  | memory, under rules that charge for touching pages: see `page_map` |
//! | `table`     | the canister's table, if it has one: callbacks are in it |
//! | `global N`  | mutable globals of the canister, which are part of its state |
//! | `start`     | the start function, called by the host            |
//! | `profile …` | only in the profiled form: see `profiled`         |
//!
//! Functions stay exported as `function NAME`; all other exports are dropped. Active data segments
//! become empty passive ones: the host writes them to the heap once, at install, instead of at
//! every instantiation.

mod blocks;
mod body;
pub mod compiling;
mod instrumented;
pub mod operator_cost;
pub mod page_map;
pub mod profiled;
mod rewrite;
pub mod stable;
mod wide;

pub use body::Metering;
pub use instrumented::{HOST, Instrumented, TABLE};
pub use rewrite::{HOST_FUNCTIONS, instrument, is_stable_call, long_copies};

/// Must change with any change of rewritten modules, so that cached modules of another version are
/// not used.
pub const VERSION: u32 = 10;

#[cfg(test)]
mod tests;
