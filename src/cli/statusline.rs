//! `statusline`: what Claude Code runs to draw its status line. Like `hook` it is recognised before anything is parsed:
//! it must be fast and must never fail, and the command line that it passes on is the user's.

use clap::Args;
use std::ffi::OsString;
use std::path::Path;

/// `statusline`.
#[derive(Debug, Args)]
pub struct StatuslineArgs {
    /// Your own status line command, which gets the same standard input.
    #[arg(last = true, value_name = "COMMAND")]
    pub former: Vec<String>,
}

/// The arguments behind `statusline`, if that is what the command line asks for; the options of every command may go
/// before it. `--help` as its only argument is a person's question, and goes to the parser.
#[must_use]
pub fn arguments(args: &[OsString]) -> Option<Vec<OsString>> {
    let mut before = Vec::new();
    let mut rest = args.iter().skip(1);
    loop {
        let arg = rest.next()?;
        match arg.to_str()? {
            "statusline" => {
                let own: Vec<OsString> = rest.cloned().collect();
                let help = matches!(own.as_slice(), [only] if only == "--help" || only == "-h");
                return (!help).then(|| before.into_iter().chain(own).collect());
            }
            "--home" | "--timeout" => before.extend([arg.clone(), rest.next()?.clone()]),
            "--json" => before.push(arg.clone()),
            option if option.starts_with("--home=") || option.starts_with("--timeout=") => before.push(arg.clone()),
            _ => return None,
        }
    }
}

/// The arguments as the parser has read them.
#[must_use]
pub fn words(args: &StatuslineArgs, home: Option<&Path>) -> Vec<OsString> {
    let home = home.into_iter().flat_map(|home| [OsString::from("--home"), home.into()]);
    home.chain([OsString::from("--")]).chain(args.former.iter().map(OsString::from)).collect()
}

/// Draws it; it always ends with exit code 0.
pub fn run(args: &[OsString]) {
    let _ = crate::agents::statusline::main(args.iter().cloned(), super::hook::usual_home);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statusline_command_is_found_before_anything_is_parsed() {
        let split = |line: &str| {
            let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            arguments(&args).map(|own| own.iter().filter_map(|arg| arg.to_str()).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(split("tasuki statusline -- a --help").as_deref(), Some("-- a --help"));
        assert_eq!(split("tasuki --home /h statusline").as_deref(), Some("--home /h"));
        assert_eq!(split("tasuki --home=/h --json statusline -- a").as_deref(), Some("--home=/h --json -- a"));
        assert_eq!(split("tasuki --timeout 5s statusline").as_deref(), Some("--timeout 5s"));
        for line in ["tasuki", "tasuki agents", "tasuki statusline --help", "tasuki --home statusline"] {
            assert_eq!(split(line), None, "{line}");
        }
    }
}
