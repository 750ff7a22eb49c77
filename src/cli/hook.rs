//! `hook`: what an agent CLI runs at its own events. The program recognises it before anything else and without the
//! argument parser, because it must take only a few milliseconds and must never fail in a way that the CLI would act
//! on.

use crate::clock::Clock;
use crate::config::Home;
use crate::spool::overflow;
use clap::Args;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// `hook`.
#[derive(Debug, Args)]
pub struct HookArgs {
    /// The profile of the calling agent CLI.
    pub profile: Option<String>,
    /// The other arguments of the profile's hook.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub rest: Vec<OsString>,
}

/// If the command line is that of `tasuki hook`: the arguments after `hook`, followed by the options before it. A line
/// with `--help` as the only argument comes from a person and is left to the parser.
#[must_use]
pub fn arguments(args: &[OsString]) -> Option<Vec<OsString>> {
    let mut before = Vec::new();
    let mut rest = args.iter().skip(1);
    while let Some(arg) = rest.next() {
        match arg.to_str() {
            Some("hook") => {
                let own: Vec<OsString> = rest.cloned().collect();
                let help = matches!(own.as_slice(), [only] if only == "--help" || only == "-h");
                // The hook's own arguments come first: it takes the profile from the front.
                return (!help).then(|| own.into_iter().chain(before).collect());
            }
            Some("--home" | "--tmux" | "--timeout") => {
                before.push(arg.clone());
                before.extend(rest.next().cloned());
            }
            Some(option) if option.starts_with("--") => before.push(arg.clone()),
            _ => return None,
        }
    }
    None
}

/// The same arguments, from a command line that the parser has read.
#[must_use]
pub fn words(args: &HookArgs, home: Option<&Path>) -> Vec<OsString> {
    let own = args.profile.iter().map(OsString::from).chain(args.rest.iter().cloned());
    own.chain(home.into_iter().flat_map(|home| [OsString::from("--home"), home.into()])).collect()
}

/// Reports one event. The outcome is ignored: the exit code of `tasuki hook` is always 0.
pub fn run(args: &[OsString]) {
    let make_room = |home: &Path| overflow::make_room(home, || Clock::new().now());
    let _ = crate::agents::hook::main(args.iter().cloned(), usual_home, make_room);
}

/// The home of a command without `--home`.
pub(super) fn usual_home() -> Option<PathBuf> {
    Home::resolve(None).ok().map(|home| home.root().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Option<String> {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let own = arguments(&args)?;
        Some(own.iter().filter_map(|arg| arg.to_str()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_hook_is_found_before_anything_is_parsed() {
        assert_eq!(split("tasuki hook claude").as_deref(), Some("claude"));
        assert_eq!(split("tasuki hook").as_deref(), Some(""));
        assert_eq!(
            split("tasuki --home /h hook claude --event Stop").as_deref(),
            Some("claude --event Stop --home /h")
        );
        assert_eq!(split("tasuki --home=/h hook claude").as_deref(), Some("claude --home=/h"));
        assert_eq!(split("tasuki --no-such-option hook claude").as_deref(), Some("claude --no-such-option"));
    }

    #[test]
    fn other_commands_are_left_to_the_parser() {
        for line in
            ["tasuki", "tasuki send hook hook", "tasuki hooks show demo", "tasuki hook --help", "tasuki --home hook"]
        {
            assert_eq!(split(line), None, "{line}");
        }
    }
}
