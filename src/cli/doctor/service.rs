//! Checks the service: whether its file still starts this program on this home, and whether the manager runs it.

use super::super::service::manager::{MAX_FILE, other_home, uses};
use super::super::service::{LaunchdState, ManagedService, ManagerKind, status};
use super::check::Check;
use super::ground::DoctorFacts;
use crate::cli::client::SidecarPresence;
use crate::cli::view;
use crate::core::text::shell_word;
use crate::files;
use crate::service::{SIDECAR, Written, plist};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the manager may take to answer.
const PATIENCE: Duration = Duration::from_secs(4);

struct Facts {
    kind: ManagerKind,
    file: PathBuf,
    /// The file is not the user's own: a package or an administrator has put it there, for all users.
    is_shared: bool,
    text: Result<Option<String>, String>,
    /// The command line and the variables in the file, if they could be read.
    unit: Option<Written>,
    /// The file is exactly what this version of tasuki would write. Always true for systemd, whose file is not
    /// compared.
    is_current: bool,
    program: Option<PathBuf>,
    home: PathBuf,
    /// The properties that systemd reports, or why it reports none.
    manager: Result<Vec<(String, String)>, String>,
    /// What launchd reports, or why it reports nothing.
    launchd: Result<LaunchdState, String>,
    lingers: bool,
    is_alive: bool,
    /// This shell's `PATH`.
    path: Option<String>,
    /// This shell's `TMUX_TMPDIR`.
    tmpdir: Option<String>,
    time_zone: Option<String>,
}

impl Facts {
    /// A property that systemd reports; empty if it reports none.
    fn property(&self, name: &str) -> &str {
        let properties = self.manager.as_deref().unwrap_or_default();
        properties.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.as_str())
    }

    /// The home of the service, if it is another one.
    fn other_home(&self) -> Option<&Path> {
        other_home(self.unit.as_ref()?, &self.home)
    }

    /// systemd says that the service runs.
    fn runs(&self) -> bool {
        matches!(self.property("ActiveState"), "active" | "activating" | "reloading")
    }
}

