//! Options for the output of all commands.

use std::ffi::OsString;

use anstream::ColorChoice;
use clap::{Args, ValueEnum};

#[derive(Clone, Copy, Debug, Args)]
pub struct OutputArgs {
    /// Print results and errors only: no progress, no notes.
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Use colours and bold text; NO_COLOR is honoured.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub color: ColorArg,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorArg {
    /// On a terminal only.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Applies `--color` to all output. It is searched before the command line is parsed, so that it
/// affects help and parsing errors too.
pub fn follow_color(words: impl IntoIterator<Item = OsString>) {
    match typed_color(words) {
        ColorArg::Auto => ColorChoice::Auto,
        ColorArg::Always => ColorChoice::Always,
        ColorArg::Never => ColorChoice::Never,
    }
    .write_global();
}

/// Returns the last valid value of `--color`. Invalid values are refused later.
fn typed_color(words: impl IntoIterator<Item = OsString>) -> ColorArg {
    let mut found = ColorArg::Auto;
    let mut words = words.into_iter().map_while(|word| {
        let word = word.into_string().unwrap_or_default();
        (word != "--").then_some(word)
    });
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('=').map(str::to_owned),
            None => None,
        };
        if let Some(value) = value.and_then(|value| ColorArg::from_str(&value, false).ok()) {
            found = value;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_is_found_at_any_position() {
        let typed = |words: &[&str]| typed_color(words.iter().map(OsString::from));
        assert_eq!(typed(&["stablebench", "run", "users"]), ColorArg::Auto);
        assert_eq!(typed(&["stablebench", "--color=never", "run"]), ColorArg::Never);
        assert_eq!(typed(&["stablebench", "run", "--color", "always"]), ColorArg::Always);
        assert_eq!(typed(&["stablebench", "--", "--color=always"]), ColorArg::Auto);
        assert_eq!(typed(&["stablebench", "--color=green"]), ColorArg::Auto);
        assert_eq!(typed(&["stablebench", "--colour=never"]), ColorArg::Auto);
    }
}
