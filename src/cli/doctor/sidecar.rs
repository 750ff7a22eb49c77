//! The sidecar: whether it lives, how old its last turn is, and what it says of itself.

use super::check::Check;
use super::ground::Ground;
use crate::cli::client::Sidecar;
use crate::cli::view::{said, shown};
use crate::clock::Clock;
use crate::contract::{SidecarView, Watch};
use crate::core::text::shell_word;
use crate::core::time::millis;
use crate::process;

/// The first heartbeat may come before the connection, and the second comes 5 s later. In milliseconds.
const JUST_STARTED_MS: i64 = 8_000;

/// A sidecar that last took requests so long before its heartbeat takes none. In milliseconds.
const TAKES_WITHIN_MS: i64 = 15_000;

/// What was gathered.
struct Facts {
    home: String,
    beat: Sidecar,
    /// When its last turn was, in milliseconds ago.
    age_ms: i64,
    /// How long it has been running, in milliseconds.
    up_ms: i64,
    /// The process of that id is a sidecar.
    is_there: bool,
    /// That process was stopped by somebody.
    is_stopped: bool,
    /// Its program's file was replaced or removed since.
    is_replaced: bool,
    view: SidecarView,
}

/// Looks at it.
pub(super) fn look(ground: &Ground) -> Vec<Check> {
    let age_ms = match ground.beat {
        Sidecar::Alive { beat_ms, .. } => Clock::new().now().wall_ms.saturating_sub(beat_ms),
        Sidecar::Stale { age_ms, .. } => age_ms,
        Sidecar::None => 0,
    };
    let started = millis(&ground.view.started_at);
    judge(&Facts {
        up_ms: started.map_or(i64::MAX, |at| Clock::new().now().wall_ms.saturating_sub(at)),
        home: ground.home.root().display().to_string(),
        beat: ground.beat,
        age_ms,
        is_there: ground.process.is_some(),
        is_stopped: ground.process.is_some_and(process::is_stopped),
        is_replaced: ground.process.is_some_and(is_replaced),
        view: ground.view.clone(),
    })
}

/// Whether the file that a process runs is not under its name any more: an upgrade has put another there.
fn is_replaced(pid: u32) -> bool {
    let link = std::fs::read_link(format!("/proc/{pid}/exe"));
    link.is_ok_and(|path| path.to_string_lossy().ends_with(" (deleted)"))
}

fn judge(facts: &Facts) -> Vec<Check> {
    let alive = alive(facts);
    let runs = alive.state == super::check::State::Ok;
    let mut checks = vec![alive];
    if runs {
        checks.extend([version(facts), state(facts), answers(facts), tmux(facts), watch(facts)]);
    }
    checks
}

fn alive(facts: &Facts) -> Check {
    let id = "sidecar.alive";
    let home = shell_word(&facts.home);
    let start = format!("start it in a pane of its own: tasuki run --home {home} (or: tasuki service start)");
    let seconds = facts.age_ms.saturating_abs() / 1_000;
    match facts.beat {
        Sidecar::None => Check::fail(id, "none runs; commands that need one end with exit code 69", start),
        Sidecar::Alive { pid, .. } | Sidecar::Stale { pid, .. } if !facts.is_there => {
            let said = format!(
                "it is dead: process {pid} is no sidecar, its last turn was {seconds} s ago; commands that need one end with exit code 69"
            );
            Check::fail(id, said, start)
        }
        Sidecar::Alive { pid, .. } | Sidecar::Stale { pid, .. } if facts.is_stopped => {
            let said = format!("process {pid} was stopped (SIGSTOP), its last turn was {seconds} s ago");
            Check::fail(id, said, format!("let it go on: kill -CONT {pid}"))
        }
        Sidecar::Stale { pid, .. } if facts.age_ms < 0 => {
            let said =
                format!("process {pid} is there, and its last turn lies {seconds} s ahead: the clock was set back");
            Check::warn(id, said, "wait for its next turn, some seconds")
        }
        Sidecar::Stale { pid, .. } => {
            let said = match said(facts.view.problem.as_deref()) {
                Some(problem) => format!("process {pid} is there and answers nobody since {seconds} s ago: {problem}"),
                None => format!("process {pid} is there and does not turn: its last turn was {seconds} s ago"),
            };
            Check::fail(
                id,
                said,
                "the machine may just have slept: try again; else restart it, nothing is lost by that",
            )
        }
        Sidecar::Alive { pid, .. } => Check::ok(id, format!("process {pid}, its last turn was {seconds} s ago")),
    }
}

fn version(facts: &Facts) -> Check {
    let id = "sidecar.version";
    let (own, other) = (env!("CARGO_PKG_VERSION"), shown(facts.view.version.as_str()));
    let restart = "restart it: tasuki service restart, or end `tasuki run` and start it again; nothing is lost by that";
    if own != other {
        Check::warn(id, format!("the sidecar is {other}, and this command {own}"), restart)
    } else if facts.is_replaced {
        Check::warn(id, "its program was replaced on the disk since it started", restart)
    } else {
        Check::ok(id, format!("{own}, like this command"))
    }
}

fn state(facts: &Facts) -> Check {
    let id = "sidecar.state";
    match said(facts.view.problem.as_deref()) {
        Some(problem) => Check::fail(id, problem, "mend that; it goes on by itself within some seconds"),
        None => Check::ok(id, "it can do all of its work"),
    }
}

