/// The collections of Motoko's library `core`. An upgrade keeps them as they are.

import Map "mo:core/Map";
import Nat64 "mo:core/Nat64";
import PureMap "mo:core/pure/Map";
import Core "mo:core/Types";
import Table "Table";
import Types "Types";

module {
  public type Stored = {
    #map : Map.Map<Nat64, Nat64>;
    #pure_map : { var map : PureMap.Map<Nat64, Nat64> };
    #table : Table.Table;
  };

  public type Collection = Types.Collection<Stored>;

  public let engines = ["map", "pure_map", "table"];

  /// An empty collection for so many entries.
  public func new(engine : Text, entries : Nat64) : ?Stored {
    switch engine {
      case "map" ?#map(Map.empty());
      case "pure_map" ?#pure_map({ var map = PureMap.empty() });
      case "table" ?#table(Table.new(entries));
      case _ null;
    }
  };

  public func open(stored : Stored) : Collection {
    switch stored {
      case (#map(map)) {
        {
          get = func key = Map.get(map, Nat64.compare, key);
          put = func(key, value) = Map.add(map, Nat64.compare, key, value);
          remove = func key = Map.delete(map, Nat64.compare, key);
          entries = func from = keyed(Map.entriesFrom(map, Nat64.compare, from));
          store = func() = stored;
        }
      };
      case (#pure_map(pure)) {
        {
          get = func key = PureMap.get(pure.map, Nat64.compare, key);
          put = func(key, value) { pure.map := PureMap.add(pure.map, Nat64.compare, key, value) };
          remove = func key {
            let (map, found) = PureMap.delete(pure.map, Nat64.compare, key);
            pure.map := map;
            found
          };
          entries = func from = keyed(pureEntries(pure.map.root, from));
          store = func() = stored;
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

  func keyed(entries : Core.Iter<(Nat64, Nat64)>) : Types.Entries {
    {
      next = func() : ?(Nat64, Nat64, Nat64) {
        let ?(key, value) = entries.next() else return null;
        ?(key, key, value)
      };
    }
  };

  type Tree = Core.Pure.Map.Tree<Nat64, Nat64>;

  /// The entries of a pure map from a key on, which its module does not have.
  func pureEntries(root : Tree, from : Nat64) : Core.Iter<(Nat64, Nat64)> {
    // The nodes whose entries and right subtrees are still to come, the nearest first.
    var path : Core.Pure.List<Tree> = null;
    func descend(tree : Tree) {
      switch tree {
        case (#red(left, key, _, right) or #black(left, key, _, right)) {
          if (key < from) {
            descend(right);
          } else {
            path := ?(tree, path);
            descend(left);
          };
        };
        case (#leaf) {};
      };
    };
    descend(root);
    {
      next = func() : ?(Nat64, Nat64) {
        let ?(nearest, rest) = path else return null;
        path := rest;
        switch nearest {
          case (#red(_, key, value, right) or #black(_, key, value, right)) {
            descend(right);
            ?(key, value)
          };
          case (#leaf) null;
        }
      };
    }
  };
}
