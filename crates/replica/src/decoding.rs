//! Decoding of Candid that others supply: canisters, clients and users.
//!
//! In Candid a few bytes can represent more values than fit into memory, so the work is limited. The
//! functions of `candid` have no limits; `clippy.toml` forbids them everywhere else.

use candid::de::DecoderConfig;
use candid::types::{Type, TypeEnv};
use candid::utils::ArgumentDecoder;
use candid::{CandidType, IDLArgs, decode_args_with_config};
use serde::de::DeserializeOwned;

/// The most work of decoding, in steps as [`DecoderConfig`] counts them.
#[derive(Clone, Copy, Debug)]
pub struct Quotas {
    /// For everything. What is skipped counts 50 times.
    pub decoding: usize,
    /// For what is skipped, and for values of unknown types.
    pub skipping: usize,
}

/// For an answer of known types: more than the largest needs.
const TYPED: Quotas = Quotas { decoding: 100_000_000, skipping: 100_000_000 };
/// For any values, each of which Candid counts as 50: less than a second, and less than half a
/// gigabyte.
const UNTYPED: Quotas = Quotas { decoding: 1_000_000_000, skipping: 1_000_000_000 };
/// For an argument of the management canister, several times what the largest valid one needs.
pub(crate) const MANAGEMENT: Quotas = Quotas { decoding: 50_000_000, skipping: 10_000 };

fn config(quotas: Quotas) -> DecoderConfig {
    let mut config = DecoderConfig::new();
    config.set_decoding_quota(quotas.decoding).set_skipping_quota(quotas.skipping);
    config
}

/// Decodes values of any types.
///
/// # Errors
///
/// If they are not Candid, or too many.
pub fn decode_untyped(bytes: &[u8]) -> candid::Result<IDLArgs> {
    IDLArgs::from_bytes_with_config(bytes, &config(UNTYPED))
}

/// Decodes values of the types of an interface.
///
/// # Errors
///
/// If they have other types, or are too many.
pub fn decode_values(bytes: &[u8], env: &TypeEnv, types: &[Type]) -> candid::Result<IDLArgs> {
    IDLArgs::from_bytes_with_types_with_config(bytes, env, types, &config(UNTYPED))
}

/// Decodes an answer with one value.
///
/// # Errors
///
/// If it has another type, or is too large.
pub fn decode_one<T: CandidType + DeserializeOwned>(bytes: &[u8]) -> candid::Result<T> {
    decode_args::<(T,)>(bytes).map(|(one,)| one)
}

/// Decodes an answer.
///
/// # Errors
///
/// If it has other types, or is too large.
pub fn decode_args<'a, T: ArgumentDecoder<'a>>(bytes: &'a [u8]) -> candid::Result<T> {
    decode_args_with_config(bytes, &config(TYPED))
}

/// Decodes an argument within quotas. Errors are short: clients see them.
///
/// # Errors
///
/// If it has other types, or is too large.
pub fn decode_argument<'a, T: ArgumentDecoder<'a>>(
    bytes: &'a [u8],
    quotas: Quotas,
) -> candid::Result<T> {
    decode_args_with_config(bytes, config(quotas).set_full_error_message(false))
}

#[cfg(test)]
mod tests {
    use candid::types::TypeInner;
    use candid::{Decode, Reserved};

    use super::*;

    /// `vec null` of 2^62.
    const ENDLESS: &[u8] = b"DIDL\x01\x6d\x7f\x01\x00\x80\x80\x80\x80\x80\x80\x80\x80\x40";

    #[test]
    fn a_few_bytes_cannot_cause_endless_work() {
        assert!(decode_one::<Vec<()>>(ENDLESS).is_err());
        assert!(decode_one::<Reserved>(ENDLESS).is_err());
        assert!(decode_one::<Option<u8>>(ENDLESS).is_err());
        assert!(decode_args::<()>(ENDLESS).is_err());
        assert!(decode_argument::<()>(ENDLESS, MANAGEMENT).is_err());
        assert!(decode_untyped(ENDLESS).is_err());
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

    /// Each expectation fails the lints if `clippy.toml` allows what it is for.
    #[test]
    #[expect(clippy::disallowed_macros, reason = "the lint forbids it")]
    fn lints_forbid_the_macro() {
        assert!(Decode!(b"DIDL\0\0").is_ok());
    }

    /// As above.
    #[test]
    fn lints_forbid_functions_without_quotas() {
        const EMPTY: &[u8] = b"DIDL\0\0";
        #[expect(clippy::disallowed_methods, reason = "the lint forbids it")]
        let decoded = candid::decode_args::<()>(EMPTY).is_ok();
        assert!(decoded);
        #[expect(clippy::disallowed_methods, reason = "the lint forbids it")]
        let decoded = candid::decode_one::<Option<u8>>(EMPTY).is_ok();
        assert!(decoded);
        #[expect(clippy::disallowed_methods, reason = "the lint forbids it")]
        let decoded = IDLArgs::from_bytes(EMPTY).is_ok();
        assert!(decoded);
        #[expect(clippy::disallowed_methods, reason = "the lint forbids it")]
        let decoded = IDLArgs::from_bytes_with_types(EMPTY, &TypeEnv::new(), &[]).is_ok();
        assert!(decoded);
        #[expect(clippy::disallowed_methods, reason = "the lint forbids it")]
        let decoded = candid::de::IDLDeserialize::new(EMPTY).is_ok();
        assert!(decoded);
    }
}
