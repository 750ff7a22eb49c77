//! Arguments → command → exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    ExitCode::from(tasuki::cli::main(&args))
}
