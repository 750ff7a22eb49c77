//! Tells all listeners of changes to the fleet's hosts, and keeps the bridge reading the rosters while anybody listens.

use super::broadcaster::Broadcaster;
use super::hosts::HostSummary;
use crate::cli::hosts::{as_written, ask_for_rosters};
use crate::cli::view::ViewFile;
use crate::config::Home;
use crate::contract::HostView;
use crate::core::text::plain_json;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// How often the files are read while there are listeners.
const READ_EVERY: Duration = Duration::from_secs(1);
/// How often the bridge is told that somebody looks. Each time, it keeps reading the rosters for 60 s.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Each host by its name, as the listeners were last told of it.
type Told = BTreeMap<String, WatchedHost>;

/// A host's summary and content. The fields that change with each roster are empty in `content`: otherwise every host
/// would count as changed every 15 seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WatchedHost {
    summary: HostSummary,
    content: HostView,
}

/// Watches the hosts until the server stops. Without listeners it reads nothing.
pub(super) async fn run(broadcaster: Broadcaster, home: Home, stop: CancellationToken) {
    let mut told = Told::new();
    let mut looked: Option<Instant> = None;
    loop {
        if broadcaster.has_listeners() {
            let should_look = looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY);
            if should_look {
                looked = Some(Instant::now());
            }
            let home = home.clone();
            let read = move || {
                if should_look && home.fleet().is_dir() {
                    ask_for_rosters(&home);
                }
                read(&home)
            };
            // If the files can't be read, the next round tries again.
            if let Ok(Some(now)) = tokio::task::spawn_blocking(read).await {
                // Together: the queue of a listener has room for few messages, and the first round tells of all hosts.
                let events = changes(&told, &now).concat();
                if !events.is_empty() {
                    broadcaster.tell_change(events);
                }
                told = now;
            }
        } else {
            // A client that connects later begins with GET /api/hosts. A host may change after that and before the
            // first round here, so that round tells of each host.
            (told, looked) = (Told::new(), None);
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = sleep(READ_EVERY) => {}
        }
    }
}

/// All hosts at this moment; none if they can't be read, or if this home has joined no fleet.
fn read(home: &Home) -> Option<Told> {
    let fleet = as_written(home).ok()?;
    let state = |host: &ViewFile<HostView>| {
        let summary = HostSummary::of(host, &fleet);
        let content =
            HostView { n: 0, journal_seq: 0, told_at: String::new(), seen_at: String::new(), ..(**host).clone() };
        (host.host.clone(), WatchedHost { summary, content })
    };
    Some(fleet.hosts.iter().map(state).collect())
}

/// An event for each host that has changed: the host as `GET /api/hosts` lists it, or a note that it left the fleet.
fn changes(before: &Told, now: &Told) -> Vec<String> {
    let has_changed = |host: &str, now: &WatchedHost| {
        before.get(host).is_none_or(|old| old.content != now.content || old.summary.state != now.summary.state)
    };
    let changed = now.iter().filter(|(host, now)| has_changed(host, now)).map(|(_, now)| json!(now.summary));
    let gone = before.keys().filter(|host| !now.contains_key(*host)).map(|host| json!({"host": host, "gone": true}));
    changed.chain(gone).map(|data| format!("event: host\ndata: {}\n\n", plain_json(&data.to_string()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn write(home: &Home, name: &str, value: &Value) {
        let path = home.fleet().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, value.to_string()).expect("written");
    }

    #[test]
    fn a_host_is_told_of_when_its_state_or_its_content_changes_and_not_with_each_roster() {
        let dir = tempfile::tempdir().expect("a folder");
        let home = Home::at(dir.path()).expect("a home");
        assert_eq!(read(&home), None, "it has joined no fleet");
        write(&home, "host.json", &json!({"name": "desk", "fleet": {"name": "home"}}));
        let host = |n: u64, state: &str| {
            let at = format!("2026-11-25T12:00:{n:02}.000Z");
            let agents = json!([{"agent_id": "a", "state": state}]);
            write(
                &home,
                "hosts/attic.json",
                &json!({"host": "attic", "n": n, "seen_at": at, "told_at": at, "authentic": true, "agents": agents}),
            );
            read(&home).expect("hosts")
        };
        let (first, renewed, busy) = (host(1, "idle"), host(2, "idle"), host(3, "busy"));
        assert_eq!(changes(&first, &renewed), [] as [String; 0]);
        let told = changes(&renewed, &busy);
        assert!(told.len() == 1 && told[0].starts_with("event: host\ndata: {"), "{told:?}");
        let heartbeat = crate::core::time::rfc3339(crate::clock::Clock::new().now().wall_ms);
        write(&home, "bridge.json", &json!({"heartbeat": heartbeat, "server": "127.0.0.1"}));
        let live = read(&home).expect("hosts");
        let told = changes(&busy, &live);
        assert!(told.len() == 1 && told[0].contains("\"state\":\"live\""), "{told:?}");
        let gone = changes(&live, &Told::new());
        assert_eq!(gone, ["event: host\ndata: {\"gone\":true,\"host\":\"attic\"}\n\n"]);
    }
}
