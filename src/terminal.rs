//! What results are printed on: whether it shows bold text and colours, and how wide it is.

use anstream::{AutoStream, ColorChoice};
pub use stablebench_replica::text::{safe, safe_line, steers};

/// Where standard output goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Whether text may be bold or coloured.
    pub colour: bool,
    /// Characters in a line; nothing where lines may be as long as they are.
    pub width: Option<u16>,
}

impl Terminal {
    /// What standard output is now. `COLUMNS` is believed before the terminal.
    pub fn stdout() -> Self {
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        Self {
            colour: AutoStream::choice(&std::io::stdout()) != ColorChoice::Never,
            width: columns.filter(|width| *width > 0).or_else(|| comfy_table::Table::new().width()),
        }
    }

    /// A text that is to be read, in lines that fit.
    pub fn wrapped(self, text: &str) -> String {
        // Longer lines are hard to read, wherever they fit.
        const LONGEST: usize = 100;
        let Some(width) = self.width else {
            return text.to_owned();
        };
        let options = textwrap::Options::new(usize::from(width).min(LONGEST))
            .word_splitter(textwrap::WordSplitter::NoHyphenation)
            .break_words(false);
        textwrap::fill(&numbers_together(text), options).replace(NO_BREAK, " ")
    }
}

const NO_BREAK: char = '\u{a0}';

/// With the spaces inside of numbers such that no line ends there.
fn numbers_together(text: &str) -> String {
    let mut last = None;
    let mut following = text.chars().skip(1).chain([' ']);
    text.chars()
        .map(|here| {
            let inside = |beside: Option<char>| beside.is_some_and(|char| char.is_ascii_digit());
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
    fn sentences_are_wrapped_between_words_and_never_inside_of_a_number() {
        let text = "SQLite is cheaper from 1 000 000 rows on, dearer at 10.";
        let wrapped = |width| Terminal { colour: false, width }.wrapped(text);
        assert_eq!(wrapped(None), text);
        assert_eq!(wrapped(Some(30)), "SQLite is cheaper from\n1 000 000 rows on, dearer at\n10.");
        assert_eq!(wrapped(Some(4)).lines().find(|line| line.contains('1')), Some("1 000 000"));
    }
}
