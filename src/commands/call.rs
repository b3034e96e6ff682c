//! `stablebench call`: one message to a canister on the embedded replica.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use candid::types::{FuncMode, Type, TypeEnv};
use candid::{IDLArgs, types::Function};
use candid_parser::utils::CandidSource;
use stablebench_replica::{Canister, Execution, Principal, Rules, SystemCalls};

use super::Output;
use super::replica::embedded;
use crate::canisters;
use crate::cli::CallArgs;
use crate::progress::Progress;
use crate::replica::PageCosts;
use crate::replica::embedded::{Embedded, cycles, inside};
use crate::report::number::Grouped;

/// Calls a method and prints the reply and what it cost.
pub fn call(args: &CallArgs, output: &Output) -> Result<()> {
    let (replica, _) = embedded(&args.replica, &output.progress)?;
    let (mut canister, candid) =
        prepare(&args.canister, args.state.as_deref(), &replica, &output.progress)?;
    let (env, function) = signature(&candid, &args.method)?;
    let argument = candid_parser::parse_idl_args(&args.arguments)
        .and_then(|values| Ok(values.to_bytes_with_types(&env, &argument_types(&function))?))
        .with_context(|| {
            format!("the arguments {} do not fit {} : {function}", args.arguments, args.method)
        })?;
    canister.report_calls(true);
    let query = function.modes.contains(&FuncMode::Query);
    let caller = Principal::anonymous();
    let execution = if query {
        canister.query(caller, &args.method, &argument)?
    } else {
        canister.update(caller, &args.method, &argument)?
    };
    let costs = describe(&execution, replica.inner().rules());
    let reply = execution.outcome.map_err(|reject| anyhow!("{reject}\n{costs}"))?;
    if let Some(path) = &args.save {
        canister
            .save(path)
            .with_context(|| format!("cannot save the canister to {}", path.display()))?;
    }
    let values = IDLArgs::from_bytes_with_types(&reply, &env, &function.rets)
        .context("the reply is not of the method's type")?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{values}")?;
    writeln!(out, "{costs}")?;
    Ok(())
}

pub fn argument_types(function: &Function) -> Vec<Type> {
    function.args.clone()
}

/// The canister to call, and its interface.
pub fn prepare(
    name: &str,
    state: Option<&Path>,
    replica: &Embedded,
    progress: &Progress,
) -> Result<(Canister, String)> {
    if let Some(path) = state {
        let canister = replica
            .inner()
            .load(path)
            .with_context(|| format!("cannot load a canister from {}", path.display()))?;
        let wasm = canister.module().map(|module| module.wasm().into_owned()).unwrap_or_default();
        let candid = canisters::candid_of(&wasm).unwrap_or_default();
        return Ok((canister, candid));
    }
    let built = canisters::find(name, progress)?;
    let canister = replica.installed(&built.wasm)?;
    Ok((canister, built.candid))
}

/// The type of a method.
pub fn signature(candid: &str, method: &str) -> Result<(TypeEnv, Function)> {
    if candid.is_empty() {
        bail!("the module has no candid:service metadata, so {method} cannot be called in Candid");
    }
    let (env, actor) = CandidSource::Text(candid)
        .load()
        .context("the canister's interface is not valid Candid")?;
    let actor = actor.ok_or_else(|| anyhow!("the canister's interface names no service"))?;
    let function = env.get_method(&actor, method).map_err(|_| {
        let methods: Vec<String> = env
            .as_service(&actor)
            .map(|methods| methods.iter().map(|(name, _)| name.clone()).collect())
            .unwrap_or_default();
        anyhow!("the canister has no method {method}; it has {}", methods.join(", "))
    })?;
    Ok((env.clone(), function.clone()))
}

/// Describes the part of the charge that is for pages.
fn pages(pages: &PageCosts) -> String {
    let PageCosts { heap, stable, touched } = pages;
    let mut text = format!(
        "of the charge, heap pages {} and stable pages {}\n",
        Grouped(*heap),
        Grouped(*stable)
    );
    if let Some(touched) = touched {
        text += &format!(
            "wasm pages: heap {} touched, {} written; stable memory {} touched, {} written\n",
            Grouped(touched.heap),
            Grouped(touched.heap_written),
            Grouped(touched.stable),
            Grouped(touched.stable_written),
        );
    }
    text
}

fn describe(execution: &Execution, rules: Rules) -> String {
    let inside = inside(execution);
    let memory = execution.memory;
    let mut text = format!(
        "instructions {}, charge {}, cycles {}, rules {rules}\n\
         {}4 KiB pages: heap {} changed of {} written, stable memory {} accessed, {} written\n\
         heap {} and stable memory {} wasm pages",
        Grouped(inside.instructions),
        Grouped(inside.charge),
        Grouped(cycles(execution)),
        inside.pages.as_ref().map(pages).unwrap_or_default(),
        Grouped(inside.heap_pages_changed),
        Grouped(memory.heap_written.get()),
        Grouped(inside.stable_pages_accessed),
        Grouped(inside.stable_pages_written),
        Grouped(memory.heap.get()),
        Grouped(memory.stable.get()),
    );
    for (name, count) in execution.system_calls.iter().flat_map(SystemCalls::iter) {
        text += &format!("\n{name:<22} {:>11} calls", Grouped(count.calls).to_string());
        if count.bytes.get() > 0 {
            text += &format!(" {:>15} bytes", Grouped(count.bytes.get()).to_string());
        }
    }
    text
}
