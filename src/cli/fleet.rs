//! `fleet`: runs `tasuki-fleet`, the bridge to other hosts, which is a program of its own. tasuki itself never talks to
//! the fleet's server.

use super::error::CliError;
use crate::exit;
use crate::files;
use clap::Args;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program that is run.
pub(super) const PROGRAM: &str = "tasuki-fleet";

/// `fleet`.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct FleetArgs {
    /// What tasuki-fleet takes; `tasuki fleet --help` lists its commands.
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<OsString>,
}

/// If the command line is that of `tasuki fleet`: the arguments for tasuki-fleet. These are the options before `fleet`
/// and everything after it, unchanged. `--tmux` before `fleet` is left out: tasuki-fleet needs no tmux server.
#[must_use]
pub fn arguments(args: &[OsString]) -> Option<Vec<OsString>> {
    let mut before = Vec::new();
    let mut rest = args.iter().skip(1);
    loop {
        let arg = rest.next()?;
        // A path need not be UTF-8.
        match arg.as_encoded_bytes() {
            b"fleet" => return Some(before.into_iter().chain(rest.cloned()).collect()),
            b"--home" | b"--timeout" => before.extend([arg.clone(), rest.next()?.clone()]),
            b"--json" => before.push(arg.clone()),
            b"--tmux" => drop(rest.next()?),
            option if option.starts_with(b"--tmux=") => {}
            option if option.starts_with(b"--home=") || option.starts_with(b"--timeout=") => before.push(arg.clone()),
            _ => return None,
        }
    }
}

/// Replaces this process by tasuki-fleet. Returns only if that was not possible.
#[must_use]
pub fn run(args: &[OsString]) -> CliError {
    let program = program();
    let error = Command::new(&program).args(args).exec();
    match error.kind() {
        io::ErrorKind::NotFound => no_fleet_program(),
        _ => CliError::file("Can't run", &program, &error),
    }
}

/// The path of tasuki-fleet: beside this program, else its name alone, which is looked up in `PATH`.
#[must_use]
pub(super) fn program() -> PathBuf {
    let Some(found) = std::env::current_exe().ok().and_then(|own| beside(&own)) else { return PROGRAM.into() };
    // If tasuki was started through a link, tasuki-fleet is started through the link beside it: it writes the path by
    // which it was started into its service file.
    let linked = files::own_program().ok().and_then(|own| beside(&own));
    linked.filter(|linked| files::is_same_file(linked, &found)).unwrap_or(found)
}

/// The program in the same folder as this one, where an installation puts it.
fn beside(own: &Path) -> Option<PathBuf> {
    Some(own.parent()?.join(PROGRAM)).filter(|path| path.is_file())
}

fn no_fleet_program() -> CliError {
    let message =
        format!("{PROGRAM}, the bridge to other hosts, is neither beside tasuki nor in PATH. Nothing was done.");
    CliError::new(exit::UNAVAILABLE, "no_fleet_program", message).hint(how_to_install())
}

/// How to get the program where it is missing.
#[must_use]
pub(super) fn how_to_install() -> String {
    format!(
        "Install the Debian package {PROGRAM}, or build it from the sources: \
         cargo install --locked --path . --features fleet --bin {PROGRAM}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn passed_on(line: &str) -> Option<Vec<String>> {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let text = |arg: OsString| arg.into_string().expect("UTF-8");
        arguments(&args).map(|args| args.into_iter().map(text).collect())
    }

    #[test]
    fn options_before_fleet_and_words_after_it_are_passed_on_unchanged() {
        let passed = |line: &str| passed_on(line).expect("it is for tasuki-fleet").join(" ");
        assert_eq!(passed("tasuki fleet join --as desk -x"), "join --as desk -x");
        assert_eq!(
            passed("tasuki --home /h --json --timeout=3s fleet hosts --help"),
            "--home /h --json --timeout=3s hosts --help"
        );
        assert_eq!(passed("tasuki fleet"), "");
        assert_eq!(passed("tasuki --tmux s --home /h --tmux=s fleet hosts --tmux x"), "--home /h hosts --tmux x");
    }

    #[test]
    fn a_home_whose_path_is_not_utf_8_is_passed_on() {
        let home = OsString::from_vec(b"--home=/h\xff".to_vec());
        let args = ["tasuki".into(), home.clone(), "fleet".into(), "status".into()];
        assert_eq!(arguments(&args), Some(vec![home, "status".into()]));
    }

    #[test]
    fn other_commands_are_not_taken_for_fleet() {
        for line in ["tasuki", "tasuki agents", "tasuki agents fleet", "tasuki --home fleet", "tasuki --wrong fleet"] {
            assert_eq!(passed_on(line), None, "{line}");
        }
    }

    #[test]
    fn a_program_in_the_same_folder_is_found() {
        let dir = tempfile::tempdir().expect("a folder");
        assert_eq!(beside(&dir.path().join("tasuki")), None);
        std::fs::write(dir.path().join(PROGRAM), "").expect("written");
        assert_eq!(beside(&dir.path().join("tasuki")), Some(dir.path().join(PROGRAM)));
    }
}
