//! Checks the machine: disk space, file watches, open files, the clock.

use super::check::Check;
use super::ground::DoctorFacts;
use crate::clock::Clock;
use crate::files::watcher::{FolderWatcher, SEES_GROWTH};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::statvfs::{FsFlags, statvfs};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// With less free space than this, in bytes, a commit may fail at any time.
const NO_ROOM: u64 = 2 * 1024 * 1024;
/// With less free space than this, in bytes, commits will fail soon.
const LITTLE_ROOM: u64 = 100 * 1024 * 1024;
/// The same two limits for inodes: how many files can still be created.
const NO_INODES: u64 = 50;
const LITTLE_INODES: u64 = 1_000;
/// What the sidecar watches at most: the spool, its lanes, and 256 folders of documents.
const WATCHES: u64 = 300;
/// If the kernel queues fewer events than this, a burst of files overflows its queue.
const QUEUED: u64 = 1_024;
/// How many files the sidecar may have to hold open.
const OPEN_FILES: u64 = 512;
/// If a file of ours is further in the future than this, the clock was set back after the file was written. In
/// milliseconds.
const AHEAD_MS: i64 = 60_000;
/// The earliest time of a correct clock: 2026 had begun when this was written. In milliseconds since 1970.
const EARLIEST_MS: i64 = 1_767_225_600_000;

/// Facts about the home's file system.
#[derive(Debug, Clone, Copy)]
struct Disk {
    free_bytes: u64,
    free_inodes: u64,
    /// 0 if the file system does not count them.
    all_inodes: u64,
    is_read_only: bool,
    network: Option<&'static str>,
}

pub(super) fn disk(ground: &DoctorFacts) -> Vec<Check> {
    // A home that does not exist yet will be on the disk of the nearest folder above it.
    let place = ground.home.root().ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    match gather_disk(place) {
        Ok(disk) => judge_disk(&disk, place),
        Err(errno) => vec![Check::fail(
            "disk.space",
            format!("the file system of {} can't be queried: {errno}", place.display()),
            "check the file system",
        )],
    }
}

// These fields have different widths on different systems; all of them fit.
#[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
fn gather_disk(place: &Path) -> nix::Result<Disk> {
    let stat = statvfs(place)?;
    Ok(Disk {
        free_bytes: (stat.blocks_available() as u64).saturating_mul(stat.fragment_size() as u64),
        free_inodes: stat.files_available() as u64,
        all_inodes: stat.files() as u64,
        is_read_only: stat.flags().contains(FsFlags::ST_RDONLY),
        network: network(place),
    })
}

#[cfg(target_os = "linux")]
fn network(place: &Path) -> Option<&'static str> {
    let kind = nix::sys::statfs::statfs(place).ok()?.filesystem_type();
    // The kernel's numbers have 32 bits; the type that holds them is wider on most machines, and signed on some.
    network_of(kind.0 as u32)
}

/// The name of a file system that may lie on another machine, by its number in the kernel's `linux/magic.h`. A file
/// system in user space (FUSE) may also lie on this machine, but it reports changes by others only if its program does.
#[cfg(target_os = "linux")]
fn network_of(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x0000_6969 => "NFS",
        0x0000_517B | 0xFF53_4D42 | 0xFE53_4D42 => "SMB",
        0x7375_7245 => "Coda",
        0x6573_5546 => "FUSE",
        0x00C3_6400 => "Ceph",
        0x0102_1997 => "9P",
        0x5346_414F | 0x6B41_4653 => "AFS",
        0x7461_636F => "OCFS2",
        _ => return None,
    })
}

#[cfg(target_os = "macos")]
fn network(place: &Path) -> Option<&'static str> {
    let stat = nix::sys::statfs::statfs(place).ok()?;
    let known = [("nfs", "NFS"), ("smbfs", "SMB"), ("webdav", "WebDAV"), ("afpfs", "AFP"), ("macfuse", "FUSE")];
    known.into_iter().find(|(kind, _)| *kind == stat.filesystem_type_name()).map(|(_, name)| name)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn network(_place: &Path) -> Option<&'static str> {
    None
}

