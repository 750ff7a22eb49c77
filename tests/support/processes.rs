//! What tests ask about processes. They use the same calls as the program, so they work on every system that it
//! supports.

use std::process::Command;
use std::time::{Duration, Instant};
use tasuki::process;

/// Whether a process is there and not a zombie.
pub(crate) fn is_running(pid: u32) -> bool {
    process::identify(pid).is_some_and(|process| process::is_alive(&process))
}

/// Waits at most 10 s until a killed process is gone, because a signal takes effect some time after it was sent.
/// Returns whether the process is gone.
pub(crate) fn ends_soon(pid: u32) -> bool {
    let until = Instant::now() + Duration::from_secs(10);
    while is_running(pid) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    !is_running(pid)
}

/// Whether a process was started with this environment variable, `NAME=value`.
pub(crate) fn bears(pid: u32, variable: &str) -> bool {
    let (name, value) = variable.split_once('=').expect("NAME=value");
    process::environ_var(pid, name).is_some_and(|found| found == value)
}

/// The processes that were started with this environment variable, `NAME=value`.
pub(crate) fn bearing(variable: &str) -> Vec<u32> {
    process::all().into_iter().filter(|pid| bears(*pid, variable)).collect()
}

/// The arguments of a process, the program first; empty if it has ended.
pub(crate) fn words(pid: u32) -> Vec<String> {
    process::argv(pid).unwrap_or_default()
}

/// The living children of a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    process::all().into_iter().filter(|child| process::ancestors(*child, 1) == [pid]).collect()
}

/// How much memory a running process holds, in KiB.
pub(crate) fn resident_kib(pid: impl std::fmt::Display) -> u64 {
    let output = Command::new("ps").args(["-o", "rss=", "-p", &pid.to_string()]).output().expect("ps runs");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number of KiB")
}

/// The most memory that a running process has held so far, in KiB. Only Linux tells that; elsewhere, what it holds now.
pub(crate) fn peak_kib(pid: impl std::fmt::Display) -> u64 {
    if !cfg!(target_os = "linux") {
        return resident_kib(pid);
    }
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
