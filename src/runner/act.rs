//! Carries out one effect. Each effect may be carried out again after a crash: see `core::effect`.

use super::elsewhere::lives_elsewhere;
use super::retry_look::{self, LookResult};
use super::{
    Tools, compose, context_usage, document, examine, fault, identify, kill, limit_look, operator, persona,
    placeholder, publish, start, transcript, version,
};
use crate::agents::ansi;
use crate::agents::format::InputMode;
use crate::agents::profile::Profile;
use crate::core::effect::{Attachment, Effect, How, Outcome, Readiness, TypeText};
use crate::core::id::{DeliveryId, Slug};
use crate::core::pane::{ComposerContent, PaneRef, Process, Refusal, ScreenReading, Typed};
use crate::core::text::{bears_signature, sanitise, signature};
use crate::spool::documents;
use crate::tmux::{Capture, Input, Ready, ReadyPlan, ScreenReader, TypePlan};
use crate::{limits, process};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long to wait for an obstacle that may pass, such as a draft in the composer, before a text is refused.
const OBSTACLE_WAIT: Duration = Duration::from_secs(3);
/// How long a text may take to appear in the composer, and to leave it: on a loaded machine, a CLI has needed more than
/// ten seconds for either. Both times, and every Enter, must fit into the limit of a step that types.
const SEEN_WITHIN: Duration = Duration::from_secs(20);
/// How long a screen must look idle before a turn counts as over without an event.
const IDLE_CALM: Duration = Duration::from_secs(5);
/// How long the idle watch waits for an idle screen; then the core starts it again.
const IDLE_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a brief idle watch, such as the look at a dialog, waits for an idle screen: [`IDLE_CALM`] and a little
/// more, so that a screen that is idle now is found idle.
const BRIEF_IDLE_LIMIT: Duration = Duration::from_secs(8);
/// How long a brief idle watch must see a running turn, and no dialog, before it ends: a single look may catch a screen
/// that is only half drawn.
const AT_WORK: Duration = Duration::from_secs(2);
/// The look at a turn whose end an event has reported: the screen is idle if it stays so for this long, and shows a
/// running turn if it does so for this long.
const TURN_CALM: Duration = Duration::from_secs(1);
/// The most time for that look.
const TURN_LOOK_LIMIT: Duration = Duration::from_secs(4);
/// Pause between two looks at a starting agent's screen.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The most characters of a screen that are shown to a person.
const SCREEN_CHARS: usize = 800;
/// The most lines of a screen that are shown to a person.
const SCREEN_LINES: usize = 12;

pub(super) async fn act(tools: &Tools, effect: &Effect, resumed: bool, stop: &CancellationToken) -> Outcome {
    match effect {
        Effect::PrepareFolder { persona } => prepare_folder(tools, persona).await,
        Effect::Type(plan) => Outcome::Typed(type_text(tools, plan, resumed, stop).await),
        Effect::ReadDocument { persona, file_name, .. } => {
            Outcome::Document(document::read_settled(&tools.home, persona, file_name).await)
        }
        Effect::ComposeDocument { persona, file_name, source, replaces } => {
            Outcome::Composed(compose::compose(tools, (persona, file_name), source, replaces.as_deref()).await)
        }
        Effect::Examine(plan) => examine::examine(tools, plan).await,
        Effect::CompareDocument { persona, file_name, sha256, text, drift } => {
            let record = (sha256.as_str(), text.as_deref());
            examine::compare(tools, (persona, file_name, record), drift.as_deref(), stop).await
        }
        Effect::ReadPersona { persona: slug } => persona::read(tools, slug, stop).await,
        Effect::AwaitIdle { pane, profile, brief, .. } => {
            Outcome::Readiness(await_idle(tools, pane, profile, *brief, stop).await)
        }
        Effect::LookAtTurn { pane, profile } => Outcome::Readiness(look_at_turn(tools, pane, profile, stop).await),
        Effect::AwaitReady { pane, profile, .. } => Outcome::Readiness(await_ready(tools, pane, profile, stop).await),
        Effect::AwaitDeath { process } => await_death(process, stop).await,
        Effect::HoldPlaceholder { pane, tag, profile, cwd } => {
            placeholder::hold(tools, pane, tag, (profile, cwd.as_deref())).await
        }
        Effect::DropPlaceholder { tag } => placeholder::remove(tools, tag, stop).await,
        Effect::Start(plan) => Outcome::Started(start::start(tools, plan).await),
        Effect::ReadContextUsage { profile, path, .. } => {
            Outcome::ContextUsage(context_usage::read(tools, profile, path, stop).await)
        }
        Effect::ReadLimit { profile, said, path, pane, is_blocked, .. } => {
            let signs = (said.as_deref(), path.as_deref(), pane.as_ref());
            Outcome::Limit(limit_look::look(tools, profile, signs, *is_blocked, stop).await)
        }
        Effect::AwaitPrompt { profile, path, delivery_id, .. } => {
            transcript::await_prompt(tools, profile, path, delivery_id, stop).await
        }
        Effect::AwaitRead { profile, path, document, .. } => {
            transcript::await_read(tools, profile, path, document, stop).await
        }
        Effect::CheckAutoHandoff { pane, persona, .. } => {
            context_usage::check_auto_handoff(tools, pane, persona, stop).await
        }
        Effect::Identify { pane, server_pid } => identify::identify(tools, *pane, *server_pid, stop).await,
        Effect::KillPane { pane, process, .. } => kill::kill_pane(tools, pane, process.as_ref(), stop).await,
        Effect::KeepCopy(plan) => {
            let (home, plan) = (tools.home.clone(), plan.clone());
            let kept = fault::blocking(move || publish::keep_copy(&home, &plan)).await;
            kept.unwrap_or_else(|error| Outcome::Failed { why: error.to_string() })
        }
        Effect::Publish(plan) => Outcome::Posted(publish::publish(tools, plan, resumed, stop).await),
        Effect::NotifyOperator(notice) => operator::notify_operator(tools, notice, stop).await,
        Effect::Notify(plan) => match &plan.command {
            None => operator::notify_operator(tools, &plan.notice, stop).await,
            Some(command) => operator::run_command(tools, command, &plan.notice, stop).await,
        },
    }
}

