//! The computations, and the results that they must have, which follow from the seed without decoding
//! anything.

use crate::job::Builds;
use candid::{CandidType, Principal};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use sha2::{Digest as _, Sha256};
use stablebench_protocol::{Digest, Engine, Error, JobPart, Result};
use stablebench_workload::{ContentDigest, Expected, Model, Rng};
use std::fmt::Display;

/// The most bytes or values of an operation.
pub const MAX_SIZE: u32 = 1 << 20;

/// Checks a part.
///
/// # Errors
///
/// If an operation is larger than [`MAX_SIZE`].
pub fn check(job: Builds, part: &JobPart) -> Result<()> {
    if job.size() > MAX_SIZE {
        return Err(Error::TooManyRows { limit: MAX_SIZE.into() });
    }
    match part.count {
        0 => Err(Error::NoRows),
        _ => Ok(()),
    }
}

/// A transfer with the fields of `icrc1_transfer`, and texts: an argument as a ledger takes it.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The number, from 0.
    pub id: u64,
    /// 32 bytes.
    pub from_subaccount: Option<ByteBuf>,
    /// The receiver.
    pub to: Account,
    /// The amount, a `nat` in Candid.
    pub amount: u128,
    /// The fee.
    pub fee: Option<u128>,
    /// 8 bytes.
    pub memo: Option<ByteBuf>,
    /// Nanoseconds since 1970.
    pub created_at_time: Option<u64>,
    /// A text.
    pub note: String,
    /// Up to three texts.
    pub labels: Vec<String>,
}

/// An account.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The owner, 8 bytes.
    pub owner: Principal,
    /// 32 bytes.
    pub subaccount: Option<ByteBuf>,
}

impl Transfer {
    /// Returns the transfers of a seed.
    pub fn list(seed: u64, count: u32) -> Vec<Self> {
        let mut random = Rng::new(seed);
        (0..count.into()).map(|id| Self::new(id, &mut random)).collect()
    }

    fn new(id: u64, random: &mut Rng) -> Self {
        // Each third one has a subaccount, each second one a memo.
        let subaccount = |every: u64, byte: u64| {
            id.is_multiple_of(every).then(|| ByteBuf::from(vec![byte as u8; 32]))
        };
        Self {
            id,
            from_subaccount: subaccount(3, random.below(256)),
            to: Account {
                owner: Principal::from_slice(&random.next_u64().to_be_bytes()),
                subaccount: subaccount(4, random.below(256)),
            },
            amount: u128::from(random.next_u64()) << (random.below(40)),
            fee: (!id.is_multiple_of(5)).then_some(10_000),
            memo: id.is_multiple_of(2).then(|| ByteBuf::from(random.next_u64().to_le_bytes())),
            created_at_time: Some(1_700_000_000_000_000_000 + random.below(1 << 50)),
            note: format!("transfer {id} of {}", random.below(1_000_000)),
            labels: (0..id % 4).map(|at| format!("label-{at}-{}", random.below(100))).collect(),
        }
    }

    /// Returns all fields in a form of its own, for digests.
    pub fn fields(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        let mut add = |bytes: Option<&[u8]>| {
            let length = bytes.map_or(u32::MAX, |bytes| bytes.len() as u32);
            fields.extend(length.to_le_bytes());
            fields.extend(bytes.unwrap_or_default());
        };
        add(Some(&self.id.to_le_bytes()));
        add(self.from_subaccount.as_deref().map(Vec::as_slice));
        add(Some(self.to.owner.as_slice()));
        add(self.to.subaccount.as_deref().map(Vec::as_slice));
        add(Some(&self.amount.to_le_bytes()));
        add(self.fee.map(u128::to_le_bytes).as_ref().map(<[u8; 16]>::as_slice));
        add(self.memo.as_deref().map(Vec::as_slice));
        add(self.created_at_time.map(u64::to_le_bytes).as_ref().map(<[u8; 8]>::as_slice));
        add(Some(self.note.as_bytes()));
        for label in &self.labels {
            add(Some(label.as_bytes()));
        }
        fields
    }
}

/// Encodes transfers in Candid, as the argument of a method.
///
/// # Errors
///
/// The encoder's.
pub fn to_candid(transfers: &[Transfer]) -> Result<Vec<u8>> {
    candid::encode_one(transfers).map_err(|error| failed("encode Candid", &error))
}

/// Decodes transfers from Candid.
///
/// # Errors
///
/// The decoder's.
#[expect(clippy::disallowed_methods, reason = "instruction limits bound what canisters decode")]
pub fn from_candid(bytes: &[u8]) -> Result<Vec<Transfer>> {
    candid::decode_one(bytes).map_err(|error| failed("decode Candid", &error))
}

/// Encodes transfers in CBOR.
///
/// # Errors
///
/// The encoder's.
pub fn to_cbor(transfers: &[Transfer]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let written = ciborium::into_writer(transfers, &mut bytes);
    written.map(|()| bytes).map_err(|error| failed("encode CBOR", &error))
}

