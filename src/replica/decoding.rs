//! Decoding of canisters' answers. In Candid a few bytes can represent more values than fit into
//! memory, so the work is limited.

use candid::de::DecoderConfig;
use candid::types::{Type, TypeEnv};
use candid::utils::ArgumentDecoder;
use candid::{CandidType, IDLArgs, decode_args_with_config};
use serde::de::DeserializeOwned;

/// The maximum number of steps of decoding an answer into known types: more than the largest needs.
const TYPED: usize = 100_000_000;
/// The maximum number of steps of decoding any values, each of which Candid counts as 50: less than
/// a second, and less than half a gigabyte.
const UNTYPED: usize = 1_000_000_000;

fn bounds(steps: usize) -> DecoderConfig {
    let mut config = DecoderConfig::new();
    config.set_decoding_quota(steps).set_skipping_quota(steps);
    config
}

/// Decodes values of the types of an interface.
pub fn decode_values(bytes: &[u8], env: &TypeEnv, types: &[Type]) -> candid::Result<IDLArgs> {
    IDLArgs::from_bytes_with_types_with_config(bytes, env, types, &bounds(UNTYPED))
}

/// Decodes an answer with one value.
pub fn decode_one<T: CandidType + DeserializeOwned>(bytes: &[u8]) -> candid::Result<T> {
    decode_args::<(T,)>(bytes).map(|(one,)| one)
}

/// Decodes an answer.
pub fn decode_args<T: for<'a> ArgumentDecoder<'a>>(bytes: &[u8]) -> candid::Result<T> {
    decode_args_with_config(bytes, &bounds(TYPED))
}

#[cfg(test)]
mod tests {
    use candid::Reserved;
    use candid::types::TypeInner;

    use super::*;

    /// `vec null` of 2^40.
    const ENDLESS: &[u8] = b"DIDL\x01\x6d\x7f\x01\x00\x80\x80\x80\x80\x80\x20";

    #[test]
    fn a_few_bytes_cannot_cause_endless_work() {
        assert!(decode_one::<Vec<()>>(ENDLESS).is_err());
        assert!(decode_one::<Reserved>(ENDLESS).is_err());
        assert!(decode_one::<Option<u8>>(ENDLESS).is_err());
        let ty = TypeInner::Vec(TypeInner::Null.into()).into();
        assert!(decode_values(ENDLESS, &TypeEnv::new(), &[ty]).is_err());
    }

    #[test]
    fn the_largest_answers_are_decoded() {
        let rows: Vec<(u64, String)> = (0..20_000).map(|id| (id, "x".repeat(80))).collect();
        let bytes = candid::encode_one(&rows).unwrap();
        assert!(bytes.len() < 2 << 20);
        assert_eq!(decode_one::<Vec<(u64, String)>>(&bytes).unwrap(), rows);
        let blob = candid::encode_one(vec![7_u8; 3 << 20]).unwrap();
        assert_eq!(decode_one::<Vec<u8>>(&blob).unwrap().len(), 3 << 20);
        let ty = TypeInner::Vec(TypeInner::Nat8.into()).into();
        decode_values(&blob, &TypeEnv::new(), &[ty]).unwrap();
    }
}
