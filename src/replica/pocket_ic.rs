//! A PocketIC server: the real replica's code on this machine. Each canister has its own
//! instance, so that canisters never wait for each other.
//!
//! A fork is the canister itself, which is restored from a snapshot before it is used again:
//!
//! ```text
//!   fork              take a snapshot, or load it if the canister was forked since
//!   update, upgrade   load it if the canister was forked since; the snapshot is then outdated
//! ```

use std::sync::Arc;

use anyhow::{Context, Result};
use stablebench_pocket_ic::{Instance, Mode, Principal, Server, Snapshot, Subnet, detect};
use stablebench_replica::Rules;

use super::{Answer, Canister, Cost, Identity, Messages, Readings, Reject, Replica};
use crate::canisters;

/// A server and the kind of subnet that its instances have.
pub struct PocketIc {
    server: Arc<Server>,
    subnet: Subnet,
    rules: Rules,
}

impl PocketIc {
    /// Starts the server and detects the rules by which it charges.
    pub fn start(subnet: Subnet) -> Result<Self> {
        let server = Server::start()?;
        let rules = detect(&server, subnet)
            .with_context(|| format!("the PocketIC server {}", server.version()))?;
        Ok(Self { server, subnet, rules })
    }
}

impl Replica for PocketIc {
    fn identity(&self) -> Identity {
        Identity {
            kind: "pocket-ic".to_owned(),
            version: self.server.version().to_string(),
            subnet: match self.subnet {
                Subnet::Application | Subnet::WithKeys => "application",
                Subnet::System => "system",
                Subnet::Benchmarking => "benchmarking",
            }
            .to_owned(),
            rules: self.rules.to_string(),
        }
    }

    fn install(&self, wasm: &[u8]) -> Result<Box<dyn Canister>> {
        let instance = Instance::create(&self.server, self.subnet)?;
        let id = instance.create_canister(CALLER)?;
        instance
            .install(id, CALLER, Mode::Install, wasm, &candid::encode_args(())?)?
            .context("installing failed")?;
        let balance = instance.balance(id)?;
        Ok(Box::new(Installed {
            instance,
            id,
            wasm: wasm.to_vec(),
            balance,
            snapshot: None,
            changed: true,
            forked: false,
        }))
    }
}

const CALLER: Principal = Principal::anonymous();

/// A canister on its own instance.
struct Installed {
    instance: Instance,
    id: Principal,
    /// The module, for upgrades.
    wasm: Vec<u8>,
    /// Cycles after the last message.
    balance: u128,
    /// The state of the canister at the last fork.
    snapshot: Option<Snapshot>,
    /// `true` if it was changed since, so that the snapshot is outdated.
    changed: bool,
    /// `true` if a fork may have changed it since.
    forked: bool,
}

impl Installed {
    /// Undoes the changes of a fork.
    fn restore(&mut self) -> Result<()> {
        if let (true, Some(snapshot)) = (self.forked, &self.snapshot) {
            self.instance.load_snapshot(self.id, CALLER, snapshot)?;
            self.balance = self.instance.balance(self.id)?;
        }
        self.forked = false;
        Ok(())
    }

    fn send(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        let outcome = self.instance.update(self.id, CALLER, method, argument)?;
        let balance = self.instance.balance(self.id)?;
        let cycles = self.balance.saturating_sub(balance);
        self.balance = balance;
        Ok(answer(outcome, cycles))
    }

    fn ask(&self, method: &str, argument: &[u8]) -> Result<Answer> {
        Ok(answer(self.instance.query(self.id, CALLER, method, argument)?, 0))
    }

