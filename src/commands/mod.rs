//! The commands, each with its options in a file.

mod all;
mod as_pocket_ic;
mod builds;
mod cache;
mod call;
mod canbench;
mod compare;
mod environment;
mod interface;
mod merge;
mod module;
mod names;
mod profile;
mod replica;
mod report;
mod run;
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
pub use profile::{ProfileArgs, profile};
pub use report::{ReportArgs, report};
pub use run::{RunArgs, list, run, with_run_options};
pub use server::{PocketIcArgs, ServeArgs, pocket_ic, serve};
pub use shell::{completions, man};
pub use sql::{SqlCommand, sql_command};
