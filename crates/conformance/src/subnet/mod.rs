//! Cases of several canisters that call each other, in rounds.

pub(crate) mod case;
mod compare;
mod embedded;

pub use case::{
    Expected, Outcall, Part, RunningSubnet, Step, SubnetCall, SubnetCase, Ticks,
    is_file_of_subnets, read, write,
};
pub use compare::{answered, check_file, compare};
pub use embedded::{EmbeddedSubnet, embedded};
