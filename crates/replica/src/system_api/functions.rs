//! The functions of the System API, each with its name, its signature and its price.
//!
//! One table defines the enum, the names and the signatures. A row reads
//! `Variant "name" (parameters) -> (results);`. Parameters and results are [`Type`]s, where `Size`
//! is as wide as heap addresses. Another table has the [prices](price), without the `call` operator.
//!
//! Every function is imported from the module [`MODULE`].
//!
//! Source: the Interface Specification, "System API". The functions that are missing for heaps
//! with 64-bit addresses are from `rs/embedders/src/wasm_utils/validation.rs` of the replica, the
//! prices from `rs/embedders/src/wasmtime_embedder/{system_api_complexity,linker}.rs`.

use wasmparser::ValType;

/// The module from which canisters import the System API.
pub const MODULE: &str = "ic0";

/// Width of heap addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum AddressWidth {
    /// 32 bits, as in nearly every canister.
    Bits32,
    /// 64 bits: the module declares its memory as `i64`.
    Bits64,
}

/// The type of a parameter or result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Always 32 bits.
    I32,
    /// Always 64 bits.
    I64,
    /// An address in the heap, or a number of bytes there.
    Size,
}

impl Type {
    /// The WebAssembly type in a module with that address width.
    pub const fn val_type(self, width: AddressWidth) -> ValType {
        match (self, width) {
            (Self::I32, _) | (Self::Size, AddressWidth::Bits32) => ValType::I32,
            (Self::I64, _) | (Self::Size, AddressWidth::Bits64) => ValType::I64,
        }
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Name in imports.
    pub name: &'static str,
    /// Types of the parameters.
    pub params: &'static [Type],
    /// Types of the results: none or one.
    pub results: &'static [Type],
    /// True if modules with 64-bit heaps cannot import it.
    pub only_32_bit: bool,
}

macro_rules! system_calls {
    (
        every heap {
            $($any:ident $any_name:literal ($($any_param:ident),*) -> ($($any_result:ident)?);)*
        }
        heaps with 32-bit addresses {
            $($old:ident $old_name:literal ($($old_param:ident),*) -> ($($old_result:ident)?);)*
        }
    ) => {
        /// A function of the System API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum SystemCall {
            $(#[doc = concat!("`ic0.", $any_name, "`")] $any,)*
            $(#[doc = concat!("`ic0.", $old_name, "`; heaps with 32-bit addresses")] $old,)*
        }

        impl SystemCall {
            /// Every function, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$any,)* $(Self::$old,)*];
        }

        const SIGNATURES: &[Signature] = &[
            $(Signature {
                name: $any_name,
                params: &[$(Type::$any_param),*],
                results: &[$(Type::$any_result)?],
                only_32_bit: false,
            },)*
            $(Signature {
                name: $old_name,
                params: &[$(Type::$old_param),*],
                results: &[$(Type::$old_result)?],
                only_32_bit: true,
            },)*
        ];
    };
}

system_calls! {
    every heap {
        // Method, caller and argument.
        MsgArgDataSize "msg_arg_data_size" () -> (Size);
        MsgArgDataCopy "msg_arg_data_copy" (Size, Size, Size) -> ();
        MsgCallerSize "msg_caller_size" () -> (Size);
        MsgCallerCopy "msg_caller_copy" (Size, Size, Size) -> ();
        MsgCallerInfoDataSize "msg_caller_info_data_size" () -> (Size);
        MsgCallerInfoDataCopy "msg_caller_info_data_copy" (Size, Size, Size) -> ();
        MsgCallerInfoSignerSize "msg_caller_info_signer_size" () -> (Size);
        MsgCallerInfoSignerCopy "msg_caller_info_signer_copy" (Size, Size, Size) -> ();
        MsgMethodNameSize "msg_method_name_size" () -> (Size);
        MsgMethodNameCopy "msg_method_name_copy" (Size, Size, Size) -> ();
        MsgDeadline "msg_deadline" () -> (I64);
        MsgRejectCode "msg_reject_code" () -> (I32);
        MsgRejectMsgSize "msg_reject_msg_size" () -> (Size);
        MsgRejectMsgCopy "msg_reject_msg_copy" (Size, Size, Size) -> ();
        AcceptMessage "accept_message" () -> ();
        InReplicatedExecution "in_replicated_execution" () -> (I32);

        // The answer.
        MsgReplyDataAppend "msg_reply_data_append" (Size, Size) -> ();
        MsgReply "msg_reply" () -> ();
        MsgReject "msg_reject" (Size, Size) -> ();

        // Cycles.
        MsgCyclesAvailable128 "msg_cycles_available128" (Size) -> ();
        MsgCyclesRefunded128 "msg_cycles_refunded128" (Size) -> ();
        MsgCyclesAccept128 "msg_cycles_accept128" (I64, I64, Size) -> ();
        CanisterCycleBalance128 "canister_cycle_balance128" (Size) -> ();
        CanisterLiquidCycleBalance128 "canister_liquid_cycle_balance128" (Size) -> ();
        CyclesBurn128 "cycles_burn128" (I64, I64, Size) -> ();
        MintCycles128 "mint_cycles128" (I64, I64, Size) -> ();
        CostCall "cost_call" (I64, I64, Size) -> ();
        CostCreateCanister "cost_create_canister" (Size) -> ();
        CostHttpRequest "cost_http_request" (I64, I64, Size) -> ();
        CostHttpRequestV2 "cost_http_request_v2" (Size, Size, Size) -> ();
        CostSignWithEcdsa "cost_sign_with_ecdsa" (Size, Size, I32, Size) -> (I32);
        CostSignWithSchnorr "cost_sign_with_schnorr" (Size, Size, I32, Size) -> (I32);
        CostVetkdDeriveKey "cost_vetkd_derive_key" (Size, Size, I32, Size) -> (I32);

        // The canister and where it runs.
        CanisterSelfSize "canister_self_size" () -> (Size);
        CanisterSelfCopy "canister_self_copy" (Size, Size, Size) -> ();
        CanisterStatus "canister_status" () -> (I32);
        CanisterVersion "canister_version" () -> (I64);
        SubnetSelfSize "subnet_self_size" () -> (Size);
        SubnetSelfCopy "subnet_self_copy" (Size, Size, Size) -> ();
        SubnetSelfNodeCount "subnet_self_node_count" () -> (Size);
        IsController "is_controller" (Size, Size) -> (I32);
        Time "time" () -> (I64);
        GlobalTimerSet "global_timer_set" (I64) -> (I64);
        PerformanceCounter "performance_counter" (I32) -> (I64);
        EnvVarCount "env_var_count" () -> (Size);
        EnvVarNameSize "env_var_name_size" (Size) -> (Size);
        EnvVarNameCopy "env_var_name_copy" (Size, Size, Size, Size) -> ();
        EnvVarNameExists "env_var_name_exists" (Size, Size) -> (I32);
        EnvVarValueSize "env_var_value_size" (Size, Size) -> (Size);
        EnvVarValueCopy "env_var_value_copy" (Size, Size, Size, Size, Size) -> ();

        // Calls to other canisters.
        CallNew "call_new" (Size, Size, Size, Size, Size, Size, Size, Size) -> ();
        CallDataAppend "call_data_append" (Size, Size) -> ();
        CallOnCleanup "call_on_cleanup" (Size, Size) -> ();
        CallCyclesAdd128 "call_cycles_add128" (I64, I64) -> ();
        CallWithBestEffortResponse "call_with_best_effort_response" (I32) -> ();
        CallPerform "call_perform" () -> (I32);

        // Stable memory.
        Stable64Size "stable64_size" () -> (I64);
        Stable64Grow "stable64_grow" (I64) -> (I64);
        Stable64Read "stable64_read" (I64, I64, I64) -> ();
        Stable64Write "stable64_write" (I64, I64, I64) -> ();

        // Certification.
        CertifiedDataSet "certified_data_set" (Size, Size) -> ();
        DataCertificatePresent "data_certificate_present" () -> (I32);
        DataCertificateSize "data_certificate_size" () -> (Size);
        DataCertificateCopy "data_certificate_copy" (Size, Size, Size) -> ();
        RootKeySize "root_key_size" () -> (Size);
        RootKeyCopy "root_key_copy" (Size, Size, Size) -> ();

        // Output and traps.
        DebugPrint "debug_print" (Size, Size) -> ();
        Trap "trap" (Size, Size) -> ();
    }
    heaps with 32-bit addresses {
        StableSize "stable_size" () -> (I32);
        StableGrow "stable_grow" (I32) -> (I32);
        StableRead "stable_read" (I32, I32, I32) -> ();
        StableWrite "stable_write" (I32, I32, I32) -> ();
        MsgCyclesAvailable "msg_cycles_available" () -> (I64);
        MsgCyclesRefunded "msg_cycles_refunded" () -> (I64);
        MsgCyclesAccept "msg_cycles_accept" (I64) -> (I64);
        CanisterCycleBalance "canister_cycle_balance" () -> (I64);
        CallCyclesAdd "call_cycles_add" (I64) -> ();
    }
}

impl SystemCall {
    /// The function's row of the table.
    pub const fn signature(self) -> &'static Signature {
        &SIGNATURES[self as usize]
    }

    /// The function's name in imports.
    pub const fn name(self) -> &'static str {
        self.signature().name
    }

