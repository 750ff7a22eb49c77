//! Asks the kernel of macOS about processes. It says nothing about processes of another user.

use super::stat::{Stat, name_and_value, variable};
use crate::core::pane::Process;
use crate::darwin::{self, BsdState};
use crate::limits;
use nix::errno::Errno;
use std::io;

/// Whether this system says when a process started, which tells it from a later process with the same id.
pub(super) const KNOWS_STARTS: bool = true;
/// Whether this system lets us read the environment of another process of our user.
pub(super) const READS_ENVIRONMENTS: bool = true;

/// What the kernel says about a process; none if there is no such process. An error only means that we could not look.
pub(super) fn look(pid: u32) -> io::Result<Option<Stat>> {
    let facts = match darwin::bsd_facts(pid) {
        Ok(facts) => facts,
        Err(error) if limits::is_absence(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let state = match facts.state {
        BsdState::Runs => b'S',
        BsdState::Stopped => b'T',
        BsdState::Zombie => b'Z',
    };
    let foreground = if facts.foreground == 0 { -1 } else { i64::from(facts.foreground) };
    Ok(Some(Stat { state, parent: facts.parent, foreground, start_ticks: facts.started_us }))
}

/// As [`super::arguments`].
pub(super) fn arguments(pid: u32) -> io::Result<Option<Vec<String>>> {
    let Some(bytes) = bytes(pid)? else { return Ok(None) };
    let words = darwin::start_words(&bytes).map(|words| words.arguments).unwrap_or_default();
    let words: Vec<String> = words.into_iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    Ok((!words.is_empty()).then_some(words))
}

/// As [`super::environment`].
pub(super) fn environment(pid: u32, name: &str) -> io::Result<Option<String>> {
    let bytes = bytes(pid)?.unwrap_or_default();
    Ok(darwin::start_words(&bytes).and_then(|words| variable(words.environment.into_iter(), name)))
}

/// As [`super::environment_all`]. The kernel leaves the environment of a protected program out. That looks like an
/// empty environment, so an empty one counts as not told.
pub(super) fn environment_all(pid: u32) -> io::Result<Option<Vec<(String, String)>>> {
    let bytes = bytes(pid)?.unwrap_or_default();
    let entries = darwin::start_words(&bytes).map(|words| words.environment).filter(|entries| !entries.is_empty());
    Ok(entries.map(|entries| entries.into_iter().filter_map(name_and_value).collect()))
}

/// The ids of all processes, at most `most`.
pub(super) fn processes(most: usize) -> io::Result<Vec<u32>> {
    let mut pids = darwin::processes()?;
    pids.truncate(most);
    Ok(pids)
}

/// As [`super::started_ms`]. macOS notes the start in microseconds since 1970.
pub(super) fn started_ms(process: &Process, booted_ms: i64) -> Option<i64> {
    let ms = i64::try_from(process.start_ticks / 1_000).ok().filter(|ms| *ms > 0)?;
    Some(ms.saturating_sub(booted_ms))
}

/// The bytes that hold a process's arguments and environment. None if the process is gone, has ended, or belongs to
/// another user: the kernel gives the same error for all of these.
fn bytes(pid: u32) -> io::Result<Option<Vec<u8>>> {
    match darwin::start_bytes(pid) {
        // The kernel could not read these bytes, which also happens while a process ends. If the process is not gone,
        // the error may be temporary.
        Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) && look(pid)?.is_none() => Ok(None),
        said => limits::of_proc(said),
    }
}
