//! One short line for a terminal's status line: how many agents there are, where handoffs are, and how much waits for a
//! person. It contains only tasuki's own words and numbers, so nothing in it has a meaning for a terminal or for tmux.

use super::rows::handoff::Handoff;
use super::state::State;
use super::time::{Now, millis};

/// The most handoffs whose steps the line names. Further ones are only counted.
const NAMED: usize = 2;

/// The line; empty when there is nothing to show. `needs` is the length of the list that [`super::needs::list`] makes.
/// Anonymous agents, which are left alone, do not count.
#[must_use]
pub fn line(state: &State, needs: usize, now: &Now) -> String {
    let mut running: Vec<&Handoff> = running(state).collect();
    running.sort_by(|one, other| one.created_at.cmp(&other.created_at));
    let mut parts: Vec<String> = agents(state).into_iter().collect();
    if let Some(counted) = counted(running.len(), "handoff") {
        let mut steps: Vec<String> = running.iter().take(NAMED).map(|handoff| step(handoff, now)).collect();
        if running.len() > NAMED {
            steps.push("…".to_owned());
        }
        parts.push(format!("{counted}: {}", steps.join(", ")));
    }
    parts.extend(needs_you(needs));
    parts.join(" · ")
}

/// How many agents, running handoffs and needs there are: the same numbers as in [`line()`], without steps and times,
/// so that it changes only with them.
#[must_use]
pub fn counts(state: &State, needs: usize) -> String {
    let mut parts = vec![agents(state).unwrap_or_else(|| "no agents".to_owned())];
    parts.extend(counted(running(state).count(), "handoff"));
    parts.extend(needs_you(needs));
    parts.join(", ")
}

fn agents(state: &State) -> Option<String> {
    let ours = state.agents.values().filter(|agent| agent.persona_slug.is_some() && agent.state.is_live());
    counted(ours.count(), "agent")
}

fn running(state: &State) -> impl Iterator<Item = &Handoff> {
    state.handoffs.values().filter(|handoff| !handoff.step.is_end())
}

fn needs_you(needs: usize) -> Option<String> {
    (needs > 0).then(|| format!("needs you: {needs}"))
}

/// Such as `2 agents`; `None` for 0.
fn counted(number: usize, word: &str) -> Option<String> {
    match number {
        0 => None,
        1 => Some(format!("1 {word}")),
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
