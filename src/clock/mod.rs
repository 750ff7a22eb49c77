//! The clocks by which tasuki decides and counts its time limits, and the loop's alarm ([`alarm`]).

pub mod alarm;

use crate::core::time::Now;
use nix::time::{ClockId, clock_gettime};

#[cfg(all(target_os = "linux", not(tasuki_portable)))]
const BOOT_CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
// On macOS the monotonic clock is the one that keeps running while the machine sleeps, and does not move when the clock
// is set.
#[cfg(any(tasuki_portable, not(target_os = "linux")))]
const BOOT_CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;

/// Reads the wall clock and the boot clock, and knows which boot of the machine this is.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    boot: u64,
}

impl Clock {
    /// Asks the system once which boot this is; that can't change while this process lives.
    #[must_use]
    pub fn new() -> Clock {
        Clock { boot: boot_hash() }
    }

    /// Both clocks. A clock that can't be read counts as 0, which does not happen on the systems that tasuki runs on.
    #[must_use]
    pub fn now(&self) -> Now {
        let wall_ms = i64::try_from(read_ns(ClockId::CLOCK_REALTIME) / 1_000_000).unwrap_or(i64::MAX);
        Now { wall_ms, boot: self.boot, boot_ms: boot_ns() / 1_000_000 }
    }

    /// The first 8 hexadecimal digits of the boot id: the first part of an event file's name.
    #[must_use]
    pub fn boot_prefix(&self) -> String {
        format!("{:08x}", self.boot >> 32)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}

/// Nanoseconds since boot, sleep included: the second part of an event file's name.
#[must_use]
pub fn boot_ns() -> u64 {
    u64::try_from(read_ns(BOOT_CLOCK)).unwrap_or(0)
}

/// Nanoseconds since 1970, as the times of files count them.
#[must_use]
pub fn wall_ns() -> i64 {
    i64::try_from(read_ns(ClockId::CLOCK_REALTIME)).unwrap_or(i64::MAX)
}

fn read_ns(clock: ClockId) -> i128 {
    clock_gettime(clock).map_or(0, |time| i128::from(time.tv_sec()) * 1_000_000_000 + i128::from(time.tv_nsec()))
}

/// A number that differs from boot to boot: the first 64 bits of the kernel's random boot id.
#[cfg(all(target_os = "linux", not(tasuki_portable)))]
fn boot_hash() -> u64 {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or(0, |text| first_64_bits(&text))
}

/// A number that differs from boot to boot: the first 64 bits of the random id that macOS gives to each boot. The time
/// of the boot is not used, because macOS changes it whenever the clock is set.
#[cfg(all(target_os = "macos", not(tasuki_portable)))]
fn boot_hash() -> u64 {
    crate::darwin::boot_session().map_or(0, |id| first_64_bits(&id))
}

/// A number that differs from boot to boot: a hash of the second in which the kernel started. If the system computes
/// this time from its clock, setting the clock looks like a reboot. The builds for Linux and macOS do not use it.
#[cfg(any(tasuki_portable, not(any(target_os = "linux", target_os = "macos"))))]
fn boot_hash() -> u64 {
    use sha2::{Digest, Sha256};
    let output = std::process::Command::new("/usr/sbin/sysctl").args(["-n", "kern.boottime"]).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    // "{ sec = 1700000000, usec = 1 } …": the part after the comma moves with each small correction of the clock.
    let second = text.split(|byte| *byte == b',').next().unwrap_or_default();
    let hash = Sha256::digest(second);
    hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(any(all(not(tasuki_portable), any(target_os = "linux", target_os = "macos")), test))]
fn first_64_bits(boot_id: &str) -> u64 {
    let digits: String = boot_id.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_run_within_one_boot() {
        let clock = Clock::new();
        let (first, second) = (clock.now(), clock.now());
        assert_eq!(first.boot, second.boot);
        assert!(second.boot_ms >= first.boot_ms);
        assert!(first.wall_ms > 1_700_000_000_000);
    }

    #[test]
    fn two_clocks_of_one_boot_agree_on_it() {
        assert_eq!(Clock::new().now().boot, Clock::new().now().boot);
        if cfg!(all(not(tasuki_portable), any(target_os = "linux", target_os = "macos"))) {
            assert_ne!(Clock::new().now().boot, 0, "the system has given this boot an id");
        }
    }

    #[test]
    fn the_boot_number_begins_as_the_boot_id_does() {
        let boot = first_64_bits("6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa\n");
        assert_eq!(boot, 0x6f1c_3a52_8f0e_4d5b);
        assert_eq!(Clock { boot }.boot_prefix(), "6f1c3a52");
        // As macOS writes it.
        assert_eq!(first_64_bits("6F1C3A52-8F0E-4D5B-9A57-2F64C1F6F0AA"), boot);
    }
}
