//! One finding of the doctor: what was checked, the result, and what to do.

use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckState {
    Ok,
    /// Worth a look. `doctor` does not fail because of it.
    Warn,
    Fail,
    /// It was not checked, or there is nothing to check.
    Skipped,
}

impl CheckState {
    /// Its name, in JSON and in the text.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            CheckState::Ok => "ok",
            CheckState::Warn => "warn",
            CheckState::Fail => "fail",
            CheckState::Skipped => "skipped",
        }
    }
}

/// What `--fix` may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Repair {
    /// Set the modes of these folders and files, if they belong to this user.
    Modes(Vec<(PathBuf, u32)>),
    /// Make these folders, accessible only to this user.
    Folders(Vec<PathBuf>),
    /// Remove these files, which writers have left behind.
    Left(Vec<PathBuf>),
    /// Install the hooks of this profile again.
    Hooks(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    /// Its name, which never changes: `group.check`.
    pub(super) id: String,
    pub(super) state: CheckState,
    pub(super) said: String,
    pub(super) fix: Option<String>,
    pub(super) repair: Option<Repair>,
    pub(super) fixed: Option<String>,
}

impl Check {
    fn new(id: impl Into<String>, state: CheckState, said: impl Into<String>, fix: Option<String>) -> Check {
        Check { id: id.into(), state, said: said.into(), fix, repair: None, fixed: None }
    }

    pub(super) fn ok(id: impl Into<String>, said: impl Into<String>) -> Check {
        Check::new(id, CheckState::Ok, said, None)
    }

    pub(super) fn warn(id: impl Into<String>, said: impl Into<String>, fix: impl Into<String>) -> Check {
        Check::new(id, CheckState::Warn, said, Some(fix.into()))
    }

    pub(super) fn fail(id: impl Into<String>, said: impl Into<String>, fix: impl Into<String>) -> Check {
        Check::new(id, CheckState::Fail, said, Some(fix.into()))
    }

    pub(super) fn skipped(id: impl Into<String>, said: impl Into<String>) -> Check {
        Check::new(id, CheckState::Skipped, said, None)
    }

    pub(super) fn repair(self, repair: Repair) -> Check {
        Check { repair: Some(repair), ..self }
    }

    /// The part of the name before the point.
    pub(super) fn group(&self) -> &str {
        self.id.split('.').next().unwrap_or(&self.id)
    }

    pub(super) fn what(&self) -> &str {
        self.id.split_once('.').map_or(self.id.as_str(), |(_, what)| what)
    }
}

/// Causes and effects: if a check of the first list fails, the checks of the second list fail because of it. Their
/// failures then say nothing new.
const FOLLOWS: [(&[&str], &[&str]); 7] = [
    (&["paths.spool", "paths.state", "paths.view", "paths.above"], &["sidecar.state", "hooks.own"]),
    (&["disk.space", "disk.inodes", "disk.writable"], &["sidecar.state", "sidecar.watch", "hooks.own"]),
    (
        &["tmux.program", "tmux.socket", "tmux.server", "tmux.aliases"],
        &["sidecar.state", "sidecar.tmux", "programs.path"],
    ),
    (&["service.state"], &["sidecar.alive"]),
    (&["paths.config"], &["tmux.socket"]),
    (&["fleet.server", "fleet.bridge"], &["fleet.lease"]),
    (&["fleet.streams"], &["fleet.consumers", "fleet.hosts"]),
];

/// Leaves one failure for each cause: a check that only fails because of another failure is skipped and names it.
pub(super) fn leave_causes(checks: &mut [Check]) {
    for (causes, effects) in FOLLOWS {
        let cause = checks.iter().find(|check| check.state == CheckState::Fail && causes.contains(&check.id.as_str()));
        let Some(cause) = cause.map(|check| check.id.clone()) else { continue };
        for check in checks.iter_mut() {
            let is_bad = matches!(check.state, CheckState::Fail | CheckState::Warn);
            if is_bad && (effects.contains(&check.id.as_str()) || is_hook_effect(effects, check)) {
                *check = Check::skipped(check.id.clone(), format!("{} (this follows from {cause})", check.said));
            }
        }
    }
}

/// Whether a failed check of a CLI's hooks has the same cause: if tasuki's own test event can't arrive, no CLI's event
/// can.
fn is_hook_effect(effects: &[&str], check: &Check) -> bool {
    effects.contains(&"hooks.own")
        && check.group() == "hooks"
        && check.repair.is_none()
        && check.state == CheckState::Fail
}

/// Why `--fix` does not change something.
pub(super) fn why_not(check: &Check) -> &'static str {
    match (check.group(), check.id.as_str()) {
        (_, "paths.config") | ("data" | "notify", _) => "tasuki does not change files that you write",
        (_, "paths.above") => "these folders do not belong to tasuki alone",
        (_, "paths.database") => "only the sidecar changes the state file",
        (_, "paths.unread") => "doctor does not change files that it can't read",
        ("paths", _) => "tasuki did not create these files",
        ("tmux", _) => "tasuki does not start, end or change your tmux server",
        ("sidecar" | "service", _) => "doctor does not start or end programs",
        ("hooks", _) => "hooks go into an agent CLI's own file only when you run tasuki hooks install",
        ("fleet", _) => "doctor does not change a fleet, its server or its keys",
        ("programs" | "gh", _) => "doctor does not install programs or change accounts",
        _ => "doctor does not change system settings",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consequence_of_another_failure_is_not_a_failure_of_its_own() {
        let mut checks = vec![
            Check::fail("disk.space", "full", "make room"),
            Check::fail("hooks.own", "nothing came", "look"),
            Check::fail("hooks.claude", "nothing came", "look"),
            Check::warn("sidecar.state", "degraded", "wait"),
            Check::fail("notify.command", "missing", "install it"),
        ];
        leave_causes(&mut checks);
        let states: Vec<CheckState> = checks.iter().map(|check| check.state).collect();
        assert_eq!(
            states,
            [CheckState::Fail, CheckState::Skipped, CheckState::Skipped, CheckState::Skipped, CheckState::Fail]
        );
        assert_eq!(checks[1].said, "nothing came (this follows from disk.space)");
    }

    #[test]
    fn a_failure_without_its_cause_stays_one() {
        let mut checks = vec![Check::ok("disk.space", "room"), Check::fail("hooks.own", "nothing came", "look")];
        leave_causes(&mut checks);
        assert_eq!(checks[1].state, CheckState::Fail);
        assert_eq!((checks[1].group(), checks[1].what()), ("hooks", "own"));
    }
}
