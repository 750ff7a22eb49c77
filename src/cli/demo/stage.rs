//! What the demo needs around it: a temporary home, a private tmux server and a sidecar. All of it is removed, no
//! matter how the demo ends.

use crate::cli::client::{self, Pulse, SidecarPresence};
use crate::cli::error::CliError;
use crate::config::Home;
use crate::core::text::sanitise;
use crate::exit;
use crate::process;
use crate::tmux::LONGEST_SOCKET_PATH;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest path of the folder in which the demo's own folder is made, in bytes. It leaves room for the path from
/// there to the tmux server's socket.
const LONGEST_BASE: usize = LONGEST_SOCKET_PATH - 33;

/// How long one tmux command may take.
const TMUX_LIMIT: Duration = Duration::from_secs(5);

/// How long each part of the clean-up may take.
const CLEAR_LIMIT: Duration = Duration::from_secs(4);

/// Variables that would connect the demo's processes to the tmux or the tasuki that the demo itself runs in.
const NOT_INHERITED: [&str; 7] =
    ["TMUX", "TMUX_PANE", "TMUX_TMPDIR", "TASUKI_TMUX", "TASUKI_AGENT_ID", "TASUKI_PERSONA", "TASUKI_HOME"];

/// A temporary home, a private tmux server, a sidecar.
pub(crate) struct DemoStage {
    place: StageFolder,
    sidecar: Option<Child>,
    cleared: bool,
}

/// The temporary folder, and the home in it.
#[derive(Debug, Clone)]
pub(crate) struct StageFolder {
    folder: PathBuf,
    home: Home,
}

impl DemoStage {
    /// Makes the temporary folder; nothing is started.
    pub(crate) fn new() -> Result<Self, CliError> {
        let base = std::env::temp_dir();
        let base = if base.as_os_str().len() > LONGEST_BASE { PathBuf::from("/tmp") } else { base };
        let mode = fs::Permissions::from_mode(0o700);
        let made = tempfile::Builder::new().prefix("tasuki-demo-").permissions(mode).tempdir_in(&base);
        let folder = made.map_err(|error| CliError::file("Can't create a folder in", &base, &error))?.keep();
        let home = Home::at(&folder.join("home"))?;
        Ok(DemoStage { place: StageFolder { folder, home }, sidecar: None, cleared: false })
    }

    pub(crate) fn place(&self) -> &StageFolder {
        &self.place
    }

    fn log(&self) -> PathBuf {
        self.place.folder.join("sidecar.log")
    }

    /// Starts the private tmux server. Its first window ends by itself after a while, so that even a demo that was
    /// killed outright leaves no server for long.
    pub(crate) fn start_tmux(&self) -> Result<(), CliError> {
        let start = ["-f", "/dev/null", "new-session", "-d", "-s", "demo", "-x", "96", "-y", "45", "sleep 600"];
        self.place.tmux(&start).map(|_| ())
    }

    /// Starts a sidecar from the program at the path `tasuki`, and waits for its first heartbeat; `stop` ends the wait.
    pub(crate) fn start_sidecar(&mut self, tasuki: &Path, stop: &dyn Fn() -> bool) -> Result<(), CliError> {
        let failed =
            |error: std::io::Error| CliError::refused("no_sidecar", format!("The sidecar can't be started: {error}"));
        let log = fs::OpenOptions::new().create(true).append(true).open(self.log()).map_err(failed)?;
        let mut command = Command::new(tasuki);
        command.arg("run").arg("--home").arg(self.place.home.root()).arg("--tmux").arg(self.place.socket());
        // A separate process group: Ctrl-C is for the demo, which then ends the sidecar properly.
        self.place.private(&mut command).process_group(0).stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(failed)?).stderr(log);
        self.sidecar = Some(command.spawn().map_err(failed)?);
        let end = Instant::now() + Duration::from_secs(10);
        let home = self.place.home.clone();
        let mut pulse = Pulse::new(&home);
        while !pulse.is_alive() {
            if let Some(error) = self.sidecar_ended() {
                return Err(error);
            }
            if stop() || Instant::now() >= end {
                return Err(client::no_sidecar(&home, &SidecarPresence::None));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// An error if the sidecar has ended by itself.
    pub(crate) fn sidecar_ended(&mut self) -> Option<CliError> {
        let status = self.sidecar.as_mut()?.try_wait().ok().flatten()?;
        Some(CliError::refused("sidecar_ended", format!("The sidecar ended during the demo: {status}.")))
    }

    /// The end of the sidecar's log, so that a person can see what went wrong.
    pub(crate) fn log_tail(&self) -> Vec<String> {
        const LINES: usize = 30;
        const BYTES: usize = 64 << 10;
        let bytes = fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(BYTES)..]).into_owned();
        let lines: Vec<String> = text.lines().map(sanitise).collect();
        lines[lines.len().saturating_sub(LINES)..].to_vec()
    }

