//! The System API: calls from a canister to the replica. A rewritten module is linked with them here.
//!
//! | module | |
//! |---|---|
//! | `functions` | the functions: their names, types and prices |
//! | `host` | the running message in the engine |
//! | `calls`, `call_functions` | implementations; those of `ic0.call_*` |
//! | `message` | input and effects of a message, and its log |

mod call_functions;
mod calls;
pub mod functions;
pub mod host;
pub mod message;

use wasmtime::{Caller, FuncType, Linker, Val, ValType};

use crate::execution::{CallCount, Reading, Readings};
use crate::fault::{Fault, Trap};
use crate::instrument::HOST;
use crate::instrument::stable::failure;
use crate::profile::Recorder;
use crate::rules::{MAX_READINGS, Rules, STABLE_GROW_COST};
use crate::units::{Bytes, Cycles, Instructions, WASM_PAGE, WasmPages};

use calls::ApiCall;
use functions::{AddressWidth, MODULE, SystemCall, price};
use host::{Host, Parts, page_charges};
use message::{Halt, Message};

/// The caller of a host function.
type Context<'a> = Caller<'a, Host>;

fn parts(caller: &Context<'_>) -> Result<Parts, Fault> {
    caller.data().parts.ok_or_else(|| Fault::Engine("the module is not ready".to_owned()))
}

fn counter(caller: &mut Context<'_>, parts: &Parts) -> Result<i64, Fault> {
    parts
        .counter
        .get(&mut *caller)
        .i64()
        .ok_or_else(|| Fault::Engine("the counter is not an i64".to_owned()))
}

fn set_counter(caller: &mut Context<'_>, parts: &Parts, value: i64) -> Result<(), Fault> {
    parts
        .counter
        .set(caller, Val::I64(value))
        .map_err(|error| Fault::Engine(format!("cannot set the counter: {error:#}")))
}

/// Subtracts charges for touched heap pages from the counter, and returns it.
fn settled(caller: &mut Context<'_>, parts: &Parts) -> Result<i64, Fault> {
    let left = counter(caller, parts)?;
    match caller.data().pages.as_ref().map_or(0, |pages| pages.take_charges()) {
        0 => Ok(left),
        charged => {
            let left = left.saturating_sub(charged);
            set_counter(caller, parts, left)?;
            Ok(left)
        }
    }
}

/// Continues the slice or starts the next one if the counter is negative.
fn next_slice_if_used_up(caller: &mut Context<'_>, parts: &Parts) -> Result<i64, Fault> {
    let mut left = settled(caller, parts)?;
    if left < 0 {
        let before = left;
        if caller.data().message.halt.as_ref().is_some_and(Halt::is_requested) {
            return Err(Fault::Engine("the embedded replica was stopped meanwhile".to_owned()));
        }
        left = caller.data_mut().slices.next(left)?;
        set_counter(caller, parts, left)?;
        if let Some(tree) = caller.data().recorder.as_ref().map(Recorder::tree) {
            tree.counter_moved(&mut *caller, before, left)
                .map_err(|error| Fault::Engine(format!("cannot set the mark: {error:#}")))?;
        }
    }
    Ok(left)
}

fn charge(caller: &mut Context<'_>, parts: &Parts, fee: u64) -> Result<i64, Fault> {
    let left = next_slice_if_used_up(caller, parts)?;
    let fee = i64::try_from(fee).unwrap_or(i64::MAX);
    set_counter(caller, parts, left.saturating_sub(fee))?;
    next_slice_if_used_up(caller, parts)
}

