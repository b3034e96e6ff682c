//! `stablebench completions` and `stablebench man`: what shells and `man` know of the tool.

use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use super::run::print_bytes;
use crate::cli::Cli;

/// Prints what the shell completes the tool's arguments with.
pub fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "stablebench", &mut script);
    print_bytes(&script)
}

/// Prints the manual page, or saves the pages of all commands in a folder.
pub fn man(folder: Option<&Path>) -> Result<()> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        return print_bytes(&page);
    };
    let saved = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(Cli::command(), folder)
    };
    saved().with_context(|| format!("cannot save manual pages in {}", folder.display()))
}
