//! A fleet of three hosts that consists only of files: those that a bridge writes.

use super::fake_bridge::{ago, make_folders};
use super::fake_sidecar::write_whole;
use serde_json::{Value, json};
use std::path::Path;

/// The agent of `box-1` that has a persona.
pub(crate) const MIA: &str = "33333333-3333-4333-8333-333333333333";
/// The handoff on `box-1`.
pub(crate) const HANDOFF: &str = "44444444-4444-4444-8444-444444444444";
/// The time since when `attic` is away.
pub(crate) const AWAY_SINCE: &str = "2026-11-25T12:00:00.000Z";

/// Makes this home the host `desk` of a fleet with `box-1`, which is live, and `attic`, which is away. By its file, the
/// bridge has read all rosters just now.
pub(crate) fn join(home: &Path) {
    make_folders(home);
    write_whole(&home.join("fleet/host.json"), &json!({"name": "desk", "fleet": {"name": "test"}}));
    bridge(home, Some("127.0.0.1:4222 2.12.7"));
    host(home, "desk", &json!({}));
    host(
        home,
        "attic",
        &json!({"away_since": AWAY_SINCE, "agents": [{"agent_id": "55555555-5555-4555-8555-555555555555",
        "persona": "lea", "profile": "demo", "state": "idle", "since": AWAY_SINCE}]}),
    );
    host(home, "box-1", &box_1("idle"));
}

/// The lists in the roster of `box-1`. `state`: that of mia.
pub(crate) fn box_1(state: &str) -> Value {
    json!({
        "agents": [
            {"agent_id": MIA, "persona": "mia", "profile": "demo", "state": state, "context": 81,
                "handoff_id": HANDOFF, "since": AWAY_SINCE},
            {"agent_id": "66666666-6666-4666-8666-666666666666", "persona": null, "profile": "claude", "state": "busy"},
        ],
        "handoffs": [{"handoff_id": HANDOFF, "agent_id": MIA, "persona": "mia", "step": "writing", "since": AWAY_SINCE}],
        "errors": [{"error_id": "77777777-7777-4777-8777-777777777777", "code": "document_missing", "at": AWAY_SINCE}],
    })
}

/// Writes the file of a host, as a bridge does that has read its roster. `more`: its lists and other fields.
pub(crate) fn host(home: &Path, name: &str, more: &Value) {
    let mut view = json!({
        "v": 1, "host": name, "home_id": "88888888-8888-4888-8888-888888888888", "n": 7, "version": "0.1.0",
        "sidecar": {"state": "runs", "since": AWAY_SINCE}, "told_at": ago(0), "seen_at": ago(0), "authentic": true,
    });
    let more = more.as_object().expect("fields").clone();
    view.as_object_mut().expect("fields").extend(more);
    write_whole(&home.join(format!("fleet/hosts/{name}.json")), &view);
}

/// Writes the bridge's own file, with a heartbeat of this moment. `server`: none if the bridge is not connected.
pub(crate) fn bridge(home: &Path, server: Option<&str>) {
    let view =
        json!({"v": 1, "host": "desk", "pid": 1, "heartbeat": ago(0), "server": server, "hosts_seen_at": ago(0)});
    write_whole(&home.join("fleet/bridge.json"), &view);
}
