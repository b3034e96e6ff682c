//! Subnets saved to files.
//!
//! ```text
//!   0        magic, 8 bytes
//!   8        length h of the header, u64, little-endian
//!   16       SHA-256 of the header
//!   48       header, JSON
//!   48 + h   chunks
//!   …        canisters and their snapshots, each from a multiple of 64 KiB, as in files of their own
//! ```
//!
//! A snapshot is saved as a canister with its module and its memories. Messages and open calls are
//! not saved: a subnet without them is [idle](Subnet::is_idle).

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::managed::{Code, Global, GlobalTimer, HookStatus, Managed, Snapshot};
use super::member::{Member, SavedPlace};
use super::subnet_state::{Part, Subnet};
use crate::canister::Allocation;
use crate::canister::Canister;
use crate::fault::Reject;
use crate::files::{self, hex};
use crate::module::{Module, first_canister};
use crate::replica::Replica;
use crate::rules::{MAX_CHUNKS, MAX_HISTORY, MAX_LOG, MAX_SNAPSHOTS, Rules};
use crate::saved::{
    Content, LoadError, MAX_AGE, PREAMBLE, SUBNET_MAGIC, Saved, check_rules, is_subnet, load_at,
    preamble, read_part, read_preamble,
};
use crate::state::GlobalValue;
use crate::units::{Bytes, Cycles, WASM_PAGE};

/// The version of the format that this version of the crate reads and writes.
const FORMAT: u32 = 1;
/// Larger than any change in a history.
const MAX_CHANGE: Bytes = Bytes(1 << 20);
/// Larger than any snapshot.
const MAX_SNAPSHOT: Bytes = Bytes(1 << 50);
/// More cycles than there are.
const MAX_CYCLES: Cycles = Cycles(u128::MAX / 4);
/// Larger than any chunk.
const MAX_CHUNK: u64 = 1 << 20;

/// The header of a saved subnet.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: u32,
    /// Text of the caller, returned when the subnet is loaded.
    note: String,
    /// Name of the rules by which the canisters counted.
    rules: String,
    /// The number of the next canister id.
    next_id: u64,
    clock: Clock,
    random: Random,
    /// The chunks of all canisters and snapshots, each once.
    chunks: Vec<SavedChunk>,
    canisters: Vec<SavedCanister>,
}

/// The times of a subnet.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Clock {
    time: u64,
    last_round: u64,
    /// Number of rounds; missing in older files.
    #[serde(default)]
    rounds: u64,
}

/// The source of random bytes.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Random {
    seed: u64,
    drawn: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedChunk {
    /// Its SHA-256.
    hash: String,
    /// Its offset in the file.
    at: u64,
    bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedCanister {
    /// Its offset in the file.
    at: u64,
    place: SavedPlace,
    allocation: Allocation,
    /// Cycles that are reserved for storage.
    reserved: Cycles,
    /// Bytes of each change in the history.
    history: VecDeque<Bytes>,
    managed: Managed,
    /// The hashes of its chunks.
    chunks: Vec<String>,
    snapshots: Vec<SavedSnapshot>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedSnapshot {
    id: Vec<u8>,
    /// Its offset in the file.
    at: u64,
    /// The uploaded values of globals; missing if the snapshot was taken.
    uploaded: Option<Vec<GlobalValue>>,
    timer: Option<GlobalTimer>,
    hook: Option<HookStatus>,
    chunks: Vec<String>,
    taken_at: u64,
    /// Its size.
    bytes: Bytes,
    /// True if it was loaded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    loaded: bool,
}

/// Chunks by their SHA-256.
type Chunks = BTreeMap<[u8; 32], Arc<Vec<u8>>>;

/// The offsets that parts of a file get.
struct Layout<'a> {
    canisters: Vec<Saved<'a>>,
    end: u64,
}

impl<'a> Layout<'a> {
    /// Adds a canister after everything else. Returns its offset.
    fn add(&mut self, canister: &'a Canister, content: Content<'a>) -> io::Result<u64> {
        let at = self.end.next_multiple_of(WASM_PAGE);
        let saved = Saved::new(canister, content, at)?;
        self.end = saved.end();
        self.canisters.push(saved);
        Ok(at)
    }
}

/// A snapshot as a canister.
struct Stand<'a> {
    canister: Canister,
    code: &'a Code,
}

