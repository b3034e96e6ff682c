//! `stablebench call`: one message to a canister on the embedded replica, and all that follow from it.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use candid::types::{FuncMode, Type, TypeEnv, TypeInner};
use candid::{IDLArgs, types::Function};
use candid_parser::token::{Token, Tokenizer};
use candid_parser::utils::CandidSource;
use clap::Args;
use stablebench_replica::subnet::Call;
use stablebench_replica::{Execution, Rules, SystemCalls, files};

use super::call_tree::tree;
use super::environment::{Environment, EnvironmentArgs};
use super::lock::lock;
use super::replica::embedded;
use super::subnet::{Chosen, Loaded, Message, follow, load, save};
use crate::progress::Output;
use crate::replica::PageCosts;
use crate::replica::decoding::decode_values;
use crate::replica::executed::{cycles, inside};
use crate::replica::options::ReplicaArgs;
use crate::replica::proposed::heap_warning;
use crate::report::number::Grouped;
use crate::terminal::safe;

#[derive(Debug, Args)]
pub struct CallArgs {
    /// The name of a canister as of `stablebench module`, or the path of a wasm file; with --state
    /// also the id of a saved canister.
    pub canister: String,
    /// The method.
    pub method: String,
    /// The arguments as Candid text.
    #[arg(default_value = "()")]
    pub arguments: String,
    /// Another canister on the same subnet, by name or path; may be repeated. Their ids are printed.
    #[arg(long, value_name = "CANISTER")]
    pub with: Vec<String>,
    /// Continue with the canisters that were saved in this file.
    #[arg(long)]
    pub state: Option<PathBuf>,
    /// Save all canisters of the subnet to this file afterwards.
    #[arg(long)]
    pub save: Option<PathBuf>,
    #[command(flatten)]
    pub environment: EnvironmentArgs,
    #[command(flatten)]
    pub replica: ReplicaArgs,
}

/// The maximum nesting of types and values; each level takes up to 1 KiB of stack.
const MAX_DEPTH: usize = 3_000;

/// Calls a method and prints the reply and its cost.
pub fn call(args: &CallArgs, output: &Output) -> Result<()> {
    // The file is checked before anything is executed.
    let _lock = match &args.save {
        Some(path) => {
            files::replaceable(path).with_context(|| not_saved(path))?;
            Some(lock(path, "--save")?)
        }
        None => None,
    };
    let environment = Environment::read(&args.environment)?;
    let (replica, _) = embedded(&args.replica, &output.progress)?;
    let chosen =
        Chosen { canister: &args.canister, with: &args.with, state: args.state.as_deref() };
    let Loaded { mut subnet, listed, callee, candid } =
        load(chosen, &environment, &replica, &output.progress)?;
    let (env, function) = signature(&candid, &args.method)?;
    let argument = parse_arguments(&args.arguments)
        .and_then(|values| Ok(values.to_bytes_with_types(&env, &argument_types(&function))?))
        .with_context(|| {
            format!("the arguments {} do not fit {} : {function}", args.arguments, args.method)
        })?;
    if let Some(canister) = subnet.canister_mut(&callee) {
        canister.report_calls(true);
    }
    let query = is_query(&function);
    let message = Message { callee, method: &args.method, argument: &argument, query };
    let followed = follow(&mut subnet, message)?;
    followed.note(&output.progress);
    let rules = replica.inner().rules();
    let first = followed.first(&args.method);
    let mut costs = first.map_or_else(String::new, |it| describe(&it.execution, rules));
    let Call { response, executions, .. } = followed.call;
    for executed in &executions {
        let name = executed.function.to_string();
        if let Some(warning) = heap_warning(&name, &inside(&executed.execution)) {
            output.progress.note(&warning);
        }
    }
    if executions.len() > 1 {
        costs += &format!("\n{}", tree(&executions).trim_end());
    }
    let reply = response.map_err(|reject| anyhow!("{reject}\n{costs}"))?;
    if let Some(path) = &args.save {
        let step = output.progress.spinner(&format!("saving {}", path.display()));
        save(&mut subnet, &listed, path).with_context(|| not_saved(path))?;
        step.done("");
    }
    let values = decode_values(&reply, &env, &function.rets)
        .context("the reply is not of the method's type")?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", safe(&values.to_string()))?;
    writeln!(out, "{costs}")?;
    Ok(())
}

fn not_saved(path: &Path) -> String {
    format!("cannot save the canisters to {}", path.display())
}

/// Parses arguments in Candid text.
pub fn parse_arguments(text: &str) -> candid_parser::Result<IDLArgs> {
    check_nesting(text).map_err(candid_parser::Error::msg)?;
    candid_parser::parse_idl_args(text)
}

