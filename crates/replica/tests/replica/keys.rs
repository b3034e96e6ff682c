//! Threshold signatures. The libraries that derive and verify are those of the network; their public
//! keys of a PocketIC server are constants.

use candid::{CandidType, decode_one, encode_one};
use ic_management_canister_types::{
    Bip341, EcdsaCurve, EcdsaKeyId, EcdsaPublicKeyArgs, EcdsaPublicKeyResult, SchnorrAlgorithm,
    SchnorrAux, SchnorrKeyId, SchnorrPublicKeyArgs, SchnorrPublicKeyResult, SignWithEcdsaArgs,
    SignWithEcdsaResult, SignWithSchnorrArgs, SignWithSchnorrResult,
};
use ic_secp256k1::{PocketIcMasterPublicKeyId, PublicKey};
use stablebench_replica::subnet::Subnet;
use stablebench_replica::{Canister, Cycles, ErrorCode, Principal, Replica, Rules};

use crate::support::managed::{MANAGEMENT, USER};
use crate::support::{id, member, subnet_of};

const TEST_FEE: u64 = 10_000_000_000;
const FEE: u64 = 26_153_846_153;
const ALL_KEYS: &str = "[ecdsa:Secp256k1:dfx_test_key, ecdsa:Secp256k1:key_1, \
    ecdsa:Secp256k1:test_key_1, schnorr:Bip340Secp256k1:dfx_test_key, \
    schnorr:Bip340Secp256k1:key_1, schnorr:Bip340Secp256k1:test_key_1, \
    schnorr:Ed25519:dfx_test_key, schnorr:Ed25519:key_1, schnorr:Ed25519:test_key_1, \
    vetkd:Bls12_381_G2:dfx_test_key, vetkd:Bls12_381_G2:key_1, vetkd:Bls12_381_G2:test_key_1]";

/// `ecdsa`, `schnorr` and `vetkd` return the code and the cost of a key: the first byte of the argument
/// is its kind, the rest its name.
const COST: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_arg_data_size" (func $size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
    (import "ic0" "cost_sign_with_ecdsa" (func $ecdsa (param i32 i32 i32 i32) (result i32)))
    (import "ic0" "cost_sign_with_schnorr" (func $schnorr (param i32 i32 i32 i32) (result i32)))
    (import "ic0" "cost_vetkd_derive_key" (func $vetkd (param i32 i32 i32 i32) (result i32)))
    (memory 1)
    (func $start (result i32 i32 i32 i32)
        (call $copy (i32.const 100) (i32.const 0) (call $size))
        (i32.const 101) (i32.sub (call $size) (i32.const 1))
        (i32.load8_u (i32.const 100)) (i32.const 4))
    (func $end (param $code i32)
        (i32.store (i32.const 0) (local.get $code))
        (call $append (i32.const 0) (i32.const 20)) (call $reply))
    (func (export "canister_query ecdsa") (call $end (call $ecdsa (call $start))))
    (func (export "canister_query schnorr") (call $end (call $schnorr (call $start))))
    (func (export "canister_query vetkd") (call $end (call $vetkd (call $start)))))"#;

/// A subnet with two canisters that relay calls, and one that reports costs.
fn subnet() -> Subnet {
    let replica = Replica::new(Rules::today(), None).unwrap();
    let relay = include_str!("../relay.wat");
    subnet_of(&replica, &[relay, relay, COST])
}

/// Calls the management canister from a canister.
fn relay(
    subnet: &mut Subnet,
    from: u8,
    cycles: u64,
    method: &str,
    argument: &impl CandidType,
) -> Result<Vec<u8>, String> {
    let argument = encode_one(argument).unwrap();
    let argument = [&cycles.to_le_bytes(), [0].as_slice(), method.as_bytes(), b" ", &argument];
    let call = subnet.update(USER, id(from), "relay", &argument.concat()).unwrap();
    call.response.map_err(|reject| reject.message)
}

fn path(parts: &[&str]) -> Vec<Vec<u8>> {
    parts.iter().map(|part| part.as_bytes().to_vec()).collect()
}

fn ecdsa(name: &str) -> EcdsaKeyId {
    EcdsaKeyId { curve: EcdsaCurve::Secp256k1, name: name.to_owned() }
}

fn schnorr(algorithm: SchnorrAlgorithm, name: &str) -> SchnorrKeyId {
    SchnorrKeyId { algorithm, name: name.to_owned() }
}

