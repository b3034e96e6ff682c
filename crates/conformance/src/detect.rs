//! Detection of the rules by which a replica charges.
//!
//! A canister measures the charges for single memory accesses and for one operator (`probe.wat`).
//! The rules are those under which the embedded replica returns the same measurements.

use std::fmt;

use stablebench_replica::Rules;

use crate::case::{Call, Case, Kind, Source};
use crate::embedded::Embedded;
use crate::error::Failure;
use crate::target::{Answers, Target, run};

const PROBE: &str = include_str!("probe.wat");

/// The measurements of the probe, in the order of its reply.
const MEASURED: [&str; 8] = [
    "the first read of a heap page",
    "a first write after it",
    "a first write to another heap page",
    "the first stable_read",
    "the second stable_read of that page",
    "a stable_write to that page",
    "a stable_write to another page",
    "return_call_indirect",
];

/// The charge of each measurement.
type Charges = [u64; MEASURED.len()];

/// No known rule set matches the charges of the replica.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the replica charges by rules that are not known here: {}", self.listed())]
pub struct UnknownRules {
    found: Charges,
    nearest: &'static str,
    expected: Charges,
}

impl UnknownRules {
    /// Lists the differences to the nearest set.
    fn listed(&self) -> String {
        let Self { found, nearest, expected } = self;
        let differing: Vec<String> = MEASURED
            .iter()
            .zip(found.iter().zip(expected))
            .filter(|(_, (found, expected))| found != expected)
            .map(|(what, (found, expected))| {
                format!("{what} costs {found} instructions, {expected} by {nearest}")
            })
            .collect();
        differing.join("; ")
    }
}

/// The rules of a replica could not be detected.
#[derive(Debug)]
pub enum Undetected {
    /// No known set matches.
    Unknown(Box<UnknownRules>),
    /// The probe could not be run.
    Failed(Failure),
}

impl fmt::Display for Undetected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(unknown) => unknown.fmt(f),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for Undetected {}

impl From<Failure> for Undetected {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Detects the rules by which a replica charges, on an application subnet.
///
/// # Errors
///
/// If no known set matches, or the probe could not be run.
pub fn detect(target: &mut dyn Target) -> Result<Rules, Undetected> {
    let found = charges(target)?;
    let mut nearest: Option<(usize, UnknownRules)> = None;
    for name in Rules::SETS.iter().rev().chain(Rules::VARIANTS) {
        let rules: Rules = name.parse().map_err(|error| Undetected::Failed(Box::new(error)))?;
        let expected = charges(&mut Embedded::new(rules)?)?;
        let differing = found.iter().zip(&expected).filter(|(one, other)| one != other).count();
        if differing == 0 {
            return Ok(rules);
        }
        if nearest.as_ref().is_none_or(|(fewest, _)| differing < *fewest) {
            nearest = Some((differing, UnknownRules { found, nearest: name, expected }));
        }
    }
    match nearest {
        Some((_, unknown)) => Err(Undetected::Unknown(Box::new(unknown))),
        None => Err(Undetected::Failed("there are no rules to compare with".into())),
    }
}

fn charges(target: &mut dyn Target) -> Result<Charges, Failure> {
    let case = Case {
        name: "probe".to_owned(),
        group: "rules".to_owned(),
        module: Source::Wat(PROBE.to_owned()),
        install: None,
        calls: vec![Call::new(Kind::Update, "probe", [])],
    };
    let wasm = wat::parse_str(PROBE)?;
    let Answers::Calls(answers) = run(target, &case, &wasm)? else {
        return Err("it refused the canister that detects its rules".into());
    };
    let reply = answers.into_iter().next().and_then(|answer| answer.outcome.ok());
    let reply = reply.ok_or("the canister that detects its rules did not reply")?;
    let (numbers, rest) = reply.as_chunks::<8>();
    let charges: Vec<u64> = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
    match Charges::try_from(charges) {
        Ok(charges) if rest.is_empty() => Ok(charges),
        _ => Err("the canister that detects its rules sent an unexpected reply".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Answer, Canister, Installed};

    #[test]
    fn each_set_and_variant_is_detected() {
        for name in Rules::SETS.iter().chain(Rules::VARIANTS) {
            let mut replica = Embedded::new(name.parse().unwrap()).unwrap();
            assert_eq!(detect(&mut replica).unwrap().name(), *name);
        }
    }

    /// A replica that charges one more instruction for the first read of a heap page.
    struct MoreExpensive(Embedded);

    struct Charged(Box<dyn Canister>);

    impl Target for MoreExpensive {
        fn install(&mut self, wasm: &[u8]) -> Result<Installed, Failure> {
            Ok(match self.0.install(wasm)? {
                Installed::Canister(canister) => Installed::Canister(Box::new(Charged(canister))),
                refused @ Installed::Refused(_) => refused,
            })
        }
    }

    impl Canister for Charged {
        fn call(&mut self, kind: Kind, method: &str, arg: &[u8]) -> Result<Answer, Failure> {
            let mut answer = self.0.call(kind, method, arg)?;
            answer.outcome.as_mut().unwrap()[0] += 1;
            Ok(answer)
        }
    }

    #[test]
    fn other_charges_are_compared_with_the_nearest_set() {
        let mut replica = MoreExpensive(Embedded::new(Rules::of_2026_08()).unwrap());
        let error = detect(&mut replica).unwrap_err().to_string();
        let expected = "the replica charges by rules that are not known here: the first read of a \
                        heap page costs";
        assert!(error.starts_with(expected) && error.ends_with("by 2026-08"), "{error}");
        assert!(!error.contains(';'), "nothing else differs: {error}");
    }
}
