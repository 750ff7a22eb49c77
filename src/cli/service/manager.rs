//! The commands for systemd and launchd: those that make each change, and those that ask for the state.

use super::args::ManagerKind;
use super::call::{Call, CallManner, PATIENCE, ToolOutput, run, run_within};
use crate::cli::error::CliError;
use crate::cli::view;
use crate::files;
use crate::service::{ServiceProgram, Written, plist, unit};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much of a service file is read at most, in bytes.
pub(crate) const MAX_FILE: u64 = 256 * 1024;

/// A change to the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServiceAction {
    Install { start: bool },
    Uninstall,
    Start,
    Stop,
    Restart,
}

impl ServiceAction {
    /// The last word of the message after this change: "The service was started."
    pub(super) fn done(self) -> &'static str {
        match self {
            ServiceAction::Install { .. } => "installed",
            ServiceAction::Uninstall => "uninstalled",
            ServiceAction::Start => "started",
            ServiceAction::Stop => "stopped",
            ServiceAction::Restart => "restarted",
        }
    }
}

impl ManagerKind {
    /// The service manager of this machine.
    pub(crate) fn here() -> ManagerKind {
        if cfg!(target_os = "macos") { ManagerKind::Launchd } else { ManagerKind::Systemd }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            ManagerKind::Systemd => "systemd",
            ManagerKind::Launchd => "launchd",
        }
    }
}

/// One of our programs as a service, and the manager that runs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ManagedService {
    pub(crate) kind: ManagerKind,
    pub(crate) service: &'static ServiceProgram,
}

impl ManagedService {
    /// The program with the service manager that was named, or else with this machine's.
    pub(crate) fn of(service: &'static ServiceProgram, named: Option<ManagerKind>) -> ManagedService {
        ManagedService { kind: named.unwrap_or_else(ManagerKind::here), service }
    }

    /// The path of the user's own service file, whether or not the file exists.
    pub(crate) fn file(self) -> Result<PathBuf, CliError> {
        let dirs = directories::BaseDirs::new().ok_or(crate::config::ConfigError::NoHome)?;
        Ok(match self.kind {
            ManagerKind::Systemd => dirs.config_dir().join("systemd/user").join(self.service.unit),
            ManagerKind::Launchd => {
                dirs.home_dir().join("Library/LaunchAgents").join(format!("{}.plist", self.service.label))
            }
        })
    }

    /// The service file that the manager uses: the user's own, or else, for systemd, a file from a package.
    pub(crate) fn installed(self) -> Result<Option<PathBuf>, CliError> {
        let own = self.file()?;
        if own.exists() {
            return Ok(Some(own));
        }
        let folders = match self.kind {
            ManagerKind::Systemd => std::env::var_os("XDG_DATA_DIRS").filter(|folders| !folders.is_empty()),
            ManagerKind::Launchd => return Ok(None),
        };
        let folders = folders.unwrap_or_else(|| "/usr/local/share:/usr/share".into());
        let all = [PathBuf::from("/etc")].into_iter().chain(std::env::split_paths(&folders));
        let all = all.chain([PathBuf::from("/usr/lib")]);
        let mut units = all.map(|folder| folder.join("systemd/user").join(self.service.unit));
        Ok(units.find(|unit| unit.is_file()))
    }

    /// What a service file with this text makes its manager run; none if it can't be told.
    pub(crate) fn written(self, text: &str) -> Option<Written> {
        match self.kind {
            ManagerKind::Systemd => unit::read(text),
            ManagerKind::Launchd => plist::read(text),
        }
    }

    /// The home in a service file that tasuki wrote, if it is another one than `home` and is still there. A user has
    /// one such service.
    pub(super) fn other_home(self, path: &Path, home: &Path) -> Option<PathBuf> {
        let text = view::read_bytes(path, MAX_FILE).ok().flatten()?;
        let text = String::from_utf8(text).ok().filter(|text| text.contains(&self.service.ours()))?;
        other_home(&self.written(&text)?, home).map(Path::to_path_buf)
    }

    /// Where launchd writes the program's output; systemd has its journal.
    pub(crate) fn log(self) -> Result<PathBuf, CliError> {
        let dirs = directories::BaseDirs::new().ok_or(crate::config::ConfigError::NoHome)?;
        Ok(dirs.home_dir().join("Library/Logs/tasuki").join(self.service.log))
    }

    /// The calls for this change. The file is written before them, or removed after them.
    pub(super) fn calls(self, action: ServiceAction) -> Result<Vec<Call>, CliError> {
        Ok(match self.kind {
            ManagerKind::Systemd => systemd(action, self.service.unit),
            ManagerKind::Launchd => launchd(action, &self.file()?.display().to_string(), &self.target()),
        })
    }

