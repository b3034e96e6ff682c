//! A canister with DoltLite, and the interface of `bench`.
