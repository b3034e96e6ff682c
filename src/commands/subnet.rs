//! Calls of canisters on an embedded subnet, for `call` and `profile`.

use anyhow::{Context, Result, bail};
use stablebench_replica::subnet::{Call, Executed, Subnet};
use stablebench_replica::{Canister, Principal};

use crate::canisters;
use crate::progress::Progress;
use crate::replica::embedded::Embedded;
use crate::report::number::Grouped;

/// Rounds that are executed after the answer, for calls that go on.
const MAX_ROUNDS: usize = 100;
/// Canisters of `--with`.
const MAX_OTHERS: usize = 100;

/// A message of a user.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub callee: Principal,
    pub method: &'a str,
    pub argument: &'a [u8],
    pub query: bool,
}

/// A call, with everything that followed from it.
#[derive(Debug)]
pub struct Followed {
    pub call: Call,
    /// Executions that are not part of the call, because there were too many.
    unlisted: u64,
    /// True if calls are open after the last round.
    unfinished: bool,
}

/// Installs the canisters of `--with`, and prints their ids.
pub fn others(names: &[String], replica: &Embedded, progress: &Progress) -> Result<Vec<Canister>> {
    if names.len() > MAX_OTHERS {
        bail!("--with is given {} times; at most {MAX_OTHERS} canisters fit", names.len());
    }
    let mut canisters = Vec::new();
    for (number, name) in (1..).zip(names) {
        let built = canisters::find(name, progress)?;
        let canister = replica
            .installed_on_subnet(number, &built.wasm, |_| Ok(()))
            .with_context(|| format!("--with {name}"))?;
        progress.note(&format!("{name} is {}", canister.id()));
        canisters.push(canister);
    }
    Ok(canisters)
}

/// Returns a subnet of these canisters, at the time of the first.
pub fn subnet(
    first: Canister,
    others: impl IntoIterator<Item = Canister>,
    replica: &Embedded,
) -> Result<Subnet> {
    let mut subnet = Subnet::new(replica.inner());
    subnet.set_time(first.time());
    subnet.add(first)?;
    for other in others {
        subnet.add(other)?;
    }
    Ok(subnet)
}

/// Executes a call, and what it has left to do when it is answered: calls whose answers it did not
/// wait for.
pub fn follow(subnet: &mut Subnet, message: Message<'_>) -> Result<Followed> {
    let Message { callee, method, argument, query } = message;
    let caller = Principal::anonymous();
    if query {
        let call = subnet.query(caller, callee, method, argument)?;
        return Ok(Followed { call, unlisted: 0, unfinished: false });
    }
    let before = subnet.executed();
    let mut call = subnet.update(caller, callee, method, argument)?;
    let mut rounds = 0;
    while !subnet.is_idle() && rounds < MAX_ROUNDS {
        subnet.tick()?;
        call.executions.append(&mut subnet.take_executions());
        rounds += 1;
    }
    let unlisted = (subnet.executed() - before).saturating_sub(call.executions.len() as u64);
    Ok(Followed { call, unlisted, unfinished: !subnet.is_idle() })
}

impl Followed {
    /// Returns the execution of the method that the user called. Heartbeats and timers may come
    /// first.
    pub fn first(&self, method: &str) -> Option<&Executed> {
        let is_it = |it: &&Executed| it.cause.is_none() && it.function.method() == Some(method);
        self.call.executions.iter().find(is_it)
    }

    /// Notes what is missing.
    pub fn note(&self, progress: &Progress) {
        if self.unfinished {
            let rounds = format!("{MAX_ROUNDS} more rounds");
            progress.note(&format!("calls go on after {rounds}, which are not executed"));
        }
        if self.unlisted > 0 {
            let more = Grouped(self.unlisted);
            progress.note(&format!("{more} executions are too many, and not part of the result"));
        }
    }
}
