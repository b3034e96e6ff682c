/// The canister of the suite collections: the methods that the suite uses of `bench.did`.
///
/// It is compiled twice, each time with another `Maps.mo`: with classical persistence and the library
/// `base`, and with enhanced orthogonal persistence and the library `core`.

import Prim "mo:⛔";
import Digests "Digests";
import Keys "Keys";
import Maps "Maps";
import Types "Types";
import Versions "Versions";

persistent actor {
  type Part = Types.Part;
  type Result<T> = Types.Result<T>;

  transient let SUITE = "collections";
  // The seeds of the entries that are generated, and of others.
  transient let GENERATED : Nat64 = 1;
  transient let OTHERS : Nat64 = 42;
  // The most entries that a query reads.
  transient let MAX_READ : Nat64 = 200_000;
  transient let MAX_COUNT : Nat64 = 10_000_000;

  // The collection in use, as an upgrade keeps it.
  var stored : ?(Text, Maps.Stored) = null;
  transient var opened : ?(Text, Maps.Collection) = null;
  transient var lastCall : Nat64 = 0;
  transient var staged : ?Staged = null;

  type Staged = { work : Types.Work; part : Part; collection : Maps.Collection };

  system func preupgrade() {
    switch opened {
      case (?(engine, collection)) { stored := ?(engine, collection.store()) };
      case null {};
    };
    opened := null;
  };

  // Admits a call: ids increase, so that a call that arrives twice is executed once.
  func admit(caller : Principal, callId : ?Nat64) : Result<()> {
    if (not Prim.isController(caller)) { return #Err(#NotController) };
    switch callId {
      case (?id) {
        if (id <= lastCall) { return #Err(#Repeated { last = lastCall }) };
        lastCall := id;
      };
      case null {};
    };
    #Ok
  };

  func decode(job : Types.Job) : Result<Types.Work> {
    if (job.suite != SUITE) { return #Err(#SuiteUnavailable { suite = job.suite }) };
    let work : ?Types.Work = from_candid (job.work);
    switch work {
      case (?work) #Ok work;
      case null #Err(#InvalidJob { suite = SUITE; message = "it is not Candid of that type" });
    }
  };

  // The collection of a job, which is created before the first job.
  func collection(work : Types.Work) : Result<Maps.Collection> {
    switch opened {
      case (?(engine, collection)) {
        if (engine == work.engine) { return #Ok collection };
        return #Err(#EngineUnavailable { engine = work.engine });
      };
      case null {};
    };
    if (work.entries > MAX_COUNT) { return #Err(#TooManyRows { limit = MAX_COUNT }) };
    switch (Maps.new(work.engine, work.entries)) {
      case (?map) {
        let collection = Maps.open(map);
        stored := ?(work.engine, map);
        opened := ?(work.engine, collection);
        #Ok collection
      };
      case null #Err(#EngineUnavailable { engine = work.engine });
    }
  };

  func prepare(part : Part) : Result<Staged> {
    if (part.count == 0) { return #Err(#NoRows) };
    if (part.from > MAX_COUNT or part.count > MAX_COUNT) {
      return #Err(#TooManyRows { limit = MAX_COUNT });
    };
    switch (decode(part.job)) {
      case (#Ok work) {
        if (part.each) {
          return #Err(#Unsupported { engine = work.engine; operation = "measure each operation" });
        };
        switch (collection(work)) {
          case (#Ok collection) #Ok { work; part; collection };
          case (#Err error) #Err error;
        }
      };
      case (#Err error) #Err error;
    }
  };

  func writes(work : Types.Work) : Bool {
    switch (work.task) {
      case (#generate or #put or #remove) true;
      case (#get or #get_existing) false;
    }
  };

  // Does the work. Returns the number of entries.
  func work({ work; part; collection } : Staged) : Nat64 {
    let seed = switch (work.task) {
      case (#generate or #get_existing or #remove) GENERATED;
      case (#get or #put) OTHERS;
    };
    let keys = Keys.after(seed, part.from);
    var left = part.count;
    var rows : Nat64 = 0;
    switch (work.task) {
      case (#generate or #put) {
        while (left > 0) {
          let key = keys.next();
          collection.put(key, key);
          left -= 1;
        };
        rows := part.count;
      };
      case (#get or #get_existing) {
        while (left > 0) {
          if (collection.get(keys.next()) != null) { rows += 1 };
          left -= 1;
        };
      };
      case (#remove) {
        while (left > 0) {
          if (collection.remove(keys.next())) { rows += 1 };
          left -= 1;
        };
      };
    };
    rows
  };

  func measured(staged : ?Staged) : Types.PartCost {
    let heapBefore = heapPages();
    let stableBefore = stablePages();
    let first = Prim.performanceCounter(0);
    let before = Prim.performanceCounter(0);
    let rows = switch staged {
      case (?staged) work(staged);
      case null 0 : Nat64;
    };
    let after = Prim.performanceCounter(0);
    let measurement = {
      instructions = after - before;
      counter_overhead = before - first;
      message_instructions = after;
      rows;
      bytes = 8 * rows;
      heap_pages_before = heapBefore;
      heap_pages_after = heapPages();
      stable_pages_before = stableBefore;
      stable_pages_after = stablePages();
    };
    { measurement; each = [] }
  };

  func heapPages() : Nat64 { Prim.natToNat64((Prim.rts_memory_size() + 65_535) / 65_536) };

  func stablePages() : Nat64 { Prim.natToNat64(Prim.rts_stable_memory_size()) };

  // The digest of what a part reads.
  func found({ work; part; collection } : Staged) : ?Types.Digest {
    if (writes(work)) { return null };
    let seed = switch (work.task) {
      case (#get) OTHERS;
      case _ GENERATED;
    };
    let keys = Keys.after(seed, part.from);
    let digest = Digests.Running(Digests.empty);
    var left = part.count;
    while (left > 0) {
      let key = keys.next();
      switch (collection.get(key)) {
        case (?value) { digest.add(key, value) };
        case null {};
      };
      left -= 1;
    };
    ?digest.value()
  };

  /// Prepares a part for run.
  public shared ({ caller }) func stage(part : Part) : async Result<()> {
    switch (admit(caller, null)) {
      case (#Err error) { return #Err error };
      case (#Ok) {};
    };
    switch (prepare(part)) {
      case (#Ok prepared) {
        staged := ?prepared;
        #Ok
      };
      case (#Err error) #Err error;
    }
  };

  /// Does the staged part once, measured.
  public shared ({ caller }) func run(call_id : Nat64) : async Result<Types.PartCost> {
    switch (admit(caller, ?call_id)) {
      case (#Err error) { return #Err error };
      case (#Ok) {};
    };
    let part = staged;
    staged := null;
    #Ok(measured(part))
  };

  /// The same for a part that does not write.
  public query func run_query() : async Result<Types.PartCost> {
    switch staged {
      case (?{ work }) {
        if (writes(work)) {
          return #Err(#Unsupported { engine = work.engine; operation = "write in a query" });
        };
      };
      case null {};
    };
    #Ok(measured(staged))
  };

  /// What a part reads.
  public query func results(part : Part) : async Result<?Types.Digest> {
    switch (prepare(part)) {
      case (#Ok prepared) #Ok(found(prepared));
      case (#Err error) #Err error;
    }
  };

  /// Prepares and does a part.
  public shared ({ caller }) func execute(part : Part, call_id : ?Nat64) : async Result<Types.Executed> {
    switch (admit(caller, call_id)) {
      case (#Err error) { return #Err error };
      case (#Ok) {};
    };
    switch (prepare(part)) {
      case (#Ok prepared) {
        let { measurement; each } = measured(?prepared);
        #Ok { measurement; each; results = found(prepared) }
      };
      case (#Err error) #Err error;
    }
  };

  /// Adds at most limit entries to a digest.
  public query func content(job : Types.Job, part : ?Types.DigestPart, limit : Nat64) : async Result<Types.DigestPart> {
    if (limit == 0) { return #Err(#NoRows) };
    if (limit > MAX_READ) { return #Err(#TooManyRows { limit = MAX_READ }) };
    let { digest; position; done } = switch part {
      case (?part) part;
      case null ({ digest = Digests.empty; position = 0 : Nat64; done = false; message_instructions = 0 : Nat64 });
    };
    if done { return #Err(#DigestDone) };
    let entries = switch (decode(job)) {
      case (#Ok work) {
        switch (collection(work)) {
          case (#Ok collection) collection.entries(position);
          case (#Err error) { return #Err error };
        }
      };
      case (#Err error) { return #Err error };
    };
    let running = Digests.Running(digest);
    var next = entries.next();
    var left = limit;
    label reading while (left > 0) {
      let ?(_, key, value) = next else break reading;
      running.add(key, value);
      next := entries.next();
      left -= 1;
    };
    let (following, last) = switch next {
      case (?(position, _, _)) (position, false);
      case null (0 : Nat64, true);
    };
    #Ok {
      digest = running.value();
      position = following;
      done = last;
      message_instructions = Prim.performanceCounter(0);
    }
  };

  public query func inspect(job : Types.Job) : async Result<Types.Inspected> {
    switch (decode(job)) {
      case (#Ok _) {
        let stored_bytes = Prim.natToNat64(Prim.rts_heap_size());
        #Ok { stored_bytes; virtual_bytes = 0; cache_bytes = 0; sqlite = null; objects = [] }
      };
      case (#Err error) #Err error;
    }
  };

  public query func describe() : async Result<Types.Description> {
    #Ok {
      occupant = switch stored {
        case (?(engine, #table _)) #floor engine;
        case _ #nobody;
      };
      engines = [];
      payload_bytes = 8;
      max_rows = MAX_READ;
      heap_pages = heapPages();
      stable_pages = stablePages();
      sqlite = null;
      crates = Versions.all;
    }
  };

  // After an installation, and after an upgrade.
  switch stored {
    case (?(engine, map)) { opened := ?(engine, Maps.open(map)) };
    case null {};
  };
}