/// Refuses Candid whose types or values can be nested so deeply, by name too, that traversing them
/// would overflow the stack.
fn check_nesting(text: &str) -> Result<(), String> {
    // The levels that an unfinished field or parameter has opened itself, by bracket.
    let mut open: Vec<usize> = vec![0];
    // The depth of the current definition here, and its maximum.
    let (mut depth, mut deepest) = (0_usize, 0);
    // The depth of all definitions: each can be nested in the one before.
    let mut all = 0;
    for (_, token, _) in Tokenizer::new(text).map_while(Result::ok) {
        match token {
            Token::LBrace | Token::LParen => {
                depth += 1;
                open.push(0);
            }
            Token::RBrace | Token::RParen if open.len() > 1 => {
                depth -= 1 + open.pop().unwrap_or_default();
            }
            Token::Semi | Token::Comma => {
                depth -= open.last_mut().map(std::mem::take).unwrap_or_default();
            }
            Token::Opt | Token::Vec => {
                depth += 1;
                open.last_mut().into_iter().for_each(|last| *last += 1);
            }
            Token::Type => all += 1 + std::mem::take(&mut deepest),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    match all + deepest {
        deep if deep > MAX_DEPTH => Err(format!(
            "its types or values can be nested {deep} levels deep; the maximum is {MAX_DEPTH}"
        )),
        _ => Ok(()),
    }
}

/// Returns `true` if a method is called as a query.
pub fn is_query(function: &Function) -> bool {
    let queries = [FuncMode::Query, FuncMode::CompositeQuery];
    function.modes.iter().any(|mode| queries.contains(mode))
}

/// Encodes the arguments of an installation, in Candid text.
pub fn constructor_arguments(candid: &str, arguments: &str) -> Result<Vec<u8>> {
    let (env, actor) = service(candid)?;
    let types = match env.trace_type(&actor)?.as_ref() {
        TypeInner::Class(arguments, _) => arguments.clone(),
        _ => Vec::new(),
    };
    parse_arguments(arguments)
        .and_then(|values| Ok(values.to_bytes_with_types(&env, &types)?))
        .with_context(|| format!("the arguments {arguments} do not fit the canister's constructor"))
}

pub fn argument_types(function: &Function) -> Vec<Type> {
    function.args.clone()
}

/// Returns the type of a method.
pub fn signature(candid: &str, method: &str) -> Result<(TypeEnv, Function)> {
    if candid.is_empty() {
        bail!("the module has no candid:service metadata, so {method} cannot be called in Candid");
    }
    let (env, actor) = service(candid)?;
    let function = env.get_method(&actor, method).map_err(|_| {
        let methods: Vec<String> = env
            .as_service(&actor)
            .map(|methods| methods.iter().map(|(name, _)| name.clone()).collect())
            .unwrap_or_default();
        anyhow!("the canister has no method {method}; it has {}", methods.join(", "))
    })?;
    Ok((env.clone(), function.clone()))
}

/// Returns the types of an interface, and the type of its service.
fn service(candid: &str) -> Result<(TypeEnv, Type)> {
    check_nesting(candid)
        .map_err(|error| anyhow!("the canister's interface is refused: {error}"))?;
    let (env, actor) = CandidSource::Text(candid)
        .load()
        .context("the canister's interface is not valid Candid")?;
    let actor = actor.ok_or_else(|| anyhow!("the canister's interface names no service"))?;
    Ok((env, actor))
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
         {}4 KiB pages: heap {} changed, stable memory {} accessed, {} written\n\
         heap {} and stable memory {} wasm pages",
        Grouped(inside.instructions),
        Grouped(inside.charge),
        Grouped(cycles(execution)),
        inside.pages.as_ref().map(pages).unwrap_or_default(),
        Grouped(inside.heap_pages_changed),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(ty: &str) -> String {
        format!("service : {{ f : ({ty}) -> ({ty}) query }}")
    }

    #[test]
    fn deep_interfaces_and_arguments_are_refused() {
        let records = |depth: usize| "record { ".repeat(depth) + "nat" + &"}".repeat(depth);
        let options = |depth: usize| "opt vec ".repeat(depth) + "nat";
        for (fits, deep) in [(records(1_000), records(100_000)), (options(700), options(100_000))] {
            signature(&interface(&fits), "f").unwrap();
            let error = signature(&interface(&deep), "f").unwrap_err().to_string();
            assert!(error.contains("levels deep"), "{error}");
        }
        // Sequences are not nested.
        let wide = "record { a : opt nat; b : vec opt nat; c : func (opt nat, vec nat) -> () }; ";
        signature(&interface(&format!("record {{ {} }}", wide.repeat(500))), "f").unwrap();
        let named = |count: usize| -> String {
            let types = (0..count).map(|at| format!("type t{at} = opt t{};", at + 1));
            types.collect::<String>() + &format!("type t{count} = nat;") + &interface("t0")
        };
        let (env, function) = signature(&named(1_200), "f").unwrap();
        let values = parse_arguments("(opt opt 1)").unwrap();
        assert!(values.to_bytes_with_types(&env, &function.args).is_err());
        assert!(signature(&named(100_000), "f").is_err());
        assert!(parse_arguments(&("opt ".repeat(100_000) + "1")).is_err());
        assert!(parse_arguments("(vec { opt 1; opt 2 }, \"{{{\")").is_ok());
    }
}
