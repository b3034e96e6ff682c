//! Nothing: Cargo asks for build dependencies only where there is a build script.

fn main() {}
