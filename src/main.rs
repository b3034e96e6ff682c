//! The program `stablebench`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    stablebench::run(std::env::args_os())
}
