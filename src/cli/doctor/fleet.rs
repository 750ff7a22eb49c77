//! Checks this home as a host of its fleet. If it has joined no fleet, there is nothing to check. tasuki itself talks
//! to no server, so it runs `tasuki-fleet checks` and reads the findings from its output. Time and length of that
//! output are limited. If any part of it is not a check of the group `fleet`, all of it is refused.

use super::check::{Check, CheckState};
use super::ground::{DoctorFacts, wait_for};
use super::report::Line;
use crate::child::Grouped;
use crate::cli::fleet::{how_to_install, program};
use crate::cli::hosts;
use crate::config::Home;
use crate::core::text::{sanitise, shell_word};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

/// How long the program may take.
pub(super) const WITHIN: Duration = Duration::from_secs(20);
/// The most that it may print, in bytes.
const MOST_BYTES: u64 = 256 << 10;
/// The most checks that it may print.
const MOST_CHECKS: usize = 100;
/// How long its standard error is still read after its end.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// The check of the program itself.
const ID: &str = "fleet.program";

/// What `tasuki-fleet checks --json` prints.
#[derive(Debug, Serialize, Deserialize)]
pub struct FleetChecks {
    /// The format's version: 1.
    pub v: u8,
    /// The version of tasuki-fleet.
    pub version: String,
    /// The result of every check.
    pub checks: Vec<Line>,
}

/// What the program has printed.
struct Printed {
    code: Option<i32>,
    out: Vec<u8>,
    err: Vec<u8>,
}

pub(super) fn look(ground: &DoctorFacts) -> Vec<Check> {
    match hosts::own_name(&ground.home).map(|name| name.is_some()) {
        Ok(false) => Vec::new(),
        Ok(true) => {
            let (program, home) = (program(), &ground.home);
            let asked = wait_for(async { tokio::time::timeout(WITHIN, ask(&program, home)).await });
            let asked = asked.and_then(|asked| asked.map_err(|_| io::ErrorKind::TimedOut.into()).flatten());
            judge(&program.display().to_string(), home, asked)
        }
        Err(error) => vec![Check::fail("fleet.host", error.message, "check that file: without it no bridge can run")],
    }
}

async fn ask(program: &Path, home: &Home) -> io::Result<Printed> {
    let mut command = Command::new(program);
    command.arg("--home").arg(home.root()).args(["--json", "checks"]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // When `run` is dropped, as at the time limit, the program and everything that it has started are ended.
    let mut run = Grouped::spawn(&mut command)?;
    let (out, err) = (run.child().stdout.take(), run.child().stderr.take());
    let err = tokio::spawn(beginning(err));
    let out = beginning(out).await?;
    if out.len() as u64 > MOST_BYTES {
        return Err(io::Error::other("it printed too much"));
    }
    let code = run.child().wait().await?.code();
    // A program that it has started may still hold its standard error open.
    let err = tokio::time::timeout(LAST_WORDS, err).await;
    let err = err.map_or(Ok(Ok(Vec::new())), |read| read).map_err(io::Error::other)??;
    Ok(Printed { code, out, err })
}

async fn beginning(from: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(MOST_BYTES + 1).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

fn judge(program: &str, home: &Home, asked: io::Result<Printed>) -> Vec<Check> {
    let by_hand =
        format!("see what it says: {program} --home {} checks", shell_word(&home.root().display().to_string()));
    let printed = match asked {
        Ok(printed) => printed,
        Err(error) => return vec![not_run(program, &error, by_hand)],
    };
    let Some(FleetChecks { version, checks, .. }) = read(&printed.out) else {
        let code = printed.code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
        let err = String::from_utf8_lossy(&printed.err);
        let first = err.lines().map(str::trim).find(|line| !line.is_empty());
        let first = first.map(|line| format!(": {}", sanitise(line))).unwrap_or_default();
        let said = format!("{program} did not print its checks; it ended with {code}{first}");
        let fix = format!("install the same version as this command, {}; or {by_hand}", env!("CARGO_PKG_VERSION"));
        return vec![Check::fail(ID, said, fix)];
    };
    let own = env!("CARGO_PKG_VERSION");
    let mut all = vec![if version == own {
        Check::ok(ID, format!("{program} is {own}, the same version as this command"))
    } else {
        let said = format!("{program} has version {}, this command {own}", sanitise(&version));
        Check::warn(ID, said, "install the same version of both, and start the bridge again")
    }];
    all.extend(checks.into_iter().filter_map(check));
    all
}

fn not_run(program: &str, error: &io::Error, by_hand: String) -> Check {
    match error.kind() {
        io::ErrorKind::NotFound => {
            let said = "tasuki-fleet, the bridge to other hosts, is neither beside tasuki nor in PATH, \
                        so this home is cut off from its fleet";
            Check::fail(ID, said, how_to_install())
        }
        io::ErrorKind::TimedOut => {
            let said = format!("{program} did not finish its checks within {} s and was ended", WITHIN.as_secs());
            Check::fail(ID, said, by_hand)
        }
        _ => Check::fail(ID, format!("{program} can't be used: {error}"), by_hand),
    }
}

/// Reads what was printed. None if any part of it is not a check of this group.
fn read(out: &[u8]) -> Option<FleetChecks> {
    let read: FleetChecks = serde_json::from_slice(out).ok()?;
    let is_ours = |line: &Line| {
        let name = line.id.strip_prefix("fleet.").filter(|name| !name.is_empty() && name.len() <= 32);
        name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_lowercase())) && state(&line.status).is_some()
    };
    (read.v == 1 && read.checks.len() <= MOST_CHECKS && read.checks.iter().all(is_ours)).then_some(read)
}

