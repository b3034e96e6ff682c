//! The computations, and the results that they must have, which follow from the seed without decoding
//! anything.

mod transfer;

pub use transfer::{Account, Transfer, from_candid, from_cbor, to_candid, to_cbor};

use crate::job::Builds;
use sha2::{Digest as _, Sha256};
use stablebench_protocol::{Digest, Error, Part, Result};
use stablebench_workload::{ContentDigest, Expected, Model};

/// The most bytes or values of an operation.
pub const MAX_SIZE: u32 = 1 << 20;

/// Checks a part.
///
/// # Errors
///
/// If an operation is larger than [`MAX_SIZE`].
pub fn check(job: Builds, part: &Part) -> Result<()> {
    if job.size() > MAX_SIZE {
        return Err(Error::TooManyRows { limit: MAX_SIZE.into() });
    }
    match part.count {
        0 => Err(Error::NoRows),
        _ => Ok(()),
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
    fn execute(&mut self, part: &Part) -> Result<Expected> {
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
        BuildsModel.execute(&Part { job: Job::new(&job), seed: 7, from: 0, count, each: false })
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