/// Defines everything that a rewritten module with that address width imports.
///
/// # Errors
///
/// Never, unless a name is defined twice.
pub fn link(linker: &mut Linker<Host>, width: AddressWidth) -> wasmtime::Result<()> {
    for &call in SystemCall::ALL {
        let signature = call.signature();
        if signature.only_32_bit && width == AddressWidth::Bits64 {
            continue;
        }
        let types = |types: &[functions::Type]| -> Vec<ValType> {
            types
                .iter()
                .map(|ty| match ty.val_type(width) {
                    wasmparser::ValType::I64 => ValType::I64,
                    _ => ValType::I32,
                })
                .collect()
        };
        let (params, results) = (types(signature.params), types(signature.results));
        let returned = results.first().cloned();
        let ty = FuncType::new(linker.engine(), params, results);
        linker.func_new(MODULE, call.name(), ty, move |mut caller, params, results| {
            let result = system_call(&mut caller, call, params)?;
            if let Some(slot) = results.first_mut() {
                *slot = match &returned {
                    Some(ValType::I64) => Val::I64(result.cast_signed()),
                    _ => Val::I32((result as u32).cast_signed()),
                };
            }
            Ok(())
        })?;
    }
    linker.func_wrap(HOST, "out_of_instructions", |mut caller: Context<'_>| {
        let parts = parts(&caller)?;
        next_slice_if_used_up(&mut caller, &parts)?;
        wasmtime::Result::Ok(())
    })?;
    match width {
        AddressWidth::Bits32 => linker.func_wrap(
            HOST,
            "heap_grown",
            |mut caller: Context<'_>, before: i32, delta: i32| {
                if before != -1 {
                    let delta = u64::from(delta.cast_unsigned());
                    let pages = u64::from(before.cast_unsigned()) + delta;
                    heap_grown(&mut caller, pages, delta)?;
                }
                wasmtime::Result::Ok(before)
            },
        )?,
        AddressWidth::Bits64 => linker.func_wrap(
            HOST,
            "heap_grown",
            |mut caller: Context<'_>, before: i64, delta: i64| {
                if before != -1 {
                    let delta = delta.cast_unsigned();
                    let pages = before.cast_unsigned().saturating_add(delta);
                    heap_grown(&mut caller, pages, delta)?;
                }
                wasmtime::Result::Ok(before)
            },
        )?,
    };
    linker.func_wrap(HOST, "may_grow_stable", may_grow_stable)?;
    linker.func_wrap(HOST, "fail", |caller: Context<'_>, code: i32| {
        wasmtime::Result::<()>::Err(failed(caller.data().message.rules, code).into())
    })?;
    Ok(())
}

fn system_call(
    caller: &mut Context<'_>,
    system_call: SystemCall,
    params: &[Val],
) -> Result<u64, Fault> {
    let mut args = [0; 8];
    for (arg, param) in args.iter_mut().zip(params) {
        *arg = match param {
            Val::I32(value) => u64::from(value.cast_unsigned()),
            Val::I64(value) => value.cast_unsigned(),
            _ => 0,
        };
    }
    let args = args.get(..params.len()).unwrap_or(&args);
    let parts = parts(caller)?;
    if let Some(calls) = &mut caller.data_mut().calls {
        calls.add(system_call, CallCount { calls: 1, bytes: Bytes(price(system_call).size(args)) });
    }
    let logged =
        with_call(caller, &parts, Instructions(0), |call| call.log_charge(system_call, args));
    let fee = price(system_call).of(args).saturating_add(logged);
    let left = charge(caller, &parts, fee)?;
    let used = caller.data().slices.used(left);
    if system_call == SystemCall::PerformanceCounter {
        note_reading(caller, &parts, used)?;
    }
    if system_call == SystemCall::PerformanceCounter
        && caller.data().recorder.as_ref().is_some_and(|recorder| recorder.is_bound(used))
    {
        Recorder::note(&mut *caller, |host: &mut Host| host.recorder.as_mut(), used, left);
    }
    with_call(caller, &parts, used, |call| call.execute(system_call, args))
}

