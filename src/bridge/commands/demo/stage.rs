//! What the demo of a fleet needs: two homes, each with a private tmux server, a sidecar and a bridge, and one NATS
//! server. All of them are removed, no matter how the demo ends.

use crate::cli::demo::stage::{DemoStage, ends_within, signal, wait_until};
use crate::cli::error::CliError;
use crate::exit;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The environment variable with the path of the program nats-server.
const NATS_VARIABLE: &str = "TASUKI_NATS_SERVER";
/// How long a process may take to end.
const END_LIMIT: Duration = Duration::from_secs(4);
/// How long the server may take until it accepts connections.
const SERVER_LIMIT: Duration = Duration::from_secs(10);
/// How long one command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(90);
/// The pause between two looks whether a command has ended, or the server accepts connections.
const PAUSE: Duration = Duration::from_millis(10);

/// The programs that the demo runs.
pub(super) struct Programs {
    tasuki: PathBuf,
    fleet: PathBuf,
    nats: PathBuf,
}

/// One of the two programs of tasuki.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FleetProgram {
    Tasuki,
    Fleet,
}

/// A host of the demo's fleet.
pub(super) struct DemoHost {
    /// Its name in the fleet.
    pub(super) name: &'static str,
    pub(super) stage: DemoStage,
    bridge: Option<Child>,
}

/// Two hosts and the server between them.
pub(super) struct FleetStage<'a> {
    programs: Programs,
    /// The host whose home has the fleet's key. It sends the texts.
    pub(super) desk: DemoHost,
    /// The host on which the agent runs.
    pub(super) other: DemoHost,
    server: Option<Child>,
    stop: &'a dyn Fn() -> bool,
}

