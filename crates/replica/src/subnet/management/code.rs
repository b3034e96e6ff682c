//! Installing code, in one message or from chunks.

use std::collections::BTreeMap;
use std::sync::Arc;

use candid::Principal;
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, ChunkHash, InstallChunkedCodeArgs, UninstallCodeArgs,
    UploadChunkArgs,
};
use sha2::{Digest, Sha256};

use super::call::{
    ChangeDetails, InstallCodeArgs, ManagementCall, Mode, Outcome, canister_not_found_anywhere,
    decode, invalid, refusal, reply,
};
use super::methods::{Storing, check_controller};
use crate::canister::Canister;
use crate::canister::install::{Installed, Upgrade};
use crate::cycles;
use crate::execution::Function;
use crate::fault::{ErrorCode, Reject};
use crate::module::Module;
use crate::rules::{MAX_CHUNKS, Rules, UPLOAD_INSTRUCTIONS};
use crate::subnet::managed::{CHUNK, Code};
use crate::subnet::member::{Member, Next};
use crate::subnet::subnet_state::Subnet;
use crate::units::{Bytes, Cycles};
use crate::validate::Purpose;

/// Most bytes of a module from chunks.
const MAX_MODULE: usize = 100 << 20;
/// More bytes than any installation adds to a canister: a heap, and a large stable memory.
const MOST_ADDED: Bytes = Bytes(64 << 30);
/// Most bytes of the chunks of all canisters, so that the memory of this process stays bounded.
const MAX_STORED: usize = 1 << 30;

/// A module and how to install it.
struct Installation<'a> {
    canister: Principal,
    mode: CanisterInstallMode,
    wasm: &'a [u8],
    argument: &'a [u8],
    sender_version: Option<u64>,
}

impl Subnet {
    pub(super) fn install_code(&mut self, call: &ManagementCall) -> Outcome {
        let args: InstallCodeArgs = call.decode()?;
        let installation = Installation {
            canister: args.canister_id,
            mode: args.mode,
            wasm: &args.wasm_module,
            argument: &args.arg,
            sender_version: args.sender_canister_version,
        };
        self.install(call, &installation)
    }

    pub(super) fn install_chunked_code(&mut self, call: &ManagementCall) -> Outcome {
        let args: InstallChunkedCodeArgs = call.decode()?;
        let caller = call.caller();
        let target = args.target_canister;
        self.controlled(&target, &caller)?;
        let store = args.store_canister.unwrap_or(target);
        let member = match self.members.get(&store) {
            Some(member) => member,
            None => {
                let code = ErrorCode::CanisterNotFound;
                let message = format!(
                    "InstallChunkedCode Error: Store canister {store} was not found on the subnet \
                     of target canister {target}"
                );
                return Err(invalid(code, message).into());
            }
        };
        if store != caller {
            check_controller(member, &caller)?;
        }
        let wasm = assembled(member, &args)?;
        let installation = Installation {
            canister: target,
            mode: args.mode,
            wasm: &wasm,
            argument: &args.arg,
            sender_version: args.sender_canister_version,
        };
        self.install(call, &installation)
    }

    /// Returns the module that a message to the management canister would install, so that it can be
    /// compiled before. `None` for other messages, and those that will be rejected.
    pub fn module_to_install(&self, method: &str, argument: &[u8]) -> Option<Vec<u8>> {
        match method {
            "install_code" => decode::<InstallCodeArgs>(argument).ok().map(|args| args.wasm_module),
            "install_chunked_code" => {
                let args: InstallChunkedCodeArgs = decode(argument).ok()?;
                let store = args.store_canister.unwrap_or(args.target_canister);
                assembled(self.members.get(&store)?, &args).ok()
            }
            _ => None,
        }
    }

