//! The layout of a results file: a line for each key, and for each entry of a list, so that `git
//! diff` shows the changed cases.
//!
//! ```text
//! {
//!   "format": 7,
//!   "replica": {"kind": "embedded", …},
//!   "cases": [
//!     {"section": "insert", "name": "middle 1", …},
//!     {"section": "insert", "name": "middle 10", …}
//!   ]
//! }
//! ```

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use crate::terminal::safe_json;

/// Returns the text of an object, in which characters that control a terminal are escaped.
///
/// # Errors
///
/// If the value cannot be written as JSON.
pub fn lines(value: &impl Serialize) -> serde_json::Result<String> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, Lines::default()))?;
    bytes.push(b'\n');
    // The JSON serializer writes UTF-8 only.
    Ok(safe_json(&String::from_utf8_lossy(&bytes)).into_owned())
}

/// Breaks lines in the outermost object and in lists directly below it.
#[derive(Default)]
struct Lines {
    /// For each open list or object, `true` if its entries are on separate lines.
    open: Vec<bool>,
    /// `true` if the list or object that was opened last has entries.
    filled: bool,
}

impl Lines {
    fn begin(
        &mut self,
        breaks: bool,
        bracket: u8,
        writer: &mut (impl Write + ?Sized),
    ) -> io::Result<()> {
        self.open.push(breaks);
        self.filled = false;
        writer.write_all(&[bracket])
    }

    fn end(&mut self, bracket: u8, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let breaks = self.open.pop().unwrap_or_default();
        if breaks && self.filled {
            self.break_line(writer)?;
        }
        self.filled = true;
        writer.write_all(&[bracket])
    }

    fn entry(&mut self, first: bool, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        let breaks = self.open.last().copied().unwrap_or_default();
        match (first, breaks) {
            (true, _) => {}
            (false, true) => writer.write_all(b",")?,
            (false, false) => writer.write_all(b", ")?,
        }
        if breaks { self.break_line(writer) } else { Ok(()) }
    }

    fn break_line(&self, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        writer.write_all(b"\n")?;
        self.open.iter().try_for_each(|_| writer.write_all(b"  "))
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(self.open.len() == 1, b'[', writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(b']', writer)
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.entry(first, writer)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(self.open.is_empty(), b'{', writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(b'}', writer)
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.entry(first, writer)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_case_has_a_line() {
        let value = json!({
            "cases": [{"a": 1, "b": [1, 2, {}]}, {"c": {"d": [], "e": "x\n"}}],
            "empty": [],
            "format": 7,
            "replica": {"kind": "embedded", "list": [[1], [2]]},
        });
        let text = lines(&value).unwrap();
        assert_eq!(
            text,
            r#"{
  "cases": [
    {"a": 1, "b": [1, 2, {}]},
    {"c": {"d": [], "e": "x\n"}}
  ],
  "empty": [],
  "format": 7,
  "replica": {"kind": "embedded", "list": [[1], [2]]}
}
"#
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert_eq!(lines(&json!({})).unwrap(), "{}\n");
    }
}
