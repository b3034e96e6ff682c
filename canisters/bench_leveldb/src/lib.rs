//! A canister with LevelDB, and the interface of `bench`.
