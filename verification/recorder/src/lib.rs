//! Cases for the embedded replica: generates them, and records what a PocketIC server answers.
//!
//! ```text
//!   generate ──► cases ──► record (PocketIC server) ──► cases with expected answers
//!                                                            │
//!                              check (embedded replica) ◄────┤
//!                              verify (another server)  ◄────┘
//! ```
//!
//! `crates/conformance` has the format of cases, the recorded ones, and the program that checks them.
//! The program is `recorder`; `docs/metering.md` describes its commands.

#![forbid(unsafe_code)]

pub mod record;

/// Generated cases, to be recorded.
///
/// They have no expected answers. The same seed generates the same cases on every machine.
///
/// | | |
/// |---|---|
/// | `modules` | measurements of each operator and each System API call |
/// | `random` | random programs: the cost of operators and control flow together |
/// | `canister` | random calls to the bench canister: real code |
/// | `calls` | random calls between canisters |
/// | `management` | calls of the management canister |
/// | `settings` | what settings do: heap limits, low memory, environment, storage, reserved cycles |
/// | `motoko` | Motoko's actors |
/// | `services` | HTTPS outcalls and threshold signatures |
/// | `snapshots` | snapshots that are read and uploaded |
pub mod generate {
    pub mod calls;
    pub mod canister;
    pub mod management;
    pub mod modules;
    pub mod motoko;
    pub mod random;
    mod script;
    pub mod services;
    pub mod settings;
    pub mod snapshots;
}
