/// The fingerprint of entries that all canisters compute, for values of 8 bytes.

import Types "Types";

module {
  public class Running(from : Types.Digest) {
    var rows = from.rows;
    var low = from.low;
    var high = from.high;

    public func add(key : Nat64, value : Nat64) {
      rows +%= 1;
      low +%= hash(0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, key, value);
      high +%= hash(0xc2b2_ae3d_27d4_eb4f, 0x94d0_49bb_1331_11eb, key, value);
    };

    public func value() : Types.Digest { { rows; low; high } };
  };

  public let empty : Types.Digest = { rows = 0; low = 0; high = 0 };

  func hash(seed : Nat64, factor : Nat64, key : Nat64, value : Nat64) : Nat64 {
    var hash = step(seed, factor, key);
    // The length of the value.
    hash := step(hash, factor, 8);
    hash := step(hash, factor, value) *% factor;
    hash ^ (hash >> 29)
  };

  func step(hash : Nat64, factor : Nat64, word : Nat64) : Nat64 {
    let mixed = (hash ^ word) *% factor;
    mixed ^ (mixed >> 32)
  };
}
