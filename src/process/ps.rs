//! What other systems say of processes: the program `ps`. It tells neither when a process was made, as exactly as it would
//! have to, nor its environment.

use super::stat::Stat;
use crate::core::pane::Process;
use std::io;
use std::process::Command;

/// Whether the start of a process can be told here, so that a process is known from a later one with the same id.
pub(super) const KNOWS_STARTS: bool = false;
/// Whether the environment of another process of ours can be read here.
pub(super) const READS_ENVIRONMENTS: bool = false;

/// The program, at the place where all systems have it.
const PROGRAM: &str = "/bin/ps";

/// What `ps` says about a process; none if there is no such process, or if it can't be run.
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

/// As [`super::arguments`]; an argument with blanks in it seems to be several.
pub(super) fn arguments(pid: u32) -> io::Result<Option<Vec<String>>> {
    let output = Command::new(PROGRAM).args(["-o", "args=", "-p", &pid.to_string()]).output()?;
    let words: Vec<String> = String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect();
    Ok((!words.is_empty()).then_some(words))
}

/// As [`super::environment`]: not to be had on this system.
pub(super) fn environment(_pid: u32, _name: &str) -> io::Result<Option<String>> {
    Ok(None)
}

/// As [`super::environment_all`]: not to be had on this system.
pub(super) fn environment_all(_pid: u32) -> io::Result<Vec<(String, String)>> {
    Ok(Vec::new())
}

/// The ids of all processes: not to be had on this system.
pub(super) fn processes(_most: usize) -> io::Result<Vec<u32>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// As [`super::started_ms`]: not to be had on this system.
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
