use std::borrow::Cow;

use candid::Principal;
use ic_transport_types::{
    Delegation, DelegationPermissions, Envelope, EnvelopeContent, SignedDelegation,
};

use super::{DRIFT, Kind, MOST_AHEAD, Request};
use crate::refusal::Refusal;

const NOW: u64 = 1_000_000_000_000_000_000;

fn key(number: u8) -> ic_ed25519::PrivateKey {
    ic_ed25519::PrivateKey::generate_from_seed(&[number])
}

fn der(number: u8) -> Vec<u8> {
    key(number).public_key().serialize_rfc8410_der()
}

fn canister(number: u8) -> Principal {
    Principal::from_slice(&[number])
}

/// `by` signs for `to`.
fn delegation(by: u8, to: u8, change: impl FnOnce(&mut Delegation)) -> SignedDelegation {
    let mut delegation =
        Delegation { pubkey: der(to), expiration: NOW, targets: None, permissions: None };
    change(&mut delegation);
    let signature = key(by).sign_message(&delegation.signable()).to_vec();
    SignedDelegation { delegation, signature }
}

/// A request of key 0 to canister 7, signed by key `by` at the chain's end.
fn check(
    kind: Kind,
    by: u8,
    chain: Vec<SignedDelegation>,
    expiry: u64,
) -> Result<Request, Refusal> {
    let sender = Principal::self_authenticating(der(0));
    let (canister_id, method_name, arg) = (canister(7), "m".to_owned(), Vec::new());
    let content = match kind {
        Kind::Call => EnvelopeContent::Call {
            nonce: None,
            ingress_expiry: expiry,
            sender,
            canister_id,
            method_name,
            arg,
            sender_info: None,
        },
        Kind::Query => EnvelopeContent::Query {
            ingress_expiry: expiry,
            sender,
            canister_id,
            method_name,
            arg,
            nonce: None,
            sender_info: None,
        },
        Kind::ReadState => {
            EnvelopeContent::ReadState { ingress_expiry: expiry, sender, paths: Vec::new() }
        }
    };
    let signature = key(by).sign_message(&content.to_request_id().signable()).to_vec();
    let body = Envelope {
        content: Cow::Owned(content),
        sender_pubkey: Some(der(0)),
        sender_sig: Some(signature),
        sender_delegation: (!chain.is_empty()).then_some(chain),
    };
    Request::check(&body.encode_bytes(), kind, NOW)
}

#[test]
fn an_expiry_is_now_or_a_little_later() {
    let latest = NOW + MOST_AHEAD + DRIFT;
    for (expiry, taken) in [(NOW - 1, false), (NOW, true), (latest, true), (latest + 1, false)] {
        let checked = check(Kind::Call, 0, Vec::new(), expiry);
        assert_eq!(checked.is_ok(), taken, "{expiry}");
        if let Err(refusal) = checked {
            assert_eq!(refusal.status, 400);
        }
    }
}

#[test]
fn chains_of_delegations() {
    let long = |length: u8| (0..length).map(|by| delegation(by, by + 1, |_| ())).collect();
    assert!(check(Kind::Call, 20, long(20), NOW).is_ok());
    for (chain, by, why) in [
        (long(21), 21, "more than 20 delegations"),
        // One link is missing.
        (vec![delegation(0, 1, |_| ()), delegation(2, 3, |_| ())], 3, "not signed as it says"),
        (vec![delegation(0, 1, |_| ()), delegation(1, 0, |_| ())], 0, "twice"),
        (vec![delegation(0, 1, |_| ())], 2, "signature is wrong"),
    ] {
        let refused = check(Kind::Call, by, chain, NOW).unwrap_err();
        assert_eq!(refused.status, 403);
        assert!(refused.text.contains(why), "{}", refused.text);
    }
    let expired = vec![delegation(0, 1, |delegation| delegation.expiration = NOW - 1)];
    assert_eq!(check(Kind::Call, 1, expired, NOW).unwrap_err().status, 400);
}

#[test]
fn delegations_are_for_all_of_their_targets() {
    let to = |ids: &[u8]| Some(ids.iter().map(|id| canister(*id)).collect::<Vec<_>>());
    let chain = |first: &[u8], second: &[u8]| {
        let (first, second) = (to(first), to(second));
        vec![
            delegation(0, 1, |delegation| delegation.targets = first),
            delegation(1, 2, |delegation| delegation.targets = second),
        ]
    };
    assert_eq!(check(Kind::Call, 2, chain(&[7, 8], &[9, 7]), NOW).unwrap().targets, to(&[7]));
    for kind in [Kind::Call, Kind::Query] {
        let refused = check(kind, 2, chain(&[7], &[8]), NOW).unwrap_err();
        assert!(refused.text.contains("are not for canister"), "{}", refused.text);
    }
    // What is read is looked at path by path.
    let read = check(Kind::ReadState, 2, chain(&[7], &[8]), NOW).unwrap();
    assert!(!read.is_for(&canister(7)));
}

#[test]
fn a_delegation_can_be_for_queries_alone() {
    let chain = || {
        let queries = |delegation: &mut Delegation| {
            delegation.permissions = Some(DelegationPermissions::Queries);
        };
        vec![delegation(0, 1, queries)]
    };
    assert!(check(Kind::Query, 1, chain(), NOW).is_ok());
    assert!(check(Kind::ReadState, 1, chain(), NOW).is_ok());
    let refused = check(Kind::Call, 1, chain(), NOW).unwrap_err();
    assert!(refused.text.contains("for queries alone"), "{}", refused.text);
}
