//! `--wait`: shows a handoff's steps while they pass. The view is one small file, replaced whole at each change, so
//! looking at it twenty times a second is cheap and misses nothing that it keeps: the steps are a list.

use super::Session;
use super::client::{self, Liveness, Pulse};
use super::error::CliError;
use super::follow::{self, Follower, Outcome, Progress};
use super::output::{Out, Tone};
use super::view;
use crate::exit;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(50);
const PULSE_EVERY: Duration = Duration::from_secs(1);

/// How long a wait lasts at most where `--timeout` says nothing: each step has its own limit, and a heartbeat that ends
/// ends the wait, so this only bounds what nobody looks at any more.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

/// The running step's line on a terminal.
struct Live<'a> {
    out: &'a Out,
    step: Option<(String, Instant)>,
    frame: usize,
    shown: bool,
}

impl Live<'_> {
    const SIGNS: [&'static str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
    const PLAIN_SIGNS: [&'static str; 4] = ["-", "\\", "|", "/"];

    fn draw(&mut self) -> Result<(), CliError> {
        let Some((step, since)) = self.step.as_ref().filter(|_| self.out.is_live()) else { return Ok(()) };
        let signs = if self.out.is_unicode() { &Self::SIGNS[..] } else { &Self::PLAIN_SIGNS[..] };
        self.frame += 1;
        let sign = signs[self.frame / 2 % signs.len()];
        let took = follow::span(u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.shown = true;
        self.out.raw(&format!("\r\x1b[K{sign} {step:<13} {}", self.out.paint(Tone::Faint, &format!("{took:>10}"))))
    }

    fn clear(&mut self) -> Result<(), CliError> {
        if std::mem::take(&mut self.shown) { self.out.raw("\r\x1b[K") } else { Ok(()) }
    }
}

/// Follows a handoff to its end. Returns its last view if it is `done`.
///
/// # Errors
/// The handoff's own failure (exit code 1), 69 when the sidecar's heartbeat stops, 75 when `--timeout` is over. In the
/// last two cases the handoff itself is not touched.
pub fn follow_to_end(session: &Session, handoff_id: &str, follower: Follower) -> Result<Value, CliError> {
    follow_until(session, handoff_id, follower, session.timeout.unwrap_or(LONGEST), &|| false)
}

/// As [`follow_to_end`], for so long, and until `stop` says so.
///
/// # Errors
/// As [`follow_to_end`].
pub(crate) fn follow_until(
    session: &Session,
    handoff_id: &str,
    mut follower: Follower,
    patience: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Value, CliError> {
    let mut live = Live { out: &session.out, step: None, frame: 0, shown: false };
    let ended = watch(session, handoff_id, &mut follower, &mut live, patience, stop);
    live.clear()?;
    let (view, outcome) = ended?;
    tell_end(session, &view, outcome)?;
    follow::failure(&view, outcome).map_or(Ok(view), Err)
}

fn watch(
    session: &Session,
    handoff_id: &str,
    follower: &mut Follower,
    live: &mut Live<'_>,
    patience: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<(Value, Outcome), CliError> {
    let start = Instant::now();
    let mut pulse = Pulse::new(&session.home);
    let mut next_pulse = start;
    loop {
        if let Some(seen) = view::handoff(&session.home, handoff_id)? {
            for news in follower.observe(&seen) {
                if let Progress::Ended(outcome) = news {
                    return Ok((seen, outcome));
                }
                tell(session, handoff_id, live, &news)?;
            }
        }
        live.draw()?;
        if Instant::now() >= next_pulse {
            let beat = pulse.check();
            if beat != Liveness::Alive {
                return Err(left_alone(client::no_sidecar(&session.home, &beat), handoff_id));
            }
            next_pulse = Instant::now() + PULSE_EVERY;
        }
        if stop() {
            return Err(CliError::refused("interrupted", "Interrupted."));
        }
        if start.elapsed() >= patience {
            let message = format!("The handoff has not ended within {}.", humantime::format_duration(patience));
            return Err(left_alone(CliError::new(exit::TRY_AGAIN, "still_running", message), handoff_id));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn left_alone(error: CliError, handoff_id: &str) -> CliError {
    let message = format!("{} The handoff {handoff_id} is not touched by this and goes on.", error.message);
    CliError { message, ..error }
}

fn tell(session: &Session, handoff_id: &str, live: &mut Live<'_>, news: &Progress) -> Result<(), CliError> {
    if session.out.is_json() {
        return session.out.record(&news_json(handoff_id, news));
    }
    match news {
        Progress::Entered { step } => live.step = Some((step.clone(), Instant::now())),
        _ => live.step = None,
    }
    let Some((text, good)) = follow::line(news) else { return Ok(()) };
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
        Progress::Passed { step, took_ms, verdict } => {
            json!({"v": 1, "type": "passed", "handoff_id": handoff_id, "step": step, "took_ms": took_ms, "verdict": verdict})
        }
        Progress::Stopped { step, took_ms } => {
            json!({"v": 1, "type": "stopped", "handoff_id": handoff_id, "step": step, "took_ms": took_ms})
        }
        Progress::Ended(outcome) => json!({"v": 1, "type": outcome.word(), "handoff_id": handoff_id}),
    }
}

fn tell_end(session: &Session, seen: &Value, outcome: Outcome) -> Result<(), CliError> {
    if session.out.is_json() {
        return session.out.record(&json!({"v": 1, "type": outcome.word(), "handoff": seen}));
    }
    let tone = if outcome == Outcome::Done { Tone::Good } else { Tone::Bad };
    session.out.line(&session.out.paint(tone, outcome.word()))?;
    follow::summary(seen).iter().try_for_each(|line| session.out.line(&format!("  {line}")))
}