    fn install(&mut self, call: &ManagementCall, installation: &Installation<'_>) -> Outcome {
        let Installation { canister: id, mode, wasm, argument, sender_version } = installation;
        let (caller, time) = (call.caller(), self.time);
        let (replica, saturation) = (self.replica_of(id).clone(), self.saturation());
        let member = self.controlled(id, &caller)?;
        let rules = replica.rules();
        let limit = rules.instructions().install;
        let compiled = replica.compile_as(Sha256::digest(wasm).into(), wasm, Purpose::Subnet);
        let wasm64 = compiled.as_ref().is_ok_and(Module::is_64_bit);
        let reserved = cycles::install(rules, limit, wasm64);
        if let Err(missing) = member.withdraw(reserved, Next::Other) {
            let Reject { code, message } = member.out_of_cycles(&caller, missing);
            let message = format!("Canister installation failed with `{message}`.");
            let (help, section) =
                ("Top up the canister with more cycles.", "install-code-not-enough-cycles");
            return Err(refusal(rules, code, message, help, section).into());
        }
        member.canister.add_cycles(reserved);
        if *mode == CanisterInstallMode::Install && member.canister.module().is_some() {
            return Err(refusal(
                rules,
                ErrorCode::CanisterNonEmpty,
                format!(
                    "Canister {id} cannot be installed because the canister is not empty. Try \
                     installing with mode='reinstall' instead."
                ),
                "Check that you want to overwrite the canister and, if so, use mode='reinstall'.",
                "canister-not-empty",
            )
            .into());
        }
        let module = compiled.map_err(|fault| fault.reject_in_full(id, rules))?;
        member.canister.set_time(time);
        let before = member.used();
        // Cycles are reserved for what the code adds where memory is scarce.
        let scarce = saturation.plus(MOST_ADDED).is_scarce();
        let kept = scarce.then(|| member.canister.fork());
        let (installed, recorded) = match mode {
            CanisterInstallMode::Install | CanisterInstallMode::Reinstall => {
                let installed = member.canister.install_module(&module, caller, argument)?;
                let recorded = match mode {
                    CanisterInstallMode::Install => Mode::Install,
                    _ => Mode::Reinstall,
                };
                (installed, recorded)
            }
            CanisterInstallMode::Upgrade(flags) => {
                let flags = flags.unwrap_or_default();
                let upgrade = Upgrade {
                    skip_pre_upgrade: flags.skip_pre_upgrade == Some(true),
                    persistence: flags.wasm_memory_persistence,
                };
                let installed =
                    member.canister.upgrade_module(&module, caller, argument, upgrade)?;
                (installed, Mode::Upgrade)
            }
        };
        let Installed { execution, fault } = installed;
        let failed = fault.as_ref().map(|fault| fault.reject_in_full(id, rules));
        let mut failed = failed.or_else(|| execution.outcome.clone().err());
        if failed.is_none()
            && let Some(kept) = kept
        {
            let grown = member.used().saturating_sub(before);
            failed = member.reserve_growth(grown, saturation).err();
            if failed.is_some() {
                let balance = member.canister.balance;
                member.canister = Canister { balance, ..kept };
            }
        }
        if failed.is_none() {
            if !matches!(recorded, Mode::Upgrade) {
                member.managed.log.clear();
            }
            let module_hash = module.hash().to_vec();
            let details = ChangeDetails::CodeDeployment { mode: recorded, module_hash };
            let version = member.canister.version();
            let origin = call.change_origin(*sender_version);
            member.managed.add_change(time, version, origin, details);
        }
        let log = member.canister.allocation.log;
        member.managed.log.add(time, &execution, fault.as_ref(), log);
        let function = Function::Management(call.method.clone());
        self.trace.add(call.cause, *id, function, 0, Cycles(0), execution);
        match failed {
            Some(reject) => Err(reject.into()),
            None => reply(()),
        }
    }

    pub(super) fn uninstall_code(&mut self, call: &ManagementCall) -> Outcome {
        let args: UninstallCodeArgs = call.decode()?;
        let (caller, time, rules) = (call.caller(), self.time, self.replica.rules());
        self.controlled(&args.canister_id, &caller)
            .map_err(|reject| canister_not_found_anywhere(rules, reject))?;
        self.uninstall(&args.canister_id)?;
        let member = self.member_mut(&args.canister_id)?;
        let origin = call.change_origin(args.sender_canister_version);
        let version = member.canister.version();
        member.canister.count_in_history(None);
        member.managed.add_change(time, version, origin, ChangeDetails::CodeUninstall);
        reply(())
    }

    pub(super) fn upload_chunk(&mut self, call: &ManagementCall) -> Outcome {
        let args: UploadChunkArgs = call.decode()?;
        let caller = call.caller();
        self.check_stored(args.chunk.len())?;
        let saturation = self.saturation();
        let member = self.own(&args.canister_id, &caller)?;
        let cost = cycles::management(member.rules(), UPLOAD_INSTRUCTIONS);
        if let Err(missing) = member.withdraw(cost, Next::Other) {
            let Reject { message, .. } = member.out_of_cycles(&caller, missing);
            let message = format!("Error charging for 'upload_chunk': {message}");
            return Err(store_error(member.rules(), message).into());
        }
        let hash: [u8; 32] = Sha256::digest(&args.chunk).into();
        if checked_chunk(member.rules(), &member.managed.chunks, &args.chunk)?.is_some() {
            let storing = Storing { more: CHUNK, ..Storing::default() };
            member.store(&caller, storing, saturation)?;
            member.managed.chunks.insert(hash, Arc::new(args.chunk));
            member.count_stored();
        }
        reply((ChunkHash { hash: hash.to_vec() },))
    }

