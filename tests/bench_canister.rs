//! The bench canister as a whole, built by the tool, on the embedded replica.

mod bench;
