/// The next version of counter.mo: it keeps what that one stored, counts heartbeats, and installs
/// without an argument.

import Prim "mo:⛔";

persistent actor {
  var count = 0;
  var upgrades = 0;
  let region = Prim.regionNew();
  var used : Nat64 = 0;
  var beats = 0;

  public func add(n : Nat) : async Nat {
    count += n;
    count
  };

  public query func counts() : async { count : Nat; upgrades : Nat; beats : Nat } {
    { count; upgrades; beats }
  };

  public func append(n : Nat64) : async () {
    if (Prim.regionSize(region) == 0) { ignore Prim.regionGrow(region, 1) };
    Prim.regionStoreNat64(region, used, n);
    used += 8;
  };

  public query func last() : async ?Nat64 {
    if (used == 0) { null } else { ?Prim.regionLoadNat64(region, used - 8) }
  };

  system func heartbeat() : async () { beats += 1 };

  system func preupgrade() { upgrades += 1 };
  system func postupgrade() { upgrades += 1 };
}
