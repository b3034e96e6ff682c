//! Threshold signatures, with the keys of a PocketIC server.
//!
//! ```text
//!   seed ──→ master key of a name ──→ key of a canister and a path ──→ public key, signature
//! ```
//!
//! The keys are not secret: the seed is a constant, so that they are the same everywhere. The fee
//! depends on the subnet that holds the key on the network. A signature is made at once; on the
//! network it takes some rounds.
//!
//! Source: `sign_with_threshold` in `rs/execution_environment/src/execution_environment.rs`, the
//! routing of keys in `rs/embedders/src/wasmtime_embedder/system_api/routing.rs`, and the master keys
//! in `rs/state_machine_tests/src/lib.rs` of the replica.

use candid::{CandidType, Principal};
use ic_management_canister_types::{
    EcdsaPublicKeyResult, SchnorrAlgorithm, SchnorrAux, SchnorrKeyId, SchnorrPublicKeyResult,
    SignWithEcdsaResult, SignWithSchnorrResult,
};
use serde::Deserialize;

use super::call::{Bounded, ManagementCall, Outcome, decode, invalid, reply};
use crate::cycles;
use crate::fault::{ErrorCode, Reject};

/// The seed of all master keys.
const SEED: [u8; 32] = [42; 32];
/// The most parts of a derivation path.
const MAX_PATH: usize = 255;
/// Bytes of a hash: of a message, or of the root of a Taproot tree.
const HASH: usize = 32;
/// The kinds of keys, as the replica names them.
const ECDSA: &str = "ecdsa:Secp256k1";
const BIP340: &str = "schnorr:Bip340Secp256k1";
const ED25519: &str = "schnorr:Ed25519";
const VETKD: &str = "vetkd:Bls12_381_G2";

/// The path of a key.
type Path = Bounded<Vec<u8>, MAX_PATH, { usize::MAX }>;

#[derive(CandidType, Deserialize)]
enum EcdsaCurve {
    #[serde(rename = "secp256k1")]
    Secp256k1,
}

#[derive(CandidType, Deserialize)]
struct EcdsaKeyId {
    curve: EcdsaCurve,
    name: String,
}

#[derive(CandidType, Deserialize)]
struct EcdsaPublicKeyArgs {
    canister_id: Option<Principal>,
    derivation_path: Path,
    key_id: EcdsaKeyId,
}

#[derive(CandidType, Deserialize)]
struct SignWithEcdsaArgs {
    message_hash: [u8; HASH],
    derivation_path: Path,
    key_id: EcdsaKeyId,
}

#[derive(CandidType, Deserialize)]
struct SchnorrPublicKeyArgs {
    canister_id: Option<Principal>,
    derivation_path: Path,
    key_id: SchnorrKeyId,
}

#[derive(CandidType, Deserialize)]
struct SignWithSchnorrArgs {
    message: Vec<u8>,
    derivation_path: Path,
    key_id: SchnorrKeyId,
    aux: Option<SchnorrAux>,
}

/// Methods that concern a key.
pub const METHODS: [&str; 4] =
    ["ecdsa_public_key", "sign_with_ecdsa", "schnorr_public_key", "sign_with_schnorr"];

/// Returns the key of a canister on secp256k1, and its chain code.
fn secp256k1(
    name: &str,
    canister: Principal,
    Bounded(path): &Path,
) -> (ic_secp256k1::PrivateKey, Vec<u8>) {
    use ic_secp256k1::{DerivationIndex, DerivationPath, PrivateKey};
    let name = DerivationPath::new(vec![DerivationIndex(name.as_bytes().to_vec())]);
    let path = DerivationPath::from_canister_id_and_path(canister.as_slice(), path);
    let (master, _) = PrivateKey::generate_from_seed(&SEED).derive_subkey(&name);
    let (key, chain_code) = master.derive_subkey(&path);
    (key, chain_code.to_vec())
}

/// Returns the key of a canister for Ed25519, and its chain code.
fn ed25519(
    name: &str,
    canister: Principal,
    Bounded(path): &Path,
) -> (ic_ed25519::DerivedPrivateKey, Vec<u8>) {
    use ic_ed25519::{DerivationIndex, DerivationPath, PrivateKey};
    let name = DerivationPath::new(vec![DerivationIndex(name.as_bytes().to_vec())]);
    let path = DerivationPath::from_canister_id_and_path(canister.as_slice(), path);
    let (master, _) = PrivateKey::generate_from_seed(&SEED).derive_subkey(&name);
    let (key, chain_code) = master.derive_subkey(&path);
    (key, chain_code.to_vec())
}

