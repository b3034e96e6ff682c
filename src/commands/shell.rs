//! `stablebench completions` and `stablebench man`: shell completions and manual pages.

use std::path::Path;

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;

use crate::terminal::print_bytes;

/// Prints a shell's completion script.
pub fn completions(shell: Shell, mut command: Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "stablebench", &mut script);
    print_bytes(&script)
}

/// Prints the manual page, or saves the pages of all commands in a folder.
pub fn man(folder: Option<&Path>, command: Command) -> Result<()> {
    let Some(folder) = folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        return print_bytes(&page);
    };
    let saved = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(command, folder)
    };
    saved().with_context(|| format!("cannot save manual pages in {}", folder.display()))
}
