//! Checks the bridge: whether it runs, whether it serves as this host, and which requests wait for their answers.

use super::finding::{fail, ok, skipped, span, warn};
use crate::bridge::folder::FleetFolder;
use crate::bridge::lock::is_running;
use crate::bridge::out;
use crate::cli::doctor::Line;
use crate::cli::hosts;
use crate::config::Home;
use crate::contract::BridgeView;
use crate::contract::bridge::LeaseWord;
use crate::contract::fleet::HOST_STALE_MS;
use crate::core::text::shell_word;
use crate::core::time::millis;

/// A request that has waited longer than this for its answer is a warning, in milliseconds.
const LONG_MS: i64 = 10 * 60_000;
/// The most requests that are read to find the oldest.
const MOST_READ: usize = 1_000;

struct BridgeFacts {
    home: String,
    /// A process holds the lock.
    runs: bool,
    /// `bridge.json`, if there is one.
    view: Option<BridgeView>,
    now_ms: i64,
}

/// The bridge, its lease, and the requests that wait.
pub(super) fn look(home: &Home, folder: &FleetFolder, now_ms: i64) -> [Line; 3] {
    let view = hosts::bridge(home).ok().flatten().map(|seen| (*seen).clone());
    let home = home.root().display().to_string();
    let facts = BridgeFacts { home, runs: is_running(folder), view, now_ms };
    [judge(&facts), judge_lease(&facts), waiting(folder, now_ms)]
}

fn judge(facts: &BridgeFacts) -> Line {
    let id = "fleet.bridge";
    let start = format!(
        "start it in a window of tmux: tasuki --home {} fleet run (or: tasuki fleet service install)",
        shell_word(&facts.home)
    );
    let view = facts.view.clone().unwrap_or_default();
    let problem = view.all_problems().map(|problem| problem.trim_end_matches('.').to_owned());
    if !facts.runs {
        let last = problem.map(|problem| format!("; the last one said: {problem}")).unwrap_or_default();
        return fail(
            id,
            format!("no bridge runs, so this host neither asks other hosts nor answers them{last}"),
            start,
        );
    }
    let age_ms = millis(&view.heartbeat).map(|at| facts.now_ms.saturating_sub(at));
    if age_ms.is_none_or(|age| age.saturating_abs() > HOST_STALE_MS) {
        let ago = age_ms.map_or_else(|| "it has not given one".to_owned(), |age| format!("{} ago", span(age)));
        let said = format!("a bridge runs but hangs, or has just started: its last heartbeat: {ago}");
        return fail(id, said, "try again in a minute; if it stays so, end that process and start it again");
    }
    let own = env!("CARGO_PKG_VERSION");
    match (problem, view.server) {
        (Some(problem), _) => fail(id, problem, "fix that; the bridge tries again by itself"),
        (None, _) if view.version != own => {
            let said = format!("the bridge has version {}, this program {own}", view.version);
            warn(id, said, "start the bridge again: nothing is lost")
        }
        (None, None) => ok(id, format!("process {} runs", view.pid)),
        (None, Some(server)) => ok(id, format!("process {} is connected to {server}", view.pid)),
    }
}

fn judge_lease(facts: &BridgeFacts) -> Line {
    let id = "fleet.lease";
    let view = facts.view.as_ref().filter(|_| facts.runs);
    match view.map(|view| view.lease.known()) {
        Some(Some(LeaseWord::Held)) => ok(id, "this bridge alone serves as this host"),
        Some(Some(LeaseWord::Waiting)) => {
            let said = "the bridge waits until it is certain that no other one serves as this host";
            warn(id, said, "wait a minute; if it stays so, look for a copy of this home on another machine")
        }
        Some(_) => {
            let said = "the bridge is not connected to the server, so it does not serve as this host";
            fail(id, said, "it connects by itself within a minute; if it does not, see its log")
        }
        None => skipped(id, "not checked (see fleet.bridge)"),
    }
}

fn waiting(folder: &FleetFolder, now_ms: i64) -> Line {
    let id = "fleet.waiting";
    let names = folder.names("out").unwrap_or_default();
    let ids: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(".json")).collect();
    let open = |id: &&str| out::load(folder, &id.parse().ok()?).ok().flatten();
    let sent = ids.iter().take(MOST_READ).filter_map(open);
    let oldest = sent.filter_map(|out| Some((millis(&out.sent_at)?, out.to))).min();
    let oldest = oldest.map(|(at, to)| (now_ms.saturating_sub(at), to.to_string()));
    judge_waiting(ids.len(), oldest.as_ref().map(|(age, to)| (*age, to.as_str())), id)
}

