//! How text for people looks: Markdown, or what fits a terminal.

use std::fmt::Display;

use crate::terminal::Terminal;

/// How tables and sentences look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    pub markdown: bool,
    /// What they are printed on, unless they are Markdown.
    pub terminal: Terminal,
}

impl Style {
    /// Markdown, which is as wide as it is.
    pub const MARKDOWN: Self =
        Self { markdown: true, terminal: Terminal { colour: false, width: None } };

    /// For that terminal.
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

    /// A sentence in a list.
    pub fn item(self, sentence: &str) -> String {
        if self.markdown { format!("- {sentence}") } else { self.sentence(sentence) }
    }

    /// A sentence by itself.
    pub fn sentence(self, sentence: &str) -> String {
        if self.markdown { sentence.to_owned() } else { self.terminal.wrapped(sentence) }
    }

    /// Two lines in one cell.
    pub fn stacked(self, above: &dyn Display, below: &dyn Display) -> String {
        format!("{above}{}{below}", if self.markdown { "<br>" } else { "\n" })
    }

    /// A heading as narrow as the numbers below it.
    pub fn narrow(self, heading: &str) -> String {
        match heading.split_once(' ') {
            Some((above, below)) => self.stacked(&above, &below),
            None => heading.to_owned(),
        }
    }
}
