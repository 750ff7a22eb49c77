//! Asks a CLI for its version if its screen does not look as its profile expects, because screens change from version
//! to version.

use super::Tools;
use crate::agents::format::VersionSection;
use crate::child::Grouped;
use crate::core::text::sanitise;
use std::ffi::{OsStr, OsString};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// How long the CLI may take to print its version.
const LIMIT: Duration = Duration::from_secs(10);
/// The most bytes of its output that are read.
const MAX_SAID: u64 = 4 * 1024;
/// Longest version that is shown, in characters.
const MAX_SHOWN: usize = 80;

/// A clause about the version, to be appended to a message. It is empty if the profile was tried with this version, or
/// if the version is not known.
pub(super) async fn remark(tools: &Tools, profile: &str) -> String {
    let Some(version) = tools.profiles.get(profile).and_then(|profile| profile.file.version.clone()) else {
        return String::new();
    };
    let path = tools.tmux.variable("", "PATH").await.ok().flatten().map(OsString::from);
    let said = tokio::time::timeout(LIMIT, ask(&version, path.as_deref())).await.ok().flatten();
    said.map(|said| untried_clause(&version, &said)).unwrap_or_default()
}

/// The clause of [`remark`]: empty if the profile was tried with the version that the CLI has printed.
fn untried_clause(version: &VersionSection, said: &str) -> String {
    match is_tried(version, said) {
        true => String::new(),
        false => format!(
            "; this version of the CLI was never tried with this profile: the CLI reports {}, tried was {}",
            shown(said),
            version.tried.join(", ")
        ),
    }
}

/// Whether a CLI's output (`said`) names a version with which the profile was tried. Only a whole version counts:
/// `0.73.10` does not name `0.73.1`.
#[must_use]
pub fn is_tried(version: &VersionSection, said: &str) -> bool {
    let is_part = |char: char| char.is_alphanumeric() || matches!(char, '.' | '-' | '+' | '_');
    let names = |tried: &str| {
        said.match_indices(tried).any(|(at, _)| {
            let (before, after) = (&said[..at], &said[at + tried.len()..]);
            // `v` may precede a version, and a point may end a sentence.
            let before = before.strip_suffix('v').unwrap_or(before);
            let after = after.strip_prefix('.').filter(|rest| !rest.starts_with(is_part)).unwrap_or(after);
            !before.ends_with(is_part) && !after.starts_with(is_part)
        })
    };
    version.tried.iter().any(|tried| names(tried))
}

/// The first line of a CLI's output about its version, without control characters and cut to a length that can be
/// shown.
#[must_use]
pub fn shown(said: &str) -> String {
    sanitise(said).lines().next().unwrap_or_default().trim().chars().take(MAX_SHOWN).collect()
}

/// Asks the CLI for its version, and returns the first 4 KiB of the output. `path` is the `PATH` of new tmux windows;
/// if there is none, tasuki's own `PATH` is used. `None` if the program can't be started or prints nothing. The caller
/// limits how long this may take: dropping the future kills the program.
pub async fn ask(version: &VersionSection, path: Option<&OsStr>) -> Option<String> {
    let (program, arguments) = version.argv.split_first()?;
    let mut command = Command::new(program);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut group = Grouped::spawn(&mut command).ok()?;
    let mut said = Vec::new();
    group.child().stdout.take()?.take(MAX_SAID).read_to_end(&mut said).await.ok()?;
    let said = String::from_utf8_lossy(&said).into_owned();
    (!said.trim().is_empty()).then_some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_version_that_was_never_tried_is_mentioned() {
        let version = VersionSection { argv: vec!["x".to_owned()], tried: vec!["2.1.328".to_owned()] };
        assert_eq!(untried_clause(&version, "2.1.328 (Claude Code)\n"), "");
        let told = untried_clause(&version, "9.9.9\u{1b}[31m (Claude Code)\nmore\n");
        assert_eq!(
            told,
            "; this version of the CLI was never tried with this profile: the CLI reports 9.9.9[31m (Claude Code), tried was 2.1.328"
        );
    }

    #[test]
    fn a_tried_version_is_only_found_as_a_whole_version() {
        let version = VersionSection { argv: vec!["x".to_owned()], tried: vec!["0.73.1".to_owned()] };
        for said in ["0.73.1", "codex-cli 0.73.1\n", "v0.73.1 (x)", "This is 0.73.1.", "0.73.10, not 0.73.1"] {
            assert!(is_tried(&version, said), "{said}");
        }
        for said in ["0.73.10", "10.73.1", "1.0.73.1", "0.73.1.2", "0.73.1-alpha.1", "codex-cli 0.73.19\n"] {
            assert!(!is_tried(&version, said), "{said}");
        }
    }
}
