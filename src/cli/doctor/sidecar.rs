//! Checks the sidecar: whether it runs, how old its last heartbeat is, and what its view says.

use super::check::Check;
use super::ground::DoctorFacts;
use crate::cli::client::SidecarPresence;
use crate::cli::view::{said, shown};
use crate::clock::Clock;
use crate::contract::{SidecarView, Watch};
use crate::core::text::shell_word;
use crate::core::time::millis;
use crate::process;
use crate::spool::client;

/// A sidecar that has run for less than this has only just started: its first heartbeat may come before it is connected
/// to tmux, and the second comes 5 s later. In milliseconds.
const JUST_STARTED_MS: i64 = 8_000;

/// If the sidecar's last intake is older than its heartbeat by more than this, it takes no more requests. In
/// milliseconds.
const TAKES_WITHIN_MS: i64 = 15_000;

struct Facts {
    home: String,
    presence: SidecarPresence,
    /// Why this user may not learn whether a sidecar runs.
    denied: Option<String>,
    /// How long ago its last heartbeat was, in milliseconds.
    age_ms: i64,
    /// How long it has been running, in milliseconds.
    up_ms: i64,
    /// The process with the id that the heartbeat names is a sidecar.
    is_there: bool,
    is_stopped: bool,
    /// Its program's file was replaced or removed since it started.
    is_replaced: bool,
    view: SidecarView,
}

pub(super) fn look(ground: &DoctorFacts) -> Vec<Check> {
    let age_ms = match ground.presence {
        SidecarPresence::Alive { heartbeat_ms, .. } => Clock::new().now().wall_ms.saturating_sub(heartbeat_ms),
        SidecarPresence::Stale { age_ms, .. } => age_ms,
        SidecarPresence::None => 0,
    };
    let started = millis(&ground.view.started_at);
    judge(&Facts {
        up_ms: started.map_or(i64::MAX, |at| Clock::new().now().wall_ms.saturating_sub(at)),
        home: ground.home.root().display().to_string(),
        presence: ground.presence,
        denied: client::denied(ground.home.root()).map(|denied| denied.to_string()),
        age_ms,
        is_there: ground.process.is_some(),
        is_stopped: ground.process.is_some_and(process::is_stopped),
        is_replaced: ground.process.is_some_and(is_replaced),
        view: ground.view.clone(),
    })
}

/// Whether the file of a process's program was replaced or removed, as by an upgrade.
fn is_replaced(pid: u32) -> bool {
    let link = std::fs::read_link(format!("/proc/{pid}/exe"));
    link.is_ok_and(|path| path.to_string_lossy().ends_with(" (deleted)"))
}

fn judge(facts: &Facts) -> Vec<Check> {
    let alive = alive(facts);
    let runs = alive.state == super::check::CheckState::Ok;
    let mut checks = vec![alive];
    if runs {
        checks.extend([version(facts), state(facts), answers(facts), tmux(facts), watch(facts)]);
    }
    checks
}

fn alive(facts: &Facts) -> Check {
    let id = "sidecar.alive";
    let home = shell_word(&facts.home);
    let start = format!(
        "start a sidecar in its own pane: tasuki run --home {home}; or as a service: tasuki service install, or \
         tasuki service start if it is installed"
    );
    let seconds = facts.age_ms.saturating_abs() / 1_000;
    match facts.presence {
        SidecarPresence::None => match &facts.denied {
            Some(why) => Check::fail(id, why.clone(), "nobody can say whether a sidecar runs before that is put right"),
            None => Check::fail(id, "no sidecar is running; commands that need one end with exit code 69", start),
        },
        SidecarPresence::Alive { pid, .. } | SidecarPresence::Stale { pid, .. } if !facts.is_there => {
            let said = format!(
                "the sidecar has died: process {pid} is not a sidecar, the last heartbeat was {seconds} s ago; \
                 commands that need a sidecar end with exit code 69"
            );
            Check::fail(id, said, start)
        }
        SidecarPresence::Alive { pid, .. } | SidecarPresence::Stale { pid, .. } if facts.is_stopped => {
            let said = format!("process {pid} was stopped (SIGSTOP), its last heartbeat was {seconds} s ago");
            Check::fail(id, said, format!("continue the process: kill -CONT {pid}"))
        }
        SidecarPresence::Stale { pid, .. } if facts.age_ms < 0 => {
            let said =
                format!("the last heartbeat of process {pid} is {seconds} s in the future: the clock was set back");
            Check::warn(id, said, "wait some seconds for the next heartbeat")
        }
        SidecarPresence::Stale { pid, .. } => {
            let said = match said(facts.view.problem.as_deref()) {
                Some(problem) => format!("process {pid} has not answered anyone for {seconds} s: {problem}"),
                None => format!("process {pid} runs but hangs: its last heartbeat was {seconds} s ago"),
            };
            Check::fail(
                id,
                said,
                "the machine may just have slept: try again; otherwise restart the sidecar, nothing is lost",
            )
        }
        SidecarPresence::Alive { pid, .. } => {
            Check::ok(id, format!("process {pid}, its last heartbeat was {seconds} s ago"))
        }
    }
}

