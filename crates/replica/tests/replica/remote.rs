//! Calls to remote canisters, which are not on the subnet. A function answers them.

use stablebench_replica::subnet::{RemoteCall, Subnet};
use stablebench_replica::{Canister, Cycles, Principal, RejectCode, Replica, Rules};

const USER: Principal = Principal::anonymous();
const REMOTE: Principal = Principal::from_slice(&[0, 0, 0, 0, 2, 16, 0, 2, 1, 1]);
const OTHER: Principal = Principal::from_slice(&[0, 0, 0, 0, 2, 16, 0, 3, 1, 1]);
const SENT: u64 = 1_000_000_000_000;

/// A subnet with a canister that relays calls.
fn subnet() -> (Subnet, Principal) {
    let replica = Replica::new(Rules::today(), None).unwrap();
    let wasm = wat::parse_str(include_str!("../relay.wat")).unwrap();
    let mut canister = replica.create_canister().unwrap();
    let module = replica.compile_for_subnet(&canister.id(), &wasm).unwrap();
    canister.install(&module, USER, &[]).unwrap().outcome.unwrap();
    let (mut subnet, id) = (Subnet::new(&replica), canister.id());
    subnet.add(canister).unwrap();
    (subnet, id)
}

/// Calls a method with cycles. Returns the response, and what the caller has paid.
fn relay(
    subnet: &mut Subnet,
    id: Principal,
    callee: Principal,
    method: &str,
) -> (Result<Vec<u8>, String>, Cycles) {
    let balance = |subnet: &Subnet| subnet.canister(&id).map(Canister::balance).unwrap();
    let before = balance(subnet);
    let cycles = SENT.to_le_bytes();
    let argument = [&cycles, [10].as_slice(), callee.as_slice(), method.as_bytes(), b" argument"];
    let call = subnet.update(USER, id, "relay", &argument.concat()).unwrap();
    (call.response.map_err(|reject| reject.message), before - balance(subnet))
}

fn answer(call: &RemoteCall<'_>) -> Option<Result<Vec<u8>, String>> {
    (call.callee == REMOTE).then(|| match call.method {
        "accept" => Ok([call.caller.as_slice(), call.argument].concat()),
        method => Err(format!("no method {method} for {} cycles", call.cycles.get())),
    })
}

#[test]
fn a_reply_accepts_the_cycles_and_a_reject_refunds_them() {
    let (mut subnet, id) = subnet();
    subnet.answer_remote_calls(answer);
    let (reply, accepted) = relay(&mut subnet, id, REMOTE, "accept");
    assert_eq!(reply.unwrap(), [id.as_slice(), b"argument"].concat());
    let (reject, refunded) = relay(&mut subnet, id, REMOTE, "refuse");
    let reject = reject.unwrap_err();
    assert!(reject.contains("no method refuse for 1000000000000 cycles"), "{reject}");
    let fees = Cycles(SENT.into());
    assert!(accepted > fees && refunded < fees, "{accepted:?}, {refunded:?}");
}

#[test]
fn other_canisters_do_not_exist() {
    let (mut subnet, id) = subnet();
    let (none, paid) = relay(&mut subnet, id, REMOTE, "accept");
    assert_eq!(none.unwrap_err(), format!("No route to canister {REMOTE}"));
    assert!(paid < Cycles(SENT.into()));
    subnet.answer_remote_calls(answer);
    let (none, paid) = relay(&mut subnet, id, OTHER, "accept");
    assert_eq!(none.unwrap_err(), format!("No route to canister {OTHER}"));
    assert!(paid < Cycles(SENT.into()));
}

#[test]
fn the_reject_code_is_that_of_a_canister() {
    let (mut subnet, id) = subnet();
    subnet.answer_remote_calls(answer);
    let argument = [[0; 8].as_slice(), &[10], REMOTE.as_slice(), b"refuse argument"].concat();
    let call = subnet.update(USER, id, "relay", &argument).unwrap();
    assert_eq!(call.response.unwrap_err().code.reject_code(), RejectCode::CanisterReject);
}
