//! What results are printed on: whether it shows bold text and colours, and how wide it is. Texts
//! from elsewhere are made such that they cannot steer it.

use std::borrow::Cow;

use anstream::{AutoStream, ColorChoice};

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

/// A text from elsewhere as it can be shown: what would steer a terminal, or change the order in
/// which text is read, is written as its number. Lines and tabs stay.
pub fn safe(text: &str) -> Cow<'_, str> {
    escaped(text, |char| steers(char) && !matches!(char, '\n' | '\t'))
}

/// That, in one line.
pub fn safe_line(text: &str) -> Cow<'_, str> {
    escaped(text, steers)
}

/// Whether a character does something else than being seen.
pub fn steers(char: char) -> bool {
    // What is not a control character is for right-to-left text.
    char.is_control()
        || matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_bad) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() * 2);
    for char in text.chars() {
        if is_bad(char) { safe.extend(char.escape_unicode()) } else { safe.push(char) }
    }
    Cow::Owned(safe)
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
    fn what_steers_a_terminal_is_shown_as_its_number() {
        assert_eq!(safe("a\u{1b}[2J\r\u{9b}31m\u{7f}b"), r"a\u{1b}[2J\u{d}\u{9b}31m\u{7f}b");
        assert_eq!(safe("one\n\ttwo \u{202e}eno"), "one\n\ttwo \\u{202e}eno");
        assert_eq!(safe_line("one\ntwo"), r"one\u{a}two");
        for text in ["", "10 000 × größer – 中文"] {
            assert!(matches!(safe(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn sentences_are_wrapped_between_words_and_never_inside_of_a_number() {
        let text = "SQLite is cheaper from 1 000 000 rows on, dearer at 10.";
        let wrapped = |width| Terminal { colour: false, width }.wrapped(text);
        assert_eq!(wrapped(None), text);
        assert_eq!(wrapped(Some(30)), "SQLite is cheaper from\n1 000 000 rows on, dearer at\n10.");
        assert_eq!(wrapped(Some(4)).lines().find(|line| line.contains('1')), Some("1 000 000"));
    }
}
