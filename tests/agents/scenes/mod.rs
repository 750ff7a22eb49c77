//! What is played, and with whom.

mod chains;
mod crashes;
mod dials;
mod faults;
mod limits;
mod starts;
mod whole;

use crate::cli::{self, Cli};
use std::time::Duration;

/// One scene.
pub(crate) struct Scenario {
    /// Its name, which says the rule.
    pub(crate) name: &'static str,
    /// What happens in it; a panic is a failure.
    pub(crate) play: fn(Cli),
    /// With whom it is played.
    pub(crate) clis: &'static [Cli],
    /// Who must be there too.
    pub(crate) beside: &'static [Cli],
    /// How long it may take.
    pub(crate) within: Duration,
}

const fn scene(name: &'static str, play: fn(Cli), clis: &'static [Cli], seconds: u64) -> Scenario {
    Scenario { name, play, clis, beside: &[], within: Duration::from_secs(seconds) }
}

/// A scene that begins with one CLI and goes on with others.
const fn scene_of_several(
    name: &'static str,
    play: fn(Cli),
    (first, beside): (&'static [Cli], &'static [Cli]),
    seconds: u64,
) -> Scenario {
    Scenario { beside, ..scene(name, play, first, seconds) }
}

const ALL: &[Cli] = &cli::ALL;

/// All scenes.
pub(crate) const SCENES: &[Scenario] = &[
    scene("whole_handoff", whole::handoff, &cli::EVERY, 120),
    scene("new_session_between", whole::new_session_between, &cli::EVERY, 150),
    scene("context_in_percent", whole::context_in_percent, &[Cli::Codex, Cli::Pi, Cli::Opencode], 120),
    scene("busy_agent_is_waited_for", whole::busy, &cli::EVERY, 150),
    scene("draft_is_left_alone", faults::draft, &cli::EVERY, 120),
    scene("dialog_at_the_trigger", faults::dialog, &[Cli::Claude, Cli::Codex], 150),
    scene("prompt_refused_by_a_hook", faults::refused_by_a_hook, &[Cli::Claude], 150),
    scene("turn_continued_by_a_hook", faults::continued_by_a_hook, &[Cli::Claude], 150),
    scene("text_higher_than_its_pane", faults::classic_renderer, &[Cli::Claude], 150),
    scene("untrusted_folder", faults::untrusted_folder, &[Cli::Codex], 120),
    scene("model_error_in_the_middle", faults::model_error, &cli::EVERY, 180),
    scene("interrupt_by_esc", faults::interrupt, &cli::EVERY, 150),
    scene("interrupt_before_the_first_word", faults::early_interrupt, &[Cli::Claude], 150),
    scene("not_installed", starts::not_installed, ALL, 60),
    scene("not_logged_in", starts::not_logged_in, &[Cli::Claude], 90),
    scene("first_run_dialog", starts::first_run, ALL, 150),
    scene("document_as_an_answer", dials::agent_reply, &cli::EVERY, 120),
    scene("document_is_repaired", dials::repaired, &cli::EVERY, 150),
    scene("same_pane", dials::same_pane, &cli::EVERY, 120),
    scene("salvage_after_a_kill", dials::salvage, &cli::EVERY, 120),
    scene("asked_afterwards", dials::asked_afterwards, &cli::EVERY, 150),
    scene("transcript_is_whole", dials::transcript_is_whole, &[Cli::Opencode], 150),
    scene("limited", limits::limited, &cli::EVERY, 150),
    scene("limit_is_waited_for", limits::waited_for, &cli::EVERY, 700),
    scene("handed_off_by_its_command", whole::by_command, &[Cli::Codex, Cli::Pi, Cli::Gemini, Cli::Opencode], 150),
    scene_of_several("chain", chains::chain, (&[Cli::Claude], &[Cli::Codex, Cli::Pi]), 240),
    scene_of_several("fallback_at_the_limit", limits::fallback, (&cli::EVERY, &[Cli::Claude, Cli::Pi]), 360),
    scene("sidecar_killed_all_the_time", crashes::all_the_time, &cli::EVERY, 200),
    scene("sidecar_killed_in_each_step", crashes::in_each_step, &cli::EVERY, 300),
];
