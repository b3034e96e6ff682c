//! How the stand-in misbehaves.

use std::str::FromStr;

/// The variable that says how.
pub const FAULT: &str = "STAND_IN_FAULT";

/// Misbehaviours. The words are the variable's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `exit`: ends at once, with words on stderr.
    Exit,
    /// `die:METHOD:N`: ends at the Nth call of a method of the management canister.
    Die { method: String, call: u32 },
    /// `fail:METHOD`: answers such a call with an error of the server's.
    Fail { method: String },
    /// `rates`: refuses the first install, and the first snapshot, for a rate.
    Rates,
    /// `rounds:N`: every message takes N rounds more.
    Rounds(u32),
    /// `busy`: is busy at first, then says that it has begun, and answers when asked for
    /// the second time.
    Busy,
}

impl Fault {
    /// What the variable says.
    pub fn asked() -> Option<Self> {
        let text = std::env::var(FAULT).ok()?;
        Some(text.parse().unwrap_or_else(|()| panic!("{FAULT}={text}?")))
    }
}

impl FromStr for Fault {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split(':');
        let mut next = || parts.next().ok_or(());
        Ok(match next()? {
            "exit" => Self::Exit,
            "die" => Self::Die { method: next()?.to_owned(), call: next()?.parse().map_err(drop)? },
            "fail" => Self::Fail { method: next()?.to_owned() },
            "rates" => Self::Rates,
            "rounds" => Self::Rounds(next()?.parse().map_err(drop)?),
            "busy" => Self::Busy,
            _ => return Err(()),
        })
    }
}