fn judge_waiting(count: usize, oldest: Option<(i64, &str)>, id: &str) -> Line {
    let requests = if count == 1 { "1 request waits".to_owned() } else { format!("{count} requests wait") };
    match oldest {
        None if count == 0 => ok(id, "no request waits for an answer of another host"),
        None => {
            let said = format!("{requests} for an answer of another host, and no file of them can be read");
            warn(id, said, "look at the files in fleet/out")
        }
        Some((age_ms, to)) => {
            let said = format!("{requests} for an answer; the oldest has waited {} for {to}", span(age_ms));
            let fix = format!("look whether {to} is live: tasuki fleet hosts; a request is given up after its ttl");
            if age_ms > LONG_MS { warn(id, said, fix) } else { ok(id, said) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::bridge::{BridgeConcern, BridgeProblem};

    fn facts() -> BridgeFacts {
        let view = BridgeView {
            pid: 7,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            heartbeat: "2026-11-25T12:00:00.000Z".to_owned(),
            server: Some("nats-server 2.15.1".to_owned()),
            lease: LeaseWord::Held.into(),
            ..BridgeView::default()
        };
        let now_ms = millis("2026-11-25T12:00:10.000Z").expect("a time");
        BridgeFacts { home: "/my home".to_owned(), runs: true, view: Some(view), now_ms }
    }

    fn found(change: impl FnOnce(&mut BridgeFacts, &mut BridgeView)) -> (Line, Line) {
        let mut facts = facts();
        let mut view = facts.view.take().expect("a view");
        change(&mut facts, &mut view);
        facts.view = Some(view);
        (judge(&facts), judge_lease(&facts))
    }

    #[test]
    fn each_state_of_the_bridge_has_its_status() {
        let both = |change: fn(&mut BridgeFacts, &mut BridgeView)| {
            let (bridge, lease) = found(change);
            format!("{} {}", bridge.status, lease.status)
        };
        assert_eq!(both(|_, _| {}), "ok ok");
        assert_eq!(both(|facts, _| facts.runs = false), "fail skipped");
        assert_eq!(both(|facts, _| facts.now_ms += 60_000), "fail ok");
        assert_eq!(both(|_, view| view.heartbeat = String::new()), "fail ok");
        assert_eq!(both(|_, view| view.version = "0.0.9".to_owned()), "warn ok");
        assert_eq!(both(|_, view| view.lease = LeaseWord::Waiting.into()), "ok warn");
        assert_eq!(both(|_, view| (view.server, view.lease) = (None, LeaseWord::None.into())), "ok fail");
        assert_eq!(both(|_, view| view.problem = Some("Copied.".to_owned())), "fail ok");
        let two = [(BridgeConcern::Login, "It refuses us."), (BridgeConcern::Settings, "A key is wrong.")];
        let (bridge, _) = found(|_, view| view.have(two.map(|(about, what)| BridgeProblem::new(about, what)).into()));
        assert_eq!(bridge.said, "It refuses us. A key is wrong");
    }

    #[test]
    fn if_no_bridge_runs_the_result_says_how_to_start_it_and_why_the_last_one_ended() {
        let (bridge, _) = found(|facts, view| (facts.runs, view.problem) = (false, Some("A copy runs.".to_owned())));
        assert!(bridge.said.ends_with("the last one said: A copy runs"), "{bridge:?}");
        assert!(bridge.fix.is_some_and(|fix| fix.contains("tasuki --home '/my home' fleet run")));
        let never = BridgeFacts { runs: false, view: None, ..facts() };
        assert_eq!((judge(&never).status, judge_lease(&never).status), ("fail".to_owned(), "skipped".to_owned()));
    }

    #[test]
    fn a_request_that_waits_long_is_a_warning() {
        let judged = |count, oldest| judge_waiting(count, oldest, "fleet.waiting");
        assert_eq!(judged(0, None).status, "ok");
        assert_eq!(judged(1, Some((LONG_MS, "box"))).status, "ok");
        let long = judged(3, Some((25 * 60_000, "box")));
        assert_eq!(long.said, "3 requests wait for an answer; the oldest has waited 25 min for box");
        assert_eq!((long.status, judged(1, None).status), ("warn".to_owned(), "warn".to_owned()));
    }
}
