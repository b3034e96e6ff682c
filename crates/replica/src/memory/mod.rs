//! Copy-on-write memories.
//!
//! The committed content of a memory is an [`Image`]: files stacked in layers. A message works on a
//! private [`Mapping`] of the image:
//!
//! ```text
//!   mapping   ····▓▓····▓····   private pages that the message wrote
//!   layer 1       ░░░           pages committed since the fork
//!   layer 0   ███████████       shared with the fork
//! ```
//!
//! Pages in no layer were never written and are zero: the mapping has no file there, so that reading
//! them takes no space and a first write copies nothing.
//!
//! Commit moves the changed pages into the top layer, or into a new one if the top layer is shared
//! with a fork, and discards them from the mapping, which then shows the layer's pages. The next
//! message can use the same mapping. Discarding the pages without moving them undoes the message.
//! [`os`] has what differs between operating systems.

mod image;
#[expect(unsafe_code, reason = "maps address space, and lends it out as slices and to the engine")]
mod mapping;
pub mod os;
#[expect(unsafe_code, reason = "reserves addresses, and lends out words of them")]
mod space;
#[expect(unsafe_code, reason = "changes access rights and handles signals")]
mod touch;

pub use image::{Image, MappingState};
pub use mapping::{Creator, Mapping, Rights, prepare};
pub use pages::PAGE;
pub use space::{Claim, NoMappings, Slot, Word};
pub use touch::{Access, PageTracker, TouchPrices, Touches, faulted};

/// Ranges of pages: ascending and not adjacent.
pub mod pages {
    use std::ops::Range;

    use crate::units::OS_PAGE;

    /// Bytes of an OS page, as a machine word.
    pub const PAGE: usize = OS_PAGE as usize;

    /// A range of pages of a memory.
    pub type Pages = Range<usize>;

    /// Number of pages in the ranges.
    pub fn count(ranges: &[Pages]) -> usize {
        ranges.iter().map(Range::len).sum()
    }

    /// Appends a page.
    pub fn push(ranges: &mut Vec<Pages>, page: usize) {
        match ranges.last_mut() {
            Some(last) if last.end == page => last.end += 1,
            _ => ranges.push(page..page + 1),
        }
    }

