/// The interface of the canister: the part of `bench.did` that the suite collections uses.

module {
  public type Error = {
    #NotController;
    #Repeated : { last : Nat64 };
    #NoRows;
    #TooManyRows : { limit : Nat64 };
    #SuiteUnavailable : { suite : Text };
    #InvalidJob : { suite : Text; message : Text };
    #EngineUnavailable : { engine : Text };
    #Unsupported : { engine : Text; operation : Text };
    #DigestDone;
  };

  public type Result<T> = { #Ok : T; #Err : Error };

  public type Job = { suite : Text; work : Blob };

  public type Part = { job : Job; seed : Nat64; from : Nat64; count : Nat64; each : Bool };

  /// The work of a job of the suite collections.
  public type Work = {
    engine : Text;
    entries : Nat64;
    task : { #generate; #get; #get_existing; #put; #remove };
  };

  public type Measurement = {
    instructions : Nat64;
    counter_overhead : Nat64;
    message_instructions : Nat64;
    rows : Nat64;
    bytes : Nat64;
    heap_pages_before : Nat64;
    heap_pages_after : Nat64;
    stable_pages_before : Nat64;
    stable_pages_after : Nat64;
  };

  public type OperationCost = { instructions : Nat64; allocated : Int64 };

  public type PartCost = { measurement : Measurement; each : [OperationCost] };

  public type Digest = { rows : Nat64; low : Nat64; high : Nat64 };

  public type DigestPart = {
    digest : Digest;
    position : Nat64;
    done : Bool;
    message_instructions : Nat64;
  };

  public type Executed = {
    measurement : Measurement;
    each : [OperationCost];
    results : ?Digest;
  };

  public type EngineDescription = {
    engine : Text;
    rows : Nat64;
    stored_bytes : Nat64;
    virtual_bytes : Nat64;
    cache_bytes : Nat64;
    digest : ?Digest;
  };

  public type Version = { name : Text; version : Text };

  public type Description = {
    occupant : { #nobody; #floor : Text };
    engines : [EngineDescription];
    payload_bytes : Nat32;
    max_rows : Nat64;
    heap_pages : Nat64;
    stable_pages : Nat64;
    sqlite : ?{ version : Text; compile_options : [Text] };
    crates : [Version];
  };

  public type Inspected = {
    stored_bytes : Nat64;
    virtual_bytes : Nat64;
    cache_bytes : Nat64;
    sqlite : ?{};
    objects : [{}];
  };

  /// Entries, each with its position: its key where a collection is ordered and can be read from a key
  /// on, its slot in a table, and else its number.
  public type Entries = { next : () -> ?(position : Nat64, key : Nat64, value : Nat64) };

  /// A map from numbers to numbers, whatever it is made of.
  public type Collection<Stored> = {
    get : (key : Nat64) -> ?Nat64;
    put : (key : Nat64, value : Nat64) -> ();
    /// Removes a key. Returns whether it was there.
    remove : (key : Nat64) -> Bool;
    /// The entries from a position on, in the same order as long as none changes.
    entries : (from : Nat64) -> Entries;
    /// What an upgrade keeps.
    store : () -> Stored;
  };
}