    /// The function with that name, for any address width.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|call| call.name() == name)
    }
}

/// Instructions per byte sent to another canister or a caller.
pub(super) const BYTE_TRANSMITTED: u64 = 50;

/// Price of a call: a fixed part and a part per byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// Instructions of each call.
    fixed: u64,
    /// Indices of parameters that are numbers of bytes, and the price of a byte.
    bytes: Option<(&'static [usize], u64)>,
}

const fn fixed(fixed: u64) -> Price {
    Price { fixed, bytes: None }
}

const fn bytes(fixed: u64, params: &'static [usize], each: u64) -> Price {
    Price { fixed, bytes: Some((params, each)) }
}

impl Price {
    /// Number of bytes of a call with these arguments.
    pub fn size(self, args: &[u64]) -> u64 {
        let params = self.bytes.map_or(&[][..], |(params, _)| params);
        params
            .iter()
            .filter_map(|param| args.get(*param))
            .fold(0, |sum, size| sum.saturating_add(*size))
    }

    /// Price of a call with these arguments.
    pub fn of(self, args: &[u64]) -> u64 {
        let each = self.bytes.map_or(0, |(_, each)| each);
        self.fixed.saturating_add(self.size(args).saturating_mul(each))
    }
}

/// The price of `call`. Stable calls are charged in the rewritten module; calls that write to the
/// log cost more, depending on the space in the log.
pub const fn price(call: SystemCall) -> Price {
    use SystemCall as C;
    match call {
        C::MintCycles128 => fixed(0),
        C::StableSize
        | C::StableGrow
        | C::StableRead
        | C::StableWrite
        | C::Stable64Size
        | C::Stable64Grow
        | C::Stable64Read
        | C::Stable64Write => fixed(0),
        C::DebugPrint => bytes(100, &[1], 1),
        C::Trap => bytes(500, &[1], 1),
        C::PerformanceCounter => fixed(200),
        C::CostHttpRequestV2 => fixed(10_000),
        C::IsController => bytes(1_000, &[1], 1),
        C::CallNew => bytes(1_500, &[1, 3], 1),
        C::CallPerform => fixed(5_000),
        C::MsgReplyDataAppend | C::MsgReject | C::CallDataAppend => {
            bytes(500, &[1], BYTE_TRANSMITTED)
        }
        C::MsgArgDataCopy
        | C::MsgCallerCopy
        | C::MsgCallerInfoDataCopy
        | C::MsgCallerInfoSignerCopy
        | C::MsgMethodNameCopy
        | C::MsgRejectMsgCopy
        | C::CanisterSelfCopy
        | C::SubnetSelfCopy
        | C::DataCertificateCopy
        | C::RootKeyCopy => bytes(500, &[2], 1),
        C::EnvVarNameCopy => bytes(500, &[3], 1),
        C::EnvVarValueCopy => bytes(500, &[4], 1),
        C::CertifiedDataSet
        | C::CostSignWithEcdsa
        | C::CostSignWithSchnorr
        | C::CostVetkdDeriveKey => bytes(500, &[1], 1),
        C::MsgArgDataSize
        | C::MsgCallerSize
        | C::MsgCallerInfoDataSize
        | C::MsgCallerInfoSignerSize
        | C::MsgMethodNameSize
        | C::MsgDeadline
        | C::MsgRejectCode
        | C::MsgRejectMsgSize
        | C::AcceptMessage
        | C::InReplicatedExecution
        | C::MsgReply
        | C::MsgCyclesAvailable
        | C::MsgCyclesAvailable128
        | C::MsgCyclesRefunded
        | C::MsgCyclesRefunded128
        | C::MsgCyclesAccept
        | C::MsgCyclesAccept128
        | C::CanisterCycleBalance
        | C::CanisterCycleBalance128
        | C::CanisterLiquidCycleBalance128
        | C::CyclesBurn128
        | C::CostCall
        | C::CostCreateCanister
        | C::CostHttpRequest
        | C::CanisterSelfSize
        | C::CanisterStatus
        | C::CanisterVersion
        | C::SubnetSelfSize
        | C::SubnetSelfNodeCount
        | C::Time
        | C::GlobalTimerSet
        | C::EnvVarCount
        | C::EnvVarNameSize
        | C::EnvVarNameExists
        | C::EnvVarValueSize
        | C::CallOnCleanup
        | C::CallCyclesAdd
        | C::CallCyclesAdd128
        | C::CallWithBestEffortResponse
        | C::DataCertificatePresent
        | C::DataCertificateSize
        | C::RootKeySize => fixed(500),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[test]
    fn names_are_unique() {
        for &call in SystemCall::ALL {
            assert_eq!(SystemCall::from_name(call.name()), Some(call));
        }
        assert_eq!(SystemCall::from_name("teleport"), None);
    }

    #[test]
    fn only_sizes_follow_the_width_of_the_heap() {
        use AddressWidth::{Bits32, Bits64};
        assert_eq!(Type::Size.val_type(Bits32), ValType::I32);
        assert_eq!(Type::Size.val_type(Bits64), ValType::I64);
        assert_eq!(Type::I32.val_type(Bits64), ValType::I32);
        assert_eq!(Type::I64.val_type(Bits32), ValType::I64);
    }

    #[test]
    fn price_of_every_call() {
        let mut printed = String::new();
        for &call in SystemCall::ALL {
            let price = price(call);
            write!(printed, "{} {}", call.name(), price.fixed).unwrap();
            if let Some((params, each)) = price.bytes {
                write!(printed, " + {each} a byte of {params:?}").unwrap();
            }
            printed.push('\n');
        }
        insta::assert_snapshot!(printed);
    }

    #[test]
    fn sizes_add_up_without_overflow() {
        assert_eq!(price(SystemCall::CallNew).of(&[0, 3, 0, 4]), 1_507);
        assert_eq!(price(SystemCall::MsgReject).of(&[0, u64::MAX]), u64::MAX);
    }
}