impl<'a> Stand<'a> {
    fn new(owner: &Canister, snapshot: &'a Snapshot) -> io::Result<Self> {
        let mut canister = Canister::new(owner.settings().clone()).map_err(io::Error::other)?;
        // A snapshot has no cycles.
        canister.balance = Cycles(0);
        canister.state = snapshot.state.clone();
        canister.version = snapshot.version;
        Ok(Self { canister, code: &snapshot.code })
    }

    fn content(&self, rules: Rules) -> Content<'_> {
        let module = self.code.bytes();
        let hash = Sha256::digest(module).into();
        Content { rules, hash, module, note: "" }
    }
}

impl Subnet {
    /// Saves the subnet with a note atomically, and waits until it is on disk: its canisters with
    /// everything that belongs to them, its time, and the next canister id. Messages and open calls
    /// are not saved, nor are canisters that are [borrowed](Self::borrow), nor the ids of more than
    /// one part. Links are followed. If several processes may save to the file, use a
    /// [`StateLock`](crate::StateLock).
    ///
    /// # Errors
    ///
    /// If the file cannot be written, or `path` is not a regular file.
    pub fn save(&self, path: &Path, note: &str) -> io::Result<()> {
        let rules = self.replica.rules();
        let mut stands = Vec::new();
        for member in self.members.values() {
            for snapshot in member.managed.snapshots.values() {
                stands.push(Stand::new(&member.canister, snapshot)?);
            }
        }
        let chunks = self.chunks();
        let mut header = Header {
            format: FORMAT,
            note: note.to_owned(),
            rules: rules.name().to_owned(),
            next_id: self.parts.first().map_or(0, Part::next_number),
            clock: Clock { time: self.time, last_round: self.last_round, rounds: self.rounds },
            random: Random { seed: self.seed, drawn: self.drawn },
            chunks: Vec::new(),
            canisters: self.members.values().map(SavedCanister::of).collect(),
        };
        header.chunks = chunks.iter().map(|(hash, bytes)| SavedChunk::of(hash, bytes)).collect();
        // Offsets are numbers of up to 20 digits, in place of one.
        let parts = header.chunks.len() + header.canisters.len() + stands.len();
        let room = serde_json::to_vec(&header)?.len() as u64 + 19 * parts as u64;
        let mut layout = Layout { canisters: Vec::new(), end: PREAMBLE + room };
        for chunk in &mut header.chunks {
            chunk.at = layout.end;
            layout.end += chunk.bytes;
        }
        let mut stands = stands.iter();
        for (saved, member) in header.canisters.iter_mut().zip(self.members.values()) {
            saved.at = layout.add(&member.canister, content(member, rules))?;
            for (snapshot, stand) in saved.snapshots.iter_mut().zip(&mut stands) {
                snapshot.at = layout.add(&stand.canister, stand.content(rules))?;
            }
        }
        let text = serde_json::to_vec(&header)?;
        files::replace(path, |file| {
            for canister in &layout.canisters {
                canister.write(file)?;
            }
            for (saved, bytes) in header.chunks.iter().zip(chunks.values()) {
                file.write_all_at(bytes, saved.at)?;
            }
            file.write_all_at(&preamble(&SUBNET_MAGIC, &text, &[]), 0)?;
            file.write_all_at(&text, PREAMBLE)
        })
    }

    /// The chunks of all canisters and snapshots.
    fn chunks(&self) -> Chunks {
        let managed = self.members.values().map(|member| &member.managed);
        let all = managed.flat_map(|it| {
            let snapshots = it.snapshots.values().flat_map(|snapshot| &snapshot.chunks);
            it.chunks.iter().chain(snapshots)
        });
        all.map(|(hash, bytes)| (*hash, Arc::clone(bytes))).collect()
    }

    /// Sets the time, and passes over the time since the last round: canisters pay nothing for it.
    pub fn resume(&mut self, time: u64) {
        let passed = time.saturating_sub(self.time);
        for member in self.members.values_mut() {
            member.paid_until = member.paid_until.saturating_add(passed);
        }
        self.set_time(time);
    }
}

