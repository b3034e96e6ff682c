//! The work of the suite.