fn judge_disk(disk: &Disk, place: &Path) -> Vec<Check> {
    let room = format!("{} MiB are free on the file system of {}", disk.free_bytes / 1024 / 1024, place.display());
    let make =
        "free some space there; the sidecar then continues by itself. No request is lost, but reports of hooks may be";
    let space = match disk.free_bytes {
        free if free < NO_ROOM => Check::fail("disk.space", format!("the disk is full: {room}"), make),
        free if free < LITTLE_ROOM => Check::warn("disk.space", room, "free some space soon"),
        _ => Check::ok("disk.space", room),
    };
    let inodes = match disk.free_inodes {
        _ if disk.all_inodes == 0 => Check::ok("disk.inodes", "this file system does not count inodes"),
        free if free < NO_INODES => {
            Check::fail("disk.inodes", format!("{free} inodes are left: no files can be created"), make)
        }
        free if free < LITTLE_INODES => {
            Check::warn("disk.inodes", format!("{free} inodes are left"), "remove files there soon")
        }
        free => Check::ok("disk.inodes", format!("{free} files can still be created")),
    };
    let writable = if disk.is_read_only {
        Check::fail(
            "disk.writable",
            format!("{} is on a read-only file system", place.display()),
            "mount the file system read-write, or choose another home",
        )
    } else {
        Check::ok("disk.writable", "the file system is writable")
    };
    let kind = match disk.network {
        Some(name) => Check::warn(
            "disk.kind",
            format!("the file system is {name}, which may not report new files and may not keep locks"),
            "put the home on a disk of this machine",
        ),
        None => Check::ok("disk.kind", "a local file system"),
    };
    vec![space, inodes, writable, kind]
}

#[derive(Debug, Clone, Default)]
struct Limits {
    /// Why no further watch can be added; none if a watch can be added.
    refused: Option<String>,
    watches: Option<u64>,
    queued: Option<u64>,
    open_files: Option<u64>,
    /// The system also reports that a file grows.
    sees_growth: bool,
}

/// Checks the limits that matter to the sidecar.
pub(super) fn limits(ground: &DoctorFacts) -> Vec<Check> {
    let setting =
        |name: &str| std::fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).ok()?.trim().parse().ok();
    let place = ground.home.root().ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let own = getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| soft);
    judge_limits(&Limits {
        refused: one_more_watch(place).err(),
        watches: setting("max_user_watches"),
        queued: setting("max_queued_events"),
        open_files: ground.process.and_then(open_files_of).or(own),
        sees_growth: SEES_GROWTH,
    })
}

/// Tries to add one more watch, because the system does not say how many watches all programs together use.
fn one_more_watch(place: &Path) -> Result<(), String> {
    let watched = FolderWatcher::new(|_| {}).and_then(|mut watcher| watcher.watch(place));
    watched.map_err(|error| error.to_string())
}

/// The soft limit on open files that a process has.
fn open_files_of(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let soft = line.split_whitespace().next()?;
    if soft == "unlimited" { Some(u64::MAX) } else { soft.parse().ok() }
}

