//! A part of a run: every Nth fixture, from the Ith on. `stablebench merge` joins the parts.

use std::fmt;
use std::str::FromStr;

use super::plan::{Fixture, Plan};

/// `I/N`: the part with the number I, from 1, of N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    pub number: usize,
    pub of: usize,
}

/// The maximum number of shards.
const MOST: usize = 1_000;

impl Shard {
    /// The fixtures of this part of a plan.
    pub fn fixtures(self, plan: &Plan) -> impl Iterator<Item = &Fixture> {
        plan.fixtures.iter().skip(self.number - 1).step_by(self.of)
    }

    /// Returns the plan of this part: its fixtures and their configurations.
    pub fn of(self, mut plan: Plan) -> Plan {
        let all = plan.fixtures.len();
        plan.fixtures = self.fixtures(&plan).cloned().collect();
        let Plan { configurations, fixtures, .. } = &mut plan;
        configurations
            .retain(|one| fixtures.iter().any(|fixture| fixture.configuration.key == one.key));
        if plan.fixtures.is_empty() {
            plan.notes.push(format!(
                "shard {self} has nothing to measure: the run has {all} fixtures, so {all} shards \
                 are enough"
            ));
        }
        plan
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(number, of)| {
            let (number, of) = (number.parse().ok()?, of.parse().ok()?);
            ((1..=of).contains(&number) && of <= MOST).then_some(Self { number, of })
        });
        parsed.ok_or_else(|| {
            format!("a shard is I/N, with I from 1 to N and N up to {MOST}, such as 2/3")
        })
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_written_as_they_are_read() {
        for text in ["1/1", "2/3", "1000/1000"] {
            assert_eq!(text.parse::<Shard>().unwrap().to_string(), text);
        }
        for text in ["", "1", "0/2", "3/2", "1/1001", "1/0", "-1/2", "1/2/3", "a/b"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