    /// The pages of either.
    pub fn union(one: &[Pages], other: &[Pages]) -> Vec<Pages> {
        let mut all: Vec<Pages> = one.iter().chain(other).cloned().collect();
        all.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Pages> = Vec::new();
        for range in all {
            match merged.last_mut() {
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged
    }

    /// The pages of `whole` that are not in `taken`.
    pub fn without(whole: &[Pages], taken: &[Pages]) -> Vec<Pages> {
        let mut rest = Vec::new();
        let mut taken = taken.iter().peekable();
        for range in whole {
            let mut from = range.start;
            while let Some(other) = taken.peek().filter(|other| other.start < range.end) {
                if other.start > from {
                    rest.push(from..other.start);
                }
                from = from.max(other.end);
                if other.end > range.end {
                    break;
                }
                taken.next();
            }
            if from < range.end {
                rest.push(from..range.end);
            }
        }
        rest
    }

    /// The pages of both.
    pub fn common(one: &[Pages], other: &[Pages]) -> Vec<Pages> {
        without(one, &without(one, other))
    }

    /// At most `most` ranges that cover the given ones. No more gaps are filled than necessary: the
    /// smallest ones, and of equal ones the first.
    pub fn bridged(ranges: &[Pages], most: usize) -> Vec<Pages> {
        let excess = ranges.len().saturating_sub(most.max(1));
        if excess == 0 {
            return ranges.to_vec();
        }
        // With their places, no two gaps are equal.
        let gap = |place: usize| (ranges[place + 1].start - ranges[place].end, place);
        let mut gaps: Vec<(usize, usize)> = (0..ranges.len() - 1).map(gap).collect();
        let widest = *gaps.select_nth_unstable(excess - 1).1;
        let mut bridged: Vec<Pages> = Vec::with_capacity(most);
        for (place, range) in ranges.iter().enumerate() {
            match bridged.last_mut() {
                Some(last) if gap(place - 1) <= widest => last.end = range.end,
                _ => bridged.push(range.clone()),
            }
        }
        bridged
    }

    /// The ranges with all gaps of at most `widest` pages filled.
    pub fn joined(ranges: &[Pages], widest: usize) -> Vec<Pages> {
        let mut joined: Vec<Pages> = Vec::new();
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.start - last.end <= widest => last.end = range.end,
                _ => joined.push(range.clone()),
            }
        }
        joined
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use proptest::prelude::*;

        fn ranges_of(pages: &[bool]) -> Vec<Pages> {
            let mut ranges = Vec::new();
            for page in (0..pages.len()).filter(|page| pages[*page]) {
                push(&mut ranges, page);
            }
            ranges
        }

        fn pages_of(ranges: &[Pages], length: usize) -> Vec<bool> {
            for pair in ranges.windows(2) {
                assert!(pair[0].end < pair[1].start, "{ranges:?}");
            }
            assert!(ranges.iter().all(|range| !range.is_empty()), "{ranges:?}");
            (0..length).map(|page| ranges.iter().any(|range| range.contains(&page))).collect()
        }

        proptest! {
            #[test]
            fn ranges_behave_as_sets(pairs in prop::collection::vec(any::<(bool, bool)>(), 0..80)) {
                let (one, other): (Vec<bool>, Vec<bool>) = pairs.iter().copied().unzip();
                let (a, b) = (ranges_of(&one), ranges_of(&other));
                let length = pairs.len();
                let both: Vec<bool> = pairs.iter().map(|(one, other)| *one || *other).collect();
                let rest: Vec<bool> = pairs.iter().map(|(one, other)| *one && !*other).collect();
                prop_assert_eq!(pages_of(&a, length), one.clone());
                prop_assert_eq!(pages_of(&union(&a, &b), length), both);
                prop_assert_eq!(pages_of(&without(&a, &b), length), rest);
                let shared: Vec<bool> = pairs.iter().map(|(one, other)| *one && *other).collect();
                prop_assert_eq!(pages_of(&common(&a, &b), length), shared);
                prop_assert_eq!(count(&a), one.iter().filter(|page| **page).count());
            }

            #[test]
            fn bridging_covers_all_pages_with_the_smallest_gaps(
                pages in prop::collection::vec(any::<bool>(), 0..200),
                most in 1_usize..20,
            ) {
                let ranges = ranges_of(&pages);
                let bridged = bridged(&ranges, most);
                prop_assert_eq!(bridged.len(), ranges.len().min(most));
                let mut gaps: Vec<usize> =
                    ranges.windows(2).map(|pair| pair[1].start - pair[0].end).collect();
                gaps.sort_unstable();
                let smallest: usize = gaps.iter().take(ranges.len() - bridged.len()).sum();
                prop_assert_eq!(count(&bridged) - count(&ranges), smallest);
                prop_assert_eq!(without(&ranges, &bridged), Vec::new());
                let ends = |ranges: &[Pages]| (ranges.first().map(|r| r.start), ranges.last().map(|r| r.end));
                prop_assert_eq!(ends(&bridged), ends(&ranges));
                if ranges.len() <= most {
                    prop_assert_eq!(bridged, ranges);
                }
            }
        }

        #[test]
        fn equal_gaps_are_filled_only_as_far_as_needed() {
            let ranges: Vec<Pages> = (0..600).map(|page| page * 100..page * 100 + 1).collect();
            let bridged = bridged(&ranges, 512);
            assert_eq!((bridged.len(), count(&bridged)), (512, 600 + 88 * 99));
            assert_eq!((bridged[0].clone(), bridged[511].clone()), (0..8_801, 59_900..59_901));
        }
    }
}
