//! What instrumenting makes of modules: as text, and as they run.

mod generated;
mod printed;
