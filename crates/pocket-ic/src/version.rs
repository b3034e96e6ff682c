//! Which client a server needs.

use std::fmt;

/// A server's version, as `--version` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Servers and clients of one major version understand each other.
    pub major: u64,
    /// Features added.
    pub minor: u64,
    /// Faults mended.
    pub patch: u64,
}

/// A generation of servers, with a client of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    V10,
    V16,
}

impl Version {
    /// Reads `pocket-ic-server 10.0.0`.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let numbers = line.trim().strip_prefix("pocket-ic-server ")?;
        let mut numbers = numbers.split('.').map(|number| number.parse().ok());
        let version =
            Self { major: numbers.next()??, minor: numbers.next()??, patch: numbers.next()?? };
        numbers.next().is_none().then_some(version)
    }

    pub(crate) fn generation(self) -> Option<Generation> {
        match self.major {
            10 => Some(Generation::V10),
            16 => Some(Generation::V16),
            _ => None,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_servers_print() {
        let version = Version::parse("pocket-ic-server 16.1.0\n").unwrap();
        assert_eq!(version.to_string(), "16.1.0");
        assert_eq!(version.generation(), Some(Generation::V16));
        let recorded = Version::parse("pocket-ic-server 10.0.0").unwrap();
        assert_eq!(recorded.generation(), Some(Generation::V10));
    }

    #[test]
    fn refuses_what_is_no_server() {
        for line in ["", "pocket-ic 16.0.0", "pocket-ic-server 16", "pocket-ic-server 1.2.3.4"] {
            assert_eq!(Version::parse(line), None, "{line:?}");
        }
        assert_eq!(Version::parse("pocket-ic-server 13.0.0").unwrap().generation(), None);
    }
}
