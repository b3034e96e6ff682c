//! The commands, each with its options. Commands about one thing share a file.

mod builds;
mod call;
mod canbench;
mod interface;
mod nesting;
mod pocket_ic;
mod profile;
mod replica;
mod results;
mod run;
mod serve;
mod spending;
mod sql;
mod subnet;

pub use builds::{BuildsArgs, ModuleArgs, builds, module};
pub use call::{CallArgs, call};
pub use canbench::{CanbenchArgs, canbench};
pub use pocket_ic::{PocketIcArgs, as_pocket_ic, pocket_ic};
pub use profile::{ProfileArgs, profile};
pub use replica::{CacheArgs, cache};
pub use results::{CompareArgs, MergeArgs, ReportArgs, compare, merge, report};
pub use run::{RunArgs, list, run, run_all, with_run_options};
pub use serve::{ServeArgs, serve};
pub use sql::{SqlCommand, sql_command};
