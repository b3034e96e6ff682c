//! Implementations of the System API calls.
//!
//! Calls are charged before they are executed here.
//!
//! Source: the Interface Specification, "System API". The modes that allow each call and the error
//! messages are from `rs/embedders/src/wasmtime_embedder/system_api.rs` of the replica.

use ic_principal::Principal;

use super::functions::SystemCall;
use super::message::{Answer, Certificate, Effects, Message, Mode};
use crate::cycles;
use crate::fault::{Fault, Trap};
use crate::memory::{Access, PageTracker};
use crate::rules::{MAX_CERTIFIED_DATA, MAX_ENVIRONMENT_NAME, MAX_TEXT};
use crate::units::{Bytes, Cycles, Instructions};

/// The context of a call.
pub struct ApiCall<'a> {
    /// The current message.
    pub message: &'a Message,
    /// The effects of the message so far.
    pub effects: &'a mut Effects,
    /// The heap; `None` if the module has none.
    pub heap: Option<&'a mut [u8]>,
    /// Size of stable memory.
    pub stable: Bytes,
    /// Instructions used so far.
    pub used: Instructions,
    /// Tracker of heap pages, if touching them is charged.
    pub pages: Option<&'a PageTracker>,
}

impl<'a> ApiCall<'a> {
    /// Executes `call` and returns its result, or 0 if it has none.
    pub fn execute(&mut self, call: SystemCall, args: &[u64]) -> Result<u64, Fault> {
        use SystemCall as C;
        let arg = |index: usize| args.get(index).copied().unwrap_or(0);
        let message = self.message;
        let mode = message.mode;
        match call {
            C::MsgArgDataSize => {
                self.argument("ic0_msg_arg_data_size").map(|bytes| bytes.len() as u64)
            }
            C::MsgArgDataCopy => {
                let bytes = self.argument("ic0_msg_arg_data_copy")?;
                self.copy_out(args, "ic0.msg_arg_data_copy", "payload", bytes)
            }
            C::MsgCallerSize => {
                self.refuse_if("ic0_msg_caller_size", mode == Mode::Start)?;
                Ok(self.message.caller.as_slice().len() as u64)
            }
            C::MsgCallerCopy => {
                self.refuse_if("ic0_msg_caller_copy", mode == Mode::Start)?;
                let bytes = message.caller.as_slice();
                self.copy_out(args, "ic0.msg_caller_copy", "id", bytes)
            }
            // Ingress messages have no caller info, and this subnet's canisters attach none.
            C::MsgCallerInfoDataSize | C::MsgCallerInfoSignerSize => {
                let call = format!("ic0_{}", call.name());
                self.refuse_if(&call, !mode.has_caller()).map(|()| 0)
            }
            C::MsgCallerInfoDataCopy | C::MsgCallerInfoSignerCopy => {
                self.refuse_if(&format!("ic0_{}", call.name()), !mode.has_caller())?;
                let part = if call == C::MsgCallerInfoDataCopy { "info" } else { "signer" };
                self.copy_out(args, &format!("ic0.{}", call.name()), part, &[])
            }
            C::MsgMethodNameSize => {
                self.refuse_if("ic0_msg_method_name_size", mode != Mode::InspectMessage)?;
                Ok(self.message.method.len() as u64)
            }
            C::MsgMethodNameCopy => {
                self.refuse_if("ic0_msg_method_name_copy", mode != Mode::InspectMessage)?;
                let bytes = message.method.as_bytes();
                self.copy_out(args, "ic0.msg_method_name_copy", "payload", bytes)
            }
            C::AcceptMessage => {
                self.refuse_if("ic0_accept_message", mode != Mode::InspectMessage)?;
                if self.effects.accepted {
                    return Err(contract("ic0.accept_message: the function was already called."));
                }
                self.effects.accepted = true;
                Ok(0)
            }
            C::MsgDeadline => {
                self.refuse_if("ic0_msg_deadline", !mode.may_reply())?;
                Ok(message.context.deadline)
            }
            C::InReplicatedExecution => Ok(u64::from(mode.is_replicated())),

            C::MsgReplyDataAppend => self.append(arg(0), arg(1)),
            C::MsgReply => {
                self.refuse_if("ic0_msg_reply", !mode.may_reply())?;
                match &mut self.effects.answer {
                    Answer::Pending(data) => {
                        self.effects.answer = Answer::Reply(std::mem::take(data));
                        Ok(0)
                    }
                    _ => Err(contract("ic0.msg_reply: the call is already replied")),
                }
            }
            C::MsgReject => self.reject(arg(0), arg(1)),
            C::MsgRejectCode => {
                let sees = mode == Mode::Cleanup && message.rules.set().reject_code_in_cleanup;
                self.refuse_if("ic0_msg_reject_code", !mode.is_callback() && !sees)?;
                Ok(message.context.rejection.as_ref().map_or(0, |it| it.code as u64))
            }
            C::MsgRejectMsgSize => {
                self.rejection("ic0_msg_reject_msg_size").map(|text| text.len() as u64)
            }
            C::MsgRejectMsgCopy => {
                let bytes = self.rejection("ic0_msg_reject_msg_copy")?;
                self.copy_out(args, "ic0.msg_reject_msg_copy", "msg", bytes)
            }

            C::CanisterCycleBalance => {
                self.refuse_if("ic0_canister_cycle_balance", mode == Mode::Start)?;
                narrow(self.balance())
            }
            C::CanisterCycleBalance128 => {
                self.refuse_if("ic0_canister_cycle_balance128", mode == Mode::Start)?;
                self.cycles_out(arg(0), self.balance(), "ic0_canister_cycle_balance128")
            }
            C::MsgCyclesAvailable => {
                self.refuse_if("ic0_msg_cycles_available", !mode.may_accept_cycles())?;
                narrow(self.available())
            }
            C::MsgCyclesAvailable128 => {
                self.refuse_if("ic0_msg_cycles_available128", !mode.may_accept_cycles())?;
                self.cycles_out(arg(0), self.available(), "ic0_msg_cycles_available128")
            }
            C::MsgCyclesRefunded => self.refund("ic0_msg_cycles_refunded").and_then(narrow),
            C::MsgCyclesRefunded128 => {
                let refund = self.refund("ic0_msg_cycles_refunded128")?;
                self.cycles_out(arg(0), refund, "ic0_msg_cycles_refunded128")
            }
            C::MsgCyclesAccept => {
                self.refuse_if("ic0_msg_cycles_accept", !mode.may_accept_cycles())?;
                narrow(self.accept(Cycles(arg(0).into())))
            }
            C::MsgCyclesAccept128 => {
                self.refuse_if("ic0_msg_cycles_accept128", !mode.may_accept_cycles())?;
                let accepted = self.accept(Cycles(u128::from(arg(0)) << 64 | u128::from(arg(1))));
                self.cycles_out(arg(2), accepted, "ic0_msg_cycles_accept128")
            }
            C::CyclesBurn128 => {
                self.refuse_if("ic0_cycles_burn128", mode == Mode::Start || !mode.is_replicated())?;
                let asked = u128::from(arg(0)) << 64 | u128::from(arg(1));
                let liquid = self.balance().get().saturating_sub(self.frozen().get());
                let burned = Cycles(asked.min(liquid));
                self.effects.burned += burned;
                self.cycles_out(arg(2), burned, "ic0_cycles_burn128")
            }
            C::MintCycles128 => {
                let allowed = mode == Mode::Update
                    || mode.is_task()
                    || (mode.is_callback() && !mode.is_composite());
                self.refuse_if("ic0_mint_cycles128", !allowed)?;
                Err(contract(format!(
                    "ic0.mint_cycles128 cannot be executed on non Cycles Minting Canister: {} != \
                     rkp4c-7iaaa-aaaaa-aaaca-cai",
                    self.message.canister
                )))
            }

            C::CanisterSelfSize => {
                self.refuse_if("ic0_canister_self_size", mode == Mode::Start)?;
                Ok(self.message.canister.as_slice().len() as u64)
            }
            C::CanisterSelfCopy => {
                self.refuse_if("ic0_canister_self_copy", mode == Mode::Start)?;
                let bytes = message.canister.as_slice();
                self.copy_out(args, "ic0.canister_self_copy", "id", bytes)
            }
            C::CanisterStatus => {
                self.refuse_if("ic0_canister_status", mode == Mode::Start)?;
                Ok(message.status as u64)
            }
            C::CanisterVersion => {
                self.refuse_if("ic0_canister_version", mode == Mode::Start)?;
                Ok(self.message.version)
            }
            C::SubnetSelfSize => {
                self.refuse_if("ic0_subnet_self_size", mode == Mode::Start)?;
                Ok(SUBNET.len() as u64)
            }
            C::SubnetSelfCopy => {
                self.refuse_if("ic0.subnet_self_copy", mode == Mode::Start)?;
                self.copy_out(args, "ic0.subnet_self_copy", "id", &SUBNET)
            }
            C::SubnetSelfNodeCount => {
                self.refuse_if("ic0_subnet_self_node_count", mode == Mode::Start)?;
                Ok(message.nodes.into())
            }
            C::IsController => {
                let principal = self.principal("ic0.is_controller", arg(0), arg(1))?;
                Ok(u64::from(self.message.controllers.contains(&principal)))
            }
            C::Time => {
                self.refuse_if("ic0_time", mode == Mode::Start)?;
                Ok(self.message.time)
            }
            C::GlobalTimerSet => {
                let read_only = mode == Mode::ReplicatedQuery || !mode.is_replicated();
                self.refuse_if("ic0_global_timer_set", mode == Mode::Start || read_only)?;
                Ok(std::mem::replace(&mut self.effects.timer, arg(0)))
            }
            C::PerformanceCounter => match arg(0) {
                0 => Ok(self.used.get()),
                1 => Ok(message.context.used.get().saturating_add(self.used.get())),
                other => {
                    let words = format!("Error getting performance counter type {other}");
                    Err(Fault::Misuse(words, help::NONE))
                }
            },
            C::EnvVarCount
            | C::EnvVarNameSize
            | C::EnvVarNameCopy
            | C::EnvVarNameExists
            | C::EnvVarValueSize
            | C::EnvVarValueCopy => self.environment(call, args),

            C::CanisterLiquidCycleBalance128 => {
                self.refuse_if("ic0_canister_liquid_cycle_balance128", mode == Mode::Start)?;
                let liquid = self.balance().get().saturating_sub(self.frozen().get());
                let liquid = Cycles(liquid);
                self.cycles_out(arg(0), liquid, "ic0_canister_liquid_cycle_balance128")
            }
            C::CostCall => {
                let bytes = Bytes(arg(0).saturating_add(arg(1)));
                let cost = cycles::request(message.rules, bytes, message.wasm64);
                self.cycles_out(arg(2), cost, "ic0_cost_call")
            }
            C::CostCreateCanister => {
                self.cycles_out(arg(0), cycles::creation(message.rules), "ic0_cost_create_canister")
            }
            C::CostHttpRequest => {
                let cost = cycles::http_request(message.rules, arg(0), arg(1));
                self.cycles_out(arg(2), cost, "ic0_cost_http_request")
            }
            C::CostSignWithEcdsa => {
                self.cost_of_key("ic0.cost_sign_with_ecdsa", args, 1, message.holds_keys)
            }
            C::CostSignWithSchnorr => {
                self.cost_of_key("ic0.cost_sign_with_schnorr", args, 2, message.holds_keys)
            }
            // There are no keys for vetKD.
            C::CostVetkdDeriveKey => self.cost_of_key("ic0.cost_vetkd_derive_key", args, 1, false),

            C::RootKeySize => {
                self.refuse_if("ic0_root_key_size", mode == Mode::Start || !mode.is_replicated())?;
                Ok(ROOT_KEY.len() as u64)
            }
            C::RootKeyCopy => {
                self.refuse_if("ic0.root_key_copy", mode == Mode::Start || !mode.is_replicated())?;
                self.copy_out(args, "ic0.root_key_copy", "bytes", &ROOT_KEY)
            }
            C::CertifiedDataSet => self.certify(arg(0), arg(1)),
            C::DataCertificateSize => self.certificate(call).map(|bytes| bytes.len() as u64),
            C::DataCertificateCopy => {
                let bytes = self.certificate(call)?;
                self.copy_out(args, "ic0.data_certificate_copy", "data_certificate", bytes)
            }
            C::DataCertificatePresent => {
                self.refuse_if("ic0_data_certificate_present", mode == Mode::Start)?;
                Ok(u64::from(matches!(mode, Mode::Query | Mode::CompositeQuery)))
            }

            C::DebugPrint => {
                let logged = match self.heap("", arg(0), arg(1)) {
                    Ok(bytes) => bytes.len() as u64,
                    Err(_) => "(debug_print message out of memory bounds)".len() as u64,
                };
                self.effects.log.add(logged);
                let text = self.text(arg(0), arg(1), "debug message");
                self.effects.printed.add(text);
                Ok(0)
            }
            C::Trap => Err(Fault::CalledTrap(self.text(arg(0), arg(1), "trap message"))),

            C::StableSize
            | C::StableGrow
            | C::StableRead
            | C::StableWrite
            | C::Stable64Size
            | C::Stable64Grow
            | C::Stable64Read
            | C::Stable64Write => {
                Err(Fault::Engine(format!("ic0.{} reached the host", call.name())))
            }
            C::CallNew
            | C::CallDataAppend
            | C::CallOnCleanup
            | C::CallCyclesAdd
            | C::CallCyclesAdd128
            | C::CallWithBestEffortResponse
            | C::CallPerform => self.request(call, args),
            C::CostHttpRequestV2 => Err(unsupported(call)),
        }
    }

