//! The service: whether its file still starts this program on this home, and whether the manager runs it.

use super::super::service::{Kind, manager, status};
use super::check::Check;
use super::ground::{Ground, is_same};
use crate::cli::client::Sidecar;
use crate::cli::view;
use crate::service::{OURS, unit};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the manager may take to answer.
const PATIENCE: Duration = Duration::from_secs(4);
/// Largest file of a service that is read, in bytes.
const MAX: u64 = 256 * 1024;

/// What was gathered.
struct Facts {
    kind: Kind,
    file: PathBuf,
    text: Result<Option<String>, String>,
    /// The words of its command line and its variables, where they could be read.
    unit: Option<unit::Written>,
    program: Option<PathBuf>,
    home: PathBuf,
    /// The properties that the manager tells; or why it tells none.
    manager: Result<Vec<(String, String)>, String>,
    lingers: bool,
    beats: bool,
    path: Option<String>,
    tmpdir: Option<String>,
}

/// Looks at it.
pub(super) fn look(ground: &Ground) -> Vec<Check> {
    let kind = Kind::here();
    let Ok(file) = kind.file() else {
        return vec![Check::skipped("service.file", "this user has no home folder")];
    };
    let target = file.canonicalize().unwrap_or_else(|_| file.clone());
    let bytes = view::read_bytes(&target, MAX).map_err(|error| error.message);
    let text = bytes.map(|bytes| bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
    let there = text.as_ref().ok().cloned().flatten();
    let is_systemd = kind == Kind::Systemd;
    judge(&Facts {
        unit: there.as_deref().filter(|_| is_systemd).and_then(unit::read),
        manager: match &there {
            Some(_) if is_systemd => manager::properties_within(PATIENCE).map_err(|error| error.message),
            _ => Err(String::new()),
        },
        lingers: status::lingers(),
        beats: matches!(ground.beat, Sidecar::Alive { .. }),
        program: ground.program.clone(),
        home: ground.home.root().to_path_buf(),
        path: std::env::var("PATH").ok(),
        tmpdir: std::env::var("TMUX_TMPDIR").ok().filter(|dir| !dir.is_empty()),
        kind,
        file,
        text,
    })
}

fn judge(facts: &Facts) -> Vec<Check> {
    let file = facts.file.display();
    match &facts.text {
        Err(why) => return vec![Check::warn("service.file", why, "look at that file")],
        Ok(None) => {
            let said = format!(
                "it is not installed ({file} is not there); tasuki service install makes the sidecar start with your session"
            );
            return vec![Check::skipped("service.file", said)];
        }
        Ok(Some(text)) if !text.contains(OURS) => {
            return vec![Check::warn(
                "service.file",
                format!("{file} was not written by tasuki"),
                "manage it as you have made it, or move it away and: tasuki service install",
            )];
        }
        Ok(Some(_)) => {}
    }
    let mut checks = vec![written(facts)];
    checks.extend(variables(facts));
    if facts.kind == Kind::Systemd {
        checks.push(state(facts));
        checks.push(if facts.lingers {
            Check::ok("service.lingers", "it goes on when you log out")
        } else {
            Check::warn(
                "service.lingers",
                "it ends when you log out, and so may your tmux server",
                "to keep it running: loginctl enable-linger",
            )
        });
    }
    checks
}

/// Whether the file starts this very program on this home.
fn written(facts: &Facts) -> Check {
    let (id, file) = ("service.file", facts.file.display());
    let again = "write it anew: tasuki service install";
    let Some(unit) = &facts.unit else {
        return Check::ok(id, format!("{file} is there"));
    };
    let program = unit.words.first().map(PathBuf::from).unwrap_or_default();
    let home = unit.words.iter().position(|word| word == "--home").and_then(|at| unit.words.get(at + 1));
    if !crate::process::is_program(&program) {
        return Check::fail(id, format!("{file} starts {}, which is not there", program.display()), again);
    }
    if home.map(Path::new) != Some(facts.home.as_path()) {
        let said = format!("{file} serves another home: {}", home.map_or("the default one", String::as_str));
        return Check::warn(id, said, again);
    }
    if !facts.program.as_ref().is_some_and(|own| is_same(own, &program)) {
        return Check::warn(id, format!("{file} starts another program than this one: {}", program.display()), again);
    }
    Check::ok(id, format!("{file} starts this program on this home"))
}

/// Whether what it was told of the surroundings is still so: it has no shell that would tell it.
fn variables(facts: &Facts) -> Option<Check> {
    let (id, unit) = ("service.environment", facts.unit.as_ref()?);
    let get = |name: &str| unit.environment.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
    let again = "write it anew from this shell: tasuki service install";
    if get("TMUX_TMPDIR") != facts.tmpdir {
        return Some(Check::warn(
            id,
            "it has another TMUX_TMPDIR than this shell, and so looks for tmux elsewhere",
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
        Check::ok(id, "it has the PATH and the TMUX_TMPDIR of this shell")
    } else {
        Check::warn(id, format!("its PATH lacks folders that this shell's has: {}", missing.join(", ")), again)
    })
}

fn state(facts: &Facts) -> Check {
    let id = "service.state";
    let properties = match &facts.manager {
        Ok(properties) => properties,
        Err(why) => return Check::warn(id, why, "look at it yourself: systemctl --user status tasuki"),
    };
    let get = |name: &str| properties.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.as_str());
    match (get("ActiveState"), get("UnitFileState")) {
        ("failed", _) => Check::fail(
            id,
            format!("it has failed ({})", get("Result")),
            "see why: tasuki service logs; then: tasuki service start",
        ),
        ("active" | "activating" | "reloading", "enabled") => Check::ok(id, "it runs, and starts with your session"),
        ("active" | "activating" | "reloading", _) => {
            Check::warn(id, "it runs, but does not start with your session", "tasuki service install")
        }
        (_, _) if facts.beats => Check::warn(
            id,
            "a sidecar runs, but not as the service",
            "end the one that runs; then: tasuki service start",
        ),
        (state, _) => Check::fail(id, format!("it does not run ({state})"), "tasuki service start"),
    }
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