/// Makes the folder of a persona's documents, on a thread of its own, so that a disk that hangs holds no thread of the
/// runtime. Every effect that reads or writes files does it in this way.
async fn prepare_folder(tools: &Tools, persona: &Slug) -> Outcome {
    let (home, persona) = (tools.home.clone(), persona.clone());
    match fault::blocking(move || documents::remake_folder(home.root(), &persona)).await {
        Ok(Ok(_)) => Outcome::Done,
        Ok(Err(error)) => Outcome::Failed { why: error.to_string() },
        Err(error) => Outcome::Failed { why: error.to_string() },
    }
}

/// Reads screens by the rules of a profile.
struct ProfileScreenReader<'p> {
    profile: &'p Profile,
    /// The agent's own process, if it is known.
    process: Option<Process>,
}

/// Reads screens as [`ProfileScreenReader`] does, and keeps the last screen, because it is gone when the agent ends.
struct LastScreenReader<'p> {
    screen_reader: ProfileScreenReader<'p>,
    /// Whether all that is above the composer must stay the same, not only what the profile reads in the screen.
    whole_screen: bool,
    last: Mutex<Option<Capture>>,
}

impl ProfileScreenReader<'_> {
    fn rows_above_composer(&self, capture: &Capture) -> usize {
        let cursor = (capture.cursor_x, capture.cursor_y);
        self.profile.rows_above_composer(&capture.lines.join("\n"), capture.height, cursor)
    }
}

impl ScreenReader for LastScreenReader<'_> {
    fn look(&self, capture: &Capture) -> ScreenReading {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(capture.clone());
        self.screen_reader.look(capture)
    }

    fn fingerprint(&self, capture: &Capture) -> u64 {
        let mut hasher = DefaultHasher::new();
        if self.whole_screen {
            let above = self.screen_reader.rows_above_composer(capture);
            plain_lines(capture).into_iter().take(above).for_each(|line| line.hash(&mut hasher));
        }
        hasher.finish()
    }
}

impl ScreenReader for ProfileScreenReader<'_> {
    fn look(&self, capture: &Capture) -> ScreenReading {
        let screen = capture.lines.join("\n");
        self.profile.read_screen(&screen, capture.height, (capture.cursor_x, capture.cursor_y))
    }

    fn lives(&self) -> bool {
        self.process.is_none_or(|process| process::is_alive(&process))
    }
}

