//! Calls to other canisters: the functions `ic0.call_*`.
//!
//! ```text
//!   call_new ──→ call_data_append, call_on_cleanup, call_cycles_add, … ──→ call_perform
//!      │                                                                       │
//!      └── a request under construction, which another call_new drops          └── a request
//! ```
//!
//! A call is paid for when it is made: its transmission, the largest response, and the execution of
//! the longest callback. What the response does not need is refunded when it arrives.
//!
//! Source: `system_api/{request_in_prep,sandbox_safe_system_state}.rs` in
//! `rs/embedders/src/wasmtime_embedder` of the replica.

use super::calls::{ApiCall, contract, help, no_heap, slice};
use super::functions::SystemCall;
use super::message::{Closure, Request};
use crate::cycles;
use crate::fault::{Fault, RejectCode};
use crate::memory::Access;
use crate::rules::MAX_CALL_TIMEOUT;
use crate::units::{Bytes, Cycles};

impl ApiCall<'_> {
    /// Executes one of the functions `call_*`.
    pub(super) fn request(&mut self, call: SystemCall, args: &[u64]) -> Result<u64, Fault> {
        use SystemCall as C;
        let name = call.name();
        let mode = self.message.mode;
        let adds_cycles = matches!(call, C::CallCyclesAdd | C::CallCyclesAdd128);
        // Queries have no cycles to send.
        let refused = !mode.may_call() || (adds_cycles && mode.is_composite());
        self.refuse_if(&format!("ic0_{name}"), refused)?;
        if call == C::CallNew {
            return self.new_request(args);
        }
        let arg = |index: usize| args.get(index).copied().unwrap_or(0);
        if self.effects.request.is_none() {
            let separator = if adds_cycles { '_' } else { '.' };
            let called = format!("ic0{separator}{name} called when no call is under construction.");
            return Err(contract(called));
        }
        match call {
            C::CallDataAppend => self.append_argument(arg(0), arg(1)),
            C::CallOnCleanup => self.set_cleanup(closure(arg(0), arg(1))),
            C::CallCyclesAdd => self.attach(Cycles(arg(0).into())),
            C::CallCyclesAdd128 => {
                self.attach(Cycles(u128::from(arg(0)) << 64 | u128::from(arg(1))))
            }
            C::CallWithBestEffortResponse => self.set_timeout(arg(0)),
            C::CallPerform => self.perform(),
            _ => Err(Fault::Engine(format!("ic0.{name} makes no call"))),
        }
    }

    fn new_request(&mut self, args: &[u64]) -> Result<u64, Fault> {
        self.effects.drop_request();
        let &[callee, callee_size, method, method_size, reply, reply_env, reject, reject_env] =
            args
        else {
            return Err(Fault::Engine("ic0.call_new takes eight arguments".to_owned()));
        };
        let longest = self.message.rules.set().module.method_names;
        if method_size > longest as u64 {
            let words = format!(
                "Size of method_name {method_size} exceeds the allowed limit of {longest}."
            );
            return Err(Fault::Misuse(words, help::METHOD_NAME_TOO_LONG));
        }
        let method = self.heap("ic0.call_new method_name", method, method_size)?;
        let method = String::from_utf8_lossy(method).into_owned();
        let callee = self.principal("ic0.call_new callee_src", callee, callee_size)?;
        if self.message.quota.is_none() {
            return Err(Fault::Engine(
                "ic0.call_new is not supported by the embedded replica outside of a subnet: the \
                 canister runs by itself"
                    .to_owned(),
            ));
        }
        self.effects.request = Some(Request {
            callee,
            method,
            argument: Vec::new(),
            on_reply: closure(reply, reply_env),
            on_reject: closure(reject, reject_env),
            on_cleanup: None,
            cycles: Cycles(0),
            timeout: None,
        });
        Ok(0)
    }

    fn append_argument(&mut self, start: u64, size: u64) -> Result<u64, Fault> {
        let Some(request) = &mut self.effects.request else { return Ok(0) };
        let most = self.message.rules.set().messages.largest_request();
        let bytes = request.bytes();
        if size > most.get().saturating_sub(bytes) {
            let (callee, method) = (&request.callee, &request.method);
            let words = format!(
                "Request to {callee}:{method} has a payload size of {}, which exceeds the allowed \
                 limit of {most}.",
                bytes.saturating_add(size)
            );
            return Err(Fault::Misuse(words, help::REQUEST_TOO_LARGE));
        }
        let heap = self.heap.as_deref().ok_or_else(no_heap)?;
        let data = slice("ic0.call_data_append", start, size, heap)?;
        if let Some(pages) = self.pages {
            pages.touch(start as usize..start as usize + data.len(), Access::Read);
        }
        request.argument.extend_from_slice(data);
        Ok(0)
    }

    fn set_cleanup(&mut self, closure: Closure) -> Result<u64, Fault> {
        let Some(request) = &mut self.effects.request else { return Ok(0) };
        if request.on_cleanup.replace(closure).is_some() {
            return Err(contract(
                "ic0.call_on_cleanup can be called at most once between `ic0.call_new` and \
                 `ic0.call_perform`",
            ));
        }
        Ok(0)
    }

    fn attach(&mut self, cycles: Cycles) -> Result<u64, Fault> {
        if !self.can_spend(cycles) {
            return Err(Fault::OutOfCycles { canister: self.message.canister, missing: None });
        }
        let Some(request) = &mut self.effects.request else { return Ok(0) };
        request.cycles += cycles;
        self.effects.spent += cycles;
        Ok(0)
    }

    fn set_timeout(&mut self, seconds: u64) -> Result<u64, Fault> {
        let Some(request) = &mut self.effects.request else { return Ok(0) };
        if request.timeout.is_some() {
            return Err(contract(
                "ic0_call_with_best_effort_response failed because a timeout is already set.",
            ));
        }
        request.timeout = Some((seconds as u32).min(MAX_CALL_TIMEOUT));
        Ok(0)
    }

    /// Makes the call, or drops it and returns a reject code if a queue is full or the canister
    /// cannot pay for it.
    fn perform(&mut self) -> Result<u64, Fault> {
        let message = self.message;
        let Some(request) = self.effects.request.take() else { return Ok(0) };
        let fee = cycles::request(message.rules, Bytes(request.bytes()), message.wasm64);
        let allowed = message
            .quota
            .as_ref()
            .is_some_and(|quota| quota.allows(&request.callee, &self.effects.requests));
        let sent = self.effects.sent;
        self.effects.sent += request.memory(message.rules);
        let grows = !message.mode.may_freeze() || self.frozen() <= self.balance();
        if !allowed || !grows || !self.can_spend(fee) {
            self.effects.sent = sent;
            self.effects.spent = self.effects.spent - request.cycles;
            return Ok(RejectCode::SysTransient as u64);
        }
        self.effects.spent += fee;
        self.effects.requests.push(request);
        Ok(0)
    }

    /// Returns true if the canister can spend these cycles without being frozen.
    fn can_spend(&self, cycles: Cycles) -> bool {
        cycles.get() <= self.balance().get().saturating_sub(self.frozen().get())
    }
}

fn closure(function: u64, environment: u64) -> Closure {
    // The parameter of the function has 32 bits.
    Closure { function: function as u32, environment }
}
