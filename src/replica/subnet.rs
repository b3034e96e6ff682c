//! A canister that calls others, on a subnet of the embedded replica.
//!
//! ```text
//!   message ──→ its execution ──→ calls, callbacks, heartbeats, timers ──→ answer, and what is left
//!               └──────────────── all of it is the cost of the message ────────────────┘
//! ```
//!
//! Cycles that came with a call and stay in the canister that was called are no cost.

use anyhow::{Context, Result, bail};
use stablebench_replica::Principal;
use stablebench_replica::subnet::{Call, Executed, Subnet};

use super::executed::{answer as answer_of, cycles, inside, readings, reject};
use super::{Answer, Canister, Cost, Inside, Messages, Messaging, Readings};

/// Rounds that are executed after an answer, for calls that go on.
const MAX_ROUNDS: usize = 100;

/// A canister and the subnet on which it runs.
pub struct OnSubnet {
    subnet: Subnet,
    id: Principal,
}

impl OnSubnet {
    /// Adds a canister to a new subnet.
    pub fn new(
        replica: &stablebench_replica::Replica,
        canister: stablebench_replica::Canister,
    ) -> Result<Self> {
        let id = canister.id();
        let mut subnet = Subnet::new(replica);
        subnet.set_time(canister.time());
        subnet.add(canister)?;
        Ok(Self { subnet, id })
    }

    fn canister(&self) -> Result<&stablebench_replica::Canister> {
        self.subnet.canister(&self.id).context("the canister is gone")
    }

    fn canister_mut(&mut self) -> Result<&mut stablebench_replica::Canister> {
        self.subnet.canister_mut(&self.id).context("the canister is gone")
    }

    fn report_readings(&mut self, readings: stablebench_replica::Readings) -> Result<()> {
        self.canister_mut()?.report_readings(readings);
        Ok(())
    }
}

impl Messages for OnSubnet {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        let caller = Principal::anonymous();
        let mut call = self.subnet.update(caller, self.id, method, argument)?;
        for _ in 0..MAX_ROUNDS {
            if self.subnet.is_idle() {
                return Ok(answer(call));
            }
            self.subnet.tick()?;
            call.executions.append(&mut self.subnet.take_executions());
        }
        bail!("{method}: calls go on {MAX_ROUNDS} rounds after the answer")
    }

    fn measure(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.report_readings(stablebench_replica::Readings::Reported)?;
        let measured = self.update(method, argument);
        self.report_readings(stablebench_replica::Readings::Ignored)?;
        measured
    }

    /// As for a canister that runs by itself.
    fn call_id(&mut self) -> u64 {
        self.canister().map_or(0, |canister| canister.version() + 1)
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Ok(answer(self.subnet.query(Principal::anonymous(), self.id, method, argument)?))
    }

    fn query_all(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        let execution = self.canister()?.query_all(Principal::anonymous(), method, argument)?;
        // Its counts are not those of an ordinary query.
        Ok(Answer { cost: Cost::default(), ..answer_of(execution) })
    }

    fn upgrade(&mut self) -> Result<Cost> {
        Messages::upgrade(self.canister_mut()?)
    }
}

impl Canister for OnSubnet {
    fn fork(&mut self) -> Result<Box<dyn Messages + '_>> {
        Ok(Box::new(Self { subnet: self.subnet.fork(), id: self.id }))
    }
}

/// Converts a call with everything that it caused.
fn answer(call: Call) -> Answer {
    let cost = call.executions.iter().map(cost).reduce(|one, other| one + other);
    let outcome = call.response.map_err(reject);
    let readings = match call.executions.as_slice() {
        [only] => readings(&only.execution),
        // Those of several executions would not be in one order.
        _ => Readings::default(),
    };
    Answer { outcome, cost: cost.unwrap_or_default(), readings }
}

fn cost(executed: &Executed) -> Cost {
    let transmission = u64::try_from(executed.transmission.get()).unwrap_or(u64::MAX);
    let messaging = Some(Messaging { executions: 1, cycles: transmission });
    let inside = Inside { messaging, ..inside(&executed.execution) };
    Cost { cycles: cycles(&executed.execution), inside: Some(inside) }
}

#[cfg(test)]
mod tests {
    use stablebench_replica::Rules;

    use super::super::Replica;
    use super::super::embedded::Embedded;
    use super::*;

