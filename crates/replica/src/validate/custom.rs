//! Custom sections that a canister shows the world, or its controllers.
//!
//! A section `icp:public NAME` or `icp:private NAME` is kept; NAME may be empty and is
//! unique over both scopes. Other names with `icp:` are refused, all others ignored.

use std::collections::BTreeMap;

use super::refusal::Invalid;
use super::sections::Sections;

/// Most sections named `icp:`.
pub(super) const MAX_SECTIONS: usize = 16;
/// Most bytes of their contents and NAMEs together.
pub(super) const MAX_SIZE: usize = 1 << 20;

/// Who may read a custom section.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum Visibility {
    /// Everyone.
    Public,
    /// The canister's controllers.
    Private,
}

/// A custom section that the replica keeps.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CustomSection {
    /// Who may read it.
    pub visibility: Visibility,
    /// What it holds.
    pub content: Vec<u8>,
}

pub(super) fn check(sections: &Sections<'_>) -> Result<BTreeMap<String, CustomSection>, Invalid> {
    let mut kept = BTreeMap::new();
    let mut total = 0;
    for &(section, content) in &sections.custom {
        let Some((visibility, name)) = scope(section)? else {
            continue;
        };
        if kept.contains_key(name) {
            return Err(refused(format!("Invalid custom section: name {name} already exists")));
        }
        total += content.len() + name.len();
        if total > MAX_SIZE {
            return Err(refused(format!(
                "Invalid custom sections: total size of the custom sections exceeds the \
                 maximum allowed: size {total} bytes, allowed {MAX_SIZE} bytes"
            )));
        }
        kept.insert(name.to_owned(), CustomSection { visibility, content: content.to_vec() });
        let defined = kept.len();
        if defined > MAX_SECTIONS {
            return Err(Invalid::TooManyCustom { defined, allowed: MAX_SECTIONS });
        }
    }
    Ok(kept)
}

/// The visibility and the NAME, or none of a section that is not for the replica.
fn scope(section: &str) -> Result<Option<(Visibility, &str)>, Invalid> {
    let Some(scoped) = section.strip_prefix("icp:") else {
        return Ok(None);
    };
    if let Some(name) = scoped.strip_prefix("public ") {
        return Ok(Some((Visibility::Public, name)));
    }
    if let Some(name) = scoped.strip_prefix("private ") {
        return Ok(Some((Visibility::Private, name)));
    }
    if matches!(scoped, "public" | "private") {
        return Err(refused(
            "'icp:' section names must have a space after the public/private scope",
        ));
    }
    Err(refused(format!(
        "Invalid custom section: Custom section '{section}' has no public/private scope defined."
    )))
}

fn refused(words: impl Into<String>) -> Invalid {
    Invalid::Custom(words.into())
}