/// A loop that turns proves nothing of what comes of requests.
fn answers(facts: &Facts) -> Check {
    let id = "sidecar.answers";
    if said(facts.view.problem.as_deref()).is_some() {
        return Check::skipped(id, "it has said itself what it can't do");
    }
    let Some(taken_at) = &facts.view.taken_at else {
        return Check::skipped(id, "this sidecar is of a version that does not tell");
    };
    let restart = "restart it, nothing is lost by that; and please report it with the sidecar's log";
    match (millis(&facts.view.heartbeat), taken_at.as_deref().and_then(millis)) {
        (Some(beat), Some(taken)) if beat - taken <= TAKES_WITHIN_MS => {
            Check::ok(id, "it takes the requests that lie there")
        }
        (Some(beat), Some(taken)) => {
            let seconds = (beat - taken) / 1_000;
            let said = format!(
                "it lives and answers no request: for {seconds} s it has not taken what lies in spool/requests"
            );
            Check::fail(id, said, restart)
        }
        _ if (0..JUST_STARTED_MS).contains(&facts.up_ms) => Check::skipped(id, "it has only just started"),
        _ => Check::fail(id, "it lives and has not yet taken a single request", restart),
    }
}

fn tmux(facts: &Facts) -> Check {
    let id = "sidecar.tmux";
    match &facts.view.tmux {
        Some(server) => Check::ok(id, format!("it is connected to the server, process {}", server.pid)),
        None if (0..JUST_STARTED_MS).contains(&facts.up_ms) => Check::skipped(id, "it has only just started"),
        None => Check::fail(id, "it is connected to no tmux server", "see tmux above; it connects by itself"),
    }
}

fn watch(facts: &Facts) -> Check {
    let id = "sidecar.watch";
    if facts.view.watch == Watch::Poll {
        let said = "it can't watch its folders and looks every second: it works, but answers later";
        return Check::warn(id, said, "see limits.inotify; a network file system has no watches");
    }
    Check::ok(id, "the system tells it of new files")
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;
    use crate::contract::ServerView;

    fn facts() -> Facts {
        Facts {
            home: "/h".to_owned(),
            beat: Sidecar::Alive { pid: 7, beat_ms: 1 },
            age_ms: 2_000,
            up_ms: 60_000,
            is_there: true,
            is_stopped: false,
            is_replaced: false,
            view: SidecarView {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                tmux: Some(ServerView { pid: 8, start_time: 0 }),
                watch: Watch::Armed.into(),
                heartbeat: "2026-11-21T20:01:00.000Z".to_owned(),
                taken_at: Some(Some("2026-11-21T20:00:55.000Z".to_owned())),
                ..SidecarView::default()
            },
        }
    }

    fn bad(change: impl FnOnce(&mut Facts)) -> Vec<(String, State)> {
        let mut facts = facts();
        change(&mut facts);
        let wanted = |check: &Check| check.state != State::Ok;
        judge(&facts).into_iter().filter(wanted).map(|check| (check.id, check.state)).collect()
    }

    #[test]
    fn a_command_to_type_holds_a_home_with_blanks_together() {
        let dead = Facts { home: "/home/ada/my fleet".to_owned(), beat: Sidecar::None, ..facts() };
        let fix = judge(&dead).remove(0).fix.expect("a fix");
        assert!(fix.contains("tasuki run --home '/home/ada/my fleet' ("), "{fix}");
    }

    #[test]
    fn each_fact_has_its_judgement() {
        let one = |id: &str, state: State| vec![(id.to_owned(), state)];
        let stale = |age_ms| Sidecar::Stale { pid: 7, age_ms, beat_ms: 1 };
        assert_eq!(bad(|_| {}), []);
        assert_eq!(bad(|facts| facts.beat = Sidecar::None), one("sidecar.alive", State::Fail));
        assert_eq!(bad(|facts| facts.is_there = false), one("sidecar.alive", State::Fail));
        assert_eq!(bad(|facts| facts.is_stopped = true), one("sidecar.alive", State::Fail));
        assert_eq!(bad(|facts| facts.beat = stale(60_000)), one("sidecar.alive", State::Fail));
        let back = |facts: &mut Facts| (facts.beat, facts.age_ms) = (stale(-60_000), -60_000);
        assert_eq!(bad(back), one("sidecar.alive", State::Warn));
        assert_eq!(bad(|facts| facts.view.version = "0.0.9".to_owned()), one("sidecar.version", State::Warn));
        assert_eq!(bad(|facts| facts.is_replaced = true), one("sidecar.version", State::Warn));
        let told = [("sidecar.state".to_owned(), State::Fail), ("sidecar.answers".to_owned(), State::Skipped)];
        assert_eq!(bad(|facts| facts.view.problem = Some("no room".to_owned())), told);
        let since = |facts: &mut Facts| facts.view.taken_at = Some(Some("2026-11-21T20:00:44.000Z".to_owned()));
        assert_eq!(bad(since), one("sidecar.answers", State::Fail));
        assert_eq!(bad(|facts| facts.view.taken_at = Some(None)), one("sidecar.answers", State::Fail));
        assert_eq!(bad(|facts| facts.view.taken_at = None), one("sidecar.answers", State::Skipped));
        assert_eq!(bad(|facts| facts.view.tmux = None), one("sidecar.tmux", State::Fail));
        let young = |facts: &mut Facts| (facts.view.tmux, facts.up_ms) = (None, 2_000);
        assert_eq!(bad(young), one("sidecar.tmux", State::Skipped));
        assert_eq!(bad(|facts| facts.view.watch = Watch::Poll.into()), one("sidecar.watch", State::Warn));
    }
}
