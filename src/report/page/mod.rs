//! One HTML page of results: what is cheapest for the reader's own sizes, charts, tables. It
//! opens from a file, without a network.
//!
//! ```text
//!   page.html   ←  {{script-hash}}  of page.js: the only script that may run
//!               ←  {{style}}        page.css
//!               ←  {{data}}         everything known, as in `data.rs`: JSON, gzip, base64
//!               ←  {{script}}       page.js: unpacks the data and builds the page
//! ```
//!
//! Nothing of a result file is written as HTML: base64 has no character that could end its
//! block, and the script makes texts of texts. `page/` holds the sources of the script and the
//! style, and what is built of them; `docs/report.md` describes the page.

mod data;
mod published;
#[cfg(test)]
mod tests;

use std::io::Write;

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use crate::results::Results;

const SKELETON: &str = include_str!("../../../page/src/page.html");
const STYLE: &str = include_str!("../../../page/dist/page.css");
const SCRIPT: &str = include_str!("../../../page/dist/page.js");

/// The page of some results, each with the name of its file.
///
/// # Errors
///
/// Where figures that the results name are not published.
pub fn page(results: &[(String, Results)]) -> Result<String> {
    let data = serde_json::to_string(&data::data(results)?)?;
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

/// Compressed, in characters that HTML gives no meaning.
fn packed(text: &str) -> Result<String> {
    let mut compressed = GzEncoder::new(Vec::new(), Compression::best());
    compressed.write_all(text.as_bytes())?;
    Ok(STANDARD.encode(compressed.finish()?))
}

/// The skeleton with values in place of `{{names}}`; what a value holds is not looked at again.
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
