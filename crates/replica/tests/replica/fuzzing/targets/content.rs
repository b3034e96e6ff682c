//! The state of a canister, page by page, from the file that it saves.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use stablebench_replica::Canister;

/// Bytes before the header; the second eight contain its length.
const PREAMBLE: u64 = 48;
pub const PAGE: usize = 4_096;
const WASM_PAGE: u64 = 65_536;

/// Pages that are not all zero.
pub type Pages = BTreeMap<u64, Vec<u8>>;

/// The state of a canister with a module.
#[derive(Clone, PartialEq)]
pub struct Content {
    /// The header without the fields that change with every message.
    pub header: serde_json::Map<String, serde_json::Value>,
    pub heap: Pages,
    pub stable: Pages,
    pub version: u64,
    pub time: u64,
    pub balance: u128,
}

/// Asserts that two memories have the same content.
#[track_caller]
pub fn same_pages(what: &str, got: &Pages, expected: &Pages) {
    let zero = vec![0; PAGE];
    for number in got.keys().chain(expected.keys()) {
        let page = |pages: &Pages| pages.get(number).unwrap_or(&zero).clone();
        let (got, expected) = (page(got), page(expected));
        if let Some(at) = (0..PAGE).find(|at| got[*at] != expected[*at]) {
            let shown = at..PAGE.min(at + 16);
            let (got, expected) = (&got[shown.clone()], &expected[shown]);
            panic!("{what}, page {number}, byte {at}: {got:x?} instead of {expected:x?}");
        }
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pages = |pages: &Pages| pages.keys().copied().collect::<Vec<_>>();
        write!(
            f,
            "{:?}, version {}, time {}, balance {}, heap {:?}, stable {:?}",
            self.header,
            self.version,
            self.time,
            self.balance,
            pages(&self.heap),
            pages(&self.stable)
        )
    }
}

impl Content {
    pub fn of(canister: &Canister) -> Self {
        let file = Saved::new(canister);
        Self::read(&File::open(&file.0).expect("just written"))
    }

    /// The content without version, time and cycles.
    pub fn kept(&self) -> (&serde_json::Map<String, serde_json::Value>, &Pages, &Pages) {
        (&self.header, &self.heap, &self.stable)
    }

    fn read(file: &File) -> Self {
        let mut length = [0; 8];
        file.read_exact_at(&mut length, 8).expect("a preamble");
        let mut header = vec![0; u64::from_le_bytes(length) as usize];
        file.read_exact_at(&mut header, PREAMBLE).expect("a header");
        let end = PREAMBLE + header.len() as u64;
        let mut header: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(&header).expect("JSON");
        let number = |value: Option<serde_json::Value>| value.and_then(|value| value.as_u64());
        let (version, time) = (number(header.remove("version")), number(header.remove("time")));
        let balance = header.remove("balance").and_then(|text| text.as_str()?.parse().ok());
        let size = |name: &str| header.get(name).and_then(|size| size.as_u64()).expect("a size");
        let heap = (end + size("module")).next_multiple_of(WASM_PAGE);
        let stable = (heap + size("heap")).next_multiple_of(WASM_PAGE);
        Self {
            heap: pages(file, heap..heap + size("heap")),
            stable: pages(file, stable..stable + size("stable")),
            version: version.expect("a version"),
            time: time.expect("a time"),
            balance: balance.expect("a balance"),
            header,
        }
    }
}

/// A saved canister; the file is removed when it is dropped.
pub struct Saved(pub PathBuf);

impl Saved {
    pub fn new(canister: &Canister) -> Self {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // In memory if possible, because each step saves.
        let memory = PathBuf::from("/dev/shm");
        let directory = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let saved = Self(directory.join(format!("fuzzed-{}-{number}", std::process::id())));
        canister.save(&saved.0).expect("a canister with a module can be saved");
        saved
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn pages(file: &File, bytes: Range<u64>) -> Pages {
    let mut pages = Pages::new();
    for present in present(file, bytes.clone()) {
        for at in present.step_by(PAGE) {
            let mut page = vec![0; PAGE];
            file.read_exact_at(&mut page, at).expect("a page of the file");
            if page.iter().any(|byte| *byte != 0) {
                pages.insert((at - bytes.start) / PAGE as u64, page);
            }
        }
    }
    pages
}

/// Ranges of pages outside of holes, because a stable memory may be large.
#[cfg(target_os = "linux")]
fn present(file: &File, bytes: Range<u64>) -> Vec<Range<u64>> {
    use rustix::fs::{SeekFrom, seek};
    let page = PAGE as u64;
    let mut ranges = Vec::new();
    let mut at = bytes.start;
    while at < bytes.end {
        let Ok(data) = seek(file, SeekFrom::Data(at)) else {
            break;
        };
        if data >= bytes.end {
            break;
        }
        at = seek(file, SeekFrom::Hole(data)).expect("a hole follows").min(bytes.end);
        let first = bytes.start + (data - bytes.start) / page * page;
        ranges.push(first..bytes.start + (at - bytes.start).next_multiple_of(page));
    }
    ranges
}

#[cfg(not(target_os = "linux"))]
fn present(_file: &File, bytes: Range<u64>) -> Vec<Range<u64>> {
    std::iter::once(bytes).collect()
}
