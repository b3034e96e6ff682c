//! Messages to a canister by itself.
//!
//! It pays for updates with what it has and never freezes, has no calls, and its time advances by a
//! nanosecond with each message.

use ic_principal::Principal;

use super::{Canister, now};
use crate::cycles;
use crate::dispatch::{
    self, Called, Invocation, Place, composite_query_in_replicated_mode, exported,
    reject_large_argument,
};
use crate::execution::Execution;
use crate::fault::{ErrorCode, Fault, HostError, Reject};
use crate::instance::Entry;
use crate::module::Module;
use crate::profile::{Profile, ProfileError, Span};
use crate::run::Run;
use crate::system_api::message::{Message, Mode};
use crate::units::{Cycles, Instructions};
use crate::validate::{EntryPoint, MethodKind};

/// The options of a query.
#[derive(Clone, Copy, Debug, Default)]
struct Query {
    /// The heap is copied before the query runs, because it writes to most pages.
    copies_ahead: bool,
    /// The part that is profiled.
    span: Option<Span>,
}

/// An execution, and its profile if that was requested.
type Profiled = (Execution, Option<Result<Profile, ProfileError>>);

/// A canister by itself, which executes an update.
struct Alone<'a> {
    canister: &'a mut Canister,
    caller: Principal,
    argument: &'a [u8],
    induction: Cycles,
    /// The most that the message may cost. It is kept back while the message runs.
    reserved: Cycles,
    span: Option<Span>,
    profile: Option<Result<Profile, ProfileError>>,
}

impl Alone<'_> {
    /// The cost of an execution.
    fn cost(&self, charge: Instructions) -> Cycles {
        let wasm64 = self.canister.module().is_some_and(Module::is_64_bit);
        self.induction + cycles::execution(self.canister.rules(), charge, wasm64)
    }
}

impl Place for Alone<'_> {
    fn canister(&self) -> &Canister {
        self.canister
    }

    fn prepay(&mut self, mode: Mode) -> Result<(), Reject> {
        self.reserved = self.cost(mode.instructions(self.canister.rules()).0);
        Ok(())
    }

    fn reject(&self, fault: &Fault) -> Reject {
        fault.reject(&self.canister.id())
    }

    fn run(&mut self, mode: Mode, entry: Entry<'_>) -> Result<Run, HostError> {
        let Self { canister, caller, argument, reserved, span, .. } = self;
        let rules = canister.rules();
        let message = canister.message(rules, mode, *caller, argument.to_vec());
        let limit = mode.instructions(rules).0;
        let balance = Cycles(message.balance.get().saturating_sub(reserved.get()));
        let message = Message { balance, ..message };
        let (run, profile) = canister.run(message, entry, limit, *span)?;
        self.profile = profile;
        Ok(run)
    }

    fn commit(&mut self, run: &mut Run) -> Result<(), HostError> {
        // A replicated query counts too, although its changes are dropped.
        self.canister.commit(run)
    }
}

/// A canister by itself, which executes a query or decides on a message.
struct AloneReading<'a> {
    canister: &'a Canister,
    caller: Principal,
    method: &'a str,
    argument: &'a [u8],
    options: Query,
    profile: Option<Result<Profile, ProfileError>>,
}

impl Place for AloneReading<'_> {
    fn canister(&self) -> &Canister {
        self.canister
    }

    fn reject(&self, fault: &Fault) -> Reject {
        fault.reject(&self.canister.id())
    }

    fn run(&mut self, mode: Mode, entry: Entry<'_>) -> Result<Run, HostError> {
        let Self { canister, caller, method, argument, options, .. } = self;
        let rules = canister.rules();
        let mut message = canister.message(rules, mode, *caller, argument.to_vec());
        if mode == Mode::InspectMessage {
            (*method).clone_into(&mut message.method);
        }
        message.copies_ahead = options.copies_ahead;
        if matches!(mode, Mode::Query | Mode::CompositeQuery)
            && let Some(certifier) = &canister.certifier
        {
            let (id, data) = (canister.id(), canister.certified_data());
            message.certificate = Some(certifier.certificate(id, data, canister.time));
        }
        let limit = mode.instructions(rules).0;
        let (run, profile) = canister.run(message, entry, limit, options.span)?;
        self.profile = profile;
        Ok(run)
    }

    fn commit(&mut self, run: &mut Run) -> Result<(), HostError> {
        self.canister.undo(run)
    }
}

impl Canister {
    /// Calls a method as an update. All changes of the message are committed, or none if it fails.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. Errors of the canister are in [`Execution::outcome`].
    pub fn update(
        &mut self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        Ok(self.execute_update(caller, method, argument, None)?.0)
    }

    /// Calls a method as a query. Its changes are dropped.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. Errors of the canister are in [`Execution::outcome`].
    pub fn query(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        Ok(self.execute_query(caller, method, argument, Query::default())?.0)
    }

    /// Returns the cycles that a query would cost as an ingress message with the same number of
    /// instructions. Queries themselves are free.
    pub fn cycles_as_update(&self, method: &str, argument: &[u8], query: &Execution) -> Cycles {
        let Some(module) = &self.module else {
            return Cycles(0);
        };
        let rules = module.rules();
        cycles::induction(rules, method, argument)
            + cycles::execution(rules, query.charge, module.is_64_bit())
    }

