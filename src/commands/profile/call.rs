//! A call of any canister, profiled with everything that it causes.
//!
//! The call is executed on two equal subnets, of which one profiles. Both must give the same answer
//! and the same executions at the same cost.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use candid::types::FuncMode;
use stablebench_replica::subnet::Subnet;
use stablebench_replica::{Canister, MethodKind};

use super::{Found, ProfileArgs, of};
use crate::commands::call::{argument_types, parse_arguments, signature};
use crate::commands::call_tree::tree;
use crate::commands::environment::Environment;
use crate::commands::subnet::{Chosen, Loaded, Message, follow, load};
use crate::profile::{compare, of_executions};
use crate::progress::Progress;
use crate::replica::embedded::Embedded;
use crate::terminal::safe_line;

/// Profiles a call.
pub fn call(
    args: &ProfileArgs,
    wasm: &Path,
    replica: &Embedded,
    progress: &Progress,
) -> Result<Found> {
    let words = args.call.as_deref().unwrap_or_default();
    let method = words.first().map(String::as_str).unwrap_or_default();
    let arguments = words.get(1).map_or("()", String::as_str);
    let name = wasm.display().to_string();
    let title = format!("{method} of {name}");
    let chosen = Chosen { canister: &name, with: &args.with, state: args.state.as_deref() };
    let Loaded { subnet: mut profiled, callee, candid, .. } =
        load(chosen, &Environment::default(), replica, progress)?;
    let canister = profiled.canister(&callee).context("the canister is gone")?;
    let (argument, query) = message(canister, &candid, method, arguments)?;
    let normal = profiled.fork();
    profiled.set_profiling(true);
    let message = Message { callee, method, argument: &argument, query };
    of(profile(normal, profiled, message, &title, progress), &title)
}

/// Returns the encoded arguments, and `true` if the method is a query.
fn message(
    canister: &Canister,
    candid: &str,
    method: &str,
    arguments: &str,
) -> Result<(Vec<u8>, bool)> {
    let values = parse_arguments(arguments);
    if candid.is_empty() {
        // The types are unknown, so those of the text are used.
        let methods =
            canister.module().map(|module| &module.info().methods[..]).unwrap_or_default();
        let Some(found) = methods.iter().find(|known| known.name == method) else {
            let names: Vec<&str> = methods.iter().map(|method| method.name.as_str()).collect();
            bail!("the canister has no method {method}; it has {}", names.join(", "));
        };
        let argument = values
            .and_then(|values| Ok(values.to_bytes()?))
            .with_context(|| format!("the arguments {arguments} are not valid Candid"))?;
        return Ok((argument, found.kind != MethodKind::Update));
    }
    let (env, function) = signature(candid, method)?;
    let argument = values
        .and_then(|values| Ok(values.to_bytes_with_types(&env, &argument_types(&function))?))
        .with_context(|| format!("the arguments {arguments} do not fit {method} : {function}"))?;
    let query = [FuncMode::Query, FuncMode::CompositeQuery];
    Ok((argument, function.modes.iter().any(|mode| query.contains(mode))))
}

fn profile(
    mut normal: Subnet,
    mut profiled: Subnet,
    message: Message<'_>,
    title: &str,
    progress: &Progress,
) -> Result<Found> {
    let expected = follow(&mut normal, message)?;
    let followed = follow(&mut profiled, message)?;
    followed.note(progress);
    compare(&expected.call.executions, &followed.call.executions)?;
    let balances = |subnet: &Subnet| subnet.canisters().map(Canister::balance).collect::<Vec<_>>();
    ensure!(
        expected.call.response == followed.call.response
            && balances(&normal) == balances(&profiled),
        "the profiled call has another answer, or other balances: this is a bug"
    );
    let executions = &followed.call.executions;
    if let Err(reject) = &followed.call.response {
        let first = followed.first(message.method);
        if first.is_none_or(|first| first.execution.instructions.get() == 0) {
            return Err(anyhow!("{reject}"));
        }
        // The profile up to the failure is valid.
        progress.note(&match executions.len() {
            1 => format!("the call failed; the profile ends there: {reject}"),
            _ => format!("the call failed: {reject}"),
        });
    }
    let tree = (executions.len() > 1).then(|| tree(executions));
    let flame = Box::new(of_executions(executions)?);
    Ok(Found { title: safe_line(title).into_owned(), flame, tree })
}
