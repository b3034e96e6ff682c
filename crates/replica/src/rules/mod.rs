//! Rule sets: the network's prices and limits as of a date.
//!
//! The network's rules change over time. Each set is a table of prices, limits and switches in its
//! own file:
//!
//! ```text
//!   rules_2025_10.rs   autumn 2025, as counted by PocketIC 10
//!   rules_2026_08.rs   since August 2026: touching a Wasm page is charged
//!   rules_2026_10.rs   the additions up to October 2026
//! ```
//!
//! [`Rules`] is a set and the kind of subnet that it is applied to. A replica has one, and it is
//! recorded in everything that depends on it: compiled modules, saved canisters, results. Prices
//! of operators (`instrument/operator_cost.rs`) and of the System API (`system_api/names.rs`)
//! are the same in all sets so far and have their own tables.
//!
//! To add a set, add its file and its name to [`Rules::SETS`], and record its cases.

mod rules_2025_10;
mod rules_2026_08;
mod rules_2026_10;
mod set;

use std::fmt;
use std::str::FromStr;

pub use set::{
    Fees, InstructionLimits, MemoryLimits, MessageLimits, ModuleLimits, PagePrices, RuleSet,
};

/// A rule set and the kind of subnet that it is applied to.
#[derive(Clone, Copy)]
pub struct Rules {
    set: &'static RuleSet,
    subnet: SubnetKind,
}

impl Rules {
    /// All sets, oldest first.
    pub const SETS: &[&str] =
        &[rules_2025_10::RULES.name, rules_2026_08::RULES.name, rules_2026_10::RULES.name];

    /// The rules of PocketIC 10, autumn 2025, on an application subnet.
    pub const fn of_2025_10() -> Self {
        Self { set: &rules_2025_10::RULES, subnet: SubnetKind::Application }
    }

    /// The rules in force since August 2026, on an application subnet.
    pub const fn of_2026_08() -> Self {
        Self { set: &rules_2026_08::RULES, subnet: SubnetKind::Application }
    }

    /// The rules of October 2026, on an application subnet.
    pub const fn of_2026_10() -> Self {
        Self { set: &rules_2026_10::RULES, subnet: SubnetKind::Application }
    }

    /// The newest rules on an application subnet.
    pub const fn today() -> Self {
        Self::of_2026_10()
    }

    /// The same set on another kind of subnet.
    #[must_use]
    pub const fn on(self, subnet: SubnetKind) -> Self {
        Self { subnet, ..self }
    }

    /// Variants of sets that differ in one rule: a price that the recording server had for a day.
    pub const VARIANTS: &[&str] = &[rules_2026_08::RECORDED.name];

    /// Name of the set, such as `2026-08`.
    pub const fn name(&self) -> &'static str {
        self.set.name
    }

    /// The kind of subnet.
    pub const fn subnet(&self) -> SubnetKind {
        self.subnet
    }

    /// Prices, limits and switches of the set.
    pub const fn set(&self) -> &'static RuleSet {
        self.set
    }

    /// Instruction limits of messages.
    pub const fn instructions(&self) -> &'static InstructionLimits {
        match self.subnet {
            SubnetKind::Application | SubnetKind::Free => &self.set.application,
            SubnetKind::System => &self.set.system,
            SubnetKind::Benchmarking | SubnetKind::FreeBenchmarking => &self.set.benchmarking,
        }
    }

    /// Cycles for messages and memory.
    pub const fn fees(&self) -> &'static Fees {
        match self.subnet {
            SubnetKind::Application | SubnetKind::Benchmarking => &self.set.fees,
            SubnetKind::System | SubnetKind::Free | SubnetKind::FreeBenchmarking => &Fees::NONE,
        }
    }

    /// Prices of touched pages.
    pub const fn pages(&self) -> &'static PagePrices {
        &self.set.pages
    }

    /// Returns true if the same work counts the same instructions as by the other rules.
    pub fn counts_as(&self, other: Self) -> bool {
        let counted = |rules: &Self| (rules.set.pages, rules.set.return_call_indirect);
        counted(self) == counted(&other)
    }

    /// Returns true if the first touch of a Wasm page is charged.
    pub const fn charges_touches(&self) -> bool {
        self.set.pages.wasm_page_touched.get() > 0
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::today()
    }
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        (self.set.name, self.subnet) == (other.set.name, other.subnet)
    }
}

impl Eq for Rules {}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.set.name)
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rules").field(&self.set.name).field(&self.subnet).finish()
    }
}

/// No rule set has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are no rules {0}; there are {known}", known = Rules::SETS.join(", "))]
pub struct UnknownRules(String);

impl FromStr for Rules {
    type Err = UnknownRules;

    fn from_str(name: &str) -> Result<Self, UnknownRules> {
        let sets = [
            &rules_2025_10::RULES,
            &rules_2026_08::RULES,
            &rules_2026_08::RECORDED,
            &rules_2026_10::RULES,
        ];
        let set = sets.into_iter().find(|set| set.name == name);
        let set = set.ok_or_else(|| UnknownRules(name.to_owned()))?;
        Ok(Self { set, subnet: SubnetKind::Application })
    }
}

/// Kinds of subnets, as in PocketIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SubnetKind {
    /// 13 nodes, production limits.
    #[default]
    Application,
    /// Larger limits; nothing is charged.
    System,
    /// An application subnet whose instruction limits are out of reach.
    Benchmarking,
    /// An application subnet on which nothing is charged.
    Free,
    /// The limits of a benchmarking subnet; nothing is charged.
    FreeBenchmarking,
}

impl SubnetKind {
    /// The name in PocketIC and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::System => "system",
            Self::Benchmarking => "benchmarking",
            Self::Free => "free",
            Self::FreeBenchmarking => "free benchmarking",
        }
    }
}

impl fmt::Display for SubnetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_set_is_found_by_its_name() {
        for name in Rules::SETS {
            let rules: Rules = name.parse().unwrap();
            assert_eq!((rules.name(), rules.subnet()), (*name, SubnetKind::Application));
        }
        let error = "2024-01".parse::<Rules>().unwrap_err().to_string();
        assert_eq!(error, "there are no rules 2024-01; there are 2025-10, 2026-08, 2026-10");
    }

    #[test]
    fn the_subnet_decides_on_limits_and_fees() {
        let rules = Rules::of_2025_10();
        assert_eq!(rules.on(SubnetKind::System).instructions().update.get(), 50_000_000_000);
        assert_eq!(rules.on(SubnetKind::System).fees().instruction, 0);
        let benchmarking = rules.on(SubnetKind::Benchmarking);
        assert_eq!(benchmarking.instructions().query.get(), 99_999_999_999_999);
        assert_eq!(benchmarking.fees().instruction, 1);
        assert_ne!(benchmarking, rules);
    }

    #[test]
    fn variants_differ_in_one_rule() {
        let (set, variant) = (Rules::of_2026_08(), Rules::VARIANTS[0].parse().unwrap());
        assert_ne!(set, variant);
        let prices = [set, variant].map(|rules| rules.set().return_call_indirect.get());
        assert_eq!(prices, [60, 6]);
    }

    #[test]
    fn additions_do_not_change_counts() {
        assert!(Rules::of_2026_10().counts_as(Rules::of_2026_08()));
        assert!(!Rules::of_2026_08().counts_as(Rules::of_2025_10()));
        assert!(!Rules::of_2026_08().counts_as(Rules::VARIANTS[0].parse().unwrap()));
    }
}
