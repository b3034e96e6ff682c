//! The table against a `BTreeMap`, and against damage.

mod build;
mod damage;
mod life;
mod model;
mod reads;
mod support;
