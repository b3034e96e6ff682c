//! Who sent a request: signatures, and chains of delegations.
//!
//! ```text
//!   sender = hash of sender_pubkey ─signs→ delegation 1 ─signs→ … ─signs→ request id
//! ```

use std::collections::BTreeSet;

use candid::Principal;
use ic_transport_types::{DelegationPermissions, Envelope, EnvelopeContent, RequestId};
use p256::ecdsa::signature::Verifier;
use p256::pkcs8::DecodePublicKey;

use super::Kind;
use crate::refusal::Refusal;

/// The most delegations of a chain, and the most targets of one.
const MOST_DELEGATIONS: usize = 20;
const MOST_TARGETS: usize = 1_000;

/// Checks signatures and delegations; answers for which canisters the latter are.
pub fn check(
    envelope: &Envelope<'_>,
    id: RequestId,
    kind: Kind,
    now: u64,
) -> Result<Option<Vec<Principal>>, Refusal> {
    let refuse = |why: &str| {
        let id = hex::encode(id.as_slice());
        Refusal::forbidden(format!("Failed to authenticate request {id}: {why}."))
    };
    let sender = envelope.content.sender();
    let delegations = envelope.sender_delegation.as_deref().unwrap_or_default();
    let (key, signature) = match (&envelope.sender_pubkey, &envelope.sender_sig) {
        (None, None) if *sender == Principal::anonymous() && delegations.is_empty() => {
            return Ok(None);
        }
        (None, None) => return Err(refuse(&format!("there is no signature of {sender}"))),
        (Some(_), Some(_)) if *sender == Principal::anonymous() => {
            return Err(refuse("the anonymous sender does not sign"));
        }
        (Some(key), Some(signature)) => (key, signature),
        _ => return Err(refuse("sender_pubkey and sender_sig go together")),
    };
    if *sender != Principal::self_authenticating(key) {
        return Err(refuse(&format!("{sender} is not the principal of sender_pubkey")));
    }
    if delegations.len() > MOST_DELEGATIONS {
        return Err(refuse(&format!("there are more than {MOST_DELEGATIONS} delegations")));
    }
    let mut key = key.as_slice();
    let mut keys = BTreeSet::from([key]);
    let mut targets: Option<Vec<Principal>> = None;
    for signed in delegations {
        let delegation = &signed.delegation;
        if delegation.expiration < now {
            return Err(Refusal::bad_request(format!(
                "A delegation has expired at {}; it is {now} here.",
                delegation.expiration
            )));
        }
        verify(key, &delegation.signable(), &signed.signature)
            .map_err(|why| refuse(&format!("a delegation is not signed as it says: {why}")))?;
        if let Some(these) = &delegation.targets {
            if these.len() > MOST_TARGETS {
                return Err(refuse(&format!("a delegation has more than {MOST_TARGETS} targets")));
            }
            // A canister has to be in all of them.
            targets = Some(match targets {
                None => these.clone(),
                Some(before) => before.into_iter().filter(|id| these.contains(id)).collect(),
            });
        }
        if kind == Kind::Call
            && matches!(delegation.permissions, Some(DelegationPermissions::Queries))
        {
            return Err(refuse("a delegation is for queries alone"));
        }
        key = &delegation.pubkey;
        if !keys.insert(key) {
            return Err(refuse("a key is in the chain of delegations twice"));
        }
    }
    verify(key, &id.signable(), signature).map_err(|why| refuse(&why))?;
    if let (
        Some(targets),
        EnvelopeContent::Call { canister_id, .. } | EnvelopeContent::Query { canister_id, .. },
    ) = (&targets, &*envelope.content)
        && !targets.contains(canister_id)
    {
        return Err(refuse(&format!("the delegations are not for canister {canister_id}")));
    }
    Ok(targets)
}

/// Verifies a signature by a DER-encoded public key.
fn verify(key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), String> {
    if let Ok(key) = ic_ed25519::PublicKey::deserialize_rfc8410_der(key) {
        return key
            .verify_signature(message, signature)
            .map_err(|_| "the Ed25519 signature is wrong".to_owned());
    }
    if let Ok(key) = ic_secp256k1::PublicKey::deserialize_der(key) {
        // The specification does not ask for the smaller of the two possible values.
        return if key.verify_ecdsa_signature_with_malleability(message, signature) {
            Ok(())
        } else {
            Err("the secp256k1 signature is wrong".to_owned())
        };
    }
    // Of a browser's own cryptography, and so of the sessions of most web applications.
    if let Ok(key) = p256::ecdsa::VerifyingKey::from_public_key_der(key) {
        return p256::ecdsa::Signature::from_slice(signature)
            .and_then(|signature| key.verify(message, &signature))
            .map_err(|_| "the P-256 signature is wrong".to_owned());
    }
    Err("the public key is neither Ed25519 nor secp256k1 nor P-256 in DER".to_owned())
}
