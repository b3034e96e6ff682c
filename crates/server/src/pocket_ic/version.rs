//! Versions of PocketIC servers.

use std::str::FromStr;

/// The version of a PocketIC server whose clients are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    number: String,
    /// The generation of servers and clients.
    pub(super) major: u32,
}

/// The newest version of each generation of servers, which is that of their clients.
const VERSIONS: [&str; 8] =
    ["9.0.3", "10.0.0", "11.0.0", "12.0.0", "13.0.0", "14.0.0", "15.0.0", "16.1.0"];
/// The generations.
const GENERATIONS: std::ops::RangeInclusive<u32> = 9..=16;

/// The error of a text that is not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no PocketIC {0} here; there are 9 to 16, such as {newest}", newest = VERSIONS[7])]
pub struct UnknownVersion(String);

impl Version {
    /// The number, such as `16.1.0`.
    pub fn number(&self) -> &str {
        &self.number
    }
}

impl Default for Version {
    /// The newest version.
    fn default() -> Self {
        Self { number: VERSIONS[VERSIONS.len() - 1].to_owned(), major: *GENERATIONS.end() }
    }
}

impl FromStr for Version {
    type Err = UnknownVersion;

    /// Parses a version of three numbers, or the first of them.
    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let unknown = || UnknownVersion(text.to_owned());
        let numbers: Result<Vec<u32>, _> = text.split('.').map(str::parse).collect();
        let numbers = numbers.map_err(|_| unknown())?;
        let major = numbers.first().copied().filter(|major| GENERATIONS.contains(major));
        let major = major.ok_or_else(unknown)?;
        let newest = VERSIONS.iter().find(|known| known.starts_with(&format!("{major}.")));
        let number = match numbers.len() {
            1 => newest.map(|known| (*known).to_owned()),
            3 => Some(text.to_owned()),
            _ => None,
        };
        Ok(Self { number: number.ok_or_else(unknown)?, major })
    }
}