    /// Calls a method as a query that touches most of the canister's heap.
    ///
    /// The reply is that of [`Canister::query`]. It is faster if the canister writes to most pages
    /// of its heap, as SQLite does when it fills its cache: the pages are copied together before
    /// the query instead of one by one. The counts are not exact: charges for touching heap pages
    /// are missing.
    ///
    /// # Errors
    ///
    /// The errors of [`Canister::query`].
    pub fn query_all(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        let options = Query { copies_ahead: true, ..Query::default() };
        Ok(self.execute_query(caller, method, argument, options)?.0)
    }

    /// Calls a method as [`Canister::update`] does and profiles the message or a span of it. If
    /// the message fails, the profile ends there; if it was not executed, the profile is empty.
    ///
    /// Outcome and cost are those of the update without profiling, except that the stack depth at
    /// which a message overflows the stack depends on the compiled code.
    ///
    /// # Errors
    ///
    /// If the host has no memory left, or the canister did not read its counter at the start or
    /// end of the span.
    pub fn profile_update(
        &mut self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        span: Span,
    ) -> Result<(Execution, Profile), ProfileError> {
        let (execution, profile) = self.execute_update(caller, method, argument, Some(span))?;
        Ok((execution, profile.transpose()?.unwrap_or_default()))
    }

    /// Calls a method as [`Canister::query`] does and profiles it.
    ///
    /// # Errors
    ///
    /// The errors of [`Canister::profile_update`].
    pub fn profile_query(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        span: Span,
    ) -> Result<(Execution, Profile), ProfileError> {
        let options = Query { span: Some(span), ..Query::default() };
        let (execution, profile) = self.execute_query(caller, method, argument, options)?;
        Ok((execution, profile.transpose()?.unwrap_or_default()))
    }

    fn execute_update(
        &mut self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        span: Option<Span>,
    ) -> Result<Profiled, HostError> {
        let began = now();
        if let Some(reject) = self.admit(caller, method, argument)? {
            return Ok((Execution::refused(reject), None));
        }
        let id = self.id();
        let sees_log = self.settings.controllers.contains(&caller);
        let induction = cycles::induction(self.rules(), method, argument);
        let mut place = Alone {
            canister: self,
            caller,
            argument,
            induction,
            reserved: Cycles(0),
            span,
            profile: None,
        };
        let mut execution =
            match dispatch::call(&mut place, Invocation::Replicated, method, argument)? {
                Ok(Called { mut run, .. }) => {
                    run.hide_backtrace(sees_log);
                    run.into_execution(&id, "did not reply to the call")
                }
                Err(refusal) => Execution::of(Err(refusal.reject)),
            };
        let cost = place.cost(execution.charge);
        let profile = place.profile;
        self.charge(cost);
        execution.cycles += cost;
        execution.wall = began.elapsed();
        Ok((execution, profile))
    }

    fn execute_query(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        options: Query,
    ) -> Result<Profiled, HostError> {
        let began = now();
        let mut place =
            AloneReading { canister: self, caller, method, argument, options, profile: None };
        let mut run = match dispatch::call(&mut place, Invocation::Query, method, argument)? {
            Ok(Called { run, .. }) => run,
            Err(refusal) => return Ok((Execution::refused(refusal.reject), None)),
        };
        let profile = place.profile;
        run.hide_backtrace(self.settings.controllers.contains(&caller));
        let mut execution = run.into_execution(&self.id(), "did not produce a response");
        execution.cycles = Cycles(0);
        execution.wall = began.elapsed();
        Ok((execution, profile))
    }

    /// Runs `canister_inspect_message`. Returns a reject if the message is not accepted.
    fn inspect(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Option<Reject>, HostError> {
        let export = exported(EntryPoint::InspectMessage.name());
        let mut place = AloneReading {
            canister: self,
            caller,
            method,
            argument,
            options: Query::default(),
            profile: None,
        };
        let ran = dispatch::execute(&mut place, Mode::InspectMessage, Entry::Export(&export))?;
        Ok(match ran.result {
            Err(fault) => {
                let sees_log = self.settings.controllers.contains(&caller);
                Some(fault.seen(sees_log).reject(&self.id()))
            }
            Ok(()) if ran.effects.accepted => None,
            Ok(()) => Some(Reject {
                code: ErrorCode::CanisterRejectedMessage,
                message: format!(
                    "Error from Canister {}: Canister rejected the message",
                    self.id()
                ),
            }),
        })
    }

    /// Returns the reject of an ingress message that is not admitted.
    pub(crate) fn admit(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Option<Reject>, HostError> {
        self.check_consistent()?;
        let Some(module) = &self.module else {
            // The replica rejects the message before execution, with another text.
            return Ok(Some(Reject {
                code: ErrorCode::CanisterWasmModuleNotFound,
                message: "Requested canister has no wasm module".to_owned(),
            }));
        };
        if let Some(reject) = reject_large_argument(module.rules(), argument) {
            return Ok(Some(reject));
        }
        if module.has(EntryPoint::InspectMessage)
            && let Some(reject) = self.inspect(caller, method, argument)?
        {
            return Ok(Some(reject));
        }
        let composite = module.method(method) == Some(MethodKind::CompositeQuery);
        Ok(composite.then(composite_query_in_replicated_mode))
    }
}
