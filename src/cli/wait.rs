//! `--wait`: shows a handoff's steps as they pass. The view is one small file that is replaced whole at each change, so
//! reading it twenty times a second is cheap. No step is missed, because the view keeps the list of steps.

use super::CliSession;
use super::client::Pulse;
use super::error::CliError;
use super::examined;
use super::follow::{self, FlowEnd, Follower, Progress};
use super::interrupts::{self, Interrupts};
use super::live::LiveLine;
use super::output::Tone;
use super::review::{self, AfterReview};
use super::view::{self, ViewFile};
use crate::contract::{AgentState, HandoffView, Step};
use crate::core::text::sanitise;
use crate::exit;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How often a wait reads the handoff's view.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often a wait checks the sidecar's heartbeat.
pub(super) const PULSE_EVERY: Duration = Duration::from_secs(1);
/// How often a wait looks whether an agent of the handoff has a dialog open.
const AGENT_EVERY: Duration = Duration::from_millis(250);
/// How long a dialog must be open before the wait reports it.
const DIALOG_LASTS: Duration = Duration::from_millis(1_500);

/// How long a wait lasts at most without `--timeout`. Each step has its own limit, and a wait ends when the sidecar's
/// heartbeat stops, so this only bounds waits that nobody looks at any more.
pub(super) const LONGEST: Duration = Duration::from_secs(24 * 3_600);

/// Follows a handoff to its end. Returns its last view if it is `done`.
///
/// # Errors
/// The handoff's own failure (exit code 1), 69 when the sidecar's heartbeat stops, 75 when `--timeout` is over. In the
/// last two cases the handoff itself is not touched.
pub fn follow_to_end(
    session: &CliSession,
    handoff_id: &str,
    follower: Follower,
) -> Result<ViewFile<HandoffView>, CliError> {
    let interrupts = watch_signals()?;
    let patience = session.timeout.unwrap_or(LONGEST);
    follow_until(session, handoff_id, follower, patience, &|| interrupts.seen()).map_err(after_signal)
}

/// As [`follow_to_end`]; when the handoff waits for a person, it shows the document to the person at this terminal and
/// asks. It also ends, without an error, if that person wants to decide later.
///
/// # Errors
/// As [`follow_to_end`].
pub(super) fn follow_and_review(session: &CliSession, handoff_id: &str, follower: Follower) -> Result<(), CliError> {
    let interrupts = watch_signals()?;
    let patience = session.timeout.unwrap_or(LONGEST);
    let held = &mut |seen: &HandoffView| review::review(session, &interrupts, seen);
    let limits = WaitLimits { patience, stop: &|| interrupts.seen(), held: Some(held) };
    follow_within(session, handoff_id, follower, limits).map(|_| ()).map_err(after_signal)
}

/// Notices Ctrl-C and the end of the terminal.
pub(super) fn watch_signals() -> Result<Interrupts, CliError> {
    Interrupts::watch().map_err(|error| interrupts::no_signals(&error))
}

/// The exit code of a wait that a signal has ended.
pub(super) fn after_signal(error: CliError) -> CliError {
    match error.code.as_str() {
        "interrupted" => CliError { exit: exit::INTERRUPTED, ..error },
        _ => error,
    }
}

/// Asks a person about a held handoff.
type Reviewer<'a> = dyn FnMut(&HandoffView) -> Result<AfterReview, CliError> + 'a;

/// When a wait ends early, and who is asked about a held handoff.
struct WaitLimits<'a> {
    patience: Duration,
    stop: &'a dyn Fn() -> bool,
    held: Option<&'a mut Reviewer<'a>>,
}

/// How a wait has ended.
enum Waited {
    Ended(ViewFile<HandoffView>, FlowEnd),
    /// A person will decide later.
    Left(ViewFile<HandoffView>),
}

