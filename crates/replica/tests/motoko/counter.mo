/// A counter that calls other counters, pays them, and counts by a timer.
///
/// Compiled with classical and with enhanced orthogonal persistence, see README.md.

import Prim "mo:⛔";

persistent actor class Counter(start : Nat) {
  type Other = actor {
    add : (Nat) -> async Nat;
    fail : (Text) -> async ();
    pay : () -> async Nat;
    get : query () -> async Nat;
  };

  var count = start;
  var upgrades = 0;
  let region = Prim.regionNew();
  // Bytes of `region` in use.
  var used : Nat64 = 0;

  transient var ticks = 0;

  public func add(n : Nat) : async Nat {
    count += n;
    count
  };

  public query func get() : async Nat { count };

  public query func counts() : async { count : Nat; upgrades : Nat; ticks : Nat } {
    { count; upgrades; ticks }
  };

  /// The state before the call stays, whatever comes after it.
  public func addAndTrap(n : Nat, other : Other) : async Nat {
    count += n;
    let sum = await other.add(n);
    count += sum;
    Prim.trap("after the call");
  };

  public func addThere(n : Nat, other : Other) : async Nat {
    let sum = await other.add(n);
    count += 1;
    sum
  };

  public func fail(reason : Text) : async () {
    throw Prim.error(reason);
  };

  /// Calls a method that fails, and replies with the error.
  public func catchThere(reason : Text, other : Other) : async Text {
    try {
      await other.fail(reason);
      "no error"
    } catch error {
      count += 1;
      Prim.errorMessage(error)
    }
  };

  /// Two calls at a time.
  public func sum(one : Other, two : Other) : async Nat {
    let first = one.add(1);
    let second = two.add(2);
    (await first) + (await second)
  };

  public composite query func getThere(other : Other) : async Nat {
    await other.get()
  };

  /// Accepts half of the cycles.
  public func pay() : async Nat {
    Prim.cyclesAccept<system>(Prim.cyclesAvailable() / 2)
  };

  /// Sends cycles. Returns what was accepted, and what came back.
  public func payThere(cycles : Nat, other : Other) : async (Nat, Nat) {
    let accepted = await (with cycles) other.pay();
    (accepted, Prim.cyclesRefunded())
  };

  /// Cycles that a call needs.
  public query func costOfCall(method : Nat64, argument : Nat64) : async Nat {
    Prim.costCall(method, argument)
  };

  /// Appends to stable memory.
  public func append(n : Nat64) : async () {
    if (Prim.regionSize(region) == 0) { ignore Prim.regionGrow(region, 1) };
    Prim.regionStoreNat64(region, used, n);
    used += 8;
  };

  public query func last() : async ?Nat64 {
    if (used == 0) { null } else { ?Prim.regionLoadNat64(region, used - 8) }
  };

  /// Allocates so many numbers on the heap.
  public func allocate(numbers : Nat) : async Nat {
    let array = Prim.Array_init<Nat>(numbers, 1);
    count += array.size();
    Prim.rts_memory_size()
  };

  public func startTimer(nanoseconds : Nat64) : async () {
    ignore Prim.setTimer<system>(nanoseconds, true, func() : async () { ticks += 1 });
  };

  system func preupgrade() { upgrades += 1 };
  system func postupgrade() { upgrades += 1 };
}
