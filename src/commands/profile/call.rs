//! A call of any canister, profiled as a whole.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use candid::types::FuncMode;
use stablebench_replica::{Canister, MethodKind, Principal, Span};

use super::{Found, ProfileArgs, of};
use crate::commands::call::{argument_types, parse_arguments, prepare, signature};
use crate::commands::environment::Environment;
use crate::profile::{Flame, check};
use crate::progress::Progress;
use crate::replica::embedded::Embedded;

/// Profiles a call. It is executed in both forms of the module.
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
    let (state, environment) = (args.state.as_deref(), Environment::default());
    let (canister, candid) = prepare(&name, state, &environment, replica, progress)?;
    let (argument, query) = message(&canister, &candid, method, arguments)?;
    of(profile(canister, method, &argument, query, &title, progress), &title)
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
    mut canister: Canister,
    method: &str,
    argument: &[u8],
    query: bool,
    title: &str,
    progress: &Progress,
) -> Result<Found> {
    let (caller, span) = (Principal::anonymous(), Span::Message);
    let mut twin = canister.fork();
    let (normal, (execution, profile)) = match query {
        true => (
            canister.query(caller, method, argument)?,
            twin.profile_query(caller, method, argument, span)?,
        ),
        false => (
            canister.update(caller, method, argument)?,
            twin.profile_update(caller, method, argument, span)?,
        ),
    };
    check(&normal, &execution, &profile, span)?;
    let mut flame = Flame::default();
    flame.add(&profile)?;
    if let Err(reject) = &execution.outcome {
        if profile.nodes.is_empty() {
            return Err(anyhow!("{reject}"));
        }
        // The profile up to the failure is valid.
        progress.note(&format!("the call failed; the profile ends there: {reject}"));
    }
    Ok(Found { title: title.to_owned(), flame })
}
