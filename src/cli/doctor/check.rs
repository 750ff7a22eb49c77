//! One thing that was looked at, and what became of it.

use std::path::PathBuf;

/// How a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Ok,
    /// Worth a look; nothing fails by it alone.
    Warn,
    Fail,
    /// It was not looked at, or there is nothing to look at.
    Skipped,
}

impl State {
    /// The word for it, in JSON and for people.
    pub(super) fn word(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Warn => "warn",
            State::Fail => "fail",
            State::Skipped => "skipped",
        }
    }
}

/// What `--fix` may do: only to tasuki's own files and folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mend {
    /// Give these folders and files of ours these modes.
    Modes(Vec<(PathBuf, u32)>),
    /// Make these folders, for this user alone.
    Folders(Vec<PathBuf>),
    /// Remove these files, which writers have left behind.
    Left(Vec<PathBuf>),
    /// Put the hooks of this profile in anew.
    Hooks(String),
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Check {
    /// Its name, which stays the same: the group, a point, and what it is.
    pub(super) id: String,
    pub(super) state: State,
    pub(super) said: String,
    pub(super) fix: Option<String>,
    /// What `--fix` would do.
    pub(super) mend: Option<Mend>,
    /// What `--fix` has done.
    pub(super) fixed: Option<String>,
}

impl Check {
    fn new(id: impl Into<String>, state: State, said: impl Into<String>, fix: Option<String>) -> Check {
        Check { id: id.into(), state, said: said.into(), fix, mend: None, fixed: None }
    }

    pub(super) fn ok(id: impl Into<String>, said: impl Into<String>) -> Check {
        Check::new(id, State::Ok, said, None)
    }

    pub(super) fn warn(id: impl Into<String>, said: impl Into<String>, fix: impl Into<String>) -> Check {
        Check::new(id, State::Warn, said, Some(fix.into()))
    }

    pub(super) fn fail(id: impl Into<String>, said: impl Into<String>, fix: impl Into<String>) -> Check {
        Check::new(id, State::Fail, said, Some(fix.into()))
    }

    pub(super) fn skipped(id: impl Into<String>, said: impl Into<String>) -> Check {
        Check::new(id, State::Skipped, said, None)
    }

    pub(super) fn mend(self, mend: Mend) -> Check {
        Check { mend: Some(mend), ..self }
    }

    /// The part of the name before the point.
    pub(super) fn group(&self) -> &str {
        self.id.split('.').next().unwrap_or(&self.id)
    }

    /// The part behind it.
    pub(super) fn what(&self) -> &str {
        self.id.split_once('.').map_or(self.id.as_str(), |(_, what)| what)
    }
}

/// What follows from what: where one of the first has failed, those of the second are as they must be then, and their
/// own failure says nothing more.
const FOLLOWS: [(&[&str], &[&str]); 5] = [
    (&["paths.spool", "paths.state", "paths.view", "paths.above"], &["sidecar.state", "hooks.own"]),
    (&["disk.space", "disk.inodes", "disk.writable"], &["sidecar.state", "sidecar.watch", "hooks.own"]),
    (&["tmux.program", "tmux.server", "tmux.aliases"], &["sidecar.tmux", "programs.path"]),
    (&["sidecar.alive"], &["service.state"]),
    (&["paths.config"], &["tmux.socket"]),
];

/// Leaves one failure for one cause: what only follows from another failure is skipped, and says from which.
pub(super) fn leave_causes(checks: &mut [Check]) {
    for (causes, effects) in FOLLOWS {
        let cause = checks.iter().find(|check| check.state == State::Fail && causes.contains(&check.id.as_str()));
        let Some(cause) = cause.map(|check| check.id.clone()) else { continue };
        for check in checks.iter_mut() {
            let is_bad = matches!(check.state, State::Fail | State::Warn);
            if is_bad && (effects.contains(&check.id.as_str()) || is_hook_effect(effects, check)) {
                *check = Check::skipped(check.id.clone(), format!("{} (this follows from {cause})", check.said));
            }
        }
    }
}

/// Where our own test event can't arrive, none of a CLI's can.
fn is_hook_effect(effects: &[&str], check: &Check) -> bool {
    effects.contains(&"hooks.own") && check.group() == "hooks" && check.mend.is_none() && check.state == State::Fail
}

/// Why `--fix` leaves a thing as it is.
pub(super) fn why_not(check: &Check) -> &'static str {
    match (check.group(), check.id.as_str()) {
        (_, "paths.config") | ("data" | "notify", _) => "what a person has written is theirs to change",
        (_, "paths.above") => "these folders are not tasuki's own, or hold more than its own",
        (_, "paths.database") => "the state file is never touched but by the sidecar",
        ("paths", _) => "what lies there is not tasuki's own, or not what it has made",
        ("tmux", _) => "your tmux server and its options are yours; tasuki starts, ends and changes none",
        ("sidecar" | "service", _) => "starting and ending programs is not done behind your back",
        ("hooks", _) => "hooks go into a CLI's own file only when you ask for them, by name",
        ("programs" | "gh", _) => "programs and accounts are yours",
        _ => "the system's settings are for its owner to change",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_another_failure_is_not_a_failure_of_its_own() {
        let mut checks = vec![
            Check::fail("disk.space", "full", "make room"),
            Check::fail("hooks.own", "nothing came", "look"),
            Check::fail("hooks.claude", "nothing came", "look"),
            Check::warn("sidecar.state", "degraded", "wait"),
            Check::fail("notify.command", "missing", "install it"),
        ];
        leave_causes(&mut checks);
        let states: Vec<State> = checks.iter().map(|check| check.state).collect();
        assert_eq!(states, [State::Fail, State::Skipped, State::Skipped, State::Skipped, State::Fail]);
        assert_eq!(checks[1].said, "nothing came (this follows from disk.space)");
    }

    #[test]
    fn a_failure_without_its_cause_stays_one() {
        let mut checks = vec![Check::ok("disk.space", "room"), Check::fail("hooks.own", "nothing came", "look")];
        leave_causes(&mut checks);
        assert_eq!(checks[1].state, State::Fail);
        assert_eq!((checks[1].group(), checks[1].what()), ("hooks", "own"));
    }
}
