//! The suite keys: a link table of users and movies, under four kinds of key and five
//! declarations of its primary key.
//!
//! ```text
//!   for each schema and kind of key:   create → movies → users → lists, measured
//!                                        ├─ fork: the movies that a user wants to watch
//!                                        └─ fork: the users who want to watch a movie
//! ```
//!
//! Each row of the tables is a schema, and each column a kind of key.

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "the help describes the options")]

mod claims;
mod plan;
mod size;
mod tables;

pub use plan::KeysSuite;
