//! The endpoints of every canister.
//!
//! Candid's library takes more instructions to read an argument of rich types and to write a reply
//! than small work does. So `run` takes one number and returns numbers, whose encoding has a fixed
//! form, read and written by hand:
//!
//! ```text
//! argument   "DIDL" 0 1 0x78                no types, one argument, a nat64
//!            call id ↕ 8
//!
//! reply      "DIDL" types 1 0               variant { Ok : PartCost }, a subtype of the reply's
//!            0                              Ok
//!            length ↕ LEB128                each, for every operation:
//!              allocated ↕ 8, instructions ↕ 8
//!            measurement ↕ 9 × 8            in the order of the names' hashes
//! ```
//!
//! Numbers are little-endian. An error is written by Candid's library.

use crate::trap;
use stablebench_protocol::{Error, Measurement, PartCost, Result};

/// Refuses callers that are not controllers.
///
/// # Errors
///
/// [`Error::NotController`].
pub fn require_controller() -> Result<()> {
    if ic_cdk::api::is_controller(&ic_cdk::api::msg_caller()) {
        Ok(())
    } else {
        Err(Error::NotController)
    }
}

/// Exports the methods of `canisters/harness/harness.did` for a [`Canister`](crate::Canister), and its
/// interface in Candid, `include_bytes!` of a file. A suite may have a macro for methods of its own, which
/// follows this one and uses its `controlled` and `HOST`.
///
/// Updates are for controllers only. Methods that do not measure are queries: their changes (cached
/// pages, an opened connection) are dropped, so that looking does not change the next measurement.
/// The measuring methods of the suites take an id and execute each call once.
#[macro_export]
macro_rules! canister {
    ($canister:ty, $candid:expr) => {
        use stablebench_protocol::{
            Description, Digest, DigestPart, Executed, Inspected, Job, KeptPart, JobPart, PartCost, PhaseCost,
            Result, Setting,
        };

        /// The interface, for `dfx`, `icp` and web interfaces.
        #[used]
        #[cfg_attr(
            target_family = "wasm",
            unsafe(link_section = "icp:public candid:service")
        )]
        static CANDID: [u8; $candid.len()] = *$candid;

        thread_local! {
            static HOST: std::cell::RefCell<$crate::Host<$canister>> = std::cell::RefCell::default();
        }

        fn controlled<T>(
            call: impl FnOnce(&mut $crate::Host<$canister>) -> Result<T>,
        ) -> Result<T> {
            $crate::endpoints::require_controller()?;
            HOST.with_borrow_mut(call)
        }

        fn once<T>(
            call_id: Option<u64>,
            call: impl FnOnce(&mut $crate::Host<$canister>) -> Result<T>,
        ) -> Result<T> {
            controlled(|host| {
                host.admit(call_id)?;
                call(host)
            })
        }

        #[ic_cdk::update]
        fn stage(part: JobPart) -> Result<()> {
            controlled(|host| host.stage(&part))
        }

        #[ic_cdk::update(
            hidden = true,
            decode_with = "stablebench_harness::endpoints::call_id",
            encode_with = "stablebench_harness::endpoints::part_cost"
        )]
        fn run(call_id: u64) -> Result<PartCost> {
            once(Some(call_id), |host| host.run())
        }

        #[ic_cdk::query(hidden = true, encode_with = "stablebench_harness::endpoints::part_cost")]
        fn run_query() -> Result<PartCost> {
            HOST.with_borrow_mut(|host| host.run_query())
        }

        // The types of both in Candid, which the attributes above cannot express.
        #[candid::candid_method(update, rename = "run")]
        #[allow(dead_code, reason = "only the type is used")]
        fn candid_of_run(_call_id: u64) -> Result<PartCost> {
            run(_call_id)
        }

        #[candid::candid_method(query, rename = "run_query")]
        #[allow(dead_code, reason = "only the type is used")]
        fn candid_of_run_query() -> Result<PartCost> {
            run_query()
        }

        #[ic_cdk::query]
        fn results(part: JobPart) -> Result<Option<Digest>> {
            HOST.with_borrow_mut(|host| host.results(&part))
        }

        #[ic_cdk::update]
        fn execute(part: JobPart, call_id: Option<u64>) -> Result<Executed> {
            once(call_id, |host| host.execute(&part))
        }

        #[ic_cdk::update]
        fn phases(part: JobPart, call_id: Option<u64>) -> Result<Vec<PhaseCost>> {
            once(call_id, |host| host.phases(&part))
        }

        #[ic_cdk::query]
        fn content(job: Job, part: Option<DigestPart>, limit: u64) -> Result<DigestPart> {
            HOST.with_borrow_mut(|host| host.content(&job, part, limit))
        }

        #[ic_cdk::query]
        fn inspect(job: Job) -> Result<Inspected> {
            HOST.with_borrow_mut(|host| host.inspect(&job))
        }

        #[ic_cdk::query]
        fn kept(job: Job, position: u64) -> Result<KeptPart> {
            HOST.with_borrow_mut(|host| host.kept(&job, position))
        }

        #[ic_cdk::update]
        fn configure(settings: Vec<Setting>) -> Result<Vec<Setting>> {
            controlled(|host| host.configure(&settings))
        }

        #[ic_cdk::query]
        fn describe() -> Result<Description> {
            HOST.with_borrow_mut(|host| host.describe())
        }

        #[ic_cdk::pre_upgrade]
        fn pre_upgrade() {
            // A trap keeps the canister as it is.
            if let Err(error) = HOST.with_borrow_mut(|host| host.pre_upgrade()) {
                ic_cdk::api::trap(error.to_string());
            }
        }

        #[ic_cdk::post_upgrade]
        fn post_upgrade() {
            HOST.with_borrow_mut(|host| host.post_upgrade());
        }
    };
}

