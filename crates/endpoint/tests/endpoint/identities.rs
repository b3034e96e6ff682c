//! Who signs, and for whom.

use candid::Principal;
use ic_agent::identity::{
    AnonymousIdentity, BasicIdentity, DelegatedIdentity, Delegation, Secp256k1Identity,
    SignedDelegation,
};
use ic_agent::{Agent, Identity};

use super::server::{COUNTER, Server, update};

pub fn ed25519(seed: u8) -> BasicIdentity {
    BasicIdentity::from_raw_key(&[seed; 32])
}

/// A key in the form that `openssl ecparam -name secp256k1 -genkey` writes.
fn secp256k1() -> Secp256k1Identity {
    let key = ic_secp256k1::PrivateKey::generate_from_seed(b"a seed");
    Secp256k1Identity::from_pem(key.serialize_rfc5915_pem()).unwrap()
}

/// `to` signs for `from`.
pub fn delegated(
    from: &BasicIdentity,
    to: BasicIdentity,
    expiration: u64,
    targets: Option<Vec<Principal>>,
) -> DelegatedIdentity {
    let pubkey = to.public_key().unwrap();
    let delegation = Delegation { pubkey, expiration, targets, permissions: None };
    let signature = from.sign_delegation(&delegation).unwrap().signature.unwrap();
    let chain = vec![SignedDelegation { delegation, signature }];
    DelegatedIdentity::new_unchecked(from.public_key().unwrap(), Box::new(to), chain)
}

async fn whoami(agent: &Agent, id: Principal) -> Principal {
    Principal::from_slice(&update(agent, id, "whoami", &[]).await)
}

#[tokio::test]
async fn the_canister_sees_who_signed() {
    let (server, id) = Server::with(COUNTER).await;
    let expected = Principal::anonymous();
    assert_eq!(whoami(&server.agent(AnonymousIdentity), id).await, expected);
    let expected = ed25519(1).sender().unwrap();
    assert_eq!(whoami(&server.agent(ed25519(1)), id).await, expected);
    let expected = secp256k1().sender().unwrap();
    assert_eq!(whoami(&server.agent(secp256k1()), id).await, expected);
    for targets in [None, Some(vec![id])] {
        let identity = delegated(&ed25519(1), ed25519(2), u64::MAX, targets);
        let expected = ed25519(1).sender().unwrap();
        assert_eq!(whoami(&server.agent(identity), id).await, expected);
    }
}

#[tokio::test]
async fn a_delegation_ends_and_has_targets() {
    let (server, id) = Server::with(COUNTER).await;
    let other = server.add(COUNTER);
    let refused = async |identity: DelegatedIdentity| {
        let agent = server.agent(identity);
        agent.update(&id, "whoami").call_and_wait().await.unwrap_err().to_string()
    };
    let expired = refused(delegated(&ed25519(1), ed25519(2), 1, None)).await;
    assert!(expired.contains("400") && expired.contains("has expired at 1;"), "{expired}");
    let targets = Some(vec![other]);
    let elsewhere = refused(delegated(&ed25519(1), ed25519(2), u64::MAX, targets)).await;
    assert!(elsewhere.contains("403"), "{elsewhere}");
    assert!(elsewhere.contains("are not for canister"), "{elsewhere}");
    // Signed by somebody else than the delegation says.
    let mut forged = delegated(&ed25519(3), ed25519(2), u64::MAX, None).delegation_chain();
    let chain = std::mem::take(&mut forged);
    let key = ed25519(1).public_key().unwrap();
    let forged = DelegatedIdentity::new_unchecked(key, Box::new(ed25519(2)), chain);
    let forged = refused(forged).await;
    assert!(forged.contains("403") && forged.contains("is not signed as it says"), "{forged}");
}
