/// The collections of Motoko's library `base`. Their objects cannot be kept over an upgrade, so an
/// upgrade stores their entries.

import Hash "mo:base/Hash";
import HashMap "mo:base/HashMap";
import Iter "mo:base/Iter";
import Nat64 "mo:base/Nat64";
import RBTree "mo:base/RBTree";
import TrieMap "mo:base/TrieMap";
import Table "Table";
import Types "Types";

module {
  public type Stored = {
    /// With the size of its array at the beginning.
    #hash_map : (Nat, [(Nat64, Nat64)]);
    #trie_map : [(Nat64, Nat64)];
    #rb_tree : RBTree.Tree<Nat64, Nat64>;
    #table : Table.Table;
  };

  public type Collection = Types.Collection<Stored>;

  public let engines = ["hash_map", "trie_map", "rb_tree", "table"];

  /// An empty collection for so many entries.
  public func new(engine : Text, entries : Nat64) : ?Stored {
    switch engine {
      case "hash_map" ?#hash_map(Nat64.toNat(entries), []);
      case "trie_map" ?#trie_map([]);
      case "rb_tree" ?#rb_tree(#leaf);
      case "table" ?#table(Table.new(entries));
      case _ null;
    }
  };

  public func open(stored : Stored) : Collection {
    switch stored {
      case (#hash_map(size, entries)) {
        let map = HashMap.fromIter<Nat64, Nat64>(entries.vals(), size, Nat64.equal, hash);
        {
          get = map.get;
          put = map.put;
          remove = func key = map.remove(key) != null;
          entries = func from = numbered(map.entries(), from);
          store = func() = #hash_map(map.size(), Iter.toArray(map.entries()));
        }
      };
      case (#trie_map(entries)) {
        let map = TrieMap.fromEntries<Nat64, Nat64>(entries.vals(), Nat64.equal, hash);
        {
          get = map.get;
          put = map.put;
          remove = func key = map.remove(key) != null;
          entries = func from = numbered(map.entries(), from);
          store = func() = #trie_map(Iter.toArray(map.entries()));
        }
      };
      case (#rb_tree(tree)) {
        let map = RBTree.RBTree<Nat64, Nat64>(Nat64.compare);
        map.unshare(tree);
        {
          get = map.get;
          put = map.put;
          remove = func key = map.remove(key) != null;
          entries = func from = numbered(map.entries(), from);
          store = func() = #rb_tree(map.share());
        }
      };
      case (#table(table)) {
        {
          get = func key = Table.get(table, key);
          put = func(key, value) = Table.put(table, key, value);
          remove = func key = Table.remove(table, key);
          entries = func from = Table.entries(table, from);
          store = func() = stored;
        }
      };
    }
  };

  /// Entries after the first ones.
  func numbered(entries : Iter.Iter<(Nat64, Nat64)>, from : Nat64) : Types.Entries {
    var number = from;
    var skipped : Nat64 = 0;
    while (skipped < from) {
      ignore entries.next();
      skipped += 1;
    };
    {
      next = func() : ?(Nat64, Nat64, Nat64) {
        let ?(key, value) = entries.next() else return null;
        let position = number;
        number += 1;
        ?(position, key, value)
      };
    }
  };

  func hash(key : Nat64) : Nat32 { Hash.hash(Nat64.toNat(key)) };
}
