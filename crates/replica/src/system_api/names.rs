//! Names and signatures of the functions of the System API.
//!
//! One table defines the enum, the names and the signatures. A row reads
//! `Variant "name" (parameters) -> (results);`. Parameters and results are [`Type`]s, where `Size`
//! is as wide as heap addresses.
//!
//! Every function is imported from the module [`MODULE`].
//!
//! Source: the Interface Specification, "System API". The functions that are missing for heaps
//! with 64-bit addresses are from `rs/embedders/src/wasm_utils/validation.rs` of the replica.

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

#[cfg(test)]
mod tests {
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
}
