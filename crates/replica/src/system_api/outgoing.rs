//! Calls to other canisters: `call_new` and what follows it.
//!
//! The embedded replica runs one canister. Where the real one refuses such a call, for the mode
//! of the message or for its arguments, this does so in the same words. Where the real one would
//! go on, the message fails, and the text says that the embedded replica cannot.
//!
//! Source: `rs/embedders/src/wasmtime_embedder/system_api.rs` of the replica and
//! `system_api/request_in_prep.rs` beside it.

use ic_principal::Principal;

use super::calls::{Call, contract};
use super::message::Mode;
use super::names::SystemCall;
use crate::fault::Fault;

impl Call<'_> {
    /// Why the message fails at this call.
    pub(super) fn call_to_another(&self, call: SystemCall, args: &[u64]) -> Fault {
        let name = call.name();
        let adds_cycles = matches!(call, SystemCall::CallCyclesAdd | SystemCall::CallCyclesAdd128);
        let allowed = match self.message.mode {
            Mode::Update => true,
            // A query has no cycles to give away.
            Mode::CompositeQuery => !adds_cycles,
            Mode::Start
            | Mode::Init
            | Mode::PreUpgrade
            | Mode::ReplicatedQuery
            | Mode::Query
            | Mode::InspectMessage => false,
        };
        if !allowed {
            return self.wrong_mode(&format!("ic0_{name}"));
        }
        if call != SystemCall::CallNew {
            // No message comes past `call_new`.
            let name = format!("ic0{}{name}", if adds_cycles { '_' } else { '.' });
            return contract(format!("{name} called when no call is under construction."));
        }
        self.check_callee(args).err().unwrap_or_else(|| {
            Fault::Engine(
                "ic0.call_new is not supported by the embedded replica: it runs one canister, \
                 without calls to others"
                    .to_owned(),
            )
        })
    }

    /// Checks what `call_new` begins a call with: the other canister and its method.
    fn check_callee(&self, args: &[u64]) -> Result<(), Fault> {
        let &[callee, callee_size, method, method_size, ..] = args else {
            return Err(Fault::Engine("ic0.call_new takes eight arguments".to_owned()));
        };
        let longest = self.message.rules.set().module.method_names;
        if method_size > longest as u64 {
            return Err(contract(format!(
                "Size of method_name {method_size} exceeds the allowed limit of {longest}."
            )));
        }
        self.heap("ic0.call_new method_name", method, method_size)?;
        let callee = self.heap("ic0.call_new callee_src", callee, callee_size)?;
        Principal::try_from_slice(callee).map(drop).map_err(|_| Fault::InvalidPrincipal)
    }
}
