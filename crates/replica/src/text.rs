//! Escapes control characters in untrusted text, so that it cannot control a terminal.

use std::borrow::Cow;

/// Returns the text with control characters and bidirectional overrides escaped. Line breaks and
/// tabs stay.
pub fn safe(text: &str) -> Cow<'_, str> {
    escaped(text, |char| steers(char) && !matches!(char, '\n' | '\t'))
}

/// Returns the text as [`safe`] does, with line breaks and tabs escaped too.
pub fn safe_line(text: &str) -> Cow<'_, str> {
    escaped(text, steers)
}

/// Returns true for control characters and bidirectional overrides.
pub fn steers(char: char) -> bool {
    // The characters of the pattern change the text direction.
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
    fn control_characters_are_escaped() {
        assert_eq!(safe("a\u{1b}[2J\r\u{9b}31m\u{7f}b"), r"a\u{1b}[2J\u{d}\u{9b}31m\u{7f}b");
        assert_eq!(safe("one\n\ttwo \u{202e}eno"), "one\n\ttwo \\u{202e}eno");
        assert_eq!(safe_line("one\ntwo"), r"one\u{a}two");
        for text in ["", "10 000 × größer – 中文"] {
            assert!(matches!(safe(text), Cow::Borrowed(same) if same == text));
        }
    }
}
