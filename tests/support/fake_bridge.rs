//! A fleet made of files, and a bridge that takes requests to other hosts and answers them as a test tells it to. For tests
//! of the command line alone.

use super::fake_sidecar::{FakeHome, write_whole};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A time so many seconds ago, as files have it.
pub(crate) fn ago(seconds: i64) -> String {
    let at = chrono::Utc::now() - chrono::TimeDelta::seconds(seconds);
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// A home that is the host `desk` of a fleet; no bridge runs in it.
pub(crate) fn home_in_fleet() -> FakeHome {
    let home = FakeHome::new();
    for name in ["fleet/tmp", "fleet/requests", "fleet/results", "fleet/hosts"] {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(home.path().join(name));
        made.expect("a folder");
    }
    home.write("fleet/host.json", &json!({"name": "desk", "fleet": "test"}));
    home
}

/// Writes what a host has told of itself; `told` has the lists, and what else differs from a live host.
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
        // It has read all rosters, whenever a command asks.
        "hosts_seen_at": "2999-01-01T00:00:00.000Z"});
    home.write("fleet/bridge.json", &view);
}

/// What a host answers to a request file: `(status, result or error)`; `None` takes the request and never answers.
pub(crate) type Answer = dyn Fn(&FakeHome, &Value) -> Option<(u16, Value)> + Send + Sync;

/// A bridge that answers in a thread of its own until it is dropped.
pub(crate) struct FakeBridge {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FakeBridge {
    pub(crate) fn start(home: &Arc<FakeHome>, answer: Box<Answer>) -> Self {
        heartbeat(home, 0);
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, home) = (Arc::clone(&stop), Arc::clone(home));
        let thread = std::thread::spawn(move || {
            while !flag.load(Ordering::SeqCst) {
                for file in home.files("fleet/requests") {
                    let Ok(bytes) = fs::read(&file) else { continue };
                    let request: Value = serde_json::from_slice(&bytes).expect("a request is whole JSON");
                    fs::remove_file(&file).expect("taken");
                    let id = file.file_stem().and_then(|stem| stem.to_str()).expect("a name");
                    assert!(id.starts_with("cli-"), "{id}");
                    let Some((status, body)) = answer(&home, &request) else { continue };
                    let ok = (200..300).contains(&status);
                    let mut result = json!({"v": 1, "request_id": id, "host": request["to"],
                        "kind": request["request"]["kind"], "status": status, "ok": ok, "at": ago(0)});
                    result[if ok { "result" } else { "error" }] = body;
                    write_whole(&home.path().join(format!("fleet/results/{id}.json")), &result);
                }
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
