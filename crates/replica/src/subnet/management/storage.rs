//! Checks balances and reserves cycles for chunks, snapshots and installed code.

use super::refusal;
use crate::cycles::Threshold;
use crate::fault::{ErrorCode, Reject, grouped};
use crate::saturation::Saturation;
use crate::subnet::funds::Next;
use crate::subnet::member::Member;
use crate::units::{Bytes, Cycles};

impl Member {
    /// Checks that the canister can pay for more bytes of chunks or snapshots, and reserves cycles
    /// for them.
    pub(super) fn store(&mut self, bytes: Bytes, saturation: Saturation) -> Result<(), Reject> {
        let threshold = self.threshold(Next::Other);
        let more = Threshold { other: threshold.other + bytes, ..threshold };
        let needed = more.cycles(self.canister.memories(), Bytes(0));
        self.check_balance(bytes, needed)?;
        self.reserve_growth(bytes, saturation)
    }

    /// Reserves cycles for memory that grows by so many bytes, unless they are allocated already.
    pub(super) fn reserve_growth(
        &mut self,
        bytes: Bytes,
        saturation: Saturation,
    ) -> Result<(), Reject> {
        let Some(reserve) = self.reserve(saturation) else { return Ok(()) };
        let cycles = reserve.growth(self.rules(), Bytes(0), bytes).map_err(|fault| {
            refusal(
                fault.code(),
                fault.to_string(),
                "Try increasing this canister's reserved cycles limit or moving it to a subnet \
                 with lower memory usage.",
                "reserved-cycles-limit-exceeded-in-memory-grow",
            )
        })?;
        self.check_balance(bytes, cycles)?;
        self.set_aside(cycles);
        Ok(())
    }

    fn check_balance(&self, bytes: Bytes, needed: Cycles) -> Result<(), Reject> {
        match needed.get().checked_sub(self.canister.balance.get()) {
            Some(missing) if missing > 0 => Err(refusal(
                ErrorCode::InsufficientCyclesInMemoryGrow,
                format!(
                    "Canister cannot grow memory by {bytes} bytes due to insufficient cycles. At \
                     least {} additional cycles are required.",
                    grouped(Cycles(missing))
                ),
                "Top up the canister with more cycles.",
                "insufficient-cycles-in-memory-grow-1",
            )),
            _ => Ok(()),
        }
    }
}