fn judge_limits(limits: &Limits) -> Vec<Check> {
    let set = |name: &str, value: &str| format!("sysctl fs.inotify.{name}={value} (and in /etc/sysctl.d for good)");
    let watches = match (&limits.refused, limits.watches, limits.queued) {
        (Some(why), _, _) if !limits.sees_growth => Check::warn(
            "limits.watches",
            format!("the kernel queue can't watch a folder ({why}): the sidecar would poll every second instead"),
            format!("raise the limit on open files: ulimit -n {}", 2 * OPEN_FILES),
        ),
        (None, _, _) if !limits.sees_growth => Check::ok(
            "limits.watches",
            "the kernel queue reports files that arrive, at the cost of one open file for each watched folder; while a \
             document is awaited, the sidecar looks at it every second",
        ),
        (Some(why), _, _) => Check::warn(
            "limits.inotify",
            format!("no more watches are available ({why}): the sidecar would poll every second instead"),
            format!("{}, {}", set("max_user_instances", "512"), set("max_user_watches", "65536")),
        ),
        (None, Some(few), _) if few < WATCHES => Check::warn(
            "limits.inotify",
            format!("{few} watches are allowed, but up to {WATCHES} are needed"),
            set("max_user_watches", "65536"),
        ),
        (None, _, Some(few)) if few < QUEUED => {
            Check::warn("limits.inotify", format!("only {few} events may be queued"), set("max_queued_events", "16384"))
        }
        (None, Some(watches), _) => {
            Check::ok("limits.inotify", format!("watches are available, {watches} are allowed"))
        }
        (None, None, _) => Check::ok("limits.inotify", "watches are available"),
    };
    let open = match limits.open_files {
        Some(few) if few < OPEN_FILES => Check::warn(
            "limits.open_files",
            format!("{few} files may be open at once"),
            format!("start the sidecar with a higher limit: ulimit -n {}", 2 * OPEN_FILES),
        ),
        Some(u64::MAX) => Check::ok("limits.open_files", "any number of files may be open"),
        Some(count) => Check::ok("limits.open_files", format!("{count} files may be open at once")),
        None => Check::skipped("limits.open_files", "this system does not report the limit"),
    };
    vec![watches, open]
}

#[derive(Debug, Clone)]
struct Time {
    wall_ms: i64,
    boot_ms: i64,
    /// The file of ours that is furthest in the future, and by how much, in milliseconds.
    ahead: Option<(PathBuf, i64)>,
    /// Whether a time service has set the clock; none if no time service is known.
    is_synchronised: Option<bool>,
}

pub(super) fn clock(ground: &DoctorFacts) -> Vec<Check> {
    let now = Clock::new().now();
    let files = ["view/sidecar.json", "spool/journal.jsonl", "spool/requests", "spool/events", "state/tasuki.redb"];
    let ahead = files.iter().filter_map(|below| {
        let path = ground.home.root().join(below);
        let modified = std::fs::symlink_metadata(&path).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some((path, i64::try_from(modified.as_millis()).ok()? - now.wall_ms))
    });
    let timesyncd = Path::new("/run/systemd/timesync");
    judge_clock(&Time {
        wall_ms: now.wall_ms,
        boot_ms: i64::try_from(now.boot_ms).unwrap_or(i64::MAX),
        ahead: ahead.max_by_key(|(_, ms)| *ms),
        is_synchronised: timesyncd.is_dir().then(|| timesyncd.join("synchronized").exists()),
    })
}

fn judge_clock(time: &Time) -> Vec<Check> {
    let set =
        "set the clock, or let a time service set it: timedatectl set-ntp true; tasuki's time limits are not affected";
    let wall = match &time.ahead {
        _ if time.wall_ms < EARLIEST_MS || time.wall_ms < time.boot_ms => {
            Check::fail("clock.wall", format!("the clock shows {}", crate::core::time::rfc3339(time.wall_ms)), set)
        }
        Some((path, ms)) if *ms > AHEAD_MS => {
            let said = format!("the clock was set back: {} is {} s in the future", path.display(), ms / 1_000);
            Check::warn(
                "clock.wall",
                said,
                "check that the clock is right now; times in views and journal jump, but time limits are not affected",
            )
        }
        _ => Check::ok("clock.wall", format!("the clock shows {}", crate::core::time::rfc3339(time.wall_ms))),
    };
    let service = match time.is_synchronised {
        Some(true) => Check::ok("clock.service", "a time service has set the clock"),
        Some(false) => Check::warn("clock.service", "the time service has not set the clock yet", set),
        None => Check::skipped("clock.service", "tasuki knows no time service on this machine"),
    };
    vec![wall, service]
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
