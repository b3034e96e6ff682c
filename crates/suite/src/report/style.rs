//! The style of text: Markdown, or text for a terminal.

use std::fmt::Display;

use crate::terminal::Terminal;

/// The style of tables and sentences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    pub markdown: bool,
    /// The terminal, unless the style is Markdown.
    pub terminal: Terminal,
}

impl Style {
    /// Markdown, which has no maximum width.
    pub const MARKDOWN: Self =
        Self { markdown: true, terminal: Terminal { colour: false, width: None } };

    /// Returns the style for a terminal.
    pub fn of(terminal: Terminal) -> Self {
        Self { markdown: false, terminal }
    }

    pub fn heading(self, title: &str) -> String {
        let bold = anstyle::Style::new().bold();
        match self.markdown {
            true => format!("### {title}"),
            false if self.terminal.colour => format!("{bold}{}{bold:#}", self.sentence(title)),
            false => self.sentence(title),
        }
    }

    /// Formats a sentence of a list.
    pub fn item(self, sentence: &str) -> String {
        if self.markdown { format!("- {sentence}") } else { self.sentence(sentence) }
    }

    /// Formats a single sentence.
    pub fn sentence(self, sentence: &str) -> String {
        if self.markdown { sentence.to_owned() } else { self.terminal.wrapped(sentence) }
    }

    /// Formats two lines of one cell.
    pub fn stacked(self, above: &dyn Display, below: &dyn Display) -> String {
        format!("{above}{}{below}", if self.markdown { "<br>" } else { "\n" })
    }

    /// Formats a heading in two lines, since the numbers below it are narrow. Each setting has a line
    /// of its own.
    pub fn narrow(self, heading: &str) -> String {
        let Some((above, below)) = heading.split_once(' ') else { return heading.to_owned() };
        let mut text = above.to_owned();
        for (place, word) in below.split(' ').enumerate() {
            text = match place == 0 || word.contains('=') {
                true => self.stacked(&text, &word),
                false => format!("{text} {word}"),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_narrow() {
        for (heading, lines) in [
            ("StableBTreeMap", "StableBTreeMap"),
            ("floor: array", "floor:<br>array"),
            ("SQLite WITH ROWID", "SQLite<br>WITH ROWID"),
            ("SQLite PERSIST cache_size=1000", "SQLite<br>PERSIST<br>cache_size=1000"),
            ("sqlite-vfs page_size=4096", "sqlite-vfs<br>page_size=4096"),
        ] {
            assert_eq!(Style::MARKDOWN.narrow(heading), lines);
        }
    }
}
