//! The calls themselves. Most give the kernel a buffer of ours with its size, and use as many bytes as the kernel
//! wrote.

use nix::libc;
use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

/// How much is read of a process's arguments and environment at most, in bytes: four times the system's own limit.
pub const MAX_WORD_BYTES: usize = 4 * 1024 * 1024;
/// How many processes are listed at most.
const MOST_PROCESSES: usize = 100_000;
/// How many processes may start between the call that counts processes and the call that lists them.
const ROOM: usize = 256;
/// The longest text that the kernel may answer, in bytes: the boot's id has 36 characters and a zero at the end.
const MAX_TEXT: usize = 64;

/// The flags of [`sync_volume`]: the drive must store everything (`SYNC_VOLUME_FULLSYNC`), and the call returns when
/// that is done (`SYNC_VOLUME_WAIT`).
const FULL_AND_WAIT: c_int = 0x1 | 0x2;

#[allow(unsafe_code)]
unsafe extern "C" {
    /// From `unistd.h`, since macOS 10.8; the crate `libc` does not have it.
    fn fsync_volume_np(fd: c_int, flags: c_int) -> c_int;
}

/// What a process does, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BsdState {
    /// It runs or sleeps.
    Runs,
    /// A signal or a debugger has stopped it.
    Stopped,
    /// It has ended, and its parent has not collected it yet.
    Zombie,
}

/// What the kernel says of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BsdFacts {
    pub parent: u32,
    /// The foreground group of its terminal; 0 if it has no terminal.
    pub foreground: u32,
    pub state: BsdState,
    /// When it was started, in microseconds since 1970. Setting the clock does not change this.
    pub started_us: u64,
}

/// What the kernel says of a process, zombies included.
///
/// # Errors
/// `ESRCH` if there is no such process, `EPERM` if it belongs to another user.
#[allow(unsafe_code)]
pub fn bsd_facts(pid: u32) -> io::Result<BsdFacts> {
    /// The argument with which the call finds zombies too.
    const ZOMBIES_TOO: u64 = 1;
    let pid = id(pid)?;
    let mut facts = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let size = size_of::<libc::proc_bsdinfo>();
    let room = c_int::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the kernel writes at most `room` bytes into memory of ours that has that size.
    let written =
        unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, ZOMBIES_TOO, facts.as_mut_ptr().cast(), room) };
    match usize::try_from(written) {
        Ok(written) if written == size => {}
        Ok(0) | Err(_) => return Err(io::Error::last_os_error()),
        Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
    }
    // SAFETY: the memory was zeroed, and then filled; the struct holds only integers, for which all bytes are valid.
    let facts = unsafe { facts.assume_init() };
    let state = match facts.pbi_status {
        libc::SZOMB => BsdState::Zombie,
        libc::SSTOP => BsdState::Stopped,
        _ => BsdState::Runs,
    };
    let started_us = facts.pbi_start_tvsec.saturating_mul(1_000_000).saturating_add(facts.pbi_start_tvusec);
    Ok(BsdFacts { parent: facts.pbi_ppid, foreground: facts.e_tpgid, state, started_us })
}

/// The parent of a process; `None` if there is no such process, or if it belongs to another user.
#[must_use]
pub fn parent(pid: u32) -> Option<u32> {
    Some(bsd_facts(pid).ok()?.parent)
}

/// The arguments and the environment with which a process was started, in the kernel's own form.
/// [`super::start_words`] takes the bytes apart.
///
/// # Errors
/// `EINVAL` or `ESRCH` if there is no such process, if it is a zombie, or if it belongs to another user.
pub fn start_bytes(pid: u32) -> io::Result<Vec<u8>> {
    let pid = id(pid)?;
    let mut most: c_int = 0;
    numbers(&mut [libc::CTL_KERN, libc::KERN_ARGMAX], std::slice::from_mut(&mut most))?;
    let most = usize::try_from(most).unwrap_or(0).clamp(4096, MAX_WORD_BYTES);
    let mut bytes = vec![0_u8; most];
    let written = numbers(&mut [libc::CTL_KERN, libc::KERN_PROCARGS2, pid], &mut bytes)?;
    bytes.truncate(written);
    Ok(bytes)
}

