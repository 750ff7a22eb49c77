//! Reads what Linux says of processes, from the files in `/proc`.

use super::stat::Stat;
use crate::core::pane::Process;
use crate::limits;
use std::io::{self, Read};

/// Whether this system says when a process started, which tells it from a later process with the same id.
pub(super) const KNOWS_STARTS: bool = true;
/// Whether this system lets us read the environment of another process of our user.
pub(super) const READS_ENVIRONMENTS: bool = true;

/// The most that is read of a process's arguments, in bytes.
const MAX_ARGV_BYTES: u64 = 256 * 1024;

/// The most that is read of a process's environment, in bytes.
const MAX_ENVIRON_BYTES: u64 = 4 * 1024 * 1024;

/// Of how many threads of a process the children are listed.
const MAX_THREADS: usize = 1_000;
/// The most that is read of one thread's list of children, in bytes.
const MAX_CHILDREN_BYTES: u64 = 64 * 1024;

/// What `/proc` says about a process; none if there is no such process. An error only means that we could not look.
pub(super) fn look(pid: u32) -> io::Result<Option<Stat>> {
    match read_proc(pid, "stat", 4096) {
        Ok(line) => Ok(parse_stat(&line)),
        Err(error) if limits::is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// As [`super::arguments`].
pub(super) fn arguments(pid: u32) -> io::Result<Option<Vec<String>>> {
    let Some(bytes) = limits::of_proc(read_started(pid, "cmdline", MAX_ARGV_BYTES))? else { return Ok(None) };
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    if bytes.is_empty() {
        return Ok(None);
    }
    Ok(Some(bytes.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect()))
}

/// As [`super::environment`].
pub(super) fn environment(pid: u32, name: &str) -> io::Result<Option<String>> {
    let bytes = limits::of_proc(read_started(pid, "environ", MAX_ENVIRON_BYTES))?;
    Ok(bytes.and_then(|bytes| super::stat::variable(bytes.split(|byte| *byte == 0), name)))
}

/// As [`super::environment_all`].
pub(super) fn environment_all(pid: u32) -> io::Result<Option<Vec<(String, String)>>> {
    let bytes = limits::of_proc(read_started(pid, "environ", MAX_ENVIRON_BYTES))?;
    Ok(bytes.map(|bytes| bytes.split(|byte| *byte == 0).filter_map(super::stat::name_and_value).collect()))
}

/// The ids of all processes, at most `most`.
pub(super) fn processes(most: usize) -> io::Result<Vec<u32>> {
    let entries = std::fs::read_dir("/proc")?.flatten().take(most);
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// The children of a process, from the lists that the kernel keeps for each thread. None if it keeps no such lists, or
/// if the process is gone.
pub(super) fn children(pid: u32) -> Option<Vec<u32>> {
    let of_thread = |thread: u32| read_proc(pid, &format!("task/{thread}/children"), MAX_CHILDREN_BYTES);
    // The first thread has the number of the process. Where it has no list, no thread has one.
    of_thread(pid).ok()?;
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten().take(MAX_THREADS);
    let threads = threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // A thread that has ended meanwhile has no list.
    let lists = threads.filter_map(|thread| of_thread(thread).ok());
    let numbers = |list: Vec<u8>| String::from_utf8_lossy(&list).split(' ').flat_map(str::parse).collect::<Vec<u32>>();
    Some(lists.flat_map(numbers).collect())
}

/// As [`super::started_ms`]. Linux notes the start in clock ticks since boot.
pub(super) fn started_ms(process: &Process, _booted_ms: i64) -> Option<i64> {
    let a_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten()?;
    let a_second = u64::try_from(a_second).ok().filter(|ticks| *ticks > 0)?;
    let ms = process.start_ticks.saturating_mul(1_000) / a_second;
    i64::try_from(ms).ok().filter(|ms| *ms > 0)
}

/// Reads the arguments (`cmdline`) or the environment (`environ`) of a process. While an `exec` replaces the program,
/// both files are empty, for 30 ms and more on a busy machine. That says nothing about the old or the new program, so
/// it is reported as the error `EAGAIN`.
fn read_started(pid: u32, file: &str, limit: u64) -> io::Result<Vec<u8>> {
    let bytes = read_proc(pid, file, limit)?;
    if !bytes.is_empty() {
        return Ok(bytes);
    }
    if is_in_exec(&read_proc(pid, "stat", 4096)?) {
        return Err(io::Error::from_raw_os_error(nix::libc::EAGAIN));
    }
    // An `exec` may have ended between the two reads.
    read_proc(pid, file, limit)
}

fn read_proc(pid: u32, file: &str, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(format!("/proc/{pid}/{file}"))?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether an `exec` is under way: the process has memory, but no environment in it yet. A zombie and a thread of the
/// kernel have no memory.
fn is_in_exec(stat: &[u8]) -> bool {
    let Some(field) = stat_fields(stat) else { return false };
    let is_zero = |at: usize| field.get(at).is_none_or(|field| *field == "0");
    let (memory, environment_end) = (20, 48);
    !is_zero(memory) && is_zero(environment_end)
}

/// The fields of a `stat` line from the state on. The program's name, in brackets, may hold anything; the fields begin
/// after the last bracket.
fn stat_fields(line: &[u8]) -> Option<Vec<&str>> {
    let close = line.iter().rposition(|byte| *byte == b')')?;
    Some(std::str::from_utf8(&line[close + 1..]).ok()?.split_ascii_whitespace().collect())
}

fn parse_stat(line: &[u8]) -> Option<Stat> {
    let field = stat_fields(line)?;
    Some(Stat {
        state: *field.first()?.as_bytes().first()?,
        parent: field.get(1)?.parse().ok()?,
        foreground: field.get(5)?.parse().ok()?,
        start_ticks: field.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn a_program_name_may_hold_brackets_and_blanks() {
        let line = b"42 (a) b (c)) S 7 42 42 34816 99 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456 1000 200";
        let stat = parse_stat(line).expect("a stat line");
        assert_eq!(stat, Stat { state: b'S', parent: 7, foreground: 99, start_ticks: 123_456 });
        assert_eq!(parse_stat(b"42 (a"), None);
    }

    #[test]
    fn arguments_are_unknown_but_not_missing_while_a_program_starts() {
        for round in 0..300 {
            let mut child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().expect("sleep is everywhere");
            let told = || (arguments(child.id()), environment(child.id(), "PATH"));
            let (words, path) = told();
            assert!(!matches!(words, Ok(None)), "round {round}");
            assert!(!matches!(path, Ok(None)), "round {round}");
            let (deadline, asked) = (Instant::now() + Duration::from_secs(10), ["sleep".to_owned(), "600".to_owned()]);
            while arguments(child.id()).ok().flatten().is_none_or(|words| words != asked) {
                assert!(Instant::now() < deadline, "round {round}: {:?}", told());
                std::thread::yield_now();
            }
            child.kill().expect("our own child");
            child.wait().expect("our own child");
        }
    }

    #[test]
    fn a_zombie_and_a_thread_of_the_kernel_are_in_no_exec() {
        let rest = |memory: u32, end: u32| {
            let middle = ["0"; 27].join(" ");
            format!("42 (a) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456 {memory} {middle} {end} 0")
        };
        assert!(is_in_exec(rest(200_704, 0).as_bytes()));
        assert!(!is_in_exec(rest(200_704, 140_000).as_bytes()), "it has started");
        assert!(!is_in_exec(rest(0, 0).as_bytes()), "it has no memory");
        assert!(!is_in_exec(b"42 (a"));
    }
}
