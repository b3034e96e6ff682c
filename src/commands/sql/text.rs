//! SQL as files contain it: statements, and commands of the shell between them.
//!
//! ```text
//!   CREATE TABLE t(a);        a statement, up to its semicolon
//!   .import rows.csv t        a command: a line that begins with a dot where a statement could begin
//! ```

use std::path::Path;

use anyhow::{Context, Result, bail};
use stablebench_suite_sql::split::{self, End};

use crate::report::number::Binary;

/// The largest file with SQL, in bytes. A larger one is data.
const MAX_SQL: u64 = 256 << 20;

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    pub kind: Kind,
    pub text: &'a str,
    /// The line of its first word, from 1.
    pub line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Statement,
    /// A command of the shell.
    Command,
}

/// Returns the parts of a text, one after the other.
pub fn items(text: &str) -> Items<'_> {
    Items { rest: text.trim_start_matches('\u{feff}'), line: 1, begins_line: true }
}

#[derive(Clone, Debug)]
pub struct Items<'a> {
    rest: &'a str,
    line: usize,
    /// `true` if only space is before the rest in its line.
    begins_line: bool,
}

impl<'a> Items<'a> {
    /// Returns the text that is left.
    pub fn rest(&self) -> &'a str {
        self.rest
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        let lines = taken.bytes().filter(|byte| *byte == b'\n').count();
        self.line += lines;
        let last = taken.rsplit('\n').next().unwrap_or_default();
        self.begins_line = last.trim().is_empty() && (lines > 0 || self.begins_line);
        taken
    }

    /// Skips space, comments and lone semicolons.
    fn skip(&mut self) {
        loop {
            let rest = self.rest;
            let until = |end: &str| rest.find(end).map_or(rest.len(), |at| at + end.len());
            let bytes = match rest.as_bytes() {
                [b' ' | b'\t' | b'\n' | b'\r' | 0x0c | b';', ..] => 1,
                [b'-', b'-', ..] => until("\n"),
                // One without an end is an error of SQLite.
                [b'/', b'*', ..] if rest.contains("*/") => until("*/"),
                _ => return,
            };
            self.take(bytes);
        }
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        self.skip();
        let line = self.line;
        if self.begins_line && self.rest.starts_with('.') {
            let end = self.rest.find('\n').map_or(self.rest.len(), |at| at + 1);
            return Some(Item { kind: Kind::Command, text: self.take(end).trim_end(), line });
        }
        let end = match split::end(self.rest) {
            End::At(end) => end,
            End::Missing(true) => self.rest.len(),
            End::Missing(false) => return None,
        };
        Some(Item { kind: Kind::Statement, text: self.take(end).trim_end(), line })
    }
}

/// Reads SQL from a file, or from standard input if its name is `-`.
///
/// # Errors
///
/// If it cannot be read, is too large, or is no text.
pub fn read(path: &Path) -> Result<String> {
    let bytes = match path.as_os_str() == "-" {
        true => stablebench_replica::files::read_at_most(std::io::stdin().lock(), MAX_SQL),
        false => match std::fs::metadata(path) {
            // Nothing of it is read then.
            Ok(metadata) if metadata.len() > MAX_SQL => {
                Err(std::io::ErrorKind::FileTooLarge.into())
            }
            _ => stablebench_replica::files::read(path, MAX_SQL),
        },
    };
    let name = name(path);
    let bytes = bytes.map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => anyhow::anyhow!(
            "SQL of more than {} is data: load it with .import, or begin with a database: --db FILE",
            Binary(MAX_SQL)
        ),
        _ => error.into(),
    });
    let bytes = bytes.with_context(|| format!("cannot read {name}"))?;
    match String::from_utf8(bytes) {
        Ok(text) => match text.find('\0') {
            None => Ok(text),
            Some(at) => bail!("{name} contains a NUL byte, at {at}, which SQL does not"),
        },
        Err(error) => bail!("{name} is not UTF-8: {}", error.utf8_error()),
    }
}

