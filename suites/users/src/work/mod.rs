//! The rows of operations, and the model of an engine's rows.

mod model;
mod rows;

pub use model::{UsersModel, check_single, selected, stream};
pub use rows::{IdSet, Ids, Payload, STEP, Selected};
