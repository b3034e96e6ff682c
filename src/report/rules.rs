//! Sentences on how a rule set charges for memory pages.

use stablebench_replica::Rules;

use super::number::Grouped;

/// Returns a sentence on what the charge of a message holds.
pub fn charge(name: &str) -> String {
    let Ok(rules) = name.parse::<Rules>() else {
        return format!("Rules {name}: what the charge holds is not known here.");
    };
    let pages = rules.pages();
    if rules.charges_touches() {
        return format!(
            "Rules {name}: the charge is the counter at the end. It holds {} instructions for the \
             first touch of each Wasm page (64 KiB) of heap or stable memory in a message, and \
             another {} for its first write.",
            Grouped(pages.wasm_page_touched.get()),
            Grouped(pages.wasm_page_written.get()),
        );
    }
    format!(
        "Rules {name}: the charge is the counter at the end and {} instructions for each heap page \
         (4 KiB) changed. The counter holds {} for each page of stable memory (4 KiB) written.",
        Grouped(pages.heap_os_page_changed.get()),
        Grouped(pages.stable_os_page_written.get()),
    )
}

/// Returns a sentence on what the counter shows of the charge, where that is known.
pub fn counter(name: &str) -> Option<&'static str> {
    Some(if name.parse::<Rules>().ok()?.charges_touches() {
        "The counter holds what touching pages of heap and stable memory costs."
    } else {
        "What the counter does not see, changed heap pages, is in the whole charge."
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_set_has_words() {
        for name in Rules::SETS.iter().chain(Rules::VARIANTS) {
            assert!(charge(name).starts_with(&format!("Rules {name}: the charge is")));
            assert!(counter(name).is_some(), "{name}");
        }
        assert!(charge("2025-10").contains(" 1 000 instructions for each heap page"));
        assert!(charge("2026-08").contains(" 80 000 instructions for the first touch"));
        assert_eq!(charge("unknown"), "Rules unknown: what the charge holds is not known here.");
        assert_eq!(counter("unknown"), None);
    }
}
