//! A fleet made of files: what a bridge writes of three hosts, and a thread that answers requests to them as a test tells
//! it to. No server is there.

use super::fake_sidecar::{FakeHome, write_whole};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The agent of `box-1` that has a persona.
pub(crate) const MIA: &str = "33333333-3333-4333-8333-333333333333";
/// The handoff of `box-1`.
pub(crate) const HANDOFF: &str = "44444444-4444-4444-8444-444444444444";
/// Since when `attic` is away.
pub(crate) const AWAY_SINCE: &str = "2026-11-25T12:00:00.000Z";

fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// Lets this home be the host `desk` of a fleet with `box-1`, which lives, and `attic`, which is away. Its bridge has read
/// all rosters just now.
pub(crate) fn join(home: &Path) {
    for name in ["tmp", "requests", "results", "out", "hosts"] {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(home.join("fleet").join(name));
        made.expect("a folder");
    }
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

/// What `box-1` tells of itself while mia is in this state.
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

/// Writes what a host has told of itself.
pub(crate) fn host(home: &Path, name: &str, more: &Value) {
    let mut view = json!({
        "v": 1, "host": name, "home_id": "88888888-8888-4888-8888-888888888888", "n": 7, "version": "0.1.0",
        "sidecar": {"state": "runs", "since": AWAY_SINCE}, "told_at": now(), "seen_at": now(), "authentic": true,
    });
    let more = more.as_object().expect("fields").clone();
    view.as_object_mut().expect("fields").extend(more);
    write_whole(&home.join(format!("fleet/hosts/{name}.json")), &view);
}

/// Writes the bridge's own file, with a heartbeat of this moment. Without a server it is not connected.
pub(crate) fn bridge(home: &Path, server: Option<&str>) {
    let view = json!({"v": 1, "host": "desk", "pid": 1, "heartbeat": now(), "server": server, "hosts_seen_at": now()});
    write_whole(&home.join("fleet/bridge.json"), &view);
}

/// What a host answers to a request: its name and the request, to `(status, result or error)`; `None` for no answer.
pub(crate) type HostAnswer = dyn Fn(&str, &Value) -> Option<(u16, Value)> + Send + Sync;

/// A bridge that passes requests to nobody: it answers them itself, in a thread of its own, until it is dropped.
pub(crate) struct FakeBridge {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FakeBridge {
    pub(crate) fn start(home: &Arc<FakeHome>, answer: Box<HostAnswer>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, home) = (Arc::clone(&stop), Arc::clone(home));
        let thread = std::thread::spawn(move || {
            while !flag.load(Ordering::SeqCst) {
                home.files("fleet/requests").iter().for_each(|file| take(&home, file, &answer));
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        FakeBridge { stop, thread: Some(thread) }
    }
}

impl Drop for FakeBridge {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn take(home: &FakeHome, file: &Path, answer: &HostAnswer) {
    let Ok(bytes) = fs::read(file) else { return };
    let dropped: Value = serde_json::from_slice(&bytes).expect("a request is whole JSON");
    let (id, to) = (file.file_stem().and_then(|stem| stem.to_str()).expect("a name"), dropped["to"].as_str());
    let (to, request) = (to.expect("a host"), &dropped["request"]);
    fs::rename(file, home.path().join(format!("fleet/out/{id}.json"))).expect("taken");
    let Some((status, body)) = answer(to, request) else { return };
    let ok = (200..300).contains(&status);
    let mut result = json!({"v": 1, "host": to, "request_id": id, "kind": request["kind"], "status": status, "ok": ok,
        "at": now(), "request_sha256": tasuki::core::text::sha256(request.to_string().as_bytes())});
    result[if ok { "result" } else { "error" }] = body;
    write_whole(&home.path().join(format!("fleet/results/{id}.json")), &result);
    fs::remove_file(home.path().join(format!("fleet/out/{id}.json"))).expect("answered");
}
