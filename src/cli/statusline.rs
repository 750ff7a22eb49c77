//! `statusline`: what Claude Code runs to draw its status line. Like `hook`, it is recognised before anything is
//! parsed, because it must be fast and must never fail, and because the words after `--` are a command line of the
//! user's.

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

/// If the command line is that of `tasuki statusline`: the global options before `statusline`, followed by the
/// arguments after it. A line with `--help` as the only argument comes from a person and is left to the parser.
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

/// The same arguments, from a command line that the parser has read.
#[must_use]
pub fn words(args: &StatuslineArgs, home: Option<&Path>) -> Vec<OsString> {
    let home = home.into_iter().flat_map(|home| [OsString::from("--home"), home.into()]);
    home.chain([OsString::from("--")]).chain(args.former.iter().map(OsString::from)).collect()
}

/// Prints the status line. The outcome is ignored: the exit code of `tasuki statusline` is always 0.
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
