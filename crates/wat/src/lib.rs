//! WebAssembly modules from text, as the crate `wat` makes them. A stand-in has that crate's place in
//! the build of the program, which needs no parser of texts.

#![forbid(unsafe_code)]

use std::borrow::Cow;

use wast::parser::{ParseBuffer, parse};
use wast::token::Span;

pub use wast::Error;

/// Translates a module from text.
///
/// # Errors
///
/// If it is no module; the error shows the line.
pub fn parse_str(text: impl AsRef<str>) -> Result<Vec<u8>, Error> {
    let text = text.as_ref();
    let translated =
        ParseBuffer::new(text).and_then(|buffer| parse::<wast::Wat>(&buffer)?.encode());
    translated.map_err(|mut error| {
        error.set_text(text);
        error
    })
}

/// Translates a module from text, if it is not binary.
///
/// # Errors
///
/// Those of [`parse_str`].
pub fn parse_bytes(module: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    if module.starts_with(b"\0asm") {
        return Ok(module.into());
    }
    let text = std::str::from_utf8(module)
        .map_err(|error| Error::new(Span::from_offset(0), error.to_string()))?;
    parse_str(text).map(Cow::Owned)
}