fn ecdsa_key(subnet: &mut Subnet, from: u8, of: Option<Principal>, parts: &[&str]) -> PublicKey {
    let args = EcdsaPublicKeyArgs {
        canister_id: of,
        derivation_path: path(parts),
        key_id: ecdsa("key_1"),
    };
    let reply = relay(subnet, from, 0, "ecdsa_public_key", &args).unwrap();
    let reply: EcdsaPublicKeyResult = decode_one(&reply).unwrap();
    assert_eq!(reply.chain_code.len(), 32);
    PublicKey::deserialize_sec1(&reply.public_key).unwrap()
}

fn schnorr_key(subnet: &mut Subnet, key_id: SchnorrKeyId, parts: &[&str]) -> Vec<u8> {
    let args = SchnorrPublicKeyArgs { canister_id: None, derivation_path: path(parts), key_id };
    let reply = relay(subnet, 0, 0, "schnorr_public_key", &args).unwrap();
    decode_one::<SchnorrPublicKeyResult>(&reply).unwrap().public_key
}

fn sign(subnet: &mut Subnet, cycles: u64, args: &SignWithEcdsaArgs) -> Result<Vec<u8>, String> {
    let reply = relay(subnet, 0, cycles, "sign_with_ecdsa", args)?;
    Ok(decode_one::<SignWithEcdsaResult>(&reply).unwrap().signature)
}

fn sign_schnorr(
    subnet: &mut Subnet,
    cycles: u64,
    args: &SignWithSchnorrArgs,
) -> Result<Vec<u8>, String> {
    let reply = relay(subnet, 0, cycles, "sign_with_schnorr", args)?;
    Ok(decode_one::<SignWithSchnorrResult>(&reply).unwrap().signature)
}

#[test]
fn public_keys_are_those_of_a_server() {
    let subnet = &mut subnet();
    let parts = ["a", "path"];
    let pair = PocketIcMasterPublicKeyId::EcdsaKey1;
    let (expected, chain_code) = PublicKey::derive_pocketic_key(pair, &id(0), &path(&parts));
    let args = EcdsaPublicKeyArgs {
        canister_id: None,
        derivation_path: path(&parts),
        key_id: ecdsa("key_1"),
    };
    let reply = relay(subnet, 0, 0, "ecdsa_public_key", &args).unwrap();
    let reply: EcdsaPublicKeyResult = decode_one(&reply).unwrap();
    assert_eq!(reply.public_key, expected.serialize_sec1(true));
    assert_eq!(reply.chain_code, chain_code);

    for (name, pair) in [
        ("key_1", PocketIcMasterPublicKeyId::SchnorrKey1),
        ("test_key_1", PocketIcMasterPublicKeyId::SchnorrTestKey1),
        ("dfx_test_key", PocketIcMasterPublicKeyId::SchnorrDfxTestKey),
    ] {
        let key = schnorr_key(subnet, schnorr(SchnorrAlgorithm::Bip340secp256k1, name), &parts);
        let (expected, _) = PublicKey::derive_pocketic_key(pair, &id(0), &path(&parts));
        assert_eq!(key, expected.serialize_sec1(true), "{name}");
    }
    use ic_ed25519::PocketIcMasterPublicKeyId as Ed25519Key;
    for (name, pair) in [
        ("key_1", Ed25519Key::Key1),
        ("test_key_1", Ed25519Key::TestKey1),
        ("dfx_test_key", Ed25519Key::DfxTestKey),
    ] {
        let key = schnorr_key(subnet, schnorr(SchnorrAlgorithm::Ed25519, name), &parts);
        let derived = ic_ed25519::PublicKey::derive_pocketic_key(pair, &id(0), &path(&parts));
        assert_eq!(key, derived.0.serialize_raw(), "{name}");
    }
}

#[test]
fn keys_differ_by_canister_and_path() {
    let subnet = &mut subnet();
    let of = |subnet: &mut Subnet, from, of: Option<u8>, parts: &[&str]| {
        ecdsa_key(subnet, from, of.map(id), parts).serialize_sec1(true)
    };
    let first = of(subnet, 0, None, &["a"]);
    assert_ne!(first, of(subnet, 0, None, &["b"]));
    assert_ne!(first, of(subnet, 0, None, &[]));
    assert_ne!(first, of(subnet, 0, None, &["a", "a"]));
    assert_ne!(first, of(subnet, 1, None, &["a"]));
    // A canister may ask for the key of another one.
    assert_eq!(first, of(subnet, 1, Some(0), &["a"]));
}