    /// Instructions for what a call writes to the log, in addition to its price.
    pub fn log_charge(&self, call: SystemCall, args: &[u64]) -> u64 {
        match call {
            SystemCall::DebugPrint | SystemCall::Trap => {
                self.effects.log.charge(args.get(1).copied().unwrap_or(0))
            }
            _ => 0,
        }
    }

    fn wrong_mode(&self, call: &str) -> Fault {
        let words = format!("\"{call}\" cannot be executed in {} mode", self.message.mode);
        Fault::Misuse(words, help::WRONG_MODE)
    }

    /// Returns the error of a call that the current mode does not allow, if `refused`.
    pub(super) fn refuse_if(&self, call: &str, refused: bool) -> Result<(), Fault> {
        if refused { Err(self.wrong_mode(call)) } else { Ok(()) }
    }

    /// Cycles of the call that this message can still accept.
    fn available(&self) -> Cycles {
        self.message.context.available - self.effects.received
    }

    fn accept(&mut self, most: Cycles) -> Cycles {
        let accepted = most.min(self.available());
        self.effects.received += accepted;
        accepted
    }

    fn refund(&self, call: &str) -> Result<Cycles, Fault> {
        let mode = self.message.mode;
        self.refuse_if(call, !mode.is_callback() || mode.is_composite())?;
        Ok(self.message.context.refund)
    }

