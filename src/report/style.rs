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

    /// Formats a heading in two lines, since the numbers below it are narrow.
    pub fn narrow(self, heading: &str) -> String {
        match heading.split_once(' ') {
            Some((above, below)) => self.stacked(&above, &below),
            None => heading.to_owned(),
        }
    }
}
