//! Any replica by its URL: one of dfx or icp-cli, `stablebench serve`, the mainnet.
//!
//! ```text
//!   access.rs       what is needed for access, and the caller's key
//!   link.rs         the agent with blocking calls
//!     sending.rs      a call that is executed once, even if answers are lost
//!   slot.rs         a canister that contains the module that is needed
//!   installed.rs    a fixture in it, and its forks
//! ```

mod access;
mod error;
mod installed;
mod link;
mod sending;
mod slot;

use std::sync::Arc;

use anyhow::{Context, Result};

use self::installed::Installed;
use self::link::Link;
use self::slot::Slot;
use super::{Balance, Canister, Identity, Replica};
use crate::canisters::Built;

pub use access::{Access, exposed};

/// A replica by its URL, and the canisters there that may be measured in.
pub struct Network {
    slots: Vec<Arc<Slot>>,
    identity: Identity,
}

impl Network {
    /// Connects, and finds a canister for each module of `needed`. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`NetworkError`](error::NetworkError) if that is impossible.
    pub fn connect(access: Access<'_>, needed: &[Built]) -> Result<Self> {
        let caller = access::identity(access.identity)?;
        let (link, version) = Link::connect(access.address.clone(), caller, access.root_key)?;
        let link = Arc::new(link);
        let slots = slot::slots(&link, needed, access.canisters)?;
        let subnet = match slots.first() {
            Some(slot) => link.subnet(slot.canister)?,
            None => None,
        };
        let unknown = || "unknown".to_owned();
        let identity = Identity {
            kind: "network".to_owned(),
            version: version.unwrap_or_else(unknown),
            subnet: subnet.map_or_else(unknown, |subnet| subnet.to_text()),
            rules: unknown(),
        };
        Ok(Self { slots, identity })
    }

    /// Asks for the canisters' balances.
    pub fn balances(&self) -> Result<Vec<Balance>> {
        let balance = |slot: &Arc<Slot>| {
            let (name, canister) = (slot.module.name.clone(), slot.canister);
            Ok(Balance { name, canister, cycles: slot.balance()? })
        };
        self.slots.iter().map(balance).collect()
    }
}

impl Replica for Network {
    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    /// Empties the canister that has the module.
    fn install(&self, wasm: &[u8]) -> Result<Box<dyn Canister>> {
        let slot = self.slots.iter().find(|slot| slot.module.is(wasm));
        let slot = slot.context("no canister of the network has that module")?;
        Ok(Box::new(Installed::new(slot.clone())?))
    }
}
