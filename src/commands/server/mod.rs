//! The commands that serve clients until they are stopped.

mod pocket_ic;
mod replicas;
mod serve;
mod state;

pub use pocket_ic::{PocketIcArgs, pocket_ic};
pub use serve::{ServeArgs, serve};
