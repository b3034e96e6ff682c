//! Which of the given canisters is which of ours. Nothing is sent to any other.
//!
//! A canister is ours if a replica certifies that its module is the one that is built here, plain
//! or as `wasm.gz`, and if it describes itself. Its controllers are certified likewise.

use std::sync::Arc;

use anyhow::Result;
use candid::{Principal, encode_args};
use sha2::{Digest, Sha256};
use stablebench_protocol::Description;

use super::error::NetworkError;
use super::link::Link;
use super::management::State;
use super::slot::Slot;
use crate::canisters::{Built, deployable};
use crate::replica::decode;

/// A module of ours, in both forms in which it is deployed.
#[derive(Clone, Debug)]
pub(super) struct Ours {
    pub name: String,
    plain: Arc<[u8]>,
    compressed: Arc<[u8]>,
}

impl Ours {
    pub fn new(built: &Built) -> Result<Self> {
        let compressed = deployable(&built.wasm).into();
        Ok(Self { name: built.name.clone(), plain: built.wasm.as_slice().into(), compressed })
    }

    /// The form that has this hash.
    pub fn with_hash(&self, hash: &[u8]) -> Option<&Arc<[u8]>> {
        [&self.plain, &self.compressed].into_iter().find(|form| *Sha256::digest(form) == *hash)
    }

    /// Whether it is that module, plain.
    pub fn is(&self, wasm: &[u8]) -> bool {
        *self.plain == *wasm
    }

    fn foreign(&self, found: &[(Principal, Option<Vec<u8>>)]) -> NetworkError {
        let found = found.iter().map(|(canister, hash)| match hash {
            Some(hash) => format!("  the module of {canister} is {}\n", hex(hash)),
            None => format!("  {canister} has no module\n"),
        });
        NetworkError::Foreign {
            name: self.name.clone(),
            found: found.collect(),
            plain: hex(&Sha256::digest(&self.plain)),
            compressed: hex(&Sha256::digest(&self.compressed)),
        }
    }
}

/// A canister for each module that is needed.
///
/// # Errors
///
/// Where a canister is missing, is not ours, does not run, or does not have the caller as a
/// controller. Nothing was changed then.
pub(super) fn slots(
    link: &Arc<Link>,
    needed: &[Built],
    canisters: &[Principal],
) -> Result<Vec<Arc<Slot>>> {
    let mut found = Vec::new();
    for canister in canisters {
        found.push((*canister, module_hash(link, *canister)?));
    }
    let mut slots = Vec::new();
    for built in needed {
        let ours = Ours::new(built)?;
        let form = found.iter().find_map(|(canister, hash)| {
            Some((*canister, ours.with_hash(hash.as_deref()?)?.clone()))
        });
        let (canister, form) = form.ok_or_else(|| ours.foreign(&found))?;
        let slot = Slot::new(link.clone(), canister, ours, form);
        check(&slot)?;
        slots.push(Arc::new(slot));
    }
    Ok(slots)
}

fn module_hash(link: &Link, canister: Principal) -> Result<Option<Vec<u8>>> {
    let hash = link.module_hash(canister)?;
    // What exists has controllers, though nobody may be among them.
    if hash.is_none() && link.controllers(canister)?.is_none() {
        let url = link.address().to_string();
        return Err(NetworkError::NoCanister { canister, url, source: None }.into());
    }
    Ok(hash)
}

fn check(slot: &Slot) -> Result<()> {
    let canister = slot.canister;
    let caller = slot.link.caller();
    let controllers = slot.link.controllers(canister)?;
    if !controllers.is_some_and(|controllers| controllers.contains(&caller)) {
        return Err(NetworkError::NotController { canister, caller }.into());
    }
    if slot.status()?.status != State::Running {
        return Err(NetworkError::Stopped { canister }.into());
    }
    let answer = slot.query("describe", &encode_args(())?)?;
    let described: Result<Description> = decode("describe", answer);
    described.map_err(|source| NetworkError::Undescribed { canister, source })?;
    Ok(())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> Ours {
        let wasm = b"\0asm\x01\0\0\0".to_vec();
        let (path, candid) = (std::path::PathBuf::new(), String::new());
        Ours::new(&Built { name: "bench".to_owned(), path, wasm, candid }).unwrap()
    }

    #[test]
    fn both_forms_are_ours_and_nothing_else_is() {
        let ours = ours();
        let plain = Sha256::digest(b"\0asm\x01\0\0\0");
        assert_eq!(**ours.with_hash(&plain).unwrap(), *b"\0asm\x01\0\0\0");
        let compressed = deployable(b"\0asm\x01\0\0\0");
        assert_eq!(**ours.with_hash(&Sha256::digest(&compressed)).unwrap(), *compressed);
        for hash in [&[][..], &plain[..31], &Sha256::digest(b"another")] {
            assert!(ours.with_hash(hash).is_none(), "{hash:?}");
        }
        assert!(ours.is(b"\0asm\x01\0\0\0") && !ours.is(&compressed));
    }

    #[test]
    fn a_foreign_canister_is_told_with_all_hashes_and_the_next_step() {
        let ours = ours();
        let anonymous = Principal::anonymous();
        let management = Principal::management_canister();
        let error = ours.foreign(&[(anonymous, Some(vec![0xab; 32])), (management, None)]);
        let text = error.to_string();
        for part in [
            &format!("the module of 2vxsx-fae is {}", "ab".repeat(32)),
            "aaaaa-aa has no module",
            "bench is 93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476 as wasm,",
            "dfx deploy bench or icp deploy bench",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
