//! The client's half of the spool: submits a request so that it survives a power cut, waits for its one answer while a
//! sidecar runs, and says what became of a request that got no answer.

use super::error::CliError;
use super::go_to;
use super::view::ViewFile;
use crate::clock::Clock;
use crate::config::Home;
use crate::contract::ResultFile;
use crate::core::id::RequestId;
use crate::core::text::{sanitise, shell_word};
use crate::exit;
use crate::files;
use crate::process;
use crate::spool::{MAX_INPUT_BYTES, client};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use crate::spool::client::SidecarPresence;

/// How long a sidecar counts as alive after its heartbeat was seen to change.
const STALE_AFTER: Duration = Duration::from_secs(15);

/// After the machine has slept, a sidecar writes a heartbeat within this time.
const WAKE_UP: Duration = Duration::from_secs(6);

/// How often the heartbeat is checked while a command waits for an answer.
pub(super) const PULSE_EVERY: Duration = Duration::from_millis(500);

/// When a heartbeat was last seen to change. That counts even if the wall clock says otherwise, so that a jump of the
/// clock or a sleep of the machine ends no wait.
#[derive(Debug, Default)]
pub(super) struct HeartbeatWatch {
    last: Option<i64>,
    changed: Option<Instant>,
}

impl HeartbeatWatch {
    /// Notes a heartbeat. `age_ms`: how old it is by the wall clock, if it is fresh. A heartbeat that is fresh at the
    /// first look counts as a change at the time when it was written.
    pub(super) fn note(&mut self, heartbeat_ms: i64, age_ms: Option<u64>) {
        match self.last.replace(heartbeat_ms) {
            None => self.changed = age_ms.and_then(|age| Instant::now().checked_sub(Duration::from_millis(age))),
            Some(last) if last != heartbeat_ms => self.changed = Some(Instant::now()),
            Some(_) => {}
        }
    }

    pub(super) fn has_changed_within(&self, time: Duration) -> bool {
        self.changed.is_some_and(|changed| changed.elapsed() < time)
    }
}

/// Watches one sidecar's heartbeat over a longer time.
pub struct Pulse<'a> {
    home: &'a Home,
    clock: Clock,
    heartbeat: HeartbeatWatch,
    /// When [`Pulse::keep`] last checked.
    kept: Option<Instant>,
}

impl<'a> Pulse<'a> {
    /// Begins to watch the heartbeat of this home's sidecar.
    #[must_use]
    pub fn new(home: &'a Home) -> Self {
        Pulse { home, clock: Clock::new(), heartbeat: HeartbeatWatch::default(), kept: None }
    }

    /// What the sidecar's view says at this moment. A heartbeat that changed within the last 15 s counts even if the
    /// wall clock says otherwise, so that a jump of the clock does not end a wait.
    pub fn check(&mut self) -> SidecarPresence {
        let seen = client::sidecar_alive(self.home.root(), &self.clock.now());
        if let SidecarPresence::Alive { heartbeat_ms, .. } | SidecarPresence::Stale { heartbeat_ms, .. } = seen {
            let age_ms = || u64::try_from(self.clock.now().wall_ms.saturating_sub(heartbeat_ms)).unwrap_or(0);
            let fresh = matches!(seen, SidecarPresence::Alive { .. }).then(age_ms);
            self.heartbeat.note(heartbeat_ms, fresh);
        }
        match seen {
            SidecarPresence::Stale { pid, heartbeat_ms, .. } if self.heartbeat.has_changed_within(STALE_AFTER) => {
                SidecarPresence::Alive { pid, heartbeat_ms }
            }
            seen => seen,
        }
    }

    /// Whether a sidecar answers at this moment.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.check(), SidecarPresence::Alive { .. })
    }

    /// Checks the heartbeat from time to time while a command waits.
    ///
    /// # Errors
    /// `no_sidecar`, exit code 69, when no sidecar answers any more.
    pub fn keep(&mut self, every: Duration) -> Result<(), CliError> {
        if self.kept.is_some_and(|kept| kept.elapsed() < every) {
            return Ok(());
        }
        let seen = self.check();
        self.kept = Some(Instant::now());
        if matches!(seen, SidecarPresence::Alive { .. }) { Ok(()) } else { Err(no_sidecar(self.home, &seen)) }
    }
}