    /// Calls itself, and replies with the total number of its calls.
    const CALLS_ITSELF: &str = r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (import "ic0" "canister_self_copy" (func $self (param i32 i32 i32)))
        (import "ic0" "call_new" (func $new (param i32 i32 i32 i32 i32 i32 i32 i32)))
        (import "ic0" "call_perform" (func $perform (result i32)))
        (memory 1) (table 1 funcref) (elem (i32.const 0) $back)
        (data (i32.const 16) "count")
        (func $count (i32.store8 (i32.const 32) (i32.add (i32.load8_u (i32.const 32)) (i32.const 1)))
            (call $append (i32.const 32) (i32.const 1)) (call $reply))
        (export "canister_update count" (func $count))
        (export "canister_query look" (func $count))
        (func $back (param i32) (call $append (i32.const 32) (i32.const 1)) (call $reply))
        (func (export "canister_update go")
            (call $self (i32.const 0) (i32.const 0) (i32.const 10))
            (call $new (i32.const 0) (i32.const 10) (i32.const 16) (i32.const 5)
                (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
            (drop (call $perform))))"#;

    fn canister() -> Box<dyn Canister> {
        let replica =
            Embedded::new(stablebench_replica::Effort::Full, Rules::today(), None, |_| {}).unwrap();
        replica.install(&wat::parse_str(CALLS_ITSELF).unwrap()).unwrap()
    }

    #[test]
    fn a_message_costs_all_that_it_causes() {
        let mut canister = canister();
        let alone = canister.update("count", &[]).unwrap();
        assert_eq!(alone.outcome, Ok(vec![1]));
        let messaging = |cost: &Cost| cost.inside.unwrap().messaging.unwrap();
        assert_eq!(messaging(&alone.cost).executions, 1);
        let calls = canister.update("go", &[]).unwrap();
        assert_eq!(calls.outcome, Ok(vec![2]));
        // The message, the call, the callback.
        assert_eq!(messaging(&calls.cost).executions, 3);
        let (called, all) = (alone.cost.inside.unwrap(), calls.cost.inside.unwrap());
        assert!(all.instructions > called.instructions && all.charge > called.charge);
        // A call is sent twice, there and back, an ingress message once; both are in the cycles.
        assert!(messaging(&calls.cost).cycles > messaging(&alone.cost).cycles);
        assert!(calls.cost.cycles > messaging(&calls.cost).cycles + alone.cost.cycles);
    }

    /// The canister reads its counter twice; the pages that it touches between cost what they do in a
    /// canister that runs alone.
    #[test]
    fn a_message_without_calls_reports_its_readings() {
        let reads = CALLS_ITSELF.replace(
            "(memory 1)",
            r#"(import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
               (memory 1)
               (func (export "canister_update reads")
                   (drop (call $counter (i32.const 0)))
                   (i32.store (i32.const 4096) (i32.const 1))
                   (drop (call $counter (i32.const 0)))
                   (call $reply))"#,
        );
        let replica =
            Embedded::new(stablebench_replica::Effort::Full, Rules::today(), None, |_| {}).unwrap();
        let mut canister = replica.install(&wat::parse_str(reads).unwrap()).unwrap();
        let Readings(readings) = canister.measure("reads", &[]).unwrap().readings;
        let [(_, before), (_, after)] = readings.as_slice() else { panic!("{readings:?}") };
        assert!(after.heap > before.heap);
        assert!(canister.update("reads", &[]).unwrap().readings.0.is_empty());
    }

    #[test]
    fn forks_are_equal_and_leave_the_canister_as_it_is() {
        let mut canister = canister();
        canister.update("go", &[]).unwrap();
        let mut costs = Vec::new();
        for _ in 0..2 {
            let mut fork = canister.fork().unwrap();
            let id = fork.call_id();
            let went = fork.update("go", &[]).unwrap();
            assert_eq!(went.outcome, Ok(vec![2]));
            assert!(fork.call_id() > id);
            costs.push((id, went.cost));
        }
        assert_eq!(costs[0], costs[1]);
        assert_eq!(canister.query("look", &[]).unwrap().outcome, Ok(vec![2]));
        let cost = canister.upgrade().unwrap();
        assert!(cost.cycles > 0);
        assert_eq!(canister.query_all("look", &[]).unwrap().outcome, Ok(vec![1]));
    }
}