/// The bytes before the call's id.
const ARGUMENT: [u8; 7] = *b"DIDL\x00\x01\x78";

/// Bytes of a reply without costs of operations, after its types.
const NUMBERS: usize = 1 + 10 + 9 * 8;

/// Reads the argument of `run`. Traps if it is something else.
pub fn call_id(argument: Vec<u8>) -> u64 {
    if let Some((&ARGUMENT, id)) = argument.split_first_chunk()
        && let Ok(id) = id.try_into()
    {
        return u64::from_le_bytes(id);
    }
    trap(&"run takes the id of the call, a nat64")
}

/// Writes the reply of `run`.
pub fn part_cost(outcome: Result<PartCost>) -> Vec<u8> {
    let cost = match outcome {
        Ok(cost) => cost,
        Err(error) => match candid::encode_one(Result::<PartCost>::Err(error)) {
            Ok(bytes) => return bytes,
            Err(error) => trap(&error),
        },
    };
    let PartCost { measurement, each } = cost;
    let mut reply = Vec::with_capacity(TYPES.len() + NUMBERS + each.len() * 16);
    reply.extend_from_slice(TYPES);
    reply.push(0);
    leb128(&mut reply, each.len() as u64);
    for cost in &each {
        reply.extend_from_slice(&cost.allocated.to_le_bytes());
        reply.extend_from_slice(&cost.instructions.to_le_bytes());
    }
    for number in numbers(&measurement) {
        reply.extend_from_slice(&number.to_le_bytes());
    }
    reply
}

/// The numbers of a measurement in Candid's order.
fn numbers(measurement: &Measurement) -> [u64; 9] {
    let Measurement {
        instructions,
        counter_overhead,
        message_instructions,
        rows,
        bytes,
        heap_pages_before,
        heap_pages_after,
        stable_pages_before,
        stable_pages_after,
    } = *measurement;
    [
        heap_pages_before,
        message_instructions,
        rows,
        counter_overhead,
        instructions,
        stable_pages_after,
        bytes,
        heap_pages_after,
        stable_pages_before,
    ]
}

fn leb128(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The types of the reply, which is one value of the first:
///
/// ```text
/// 0   variant { Ok : 1 }
/// 1   record { each : 2; measurement : 4 }
/// 2   vec 3
/// 3   record { allocated : int64; instructions : nat64 }
/// 4   record of nine nat64
/// ```
const TYPES: &[u8] = b"DIDL\x05\
    \x6b\x01\xbc\x8a\x01\x01\
    \x6c\x02\x81\xfc\xb1\x98\x04\x02\xfc\x8f\x9d\x88\x06\x04\
    \x6d\x03\
    \x6c\x02\x87\xa6\xb6\xe4\x03\x74\xa5\xad\xfe\xe9\x06\x78\
    \x6c\x09\
    \x8d\x93\xd8\xa1\x03\x78\xdd\xc6\xee\xaf\x03\x78\x99\xea\xbb\xdd\x04\x78\
    \xd7\xfa\xb5\x83\x06\x78\xa5\xad\xfe\xe9\x06\x78\xdd\xe9\xa4\xe2\x09\x78\
    \xeb\x90\xe0\xec\x0b\x78\xce\x99\x82\xb0\x0d\x78\x9e\xdd\x81\xec\x0e\x78\
    \x01\x00";

#[cfg(test)]
mod tests {
    use super::*;
    use candid::{CandidType, decode_one, encode_one};
    use stablebench_protocol::OperationCost;

    /// The part of the reply's type that is written by hand.
    #[derive(CandidType)]
    enum Reply {
        Ok(PartCost),
    }

    fn sample(operations: u64) -> PartCost {
        let measurement = Measurement {
            instructions: 1,
            counter_overhead: 200,
            message_instructions: u64::MAX,
            rows: 4,
            bytes: 5 << 33,
            heap_pages_before: 6,
            heap_pages_after: 7,
            stable_pages_before: 8,
            stable_pages_after: 9,
        };
        let cost = |index| OperationCost { instructions: index << 20, allocated: -(index as i64) };
        PartCost { measurement, each: (0..operations).map(cost).collect() }
    }

    #[test]
    fn a_reply_is_encoded_like_by_candid() {
        for operations in [0, 1, 127, 128, 20_000] {
            let sample = sample(operations);
            let reply = part_cost(Ok(sample.clone()));
            assert_eq!(reply, encode_one(Reply::Ok(sample.clone())).unwrap(), "{operations}");
            assert_eq!(decode_one::<Result<PartCost>>(&reply).unwrap(), Ok(sample));
        }
        let refused = Err(Error::Repeated { last: 7 });
        let reply = part_cost(refused.clone());
        assert_eq!(decode_one::<Result<PartCost>>(&reply).unwrap(), refused);
    }

    #[test]
    fn an_argument_is_decoded_like_by_candid() {
        for id in [0, 1, 0x0102_0304_0506_0708, u64::MAX] {
            assert_eq!(call_id(encode_one(id).unwrap()), id);
        }
    }

    #[test]
    fn another_argument_is_refused() {
        let long = [encode_one(7_u64).unwrap(), vec![0]].concat();
        for argument in
            [Vec::new(), encode_one(7_u32).unwrap(), encode_one(Some(7_u64)).unwrap(), long]
        {
            assert!(
                std::panic::catch_unwind(|| call_id(argument.clone())).is_err(),
                "{argument:?}"
            );
        }
    }
}