/// Refuses with exit code 69 when no sidecar answers. A sidecar whose process exists but whose heartbeat is old may
/// just have been asleep with the machine, so it gets a few seconds.
///
/// # Errors
/// `no_sidecar`.
pub fn require_sidecar(home: &Home) -> Result<(), CliError> {
    let mut pulse = Pulse::new(home);
    let seen = pulse.check();
    if let SidecarPresence::Stale { pid, .. } = seen {
        let end = Instant::now() + WAKE_UP;
        while process_exists(pid) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(100));
            if pulse.is_alive() {
                return Ok(());
            }
        }
    }
    match seen {
        SidecarPresence::Alive { .. } => Ok(()),
        other => Err(no_sidecar(home, &other)),
    }
}

/// The error of every command that finds no sidecar. Where this user may not look for one, it says that instead, with
/// exit code 77.
#[must_use]
pub fn no_sidecar(home: &Home, seen: &SidecarPresence) -> CliError {
    if let Some(denied) = Some(home.root()).filter(|_| *seen == SidecarPresence::None).and_then(client::denied) {
        let (what, fix) = denied.parts();
        return CliError::new(exit::NOT_ALLOWED, "not_allowed", format!("{}.", sanitise(&what)))
            .hint(fix.unwrap_or_default());
    }
    let root = home.root().display();
    let start = format!("tasuki run --home {}{}", shell_word(&root.to_string()), go_to::tmux_argument(home));
    let (message, hint) = match seen {
        SidecarPresence::Stale { pid, age_ms, .. } => {
            let seconds = age_ms.saturating_abs() / 1_000;
            let is_there = is_sidecar(*pid, false, files::own_program().ok().as_deref());
            let hint = is_there.then(|| how_to_wake(*pid, &start));
            (format!("No sidecar answers for {root}: its last heartbeat was {seconds} s ago."), hint)
        }
        SidecarPresence::Alive { .. } | SidecarPresence::None => (format!("No sidecar runs for {root}."), None),
    };
    let hint = hint.unwrap_or_else(|| format!("Start one in another pane: {start}"));
    CliError::new(exit::UNAVAILABLE, "no_sidecar", message).hint(hint)
}

/// What to do about a sidecar whose process is there but does not answer. As long as it is there, no other sidecar can
/// use its home.
fn how_to_wake(pid: u32, start: &str) -> String {
    if process::is_stopped(pid) {
        return format!("Its process {pid} was stopped, as by Ctrl-Z in its pane. Continue it: kill -CONT {pid}");
    }
    format!(
        "Its process {pid} is still there. If the machine has just slept, try again. Otherwise `tasuki doctor` says more; \
         nothing is lost if you restart it: tasuki service restart, or kill {pid} (if that does not help, kill -9 {pid}) \
         and then {start}"
    )
}

fn process_exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0).map(nix::unistd::Pid::from_raw);
    pid.is_some_and(|pid| nix::sys::signal::kill(pid, None) != Err(nix::errno::Errno::ESRCH))
}

/// Whether a process is a sidecar. One of its arguments must be `run`. In addition, its heartbeat must be fresh, or its
/// name must begin with `tasuki`, or it must run our program: if it was started through a link, it may have another
/// name.
pub(super) fn is_sidecar(pid: u32, is_fresh: bool, program: Option<&Path>) -> bool {
    let Some(argv) = process::argv(pid).filter(|argv| argv.iter().any(|word| word == "run")) else { return false };
    let is_ours = |name: &str| name.rsplit('/').next().is_some_and(|name| name.starts_with("tasuki"));
    // Only Linux has this link. It still leads to the program's file after that file was removed.
    let link = PathBuf::from(format!("/proc/{pid}/exe"));
    let runs_ours = || {
        let target = std::fs::read_link(&link).unwrap_or_default();
        is_ours(&target.to_string_lossy()) || program.is_some_and(|program| files::is_same_file(&link, program))
    };
    is_fresh || argv.first().is_some_and(|name| is_ours(name)) || runs_ours()
}

/// A request to submit.
#[derive(Debug)]
pub struct NewRequest<'a> {
    pub kind: &'a str,
    pub fields: Map<String, Value>,
    /// How long to wait for the answer.
    pub patience: Duration,
}

/// What is called repeatedly while a command waits for an answer. Its error ends the wait.
pub type Meanwhile<'m> = dyn FnMut() -> Result<(), CliError> + 'm;