/// Types one text. A text with an attachment is typed only after its file is written.
async fn type_text(tools: &Tools, plan: &TypeText, resumed: bool, stop: &CancellationToken) -> Typed {
    // If the profile is gone or the text's file can't be written, this attempt types nothing. But if it is resumed
    // after a crash, the earlier attempt may have typed the text. So only a first attempt may report that nothing was
    // typed.
    let refused_or_unknown = |reason: Refusal| match resumed {
        true => Typed::Unknown { reason: "not_looked".to_owned() },
        false => Typed::Refused { reason },
    };
    let Some(profile) = tools.profiles.get(&plan.profile) else {
        return refused_or_unknown(Refusal::NotReady);
    };
    if let Some(attachment) = &plan.attachment
        && let Err(why) = write_attachment(tools, attachment, &plan.delivery_id, stop).await
    {
        tracing::warn!(delivery = %plan.delivery_id, why, "could not write a long text's file; this try typed nothing");
        return refused_or_unknown(Refusal::TextFile);
    }
    let input = &profile.file.input;
    let (text, how, seen_tail) = match plan.how {
        How::Command => (profile.exit_command().to_owned(), Input::Command, String::new()),
        How::NewSession => (profile.new_command().unwrap_or_default().to_owned(), Input::Command, String::new()),
        How::Prompt => {
            let how = match input.mode {
                InputMode::Bracketed => Input::Bracketed,
                InputMode::Pieces => {
                    Input::Pieces { chars: input.piece_chars, gap: input.piece_gap, settle: input.settle }
                }
            };
            (plan.text.clone(), how, signature(&plan.delivery_id))
        }
    };
    let typing = TypePlan {
        pane: plan.pane,
        delivery: plan.delivery_id.clone(),
        text,
        input: how,
        raw_bytes: input.raw_bytes,
        foreground: None,
        enter_delay: input.enter_delay,
        enter_retry_after: input.enter_retry_after,
        enter_retries: input.enter_retries,
        hold: OBSTACLE_WAIT,
        seen_within: SEEN_WITHIN,
        resumed,
        allow_busy: plan.allow_busy,
        screen_proof: profile.file.screen.proof,
        seen_tail,
    };
    let typed = tools.tmux.type_text(&typing, &ProfileScreenReader { profile, process: plan.process }, stop).await;
    let is_elsewhere = || tools.tmux.server().is_some_and(|info| lives_elsewhere(&plan.pane, &info.id));
    match typed {
        // The agent lives, so nobody may be told that its pane is closed.
        Typed::Refused { reason: Refusal::PaneGone } if is_elsewhere() => Typed::Refused { reason: Refusal::NoTmux },
        typed => typed,
    }
}

/// Writes a text that is too long for a pane to its file. While the system lacks something, such as space, or the disk
/// does not answer, it tries again.
async fn write_attachment(
    tools: &Tools,
    attachment: &Attachment,
    id: &DeliveryId,
    stop: &CancellationToken,
) -> Result<(), String> {
    let (home, attachment, id) = (tools.home.clone(), attachment.clone(), id.clone());
    let write = move || match documents::write_text(home.root(), &attachment.persona, &id, &attachment.body) {
        Ok(_) => LookResult::Answered(Ok(())),
        Err(error) if error.unavailable().is_some_and(limits::is_passing) => LookResult::Unavailable(error.to_string()),
        Err(error) => LookResult::Answered(Err(error.to_string())),
    };
    retry_look::until_answered(stop, write).await?
}

/// Waits until the screen is idle and the composer holds no draft. A brief watch also ends when it sees a running turn.
async fn await_idle(tools: &Tools, pane: &PaneRef, profile: &str, brief: bool, stop: &CancellationToken) -> Readiness {
    let (within, at_work) = if brief { (BRIEF_IDLE_LIMIT, Some(AT_WORK)) } else { (IDLE_LIMIT, None) };
    let began = Instant::now();
    loop {
        // After a draft was seen, only the rest of the time is left.
        let left = within.saturating_sub(began.elapsed());
        let plan = ReadyPlan { within: left, calm: IDLE_CALM, every: Duration::from_secs(1), at_work };
        let readiness = wait_ready(tools, pane, profile, (&plan, true), stop).await;
        let has_draft = readiness == Readiness::Ready && has_draft(tools, pane, profile).await;
        if !has_draft || stop.is_cancelled() {
            return readiness;
        }
        if began.elapsed() >= within {
            return Readiness::NotReady { screen: String::new() };
        }
    }
}

/// Looks for a second whether the screen shows a turn. A draft in the composer is not taken for a turn.
async fn look_at_turn(tools: &Tools, pane: &PaneRef, profile: &str, stop: &CancellationToken) -> Readiness {
    let plan = ReadyPlan { within: TURN_LOOK_LIMIT, calm: TURN_CALM, every: LOOK_EVERY, at_work: Some(TURN_CALM) };
    wait_ready(tools, pane, profile, (&plan, false), stop).await
}

