//! YAML of files that come from elsewhere. Its parser takes a time that grows with the square of the
//! nesting, so nesting that is deeper than any file needs is refused first.

use anyhow::{Result, bail};
use serde::de::DeserializeOwned;

/// The deepest nesting of brackets. The parser has the same limit for all values.
const MAX_NESTED: usize = 128;

/// Parses a text.
///
/// # Errors
///
/// If it is no YAML of that type, or too deeply nested.
#[expect(clippy::disallowed_methods, reason = "the nesting is checked here")]
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T> {
    // For the lines of JSON, the bound is far too high. Its parser has the same limit, and needs no bound.
    let nested = nesting(text);
    if nested > MAX_NESTED && serde_json::from_str::<serde_json::Value>(text).is_err() {
        bail!(
            "up to {nested} lists and maps in brackets could be inside of each other, which is more than \
             {MAX_NESTED}; write them without brackets, one entry in a line"
        );
    }
    Ok(yaml_serde::from_str(text)?)
}

/// Returns an upper bound of the nesting of brackets.
///
/// Inside of brackets, a closing bracket is text only in quotes, comments and tags, and quotes can span
/// lines. So a closing bracket counts only if it follows its opening one in a line that has none of
/// these: then both are text, or neither is.
fn nesting(text: &str) -> usize {
    let (mut deepest, mut open) = (0_usize, 0_usize);
    for line in text.lines() {
        let certain = !line.contains(['\'', '"', '#', '!']);
        let before = open;
        for letter in line.bytes() {
            match letter {
                b'[' | b'{' => open += 1,
                b']' | b'}' if certain && open > before => open -= 1,
                _ => {}
            }
            deepest = deepest.max(open);
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    type Any = yaml_serde::Value;

    /// Each is parsed or refused at once, although the parser alone takes 11 seconds for the first.
    #[test]
    fn nesting_is_refused_before_it_is_parsed() {
        const SIZE: usize = 40 << 10;
        let repeated = |text: &str| text.repeat(SIZE / text.len());
        for (text, refused) in [
            (repeated("["), true),
            (repeated("[\n"), true),
            (repeated("{a: "), true),
            (repeated("[ # ]\n"), true),
            (repeated("[ ']',\n"), true),
            (repeated("[ \"\n]\n\",\n"), true),
            (repeated("[ !a] b,\n"), true),
            (repeated("[]{}"), false),
            (repeated("- [a, {b: [c]}]\n"), false),
            (repeated("- '['\n"), true),
            (repeated("- a]}]\n"), false),
            (format!("[{}]", ["[\"]\", {\"a\": 1}]"; 4_000].join(",")), false),
        ] {
            let began = Instant::now();
            let parsed = parse::<Any>(&text);
            let error = parsed.err().map(|error| error.to_string()).unwrap_or_default();
            let start: String = text.chars().take(12).collect();
            assert_eq!(error.contains("inside of each other"), refused, "{start:?}: {error}");
            assert!(began.elapsed() < Duration::from_secs(5), "{start:?}: {:?}", began.elapsed());
        }
        // Other nesting takes the parser no longer.
        for text in ["- ", "? ", "a:\n", "&a [*a, ", "- - - !!map\n", "|\n"] {
            let began = Instant::now();
            let _ = parse::<Any>(&repeated(text));
            assert!(began.elapsed() < Duration::from_secs(5), "{text:?}: {:?}", began.elapsed());
        }
    }

    #[test]
    fn the_nesting_is_never_more_than_the_bound() {
        for (text, bound) in [
            ("a: b", 0),
            ("scopes: {}\nother: []", 1),
            ("a: [b, {c: [d]}]", 3),
            ("a: [\n[\n]\n]", 2),
            ("a: ['[', ']']", 2),
            ("a: \"]]\" [", 1),
        ] {
            assert_eq!(nesting(text), bound, "{text}");
        }
    }
}