/// Submits a request and waits for its answer; meanwhile calls `meanwhile` again and again. Returns the answer's
/// `result`.
///
/// # Errors
/// The sidecar's refusal, with its code; 69 if no sidecar answers; 75 if no answer came in time; the error of
/// `meanwhile`, which ends the wait. The last three say whether the request was withdrawn.
pub fn ask<T: DeserializeOwned + Default>(
    home: &Home,
    request: &NewRequest<'_>,
    meanwhile: &mut Meanwhile<'_>,
) -> Result<ViewFile<T>, CliError> {
    require_sidecar(home).and_then(|()| meanwhile()).map_err(CliError::nothing_sent)?;
    let mut body = request.fields.clone();
    body.insert("v".to_owned(), Value::from(1));
    body.insert("kind".to_owned(), Value::from(request.kind));
    let bytes = Value::Object(body).to_string().into_bytes();
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        let message = format!("The request has {} bytes; the limit is 1 MiB. Nothing was sent.", bytes.len());
        return Err(CliError::refused("too_large", message));
    }
    let name = format!("cli-{}", uuid::Uuid::now_v7());
    let id: RequestId = name.parse().map_err(|_| CliError::refused("bug", format!("{name} is not a request id.")))?;
    client::submit_request(home.root(), &id, &bytes)?;
    let answer = wait_for_answer(home, &id, request.patience, meanwhile)?;
    read_answer(&answer).map_err(|error| with_name(error, &request.fields))
}

/// Adds the name to the sidecar's refusal of something that it does not know. The refusal says which field of the
/// request has the name; where it says nothing, the field follows from the code.
pub(super) fn with_name(error: CliError, fields: &Map<String, Value>) -> CliError {
    let field = match (error.field.as_deref(), error.code.as_str()) {
        (Some("successor"), _) => "successor.agent_id",
        (Some(field), _) => field,
        (None, "no_agent") => "agent_id",
        (None, "no_handoff") => "handoff_id",
        (None, "no_item") => "item_id",
        (None, "no_error") => "error_id",
        (None, _) => return error,
    };
    let message = error.message.trim_end_matches('.');
    let says_no_name = message.ends_with(" not found") || message == "No such pane";
    match named(fields, field).filter(|_| says_no_name) {
        Some(name) => CliError { message: format!("{message}: \"{}\"", sanitise(name)), ..error },
        None => error,
    }
}

/// The text in a field of a request, such as `successor.agent_id` or `items[3].parent_id`.
fn named<'f>(fields: &'f Map<String, Value>, field: &str) -> Option<&'f str> {
    let mut path = field.split(['.', '[', ']']).filter(|name| !name.is_empty());
    let first = fields.get(path.next()?)?;
    let inner = |value: &'f Value, name: &str| match value {
        Value::Array(all) => all.get(name.parse::<usize>().ok()?),
        other => other.get(name),
    };
    path.try_fold(first, inner)?.as_str()
}

/// The `result` of an answer, or its error.
pub(super) fn read_answer<T: DeserializeOwned + Default>(answer: &ResultFile) -> Result<ViewFile<T>, CliError> {
    match answer.ok {
        true => Ok(answer.result.clone().unwrap_or_default().into()),
        false => Err(CliError::from_answer(answer)),
    }
}

/// The answer to a request, once it exists.
///
/// # Errors
/// The answer exists but can't be read.
pub fn answer(home: &Home, id: &RequestId) -> Result<Option<ViewFile<ResultFile>>, CliError> {
    let Some(bytes) = client::read_result(home.root(), id)? else { return Ok(None) };
    ViewFile::read(bytes)
        .map_err(|error| CliError::refused("not_json", format!("spool/results/{id}.json is not JSON: {error}.")))
}

/// Waits for the answer while the sidecar lives.
fn wait_for_answer(
    home: &Home,
    id: &RequestId,
    patience: Duration,
    meanwhile: &mut Meanwhile<'_>,
) -> Result<ViewFile<ResultFile>, CliError> {
    let start = Instant::now();
    let mut pulse = Pulse::new(home);
    loop {
        match answer(home, id) {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => {}
            Err(unread) => return unanswered(home, id, unread),
        }
        if let Err(end) = pulse.keep(PULSE_EVERY).and_then(|()| meanwhile()) {
            return unanswered(home, id, end);
        }
        if start.elapsed() >= patience {
            let message = format!("No answer came within {}.", humantime::format_duration(patience));
            return unanswered(home, id, CliError::new(exit::TRY_AGAIN, "no_answer", message));
        }
        std::thread::sleep(nap(start.elapsed()));
    }
}

