//! A home in a fleet that consists only of files, for tests of the command line alone.

use super::fake_bridge::{ago, make_folders};
use super::fake_sidecar::FakeHome;
use serde_json::{Value, json};

/// A home that is the host `desk` of a fleet; no bridge runs in it.
pub(crate) fn home_in_fleet() -> FakeHome {
    let home = FakeHome::new();
    make_folders(home.path());
    home.write("fleet/host.json", &json!({"name": "desk", "fleet": "test"}));
    home
}

/// Writes the file of a host, as a bridge does that has read its roster. `told`: its lists, and fields that differ from
/// those of a live host.
pub(crate) fn host(home: &FakeHome, name: &str, told: &Value) {
    let mut view = json!({"v": 1, "host": name, "seen_at": ago(1), "authentic": true, "away_since": null,
        "sidecar": {"state": "runs", "since": ago(60)}, "agents": [], "handoffs": [], "errors": []});
    for (field, value) in told.as_object().expect("an object") {
        view[field] = value.clone();
    }
    home.write(&format!("fleet/hosts/{name}.json"), &view);
}

/// Writes the bridge's file with a heartbeat so many seconds old.
pub(crate) fn heartbeat(home: &FakeHome, age_s: i64) {
    let view = json!({"v": 1, "host": "desk", "pid": 1, "heartbeat": ago(age_s), "server": "tls://box 2.12.7",
        // A time in the future: whenever a command asks, the rosters count as read.
        "hosts_seen_at": "2999-01-01T00:00:00.000Z"});
    home.write("fleet/bridge.json", &view);
}
