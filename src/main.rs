//! Arguments → command → exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let command = args.next();
    ExitCode::from(match command.as_ref().and_then(|word| word.to_str()) {
        Some("hook") => tasuki::agents::hook::main(args),
        Some("demo-agent") => tasuki::demo::agent::main(args),
        _ => tasuki::exit::USAGE,
    })
}
