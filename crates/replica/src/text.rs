//! Texts from elsewhere, made such that they cannot steer a terminal.

use std::borrow::Cow;

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
}
