//! The codes of rejects, by number and name.

/// All codes. Source: `ErrorCode` of the `pocket-ic` crate 16, whose names the replica's are.
const CODES: [(u32, &str); 62] = [
    (101, "SubnetOversubscribed"),
    (102, "MaxNumberOfCanistersReached"),
    (201, "CanisterQueueFull"),
    (202, "IngressMessageTimeout"),
    (203, "CanisterQueueNotEmpty"),
    (204, "IngressHistoryFull"),
    (205, "CanisterIdAlreadyExists"),
    (206, "StopCanisterRequestTimeout"),
    (207, "CanisterOutOfCycles"),
    (208, "CertifiedStateUnavailable"),
    (209, "CanisterInstallCodeRateLimited"),
    (210, "CanisterHeapDeltaRateLimited"),
    (211, "SubnetCoolingDown"),
    (301, "CanisterNotFound"),
    (305, "CanisterSnapshotNotFound"),
    (402, "InsufficientMemoryAllocation"),
    (403, "InsufficientCyclesForCreateCanister"),
    (404, "SubnetNotFound"),
    (405, "CanisterNotHostedBySubnet"),
    (406, "CanisterRejectedMessage"),
    (407, "UnknownManagementMessage"),
    (408, "InvalidManagementPayload"),
    (409, "CanisterSnapshotImmutable"),
    (410, "InvalidSubnetAdmin"),
    (502, "CanisterTrapped"),
    (503, "CanisterCalledTrap"),
    (504, "CanisterContractViolation"),
    (505, "CanisterInvalidWasm"),
    (506, "CanisterDidNotReply"),
    (507, "CanisterOutOfMemory"),
    (508, "CanisterStopped"),
    (509, "CanisterStopping"),
    (510, "CanisterNotStopped"),
    (511, "CanisterStoppingCancelled"),
    (512, "CanisterInvalidController"),
    (513, "CanisterFunctionNotFound"),
    (514, "CanisterNonEmpty"),
    (517, "QueryCallGraphLoopDetected"),
    (520, "InsufficientCyclesInCall"),
    (521, "CanisterWasmEngineError"),
    (522, "CanisterInstructionLimitExceeded"),
    (524, "CanisterMemoryAccessLimitExceeded"),
    (525, "QueryCallGraphTooDeep"),
    (526, "QueryCallGraphTotalInstructionLimitExceeded"),
    (527, "CompositeQueryCalledInReplicatedMode"),
    (528, "QueryTimeLimitExceeded"),
    (529, "QueryCallGraphInternal"),
    (530, "InsufficientCyclesInComputeAllocation"),
    (531, "InsufficientCyclesInMemoryAllocation"),
    (532, "InsufficientCyclesInMemoryGrow"),
    (533, "ReservedCyclesLimitExceededInMemoryAllocation"),
    (534, "ReservedCyclesLimitExceededInMemoryGrow"),
    (535, "InsufficientCyclesInMessageMemoryGrow"),
    (536, "CanisterMethodNotFound"),
    (537, "CanisterWasmModuleNotFound"),
    (538, "CanisterAlreadyInstalled"),
    (539, "CanisterWasmMemoryLimitExceeded"),
    (540, "ReservedCyclesLimitIsTooLow"),
    (541, "CanisterInvalidControllerOrSubnetAdmin"),
    (542, "CanisterStatusAccessDenied"),
    (601, "DeadlineExpired"),
    (602, "ResponseDropped"),
];

/// Returns the name of a code.
pub fn name(number: u32) -> Option<&'static str> {
    CODES.iter().find(|(code, _)| *code == number).map(|(_, name)| *name)
}

/// Returns the code of a reject with this name, such as `IC0522`.
pub fn ic_code(name: &str) -> Option<String> {
    let (number, _) = CODES.iter().find(|(_, known)| *known == name)?;
    Some(format!("IC{number:04}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(CODES.is_sorted_by(|(one, _), (next, _)| one < next));
    }

    #[cfg(feature = "pocket-ic")]
    #[test]
    fn the_table_equals_that_of_pocket_ic() {
        for number in 0..1_000 {
            let known = pocket_ic_16::ErrorCode::try_from(u64::from(number)).ok();
            assert_eq!(name(number), known.map(|code| format!("{code:?}")).as_deref());
        }
    }
}