/// How long to sleep between two checks. Most answers come in milliseconds, and a wait of minutes should cost nothing.
pub(super) fn nap(waited: Duration) -> Duration {
    Duration::from_millis(match waited.as_millis() {
        0..200 => 2,
        200..2_000 => 10,
        _ => 50,
    })
}

/// Withdraws an unanswered request if it is still in the spool, and says whether that succeeded.
fn unanswered(home: &Home, id: &RequestId, error: CliError) -> Result<ViewFile<ResultFile>, CliError> {
    let taken_back = std::fs::remove_file(home.requests().join(format!("{id}.json"))).is_ok();
    if let Ok(Some(answer)) = answer(home, id) {
        return Ok(answer);
    }
    let fate = if taken_back {
        format!(
            "The request was withdrawn. If spool/results/{id}.json still appears, the sidecar had already picked it up."
        )
    } else {
        format!(
            "The sidecar picked up the request and may still carry it out; the answer will be spool/results/{id}.json."
        )
    };
    Err(CliError { message: format!("{} {fate}", error.message), ..error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_is_its_result_or_its_error() {
        let answer = |answer: Value| ViewFile::<ResultFile>::from(answer);
        let granted = read_answer::<Value>(&answer(json!({"ok": true, "status": 200, "result": {"a": 1}})));
        assert_eq!(granted.map(|granted| granted.json()), Ok(json!({"a": 1})));
        let refused = json!({"ok": false, "status": 404, "error": {"code": "no_agent", "message": "Agent not found"}});
        let error = read_answer::<Value>(&answer(refused)).expect_err("a refusal");
        assert_eq!((error.code.as_str(), error.exit), ("no_agent", exit::REFUSED));
    }

    #[test]
    fn an_error_about_an_unknown_id_names_the_id() {
        let fields = Map::from_iter([("agent_id".to_owned(), json!("11\u{1b}11"))]);
        let named = |code: &str, message: &str| with_name(CliError::refused(code, message), &fields).message;
        assert_eq!(named("no_agent", "Agent not found"), "Agent not found: \"1111\"");
        assert_eq!(named("no_handoff", "Handoff not found"), "Handoff not found", "no handoff was named");
        assert_eq!(named("no_agent", "Agent has gone"), "Agent has gone");
    }

    #[test]
    fn an_error_about_a_field_names_what_is_in_that_field() {
        let request = json!({
            "agent_id": "kai", "successor": {"agent_id": "mia"}, "pane": "%9", "profile": 7,
            "items": [{"parent_id": "a"}, {"parent_id": "b"}],
        });
        let Value::Object(fields) = request else { panic!("an object") };
        let named = |field: &str, message: &str| {
            let error = CliError { field: Some(field.to_owned()), ..CliError::refused("no_agent", message) };
            with_name(error, &fields).message
        };
        assert_eq!(named("successor", "Successor not found"), "Successor not found: \"mia\"");
        assert_eq!(named("pane", "No such pane."), "No such pane: \"%9\"");
        assert_eq!(named("items[1].parent_id", "Work item not found"), "Work item not found: \"b\"");
        for field in ["previous_agent_id", "profile", "successor.agent_id.x", "items[2].parent_id", "items[x]", ""] {
            assert_eq!(named(field, "It was not found"), "It was not found", "{field}");
        }
    }

    #[test]
    fn a_heartbeat_that_has_changed_counts_at_any_wall_clock_time() {
        let dir = tempfile::tempdir().expect("a folder");
        let home = Home::at(dir.path()).expect("a home");
        std::fs::create_dir(dir.path().join("view")).expect("a folder");
        let heartbeat = |ahead_ms: i64| {
            let at = crate::core::time::rfc3339(Clock::new().now().wall_ms + ahead_ms);
            let view = json!({"pid": 1, "heartbeat": at}).to_string();
            std::fs::write(dir.path().join("view/sidecar.json"), view).expect("a view");
        };
        const TEN_YEARS_MS: i64 = 315_000_000_000;
        let mut pulse = Pulse::new(&home);
        heartbeat(-TEN_YEARS_MS);
        assert!(!pulse.is_alive(), "an old heartbeat does not count");
        for ahead_ms in [TEN_YEARS_MS, -TEN_YEARS_MS] {
            heartbeat(ahead_ms);
            assert!(pulse.is_alive(), "the heartbeat has changed since the last check");
        }
    }
}
