//! A limit that is proposed for the network: how much of the heap a message may touch.
//!
//! The rules do not contain it. Today no heap is larger than the limit, so that a message can only
//! exceed it once the network, and these rules, allow larger heaps.
//!
//! Source: `dfinity/ic` #11400, which was open in October 2026.

use super::{Inside, PageCosts};
use crate::report::number::Grouped;

/// Wasm pages of the heap that a message may touch: 6 GiB.
const HEAP_PAGES: u64 = (6 << 30) >> 16;

/// Returns a warning if a message touched more of the heap than the proposed limit allows.
pub fn heap_warning(name: &str, inside: &Inside) -> Option<String> {
    let pages = inside.pages.as_ref().and_then(|PageCosts { touched, .. }| touched.as_ref())?;
    (pages.heap > HEAP_PAGES).then(|| {
        format!(
            "{name} touched {} Wasm pages of the heap in one message; a limit that is proposed for \
             the network allows {} (6 GiB)",
            Grouped(pages.heap),
            Grouped(HEAP_PAGES)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::TouchedPages;

    #[test]
    fn more_than_six_gib_are_warned_about() {
        let touching = |heap| {
            let touched = Some(TouchedPages { heap, ..TouchedPages::default() });
            let pages = Some(PageCosts { touched, ..PageCosts::default() });
            heap_warning("scan", &Inside { pages, ..Inside::default() })
        };
        assert_eq!(touching(98_304), None);
        let expected = "scan touched 98 305 Wasm pages of the heap in one message; a limit that is \
                        proposed for the network allows 98 304 (6 GiB)";
        assert_eq!(touching(98_305).as_deref(), Some(expected));
        // Older rules and older results do not tell.
        assert_eq!(heap_warning("scan", &Inside::default()), None);
    }
}
