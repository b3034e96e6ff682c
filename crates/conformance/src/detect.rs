//! Detection of the rules by which a replica charges.
//!
//! A canister measures the charges for single memory accesses and for one operator, and calls a
//! method that is missing (`probe.wat`). The rules are those under which the embedded replica returns
//! the same measurements, and a reject that links to the same page.

use std::fmt;

use stablebench_replica::Rules;

use crate::case::{Call, Case, Kind, Source};
use crate::embedded::Embedded;
use crate::error::Failure;
use crate::subnet::{Expected, SubnetCase};
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

/// The numbers and the page by which rule sets differ.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Observed {
    charges: Charges,
    /// The page to which a reject links.
    page: String,
}

impl Observed {
    /// Number of differences.
    fn differing(&self, other: &Self) -> usize {
        let charges = self.charges.iter().zip(&other.charges);
        charges.filter(|(one, other)| one != other).count() + usize::from(self.page != other.page)
    }
}

/// No known rule set matches the charges of the replica.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the replica charges by rules that are not known here: {}", self.listed())]
pub struct UnknownRules {
    found: Observed,
    nearest: &'static str,
    expected: Observed,
}

impl UnknownRules {
    /// Lists the differences to the nearest set.
    fn listed(&self) -> String {
        let Self { found, nearest, expected } = self;
        let mut differing: Vec<String> = MEASURED
            .iter()
            .zip(found.charges.iter().zip(&expected.charges))
            .filter(|(_, (found, expected))| found != expected)
            .map(|(what, (found, expected))| {
                format!("{what} costs {found} instructions, {expected} by {nearest}")
            })
            .collect();
        if found.page != expected.page {
            let (found, expected) = (&found.page, &expected.page);
            differing.push(format!("rejects link to {found}, to {expected} by {nearest}"));
        }
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
    let found = observed(target)?;
    let mut nearest: Option<(usize, UnknownRules)> = None;
    for name in Rules::SETS.iter().rev().chain(Rules::VARIANTS) {
        let rules: Rules = name.parse().map_err(|error| Undetected::Failed(Box::new(error)))?;
        let expected = observed(&mut Embedded::new(rules)?)?;
        let differing = found.differing(&expected);
        if differing == 0 {
            return Ok(rules);
        }
        if nearest.as_ref().is_none_or(|(fewest, _)| differing < *fewest) {
            let found = found.clone();
            nearest = Some((differing, UnknownRules { found, nearest: name, expected }));
        }
    }
    match nearest {
        Some((_, unknown)) => Err(Undetected::Unknown(Box::new(unknown))),
        None => Err(Undetected::Failed("there are no rules to compare with".into())),
    }
}

fn observed(target: &mut dyn Target) -> Result<Observed, Failure> {
    Ok(Observed { charges: charges(target)?, page: page(target)? })
}

/// Returns the page to which the reject of a missing method links, as a canister sees it.
fn page(target: &mut dyn Target) -> Result<String, Failure> {
    let case = SubnetCase {
        name: "probe".to_owned(),
        canisters: vec![PROBE.to_owned()],
        keys: false,
        ids: Vec::new(),
        balances: Vec::new(),
        steps: Vec::new(),
    };
    let mut subnet = target.create(&case, &[wat::parse_str(PROBE)?])?;
    let id = *subnet.ids().first().ok_or("it created no canister")?;
    let answer = subnet.call(id, Kind::Update, "rejected", &[], &[])?;
    let Expected::Reply(text) = answer else {
        return Err("the canister that detects its rules did not reply".into());
    };
    let text = String::from_utf8_lossy(&text);
    let link = text.split_once("See documentation: ").and_then(|(_, link)| link.split_once('#'));
    let (page, _) = link.ok_or("the reject of a missing method has no link")?;
    Ok(page.to_owned())
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
    use crate::subnet::RunningSubnet;
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

        fn create(
            &mut self,
            case: &SubnetCase,
            modules: &[Vec<u8>],
        ) -> Result<Box<dyn RunningSubnet>, Failure> {
            self.0.create(case, modules)
        }
    }

    #[test]
    fn sets_with_the_same_charges_link_to_other_pages() {
        let of = |rules| observed(&mut Embedded::new(rules).unwrap()).unwrap();
        let (august, october) = (of(Rules::of_2026_08()), of(Rules::of_2026_10()));
        assert_eq!(august.charges, october.charges);
        assert_eq!(october.page, Rules::of_2026_10().set().error_documentation);
        assert_ne!(august.page, october.page);
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