#[test]
fn signatures_verify() {
    let subnet = &mut subnet();
    let args = SignWithEcdsaArgs {
        message_hash: vec![7; 32],
        derivation_path: path(&["a"]),
        key_id: ecdsa("key_1"),
    };
    let signature = sign(subnet, FEE, &args).unwrap();
    let key = ecdsa_key(subnet, 0, None, &["a"]);
    assert!(key.verify_ecdsa_signature_prehashed(&[7; 32], &signature));
    assert!(!key.verify_ecdsa_signature_prehashed(&[8; 32], &signature));
    let other = ecdsa_key(subnet, 0, None, &["b"]);
    assert!(!other.verify_ecdsa_signature_prehashed(&[7; 32], &signature));

    let message = b"a message of any length".to_vec();
    for (name, fee) in [("key_1", FEE), ("test_key_1", TEST_FEE), ("dfx_test_key", TEST_FEE)] {
        let id = schnorr(SchnorrAlgorithm::Ed25519, name);
        let mut args = SignWithSchnorrArgs {
            message: message.clone(),
            derivation_path: path(&["a"]),
            key_id: id.clone(),
            aux: None,
        };
        let signature = sign_schnorr(subnet, fee, &args).unwrap();
        let key = schnorr_key(subnet, id, &["a"]);
        let key = ic_ed25519::PublicKey::deserialize_raw(&key).unwrap();
        key.verify_signature(&message, &signature).unwrap();
        assert!(key.verify_signature(b"another", &signature).is_err());

        args.key_id = schnorr(SchnorrAlgorithm::Bip340secp256k1, name);
        let key = schnorr_key(subnet, args.key_id.clone(), &["a"]);
        let key = PublicKey::deserialize_sec1(&key).unwrap();
        let signature = sign_schnorr(subnet, fee, &args).unwrap();
        assert!(key.verify_bip340_signature(&message, &signature));
        for root in [vec![], vec![5; 32]] {
            let merkle_root_hash = root.clone();
            args.aux = Some(SchnorrAux::Bip341(Bip341 { merkle_root_hash }));
            let signature = sign_schnorr(subnet, fee, &args).unwrap();
            assert!(key.verify_bip341_signature(&message, &signature, &root));
            assert!(!key.verify_bip340_signature(&message, &signature));
        }
    }
}

#[test]
fn a_signature_costs_its_fee() {
    let subnet = &mut subnet();
    let balance = |subnet: &Subnet| subnet.canister(&id(0)).map(Canister::balance).unwrap();
    let mut spent = Vec::new();
    let args = SignWithEcdsaArgs {
        message_hash: vec![7; 32],
        derivation_path: Vec::new(),
        key_id: ecdsa("test_key_1"),
    };
    for cycles in [TEST_FEE - 1, TEST_FEE, 5 * TEST_FEE] {
        let before = balance(subnet);
        let signed = sign(subnet, cycles, &args);
        assert_eq!(signed.is_ok(), cycles >= TEST_FEE);
        if let Err(poor) = signed {
            let words = "sign_with_ecdsa request sent with 9_999_999_999 cycles, but \
                         10_000_000_000 cycles are required.";
            assert!(poor.contains(words), "{poor}");
        }
        spent.push((before - balance(subnet)).get());
    }
    // The rest is refunded.
    assert_eq!(spent[1], spent[2]);
    assert!(spent[1] > u128::from(TEST_FEE) && spent[1] < u128::from(TEST_FEE + FEE));
    assert!(spent[0] < u128::from(TEST_FEE));
    let args = SignWithEcdsaArgs { key_id: ecdsa("key_1"), ..args };
    let poor = sign(subnet, FEE - 1, &args).unwrap_err();
    assert!(poor.contains("26_153_846_153 cycles are required"), "{poor}");
    // A public key is free.
    let before = balance(subnet);
    ecdsa_key(subnet, 0, None, &[]);
    assert!(before - balance(subnet) < Cycles(TEST_FEE.into()));
}