    /// Checks that the service manager can be reached. If it can't, the error says so and that nothing was changed.
    pub(super) fn answers(self) -> Result<(), CliError> {
        let call = match self.kind {
            ManagerKind::Systemd => Call::new(&["systemctl", "--user", "show-environment"]),
            ManagerKind::Launchd => Call::new(&["launchctl", "print", &domain()]),
        };
        let why = match run(&call) {
            Ok(said) if said.ok => return Ok(()),
            Ok(said) => said.err.lines().next().unwrap_or("no reason given").to_owned(),
            Err(error) => error.message,
        };
        let message = format!("{} is not available for this user ({why}). Nothing was changed.", self.kind.as_str());
        let hint = match self.folder_of_session() {
            // After `su`, `sudo` or in a job of cron.
            Some(folder) => format!("This shell is in no session of its user. Set: export XDG_RUNTIME_DIR={folder}"),
            None => format!(
                "Without it, run `{}` in a tmux window of its own, or let your own supervisor run it; \
                 `{} install --dry-run` shows the file that would be written.",
                self.service.by_hand, self.service.command
            ),
        };
        Err(CliError::refused("no_service_manager", message).hint(hint))
    }

    /// The folder by which the user's systemd is found, if it is there and this shell does not name one.
    fn folder_of_session(self) -> Option<String> {
        let is_named = std::env::var_os("XDG_RUNTIME_DIR").is_some_and(|folder| !folder.is_empty());
        let folder = format!("/run/user/{}", nix::unistd::getuid());
        let is_there = || Path::new(&folder).join("systemd").exists();
        (self.kind == ManagerKind::Systemd && !is_named && is_there()).then_some(folder)
    }

    /// launchd's name of the service.
    pub(super) fn target(self) -> String {
        format!("{}/{}", domain(), self.service.label)
    }

    /// The unit's properties, as systemd reports them.
    pub(super) fn properties(self) -> Result<Vec<(String, String)>, CliError> {
        self.properties_within(PATIENCE)
    }

    /// The same with a time limit.
    ///
    /// # Errors
    /// systemd does not run, or did not answer in time.
    pub(crate) fn properties_within(self, patience: Duration) -> Result<Vec<(String, String)>, CliError> {
        let wanted = "--property=LoadState,ActiveState,SubState,UnitFileState,MainPID,Result,NRestarts";
        let said = run_within(&Call::new(&["systemctl", "--user", "show", self.service.unit, wanted]), patience)?;
        if !said.ok {
            let why = said.err.lines().next().unwrap_or("no reason given").to_owned();
            return Err(CliError::refused("service_manager", format!("systemd does not report on the service: {why}")));
        }
        let pair = |line: &str| line.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        Ok(said.out.lines().filter_map(pair).collect())
    }

    /// What `launchctl print` says about the service.
    pub(super) fn printed(self) -> Result<ToolOutput, CliError> {
        run(&Call::new(&["launchctl", "print", &self.target()]))
    }
}

/// Whether a service uses this home, by whichever way its file leads there.
pub(crate) fn uses(written: &Written, home: &Path) -> bool {
    written.home().is_some_and(|its| its == home || files::lead_to_same(its, home))
}

/// The home of a service, if it is another one than `home` and is still there.
pub(crate) fn other_home<'w>(written: &'w Written, home: &Path) -> Option<&'w Path> {
    written.home().filter(|other| other.exists() && !uses(written, home))
}

fn systemd(action: ServiceAction, unit: &str) -> Vec<Call> {
    let call = |words: &[&str]| Call::new(&[&["systemctl", "--user"], words].concat());
    match action {
        ServiceAction::Install { start: true } => {
            vec![call(&["daemon-reload"]), call(&["enable", unit]), call(&["restart", unit])]
        }
        ServiceAction::Install { start: false } => vec![call(&["daemon-reload"]), call(&["enable", unit])],
        ServiceAction::Uninstall => vec![call(&["disable", "--now", unit]).in_manner(CallManner::MayFail)],
        ServiceAction::Start => vec![call(&["start", unit])],
        ServiceAction::Stop => vec![call(&["stop", unit])],
        ServiceAction::Restart => vec![call(&["restart", unit])],
    }
}

/// `bootout` returns before launchd has ended the service. Until launchd has, it loads no other service of that label.
fn launchd(action: ServiceAction, file: &str, target: &str) -> Vec<Call> {
    let domain = domain();
    // A service that somebody has disabled can't be loaded.
    let enable = Call::new(&["launchctl", "enable", target]).in_manner(CallManner::MayFail);
    let load = |manner| Call::new(&["launchctl", "bootstrap", &domain, file]).in_manner(manner);
    let bootout = Call::new(&["launchctl", "bootout", target]);
    let gone = Call::new(&["launchctl", "print", target]).in_manner(CallManner::UntilGone);
    match action {
        ServiceAction::Install { start: true } => {
            vec![enable, bootout.in_manner(CallManner::MayFail), gone, load(CallManner::WhileBusy)]
        }
        ServiceAction::Install { start: false } => Vec::new(),
        ServiceAction::Uninstall => vec![bootout.in_manner(CallManner::MayFail), gone],
        ServiceAction::Start => {
            let target_is_loaded = CallManner::UntilLoaded(target.to_owned());
            vec![enable, load(target_is_loaded), Call::new(&["launchctl", "kickstart", target])]
        }
        ServiceAction::Stop => vec![bootout, gone],
        ServiceAction::Restart => vec![Call::new(&["launchctl", "kickstart", "-k", target])],
    }
}

/// launchd's name of the domain that holds the services of this user's session.
pub(super) fn domain() -> String {
    format!("gui/{}", nix::unistd::getuid())
}