/// The ids of all processes, of all users.
///
/// # Errors
/// The system's.
#[allow(unsafe_code)]
pub fn processes() -> io::Result<Vec<u32>> {
    // SAFETY: without memory the call only says how many there are.
    let number = unsafe { libc::proc_listallpids(std::ptr::null_mut(), 0) };
    let number = usize::try_from(number).map_err(|_| io::Error::last_os_error())?;
    let mut pids: Vec<c_int> = vec![0; number.saturating_add(ROOM).min(MOST_PROCESSES)];
    let room = c_int::try_from(size_of_val(pids.as_slice())).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the kernel writes at most `room` bytes into memory of ours that has that size.
    let number = unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), room) };
    pids.truncate(usize::try_from(number).map_err(|_| io::Error::last_os_error())?);
    Ok(pids.into_iter().filter_map(|pid| u32::try_from(pid).ok()).collect())
}

/// The random id of this boot: a UUID. Setting the clock does not change it.
#[must_use]
pub fn boot_session() -> Option<String> {
    text(c"kern.bootsessionuuid").ok()
}

/// Writes all pending data of the volume on which a file or folder is, and waits until the drive has stored it.
///
/// # Errors
/// The system's.
#[allow(unsafe_code)]
pub fn sync_volume(file: impl AsFd) -> io::Result<()> {
    // SAFETY: the call takes two integers and touches no memory of ours; the descriptor is open while it runs.
    let done = unsafe { fsync_volume_np(file.as_fd().as_raw_fd(), FULL_AND_WAIT) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn id(pid: u32) -> io::Result<c_int> {
    c_int::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))
}

/// Asks the kernel for a value by its numeric name (`sysctl`). Returns how many bytes the kernel wrote.
#[allow(unsafe_code)]
fn numbers<T: Copy>(question: &mut [c_int], answer: &mut [T]) -> io::Result<usize> {
    let mut size = size_of_val(answer);
    let words = libc::c_uint::try_from(question.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let place: *mut c_void = answer.as_mut_ptr().cast();
    // SAFETY: question and answer are memory of ours with the sizes that are given, and the call sets no value. `T` is
    // an integer in every call of this function, so any bytes that the kernel writes are valid.
    let done = unsafe { libc::sysctl(question.as_mut_ptr(), words, place, &raw mut size, std::ptr::null_mut(), 0) };
    if done == 0 { Ok(size) } else { Err(io::Error::last_os_error()) }
}

/// Asks the kernel for a text by its name (`sysctlbyname`).
#[allow(unsafe_code)]
fn text(name: &CStr) -> io::Result<String> {
    let mut bytes = [0_u8; MAX_TEXT];
    let mut size = bytes.len();
    let place: *mut c_void = bytes.as_mut_ptr().cast();
    // SAFETY: the name ends with a zero, the answer is memory of ours with the size that is given, and the call sets no
    // value.
    let done = unsafe { libc::sysctlbyname(name.as_ptr(), place, &raw mut size, std::ptr::null_mut(), 0) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    let text = CStr::from_bytes_until_nul(&bytes).map_err(|_| io::ErrorKind::InvalidData)?;
    text.to_str().map(str::to_owned).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn our_own_facts_words_and_boot_can_be_read() {
        let own = std::process::id();
        let facts = bsd_facts(own).expect("we run");
        assert_eq!(facts.parent, std::os::unix::process::parent_id());
        assert!(facts.started_us > 1_700_000_000_000_000, "{facts:?}");
        let bytes = start_bytes(own).expect("we run");
        let words = super::super::start_words(&bytes).expect("well formed");
        let first = std::env::args().next().expect("a name");
        assert_eq!(words.arguments.first().copied(), Some(first.as_bytes()));
        assert!(words.environment.iter().any(|entry| entry.starts_with(b"PATH=")));
        assert!(processes().expect("a list").contains(&own));
        let boot = boot_session().expect("a boot");
        assert_eq!((boot.len(), boot_session()), (36, Some(boot)));
    }

    #[test]
    fn a_zombie_is_told_apart_from_a_running_and_from_a_missing_process() {
        let mut child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().expect("sleep is everywhere");
        let pid = child.id();
        assert_eq!(bsd_facts(pid).expect("it runs").state, BsdState::Runs);
        child.kill().expect("our own child");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while bsd_facts(pid).expect("nobody has asked for its end").state != BsdState::Zombie {
            assert!(std::time::Instant::now() < deadline, "it was killed");
            std::thread::yield_now();
        }
        child.wait().expect("our own child");
        assert_eq!(bsd_facts(pid).expect_err("it is gone").raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn the_volume_of_a_folder_is_synced() {
        let folder = tempfile::tempdir().expect("a folder");
        sync_volume(std::fs::File::open(folder.path()).expect("it is there")).expect("synced");
    }
}
