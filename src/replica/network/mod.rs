//! Any replica by its URL: one of dfx or icp-cli, `stablebench serve`, the mainnet.
//!
//! ```text
//!   address.rs      where it is, and whether that is this machine
//!   identity.rs     who calls
//!   link.rs         the agent, made blocking
//!     sending.rs      a call that is executed once, though answers are lost
//!     management.rs   code, snapshots, balances
//!   ours.rs         which canister is which of ours
//!   slot.rs         such a canister
//!   installed.rs    a store in it, and forks
//!     history.rs      what it was sent, where there are no snapshots
//! ```

mod address;
mod call;
mod error;
mod history;
mod identity;
mod installed;
mod link;
mod management;
mod ours;
mod reject_code;
mod sending;
mod slot;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use candid::Principal;

pub use address::{Address, AddressError};
pub use identity::exposed;
pub use reject_code::ic_code;

use self::installed::Installed;
use self::link::Link;
use self::slot::Slot;
use super::{Canister, Identity, Replica};
use crate::canisters::Built;

/// A replica by its URL, and canisters of ours there.
pub struct Network {
    slots: Vec<Arc<Slot>>,
    identity: Identity,
}

/// What a network is reached by.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    pub address: &'a Address,
    /// Canisters that may be used.
    pub canisters: &'a [Principal],
    /// The file of the caller's key.
    pub identity: Option<&'a Path>,
    /// The key that the network signs by, in DER.
    pub root_key: Option<&'a [u8]>,
}

/// A canister of ours, and what it can spend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purse {
    /// Name of the module in it.
    pub name: String,
    pub canister: Principal,
    pub cycles: u128,
}

impl Network {
    /// Connects, and finds a canister for each module of `needed`. Nothing is changed.
    ///
    /// # Errors
    ///
    /// [`NetworkError`] where that cannot be.
    pub fn connect(access: Access<'_>, needed: &[Built]) -> Result<Self> {
        let caller = identity::identity(access.identity)?;
        let (link, version) = Link::connect(access.address.clone(), caller, access.root_key)?;
        let link = Arc::new(link);
        let slots = ours::slots(&link, needed, access.canisters)?;
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

    /// What the canisters can spend.
    pub fn purses(&self) -> Result<Vec<Purse>> {
        let purse = |slot: &Arc<Slot>| {
            let (name, canister) = (slot.ours.name.clone(), slot.canister);
            Ok(Purse { name, canister, cycles: slot.balance()? })
        };
        self.slots.iter().map(purse).collect()
    }
}

impl Replica for Network {
    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    /// Empties the canister that has the module.
    fn install(&self, wasm: &[u8]) -> Result<Box<dyn Canister>> {
        let slot = self.slots.iter().find(|slot| slot.ours.is(wasm));
        let slot = slot.context("no canister of the network has that module")?;
        Ok(Box::new(Installed::new(slot.clone())?))
    }
}
