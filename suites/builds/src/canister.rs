//! The suite builds in a canister: computations without rows. What they read is prepared before they are
//! measured.

use crate::job::Builds;
use crate::work::{
    Transfer, check, digest_of, digest_of_hash, from_candid, from_cbor, hashed, sha256, to_candid,
    to_cbor,
};
use stablebench_harness::{Canister, Staged, Suite, measure};
use stablebench_protocol::{Digest, Inspected, JobPart, Result};
use stablebench_workload::{Amount, ContentDigest};
use std::hint::black_box;

impl<C: Canister> Suite<C> for Builds {
    fn stage(self, part: &JobPart) -> Result<Staged<C>> {
        check(self, part)?;
        let count = part.count;
        Ok(match self {
            Self::Candid(values) => {
                let bytes = to_candid(&Transfer::list(part.seed, values))?;
                repeated(count, move || {
                    let transfers = from_candid(black_box(&bytes))?;
                    Ok(amount(&transfers, &bytes))
                })
            }
            Self::Cbor(values) => {
                let transfers = Transfer::list(part.seed, values);
                repeated(count, move || {
                    let bytes = to_cbor(black_box(&transfers))?;
                    Ok(amount(&from_cbor(black_box(&bytes))?, &bytes))
                })
            }
            Self::Sha256(bytes) => {
                let hashed = hashed(bytes);
                repeated(count, move || {
                    black_box(sha256(black_box(&hashed)));
                    Ok(Amount { rows: 1, bytes: hashed.len() as u64 })
                })
            }
        })
    }

    fn results(&self, _: &mut C, part: &JobPart) -> Result<Option<Digest>> {
        check(*self, part)?;
        Ok(Some(match *self {
            Self::Candid(values) => {
                digest_of(&from_candid(&to_candid(&Transfer::list(part.seed, values))?)?)
            }
            Self::Cbor(values) => {
                digest_of(&from_cbor(&to_cbor(&Transfer::list(part.seed, values))?)?)
            }
            Self::Sha256(bytes) => digest_of_hash(&sha256(&hashed(bytes))),
        }))
    }

    fn content(&self, _: &mut C, _: u64, _: u64, _: &mut ContentDigest) -> Result<Option<u64>> {
        Ok(None)
    }

    fn inspect(&self, _: &mut C) -> Result<Inspected> {
        Ok(Inspected {
            stored_bytes: 0,
            virtual_bytes: 0,
            cache_bytes: 0,
            sqlite: None,
            objects: Vec::new(),
        })
    }
}

/// Does the same work `count` times, measured as a whole.
fn repeated<C: Canister>(count: u64, work: impl Fn() -> Result<Amount> + 'static) -> Staged<C> {
    Staged::new(false, move |_| {
        let done = measure(|| {
            let mut sum = Amount::default();
            for _ in 0..count {
                sum += work()?;
            }
            Ok(sum)
        });
        Ok(done?.into())
    })
}

/// Returns the size of decoded transfers, which are used up here.
fn amount(transfers: &[Transfer], bytes: &[u8]) -> Amount {
    Amount { rows: black_box(transfers).len() as u64, bytes: bytes.len() as u64 }
}
