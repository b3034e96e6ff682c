//! How a rule set charges for memory pages, in words.

/// Words on one rule set.
struct Words {
    name: &'static str,
    /// What the charge of a message holds.
    charge: &'static str,
    /// What the counter shows of it.
    counter: &'static str,
}

const WORDS: [Words; 2] = [
    Words {
        name: "2025-10",
        charge: "the charge is the counter at the end and 1 000 instructions for each heap page (4 KiB) \
                 changed. The counter holds 1 000 for each page of stable memory (4 KiB) written.",
        counter: "What the counter does not see, changed heap pages, is in the whole charge.",
    },
    Words {
        name: "2026-08",
        charge: "the charge is the counter at the end. It holds 80 000 instructions for the first touch \
                 of each Wasm page (64 KiB) of heap or stable memory in a message, and another \
                 80 000 for its first write.",
        counter: "The counter holds what touching pages of heap and stable memory costs.",
    },
];

/// Returns a sentence on what the charge of a message holds.
pub fn charge(rules: &str) -> String {
    match words(rules) {
        Some(words) => format!("Rules {rules}: {}", words.charge),
        None => format!("Rules {rules}: what the charge holds is not known here."),
    }
}

/// Returns a sentence on what the counter shows of the charge, where that is known.
pub fn counter(rules: &str) -> Option<&'static str> {
    words(rules).map(|words| words.counter)
}

fn words(rules: &str) -> Option<&'static Words> {
    WORDS.iter().find(|words| words.name == rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::price::FEES;

    #[test]
    fn every_rule_set_with_prices_has_words() {
        for (name, _) in FEES {
            assert!(charge(name).starts_with(&format!("Rules {name}: the charge is")));
            assert!(counter(name).is_some(), "{name}");
        }
        assert_eq!(charge("unknown"), "Rules unknown: what the charge holds is not known here.");
        assert_eq!(counter("unknown"), None);
    }
}
