//! The folders of a fleet, and a fake bridge. It sends nothing to other hosts, but answers requests itself, as a test
//! says. There is no server.

use super::fake_sidecar::{FakeHome, write_whole};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time that was so many seconds ago, as text.
pub(crate) fn ago(seconds: i64) -> String {
    let at = chrono::Utc::now() - chrono::TimeDelta::seconds(seconds);
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// Makes the folders of a fleet.
pub(crate) fn make_folders(home: &Path) {
    for name in ["tmp", "requests", "results", "out", "hosts"] {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(home.join("fleet").join(name));
        made.expect("a folder");
    }
}

/// The answer to a request file: `(status, result or error)`. `None`: the request is taken and never answered.
pub(crate) type Answer = dyn Fn(&FakeHome, &Value) -> Option<(u16, Value)> + Send + Sync;

/// A fake bridge, which answers in a thread of its own until it is dropped.
pub(crate) struct FakeBridge {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FakeBridge {
    /// `ids`: how the ids of all requests must begin.
    pub(crate) fn start(home: &Arc<FakeHome>, ids: &'static str, answer: Box<Answer>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, home) = (Arc::clone(&stop), Arc::clone(home));
        let thread = std::thread::spawn(move || {
            while !flag.load(Ordering::SeqCst) {
                home.files("fleet/requests").iter().for_each(|file| take(&home, file, ids, &answer));
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

fn take(home: &FakeHome, file: &Path, ids: &str, answer: &Answer) {
    let Ok(bytes) = fs::read(file) else { return };
    let dropped: Value = serde_json::from_slice(&bytes).expect("a request is whole JSON");
    let id = file.file_stem().and_then(|stem| stem.to_str()).expect("a name");
    assert!(id.starts_with(ids), "{id}");
    let (to, request) = (dropped["to"].as_str().expect("a host"), &dropped["request"]);
    fs::rename(file, home.path().join(format!("fleet/out/{id}.json"))).expect("taken");
    let Some((status, mut body)) = answer(home, &dropped) else { return };
    let ok = (200..300).contains(&status);
    let mut result = json!({"v": 1, "host": to, "request_id": id, "kind": request["kind"], "status": status, "ok": ok,
        "at": ago(0), "request_sha256": tasuki::core::text::sha256(request.to_string().as_bytes())});
    if let Some(here) = body.as_object_mut().and_then(|body| body.remove("answered_here")) {
        result["answered_here"] = here;
    }
    result[if ok { "result" } else { "error" }] = body;
    write_whole(&home.path().join(format!("fleet/results/{id}.json")), &result);
    fs::remove_file(home.path().join(format!("fleet/out/{id}.json"))).expect("answered");
}