    /// Checks that this process has room for a chunk of this size.
    pub(super) fn check_stored(&self, bytes: usize) -> Result<(), Reject> {
        let of_canisters = self.members.values().flat_map(|member| member.managed.chunks.values());
        let snapshots = self.members.values().flat_map(|member| member.managed.snapshots.values());
        let uploaded = snapshots.filter(|snapshot| matches!(snapshot.code, Code::Uploaded(..)));
        let of_snapshots = uploaded.flat_map(|snapshot| snapshot.chunks.values());
        let stored: usize = of_canisters.chain(of_snapshots).map(|chunk| chunk.len()).sum();
        if stored + bytes > MAX_STORED {
            let message = format!(
                "the chunks of all canisters have at most {MAX_STORED} bytes here; \
                 clear_chunk_store makes room"
            );
            return Err(store_error(self.replica.rules(), message));
        }
        Ok(())
    }

    pub(super) fn stored_chunks(&mut self, call: &ManagementCall) -> Outcome {
        let args: CanisterIdRecord = call.decode()?;
        let chunks = &self.own(&args.canister_id, &call.caller())?.managed.chunks;
        let hashes: Vec<_> = chunks.keys().map(|hash| ChunkHash { hash: hash.to_vec() }).collect();
        reply((hashes,))
    }

    pub(super) fn clear_chunk_store(&mut self, call: &ManagementCall) -> Outcome {
        let args: CanisterIdRecord = call.decode()?;
        let member = self.own(&args.canister_id, &call.caller())?;
        member.managed.chunks.clear();
        member.count_stored();
        reply(())
    }
}

/// Returns the SHA-256 of a chunk that is new in a store, or `None` if it is there already.
pub(super) fn checked_chunk(
    rules: Rules,
    store: &BTreeMap<[u8; 32], Arc<Vec<u8>>>,
    chunk: &[u8],
) -> Result<Option<[u8; 32]>, Reject> {
    let hash: [u8; 32] = Sha256::digest(chunk).into();
    if store.contains_key(&hash) {
        return Ok(None);
    }
    let (bytes, most) = (chunk.len(), CHUNK.get());
    if bytes as u64 > most {
        let message = format!("Wasm chunk size {bytes} exceeds the maximum chunk size of {most}");
        return Err(store_error(rules, message));
    }
    if store.len() >= MAX_CHUNKS {
        let all = MAX_CHUNKS as u64 * most;
        let message = format!(
            "Wasm chunk store has already reached maximum capacity of {all} bytes or the \
             maximum number of entries, {MAX_CHUNKS}"
        );
        return Err(store_error(rules, message));
    }
    Ok(Some(hash))
}

/// A module from the chunks of a canister.
fn assembled(store: &Member, args: &InstallChunkedCodeArgs) -> Result<Vec<u8>, Reject> {
    let rules = store.rules();
    let mut chunks = Vec::new();
    for ChunkHash { hash } in &args.chunk_hashes_list {
        let hash: [u8; 32] = hash
            .as_slice()
            .try_into()
            .map_err(|_| store_error(rules, "Chunk hash is invalid. The length is not 32"))?;
        let chunk = store.managed.chunks.get(&hash);
        let missing = || store_error(rules, format!("Chunk hash {hash:?} was not found"));
        chunks.push(chunk.ok_or_else(missing)?);
    }
    // A chunk may be repeated.
    let bytes: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    if bytes > MAX_MODULE {
        let message =
            format!("the chunks together have {bytes} bytes, a module at most {MAX_MODULE}");
        return Err(store_error(rules, message));
    }
    let wasm: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.iter().copied()).collect();
    let hash: [u8; 32] = Sha256::digest(&wasm).into();
    if hash != args.wasm_module_hash[..] {
        let given = &args.wasm_module_hash[..args.wasm_module_hash.len().min(32)];
        let message =
            format!("Wasm module hash {hash:?} does not match given hash WasmHash({given:?})");
        return Err(store_error(rules, message));
    }
    Ok(wasm)
}

pub(super) fn store_error(rules: Rules, message: impl AsRef<str>) -> Reject {
    refusal(
        rules,
        ErrorCode::CanisterContractViolation,
        format!("Error from Wasm chunk store: {}.", message.as_ref()),
        "Use the `stored_chunks` API to check which hashes are present or top up the canister if it \
         is low on cycles.",
        "wasm-chunk-store-error",
    )
}
