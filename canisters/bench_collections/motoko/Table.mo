/// A hash table in stable memory: slots of 16 bytes, linear probing, and a size that is chosen once.
///
/// The canister in Rust has the same table.
///
/// ```text
///   slot   key + 1 (0: free), value
/// ```

import Prim "mo:⛔";
import Types "Types";

module {
  public type Table = { region : Prim.Types.Region; bits : Nat64 };

  let SLOT : Nat64 = 16;
  let PAGE : Nat64 = 65_536;

  /// A table for so many entries and as many free slots.
  public func new(entries : Nat64) : Table {
    var bits : Nat64 = 1;
    while ((1 << bits) < 2 * entries) { bits += 1 };
    let region = Prim.regionNew();
    if (Prim.regionGrow(region, ((SLOT << bits) + PAGE - 1) / PAGE) == 0xffff_ffff_ffff_ffff) {
      Prim.trap("stable memory cannot grow");
    };
    { region; bits }
  };

  public func get(table : Table, key : Nat64) : ?Nat64 {
    let offset = slot(table, key) * SLOT;
    if (Prim.regionLoadNat64(table.region, offset) == 0) { return null };
    ?Prim.regionLoadNat64(table.region, offset + 8)
  };

  public func put(table : Table, key : Nat64, value : Nat64) {
    let offset = slot(table, key) * SLOT;
    Prim.regionStoreNat64(table.region, offset, key + 1);
    Prim.regionStoreNat64(table.region, offset + 8, value);
  };

  /// Removes a key, and moves those behind it that would no longer be found.
  public func remove(table : Table, key : Nat64) : Bool {
    let last = mask(table);
    var free = slot(table, key);
    if (Prim.regionLoadNat64(table.region, free * SLOT) == 0) { return false };
    var at = free;
    label search loop {
      at := (at + 1) & last;
      let found = Prim.regionLoadNat64(table.region, at * SLOT);
      if (found == 0) { break search };
      let home = first(table, found - 1);
      if (((at -% home) & last) >= ((at -% free) & last)) {
        let value = Prim.regionLoadNat64(table.region, at * SLOT + 8);
        Prim.regionStoreNat64(table.region, free * SLOT, found);
        Prim.regionStoreNat64(table.region, free * SLOT + 8, value);
        free := at;
      };
    };
    Prim.regionStoreNat64(table.region, free * SLOT, 0);
    true
  };

  /// The entries from a slot on.
  public func entries(table : Table, from : Nat64) : Types.Entries {
    let slots : Nat64 = 1 << table.bits;
    var at = from;
    {
      next = func() : ?(Nat64, Nat64, Nat64) {
        while (at < slots) {
          let slot = at;
          at += 1;
          let found = Prim.regionLoadNat64(table.region, slot * SLOT);
          if (found > 0) {
            return ?(slot, found - 1, Prim.regionLoadNat64(table.region, slot * SLOT + 8));
          };
        };
        null
      };
    }
  };

  /// The slot of a key, or the free one where it belongs.
  func slot(table : Table, key : Nat64) : Nat64 {
    let last = mask(table);
    var at = first(table, key);
    loop {
      let found = Prim.regionLoadNat64(table.region, at * SLOT);
      if (found == 0 or found == key + 1) { return at };
      at := (at + 1) & last;
    };
  };

  /// The slot where the search for a key begins.
  func first(table : Table, key : Nat64) : Nat64 {
    (key *% 0x9e37_79b9_7f4a_7c15) >> (64 - table.bits)
  };

  func mask(table : Table) : Nat64 { (1 << table.bits) - 1 };
}
