//! One short line for a terminal's status line: how many agents there are, where handoffs are, and that something
//! failed. It contains only tasuki's own words and numbers, so nothing in it has a meaning for a terminal or for tmux.

use super::agent::context_usage;
use super::rows::ack::Standing;
use super::rows::agent::AgentState;
use super::rows::handoff::{Handoff, Step};
use super::state::State;
use super::time::{Now, millis};

/// How many handoffs are named with their step; of the others the line has only the number.
const NAMED: usize = 2;
/// Of agents whose contexts are nearly full.
const TO_HAND_OFF: &str = "to hand off";

/// The line; empty when there is nothing to show. `failures` is the number of error files that nobody has dismissed and
/// whose handoff has not ended well since. Anonymous agents, which are left alone, do not count.
#[must_use]
pub fn line(state: &State, failures: usize, now: &Now) -> String {
    let states = || {
        let ours = state.agents.values().filter(|agent| agent.persona_slug.is_some());
        ours.map(|agent| agent.state).filter(|state| state.is_live())
    };
    let blocked = states().filter(|state| *state == AgentState::Blocked).count();
    let mut running: Vec<&Handoff> = state.handoffs.values().filter(|handoff| !handoff.step.is_end()).collect();
    running.sort_by(|one, other| one.created_at.cmp(&other.created_at));
    let suggested = state.agents.values().filter(|agent| context_usage::is_suggested(agent)).count();
    let counts = [(states().count(), "agent"), (blocked, "blocked"), (suggested, TO_HAND_OFF)];
    let mut parts: Vec<String> = counts.into_iter().filter_map(|(number, word)| counted(number, word)).collect();
    if let Some(counted) = counted(running.len(), "handoff") {
        let mut steps: Vec<String> = running.iter().take(NAMED).map(|handoff| step(handoff, now)).collect();
        if running.len() > NAMED {
            steps.push("…".to_owned());
        }
        parts.push(format!("{counted}: {}", steps.join(", ")));
    }
    parts.extend(counted(running.iter().map(|handoff| questions(handoff)).sum(), "question"));
    parts.extend(counted(failures, "error"));
    parts.join(" · ")
}

/// So many questions of its successor wait for a person.
fn questions(handoff: &Handoff) -> usize {
    let asking = handoff.ack.as_ref().filter(|ack| ack.standing == Standing::NeedsClarification);
    asking.map_or(0, |ack| ack.received.as_ref().map_or(1, |said| said.questions.len().max(1)))
}

/// Whether a failure of this code and step has halted its handoff, so that nothing is left of it once the handoff is
/// over. That a document was not published, or a message did not arrive, stays true after that.
#[must_use]
pub fn halted(code: &str, step: &str) -> bool {
    Step::ALL.iter().any(|known| known.as_str() == step) && !matches!(code, "message_failed" | "escalation_failed")
}

/// `2 agents`; nothing where there is none.
fn counted(number: usize, word: &str) -> Option<String> {
    match number {
        0 => None,
        1 => Some(format!("1 {word}")),
        more if ["blocked", TO_HAND_OFF].contains(&word) => Some(format!("{more} {word}")),
        more => Some(format!("{more} {word}s")),
    }
}

/// A handoff's step, and for how long it has been there.
fn step(handoff: &Handoff, now: &Now) -> String {
    let entered_ms = handoff.steps.last().and_then(|span| millis(&span.entered_at));
    let ms = entered_ms.map_or(0, |entered_ms| now.wall_ms.saturating_sub(entered_ms));
    let seconds = u64::try_from(ms).unwrap_or(0) / 1_000;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let word = handoff.step.as_str();
    match hours {
        0 => format!("{word} {minutes}:{seconds:02}"),
        // An acknowledgement may take days; nobody counts the seconds of those.
        1..100 => format!("{word} {hours}h{minutes:02}"),
        _ => format!("{word} {}d", hours / 24),
    }
}
