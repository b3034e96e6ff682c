//! An HTML page of results: the cheapest configuration for the reader's own sizes, charts, tables.
//! It opens from a file, without a network.
//!
//! ```text
//!   page.html   ←  {{script-hash}}  of page.js: the only script that may run
//!               ←  {{style}}        page.css
//!               ←  {{data}}         the data of `data.rs`: JSON, gzip, base64
//!               ←  {{script}}       page.js: unpacks the data and builds the page
//! ```
//!
//! No part of a results file is written as HTML: base64 has no character that could end its
//! block, and the script inserts texts as texts. `page/` contains the sources of the script and the
//! style, and their builds. `docs/report.md` describes the page.

mod data;

use std::io::{Read as _, Write};
use std::path::Path;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use stablebench_replica::files;

use crate::report::Presentation;
use crate::results::Results;
use crate::terminal::json;

const SKELETON: &str = include_str!("../../../../../page/src/page.html");
const STYLE: &str = include_str!("../../../../../page/dist/page.css");
const SCRIPT: &str = include_str!("../../../../../page/dist/page.js");

/// Returns the page of some results, each with the name of its file.
///
/// # Errors
///
/// If results name published figures that do not exist.
pub fn page(results: &[(String, &dyn Presentation, Results)]) -> Result<String> {
    let data = json(&data::data(results)?)?;
    Ok(fill(
        SKELETON,
        &[
            ("script-hash", &STANDARD.encode(Sha256::digest(SCRIPT))),
            ("style", STYLE),
            ("data", &packed(&data)?),
            ("script", SCRIPT),
        ],
    ))
}

/// The beginning of every page.
const BEGINNING: usize = 256;

/// `true` if a file is a page of results.
///
/// # Errors
///
/// If it cannot be read.
pub fn is_page(path: &Path) -> Result<bool> {
    let mut beginning = Vec::new();
    files::open(path)?.take(BEGINNING as u64).read_to_end(&mut beginning)?;
    let page = SKELETON.split("{{").next().unwrap_or_default().as_bytes();
    let own = &page[..page.len().min(BEGINNING)];
    Ok(beginning.starts_with(own))
}

/// Compresses a text, and encodes it in characters without a meaning in HTML.
fn packed(text: &str) -> Result<String> {
    let mut compressed = GzEncoder::new(Vec::new(), Compression::best());
    compressed.write_all(text.as_bytes())?;
    Ok(STANDARD.encode(compressed.finish()?))
}

/// Replaces `{{names}}` in the skeleton by values. Names inside of values are not replaced.
fn fill(skeleton: &str, values: &[(&str, &str)]) -> String {
    let mut parts = skeleton.split("{{");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let known = part.split_once("}}").and_then(|(name, rest)| {
            let (_, value) = values.iter().find(|(known, _)| *known == name)?;
            Some((value, rest))
        });
        match known {
            Some((value, rest)) => {
                text.push_str(value);
                text.push_str(rest);
            }
            None => {
                text.push_str("{{");
                text.push_str(part);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_not_filled_in_twice() {
        assert_eq!(fill("a{{b}}c{{d}}e", &[("b", "{{d}}"), ("d", "1")]), "a{{d}}c1e");
        assert_eq!(fill("{{unknown}} {{", &[]), "{{unknown}} {{");
    }
}