fn state(word: &str) -> Option<CheckState> {
    let states = [CheckState::Ok, CheckState::Warn, CheckState::Fail, CheckState::Skipped];
    states.into_iter().find(|state| state.as_str() == word)
}

fn check(line: Line) -> Option<Check> {
    let state = state(&line.status)?;
    Some(Check { state, fix: line.fix, ..Check::ok(line.id, line.said) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(asked: io::Result<Printed>) -> Vec<(String, CheckState, String)> {
        let home = Home::at(Path::new("/my home")).expect("a home");
        let checks = judge("/bin/tasuki-fleet", &home, asked);
        checks.into_iter().map(|check| (check.id, check.state, format!("{} {:?}", check.said, check.fix))).collect()
    }

    fn printed(out: &str, err: &str, code: i32) -> io::Result<Printed> {
        Ok(Printed { code: Some(code), out: out.as_bytes().to_vec(), err: err.as_bytes().to_vec() })
    }

    fn line(id: &str, status: &str) -> String {
        format!(r#"{{"id":"{id}","group":"fleet","status":"{status}","said":"x","fix":null,"fixed":null}}"#)
    }

    fn document(version: &str, lines: &[String]) -> String {
        format!(r#"{{"v":1,"version":"{version}","checks":[{}],"later":1}}"#, lines.join(","))
    }

    #[test]
    fn its_checks_are_taken_as_they_are() {
        let own = env!("CARGO_PKG_VERSION");
        let found = judged(printed(&document(own, &[line("fleet.server", "fail"), line("fleet.lease", "ok")]), "", 0));
        let found: Vec<_> = found.iter().map(|(id, state, _)| (id.as_str(), *state)).collect();
        let fail = ("fleet.server", CheckState::Fail);
        assert_eq!(found, [("fleet.program", CheckState::Ok), fail, ("fleet.lease", CheckState::Ok)]);
        assert_eq!(judged(printed(&document("0.0.9", &[]), "", 0))[0].1, CheckState::Warn);
    }

    #[test]
    fn output_that_is_not_its_checks_is_one_failure() {
        let own = env!("CARGO_PKG_VERSION");
        for rubbish in [
            String::new(),
            "rubbish".to_owned(),
            "[]".to_owned(),
            document(own, &[line("tmux.server", "ok")]),
            document(own, &[line("fleet.", "ok")]),
            document(own, &[line("fleet.x\\u001b", "ok")]),
            document(own, &[line("fleet.server", "fine")]),
            document(own, &vec![line("fleet.server", "ok"); MOST_CHECKS + 1]),
            document(own, &[]).replace(r#""v":1"#, r#""v":2"#),
        ] {
            let found = judged(printed(&rubbish, "\n error: unrecognized subcommand\nmore", 2));
            assert_eq!(found.len(), 1, "{rubbish}");
            assert_eq!((found[0].0.as_str(), found[0].1), ("fleet.program", CheckState::Fail), "{rubbish}");
            assert!(found[0].2.contains("exit code 2: error: unrecognized subcommand"), "{}", found[0].2);
            assert!(found[0].2.contains("--home '/my home' checks"), "{}", found[0].2);
        }
    }

    #[test]
    fn a_program_that_does_not_run_is_one_failure() {
        let (missing, late) = (io::ErrorKind::NotFound.into(), io::ErrorKind::TimedOut.into());
        let odd = io::Error::other("it printed too much");
        for (error, told) in [(missing, "cargo install"), (late, "within 20 s"), (odd, "printed too much")] {
            let found = judged(Err(error));
            assert!(found.len() == 1 && found[0].1 == CheckState::Fail && found[0].2.contains(told), "{found:?}");
        }
    }
}
