//! The commands `serve` and `pocket-ic` of a program that was built without them. Anything may follow
//! them, since all ends in the same error.

use std::ffi::OsString;

use anyhow::{Result, bail};
use clap::Args;

use crate::progress::Output;

#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct ServeArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

pub type PocketIcArgs = ServeArgs;

pub fn serve(args: &ServeArgs, _: &Output) -> Result<()> {
    without("serve", args)
}

pub fn pocket_ic(args: &PocketIcArgs, _: &Output) -> Result<()> {
    without("pocket-ic", args)
}

fn without(command: &str, args: &ServeArgs) -> Result<()> {
    let words = args.words.join(" ".as_ref());
    let line = format!("{command} {}", words.display());
    bail!(
        "this stablebench was built without its servers; build it with them: cargo run --release \
         --features serve -- {}",
        line.trim_end()
    )
}