/// Whether the composer holds a draft, which a person may be about to submit, or something that can't be read. A text
/// of ours is not a draft, even if an interrupted prompt came back into the composer. A screen that can't be captured
/// counts as without a draft.
async fn has_draft(tools: &Tools, pane: &PaneRef, profile: &str) -> bool {
    let Some(profile) = tools.profiles.get(profile) else { return false };
    match tools.tmux.capture(pane).await {
        Ok(capture) => match (ProfileScreenReader { profile, process: None }).look(&capture).composer {
            ComposerContent::Text(text) | ComposerContent::Tail(text) => !bears_signature(&text),
            composer => composer != ComposerContent::Empty,
        },
        Err(_) => false,
    }
}

/// Waits until a started agent takes input. If it does not, the reason also says whether the profile was never tried
/// with this version of the CLI.
async fn await_ready(tools: &Tools, pane: &PaneRef, profile: &str, stop: &CancellationToken) -> Readiness {
    let Some(ready) = tools.profiles.get(profile).map(|profile| profile.file.ready.clone()) else {
        return Readiness::NotReady { screen: format!("(the profile {profile} no longer exists)") };
    };
    let plan = ReadyPlan { within: ready.timeout, calm: ready.calm, every: LOOK_EVERY, at_work: None };
    match wait_ready(tools, pane, profile, (&plan, false), stop).await {
        Readiness::NotReady { screen } if !stop.is_cancelled() => {
            Readiness::NotReady { screen: screen + &version::remark(tools, profile).await }
        }
        Readiness::Gone { screen } if !screen.is_empty() && !stop.is_cancelled() => {
            Readiness::Gone { screen: screen + &version::remark(tools, profile).await }
        }
        readiness => readiness,
    }
}

/// Waits until the screen has shown the same ready composer, or dialog, for `plan.calm`. With `whole_screen`, nothing
/// else on the screen may change meanwhile.
async fn wait_ready(
    tools: &Tools,
    pane: &PaneRef,
    profile: &str,
    (plan, whole_screen): (&ReadyPlan, bool),
    stop: &CancellationToken,
) -> Readiness {
    let Some(profile) = tools.profiles.get(profile) else {
        return Readiness::NotReady { screen: "(the agent's profile no longer exists)".to_owned() };
    };
    let screen_reader = ProfileScreenReader { profile, process: None };
    let reader = LastScreenReader { screen_reader, whole_screen, last: Mutex::new(None) };
    let end = tools.tmux.wait_ready(pane, plan, &reader, stop).await;
    let last = reader.last.into_inner().unwrap_or_else(PoisonError::into_inner);
    let screen = last.map(|capture| screen_end(&capture)).unwrap_or_default();
    match end {
        Ready::Ready(_) => Readiness::Ready,
        Ready::Blocked(_) => Readiness::Blocked { screen },
        Ready::AtWork(_) => Readiness::AtWork { screen },
        Ready::Gone(_) => Readiness::Gone { screen },
        Ready::NotReady(_) | Ready::Stopped => Readiness::NotReady { screen },
        Ready::NoTmux => Readiness::NotReady { screen: "(no tmux server answers)".to_owned() },
    }
}

/// The last lines of a screen that hold letters or digits: they show a person what is wrong.
fn screen_end(capture: &Capture) -> String {
    let tells = |line: &String| line.chars().any(char::is_alphanumeric);
    let lines: Vec<String> = plain_lines(capture).into_iter().filter(tells).collect();
    let from = lines.len().saturating_sub(SCREEN_LINES);
    let text = lines[from..].join(" / ");
    let skipped = text.chars().count().saturating_sub(SCREEN_CHARS);
    text.chars().skip(skipped).collect()
}

/// The lines of a screen without colours and styles.
fn plain_lines(capture: &Capture) -> Vec<String> {
    let text = ansi::plain(&capture.lines.join("\n"), capture.height);
    text.split('\n').map(|line| sanitise(line).trim().to_owned()).collect()
}

async fn await_death(process: &Process, stop: &CancellationToken) -> Outcome {
    tokio::select! {
        () = stop.cancelled() => Outcome::Failed { why: "tasuki stopped waiting for the process".to_owned() },
        () = process::wait_for_end(process) => Outcome::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::Profiles;
    use crate::core::settings::Limits;

    /// Otherwise the step's limit would break off a text whose verdict is still to come.
    #[test]
    fn a_text_is_typed_within_the_shortest_step_that_types_one() {
        let profiles = Profiles::load(None).expect("built in");
        let limits = Limits::default();
        let shortest = Duration::from_millis(limits.instructing_ms.min(limits.briefing_ms).min(limits.ending_ms));
        for profile in profiles.iter() {
            let input = &profile.file.input;
            let enters = input.enter_delay + input.enter_retry_after * (input.enter_retries + 1);
            let longest = OBSTACLE_WAIT + SEEN_WITHIN * 2 + enters;
            assert!(longest < shortest, "{}: {longest:?}", profile.name);
        }
    }
}