fn version(facts: &Facts) -> Check {
    let id = "sidecar.version";
    let (own, other) = (env!("CARGO_PKG_VERSION"), shown(facts.view.version.as_str()));
    let restart =
        "restart the sidecar: tasuki service restart, or end `tasuki run` and start it again; nothing is lost";
    if own != other {
        Check::warn(id, format!("the sidecar has version {other}, this command {own}"), restart)
    } else if facts.is_replaced {
        Check::warn(id, "the sidecar's program file was replaced since the sidecar started", restart)
    } else {
        Check::ok(id, format!("{own}, the same as this command"))
    }
}

fn state(facts: &Facts) -> Check {
    let id = "sidecar.state";
    match said(facts.view.problem.as_deref()) {
        // What is to be done is in the words of such a problem itself.
        Some(problem) if ["kill -HUP", "restart the sidecar"].iter().any(|done| problem.contains(done)) => {
            Check::fail(id, problem, "do what it says")
        }
        Some(problem) => Check::fail(id, problem, "fix that; the sidecar continues by itself within some seconds"),
        None => Check::ok(id, "the sidecar reports no problem"),
    }
}

/// Checks that the sidecar picks up requests. A fresh heartbeat alone does not prove that.
fn answers(facts: &Facts) -> Check {
    let id = "sidecar.answers";
    if said(facts.view.problem.as_deref()).is_some() {
        return Check::skipped(id, "the sidecar reports its problem itself");
    }
    let Some(taken_at) = &facts.view.taken_at else {
        return Check::skipped(id, "this version of the sidecar does not report that");
    };
    let restart = "restart the sidecar (nothing is lost), and please report this with the sidecar's log";
    match (millis(&facts.view.heartbeat), taken_at.as_deref().and_then(millis)) {
        (Some(heartbeat), Some(taken)) if heartbeat - taken <= TAKES_WITHIN_MS => {
            Check::ok(id, "the sidecar picks up requests from spool/requests")
        }
        (Some(heartbeat), Some(taken)) => {
            let seconds = (heartbeat - taken) / 1_000;
            let said = format!("the sidecar runs but has not picked up the files in spool/requests for {seconds} s");
            Check::fail(id, said, restart)
        }
        _ if (0..JUST_STARTED_MS).contains(&facts.up_ms) => Check::skipped(id, "the sidecar has only just started"),
        _ => Check::fail(id, "the sidecar runs but has not picked up a single request yet", restart),
    }
}

fn tmux(facts: &Facts) -> Check {
    let id = "sidecar.tmux";
    match &facts.view.tmux {
        Some(server) => Check::ok(id, format!("the sidecar is connected to the tmux server, process {}", server.pid)),
        None if (0..JUST_STARTED_MS).contains(&facts.up_ms) => Check::skipped(id, "the sidecar has only just started"),
        None => Check::fail(
            id,
            "the sidecar is not connected to a tmux server",
            "see tmux above; the sidecar connects by itself",
        ),
    }
}

fn watch(facts: &Facts) -> Check {
    let id = "sidecar.watch";
    if facts.view.watch == Watch::Poll {
        let said = "the sidecar can't watch its folders and polls every second: it works, but answers later";
        return Check::warn(
            id,
            said,
            "see limits.inotify or limits.watches; network file systems do not support watches",
        );
    }
    Check::ok(id, "the system notifies the sidecar of new files")
}

#[cfg(test)]
mod tests {
    use super::super::check::CheckState;
    use super::*;
    use crate::contract::ServerView;

