//! Prices of System API calls, without the `call` operator.
//!
//! Source: `rs/embedders/src/wasmtime_embedder/{system_api_complexity,linker}.rs`
//! of the replica.

use super::names::SystemCall;

/// Instructions per byte sent to another canister or a caller.
pub const BYTE_TRANSMITTED: u64 = 50;

/// Price of a call: a fixed part and a part per byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// Instructions of each call.
    pub fixed: u64,
    /// Indices of parameters that are numbers of bytes, and the price of a byte.
    pub bytes: Option<(&'static [usize], u64)>,
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
    use super::*;
    use std::fmt::Write;

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
