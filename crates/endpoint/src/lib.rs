//! The Internet Computer's HTTP interface over the embedded replica.
