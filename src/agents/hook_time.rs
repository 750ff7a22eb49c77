//! When a hook ran, and who ran it: the parts of an event file's name, and the processes above the hook.

use std::time::{SystemTime, UNIX_EPOCH};

/// When the hook ran, taken at the very start of its process: the sidecar takes event files in this order, however long
/// each hook takes to write its file.
#[derive(Debug, Clone, Copy)]
pub struct HookTime {
    /// Nanoseconds since boot, sleep included.
    pub boot_ns: u64,
    /// Milliseconds since 1970 by the wall clock.
    pub wall_ms: i64,
}

impl HookTime {
    /// Reads both clocks: the boot clock for the order, the wall clock for `at`.
    #[must_use]
    pub fn take() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        HookTime { boot_ns: boot_ns(), wall_ms: i64::try_from(wall.as_millis()).unwrap_or(i64::MAX) }
    }

    /// The event file's name: `<boot id 8>-<boot time in ns, 20 digits>-<pid>.json`.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}-{:020}-{}.json", boot_id8(), self.boot_ns, std::process::id())
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const SINCE_BOOT: nix::time::ClockId = nix::time::ClockId::CLOCK_BOOTTIME;
/// On other systems the monotonic clock keeps counting while the machine sleeps.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const SINCE_BOOT: nix::time::ClockId = nix::time::ClockId::CLOCK_MONOTONIC;

fn boot_ns() -> u64 {
    let time = nix::time::clock_gettime(SINCE_BOOT).map(std::time::Duration::from).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The first 8 digits of the id of this boot; zeros where the system has none.
fn boot_id8() -> String {
    first_8(&boot_id())
}

/// In small letters, as the clock of the sidecar writes them.
fn first_8(boot_id: &str) -> String {
    let digits = boot_id.chars().take(8).filter(char::is_ascii_hexdigit).map(|digit| digit.to_ascii_lowercase());
    let digits: String = digits.collect();
    if digits.len() == 8 { digits } else { "0".repeat(8) }
}

#[cfg(any(tasuki_portable, not(target_os = "macos")))]
fn boot_id() -> String {
    read_small("/proc/sys/kernel/random/boot_id")
}

#[cfg(all(target_os = "macos", not(tasuki_portable)))]
fn boot_id() -> String {
    crate::darwin::boot_session().unwrap_or_default()
}

/// Process ids from the parent upwards, at most `max`; only the parent on systems that don't tell the others.
#[must_use]
pub fn ancestors(max: usize) -> Vec<u32> {
    let mut found = Vec::new();
    let mut pid = u32::try_from(nix::unistd::getppid().as_raw()).unwrap_or(0);
    while pid > 1 && found.len() < max {
        found.push(pid);
        pid = parent_of(pid).unwrap_or(0);
    }
    found
}

#[cfg(all(target_os = "macos", not(tasuki_portable)))]
fn parent_of(pid: u32) -> Option<u32> {
    crate::darwin::parent(pid)
}

/// Field 4 of `/proc/<pid>/stat`; the program's name before it is in parentheses and may contain anything.
#[cfg(any(tasuki_portable, not(target_os = "macos")))]
fn parent_of(pid: u32) -> Option<u32> {
    let stat = read_small(&format!("/proc/{pid}/stat"));
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(any(tasuki_portable, not(target_os = "macos")))]
fn read_small(path: &str) -> String {
    use std::io::Read;
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(4096).read_to_string(&mut text));
    if read.is_ok() { text } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_the_time_since_boot() {
        let early = HookTime { boot_ns: 9, wall_ms: 0 }.file_name();
        let late = HookTime { boot_ns: 10_000_000_000, wall_ms: 0 }.file_name();
        assert!(early < late, "{early} {late}");
        assert_eq!(early.split('-').map(str::len).take(2).collect::<Vec<_>>(), [8, 20]);
    }

    #[test]
    fn the_boot_id_is_written_as_the_clock_writes_it() {
        assert_eq!(first_8("6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa\n"), "6f1c3a52");
        assert_eq!(first_8("6F1C3A52-8F0E-4D5B-9A57-2F64C1F6F0AA"), "6f1c3a52", "as macOS writes it");
        assert_eq!(first_8(""), "00000000");
        assert_eq!(first_8("6f1c"), "00000000");
    }

    #[test]
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    fn ancestors_begin_with_the_parent() {
        let above = ancestors(8);
        assert_eq!(above.first().copied(), Some(std::os::unix::process::parent_id()));
        assert!(above.len() <= 8);
    }
}
