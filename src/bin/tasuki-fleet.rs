//! The bridge between this home and the other hosts of its fleet.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    ExitCode::from(tasuki::bridge::main(&args))
}