#[test]
fn the_system_api_reports_the_fee() {
    let subnet = subnet();
    let cost = |method: &str, kind: u8, name: &str| {
        let argument = [&[kind], name.as_bytes()].concat();
        let call = subnet.query(USER, id(2), method, &argument).unwrap();
        let reply = call.response.unwrap();
        let (code, cost) = reply.split_at(4);
        let code = u32::from_le_bytes(code.try_into().unwrap());
        (code, u128::from_le_bytes(cost.try_into().unwrap()))
    };
    for (method, kinds) in [("ecdsa", 1), ("schnorr", 2)] {
        for kind in 0..kinds {
            assert_eq!(cost(method, kind, "key_1"), (0, FEE.into()));
            assert_eq!(cost(method, kind, "test_key_1"), (0, TEST_FEE.into()));
            assert_eq!(cost(method, kind, "dfx_test_key"), (0, TEST_FEE.into()));
            assert_eq!(cost(method, kind, "key_2"), (2, 0));
        }
        assert_eq!(cost(method, kinds, "key_1"), (1, 0));
    }
    assert_eq!(cost("vetkd", 0, "key_1"), (2, 0));
    // A canister by itself has no keys.
    let replica = Replica::new(Rules::today(), None).unwrap();
    let alone = member(&replica, 0, COST);
    let reply = alone.query(USER, "ecdsa", b"\0key_1").unwrap().outcome.unwrap();
    assert_eq!(reply[0], 2);
}

#[test]
fn other_requests_are_rejected() {
    let subnet = &mut subnet();
    let public = EcdsaPublicKeyArgs {
        canister_id: None,
        derivation_path: Vec::new(),
        key_id: ecdsa("key_2"),
    };
    let unknown = relay(subnet, 0, 0, "ecdsa_public_key", &public).unwrap_err();
    let reason = format!(
        "Unable to route management canister request ecdsa_public_key: \
         ChainKeyError(\"Requested unknown threshold key: ecdsa:Secp256k1:key_2, existing keys: \
         {ALL_KEYS}\")"
    );
    assert!(unknown.contains(&reason), "{unknown}");
    let hash = vec![7; 32];
    let ecdsa_args = |key_id, message_hash| SignWithEcdsaArgs {
        message_hash,
        derivation_path: Vec::new(),
        key_id,
    };
    let unknown = sign(subnet, FEE, &ecdsa_args(ecdsa("key_2"), hash.clone())).unwrap_err();
    let reason = "Requested unknown or disabled threshold key: ecdsa:Secp256k1:key_2, existing \
                  enabled keys: [ecdsa:";
    assert!(unknown.contains(reason), "{unknown}");
    let short = sign(subnet, FEE, &ecdsa_args(ecdsa("key_1"), vec![7; 31])).unwrap_err();
    assert!(short.contains("invalid length 31, expected an array of length 32"), "{short}");
    let r1 = EcdsaKeyId { curve: EcdsaCurve::Secp256r1, name: "key_1".to_owned() };
    let curve = sign(subnet, FEE, &ecdsa_args(r1, hash.clone())).unwrap_err();
    assert!(curve.contains("InvalidManagementPayload"), "{curve}");
    let long = SignWithEcdsaArgs {
        derivation_path: vec![Vec::new(); 256],
        ..ecdsa_args(ecdsa("key_1"), hash)
    };
    let long = sign(subnet, FEE, &long).unwrap_err();
    assert!(long.contains("exceeds maximum allowed 255"), "{long}");

    let root = |bytes: usize| Some(SchnorrAux::Bip341(Bip341 { merkle_root_hash: vec![5; bytes] }));
    for (algorithm, aux, words) in [
        (
            SchnorrAlgorithm::Ed25519,
            root(32),
            "Schnorr algorithm Ed25519 does not support aux input",
        ),
        (SchnorrAlgorithm::Bip340secp256k1, root(31), "Invalid aux field for Bip340Secp256k1"),
    ] {
        let args = SignWithSchnorrArgs {
            message: Vec::new(),
            derivation_path: Vec::new(),
            key_id: schnorr(algorithm, "key_1"),
            aux,
        };
        let refused = sign_schnorr(subnet, FEE, &args).unwrap_err();
        assert!(refused.contains(words), "{refused}");
    }
    for method in ["ecdsa_public_key", "sign_with_ecdsa", "schnorr_public_key", "sign_with_schnorr"]
    {
        let unreadable = relay(subnet, 0, FEE, method, &7_u8).unwrap_err();
        assert!(unreadable.contains("Error decoding candid"), "{unreadable}");
        let argument = encode_one(&public).unwrap();
        let user =
            subnet.update(USER, MANAGEMENT, method, &argument).unwrap().response.unwrap_err();
        assert_eq!(user.code, ErrorCode::CanisterRejectedMessage);
        assert!(user.message.contains("can not be called via ingress messages"), "{user}");
    }
}