    fn renew(&mut self) -> Result<Cost> {
        let argument = candid::encode_args(())?;
        let mode = match canisters::keeps_heap(&self.wasm) {
            true => Mode::UpgradeKeepingHeap,
            false => Mode::Upgrade,
        };
        let outcome = self.instance.install(self.id, CALLER, mode, &self.wasm, &argument)?;
        // A refused upgrade costs cycles too, which are not part of the next message's cost.
        let balance = self.instance.balance(self.id)?;
        let cycles = self.balance.saturating_sub(balance);
        self.balance = balance;
        outcome.map_err(reject).context("upgrading failed")?;
        Ok(Cost { cycles: u64::try_from(cycles).unwrap_or(u64::MAX), inside: None })
    }
}

impl Messages for Installed {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.restore()?;
        self.changed = true;
        self.send(method, argument)
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.restore()?;
        self.ask(method, argument)
    }

    fn upgrade(&mut self) -> Result<Cost> {
        self.restore()?;
        self.changed = true;
        self.renew()
    }
}

impl Canister for Installed {
    fn fork(&mut self) -> Result<Box<dyn Messages + '_>> {
        self.restore()?;
        if self.changed {
            let old = self.snapshot.as_ref();
            self.snapshot = Some(self.instance.take_snapshot(self.id, CALLER, old)?);
            self.balance = self.instance.balance(self.id)?;
            self.changed = false;
        }
        self.forked = true;
        Ok(Box::new(Fork(self)))
    }
}

/// The canister until it is restored.
struct Fork<'a>(&'a mut Installed);

impl Messages for Fork<'_> {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.0.send(method, argument)
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.0.ask(method, argument)
    }

    fn upgrade(&mut self) -> Result<Cost> {
        self.0.renew()
    }
}

fn answer(outcome: Result<Vec<u8>, stablebench_pocket_ic::Reject>, cycles: u128) -> Answer {
    Answer {
        outcome: outcome.map_err(reject),
        cost: Cost { cycles: u64::try_from(cycles).unwrap_or(u64::MAX), inside: None },
        readings: Readings::default(),
    }
}

fn reject(reject: stablebench_pocket_ic::Reject) -> Reject {
    Reject { code: reject.code, message: reject.message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::embedded::Embedded;
    use crate::replica::lockstep::Lockstep;

    /// Runs in lockstep with the embedded replica, which fails if a reply or a cycle differs.
    #[test]
    #[ignore = "needs the PocketIC server that POCKET_IC_BIN names"]
    fn upgrades_of_a_canister_and_of_its_forks() {
        let directory = tempfile::tempdir().unwrap();
        let server = PocketIc::start(Subnet::Application).unwrap();
        let both = [
            Box::new(server) as Box<dyn Replica + Send>,
            Box::new(
                Embedded::new(stablebench_replica::Effort::Full, Rules::today(), None, |_| {})
                    .unwrap(),
            ),
        ];
        let replica = Lockstep::new(both, directory.path().join("difference"));
        let wasm = wat::parse_str(include_str!("counter.wat")).unwrap();
        let mut canister = replica.install(&wasm).unwrap();
        let count =
            |canister: &mut dyn Messages| canister.update("count", &[]).unwrap().outcome.unwrap();
        assert_eq!(count(&mut *canister), [1, 1]);
        canister.upgrade().unwrap();
        assert_eq!(count(&mut *canister), [1, 2]);
        for _ in 0..2 {
            let mut fork = canister.fork().unwrap();
            assert_eq!(count(&mut *fork), [2, 3]);
            fork.upgrade().unwrap();
            assert_eq!(count(&mut *fork), [1, 4]);
        }
        // Straight after a fork, too.
        canister.upgrade().unwrap();
        assert_eq!(count(&mut *canister), [1, 3]);
        canister.fork().unwrap().upgrade().unwrap();
        assert_eq!(count(&mut *canister), [2, 4]);
        canister.update("trap in upgrades", &[]).unwrap().outcome.unwrap();
        let error = canister.upgrade().unwrap_err();
        assert_eq!(error.downcast_ref::<Reject>().unwrap().code, "CanisterTrapped");
        assert_eq!(count(&mut *canister), [3, 5]);
    }
}