    fn facts() -> Facts {
        Facts {
            home: "/h".to_owned(),
            presence: SidecarPresence::Alive { pid: 7, heartbeat_ms: 1 },
            denied: None,
            age_ms: 2_000,
            up_ms: 60_000,
            is_there: true,
            is_stopped: false,
            is_replaced: false,
            view: SidecarView {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                tmux: Some(ServerView { pid: 8, ..ServerView::default() }),
                watch: Watch::Armed.into(),
                heartbeat: "2026-11-21T20:01:00.000Z".to_owned(),
                taken_at: Some(Some("2026-11-21T20:00:55.000Z".to_owned())),
                ..SidecarView::default()
            },
        }
    }

    fn bad(change: impl FnOnce(&mut Facts)) -> Vec<(String, CheckState)> {
        let mut facts = facts();
        change(&mut facts);
        let wanted = |check: &Check| check.state != CheckState::Ok;
        judge(&facts).into_iter().filter(wanted).map(|check| (check.id, check.state)).collect()
    }

    #[test]
    fn a_suggested_command_quotes_a_home_with_blanks() {
        let dead = Facts { home: "/home/ada/my fleet".to_owned(), presence: SidecarPresence::None, ..facts() };
        let fix = judge(&dead).remove(0).fix.expect("a fix");
        assert!(fix.contains("tasuki run --home '/home/ada/my fleet'; or"), "{fix}");
    }

    #[test]
    fn what_can_not_be_read_is_not_said_to_be_absent() {
        let denied = Some("/h/view can't be opened: Permission denied".to_owned());
        let check = judge(&Facts { presence: SidecarPresence::None, denied, ..facts() }).remove(0);
        assert!(check.said.contains("can't be opened") && !check.said.contains("no sidecar"), "{}", check.said);
    }

    #[test]
    fn a_problem_that_says_what_to_do_is_not_said_to_pass_by_itself() {
        let fix = |problem: &str| {
            let mut facts = facts();
            facts.view.problem = Some(problem.to_owned());
            let check = judge(&facts).into_iter().find(|check| check.id == "sidecar.state").expect("it is checked");
            check.fix.expect("a fix")
        };
        assert_eq!(fix("limits.writing: no. Have the sidecar read it again: kill -HUP 7"), "do what it says");
        assert!(fix("no room").contains("by itself"));
    }

    #[test]
    fn each_fact_has_its_judgement() {
        let one = |id: &str, state: CheckState| vec![(id.to_owned(), state)];
        let stale = |age_ms| SidecarPresence::Stale { pid: 7, age_ms, heartbeat_ms: 1 };
        assert_eq!(bad(|_| {}), []);
        assert_eq!(bad(|facts| facts.presence = SidecarPresence::None), one("sidecar.alive", CheckState::Fail));
        assert_eq!(bad(|facts| facts.is_there = false), one("sidecar.alive", CheckState::Fail));
        assert_eq!(bad(|facts| facts.is_stopped = true), one("sidecar.alive", CheckState::Fail));
        assert_eq!(bad(|facts| facts.presence = stale(60_000)), one("sidecar.alive", CheckState::Fail));
        let back = |facts: &mut Facts| (facts.presence, facts.age_ms) = (stale(-60_000), -60_000);
        assert_eq!(bad(back), one("sidecar.alive", CheckState::Warn));
        assert_eq!(bad(|facts| facts.view.version = "0.0.9".to_owned()), one("sidecar.version", CheckState::Warn));
        assert_eq!(bad(|facts| facts.is_replaced = true), one("sidecar.version", CheckState::Warn));
        let told =
            [("sidecar.state".to_owned(), CheckState::Fail), ("sidecar.answers".to_owned(), CheckState::Skipped)];
        assert_eq!(bad(|facts| facts.view.problem = Some("no room".to_owned())), told);
        let since = |facts: &mut Facts| facts.view.taken_at = Some(Some("2026-11-21T20:00:44.000Z".to_owned()));
        assert_eq!(bad(since), one("sidecar.answers", CheckState::Fail));
        assert_eq!(bad(|facts| facts.view.taken_at = Some(None)), one("sidecar.answers", CheckState::Fail));
        assert_eq!(bad(|facts| facts.view.taken_at = None), one("sidecar.answers", CheckState::Skipped));
        assert_eq!(bad(|facts| facts.view.tmux = None), one("sidecar.tmux", CheckState::Fail));
        let young = |facts: &mut Facts| (facts.view.tmux, facts.up_ms) = (None, 2_000);
        assert_eq!(bad(young), one("sidecar.tmux", CheckState::Skipped));
        assert_eq!(bad(|facts| facts.view.watch = Watch::Poll.into()), one("sidecar.watch", CheckState::Warn));
    }
}
