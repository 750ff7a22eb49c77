//! The client's half of the spool: drop a request so that it survives a power cut, wait for its one answer as long as a
//! sidecar lives, and say honestly what became of a request that got none (SPEC 3.1, 3.2 and 12, Time).

use super::error::CliError;
use super::home::Home;
use super::view;
use crate::exit;
use serde_json::{Map, Value};
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// A heartbeat older than this is no heartbeat.
pub const STALE_AFTER: Duration = Duration::from_secs(15);

/// A sidecar that slept with the machine beats again within this time.
const WAKE_UP: Duration = Duration::from_secs(6);

/// The largest request that the spool takes, in bytes.
pub const LARGEST_REQUEST: usize = 1 << 20;

/// Whether a sidecar answers, as far as its view tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Liveness {
    /// It beat within the last 15 s.
    Alive,
    /// It wrote a view once, and has stopped beating.
    Stale {
        /// The process that wrote the view.
        pid: Option<i32>,
        /// Seconds since its last beat, by the wall clock.
        age_s: Option<u64>,
    },
    /// No view was ever written here.
    Absent,
}

/// Judges the sidecar's view by the wall clock (milliseconds since 1970). A beat from the future is as bad as an old
/// one: the clock was set back since.
#[must_use]
pub fn liveness(view: Option<&Value>, wall_ms: i64) -> Liveness {
    let Some(view) = view else { return Liveness::Absent };
    let beat = view::text(view, "heartbeat").and_then(|at| chrono::DateTime::parse_from_rfc3339(at).ok());
    let age_ms = beat.map(|beat| wall_ms.saturating_sub(beat.timestamp_millis()).unsigned_abs());
    if age_ms.is_some_and(|age| u128::from(age) <= STALE_AFTER.as_millis()) {
        return Liveness::Alive;
    }
    let pid = view.get("pid").and_then(Value::as_i64).and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 0);
    Liveness::Stale { pid, age_s: age_ms.map(|age| age / 1_000) }
}

/// Watches one sidecar's heartbeat over a longer time.
pub struct Pulse<'a> {
    home: &'a Home,
    last: Option<String>,
    changed: Option<Instant>,
}

impl<'a> Pulse<'a> {
    /// Starts watching.
    #[must_use]
    pub fn new(home: &'a Home) -> Self {
        Pulse { home, last: None, changed: None }
    }

    /// What the view says at this moment. A beat that was seen to change within the last 15 s counts whatever the wall
    /// clock says, so that a clock that jumps ends no wait.
    pub fn check(&mut self) -> Liveness {
        let view = view::read_json(&self.home.sidecar_view()).ok().flatten();
        let beat = view.as_ref().and_then(|view| view::text(view, "heartbeat")).map(str::to_owned);
        if let Some(beat) = beat {
            if self.last.as_ref().is_some_and(|last| *last != beat) {
                self.changed = Some(Instant::now());
            }
            self.last = Some(beat);
        }
        match liveness(view.as_ref(), chrono::Utc::now().timestamp_millis()) {
            Liveness::Stale { .. } if self.has_beaten() => Liveness::Alive,
            seen => seen,
        }
    }

    /// Whether a beat was seen to change within the last 15 s.
    fn has_beaten(&self) -> bool {
        self.changed.is_some_and(|changed| changed.elapsed() < STALE_AFTER)
    }
}

/// Refuses with exit code 69 when no sidecar answers. One whose process is there but whose beat is old may just have
/// been asleep with the machine, and is given a few seconds.
///
/// # Errors
/// `no_sidecar`.
pub fn require_sidecar(home: &Home) -> Result<(), CliError> {
    let mut pulse = Pulse::new(home);
    let seen = pulse.check();
    let Liveness::Stale { pid: Some(pid), .. } = seen else { return judge(home, &seen) };
    let end = Instant::now() + WAKE_UP;
    while process_exists(pid) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(100));
        if pulse.check() == Liveness::Alive {
            return Ok(());
        }
    }
    judge(home, &seen)
}

fn judge(home: &Home, seen: &Liveness) -> Result<(), CliError> {
    match seen {
        Liveness::Alive => Ok(()),
        other => Err(no_sidecar(home, other)),
    }
}

/// The error of every command that finds no sidecar.
#[must_use]
pub fn no_sidecar(home: &Home, seen: &Liveness) -> CliError {
    let root = home.root().display();
    let message = match seen {
        Liveness::Stale { age_s: Some(age), .. } => {
            format!("No sidecar answers for {root}: its last heartbeat was {age} s ago.")
        }
        _ => format!("No sidecar runs for {root}."),
    };
    CliError::new(exit::UNAVAILABLE, "no_sidecar", message)
        .hint(format!("Start one in another pane: tasuki run --home {root}"))
}

fn process_exists(pid: i32) -> bool {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None) != Err(nix::errno::Errno::ESRCH)
}

/// A request on its way.
#[derive(Debug)]
pub struct Request<'a> {
    /// The kind (SPEC 3.5).
    pub kind: &'a str,
    /// The fields of that kind.
    pub fields: Map<String, Value>,
    /// How long to wait for the answer.
    pub patience: Duration,
}