/// The parts of a member that are not in its canister.
fn content(member: &Member, rules: Rules) -> Content<'_> {
    let module = member.canister.module().map_or(&[][..], Module::uploaded);
    let hash = Sha256::digest(module).into();
    Content { rules, hash, module, note: "" }
}

fn hashes(chunks: &Chunks) -> Vec<String> {
    chunks.keys().map(|hash| hex::encode(hash)).collect()
}

impl SavedChunk {
    fn of(hash: &[u8; 32], bytes: &[u8]) -> Self {
        Self { hash: hex::encode(hash), at: 0, bytes: bytes.len() as u64 }
    }

    fn load(&self, file: &File) -> Result<([u8; 32], Arc<Vec<u8>>), LoadError> {
        if self.bytes > MAX_CHUNK {
            return Err(LoadError::Damaged("its chunks"));
        }
        let bytes = read_part(file, self.at, self.bytes)?;
        let hash = Sha256::digest(&bytes).into();
        match hex::decode(&self.hash) == Some(hash) {
            true => Ok((hash, Arc::new(bytes))),
            false => Err(LoadError::Damaged("its chunks")),
        }
    }
}

impl SavedCanister {
    fn of(member: &Member) -> Self {
        let canister = &member.canister;
        let snapshots = member.managed.snapshots.iter();
        Self {
            at: 0,
            place: member.place(),
            allocation: canister.allocation,
            reserved: canister.reserved,
            history: canister.history.clone(),
            managed: member.managed.clone(),
            chunks: hashes(&member.managed.chunks),
            snapshots: snapshots.map(|(id, it)| SavedSnapshot::of(id, it)).collect(),
        }
    }

    /// Checks what messages rely on.
    fn check(&self) -> Result<(), LoadError> {
        let valid = self.managed.is_valid()
            && self.place.paid_until <= MAX_AGE
            && self.reserved <= MAX_CYCLES
            && self.history.len() <= MAX_HISTORY
            && self.history.iter().all(|change| *change <= MAX_CHANGE)
            && self.allocation.compute <= 100
            && self.allocation.log <= MAX_LOG
            && self.chunks.len() <= MAX_CHUNKS
            && self.snapshots.len() <= MAX_SNAPSHOTS
            && self.snapshots.iter().all(|snapshot| {
                snapshot.bytes <= MAX_SNAPSHOT && snapshot.chunks.len() <= MAX_CHUNKS
            });
        if valid { Ok(()) } else { Err(LoadError::Damaged("its canisters")) }
    }

    /// Adds the canister to a subnet.
    fn load(self, file: &File, chunks: &Chunks, subnet: &mut Subnet) -> Result<(), LoadError> {
        self.check()?;
        let replica = subnet.replica.clone();
        let (mut canister, _) = load_at(file, self.at, replica.rules(), |module| {
            if module.is_empty() { Ok(None) } else { compile(&replica, module).map(Some) }
        })?;
        canister.allocation = self.allocation;
        canister.reserved = self.reserved;
        canister.history = self.history;
        let id = canister.id();
        if !subnet.hosts(&id) {
            return Err(LoadError::Damaged("its canister ids"));
        }
        subnet.add(canister).map_err(|_| LoadError::Damaged("its canister ids"))?;
        let mut managed = Managed { chunks: chosen(chunks, &self.chunks)?, ..self.managed };
        for snapshot in self.snapshots {
            let (id, snapshot) = snapshot.load(file, chunks, &replica)?;
            managed.snapshots.insert(id, Arc::new(snapshot));
        }
        if let Some(member) = subnet.members.get_mut(&id) {
            member.set_place(self.place);
            member.managed = managed;
            member.count_stored();
        }
        Ok(())
    }
}

/// Returns the chunks with these hashes.
fn chosen(chunks: &Chunks, hashes: &[String]) -> Result<Chunks, LoadError> {
    let chunk = |text: &String| {
        let hash = hex::decode(text)?;
        Some((hash, Arc::clone(chunks.get(&hash)?)))
    };
    let found: Option<Chunks> = hashes.iter().map(chunk).collect();
    found.ok_or(LoadError::Damaged("its chunks"))
}