    fn rejection(&self, call: &str) -> Result<&'a [u8], Fault> {
        let Message { mode, context, .. } = self.message;
        let rejection = context.rejection.as_ref().filter(|_| mode.is_reject_callback());
        rejection.map(|it| it.message.as_bytes()).ok_or_else(|| self.wrong_mode(call))
    }

    fn certificate(&self, call: SystemCall) -> Result<&'a [u8], Fault> {
        let mode = self.message.mode;
        let refused = !matches!(mode, Mode::Query | Mode::CompositeQuery);
        self.refuse_if(&format!("ic0_{}", call.name()), refused)?;
        let certificate = self.message.certificate.as_ref();
        certificate.map(Certificate::bytes).ok_or_else(|| unsupported(call))
    }

    /// `cost_*(src, size, kind, dst)`: the cost of a signature with the key of a name. `held` is false
    /// if there are no keys.
    fn cost_of_key(
        &mut self,
        call: &str,
        args: &[u64],
        kinds: u64,
        held: bool,
    ) -> Result<u64, Fault> {
        const UNKNOWN_KIND: u64 = 1;
        const UNKNOWN_KEY: u64 = 2;
        let &[start, size, kind, target] = args else {
            return Err(Fault::Engine(format!("{call} takes four arguments")));
        };
        let name = self.heap(&format!("{call} heap"), start, size)?;
        let Ok(text) = std::str::from_utf8(name) else {
            // The replica repeats the whole name, which can be as long as the heap.
            let shown = &name[..name.len().min(MAX_TEXT.get() as usize)];
            let shown = String::from_utf8_lossy(shown);
            return Err(contract(format!("Failed to decode key name {shown}")));
        };
        if kind >= kinds {
            return Ok(UNKNOWN_KIND);
        }
        match cycles::signature(text).filter(|_| held) {
            Some(cost) => self.cycles_out(target, cost, &call.replace('.', "_")),
            None => Ok(UNKNOWN_KEY),
        }
    }

    fn argument(&self, call: &str) -> Result<&'a [u8], Fault> {
        let mode = self.message.mode;
        let refused = matches!(mode, Mode::Start | Mode::PreUpgrade)
            || mode.is_task()
            || mode.is_reject_callback()
            || mode.is_cleanup();
        self.refuse_if(call, refused)?;
        Ok(&self.message.argument)
    }

    pub(super) fn balance(&self) -> Cycles {
        let Effects { received, spent, burned, reserved, .. } = &*self.effects;
        // Cycles that were received can be spent.
        self.message.balance + *received - *spent - *burned - *reserved
    }

    /// Cycles that the canister cannot spend.
    pub(super) fn frozen(&self) -> Cycles {
        let heap = self.heap.as_deref().map_or(0, <[u8]>::len) as u64;
        let frozen = self.message.threshold.cycles(Bytes(heap) + self.stable, self.effects.sent);
        frozen.saturating_sub(self.effects.reserved)
    }

    /// The `size` bytes of the heap at `start`.
    pub(super) fn heap(&self, what: &str, start: u64, size: u64) -> Result<&[u8], Fault> {
        let bytes = slice(what, start, size, self.heap.as_deref().ok_or_else(no_heap)?)?;
        self.touch(start, bytes.len(), Access::Read);
        Ok(bytes)
    }

    /// The principal of `size` bytes at `start`. The replica checks its length before it reads it, so
    /// one that is too long touches nothing.
    pub(super) fn principal(&self, what: &str, start: u64, size: u64) -> Result<Principal, Fault> {
        let heap = self.heap.as_deref().ok_or_else(no_heap)?;
        if slice(what, start, size, heap)?.len() > Principal::MAX_LENGTH_IN_BYTES {
            return Err(Fault::InvalidPrincipal);
        }
        let bytes = self.heap(what, start, size)?;
        Principal::try_from_slice(bytes).map_err(|_| Fault::InvalidPrincipal)
    }

    /// Charges for the pages of a range inside of the heap.
    fn touch(&self, start: u64, length: usize, access: Access) {
        if let Some(pages) = self.pages {
            let start = start as usize;
            pages.touch(start..start + length, access);
        }
    }

    /// `*_copy(dst, offset, size)`: copies bytes of the replica to the heap.
    fn copy_out(
        &mut self,
        args: &[u64],
        call: &str,
        source: &str,
        bytes: &[u8],
    ) -> Result<u64, Fault> {
        let &[dst, offset, size] = args else {
            return Err(Fault::Engine(format!("{call} takes three arguments")));
        };
        let heap = self.heap.as_deref_mut().ok_or_else(no_heap)?;
        slice(&format!("{call} heap"), dst, size, heap)?;
        let bytes = slice(&format!("{call} {source}"), offset, size, bytes)?;
        if let Some(pages) = self.pages {
            pages.touch(dst as usize..dst as usize + bytes.len(), Access::Write);
        }
        heap[dst as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(0)
    }

    fn cycles_out(&mut self, dst: u64, cycles: Cycles, call: &str) -> Result<u64, Fault> {
        let heap = self.heap.as_deref_mut().ok_or_else(no_heap)?;
        let bytes = cycles.get().to_le_bytes();
        let length = heap.len();
        let target = usize::try_from(dst)
            .ok()
            .and_then(|dst| heap.get_mut(dst..dst.checked_add(bytes.len())?))
            .ok_or_else(|| {
                contract(format!(
                    "{call} failed because dst + size is out of bounds.Found dst = {dst} and \
                     size = {} while must be <= {length}",
                    bytes.len()
                ))
            })?;
        if let Some(pages) = self.pages {
            pages.touch(dst as usize..dst as usize + bytes.len(), Access::Write);
        }
        target.copy_from_slice(&bytes);
        Ok(0)
    }

    fn append(&mut self, start: u64, size: u64) -> Result<u64, Fault> {
        let mode = self.message.mode;
        self.refuse_if("ic0_msg_reply_data_append", !mode.may_reply())?;
        let Answer::Pending(reply) = &mut self.effects.answer else {
            return Err(contract("ic0.msg_reply_data_append: the call is already replied."));
        };
        let length = (reply.len() as u64).saturating_add(size);
        let limit = mode.max_reply(self.message.rules);
        if length > limit.get() {
            let words = format!(
                "ic0.msg_reply_data_append: application payload size ({length}) cannot be larger \
                 than {limit}."
            );
            return Err(Fault::Misuse(words, help::REPLY_TOO_LONG));
        }
        let heap = self.heap.as_deref().ok_or_else(no_heap)?;
        let data = slice("msg.reply", start, size, heap)?;
        if let Some(pages) = self.pages {
            pages.touch(start as usize..start as usize + data.len(), Access::Read);
        }
        reply.extend_from_slice(data);
        Ok(0)
    }

    fn reject(&mut self, start: u64, size: u64) -> Result<u64, Fault> {
        let mode = self.message.mode;
        self.refuse_if("ic0_msg_reject", !mode.may_reply())?;
        if !matches!(self.effects.answer, Answer::Pending(_)) {
            return Err(contract("ic0.msg_reject: the call is already replied"));
        }
        let limit = mode.max_reply(self.message.rules);
        if size > limit.get() {
            let words = format!(
                "ic0.msg_reject: application payload size ({size}) cannot be larger than {limit}."
            );
            return Err(Fault::Misuse(words, help::REJECT_TOO_LONG));
        }
        let text = self.heap("ic0.msg_reject", start, size)?.to_vec();
        let text = String::from_utf8(text)
            .map_err(|_| contract("ic0.msg_reject: invalid UTF-8 string provided"))?;
        self.effects.answer = Answer::Reject(text);
        Ok(0)
    }

    fn certify(&mut self, start: u64, size: u64) -> Result<u64, Fault> {
        let call = "ic0_certified_data_set";
        let mode = self.message.mode;
        let allowed = matches!(mode, Mode::Init | Mode::PreUpgrade | Mode::Update)
            || mode.is_task()
            || (mode.is_callback() && !mode.is_composite());
        self.refuse_if(call, !allowed)?;
        if size > MAX_CERTIFIED_DATA.get() {
            let words = format!(
                "{call} failed because the passed data must be no larger than \
                 {MAX_CERTIFIED_DATA} bytes. Found {size} bytes."
            );
            return Err(Fault::Misuse(words, help::CERTIFIED_DATA_TOO_LONG));
        }
        let heap = self.heap.as_deref().ok_or_else(no_heap)?;
        let data = slice("", start, size, heap).map_err(|_| {
            contract(format!(
                "{call} failed because src + size is out of bounds. Found src = {start} and \
                 size = {size} while src + size must be <= {}",
                heap.len()
            ))
        })?;
        self.touch(start, data.len(), Access::Read);
        self.effects.certified_data = Some(data.to_vec());
        Ok(0)
    }

    /// A text of the canister. A range outside of the heap is not an error.
    fn text(&self, start: u64, size: u64, what: &str) -> String {
        match self.heap("", start, size.min(MAX_TEXT.get())) {
            Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Err(_) => format!("({what} out of memory bounds)"),
        }
    }

    /// Executes a call that reads environment variables. They are ordered by the bytes of their names.
    fn environment(&mut self, call: SystemCall, args: &[u64]) -> Result<u64, Fault> {
        use SystemCall as C;
        let arg = |index: usize| args.get(index).copied().unwrap_or(0);
        let variables = &*self.message.environment;
        let name = call.name();
        self.refuse_if(&format!("ic0_{name}"), self.message.mode == Mode::Start)?;
        match call {
            C::EnvVarCount => Ok(variables.len() as u64),
            C::EnvVarNameSize => self.name_at(arg(0)).map(|name| name.len() as u64),
            C::EnvVarNameCopy => {
                let bytes = self.message.environment.keys().nth(index(arg(0)));
                let bytes = bytes.ok_or_else(|| self.no_name_at(arg(0)))?.as_bytes();
                self.copy_out(rest(args, 1), "ic0.env_var_name_copy", "name", bytes)
            }
            C::EnvVarNameExists => {
                let name = self.variable(call, "heap", arg(0), arg(1))?;
                Ok(u64::from(variables.contains_key(name)))
            }
            C::EnvVarValueSize => {
                let name = self.variable(call, "heap", arg(0), arg(1))?;
                variables.get(name).map(|value| value.len() as u64).ok_or_else(|| unknown(name))
            }
            C::EnvVarValueCopy => {
                let name = self.variable(call, "name", arg(0), arg(1))?;
                let value = variables.get(name).ok_or_else(|| unknown(name))?;
                self.copy_out(rest(args, 2), "ic0.env_var_value_copy", "value", value.as_bytes())
            }
            _ => Err(Fault::Engine(format!("ic0.{name} reads no environment variable"))),
        }
    }

    fn name_at(&self, at: u64) -> Result<&str, Fault> {
        let name = self.message.environment.keys().nth(index(at));
        name.map(String::as_str).ok_or_else(|| self.no_name_at(at))
    }

    fn no_name_at(&self, index: u64) -> Fault {
        Fault::EnvironmentIndex { index, count: self.message.environment.len() }
    }

    /// The requested name of a variable, which may not exist. The length is checked before
    /// anything is read: a canister could request its whole heap for the price of one call.
    fn variable(&self, call: SystemCall, part: &str, start: u64, size: u64) -> Result<&str, Fault> {
        let call = call.name();
        if size > MAX_ENVIRONMENT_NAME.get() {
            let words = format!("ic0.{call}: Variable name is too large.");
            return Err(Fault::Misuse(words, help::NONE));
        }
        let name = self.heap(&format!("ic0.{call} {part}"), start, size)?;
        std::str::from_utf8(name).map_err(|_| {
            let words = format!("ic0.{call}: Variable name is not a valid UTF-8 string.");
            Fault::Misuse(words, help::VARIABLE_NOT_UTF8)
        })
    }
}

