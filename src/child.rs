//! What all programs that tasuki starts beside its agents have in common: an environment without the service's own
//! variables, a process group of their own, and an end no later than the sidecar's.

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{AccessFlags, Pid, access};
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeWriter};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

/// What belongs to the sidecar's own service, and must not be taken by a child for its own.
const NOT_FOR_CHILDREN: [&str; 8] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "JOURNAL_STREAM",
    "TASUKI_SERVICE",
];

/// The first pause where the system has no room for another process, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether there is a process of that id, ours or not.
#[must_use]
pub fn answers(pid: u32) -> bool {
    let Ok(pid) = i32::try_from(pid) else { return false };
    !matches!(kill(Pid::from_raw(pid), None), Err(Errno::ESRCH))
}

/// Takes from a child's environment what belongs to the sidecar's own service.
fn leave_service(command: &mut Command) {
    for name in NOT_FOR_CHILDREN {
        command.env_remove(name);
    }
}

/// Whether the system itself can end a child with its parent. Only Linux can.
const SYSTEM_ENDS_CHILDREN: bool = cfg!(all(target_os = "linux", not(tasuki_portable)));

/// What a shell does where the system can't: it becomes the program that its arguments name, and leaves behind one
/// process that kills the group when the shell's input ends. The arguments are words for that program, never read as
/// commands.
const GUARD: &str = r#"exec 3<&0 </dev/null; { read -r _ <&3; kill -KILL 0; } >/dev/null 2>&1 & exec "$@" 3<&-"#;

/// Lets a child end, by force, when the thread that has started it ends: with us, however we end. Must be called from a
/// thread that lives as long as the program does. Where the system can't do that, the child ends by itself.
#[allow(unsafe_code)]
pub fn die_with_us(command: &mut Command) {
    #[cfg(all(target_os = "linux", not(tasuki_portable)))]
    {
        let parent = nix::unistd::getpid();
        // SAFETY: the closure runs between fork and exec and calls only async-signal-safe functions: prctl and getppid.
        // It allocates nothing and takes no lock.
        unsafe {
            command.pre_exec(move || {
                nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
                // A parent that ended before the call sends no signal any more.
                if nix::unistd::getppid() != parent {
                    return Err(nix::errno::Errno::ESRCH.into());
                }
                Ok(())
            });
        }
    }
    #[cfg(any(tasuki_portable, not(target_os = "linux")))]
    let _ = command;
}

/// The same call through [`GUARD`]: its program, arguments, folder and the variables that were set or removed. Its
/// outputs have to be said again.
fn guarded(command: &Command) -> io::Result<Command> {
    let call = command.as_std();
    // The shell would only say a number for a program that can't be started.
    let program = find_program(call.get_program(), &search_path())?;
    let mut guard = Command::new("/bin/sh");
    guard.args(["-c", GUARD, "sh"]).arg(program).args(call.get_args());
    if let Some(folder) = call.get_current_dir() {
        guard.current_dir(folder);
    }
    for (name, value) in call.get_envs() {
        match value {
            Some(value) => guard.env(name, value),
            None => guard.env_remove(name),
        };
    }
    Ok(guard)
}

/// Where the system looks for a program if there is no `PATH`.
pub const DEFAULT_PATH: &str = match (cfg!(target_env = "musl"), cfg!(target_os = "macos")) {
    (true, _) => "/usr/local/bin:/bin:/usr/bin",
    (_, true) => "/usr/bin:/bin",
    (false, false) => "/bin:/usr/bin",
};

/// The folders in which the system looks for the programs that we start.
#[must_use]
pub fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into())
}

/// The executable that `program` names: searched in `path`, unless it contains a slash.
///
/// # Errors
/// Why the system would start none: there is none, or none that this user may execute.
pub fn find_program(program: impl AsRef<OsStr>, path: &OsStr) -> io::Result<PathBuf> {
    let program = program.as_ref();
    let folders = std::env::split_paths(path).map(|folder| folder.join(program));
    let is_path = program.as_encoded_bytes().contains(&b'/');
    let places: Vec<_> = if is_path { vec![PathBuf::from(program)] } else { folders.collect() };
    let mut refused = Errno::ENOENT;
    for place in places.into_iter().filter(|place| place.is_file()) {
        match access(&place, AccessFlags::X_OK) {
            Ok(()) => return Ok(place),
            Err(error) => refused = error,
        }
    }
    Err(refused.into())
}

/// A child in a process group of its own. Dropping it before its end kills the whole group: a wrapper that is killed
/// alone would leave the programs that it started running.
#[derive(Debug)]
pub struct Grouped {
    child: Child,
    /// The other end of what a guard reads: it closes when this is dropped, and when the program ends, however it ends.
    _lifeline: Option<PipeWriter>,
}

impl Grouped {
    /// Starts it, outside the sidecar's own service.
    ///
    /// # Errors
    /// As for [`Command::spawn`].
    pub fn spawn(command: &mut Command) -> io::Result<Grouped> {
        leave_service(command);
        Ok(Grouped { child: command.process_group(0).kill_on_drop(true).spawn()?, _lifeline: None })
    }

    /// Starts it, with nothing to read, and with both outputs to be read by us. It ends by force when we end, however
    /// we end: what it was about to send must not be sent while the next sidecar looks for it.
    ///
    /// # Errors
    /// As for [`Command::spawn`].
    fn spawn_bound(command: &mut Command) -> io::Result<Grouped> {
        if SYSTEM_ENDS_CHILDREN {
            Grouped::spawn(piped(command).stdin(Stdio::null()))
        } else {
            Grouped::spawn_guarded(command)
        }
    }

