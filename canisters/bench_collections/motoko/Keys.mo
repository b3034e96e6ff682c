/// The keys: a Lehmer generator with the factor and the seeds of canister-profiling.

module {
  let FACTOR : Nat64 = 48_271;
  let MODULUS : Nat64 = 0x7fff_ffff;

  public type Keys = { next : () -> Nat64 };

  /// The keys after the first `skipped` ones of a seed.
  public func after(seed : Nat64, skipped : Nat64) : Keys {
    var state = seed * power(skipped) % MODULUS;
    {
      next = func() : Nat64 {
        state := state * FACTOR % MODULUS;
        state >> 4
      };
    }
  };

  /// The factor to a power, modulo the modulus.
  func power(exponent : Nat64) : Nat64 {
    var product : Nat64 = 1;
    var square = FACTOR;
    var rest = exponent;
    while (rest > 0) {
      if (rest & 1 == 1) { product := product * square % MODULUS };
      square := square * square % MODULUS;
      rest >>= 1;
    };
    product
  };
}
