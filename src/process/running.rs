//! Finds the processes below an agent that still run, and the ports on which they listen if the system tells them.

use crate::contract::facts::RunningProcess;
use crate::core::cut::quotable_words;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;

/// The most processes that are listed.
const MOST: usize = 30;
/// The most open files of one process that are looked at.
const MOST_FILES: usize = 1_000;
/// The most bytes that are read of a list of the system's sockets: some 50,000 sockets.
const MOST_BYTES: u64 = 8 * 1024 * 1024;
/// Longest command line, in characters. A longer one is cut; its `…` is counted.
const LONGEST: usize = 200;
/// The state of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// The children of a process, their children, and so on, nearest first, at most 30. None if the system does not say.
#[must_use]
pub fn below(pid: u32) -> Option<Vec<RunningProcess>> {
    let found = match super::system::children(pid) {
        Some(first) => tree(first, |pid| super::system::children(pid).unwrap_or_default()),
        None => tree_of_all(pid)?,
    };
    if found.is_empty() {
        return Some(Vec::new());
    }
    let listening = listening();
    let about = |pid: &u32| {
        let command = quotable_words(&super::argv(*pid)?.join(" "), LONGEST - 1);
        Some(RunningProcess { pid: *pid, command, ports: ports(*pid, &listening) })
    };
    Some(found.iter().take(MOST).filter_map(about).collect())
}

/// The processes in `first` and those below them, nearest first. The search ends with [`MOST`] processes or a few more.
fn tree(first: Vec<u32>, children: impl Fn(u32) -> Vec<u32>) -> Vec<u32> {
    let mut found = first;
    let mut at = 0;
    while at < found.len() && found.len() < MOST {
        found.extend(children(found[at]));
        at += 1;
    }
    found
}

/// The processes below a process, from the list of all processes.
fn tree_of_all(pid: u32) -> Option<Vec<u32>> {
    let children = children_of_all()?;
    let of = |pid: u32| children.get(&pid).cloned().unwrap_or_default();
    Some(tree(of(pid), of))
}

/// The children of each process, from the list of all processes.
fn children_of_all() -> Option<BTreeMap<u32, Vec<u32>>> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for child in super::system::processes(super::look::MOST_LISTED).ok()? {
        if let Some(parent) = super::look::parent(child) {
            children.entry(parent).or_default().push(child);
        }
    }
    Some(children)
}

/// The ports of listening TCP sockets, by the socket's number (its inode).
fn listening() -> BTreeMap<u64, u16> {
    let files = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().filter_map(|path| fs::File::open(path).ok());
    files.flat_map(sockets).collect()
}

/// The numbers and ports of the listening sockets in a list such as `/proc/net/tcp`, as far as it is read.
fn sockets(list: impl Read) -> Vec<(u64, u16)> {
    let mut text = Vec::new();
    if list.take(MOST_BYTES).read_to_end(&mut text).is_err() {
        return Vec::new();
    }
    // A last line that was cut could hold the beginning of another socket's number.
    text.truncate(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    String::from_utf8_lossy(&text).lines().skip(1).filter_map(socket).collect()
}

/// A socket's number and port from its line in `/proc/net/tcp`, if the socket listens.
fn socket(line: &str) -> Option<(u64, u16)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (local, state, number) = (words.get(1)?, words.get(3)?, words.get(9)?);
    let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
    (*state == LISTEN).then_some((number.parse().ok()?, port))
}

fn ports(pid: u32, listening: &BTreeMap<u64, u16>) -> Vec<u16> {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let number = |link: std::path::PathBuf| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    let sockets = files.flatten().take(MOST_FILES).filter_map(|file| number(fs::read_link(file.path()).ok()?));
    let ports: BTreeSet<u16> = sockets.filter_map(|socket: u64| listening.get(&socket).copied()).collect();
    ports.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(all(target_os = "linux", not(tasuki_portable)))]
    use std::process::{Command, Stdio};

    #[test]
    fn a_listening_socket_is_read_from_its_line() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1";
        assert_eq!(socket(line), Some((4711, 8080)));
        assert_eq!(socket(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(socket("garbage"), None);
        let list = format!("  sl  local_address\n{line}\n");
        assert_eq!(sockets(list.as_bytes()), [(4711, 8080)]);
        assert_eq!(sockets(list.as_bytes().chain(std::io::repeat(b'x'))), [(4711, 8080)], "a list without an end");
        assert_eq!(sockets(list.trim_end().as_bytes()), [], "a line without its end");
    }

    /// A child that a thread has started is a child of the process, and both ways to find children find it.
    #[cfg(all(target_os = "linux", not(tasuki_portable)))]
    #[test]
    fn the_lists_of_the_threads_have_what_the_list_of_all_processes_has() {
        let start = || Command::new("sh").args(["-c", "sleep 60 & wait"]).stdin(Stdio::null()).spawn().expect("sh");
        let mut child = std::thread::spawn(start).join().expect("it starts");
        let own = std::process::id();
        let children = |pid| super::super::system::children(pid).expect("Linux has these lists");
        let by_threads = || tree(children(own), |pid| super::super::system::children(pid).unwrap_or_default());
        let by_all = || tree_of_all(own).expect("/proc");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let sleeps =
            |found: &[u32]| found.iter().any(|pid| super::super::argv(*pid).is_some_and(|words| words[0] == "sleep"));
        while !sleeps(&by_threads()) || !sleeps(&by_all()) {
            assert!(std::time::Instant::now() < deadline, "{:?} {:?}", by_threads(), by_all());
            std::thread::yield_now();
        }
        let below = tree(children(child.id()), |pid| super::super::system::children(pid).unwrap_or_default());
        below.iter().for_each(|pid| drop(Command::new("kill").arg(pid.to_string()).status()));
        child.kill().expect("it runs");
        child.wait().expect("it has ended");
    }

    #[cfg(all(target_os = "linux", not(tasuki_portable)))]
    #[test]
    fn a_child_and_its_port_are_found_and_the_process_itself_is_not() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("sleep");
        let found = below(std::process::id()).expect("/proc");
        let sleeps = found.iter().find(|process| process.pid == child.id()).cloned();
        child.kill().expect("it runs");
        child.wait().expect("it has ended");
        assert_eq!(sleeps.expect("listed").command, "sleep 60");
        assert!(found.iter().all(|process| process.pid != std::process::id()));
        let port = listener.local_addr().expect("bound").port();
        assert!(ports(std::process::id(), &listening()).contains(&port));
    }
}
