//! A call of any canister, profiled with everything that it causes.
//!
//! The call is executed on two equal subnets, of which one profiles. Both must give the same answer
//! and the same executions at the same cost.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use stablebench_replica::Canister;
use stablebench_replica::subnet::Subnet;

use super::{Found, ProfileArgs, of};
use crate::commands::call::{note, tree};
use crate::commands::environment::Environment;
use crate::commands::interface::Argument;
use crate::commands::names::Names;
use crate::commands::subnet::{Chosen, Loaded, Message, check_size, follow, load};
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
    let name = wasm.display().to_string();
    let chosen = Chosen {
        canister: &name,
        with: &args.with,
        state: args.state.as_deref(),
        install: &args.install,
    };
    let Loaded { subnet: mut profiled, callee, interface, names, .. } =
        load(chosen, &Environment::default(), replica, progress)?;
    let canister = profiled.canister(&callee).context("the canister is gone")?;
    let module = canister.module().context("the canister has no module")?;
    let Some(method) = words.first() else {
        bail!("name a method of the canister: --call METHOD; {}", interface.methods("", module));
    };
    let title = format!("{method} of {name}");
    let method = interface.method(method, module)?;
    let mut argument = words.get(1).cloned().map(Argument::Text);
    argument.iter_mut().try_for_each(|argument| argument.fill(&names))?;
    let argument = method.encode(argument.as_ref())?;
    check_size(&argument, module.rules(), &method.name)?;
    let normal = profiled.fork();
    profiled.set_profiling(true);
    let message =
        Message { callee, method: &method.name, argument: &argument, query: method.query };
    let shown = Shown { names: &names, output: args.show_canister_output, progress };
    of(profile(normal, profiled, message, &title, shown), &title)
}

/// Options for showing the output of canisters.
#[derive(Clone, Copy)]
struct Shown<'a> {
    names: &'a Names,
    output: bool,
    progress: &'a Progress,
}

fn profile(
    mut normal: Subnet,
    mut profiled: Subnet,
    message: Message<'_>,
    title: &str,
    Shown { names, output, progress }: Shown<'_>,
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
    note(executions, output || followed.call.response.is_err(), names, progress);
    let mut failed = None;
    if let Err(reject) = &followed.call.response {
        let first = followed.first(message.method);
        if first.is_none_or(|first| first.execution.instructions.get() == 0) {
            return Err(anyhow!("{reject}"));
        }
        // The profile up to the failure is valid.
        failed = Some(match executions.len() {
            1 => format!("the call failed; the profile ends there: {reject}"),
            _ => format!("the call failed: {reject}"),
        });
    }
    let tree = (executions.len() > 1).then(|| tree(executions));
    let flame = Box::new(of_executions(executions)?);
    Ok(Found { title: safe_line(title).into_owned(), flame, tree, failed })
}
