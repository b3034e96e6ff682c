//! The commands, each with its options in a file.

mod all;
mod as_pocket_ic;
mod builds;
mod cache;
mod call;
mod call_tree;
mod canbench;
mod compare;
mod environment;
mod lock;
mod merge;
mod module;
#[cfg(not(feature = "serve"))]
mod no_server;
mod profile;
mod replica;
mod report;
mod run;
#[cfg(feature = "serve")]
mod server;
mod shell;
mod spending;
mod sql;
mod subnet;

pub use all::run_all;
pub use as_pocket_ic::as_pocket_ic;
pub use builds::{BuildsArgs, builds};
pub use cache::{CacheArgs, cache};
pub use call::{CallArgs, call};
pub use canbench::{CanbenchArgs, canbench, percent};
pub use compare::{CompareArgs, compare};
pub use merge::{MergeArgs, merge};
pub use module::{ModuleArgs, module};
#[cfg(not(feature = "serve"))]
pub use no_server::{PocketIcArgs, ServeArgs, pocket_ic, serve};
pub use profile::{ProfileArgs, profile};
pub use report::{ReportArgs, report};
pub use run::{RunArgs, list, run, with_run_options};
#[cfg(feature = "serve")]
pub use server::{PocketIcArgs, ServeArgs, pocket_ic, serve};
pub use shell::{completions, man};
pub use sql::{SqlCommand, sql_command};
