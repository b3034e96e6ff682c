//! Untrusted text on a terminal: what could control the terminal is escaped.

use std::borrow::Cow;
use std::io::{self, Write};

/// Prints a line to stderr, escaped as [`safe`] does. Errors are ignored: nobody may be able to read
/// notes, and the work goes on all the same.
pub fn note(text: &str) {
    // At once, so that lines of other threads do not come in between.
    let line = format!("{}\n", safe(text));
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Returns the text with all characters escaped that [steer](steers) a terminal, except for line
/// breaks and tabs.
pub fn safe(text: &str) -> Cow<'_, str> {
    escaped(text, |char| steers(char) && !matches!(char, '\n' | '\t'))
}

/// Returns the text as [`safe`] does, with line breaks and tabs escaped too.
pub fn safe_line(text: &str) -> Cow<'_, str> {
    escaped(text, steers)
}

/// Returns a JSON text with the characters that steer a terminal escaped. They can only be in strings,
/// whose values stay the same.
pub fn safe_json(json: &str) -> Cow<'_, str> {
    // JSON may have these outside of strings, and never has them inside.
    let is_bad = |char| steers(char) && !matches!(char, '\n' | '\r' | '\t');
    replaced(json, is_bad, |char, safe| {
        for unit in char.encode_utf16(&mut [0; 2]) {
            safe.push_str(&format!("\\u{unit:04x}"));
        }
    })
}

/// Returns true for characters that control a terminal, or make a text look like another: control
/// characters, line breaks, changes of the text direction, and invisible characters. Joiners stay,
/// because scripts and emoji need them.
pub fn steers(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            // The soft hyphen, the Arabic letter mark, the Mongolian vowel separator.
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            // The space without width, the marks of directions.
            | '\u{200b}' | '\u{200e}' | '\u{200f}'
            // Line breaks, overrides of directions.
            | '\u{2028}'..='\u{202e}'
            // Invisible operators, isolates of directions.
            | '\u{2060}'..='\u{206f}'
            // The byte order mark, annotations, tags.
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

fn escaped(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    replaced(text, is_bad, |char, safe| safe.extend(char.escape_unicode()))
}

fn replaced(
    text: &str,
    is_bad: impl Fn(char) -> bool,
    escape: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    if !text.contains(&is_bad) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() * 2);
    for char in text.chars() {
        if is_bad(char) { escape(char, &mut safe) } else { safe.push(char) }
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
        for text in ["", "10 000 × größer – 中文", "می\u{200c}خواهم", "👩\u{200d}🚀"]
        {
            assert!(matches!(safe(text), Cow::Borrowed(same) if same == text));
            assert!(matches!(safe_json(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn escaped_json_has_the_same_values() {
        let name = "a\u{202e}b\u{9b}\u{7f}\u{200b}\u{2028}\u{feff}\u{e0041}\u{61c}\u{2069}\r\t\n";
        let json = serde_json::to_string_pretty(&[name, "größer"]).unwrap();
        let safe = safe_json(&json);
        assert!(safe.contains("größer") && safe.contains(r"\udb40\udc41"), "{safe}");
        assert!(!safe.contains(|char| steers(char) && char != '\n'), "{safe:?}");
        let again: [String; 2] = serde_json::from_str(&safe).unwrap();
        assert_eq!(again[0], name);
    }
}
