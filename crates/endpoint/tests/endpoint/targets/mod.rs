//! What fuzzing does with its bytes, for `cargo fuzz` and for the tests alike.
//!
//! ```text
//!   request_body          bytes → requests of every kind, whole and damaged → every address
//!   management_argument   bytes → Candid, whole and damaged → every management method
//!   state_path            bytes → paths of the state tree → read_state
//!
//!   subject    the endpoint that is asked, and what holds of every answer
//!   envelope   requests, and the values of CBOR that they are made of
//!   candid     arguments of the management canister
//! ```
//!
//! A target panics where something does not hold. Bytes that make no input are ignored.

mod candid;
mod envelope;
mod management_argument;
#[path = "../../../../replica/tests/fuzzing/targets/met.rs"]
mod met;
mod request_body;
mod state_path;
mod subject;

#[path = "../../../../replica/tests/fuzzing/targets/damage.rs"]
mod damage;
#[path = "../../../../replica/tests/fuzzing/targets/host.rs"]
mod host;

#[allow(unused_imports, reason = "asked for by other tests")]
pub use self::candid::METHODS;
pub use management_argument::management_argument;
#[allow(unused_imports, reason = "asked for by the bounded runs")]
pub use met::all_met;
pub use request_body::request_body;
pub use state_path::state_path;