/// Checks the argument of a call when it is made. The error is the reason for which it cannot be
/// routed.
///
/// `existing` are the names of the keys.
pub fn check(method: &str, argument: &[u8], existing: &[&str]) -> Result<(), String> {
    let key = match method {
        "ecdsa_public_key" => {
            decode(argument).map(|args: EcdsaPublicKeyArgs| (ECDSA, args.key_id.name))
        }
        "sign_with_ecdsa" => {
            decode(argument).map(|args: SignWithEcdsaArgs| (ECDSA, args.key_id.name))
        }
        "schnorr_public_key" => {
            decode(argument).map(|args: SchnorrPublicKeyArgs| kind(args.key_id))
        }
        _ => decode(argument).map(|args: SignWithSchnorrArgs| kind(args.key_id)),
    };
    let (kind, name) = key.map_err(|Reject { code, message }| {
        format!("UserError(UserError {{ code: {code}, description: {message:?} }})")
    })?;
    if existing.contains(&&*name) {
        return Ok(());
    }
    let names = |kind| existing.iter().map(move |name| format!("{kind}:{name}"));
    // The replica lists the keys of all kinds.
    let keys =
        [ECDSA, BIP340, ED25519, VETKD].into_iter().flat_map(names).collect::<Vec<_>>().join(", ");
    let (unknown, existing) = match method.starts_with("sign") {
        true => ("unknown or disabled", "existing enabled keys"),
        false => ("unknown", "existing keys"),
    };
    let reason = format!("Requested {unknown} threshold key: {kind}:{name}, {existing}: [{keys}]");
    Err(format!("ChainKeyError({reason:?})"))
}

pub fn ecdsa_public_key(call: &ManagementCall) -> Outcome {
    let EcdsaPublicKeyArgs { canister_id, derivation_path, key_id } = decode(&call.argument)?;
    check_length(&derivation_path)?;
    let canister = canister_id.unwrap_or(call.caller());
    let (key, chain_code) = secp256k1(&key_id.name, canister, &derivation_path);
    let public_key = key.public_key().serialize_sec1(true);
    reply((EcdsaPublicKeyResult { public_key, chain_code },))
}

pub fn sign_with_ecdsa(call: &mut ManagementCall) -> Outcome {
    let args: SignWithEcdsaArgs = decode(&call.argument)?;
    pay(call, &args.key_id.name)?;
    let (key, _) = secp256k1(&args.key_id.name, call.caller(), &args.derivation_path);
    let signature = key.sign_digest_with_ecdsa(&args.message_hash).to_vec();
    reply((SignWithEcdsaResult { signature },))
}

pub fn schnorr_public_key(call: &ManagementCall) -> Outcome {
    let SchnorrPublicKeyArgs { canister_id, derivation_path, key_id } = decode(&call.argument)?;
    check_length(&derivation_path)?;
    let canister = canister_id.unwrap_or(call.caller());
    let (public_key, chain_code) = match key_id.algorithm {
        SchnorrAlgorithm::Bip340secp256k1 => {
            let (key, chain_code) = secp256k1(&key_id.name, canister, &derivation_path);
            (key.public_key().serialize_sec1(true), chain_code)
        }
        SchnorrAlgorithm::Ed25519 => {
            let (key, chain_code) = ed25519(&key_id.name, canister, &derivation_path);
            (key.public_key().serialize_raw().to_vec(), chain_code)
        }
    };
    reply((SchnorrPublicKeyResult { public_key, chain_code },))
}

pub fn sign_with_schnorr(call: &mut ManagementCall) -> Outcome {
    let SignWithSchnorrArgs { message, derivation_path, key_id, aux } = decode(&call.argument)?;
    let root = aux.map(|SchnorrAux::Bip341(aux)| aux.merkle_root_hash);
    let refused = |text: &str| invalid(ErrorCode::CanisterRejectedMessage, text);
    let signature = match key_id.algorithm {
        SchnorrAlgorithm::Ed25519 => {
            if root.is_some() {
                return Err(refused("Schnorr algorithm Ed25519 does not support aux input").into());
            }
            pay(call, &key_id.name)?;
            ed25519(&key_id.name, call.caller(), &derivation_path).0.sign_message(&message)
        }
        SchnorrAlgorithm::Bip340secp256k1 => {
            if root.as_ref().is_some_and(|root| ![0, HASH].contains(&root.len())) {
                return Err(refused("Invalid aux field for Bip340Secp256k1").into());
            }
            pay(call, &key_id.name)?;
            let (key, _) = secp256k1(&key_id.name, call.caller(), &derivation_path);
            match root {
                None => key.sign_message_with_bip340_no_rng(&message),
                Some(root) => key
                    .sign_message_with_bip341_no_rng(&message, &root)
                    .map_err(|error| refused(&format!("{error:?}")))?,
            }
        }
    };
    reply((SignWithSchnorrResult { signature: signature.to_vec() },))
}

/// Takes the fee for a signature.
fn pay(call: &mut ManagementCall, name: &str) -> Result<(), Reject> {
    match cycles::signature(name) {
        Some(fee) => call.pay(fee),
        None => {
            let text = format!("{} request failed: unknown key {name}.", call.method);
            Err(invalid(ErrorCode::CanisterRejectedMessage, text))
        }
    }
}

fn kind(id: SchnorrKeyId) -> (&'static str, String) {
    let kind = match id.algorithm {
        SchnorrAlgorithm::Bip340secp256k1 => BIP340,
        SchnorrAlgorithm::Ed25519 => ED25519,
    };
    (kind, id.name)
}

/// A public key is derived with the canister's id as the first part.
fn check_length(path: &Path) -> Result<(), Reject> {
    match path.0.len() + 1 {
        length if length > MAX_PATH => Err(invalid(
            ErrorCode::CanisterRejectedMessage,
            format!(
                "InvalidArgument(\"Derivation path len {length} larger than allowed maximum of \
                 {MAX_PATH}\")"
            ),
        )),
        _ => Ok(()),
    }
}
