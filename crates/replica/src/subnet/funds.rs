//! What a canister pays for, and the balance below which it freezes.
//!
//! Source: `rs/cycles_account_manager` of the replica.

use ic_principal::Principal;

use super::member::{Member, Next};
use crate::allocation::Allocation;
use crate::canister::Canister;
use crate::cycles::{self, Reserve, Saturation, Threshold};
use crate::fault::{Fault, Reject};
use crate::limits::CHARGE_INTERVAL;
use crate::run::Run;
use crate::system_api::message::{Effects, reserved_memory};
use crate::units::{Bytes, Cycles, Instructions, SECOND};

impl Member {
    /// The balance below which the canister freezes, when it is about to execute a message.
    pub fn threshold(&self, next: Next) -> Threshold {
        let rules = self.rules();
        let queues = self.queues.memory(rules);
        let arrived = queues.responses + usize::from(next == Next::Response);
        let waiting = self.contexts.guaranteed_callbacks().saturating_sub(arrived);
        let called = self.contexts.guaranteed_calls() + queues.requests;
        let reserved = waiting + called + usize::from(next == Next::Request);
        let reserved = Bytes(reserved as u64 * reserved_memory(rules).get());
        self.canister.threshold(rules, queues.bytes + reserved)
    }

    /// The balance below which the canister freezes now.
    pub fn frozen(&self, next: Next) -> Cycles {
        self.threshold(next).cycles(self.canister.memories(), Bytes(0))
    }

    /// Deducts cycles, unless the canister would freeze. Then the error is what is missing.
    pub fn withdraw(&mut self, cycles: Cycles, next: Next) -> Result<(), Cycles> {
        let needed = cycles.get().saturating_add(self.frozen(next).get());
        match needed.checked_sub(self.canister.balance.get()) {
            Some(missing) if missing > 0 => Err(Cycles(missing)),
            _ => {
                self.canister.balance = self.canister.balance - cycles;
                Ok(())
            }
        }
    }

    /// The reject of a message for which cycles are missing; controllers learn how many.
    pub fn out_of_cycles(&self, caller: &Principal, missing: Cycles) -> Reject {
        let controller = self.canister.settings().controllers.contains(caller);
        let missing = controller.then_some(missing);
        let canister = self.canister.id();
        Fault::Frozen { canister, missing }.reject(&canister)
    }

    /// Charges for storage and compute, at intervals. Returns false if the canister cannot pay.
    pub fn charge_storage(&mut self, time: u64) -> bool {
        let passed = time.saturating_sub(self.paid_until);
        if passed < CHARGE_INTERVAL * SECOND {
            return true;
        }
        self.paid_until = time;
        let cost = self.threshold(Next::Other).charge(self.canister.memories(), passed / SECOND);
        // What was reserved for storage pays first.
        let Canister { balance, reserved, .. } = &mut self.canister;
        let paid = cost.min(*reserved);
        *reserved = *reserved - paid;
        let cost = cost - paid;
        let paid = cost.min(*balance);
        *balance = *balance - paid;
        paid == cost
    }

    /// Returns how the canister reserves cycles when its memory grows. `None` if it has a memory
    /// allocation, for which cycles are reserved already.
    pub fn reserve(&self, saturation: Saturation) -> Option<Reserve> {
        let Canister { reserved, allocation, .. } = &self.canister;
        let limit = self.managed.reserved_cycles_limit;
        let best_effort = allocation.memory == Bytes(0);
        best_effort.then_some(Reserve { reserved: *reserved, limit, saturation })
    }

    /// Moves cycles to those that are reserved for storage.
    pub fn set_aside(&mut self, cycles: Cycles) {
        self.canister.balance = self.canister.balance - cycles;
        self.canister.reserved += cycles;
    }

    /// Bytes of the canister, and at least those that it has reserved.
    pub fn occupied(&self) -> Bytes {
        self.used().max(self.canister.allocation.memory)
    }

    /// Bytes of the canister.
    pub fn used(&self) -> Bytes {
        let canister = &self.canister;
        canister.memories() + canister.sizes(self.rules()).other() + canister.stored
    }

    /// Releases what a canister without cycles has reserved, with its snapshots, its history and its
    /// log.
    pub fn release(&mut self) {
        let log = match self.rules().set().log_store {
            true => Bytes(0),
            false => self.canister.allocation.log,
        };
        let canister = &mut self.canister;
        canister.allocation =
            Allocation { compute: 0, memory: Bytes(0), log, ..canister.allocation };
        canister.reserved = Cycles(0);
        canister.history.clear();
        self.managed.changes.clear();
        self.managed.snapshots.clear();
        self.count_stored();
    }

    /// Counts the bytes of chunks and snapshots after they have changed.
    pub fn count_stored(&mut self) {
        self.canister.stored = self.managed.chunk_bytes() + self.managed.snapshot_bytes();
    }

    /// Withdraws or returns what the prepayment of a callback lacks or has too much, because the
    /// heap has another width now. Returns the prepayment after that, or `None` if the canister
    /// cannot pay; nothing is withdrawn then.
    pub fn adjust_prepayment(&mut self, prepaid: Cycles) -> Option<Cycles> {
        let rules = self.rules();
        if !rules.set().adjusts_prepayments {
            return Some(prepaid);
        }
        let needed = cycles::callback(rules, self.wasm64());
        let balance = self.canister.balance + prepaid;
        (balance >= needed).then(|| {
            self.canister.balance = balance - needed;
            needed
        })
    }

    /// Refunds what was prepaid for a callback and not used: by the width that the heap has now, and
    /// at most what was prepaid.
    pub fn refund_callback(&mut self, prepaid: Cycles, charge: Instructions) {
        let (rules, wasm64) = (self.rules(), self.wasm64());
        let reserved = cycles::callback(rules, wasm64);
        let unused = reserved.saturating_sub(cycles::execution(rules, charge, wasm64));
        self.canister.balance += unused.min(prepaid);
    }

    /// Refunds what was prepaid for a callback that does not run. The base fee is kept.
    pub fn refund_unexecuted(&mut self, prepaid: Cycles) {
        let rules = self.rules();
        if !rules.set().adjusts_prepayments {
            return self.refund_callback(prepaid, Instructions(0));
        }
        let base = cycles::execution(rules, Instructions(0), false);
        self.canister.balance += prepaid.saturating_sub(base);
    }

    /// Refunds what was reserved for an execution and not used.
    pub fn refund_execution(&mut self, reserved: Cycles, charge: Instructions) {
        let cost = cycles::execution(self.rules(), charge, self.wasm64());
        self.canister.balance += Cycles(reserved.get().saturating_sub(cost.get()));
    }

    /// Returns the cycles that are missing for what a message spent, with the memory that the
    /// canister has after it.
    pub fn missing_after(&self, run: &Run) -> Option<Cycles> {
        let Effects { spent, burned, received, reserved, sent, .. } = run.effects;
        let removed = (spent + burned + reserved).get().saturating_sub(received.get());
        let memories = Bytes::from(run.memory.heap) + Bytes::from(run.memory.stable);
        let threshold = self.threshold(Next::Other);
        let threshold = Threshold { reserved: threshold.reserved + reserved, ..threshold };
        let needed = removed.saturating_add(threshold.cycles(memories, sent).get());
        let before = removed.saturating_add(self.frozen(Next::Other).get());
        let balance = self.canister.balance.get();
        (balance < needed).then(|| Cycles(before.saturating_sub(balance)))
    }
}