/// What the replica suggests for calls that are refused.
pub(super) mod help {
    use crate::fault::Help;

    pub const NONE: Help = Help { suggestion: "", section: "" };
    pub const WRONG_MODE: Help = Help {
        suggestion: "Check the ICP documentation to make sure APIs are being called in the correct \
                     message types.",
        section: "calling-a-system-api-from-the-wrong-mode",
    };
    pub const REPLY_TOO_LONG: Help = Help {
        suggestion: "Consider checking the response size and returning an error if it is too long.",
        section: "msg_reply_data_append-payload-too-large",
    };
    pub const REJECT_TOO_LONG: Help = Help {
        suggestion: "Try truncating the error messages that are too long.",
        section: "msg_reject-payload-too-large",
    };
    pub const CERTIFIED_DATA_TOO_LONG: Help = Help {
        suggestion: "Try certifying just the hash of your data instead of the full contents.",
        section: "certified_data_set-payload-too-large",
    };
    pub const VARIABLE_NOT_UTF8: Help = Help {
        suggestion: "Provide a valid UTF-8 string for the environment variable name.",
        section: "",
    };
    pub const METHOD_NAME_TOO_LONG: Help = Help {
        suggestion: "Size of method_name {} exceeds the allowed limit of {}.",
        section: "canister-made-a-call-with-too-large-method-name",
    };
    pub const REQUEST_TOO_LARGE: Help = Help {
        suggestion: "Check the canister for errors or redesign the target API to allow shorter \
                     messages",
        section: "canister-made-a-call-with-too-large-payload",
    };
}