/// Drops a request and waits for its answer. Returns the answer's `result`.
///
/// # Errors
/// What the sidecar refused, with its code; 69 when none answers; 75 when the answer did not come in time. The last two
/// say whether the request was taken back or is still on its way.
pub fn ask(home: &Home, request: &Request<'_>) -> Result<Value, CliError> {
    require_sidecar(home)?;
    let mut body = request.fields.clone();
    body.insert("v".to_owned(), Value::from(1));
    body.insert("kind".to_owned(), Value::from(request.kind));
    let bytes = Value::Object(body).to_string().into_bytes();
    if bytes.len() > LARGEST_REQUEST {
        let message = format!("The request has {} bytes, and the spool takes 1 MiB. Nothing was sent.", bytes.len());
        return Err(CliError::refused("too_large", message));
    }
    let id = format!("cli-{}", uuid::Uuid::now_v7());
    drop_request(home, &id, &bytes)?;
    let answer = wait_for_answer(home, &id, request.patience)?;
    read_answer(&answer)
}

/// The `result` of an answer, or its error.
fn read_answer(answer: &Value) -> Result<Value, CliError> {
    if answer.get("ok").and_then(Value::as_bool) == Some(true) {
        return Ok(answer.get("result").cloned().unwrap_or(Value::Null));
    }
    let status = answer.get("status").and_then(Value::as_u64);
    Err(CliError::from_answer(answer.get("error").unwrap_or(&Value::Null), status))
}

/// Puts a request into the spool: made and synced beside it, then renamed into it, then the folder synced. What was
/// dropped so is whole, or not there at all, after any crash.
///
/// # Errors
/// When the spool is not there or can't be written; then nothing was dropped.
pub fn drop_request(home: &Home, id: &str, bytes: &[u8]) -> Result<(), CliError> {
    let scratch = home.spool_tmp().join(format!("{id}.json.tmp"));
    let written = write_synced(&scratch, bytes).and_then(|()| fs::rename(&scratch, home.request(id)));
    if let Err(error) = written {
        let _ = fs::remove_file(&scratch);
        return Err(CliError::file("The request can't be put into the spool at", &home.requests(), &error)
            .hint("Nothing was sent. The sidecar makes these folders when it starts."));
    }
    let folder = home.requests();
    let synced = fs::File::open(&folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| CliError::file("The request was dropped, but can't be made durable in", &folder, &error))
}

fn write_synced(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Waits for the answer while the sidecar lives.
fn wait_for_answer(home: &Home, id: &str, patience: Duration) -> Result<Value, CliError> {
    let path = home.result(id);
    let start = Instant::now();
    let mut pulse = Pulse::new(home);
    let mut next_pulse = start;
    loop {
        if let Some(answer) = view::read_json(&path)? {
            return Ok(answer);
        }
        if Instant::now() >= next_pulse {
            let seen = pulse.check();
            if seen != Liveness::Alive {
                return unanswered(home, id, no_sidecar(home, &seen));
            }
            next_pulse = Instant::now() + Duration::from_millis(500);
        }
        if start.elapsed() >= patience {
            let message = format!("No answer came within {}.", humantime::format_duration(patience));
            return unanswered(home, id, CliError::new(exit::TRY_AGAIN, "no_answer", message));
        }
        std::thread::sleep(nap(start.elapsed()));
    }
}

/// How long to sleep between two looks: answers mostly come in milliseconds, and a wait of minutes should cost nothing.
fn nap(waited: Duration) -> Duration {
    Duration::from_millis(match waited.as_millis() {
        0..200 => 2,
        200..2_000 => 10,
        _ => 50,
    })
}

/// Takes an unanswered request back, if it still lies in the spool, and says which of the two has happened.
fn unanswered(home: &Home, id: &str, error: CliError) -> Result<Value, CliError> {
    let withdrawn = home.spool_tmp().join(format!(".withdrawn-{id}.tmp"));
    let taken_back = fs::rename(home.request(id), &withdrawn).is_ok();
    if taken_back {
        let _ = fs::remove_file(&withdrawn);
    }
    if let Some(answer) = view::read_json(&home.result(id))? {
        return Ok(answer);
    }
    let fate = if taken_back {
        format!("The request was taken back; should results/{id}.json still appear, it had just been read.")
    } else {
        format!("The request was taken and may still be carried out; its answer will be results/{id}.json.")
    };
    Err(CliError { message: format!("{} {fate}", error.message), ..error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: &str = "2026-11-21T20:00:00.000Z";

    fn at(text: &str) -> i64 {
        chrono::DateTime::parse_from_rfc3339(text).expect("a time").timestamp_millis()
    }

    #[test]
    fn a_heartbeat_counts_for_fifteen_seconds() {
        let view = json!({"pid": 7, "heartbeat": NOW});
        assert_eq!(liveness(Some(&view), at(NOW) + 15_000), Liveness::Alive);
        assert_eq!(liveness(Some(&view), at(NOW) + 15_001), Liveness::Stale { pid: Some(7), age_s: Some(15) });
        assert_eq!(liveness(Some(&view), at(NOW) - 60_000), Liveness::Stale { pid: Some(7), age_s: Some(60) });
        assert_eq!(liveness(Some(&json!({"pid": -1})), 0), Liveness::Stale { pid: None, age_s: None });
        assert_eq!(liveness(None, 0), Liveness::Absent);
    }

    #[test]
    fn an_answer_is_its_result_or_its_error() {
        assert_eq!(read_answer(&json!({"ok": true, "status": 200, "result": {"a": 1}})), Ok(json!({"a": 1})));
        let refused = json!({"ok": false, "status": 404, "error": {"code": "no_agent", "message": "Agent not found"}});
        let error = read_answer(&refused).expect_err("a refusal");
        assert_eq!((error.code.as_str(), error.exit), ("no_agent", exit::REFUSED));
    }
}