impl Programs {
    /// Finds the programs.
    ///
    /// # Errors
    /// 69 if there is no NATS server, or no `tasuki` beside this program or in `PATH`.
    pub(super) fn find() -> Result<Programs, CliError> {
        let fleet = std::env::current_exe().map_err(|error| {
            CliError::refused("program", format!("The path of this program can't be found: {error}."))
        })?;
        let beside = fleet.parent().map(|folder| folder.join("tasuki")).filter(|path| path.is_file());
        let tasuki = beside.or_else(|| in_path("tasuki")).ok_or_else(|| {
            let message = "tasuki is neither beside tasuki-fleet nor in PATH. Nothing was started.";
            CliError::new(exit::UNAVAILABLE, "no_tasuki", message)
        })?;
        let named = std::env::var_os(NATS_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        let nats = named.or_else(|| in_path("nats-server")).filter(|path| path.is_file()).ok_or_else(|| {
            let message = "There is no NATS server on this machine. Nothing was started.";
            CliError::new(exit::UNAVAILABLE, "no_nats_server", message).hint(format!(
                "Install nats-server, or name the program by {NATS_VARIABLE}; in a clone of the repository, \
                 scripts/fleet-demo looks for it"
            ))
        })?;
        Ok(Programs { tasuki, fleet, nats })
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

impl DemoHost {
    fn new(name: &'static str) -> Result<DemoHost, CliError> {
        Ok(DemoHost { name, stage: DemoStage::new()?, bridge: None })
    }

    /// A file of this host's bridge.
    pub(super) fn fleet_file(&self, name: &str) -> PathBuf {
        self.stage.place().home().fleet().join(name)
    }
}

impl<'a> FleetStage<'a> {
    /// Makes the temporary folders; nothing is started. `stop`: whether the person has interrupted the demo.
    pub(super) fn new(programs: Programs, stop: &'a dyn Fn() -> bool) -> Result<FleetStage<'a>, CliError> {
        let (desk, other) = (DemoHost::new("desk")?, DemoHost::new("box")?);
        Ok(FleetStage { programs, desk, other, server: None, stop })
    }

    /// Starts a tmux server and a sidecar for each host.
    pub(super) fn start_sidecars(&mut self) -> Result<(), CliError> {
        for host in [&mut self.desk, &mut self.other] {
            host.stage.start_tmux()?;
            let started = host.stage.start_sidecar(&self.programs.tasuki, self.stop);
            started.map_err(|error| if (self.stop)() { interrupted() } else { error })?;
        }
        Ok(())
    }

    /// The folder that `tasuki fleet server init` writes.
    pub(super) fn server_folder(&self) -> PathBuf {
        self.desk.stage.place().folder().join("fleet-server")
    }

    /// An address of this machine at which nobody listens.
    pub(super) fn free_address() -> Result<SocketAddr, CliError> {
        TcpListener::bind(("127.0.0.1", 0))
            .and_then(|listener| listener.local_addr())
            .map_err(|error| CliError::refused("no_port", format!("There is no free port: {error}.")))
    }

    /// Starts the NATS server, and waits until it accepts connections.
    pub(super) fn start_server(&mut self, address: SocketAddr) -> Result<(), CliError> {
        let mut command = Command::new(&self.programs.nats);
        command.arg("-c").arg(self.server_folder().join("nats-server.conf"));
        let mut server = spawn(&self.desk, &mut command, "nats-server")?;
        let end = Instant::now() + SERVER_LIMIT;
        let started = loop {
            if TcpStream::connect_timeout(&address, PAUSE).is_ok() {
                break Ok(());
            }
            if let Ok(Some(status)) = server.try_wait() {
                break Err(CliError::refused("server_ended", format!("The NATS server ended: {status}.")));
            }
            if (self.stop)() {
                break Err(interrupted());
            }
            if Instant::now() >= end {
                break Err(CliError::refused("server_silent", "The NATS server accepts no connections."));
            }
            std::thread::sleep(PAUSE);
        };
        self.server = Some(server);
        started
    }

    /// Starts the bridge of the host of that name.
    pub(super) fn start_bridge(&mut self, name: &str) -> Result<(), CliError> {
        let program = self.programs.fleet.clone();
        let host = if self.desk.name == name { &mut self.desk } else { &mut self.other };
        let bridge = spawn(host, Command::new(program).arg("run"), "bridge")?;
        host.bridge = Some(bridge);
        Ok(())
    }

    /// Ends the desk's bridge by SIGKILL; returns its process id.
    pub(super) fn kill_bridge(&mut self) -> Option<u32> {
        let mut bridge = self.desk.bridge.take()?;
        let pid = bridge.id();
        signal(pid, Signal::SIGKILL);
        let _ = bridge.wait();
        Some(pid)
    }

    /// Starts a command as a person on that host would.
    pub(super) fn start(&self, host: &DemoHost, program: FleetProgram, args: &[&str]) -> Result<Child, CliError> {
        let path = match program {
            FleetProgram::Tasuki => &self.programs.tasuki,
            FleetProgram::Fleet => &self.programs.fleet,
        };
        let mut command = Command::new(path);
        command.arg("--json").args(args).process_group(0);
        host.stage.place().private(&mut command);
        // `server init` asks the nats-server in PATH for its version, so that must be the one of the demo.
        let path_list = std::env::var_os("PATH").unwrap_or_default();
        let folders =
            self.programs.nats.parent().map(PathBuf::from).into_iter().chain(std::env::split_paths(&path_list));
        command.env("PATH", std::env::join_paths(folders).unwrap_or(path_list.clone()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|error| CliError::file("Can't run", path, &error))
    }

    /// Waits for a command, and returns what it has printed.
    pub(super) fn finish(&self, mut child: Child) -> Result<Value, CliError> {
        let end = Instant::now() + COMMAND_LIMIT;
        while child.try_wait().ok().flatten().is_none() {
            let problem = match (self.stop)() {
                true => Some(interrupted()),
                false => (Instant::now() >= end).then(|| CliError::refused("too_long", "A command took too long.")),
            };
            if let Some(problem) = problem {
                signal(child.id(), Signal::SIGKILL);
                let _ = child.wait();
                return Err(problem);
            }
            std::thread::sleep(PAUSE);
        }
        let output =
            child.wait_with_output().map_err(|error| CliError::refused("output", format!("No output: {error}.")))?;
        if output.status.success() {
            return Ok(serde_json::from_slice(&output.stdout).unwrap_or_default());
        }
        let error: Value = serde_json::from_slice(&output.stderr).unwrap_or_default();
        let word = |name: &str| error["error"][name].as_str().unwrap_or_default();
        Err(CliError::told(word("code"), word("message"), word("hint")))
    }

    /// Runs a command to its end.
    pub(super) fn run(&self, host: &DemoHost, program: FleetProgram, args: &[&str]) -> Result<Value, CliError> {
        self.finish(self.start(host, program, args)?)
    }

    /// Waits until a condition is true. `what`: what was wrong if it took too long.
    pub(super) fn until(&self, what: &str, limit: Duration, is_so: impl Fn() -> bool) -> Result<(), CliError> {
        let is_over = || (self.stop)() || is_so();
        match wait_until(limit, is_over) {
            _ if (self.stop)() => Err(interrupted()),
            true => Ok(()),
            false => Err(CliError::refused("too_long", format!("It took too long: {what}."))),
        }
    }

    /// The ends of the logs, so that a person can see what went wrong.
    pub(super) fn log_tails(&self) -> Vec<(String, Vec<String>)> {
        let mut tails = Vec::new();
        for host in [&self.desk, &self.other] {
            tails.push((format!("the sidecar of {}", host.name), host.stage.log_tail()));
            for name in ["nats-server", "bridge"] {
                let text = std::fs::read(log(host, name)).unwrap_or_default();
                let text = String::from_utf8_lossy(&text).into_owned();
                let lines: Vec<String> = text.lines().map(crate::core::text::sanitise).collect();
                let last = lines[lines.len().saturating_sub(15)..].to_vec();
                tails.push((format!("{name} of {}", host.name), last));
            }
        }
        tails.retain(|(_, lines)| !lines.is_empty());
        tails
    }

    /// Ends every process by its id and removes both folders. Each part is tried even if another one fails.
    pub(super) fn clear(&mut self) -> Result<(), CliError> {
        let bridges = [self.desk.bridge.take(), self.other.bridge.take()];
        for mut child in bridges.into_iter().flatten().chain(self.server.take()) {
            signal(child.id(), Signal::SIGTERM);
            ends_within(&mut child, END_LIMIT);
        }
        let cleared = [self.desk.stage.clear(), self.other.stage.clear()];
        cleared.into_iter().collect()
    }
}

impl Drop for FleetStage<'_> {
    fn drop(&mut self) {
        let _ = self.clear();
    }
}

fn log(host: &DemoHost, name: &str) -> PathBuf {
    host.stage.place().folder().join(name).with_extension("log")
}

/// Starts a process that keeps running, with its output in a log. It has a process group of its own, so that Ctrl-C
/// reaches only the demo.
fn spawn(host: &DemoHost, command: &mut Command, name: &str) -> Result<Child, CliError> {
    let program = command.get_program().to_owned();
    let path = log(host, name);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error: std::io::Error| CliError::file("Can't open", &path, &error)
    };
    let file = OpenOptions::new().create(true).append(true).open(&path).map_err(failed(&path))?;
    host.stage.place().private(command).process_group(0).stdin(Stdio::null());
    command.stdout(file.try_clone().map_err(failed(&path))?).stderr(file);
    let name: &OsStr = &program;
    command.spawn().map_err(|error| CliError::file("Can't run", Path::new(name), &error))
}

fn interrupted() -> CliError {
    CliError::refused("interrupted", "Interrupted; the demo was cleaned up completely.")
}