    /// Ends the sidecar properly; commands that wait for it notice that soon.
    pub(crate) fn end_sidecar(&mut self) {
        if let Some(mut sidecar) = self.sidecar.take() {
            signal(sidecar.id(), Signal::SIGTERM);
            ends_within(&mut sidecar, CLEAR_LIMIT);
        }
    }

    /// Ends the sidecar, the tmux server and every process with this home in its environment, then removes the folder.
    /// Each part is tried even if another one fails, and the error says what is left.
    pub(crate) fn clear(&mut self) -> Result<(), CliError> {
        if std::mem::replace(&mut self.cleared, true) {
            return Ok(());
        }
        self.end_sidecar();
        let (folder, root) = (self.place.folder.clone(), self.place.home.root().to_owned());
        let server = self.place.tmux(&["display-message", "-p", "#{pid}"]).ok().and_then(|pid| pid.trim().parse().ok());
        if let Some(pid) = server {
            let _ = self.place.tmux(&["kill-server"]);
            wait_until(CLEAR_LIMIT, || !runs(pid));
        }
        if !wait_until(CLEAR_LIMIT, || bearers(&root).is_empty()) {
            bearers(&root).into_iter().for_each(|pid| signal(pid, Signal::SIGKILL));
        }
        let gone = wait_until(CLEAR_LIMIT, || {
            let _ = fs::remove_dir_all(&folder);
            bearers(&root).is_empty() && !folder.exists()
        });
        if gone {
            return Ok(());
        }
        let folder = folder.display();
        Err(CliError::refused("left_behind", format!("The demo could not be cleaned up completely: look at {folder}.")))
    }
}

impl StageFolder {
    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// The folder in which the agents work.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("tmux")
    }

    /// What a pane of the private server shows, without the blank lines at its end.
    pub(crate) fn screen(&self, pane: &str) -> Result<Vec<String>, CliError> {
        let text = self.tmux(&["capture-pane", "-p", "-t", pane])?;
        Ok(text.trim_end().lines().map(sanitise).collect())
    }

    /// Gives a command this home and removes the variables that belong to the surroundings.
    pub(crate) fn private<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        command.env("TASUKI_DEMO_DIR", self.folder.join("transcripts"));
        command.env(Home::VARIABLE, self.home.root()).current_dir(&self.folder)
    }

    fn tmux(&self, args: &[&str]) -> Result<String, CliError> {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(self.socket()).args(args);
        self.private(&mut command).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |what: String| CliError::refused("tmux", format!("tmux {}: {what}", args.join(" ")));
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                CliError::new(exit::CONFIG, "no_tmux", "tmux is not installed on this machine.")
                    .hint("Install tmux with your system's package manager, for example: apt-get install tmux")
            }
            _ => failed(error.to_string()),
        })?;
        if !ends_within(&mut child, TMUX_LIMIT) {
            return Err(failed("no answer".to_owned()));
        }
        let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(failed(sanitise(String::from_utf8_lossy(&output.stderr).trim()))),
        }
    }
}

impl Drop for DemoStage {
    fn drop(&mut self) {
        let _ = self.clear();
    }
}

/// Waits for a child; kills it if it takes longer. Returns whether it ended by itself.
pub(crate) fn ends_within(child: &mut Child, limit: Duration) -> bool {
    if wait_until(limit, || child.try_wait().ok().flatten().is_some()) {
        return true;
    }
    let _ = child.kill();
    let _ = child.wait();
    false
}

/// Waits until `done` returns true; returns whether it did within the limit.
pub(crate) fn wait_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if done() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process runs. A zombie does not: init collects it, which may take a while.
fn runs(pid: u32) -> bool {
    let found = process::find(pid);
    found.map_or(true, |found| found.is_some_and(|found| process::is_alive(&found)))
}

/// Sends a signal to a process, if it still runs.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// The processes, other than this one, that were started with this home: its path is random, so they are the demo's.
#[cfg(all(target_os = "linux", not(tasuki_portable)))]
fn bearers(home: &Path) -> Vec<u32> {
    use std::os::unix::ffi::OsStrExt;
    let mut wanted = format!("{}=", Home::VARIABLE).into_bytes();
    wanted.extend_from_slice(home.as_os_str().as_bytes());
    let bears = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != std::process::id()).filter(bears).collect()
}

/// As on Linux. A process whose environment can't be read is not found: it ends only with the tmux server.
#[cfg(any(tasuki_portable, not(target_os = "linux")))]
fn bearers(home: &Path) -> Vec<u32> {
    let bears = |pid: &u32| process::environ_var(*pid, Home::VARIABLE).is_some_and(|value| Path::new(&value) == home);
    process::all().into_iter().filter(|pid| *pid != std::process::id()).filter(bears).collect()
}