/// As [`follow_to_end`], but at most for this long, and only until `stop` says so.
///
/// # Errors
/// As [`follow_to_end`].
pub(crate) fn follow_until(
    session: &CliSession,
    handoff_id: &str,
    follower: Follower,
    patience: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<ViewFile<HandoffView>, CliError> {
    follow_within(session, handoff_id, follower, WaitLimits { patience, stop, held: None })
}

fn follow_within(
    session: &CliSession,
    handoff_id: &str,
    mut follower: Follower,
    limits: WaitLimits<'_>,
) -> Result<ViewFile<HandoffView>, CliError> {
    let mut live = LiveLine::new(&session.out);
    let waited = watch(session, handoff_id, &mut follower, &mut live, limits);
    live.clear()?;
    match waited? {
        Waited::Ended(view, outcome) => {
            report_end(session, &view, outcome)?;
            follow::failure(&view, outcome).map_or(Ok(view), Err)
        }
        Waited::Left(view) => Ok(view),
    }
}

fn watch(
    session: &CliSession,
    handoff_id: &str,
    follower: &mut Follower,
    live: &mut LiveLine<'_>,
    mut limits: WaitLimits<'_>,
) -> Result<Waited, CliError> {
    let start = Instant::now();
    let mut pulse = Pulse::new(&session.home);
    let mut dialogs = Dialogs::default();
    let mut last = None;
    loop {
        if let Some(seen) = view::handoff(&session.home, handoff_id)? {
            for news in follower.observe(&seen) {
                if let Progress::Ended(outcome) = news {
                    return Ok(Waited::Ended(seen, outcome));
                }
                report(session, handoff_id, live, &news)?;
                let asks = limits.held.as_mut().filter(|_| matches!(news, Progress::Held { .. }));
                if let Some(ask) = asks
                    && ask(&seen)? == AfterReview::Leave
                {
                    return Ok(Waited::Left(seen));
                }
            }
            if let Some(news) = dialogs.look(session, &seen)? {
                report(session, handoff_id, live, &news)?;
            }
            last = Some(seen);
        }
        live.draw()?;
        pulse.keep(PULSE_EVERY).map_err(|gone| left_alone(gone, handoff_id))?;
        if (limits.stop)() {
            return Err(left_alone(CliError::refused("interrupted", "Interrupted."), handoff_id)
                .hint(format!("Follow the handoff again: tasuki handoffs follow {handoff_id}")));
        }
        if start.elapsed() >= limits.patience {
            return Err(too_late(limits.patience, handoff_id, last.as_deref()));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Notices when an agent of the handoff waits for a person, once for each dialog.
#[derive(Default)]
struct Dialogs {
    looked: Option<Instant>,
    /// The agent that was last seen with a dialog, and since when.
    since: Option<(String, Instant)>,
    /// The agent whose dialog was reported.
    told: Option<String>,
}

impl Dialogs {
    fn look(&mut self, session: &CliSession, handoff: &HandoffView) -> Result<Option<Progress>, CliError> {
        if self.looked.is_some_and(|looked| looked.elapsed() < AGENT_EVERY) {
            return Ok(None);
        }
        self.looked = Some(Instant::now());
        let mut blocked = None;
        for agent_id in whose_dialogs_count(handoff) {
            let agent = view::agent(&session.home, agent_id)?;
            if let Some(agent) = agent.filter(|agent| agent.state == AgentState::Blocked) {
                blocked = Some((agent_id, agent));
                break;
            }
        }
        let Some((agent_id, agent)) = blocked else {
            (self.told, self.since) = (None, None);
            return Ok(None);
        };
        // After a retry the view still shows a dialog that was answered, until tasuki has looked at the pane again.
        let since = self.since.take().filter(|(seen, _)| seen == agent_id);
        let (_, since) = self.since.insert(since.unwrap_or_else(|| (agent_id.to_owned(), Instant::now())));
        if since.elapsed() < DIALOG_LASTS {
            return Ok(None);
        }
        if self.told.as_deref() == Some(agent_id) {
            return Ok(None);
        }
        self.told = Some(agent_id.to_owned());
        Ok(Some(Progress::Blocked {
            agent_id: sanitise(agent_id),
            pane: sanitise(&view::shown(agent.pane.as_deref())),
        }))
    }
}

/// The agents whose dialogs may stop the handoff, in their order: until the successor's turn has come, the outgoing
/// agent, then a successor that is bound already.
fn whose_dialogs_count(handoff: &HandoffView) -> Vec<&str> {
    let outgoing = view::said(handoff.agent_id.as_str());
    let successor = view::said(handoff.successor_id.as_deref());
    let is_outgoings = matches!(
        handoff.step.known(),
        Some(Step::Waiting | Step::Instructing | Step::Writing | Step::Checking | Step::Recording | Step::Ending)
    );
    if is_outgoings {
        outgoing.into_iter().chain(successor).collect()
    } else {
        successor.or(outgoing).into_iter().collect()
    }
}

/// The error of a wait that ends before its handoff. If the handoff waits for a person, the error says so.
fn too_late(patience: Duration, handoff_id: &str, last: Option<&HandoffView>) -> CliError {
    let within = humantime::format_duration(patience);
    let still_running = |message: String| CliError::new(exit::TRY_AGAIN, "still_running", message);
    let not_ended =
        |what: &str| still_running(format!("The handoff {handoff_id} has not ended within {within}: {what}."));
    let short: String = handoff_id.chars().take(8).collect();
    match last {
        Some(seen) if examined::is_held(seen) => not_ended("it waits for you to accept its document")
            .hint(format!("Decide: {}", examined::choices(handoff_id, seen.has_writer()))),
        Some(seen) if seen.asks() => not_ended("its successor waits for your answers").hint(format!(
            "See the questions: tasuki handoffs show {short}; answer them: tasuki clarify {short} --answer …"
        )),
        Some(_) | None => left_alone(still_running(format!("The handoff has not ended within {within}.")), handoff_id),
    }
}

fn left_alone(error: CliError, handoff_id: &str) -> CliError {
    let when = if error.exit == exit::UNAVAILABLE { " when a sidecar runs again" } else { "" };
    let message = format!("{} The handoff {handoff_id} is not affected and continues{when}.", error.message);
    CliError { message, ..error }
}

/// Prints one piece of news.
pub(super) fn report(
    session: &CliSession,
    handoff_id: &str,
    live: &mut LiveLine<'_>,
    news: &Progress,
) -> Result<(), CliError> {
    if session.out.is_json() {
        return session.out.record(&news_json(handoff_id, news));
    }
    live.note(news);
    let Some((text, good)) = follow::line(news).filter(|_| live.wants_line(news)) else { return Ok(()) };
    live.clear()?;
    let (sign, tone) = match (good, session.out.is_unicode()) {
        (true, true) => ("✓ ", Tone::Good),
        (false, true) => ("✗ ", Tone::Bad),
        (true, false) => ("  ", Tone::Good),
        (false, false) => ("! ", Tone::Bad),
    };
    session.out.line(&format!("{}{text}", session.out.paint(tone, sign)))
}

fn news_json(handoff_id: &str, news: &Progress) -> Value {
    match news {
        Progress::Entered { step } => json!({"v": 1, "type": "entered", "handoff_id": handoff_id, "step": step}),
        Progress::Grew { bytes } => {
            json!({"v": 1, "type": "document", "handoff_id": handoff_id, "bytes": bytes})
        }
        Progress::Reworked { times, faults } => {
            json!({"v": 1, "type": "reworked", "handoff_id": handoff_id, "reworks": times, "faults": faults})
        }
        Progress::Held { since, faults, .. } => {
            json!({"v": 1, "type": "held", "handoff_id": handoff_id, "held_since": since, "faults": faults})
        }
        Progress::Blocked { agent_id, pane } => {
            json!({"v": 1, "type": "blocked", "handoff_id": handoff_id, "agent_id": agent_id, "pane": pane})
        }
        Progress::Passed { step, took_ms, verdict } => {
            json!({"v": 1, "type": "passed", "handoff_id": handoff_id, "step": step, "took_ms": took_ms, "verdict": verdict})
        }
        Progress::Stopped { step, took_ms } => {
            json!({"v": 1, "type": "stopped", "handoff_id": handoff_id, "step": step, "took_ms": took_ms})
        }
        Progress::Ended(outcome) => json!({"v": 1, "type": outcome.as_str(), "handoff_id": handoff_id}),
    }
}

/// Prints how the handoff has ended.
pub(super) fn report_end(session: &CliSession, seen: &ViewFile<HandoffView>, outcome: FlowEnd) -> Result<(), CliError> {
    if session.out.is_json() {
        return session.out.record(&json!({"v": 1, "type": outcome.as_str(), "handoff": seen.json()}));
    }
    let tone = if outcome == FlowEnd::Done { Tone::Good } else { Tone::Bad };
    session.out.line(&session.out.paint(tone, outcome.as_str()))?;
    follow::summary(seen).iter().try_for_each(|line| session.out.line(&format!("  {line}")))
}