/// The public key of the mainnet, in DER.
const ROOT_KEY: [u8; 133] = *b"\
    \x30\x81\x82\x30\x1d\x06\x0d\x2b\x06\x01\x04\x01\x82\xdc\x7c\x05\x03\x01\x02\x01\x06\x0c\
    \x2b\x06\x01\x04\x01\x82\xdc\x7c\x05\x03\x02\x01\x03\x61\x00\x81\x4c\x0e\x6e\xc7\x1f\xab\
    \x58\x3b\x08\xbd\x81\x37\x3c\x25\x5c\x3c\x37\x1b\x2e\x84\x86\x3c\x98\xa4\xf1\xe0\x8b\x74\
    \x23\x5d\x14\xfb\x5d\x9c\x0c\xd5\x46\xd9\x68\x5f\x91\x3a\x0c\x0b\x2c\xc5\x34\x15\x83\xbf\
    \x4b\x43\x92\xe4\x67\xdb\x96\xd6\x5b\x9b\xb4\xcb\x71\x71\x12\xf8\x47\x2e\x0d\x5a\x4d\x14\
    \x50\x5f\xfd\x74\x84\xb0\x12\x91\x09\x1c\x5f\x87\xb9\x88\x83\x46\x3f\x98\x09\x1a\x0b\xaa\
    \xae";

