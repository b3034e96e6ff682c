//! The state of a canister, page by page: as a model has it, and as the file has it that a canister
//! saves. Other tests include this file too.
//!
//! ```text
//!   preamble │ header │ checksums │ module │ … │ heap │ … │ stable memory     (memories at Wasm pages)
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::Value;
use sha2::{Digest, Sha256};
use stablebench_replica::{Canister, Principal, Replica, Rules};

/// The caller of all messages and the controller of all canisters.
pub const CALLER: Principal = Principal::anonymous();

pub const PAGE: usize = 4_096;
pub const WASM_PAGE: u64 = 65_536;
/// Bytes before the header; the second eight contain its length.
const PREAMBLE: u64 = 48;

/// Pages that are not all zero.
pub type Pages = BTreeMap<u64, Vec<u8>>;

/// The replica for all inputs.
pub fn replica() -> &'static Replica {
    static REPLICA: OnceLock<Replica> = OnceLock::new();
    REPLICA.get_or_init(|| Replica::new(Rules::of_2025_10(), None).expect("the engine runs here"))
}

/// A memory; only pages that are not zero are stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    pub pages: Pages,
    /// In WebAssembly pages.
    pub size: u64,
}

impl Memory {
    pub fn contains(&self, at: u64, length: u64) -> bool {
        at.checked_add(length).is_some_and(|end| end <= self.size * WASM_PAGE)
    }

    pub fn write(&mut self, at: u64, bytes: &[u8]) {
        for (page, at, part) in pages_of(at, bytes.len() as u64) {
            let content = self.pages.entry(page).or_insert_with(|| vec![0; PAGE]);
            content[at..at + part.len()].copy_from_slice(&bytes[part]);
            if content.iter().all(|byte| *byte == 0) {
                self.pages.remove(&page);
            }
        }
    }

    pub fn read(&self, at: u64, length: u64) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        for (page, at, part) in pages_of(at, length) {
            if let Some(content) = self.pages.get(&page) {
                let size = part.len();
                bytes[part].copy_from_slice(&content[at..at + size]);
            }
        }
        bytes
    }

    pub fn number(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.read(at, 8).try_into().expect("eight bytes"))
    }

    pub fn grow(&mut self, delta: u64, most: u64) -> u64 {
        let before = self.size;
        match before.checked_add(delta) {
            Some(after) if after <= most => self.size = after,
            _ => return u64::MAX,
        }
        before
    }
}

/// Numbers of the pages whose content differs.
pub fn changed(before: &Memory, after: &Memory) -> Vec<u64> {
    let pages: BTreeSet<u64> = before.pages.keys().chain(after.pages.keys()).copied().collect();
    let differs = |page: &u64| before.pages.get(page) != after.pages.get(page);
    pages.into_iter().filter(differs).collect()
}

/// The parts of a range in each page: number of the page, offset in it, part of the range.
fn pages_of(at: u64, length: u64) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let end = at + length;
    (at / PAGE as u64..end.div_ceil(PAGE as u64)).map(move |page| {
        let (first, next) = (page * PAGE as u64, (page + 1) * PAGE as u64);
        let part = first.max(at)..next.min(end);
        let inside = (part.start - at) as usize..(part.end - at) as usize;
        (page, (part.start - first) as usize, inside)
    })
}

/// The state of a canister with a module.
#[derive(Clone, PartialEq)]
pub struct Content {
    /// The header without the fields that change with every message.
    pub header: serde_json::Map<String, Value>,
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
    pub fn kept(&self) -> (&serde_json::Map<String, Value>, &Pages, &Pages) {
        (&self.header, &self.heap, &self.stable)
    }

    fn read(file: &File) -> Self {
        let mut length = [0; 8];
        file.read_exact_at(&mut length, 8).expect("a preamble");
        let mut header = vec![0; u64::from_le_bytes(length) as usize];
        file.read_exact_at(&mut header, PREAMBLE).expect("a header");
        let end = PREAMBLE + header.len() as u64;
        let mut header: serde_json::Map<String, Value> =
            serde_json::from_slice(&header).expect("JSON");
        let number = |value: Option<Value>| value.and_then(|value| value.as_u64());
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

/// The parts after the header.
pub struct Rest {
    /// Of the heap, and of stable memory.
    pub checksums: [u8; 8],
    pub module: Vec<u8>,
    pub memories: Vec<u8>,
}

/// Splits a file into its header and the rest.
pub fn parts(whole: &[u8]) -> (serde_json::Map<String, Value>, Rest) {
    let length = u64::from_le_bytes(whole[8..16].try_into().unwrap()) as usize;
    let end = PREAMBLE as usize + length;
    let header: serde_json::Map<String, Value> =
        serde_json::from_slice(&whole[PREAMBLE as usize..end]).unwrap();
    let module = end + 8..end + 8 + header["module"].as_u64().unwrap() as usize;
    let rest = Rest {
        checksums: whole[end..end + 8].try_into().unwrap(),
        memories: whole[module.end.next_multiple_of(WASM_PAGE as usize)..].to_vec(),
        module: whole[module].to_vec(),
    };
    (header, rest)
}

/// Assembles a file with the given header and a matching checksum.
pub fn sealed(header: &[u8], rest: &Rest) -> Vec<u8> {
    let checksum = Sha256::new().chain_update(header).chain_update(rest.checksums).finalize();
    let length = (header.len() as u64).to_le_bytes();
    let mut file =
        [b"canister", &length[..], &checksum, header, &rest.checksums, &rest.module].concat();
    file.resize(file.len().next_multiple_of(WASM_PAGE as usize), 0);
    file.extend(&rest.memories);
    file
}