/// Returns the name of a file for messages.
pub fn name(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

/// Splits a line into words; quotes keep spaces in one.
pub fn words(line: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut letters = line.trim().trim_end_matches(';').chars().peekable();
    while let Some(first) = letters.peek().copied() {
        if first.is_whitespace() {
            letters.next();
            continue;
        }
        let mut word = String::new();
        match first {
            '\'' | '"' => {
                letters.next();
                loop {
                    match letters.next() {
                        Some(letter) if letter == first => break,
                        Some(letter) => word.push(letter),
                        None => bail!("a {first} has no end"),
                    }
                }
            }
            _ => {
                while let Some(letter) = letters.next_if(|letter| !letter.is_whitespace()) {
                    word.push(letter);
                }
            }
        }
        words.push(word);
    }
    Ok(words)
}

/// Returns the largest number of a parameter `?` or `?3` of a statement; a question mark without a number
/// has the one after the largest before it.
pub fn positional(text: &str) -> usize {
    /// SQLite's limit.
    const MOST: usize = 32_766;
    let (mut most, mut rest) = (0, text);
    while let Some(at) = rest.find(['?', '\'', '"', '`', '[', '-', '/']) {
        rest = &rest[at..];
        let until = |from: usize, end: &str| {
            rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len())
        };
        let length = match rest.as_bytes() {
            [b'\'', ..] => until(1, "'"),
            [b'"', ..] => until(1, "\""),
            [b'`', ..] => until(1, "`"),
            [b'[', ..] => until(1, "]"),
            [b'-', b'-', ..] => until(2, "\n"),
            [b'/', b'*', ..] => until(2, "*/"),
            [b'?', digits @ ..] => {
                let digits = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let number = rest[1..1 + digits].parse().unwrap_or(most + 1);
                most = most.max(number).min(MOST);
                1 + digits
            }
            _ => 1,
        };
        rest = &rest[length..];
    }
    most
}

/// Returns a note about a statement whose file stays in the canister.
pub fn note_of(text: &str) -> Option<&'static str> {
    let has = |word: &str| split::words(text).any(|it| it.eq_ignore_ascii_case(word));
    let first = split::first_word(text).unwrap_or_default().to_ascii_lowercase();
    let in_memory = || text.contains(":memory:") || text.contains("''");
    match first.as_str() {
        "vacuum" if has("into") => {
            Some("the file stays in the canister; .save FILE writes one on this machine")
        }
        "attach" if !in_memory() => {
            Some("the file is one of the canister; .open FILE takes one of this machine")
        }
        _ => None,
    }
}

/// Returns a statement in one line of at most `width` characters.
pub fn shortened(text: &str, width: usize) -> String {
    // A statement may have megabytes.
    let start = text.char_indices().nth(4 * width).map_or(text, |(end, _)| &text[..end]);
    let line = start.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.chars().count() > width || start.len() < text.len() {
        true => line.chars().take(width - 1).collect::<String>() + "…",
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_and_commands_alternate() {
        let text = "\u{feff}-- first\n.mode csv ; x\n select 1; .tables\n/* x */ .schema\n;;\n\
                    select '\n.help';\n.quit";
        let found: Vec<(Kind, &str, usize)> =
            items(text).map(|item| (item.kind, item.text, item.line)).collect();
        let expected = [
            (Kind::Command, ".mode csv ; x", 2),
            (Kind::Statement, "select 1;", 3),
            // After a statement in its line, a dot is an error of SQLite.
            (Kind::Statement, ".tables\n/* x */ .schema\n;", 3),
            (Kind::Statement, "select '\n.help';", 6),
            (Kind::Command, ".quit", 8),
        ];
        assert_eq!(found, expected);
        assert_eq!(items(" -- only\n /* space */ ;").next(), None);
        assert_eq!(
            items("select 1 /* open").next().map(|item| item.text),
            Some("select 1 /* open")
        );
        assert_eq!(items("/* open").next().map(|item| item.line), Some(1));
    }

    #[test]
    fn words_are_split_at_spaces_outside_of_quotes() {
        assert_eq!(words(".read 'a b.sql' ;").unwrap(), [".read", "a b.sql"]);
        assert_eq!(words(".x \"\" y").unwrap(), [".x", "", "y"]);
        assert!(words(".read 'a").is_err());
    }

    #[test]
    fn question_marks_are_counted_outside_of_strings_and_comments() {
        for (text, number) in [
            ("SELECT 1", 0),
            ("SELECT ?, '?', \"?\", [?], `?` -- ?\n, ? /* ? */ - ? / ?", 4),
            ("SELECT ?7, ?2, ?", 8),
            ("SELECT ?99999999", 32_766),
            ("SELECT 'it''s ?', ? /* open ?", 1),
            ("SELECT '?", 0),
        ] {
            assert_eq!(positional(text), number, "{text}");
        }
    }

    #[test]
    fn files_of_the_canister_are_noted() {
        for (text, noted) in [
            ("VACUUM INTO 'a.db'", true),
            ("/* x */ attach database 'a.db' as a", true),
            ("VACUUM", false),
            ("ATTACH ':memory:' AS a", false),
            ("SELECT 'vacuum into'", false),
        ] {
            assert_eq!(note_of(text).is_some(), noted, "{text}");
        }
    }

    #[test]
    fn long_statements_are_shortened() {
        assert_eq!(shortened("select\n  1;", 20), "select 1;");
        assert_eq!(shortened(&"x".repeat(1 << 20), 5), "xxxx…");
        assert_eq!(shortened("äöüäöü", 4), "äöü…");
    }
}