/// Decodes transfers from CBOR.
///
/// # Errors
///
/// The decoder's.
pub fn from_cbor(bytes: &[u8]) -> Result<Vec<Transfer>> {
    ciborium::from_reader(bytes).map_err(|error| failed("decode CBOR", &error))
}

fn failed(operation: &str, error: &dyn Display) -> Error {
    Error::Unsupported {
        engine: Engine::named("builds"),
        operation: format!("{operation}: {error}"),
    }
}

/// Returns the bytes that are hashed: they count up, 0, 1, … 250, 0, …
pub fn hashed(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

/// Returns the SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Returns the digest of decoded transfers.
pub fn digest_of(transfers: &[Transfer]) -> Digest {
    let mut digest = ContentDigest::default();
    for transfer in transfers {
        digest.add(transfer.id, &transfer.fields());
    }
    digest.value()
}

/// Returns the digest of a hash.
pub fn digest_of_hash(hash: &[u8; 32]) -> Digest {
    let mut digest = ContentDigest::default();
    digest.add(0, hash);
    digest.value()
}

/// The model. Computations leave nothing behind.
#[derive(Clone, Debug, Default)]
pub struct BuildsModel;

impl Model for BuildsModel {
    fn execute(&mut self, part: &JobPart) -> Result<Expected> {
        let job: Builds = part.job.decode()?;
        check(job, part)?;
        let (values, bytes, results) = match job {
            Builds::Candid(count) | Builds::Cbor(count) => {
                let transfers = Transfer::list(part.seed, count);
                let encoded = match job {
                    Builds::Cbor(_) => to_cbor(&transfers)?,
                    Builds::Candid(_) | Builds::Sha256(_) => to_candid(&transfers)?,
                };
                (u64::from(count), encoded.len() as u64, digest_of(&transfers))
            }
            Builds::Sha256(bytes) => (1, u64::from(bytes), digest_of_hash(&sha256(&hashed(bytes)))),
        };
        Ok(Expected {
            rows: part.count * values,
            bytes: part.count * bytes,
            results: Some(results),
        })
    }

    fn content(&self) -> Digest {
        Digest::default()
    }

    fn fork(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use stablebench_protocol::Job;

    use super::*;

    fn expected(job: Builds, count: u64) -> Result<Expected> {
        BuildsModel.execute(&JobPart { job: Job::new(&job), seed: 7, from: 0, count, each: false })
    }

    #[test]
    fn both_encodings_keep_all_fields() {
        let transfers = Transfer::list(7, 60);
        assert_eq!(from_candid(&to_candid(&transfers).unwrap()).unwrap(), transfers);
        assert_eq!(from_cbor(&to_cbor(&transfers).unwrap()).unwrap(), transfers);
        // Every optional field is there and missing.
        for present in [
            |of: &Transfer| of.from_subaccount.is_some(),
            |of: &Transfer| of.to.subaccount.is_some(),
            |of: &Transfer| of.fee.is_some(),
            |of: &Transfer| of.memo.is_some(),
            |of: &Transfer| !of.labels.is_empty(),
        ] {
            let count = transfers.iter().filter(|of| present(of)).count();
            assert!((1..transfers.len()).contains(&count));
        }
    }

    #[test]
    fn a_changed_field_changes_the_digest() {
        let transfers = Transfer::list(7, 3);
        let digest = digest_of(&transfers);
        let change = |change: fn(&mut Transfer)| {
            let mut changed = transfers.clone();
            change(&mut changed[2]);
            assert_ne!(digest_of(&changed), digest);
        };
        change(|of| of.amount += 1);
        change(|of| of.fee = None);
        change(|of| of.note.push('.'));
        change(|of| of.labels.clear());
        change(|of| of.created_at_time = Some(0));
        change(|of| of.to.subaccount = Some(vec![0; 32].into()));
        assert_ne!(digest_of(&Transfer::list(8, 3)), digest);
    }

    #[test]
    fn amounts_are_those_of_all_operations() {
        let one = expected(Builds::Candid(10), 1).unwrap();
        let four = expected(Builds::Candid(10), 4).unwrap();
        assert_eq!((one.rows, four.rows), (10, 40));
        assert_eq!(four.bytes, 4 * one.bytes);
        assert_eq!(one.results, four.results);
        assert_eq!(expected(Builds::Cbor(10), 1).unwrap().results, one.results);
        assert_eq!(expected(Builds::Sha256(1_000), 3).unwrap().bytes, 3_000);
        let large = expected(Builds::Sha256(MAX_SIZE + 1), 1);
        assert_eq!(large, Err(Error::TooManyRows { limit: MAX_SIZE.into() }));
    }

    /// The SHA-256 of the bytes 0, 1, 2 by another program.
    #[test]
    fn the_hash_is_sha_256() {
        let hash = sha256(&hashed(3));
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "ae4b3280e56e2faf83f414a6e3dabe9d5fbe18976544c05fed121accb85b53fc");
    }
}
