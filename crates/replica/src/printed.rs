//! The texts that a message prints, of which the newest are kept.

use std::collections::VecDeque;

use crate::limits::{LOG_RECORD_OVERHEAD, MAX_PRINTED};

/// The newest texts of a message, as many as the largest log holds, so that a canister that prints
/// in a loop uses bounded memory.
///
/// Source: `CanisterLog` in `rs/types/types/src/canister_log.rs` of the replica.
#[derive(Clone, Debug, Default)]
pub struct Printed {
    texts: VecDeque<String>,
    bytes: u64,
    /// Number of texts before those.
    dropped: u64,
}

impl Printed {
    /// Adds a text, and drops the oldest if there is no room for it.
    pub fn add(&mut self, text: String) {
        self.bytes += size(&text);
        self.texts.push_back(text);
        while self.bytes > MAX_PRINTED.get()
            && let Some(oldest) = self.texts.pop_front()
        {
            self.bytes -= size(&oldest);
            self.dropped += 1;
        }
    }

    /// Adds the texts that a later function printed.
    pub fn append(&mut self, later: Self) {
        if later.dropped > 0 {
            let texts = std::mem::take(&mut self.texts);
            self.dropped += texts.len() as u64 + later.dropped;
            self.bytes = 0;
        }
        later.texts.into_iter().for_each(|text| self.add(text));
    }

    /// The texts, the oldest first, and the number of those before them.
    pub fn into_parts(self) -> (Vec<String>, u64) {
        (self.texts.into(), self.dropped)
    }
}

fn size(text: &str) -> u64 {
    text.len() as u64 + LOG_RECORD_OVERHEAD.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(first: u64, last: u64) -> Printed {
        let mut printed = Printed::default();
        (first..=last).for_each(|number| printed.add(format!("{number:05}")));
        printed
    }

    #[test]
    fn the_newest_texts_are_kept() {
        let most = MAX_PRINTED.get() / 45;
        let (texts, dropped) = printed(1, most).into_parts();
        assert_eq!((texts.len() as u64, dropped), (most, 0));
        let (texts, dropped) = printed(1, most + 2).into_parts();
        assert_eq!((texts.len() as u64, dropped), (most, 2));
        assert_eq!(texts[0], "00003");
    }

    #[test]
    fn texts_of_a_later_function_replace_earlier_ones() {
        let most = MAX_PRINTED.get() / 45;
        let after = |last| {
            let mut all = printed(1, 10);
            all.append(printed(11, last));
            all.into_parts()
        };
        assert_eq!(after(20).0.concat(), printed(1, 20).into_parts().0.concat());
        assert_eq!(after(20).1, 0);
        let (texts, dropped) = after(most + 1);
        assert_eq!((texts[0].as_str(), dropped), ("00002", 1));
        let (texts, dropped) = after(most + 11);
        assert_eq!((texts[0].as_str(), dropped), ("00012", 11));
    }
}