    fn spawn_guarded(command: &Command) -> io::Result<Grouped> {
        // Where no call makes a pipe that no other child can inherit, a child started at this instant may hold its
        // end open. Then the program lives on until that one ends, too.
        let (input, lifeline) = io::pipe()?;
        let mut guard = guarded(command)?;
        let mut group = Grouped::spawn(piped(&mut guard).stdin(input))?;
        group._lifeline = Some(lifeline);
        Ok(group)
    }

    /// Starts it, and waits where the system has no descriptor, process or memory left for another one: that passes,
    /// and what was to be done by the child must not be lost for it. For a day at most.
    ///
    /// # Errors
    /// As for [`Command::spawn`].
    pub async fn start(command: &mut Command) -> io::Result<Grouped> {
        start_when_there_is_room(|| Grouped::spawn(command)).await
    }

    /// As [`Grouped::start`], and it ends when we end, by force. It has nothing to read; both its outputs are ours.
    ///
    /// # Errors
    /// As for [`Command::spawn`].
    pub async fn start_bound(command: &mut Command) -> io::Result<Grouped> {
        die_with_us(command);
        start_when_there_is_room(|| Grouped::spawn_bound(command)).await
    }

    /// The child process, to wait for it or to read its output.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Ends the group, unless its end was seen already: until then its number can be nobody else's.
    pub fn end(&self) {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid {
            // It may have ended by itself at this very moment.
            let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

fn piped(command: &mut Command) -> &mut Command {
    command.stdout(Stdio::piped()).stderr(Stdio::piped())
}

async fn start_when_there_is_room(mut start: impl FnMut() -> io::Result<Grouped>) -> io::Result<Grouped> {
    let begun = tokio::time::Instant::now();
    let mut pause = PAUSE.0;
    loop {
        match start() {
            Err(error) if is_shortage(&error) && begun.elapsed() < PATIENCE => {
                tracing::warn!(%error, "could not start a command; tasuki tries again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE.1);
            }
            started => return started,
        }
    }
}

/// The system has no room for another process at this moment; the command itself is not at fault.
fn is_shortage(error: &io::Error) -> bool {
    use nix::errno::Errno::{EAGAIN, EMFILE, ENFILE, ENOMEM};
    let code = error.raw_os_error();
    [EAGAIN, EMFILE, ENFILE, ENOMEM].into_iter().any(|errno| code == Some(errno as i32))
}

impl Drop for Grouped {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    /// A program, started by a guard, whose group also holds a process that would continue without it.
    async fn begun(script: &str) -> (Grouped, u32) {
        let mut group =
            Grouped::spawn_guarded(Command::new("sh").args(["-c", script, "$(touch /no)", "a b"])).expect("it starts");
        let mut said = [0; 64];
        let count = group.child().stdout.as_mut().expect("an output").read(&mut said).await.expect("it speaks");
        let said = String::from_utf8_lossy(&said[..count]).into_owned();
        (group, said.trim().parse().unwrap_or_else(|_| panic!("{said:?}")))
    }

    /// Waits until a process has ended; a zombie has.
    pub(crate) async fn ends(pid: u32) {
        let is_gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.contains(") Z ") || !answers(pid)
        };
        for _ in 0..200 {
            if is_gone() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("process {pid} still runs");
    }

    /// What a sidecar's death does: its end of the pipe closes, and nobody signals anybody.
    #[tokio::test]
    async fn what_a_guard_has_started_ends_with_our_end_of_its_pipe() {
        let (mut group, inner) = begun("sleep 600 & echo $!; wait").await;
        assert!(answers(inner));
        drop(group._lifeline.take());
        ends(inner).await;
        let ended = group.child().wait().await.expect("its end");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(Signal::SIGKILL as i32));
    }

    #[tokio::test]
    async fn a_guard_changes_neither_words_nor_outputs_nor_the_code() {
        let mut call = Command::new("sh");
        call.args([
            "-c",
            r#"read -r x; printf '%s|' "$0" "$1" "$A" "$?" "$PWD"; echo no >&2; exit 3"#,
            "$(exit 9)",
            "a  b",
        ]);
        call.env("A", "set").current_dir("/");
        let mut group = Grouped::spawn_guarded(&call).expect("it starts");
        let (mut said, mut complained) = (String::new(), String::new());
        let (stdout, stderr) = (group.child().stdout.take(), group.child().stderr.take());
        stdout.expect("an output").read_to_string(&mut said).await.expect("its output");
        stderr.expect("an output").read_to_string(&mut complained).await.expect("its complaint");
        assert_eq!((said.as_str(), complained.as_str()), ("$(exit 9)|a  b|set|1|/|", "no\n"));
        assert_eq!(group.child().wait().await.expect("its end").code(), Some(3));
    }

    #[tokio::test]
    async fn a_guard_says_what_the_system_would_of_a_program_that_it_cannot_start() {
        for (program, kind) in [("/no/such", io::ErrorKind::NotFound), ("no-such-program", io::ErrorKind::NotFound)] {
            assert_eq!(Grouped::spawn_guarded(&Command::new(program)).expect_err("none").kind(), kind);
        }
        let refused = Grouped::spawn_guarded(&Command::new("/etc/passwd")).expect_err("no program");
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_program_is_found_as_the_system_would() {
        let path = OsString::from("/no/such:/usr/bin:/bin");
        assert!(find_program("sh", &path).is_ok_and(|found| found.ends_with("sh")));
        assert_eq!(find_program("no-such-program", &path).ok(), None);
        assert_eq!(find_program("/etc/passwd", &path).ok(), None);
    }
}
