//! Asks the program `ps` about processes, on systems other than Linux and macOS. It does not tell the environment of a
//! process, and it does not tell the start exactly enough to identify a process by it.

use super::stat::Stat;
use crate::core::pane::Process;
use std::io;
use std::process::Command;

/// Whether this system says when a process started, which tells it from a later process with the same id.
pub(super) const KNOWS_STARTS: bool = false;
/// Whether this system lets us read the environment of another process of our user.
pub(super) const READS_ENVIRONMENTS: bool = false;

/// The program, at the place where all systems have it.
const PROGRAM: &str = "/bin/ps";

/// What `ps` says about a process; none if there is no such process, or if `ps` can't be run.
pub(super) fn look(pid: u32) -> io::Result<Option<Stat>> {
    let ask = ["-o", "state=,ppid=,tpgid=", "-p", &pid.to_string()].map(str::to_owned);
    let output = Command::new(PROGRAM).args(ask).output().ok();
    Ok(output.and_then(|output| parse(&String::from_utf8_lossy(&output.stdout))))
}

fn parse(line: &str) -> Option<Stat> {
    let mut words = line.split_whitespace();
    let state = *words.next()?.as_bytes().first()?;
    Some(Stat { state, parent: words.next()?.parse().ok()?, foreground: words.next()?.parse().ok()?, start_ticks: 0 })
}

/// As [`super::arguments`], but an argument with blanks becomes several.
pub(super) fn arguments(pid: u32) -> io::Result<Option<Vec<String>>> {
    let output = Command::new(PROGRAM).args(["-o", "args=", "-p", &pid.to_string()]).output()?;
    let words: Vec<String> = String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect();
    Ok((!words.is_empty()).then_some(words))
}

/// As [`super::environment`]. This system does not tell it.
pub(super) fn environment(_pid: u32, _name: &str) -> io::Result<Option<String>> {
    Ok(None)
}

/// As [`super::environment_all`]. This system does not tell it.
pub(super) fn environment_all(_pid: u32) -> io::Result<Option<Vec<(String, String)>>> {
    Ok(None)
}

/// The ids of all processes. This system does not tell them.
pub(super) fn processes(_most: usize) -> io::Result<Vec<u32>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// As [`super::started_ms`]. This system does not tell it.
pub(super) fn started_ms(_process: &Process, _booted_ms: i64) -> Option<i64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_ps_is_read_and_a_headline_is_not_one() {
        assert_eq!(parse("Ss+  7 99\n"), Some(Stat { state: b'S', parent: 7, foreground: 99, start_ticks: 0 }));
        assert_eq!(parse("T 7 -1"), Some(Stat { state: b'T', parent: 7, foreground: -1, start_ticks: 0 }));
        assert_eq!(parse("STAT PPID TPGID"), None);
        assert_eq!(parse(""), None);
    }
}