impl SavedSnapshot {
    fn of(id: &[u8], snapshot: &Snapshot) -> Self {
        let uploaded = match &snapshot.code {
            Code::Taken(_) => None,
            Code::Uploaded(_, globals) => Some(globals.iter().map(|it| it.value()).collect()),
        };
        Self {
            id: id.to_vec(),
            at: 0,
            uploaded,
            timer: snapshot.timer,
            hook: snapshot.hook,
            chunks: hashes(&snapshot.chunks),
            taken_at: snapshot.taken_at,
            bytes: snapshot.bytes,
            loaded: snapshot.loaded,
        }
    }

    fn load(
        self,
        file: &File,
        chunks: &Chunks,
        replica: &Replica,
    ) -> Result<(Vec<u8>, Snapshot), LoadError> {
        let taken = self.uploaded.is_none();
        let (canister, bytes) = load_at(file, self.at, replica.rules(), |module| {
            if taken { compile(replica, module).map(Some) } else { Ok(None) }
        })?;
        let Canister { module, state, version, .. } = canister;
        let code = match (module, self.uploaded) {
            (Some(module), _) => Code::Taken(module),
            (None, globals) => {
                let globals = globals.unwrap_or_default().into_iter().map(Global::from);
                Code::Uploaded(bytes, globals.collect())
            }
        };
        let snapshot = Snapshot {
            code,
            state,
            version,
            timer: self.timer,
            hook: self.hook,
            chunks: chosen(chunks, &self.chunks)?,
            taken_at: self.taken_at,
            bytes: self.bytes,
            loaded: self.loaded,
        };
        Ok((self.id, snapshot))
    }
}

impl Replica {
    /// Loads a subnet that [`Subnet::save`] wrote, and the note in its file. The file is checked and
    /// mapped as by [`Replica::load`]. A file with one canister is a subnet with that canister, and has
    /// no note.
    ///
    /// # Errors
    ///
    /// The errors of [`Replica::load`].
    pub fn load_subnet(&self, path: &Path) -> Result<(Subnet, String), LoadError> {
        load(path, self)
    }
}

fn compile(replica: &Replica, module: &[u8]) -> Result<Module, Reject> {
    replica.compile_for_subnet(&first_canister(), module)
}

/// Loads a subnet and the note in its file. A file that contains one canister is a subnet with that
/// canister, and has no note.
fn load(path: &Path, replica: &Replica) -> Result<(Subnet, String), LoadError> {
    let file = files::open(path)?;
    let mut subnet = Subnet::new(replica);
    if !is_subnet(&file) {
        let canister = replica.load_for_subnet(path)?;
        subnet.set_time(canister.time());
        subnet.add(canister).map_err(|_| LoadError::Damaged("its canister ids"))?;
        return Ok((subnet, String::new()));
    }
    let (text, _) = read_preamble(&file, 0, &SUBNET_MAGIC, FORMAT, 0)?;
    let header: Header =
        serde_json::from_slice(&text).map_err(|_| LoadError::Damaged("its header"))?;
    check_rules(&header.rules, replica.rules())?;
    let Header { clock, random, .. } = header;
    let counts = [clock.time, clock.last_round, clock.rounds, random.drawn];
    if counts.iter().any(|it| *it > MAX_AGE) {
        return Err(LoadError::Damaged("its age"));
    }
    (subnet.time, subnet.last_round) = (clock.time, clock.last_round);
    subnet.rounds = clock.rounds;
    (subnet.seed, subnet.drawn) = (random.seed, random.drawn);
    let chunks = header.chunks.iter().map(|chunk| chunk.load(&file)).collect::<Result<_, _>>()?;
    for canister in header.canisters {
        canister.load(&file, &chunks, &mut subnet)?;
    }
    let next = subnet.parts.first_mut().is_some_and(|part| part.set_next_number(header.next_id));
    if next { Ok((subnet, header.note)) } else { Err(LoadError::Damaged("its canister ids")) }
}
