//! Output: standard output, its colours and its width, and text that is safe to print there.

use std::io::Write;

use anstream::{AutoStream, ColorChoice};
use anyhow::Context as _;
use rustix::termios::tcgetwinsize;
use serde::Serialize;
pub use stablebench_replica::text::{note, safe, safe_json, safe_line};

/// Prints text to standard output.
pub fn print(text: &str) -> anyhow::Result<()> {
    print_bytes(text.as_bytes())
}

/// Prints bytes to standard output.
pub fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// Returns a value as JSON in one line, without characters that control a terminal: they are escaped.
#[expect(clippy::disallowed_methods, reason = "what they write is escaped here")]
pub fn json(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(safe_json(&serde_json::to_string(value)?).into_owned())
}

/// Returns the same JSON as [`json`], indented and with a line break at its end.
#[expect(clippy::disallowed_methods, reason = "what they write is escaped here")]
pub fn json_lines(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(safe_json(&serde_json::to_string_pretty(value)?).into_owned() + "\n")
}

/// Returns a word of a command line, quoted for a shell if necessary.
pub fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_=./,:%+@".contains(letter);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Returns the words of a command line, without the quotes of a shell.
///
/// # Errors
///
/// If a quote has no end.
pub fn split(line: &str) -> anyhow::Result<Vec<String>> {
    shlex::split(line).with_context(|| format!("a quote has no end: {line}"))
}

/// The properties of standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// `true` if text may be bold or coloured.
    pub colour: bool,
    /// The characters in a line; `None` if lines are not limited.
    pub width: Option<u16>,
}

impl Terminal {
    /// Returns the properties of standard output. `COLUMNS` takes precedence over the terminal's
    /// width.
    pub fn stdout() -> Self {
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        Self {
            colour: AutoStream::choice(&std::io::stdout()) != ColorChoice::Never,
            // A terminal that nobody sees has none.
            width: columns
                .filter(|width| *width > 0)
                .or_else(|| comfy_table::Table::new().width().filter(|width| *width > 0)),
        }
    }

    /// Returns the lines of standard output, if it is a terminal. `LINES` takes precedence.
    pub fn height() -> Option<usize> {
        let lines = std::env::var("LINES").ok().and_then(|lines| lines.parse().ok());
        let rows = || Some(usize::from(tcgetwinsize(std::io::stdout()).ok()?.ws_row));
        lines.or_else(rows).filter(|lines| *lines > 0)
    }

    /// Wraps prose to lines that fit.
    pub fn wrapped(self, text: &str) -> String {
        // Longer lines are hard to read on any terminal.
        const MAX_WIDTH: usize = 100;
        let Some(width) = self.width else {
            return text.to_owned();
        };
        let options = textwrap::Options::new(usize::from(width).min(MAX_WIDTH))
            .word_splitter(textwrap::WordSplitter::NoHyphenation)
            .break_words(false);
        textwrap::fill(&numbers_together(text), options).replace(NO_BREAK, " ")
    }
}

const NO_BREAK: char = '\u{a0}';

/// Replaces the spaces inside of numbers, so that no line ends there.
fn numbers_together(text: &str) -> String {
    let mut last = None;
    let mut following = text.chars().skip(1).chain([' ']);
    text.chars()
        .map(|here| {
            let inside =
                |neighbour: Option<char>| neighbour.is_some_and(|char| char.is_ascii_digit());
            let next = following.next();
            let number = here == ' ' && inside(last) && inside(next);
            last = Some(here);
            if number { NO_BREAK } else { here }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell_if_necessary() {
        for plain in ["insert", "--rules=2025-10,2026-08", "users/insert/end-1/sqlite/wal"] {
            assert_eq!(quoted(plain), plain);
        }
        assert_eq!(["", "a b", "$x;y"].map(quoted), ["''", "'a b'", "'$x;y'"]);
        assert_eq!(quoted("it's"), r"'it'\''s'");
        let words = ["run", "--script", "my file.sql", "it's", "", "a\\b"];
        assert_eq!(split(&words.map(quoted).join(" ")).unwrap(), words);
        assert!(split("--script 'my file.sql").is_err());
    }

    #[test]
    fn text_is_wrapped_between_words_and_never_inside_of_a_number() {
        let text = "SQLite is cheaper from 1 000 000 rows on, slower at 10.";
        let wrapped = |width| Terminal { colour: false, width }.wrapped(text);
        assert_eq!(wrapped(None), text);
        assert_eq!(wrapped(Some(30)), "SQLite is cheaper from\n1 000 000 rows on, slower at\n10.");
        assert_eq!(wrapped(Some(4)).lines().find(|line| line.contains('1')), Some("1 000 000"));
    }
}