fn with_call<T>(
    caller: &mut Context<'_>,
    parts: &Parts,
    used: Instructions,
    work: impl FnOnce(&mut ApiCall<'_>) -> T,
) -> T {
    let stable = Bytes(parts.stable.data_size(&*caller) as u64);
    let (heap, host) = parts.heap.data_and_store_mut(caller);
    let Host { message, effects, has_heap, pages, .. } = host;
    let pages = pages.as_deref();
    work(&mut ApiCall { message, effects, heap: has_heap.then_some(heap), stable, used, pages })
}

/// Records the page charges when the canister reads its counter, and divides the message if it is
/// to be divided there.
fn note_reading(caller: &mut Context<'_>, parts: &Parts, used: Instructions) -> Result<(), Fault> {
    let host = caller.data();
    let Some(number) = host.readings.as_ref().map(Vec::len) else {
        return Ok(());
    };
    let Message { readings, mode, .. } = &host.message;
    if *readings == Readings::DividedAt(number) && !host.divided && !mode.keeps_changes() {
        host::forget(&mut *caller, parts)?;
        caller.data_mut().divided = true;
    }
    let pages = page_charges(&mut *caller, parts);
    if let Some(readings) = &mut caller.data_mut().readings
        && readings.len() < MAX_READINGS
    {
        readings.push(Reading { used, pages });
    }
    Ok(())
}

fn heap_grown(caller: &mut Context<'_>, pages: u64, delta: u64) -> Result<(), Fault> {
    // The heap has grown already.
    check_affordable(caller, Bytes(0), WasmPages(delta).into())?;
    let message = &caller.data().message;
    let (peak, limit) = (Bytes(pages.saturating_mul(WASM_PAGE)), message.heap_limit);
    // 0 means no limit.
    if message.mode.limits_heap() && limit != Bytes(0) && peak > limit {
        return Err(Fault::WasmMemoryLimit { peak, limit });
    }
    Ok(())
}

fn may_grow_stable(
    mut caller: Context<'_>,
    before: i64,
    delta: i64,
    api: i32,
) -> wasmtime::Result<i32> {
    let parts = parts(&caller)?;
    charge(&mut caller, &parts, STABLE_GROW_COST.get())?;
    let after = before.cast_unsigned().saturating_add(delta.cast_unsigned());
    let memory = &caller.data().message.rules.set().memory;
    let mut limit = memory.stable.get();
    if api == crate::instrument::stable::Api::Stable32.number() {
        limit = memory.stable32.get();
        if before.cast_unsigned() > limit {
            return Err(Fault::from(Trap::StableTooBig).into());
        }
    }
    let grows = after <= limit;
    if grows {
        let more = WasmPages(delta.cast_unsigned()).into();
        check_affordable(&mut caller, more, more)?;
    }
    Ok(i32::from(grows))
}

/// Returns an error if the canister cannot pay for its memory with `more` bytes, or reserve cycles
/// for them. It grows by `grown` bytes in total.
fn check_affordable(caller: &mut Context<'_>, more: Bytes, grown: Bytes) -> Result<(), Fault> {
    let Message { mode, reserve, .. } = &caller.data().message;
    if grown == Bytes(0) || !(mode.may_freeze() || reserve.is_some()) {
        return Ok(());
    }
    let parts = parts(caller)?;
    with_call(caller, &parts, Instructions(0), |call| {
        let balance = call.balance();
        let too_little = |needed: Cycles| {
            let missing = call.message.by_controller().then(|| needed - balance);
            Fault::MemoryGrow { bytes: grown, missing }
        };
        if call.message.mode.may_freeze() {
            call.stable += more;
            let frozen = call.frozen();
            if frozen > balance {
                return Err(too_little(frozen));
            }
        }
        let Some(reserve) = &call.message.reserve else { return Ok(()) };
        let cycles = reserve.growth(call.message.rules, call.effects.grown, grown)?;
        if cycles > balance {
            return Err(too_little(cycles));
        }
        call.effects.grown += grown;
        call.effects.reserved += cycles;
        Ok(())
    })
}

fn failed(rules: Rules, code: i32) -> Fault {
    let limits = &rules.set().memory;
    let kib = |pages: crate::units::OsPages| pages.get() * crate::units::OS_PAGE / 1_024;
    let (update, query, install) =
        (kib(limits.stable_update), kib(limits.stable_query), kib(limits.stable_install));
    match code {
        failure::HEAP_OUT_OF_BOUNDS => Trap::HeapOutOfBounds.into(),
        failure::STABLE_OUT_OF_BOUNDS => Trap::StableOutOfBounds.into(),
        failure::STABLE_TOO_BIG => Trap::StableTooBig.into(),
        failure::ACCESS_LIMIT => Fault::StablePages(format!(
            "Exceeded the limit for the number of accessed pages in the stable memory in a single \
             message execution: limit {update} KB for regular messages and {query} KB for queries."
        )),
        failure::WRITE_LIMIT => Fault::StablePages(format!(
            "Exceeded the limit for the number of modified pages in the stable memory in a single \
             execution: limit {update} KB for regular messages, {install} KB for upgrade messages \
             and {query} KB for queries."
        )),
        other => Fault::Engine(format!("unknown failure {other}")),
    }
}
