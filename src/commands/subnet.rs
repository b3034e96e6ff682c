//! Calls of canisters on an embedded subnet, for `call` and `profile`, and saved subnets.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use stablebench_replica::subnet::{Call, Executed, Subnet};
use stablebench_replica::{Canister, Principal};

use super::environment::Environment;
use crate::canisters::{self, Built};
use crate::progress::Progress;
use crate::replica::embedded::Embedded;
use crate::report::number::Grouped;

/// Rounds that are executed after the answer, for calls that go on.
const MAX_ROUNDS: usize = 100;
/// Nanoseconds between two messages to a saved subnet.
const MESSAGE_INTERVAL: u64 = 1_000_000_000;
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

/// The canisters that a command names.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<'a> {
    /// The canister to call: its name, the path of its module, or the id of a saved one.
    pub canister: &'a str,
    /// Those of `--with`: names and paths.
    pub with: &'a [String],
    /// The file of `--state`.
    pub state: Option<&'a Path>,
}

/// A subnet with these canisters.
pub struct Loaded {
    pub subnet: Subnet,
    /// The ids of the first canister and of those of `--with`, in their order.
    pub listed: Vec<Principal>,
    /// The canister to call.
    pub callee: Principal,
    /// Its interface; empty if its module does not contain one.
    pub candid: String,
}

/// Loads the saved canisters, and installs the others. Prints the ids of those of `--with`.
///
/// Of a saved subnet, the first canister and those of `--with` are the canisters that were named in
/// the same place when it was saved, and must have the same modules. Others of `--with` are new.
pub fn load(
    chosen: Chosen<'_>,
    environment: &Environment,
    replica: &Embedded,
    progress: &Progress,
) -> Result<Loaded> {
    let Chosen { canister: name, with, state } = chosen;
    if with.len() > MAX_OTHERS {
        bail!("--with is given {} times; at most {MAX_OTHERS} canisters fit", with.len());
    }
    let (mut subnet, mut listed) = match state {
        Some(path) => saved(path, replica, progress)?,
        None => (Subnet::new(replica.inner()), Vec::new()),
    };
    let id = Principal::from_text(name).ok().filter(|_| state.is_some());
    let callee = match (id, listed.first(), state) {
        (Some(id), _, Some(path)) => {
            check_exists(&subnet, &id, path)?;
            id
        }
        (_, Some(first), Some(path)) => {
            check_module(&subnet, first, &canisters::find(name, progress)?, name, path)?;
            *first
        }
        _ => {
            let wasm = canisters::find(name, progress)?.wasm;
            let id = subnet.next_id().context("no canister id is left")?;
            let canister =
                replica.installed_on_subnet(id, &wasm, |it| environment.set_variables(it))?;
            subnet.set_time(canister.time());
            subnet.add(canister)?;
            listed.push(id);
            id
        }
    };
    if let Some(canister) = subnet.canister_mut(&callee) {
        environment.set_variables(canister)?;
        environment.set_stable_memory(canister)?;
    }
    for (at, name) in with.iter().enumerate() {
        let built = canisters::find(name, progress)?;
        let id = match (listed.get(at + 1), state) {
            (Some(id), Some(path)) => {
                check_module(&subnet, id, &built, name, path)?;
                *id
            }
            _ => {
                let id = subnet.next_id().context("no canister id is left")?;
                let canister = replica
                    .installed_on_subnet(id, &built.wasm, |_| Ok(()))
                    .with_context(|| format!("--with {name}"))?;
                subnet.add(canister)?;
                listed.push(id);
                id
            }
        };
        progress.note(&format!("{name} is {id}"));
    }
    let module = subnet.canister(&callee).and_then(Canister::module);
    let candid = module.and_then(|module| canisters::candid_of(&module.wasm()));
    Ok(Loaded { subnet, listed, callee, candid: candid.unwrap_or_default() })
}

/// Loads a subnet, and the ids of the canisters that were named when it was saved.
pub fn saved(
    path: &Path,
    replica: &Embedded,
    progress: &Progress,
) -> Result<(Subnet, Vec<Principal>)> {
    let step = progress.spinner(&format!("loading {}", path.display()));
    let (subnet, note) = replica
        .inner()
        .load_subnet(path)
        .with_context(|| format!("cannot load canisters from {}", path.display()))?;
    step.done("");
    // A file that contains one canister has no note.
    let listed = match note.is_empty() {
        true => subnet.canisters().map(Canister::id).collect(),
        false => note
            .split(' ')
            .map(Principal::from_text)
            .collect::<Result<Vec<_>, _>>()
            .with_context(|| format!("{} does not list its canisters", path.display()))?,
    };
    Ok((subnet, listed))
}

/// Text that lists the canisters of a command, for a saved subnet.
pub fn note(listed: &[Principal]) -> String {
    listed.iter().map(Principal::to_text).collect::<Vec<_>>().join(" ")
}

/// Saves a subnet on which no call is open. The next message comes a second later.
pub fn save(subnet: &mut Subnet, listed: &[Principal], path: &Path) -> Result<()> {
    ensure!(
        subnet.is_idle(),
        "calls are open {MAX_ROUNDS} rounds after the answer, and would be lost; call without --save"
    );
    subnet.set_time(subnet.time() + MESSAGE_INTERVAL);
    Ok(subnet.save(path, &note(listed))?)
}

fn check_exists(subnet: &Subnet, id: &Principal, path: &Path) -> Result<()> {
    ensure!(
        subnet.exists(id),
        "{} contains no canister {id}; it contains {}",
        path.display(),
        subnet.canisters().map(|canister| canister.id().to_text()).collect::<Vec<_>>().join(", ")
    );
    Ok(())
}

/// Checks that a saved canister has the module that was named.
fn check_module(
    subnet: &Subnet,
    id: &Principal,
    named: &Built,
    name: &str,
    path: &Path,
) -> Result<()> {
    check_exists(subnet, id, path)?;
    let module = subnet.canister(id).and_then(Canister::module);
    let saved = module.map(|module| hex::encode(module.hash()));
    ensure!(
        saved == Some(canisters::hash(&named.wasm)),
        "{} contains canister {id} with another module than {name}; name the module that was saved, \
         call the canister by its id, or leave out --state",
        path.display()
    );
    Ok(())
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