pub(super) fn look(ground: &DoctorFacts) -> Vec<Check> {
    let managed = ManagedService::of(&SIDECAR, ground.asked.manager);
    let (Ok(own), Ok(installed)) = (managed.file(), managed.installed()) else {
        return vec![Check::skipped("service.file", "this user has no home folder")];
    };
    let file = installed.unwrap_or_else(|| own.clone());
    let target = file.canonicalize().unwrap_or_else(|_| file.clone());
    let bytes = view::read_bytes(&target, MAX_FILE).map_err(|error| error.message);
    let text = bytes.map(|bytes| bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
    let there = text.as_ref().ok().cloned().flatten();
    let is_systemd = managed.kind == ManagerKind::Systemd;
    let unit = there.as_deref().and_then(|text| managed.written(text));
    judge(&Facts {
        is_current: is_systemd || there.as_deref().is_none_or(|text| is_current_list(text, unit.as_ref(), managed)),
        unit,
        manager: match &there {
            Some(_) if is_systemd => managed.properties_within(PATIENCE).map_err(|error| error.message),
            _ => Err(String::new()),
        },
        launchd: match &there {
            Some(_) if !is_systemd => managed.launchd_within(PATIENCE / 2).map_err(|error| error.message),
            _ => Err(String::new()),
        },
        lingers: status::lingers(),
        is_alive: matches!(ground.presence, SidecarPresence::Alive { .. }),
        program: ground.program.clone(),
        home: ground.home.root().to_path_buf(),
        path: std::env::var("PATH").ok(),
        tmpdir: std::env::var("TMUX_TMPDIR").ok().filter(|dir| !dir.is_empty()),
        time_zone: std::env::var("TZ").ok().filter(|zone| !zone.is_empty()),
        kind: managed.kind,
        is_shared: file != own,
        file,
        text,
    })
}

/// Whether launchd's file is what this version would write with the same paths and variables.
fn is_current_list(text: &str, written: Option<&Written>, managed: ManagedService) -> bool {
    let plan = managed.log().ok().and_then(|log| written?.plan(managed.service, log));
    plan.and_then(|plan| plist::render(&plan).ok()).is_some_and(|again| again == text)
}

fn judge(facts: &Facts) -> Vec<Check> {
    let file = facts.file.display();
    match &facts.text {
        Err(why) => return vec![Check::warn("service.file", why, "check that file")],
        Ok(None) => {
            let said = format!(
                "the service is not installed (there is no {file}); tasuki service install starts the sidecar with your session"
            );
            return vec![Check::skipped("service.file", said)];
        }
        Ok(Some(_)) if facts.is_shared => return shared(facts),
        Ok(Some(text)) if !text.contains(&SIDECAR.ours()) => {
            return vec![Check::warn(
                "service.file",
                format!("{file} was not written by tasuki"),
                "keep managing that file yourself, or move it away, then: tasuki service install",
            )];
        }
        Ok(Some(_)) => {}
    }
    let mut checks = vec![written(facts)];
    if facts.other_home().is_some() {
        // How that service does says nothing of this home's sidecar, and this home's commands leave it alone.
        return checks;
    }
    checks.extend(variables(facts));
    if facts.kind == ManagerKind::Launchd {
        checks.push(launchd_state(facts));
    } else {
        checks.extend([state(facts), lingers(facts)]);
    }
    checks
}

/// Judges a unit that is there for all users. Its paths are not this user's concern, and where the user has not enabled
/// it and it does not run, the user does not use it.
fn shared(facts: &Facts) -> Vec<Check> {
    let file = facts.file.display();
    let is_used =
        facts.property("ActiveState") == "failed" || facts.runs() || facts.property("UnitFileState") == "enabled";
    if !is_used {
        let said = format!(
            "the service is not in use; {file} is there for all users, and systemctl --user enable --now tasuki starts it with your session"
        );
        return vec![Check::skipped("service.file", said)];
    }
    vec![Check::ok("service.file", format!("{file} is there for all users")), state(facts), lingers(facts)]
}

fn lingers(facts: &Facts) -> Check {
    if facts.lingers {
        return Check::ok("service.lingers", "the service keeps running when you log out");
    }
    Check::warn(
        "service.lingers",
        "the service ends when you log out, and so may your tmux server",
        "to keep both running: loginctl enable-linger",
    )
}

/// Whether the file starts this very program on this home.
fn written(facts: &Facts) -> Check {
    let (id, file) = ("service.file", facts.file.display());
    let again = "rewrite the service file: tasuki service install";
    let Some(unit) = &facts.unit else {
        return Check::ok(id, format!("{file} exists"));
    };
    let program = unit.words.first().map(PathBuf::from).unwrap_or_default();
    if !crate::process::is_program(&program) {
        return Check::fail(id, format!("{file} starts {}, which does not exist", program.display()), again);
    }
    if let Some(other) = facts.other_home().map(|home| home.display().to_string()) {
        let uninstall = format!("tasuki service uninstall --home {}", shell_word(&other));
        let fix = format!("if the service is to use this home instead: {uninstall}; then: tasuki service install");
        return Check::warn(id, format!("{file} uses another home: {other}"), fix);
    }
    if !uses(unit, &facts.home) {
        let home = unit.home().map_or_else(|| "the default one".to_owned(), |home| home.display().to_string());
        return Check::warn(id, format!("{file} uses another home: {home}"), again);
    }
    if !facts.program.as_ref().is_some_and(|own| files::lead_to_same(own, &program)) {
        return Check::warn(
            id,
            format!("{file} starts another program than this command: {}", program.display()),
            again,
        );
    }
    if !facts.is_current {
        let said = format!(
            "{file} is not as this version of tasuki writes it: another version wrote it, or a person changed it"
        );
        return Check::warn(id, said, again);
    }
    Check::ok(id, format!("{file} starts this program with this home"))
}

/// Compares the variables in the service's file with this shell's: no shell sets them for the service.
fn variables(facts: &Facts) -> Option<Check> {
    let (id, unit) = ("service.environment", facts.unit.as_ref()?);
    let get = |name: &str| unit.environment.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
    let again = "rewrite the service file from this shell: tasuki service install";
    if get("TZ") != facts.time_zone {
        return Some(Check::warn(
            id,
            "the service has another time zone (TZ) than this shell, so it misreads the times that CLIs write",
            again,
        ));
    }
    if get("TMUX_TMPDIR") != facts.tmpdir {
        return Some(Check::warn(
            id,
            "the service has another TMUX_TMPDIR than this shell, so it looks for tmux in another place",
            again,
        ));
    }
    let folders = |path: Option<String>| -> Vec<PathBuf> {
        path.map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
    };
    let its = folders(get("PATH"));
    let missing: Vec<String> = folders(facts.path.clone())
        .into_iter()
        .filter(|folder| !its.contains(folder) && folder.is_dir())
        .map(|folder| folder.display().to_string())
        .collect();
    Some(if missing.is_empty() {
        Check::ok(id, "the service has the PATH, the TMUX_TMPDIR and the TZ of this shell")
    } else {
        Check::warn(
            id,
            format!("the PATH of the service lacks folders of this shell's PATH: {}", missing.join(", ")),
            again,
        )
    })
}

fn state(facts: &Facts) -> Check {
    let id = "service.state";
    if let Err(why) = &facts.manager {
        return Check::warn(id, why, "check the service yourself: systemctl --user status tasuki");
    }
    let enable = if facts.is_shared { "systemctl --user enable tasuki" } else { "tasuki service install" };
    match (facts.property("ActiveState"), facts.property("UnitFileState")) {
        ("failed", _) => Check::fail(
            id,
            format!("the service has failed ({})", facts.property("Result")),
            "to see why: tasuki service logs; then: tasuki service start",
        ),
        (_, "enabled") if facts.runs() => Check::ok(id, "the service runs, and starts with your session"),
        (_, _) if facts.runs() => Check::warn(id, "the service runs, but does not start with your session", enable),
        (_, _) if facts.is_alive => Check::warn(
            id,
            "a sidecar runs, but not as the service",
            "end the running sidecar; then: tasuki service start",
        ),
        (state, _) => Check::fail(id, format!("the service does not run ({state})"), "tasuki service start"),
    }
}

/// Judges what launchd reports. launchd starts a loaded service with the session, and does not load a disabled service.
fn launchd_state(facts: &Facts) -> Check {
    let id = "service.state";
    let state = match &facts.launchd {
        Ok(state) => state,
        Err(why) => return Check::warn(id, why, "check the service yourself: tasuki service status"),
    };
    let begin = "tasuki service start";
    match (state.is_loaded, state.pid) {
        (true, Some(_)) if state.is_disabled => {
            Check::warn(id, "the service runs, but is disabled: it does not start with your session", begin)
        }
        (true, Some(_)) => Check::ok(id, "the service runs, and starts with your session"),
        (_, _) if facts.is_alive => Check::warn(
            id,
            "a sidecar runs, but not as the service",
            "end the running sidecar; then: tasuki service start",
        ),
        (true, None) => {
            let exit = state.last_exit.as_deref().unwrap_or("unknown");
            Check::fail(
                id,
                format!("the service is loaded, but does not run (its last exit code: {exit})"),
                "to see why: tasuki service logs; then: tasuki service start",
            )
        }
        (false, _) if state.is_disabled => {
            Check::fail(id, "the service is disabled, so launchd has not loaded it", begin)
        }
        (false, _) => Check::fail(id, "launchd has not loaded the service", begin),
    }
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