/// Id of the subnet that canisters see; the value is arbitrary.
const SUBNET: [u8; 29] = {
    let mut id = [0x53; 29];
    id[28] = 2;
    id
};

/// The error for a call that the embedded replica does not support.
fn unsupported(call: SystemCall) -> Fault {
    Fault::Engine(format!("ic0.{} is not supported by the embedded replica", call.name()))
}

pub(super) fn contract(text: impl Into<String>) -> Fault {
    Fault::Contract(text.into())
}

pub(super) fn no_heap() -> Fault {
    contract("WebAssembly module must define memory")
}

/// The `size` bytes of `bytes` at `start`.
pub(super) fn slice<'b>(
    what: &str,
    start: u64,
    size: u64,
    bytes: &'b [u8],
) -> Result<&'b [u8], Fault> {
    let end = start.checked_add(size).ok_or_else(|| {
        contract(format!("{what}: src={start} + length={size} is an invalid address"))
    })?;
    let out_of_bounds = || {
        contract(format!(
            "{what}: src={start} + length={size} exceeds the slice size={}",
            bytes.len()
        ))
    };
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let (start, end) = range.ok_or_else(out_of_bounds)?;
    bytes.get(start..end).ok_or_else(out_of_bounds)
}

fn unknown(name: &str) -> Fault {
    Fault::EnvironmentName(name.to_owned())
}

/// Cycles as the result of a function with 64 bits.
fn narrow(cycles: Cycles) -> Result<u64, Fault> {
    u64::try_from(cycles.get()).map_err(|_| Trap::CyclesTooBig.into())
}

/// An index as a position in the list of variables.
fn index(index: u64) -> usize {
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// The arguments from `start` on.
fn rest(args: &[u64], start: usize) -> &[u64] {
    args.get(start..).unwrap_or_default()
}
