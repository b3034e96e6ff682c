//! The canister that is called, another or this one itself: its modules, its methods, and calls to it.
//!
//! The methods that the canister calls itself are the same as in `callee.wat`, with the same calls of
//! the system.

use std::cell::RefCell;

use candid::{CandidType, Principal, decode_args};
use futures_util::future::join_all;
use ic_cdk::call::{Call, CallFailed, Response};
use ic0::{
    msg_arg_data_copy, msg_arg_data_size, msg_reply, msg_reply_data_append, performance_counter,
};
use serde::Deserialize;
use stablebench_harness::trap;
use stablebench_suite_calls::work::{Reply, TAIL};
use stablebench_suite_calls::{CallOptions, CallSize, CallTo, Callee};

const PLAIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plain.wasm"));
const HEARTBEAT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/heartbeat.wasm"));
const TIMER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/timer.wasm"));

/// Cycles that a new canister has, the fee for creating it included.
const CREATION: u128 = 2_000_000_000_000;
/// Cycles of a call with cycles.
const CYCLES: u128 = 1_000_000;

/// The record that identifies a canister in the interface of the management canister.
#[derive(CandidType, Deserialize)]
struct CanisterId {
    canister_id: Principal,
}

#[derive(CandidType)]
enum InstallMode {
    #[allow(non_camel_case_types, reason = "the name of the interface")]
    install,
}

#[derive(CandidType)]
struct InstallCode<'a> {
    mode: InstallMode,
    canister_id: Principal,
    wasm_module: &'a serde_bytes::Bytes,
    arg: &'a serde_bytes::Bytes,
}

/// Creates a canister and installs the module with this task.
pub async fn install(of: Callee) -> Principal {
    let module = match of {
        Callee::Plain => PLAIN,
        Callee::Heartbeat => HEARTBEAT,
        Callee::Timer => TIMER,
    };
    let management = Principal::management_canister();
    #[derive(CandidType)]
    struct Create {}
    let create = Call::unbounded_wait(management, "create_canister").with_arg(Create {});
    let created = answer(create.with_cycles(CREATION).await);
    let Ok((CanisterId { canister_id },)) = decode_args(&created) else {
        trap(&"create_canister returned no id")
    };
    let install = InstallCode {
        mode: InstallMode::install,
        canister_id,
        wasm_module: serde_bytes::Bytes::new(module),
        arg: serde_bytes::Bytes::new(&[]),
    };
    answer(Call::unbounded_wait(management, "install_code").with_arg(install).await);
    canister_id
}

/// Makes calls and collects the responses.
pub async fn call(
    call: CallOptions,
    other: Principal,
    itself: Principal,
    argument: &[u8],
    count: u64,
    responses: &mut Vec<Response>,
) {
    let method = match (call.size, call.to) {
        (_, CallTo::Query) => "look",
        (_, CallTo::WithCycles) => "take_cycles",
        (CallSize::Argument(_), _) => "take",
        (CallSize::Reply(_), _) => "give",
    };
    let one = || {
        let call = match call.to {
            CallTo::Other | CallTo::Query => Call::unbounded_wait(other, method),
            CallTo::WithCycles => Call::unbounded_wait(other, method).with_cycles(CYCLES),
            CallTo::BestEffort => Call::bounded_wait(other, method),
            CallTo::Itself => Call::unbounded_wait(itself, method),
        };
        call.with_raw_args(argument).into_future()
    };
    match call.parallel {
        true => {
            let answers = join_all((0..count).map(|_| one())).await;
            responses.extend(answers.into_iter().map(response));
        }
        false => {
            for _ in 0..count {
                responses.push(response(one().await));
            }
        }
    }
}

/// Takes the reply out of a response.
pub fn reply(response: Response) -> Reply {
    Reply::new(response.into_bytes()).unwrap_or_else(|| trap(&"a reply is too short"))
}

/// A task whose executions are counted.
pub struct CountedTask {
    callee: Principal,
    rounds: u64,
}

impl CountedTask {
    /// Starts to count the next executions.
    pub async fn new(callee: Principal, rounds: u64) -> Self {
        answer(Call::unbounded_wait(callee, "start").with_raw_args(&rounds.to_le_bytes()).await);
        Self { callee, rounds }
    }

    /// Waits for the rounds. Returns the executions that were counted and their instructions.
    pub async fn counted(&self) -> (u64, u64) {
        let management = Principal::management_canister();
        for _ in 0..self.rounds {
            // The answer comes in a later round.
            answer(Call::unbounded_wait(management, "raw_rand").await);
        }
        let counted = answer(Call::unbounded_wait(self.callee, "counted").await);
        match counted.as_chunks::<8>().0 {
            [executions, instructions] => {
                (u64::from_le_bytes(*executions), u64::from_le_bytes(*instructions))
            }
            _ => trap(&"the canister returned no counts"),
        }
    }
}

fn response(answer: Result<Response, CallFailed>) -> Response {
    answer.unwrap_or_else(|error| trap(&error))
}

fn answer(answer: Result<Response, CallFailed>) -> Vec<u8> {
    response(answer).into_bytes()
}

/// The largest argument and the largest reply.
const BYTES: usize = 2 << 20;

thread_local! {
    static ARGUMENT: RefCell<[u8; BYTES]> = const { RefCell::new([0; BYTES]) };
    // A constant would be a part of the module.
    static ZEROS: RefCell<[u8; BYTES]> = const { RefCell::new([0; BYTES]) };
}

#[unsafe(export_name = "canister_update take")]
extern "C" fn take() {
    with_argument(|_| {});
}

#[unsafe(export_name = "canister_update give")]
extern "C" fn give() {
    with_argument(|argument| {
        let bytes = argument.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        ZEROS.with_borrow(|zeros| {
            msg_reply_data_append(zeros.get(..bytes as usize).unwrap_or_default());
        });
    });
}

/// Replies what `append` appends, and the end of a reply.
fn with_argument(append: impl FnOnce(&[u8])) {
    ARGUMENT.with_borrow_mut(|buffer| {
        let size = msg_arg_data_size();
        // No argument is larger.
        let Some(argument) = buffer.get_mut(..size) else { return };
        msg_arg_data_copy(argument, 0);
        append(argument);
        let mut tail = [0; TAIL];
        tail[..8].copy_from_slice(&performance_counter(0).to_le_bytes());
        tail[8..].copy_from_slice(&(size as u32).to_le_bytes());
        msg_reply_data_append(&tail);
        msg_reply();
    });
}
