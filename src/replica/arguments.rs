//! Arguments with the types that canisters know.
//!
//! Candid sends the type of an argument with it. The types of this tool have cases that are
//! for the canister of one engine alone; a canister that was built without would count longer types,
//! and the counts of what was measured with it would be others. So whatever can be said in
//! the types that all canisters know is said in those.

use anyhow::Result;
use candid::de::IDLDeserialize;
use candid::utils::ArgumentEncoder;
use candid::{CandidType, encode_args};
use serde::de::DeserializeOwned;
use stablebench_protocol_before::{DigestPart, Engine, Job, Part, Work};

/// Encodes the arguments of a method of ours.
pub fn encode(method: &str, arguments: impl ArgumentEncoder) -> Result<Vec<u8>> {
    let bytes = encode_args(arguments)?;
    let narrow = match method {
        "work" | "look" => first::<Work>(&bytes),
        "perform" | "phases" => first::<Part>(&bytes),
        "inspect" => first::<Job>(&bytes),
        "reset" => first::<Engine>(&bytes),
        "add_users" => candid::decode_args::<(Engine, u64, u64, u64)>(&bytes).and_then(encode_args),
        "content" => part_of::<Job>(&bytes),
        "digest" => part_of::<Engine>(&bytes),
        _ => return Ok(bytes),
    };
    // What cannot be said so is for a canister that knows more.
    Ok(narrow.unwrap_or(bytes))
}

/// An argument, and an id where there is one.
fn first<T: CandidType + DeserializeOwned>(bytes: &[u8]) -> candid::Result<Vec<u8>> {
    let mut arguments = IDLDeserialize::new(bytes)?;
    let argument: T = arguments.get_value()?;
    if arguments.is_done() {
        return encode_args((argument,));
    }
    let id: Option<u64> = arguments.get_value()?;
    encode_args((argument, id))
}

/// Whose digest, how far it is, and how many rows more.
fn part_of<T: CandidType + DeserializeOwned>(bytes: &[u8]) -> candid::Result<Vec<u8>> {
    let (of, part, rows): (T, Option<DigestPart>, u64) = candid::decode_args(bytes)?;
    encode_args((of, part, rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_protocol as now;
    use stablebench_protocol_before as before;

    #[test]
    fn what_all_canisters_know_is_said_in_the_types_that_they_know() {
        let work = |engine| now::Work {
            engine,
            operation: now::Operation::Insert(now::Selection::List(vec![5, 7])),
            transaction: Some(3),
            each: true,
        };
        let known = Work {
            engine: Engine::Sqlite,
            operation: before::Operation::Insert(before::Selection::List(vec![5, 7])),
            transaction: Some(3),
            each: true,
        };
        let of_sqlite = (work(now::Engine::Sqlite), Some(9_u64));
        let encoded = encode("work", of_sqlite.clone()).unwrap();
        assert_eq!(encoded, encode_args((known.clone(), Some(9_u64))).unwrap());
        assert!(encoded.len() < encode_args(of_sqlite).unwrap().len());
        let alone = encode("work", (work(now::Engine::Sqlite),)).unwrap();
        assert_eq!(alone, encode_args((known,)).unwrap());

        let of_leveldb = (work(now::Engine::Leveldb), Some(9_u64));
        let encoded = encode("work", of_leveldb.clone()).unwrap();
        assert_eq!(encoded, encode_args(of_leveldb).unwrap());

        let nothing: Option<now::DigestPart> = None;
        let digest = encode("digest", (now::Engine::Btree, nothing, 8_u64)).unwrap();
        let part: Option<DigestPart> = None;
        assert_eq!(digest, encode_args((Engine::Btree, part, 8_u64)).unwrap());
    }
}
