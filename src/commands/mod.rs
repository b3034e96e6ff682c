//! The commands, each with its options in a file.

mod all;
mod build;
mod cache;
mod call;
mod call_tree;
mod canbench;
mod compare;
mod environment;
mod merge;
mod pocket_ic;
mod profile;
mod replica;
mod report;
mod run;
mod serve;
mod shell;
mod spending;
mod state;
mod subnet;

pub use all::run_all;
pub use build::{BuildArgs, build};
pub use cache::{CacheArgs, cache};
pub use call::{CallArgs, call};
pub use canbench::{CanbenchArgs, canbench, percent};
pub use compare::{CompareArgs, compare};
pub use merge::{MergeArgs, merge};
pub use pocket_ic::{PocketIcArgs, as_pocket_ic, pocket_ic};
pub use profile::{ProfileArgs, profile};
pub use report::{ReportArgs, report};
pub use run::{RunArgs, list, run, with_run_options};
pub use serve::{ServeArgs, serve};
pub use shell::{completions, man};
