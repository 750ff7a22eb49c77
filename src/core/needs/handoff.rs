//! What a handoff needs of a person: an answer, a decision about its document, a retry, or a decision about its
//! publishing.

use super::agent::AgentNeeds;
use super::text::{id, line, short, slug, some_line, time};
use crate::contract::handoff::Successor;
use crate::contract::publishing::PublishErrorView;
use crate::contract::{HandoffView, NeedKind, NeedView, PublishState, Step, StepError};
use crate::core::handoff::driver;
use std::borrow::Cow;

/// What one handoff needs of a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandoffNeeds {
    /// Which handoff.
    pub handoff_id: String,
    agent_id: String,
    successor_id: Option<String>,
    /// A step has failed.
    has_failed: bool,
    /// Its successor has been started for it and has not got its document, so that agent knows nothing of the work.
    is_successor_unbriefed: bool,
    /// Its successor has got its document, or nobody knows whether the briefing arrived.
    may_be_briefed: bool,
    /// What the failure of a step needs. As every need that a failure causes, it has the failure's id, and is listed
    /// only while nobody has dismissed the failure.
    of_step: Option<NeedView>,
    others: Vec<NeedView>,
}

impl HandoffNeeds {
    /// Judges a handoff's view.
    #[must_use]
    pub fn of(seen: &HandoffView) -> Self {
        let error = seen.error.as_ref().filter(|_| seen.step == Step::Failed);
        HandoffNeeds {
            handoff_id: seen.handoff_id.clone(),
            agent_id: seen.agent_id.clone(),
            successor_id: seen.successor_id.clone(),
            has_failed: error.is_some_and(|error| error.step.known().is_some()),
            is_successor_unbriefed: !matches!(seen.successor, Successor::Existing { .. })
                && error.and_then(may_be_briefed) == Some(false),
            may_be_briefed: error.and_then(may_be_briefed) == Some(true),
            of_step: failed(seen),
            others: [question(seen), held(seen), publishing(seen)].into_iter().flatten().collect(),
        }
    }

    /// The agents that [`HandoffNeeds::taken_over`] looks at: none if no step has failed.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        let all = [Some(self.agent_id.as_str()), self.successor_id.as_deref()];
        all.into_iter().flatten().filter(|_| self.has_failed)
    }

    /// What has become of the work since a step failed, in one sentence: another handoff continues it, so that this one
    /// can't be retried. None if no step has failed, or if the failure still counts.
    pub fn taken_over<'a>(&self, agent_of: impl Fn(&str) -> Option<&'a AgentNeeds>) -> Option<&'static str> {
        if !self.has_failed {
            return None;
        }
        let is_in_another = |id: &str| agent_of(id).is_some_and(|agent| agent.is_in_another(&self.handoff_id));
        if is_in_another(&self.agent_id) {
            return Some("another handoff of this agent has taken over: nothing is left to do");
        }
        let successor = self.successor_id.as_deref().filter(|_| self.may_be_briefed);
        successor
            .is_some_and(is_in_another)
            .then_some("another handoff of its successor has taken over: nothing is left to do")
    }

    /// All that it needs of a person.
    pub(super) fn needs(&self) -> impl Iterator<Item = &NeedView> {
        self.of_step.iter().chain(&self.others)
    }

    /// The handoff as it is seen beside these agents. If another handoff has taken over, nobody has to do anything
    /// about the step that failed.
    pub fn beside<'a>(&self, agent_of: impl Fn(&str) -> Option<&'a AgentNeeds>) -> Cow<'_, Self> {
        if self.taken_over(agent_of).is_none() {
            return Cow::Borrowed(self);
        }
        Cow::Owned(HandoffNeeds { of_step: None, ..self.clone() })
    }

    /// The successor that waits for the document of this failed handoff. A handoff of that agent would leave the
    /// document behind.
    pub(super) fn unbriefed(&self) -> Option<&str> {
        self.successor_id.as_deref().filter(|_| self.is_successor_unbriefed)
    }

    /// A need of that successor: where its command is a handoff, another successor gets the document instead.
    pub(super) fn of_unbriefed(&self, need: &NeedView) -> NeedView {
        if !need.command.starts_with("tasuki handoff ") {
            return need.clone();
        }
        let profile = if need.what == NeedKind::Limited { " --profile …" } else { "" };
        NeedView {
            hint: Some(
                "Its predecessor's document has not reached it: give the document to another successor.".to_owned(),
            ),
            command: format!("tasuki retry {} --successor new{profile} --wait", short(&self.handoff_id)),
            ..need.clone()
        }
    }

    /// Whether it needs a person because of the failure with this id.
    pub(super) fn names(&self, error_id: &str) -> bool {
        self.needs().any(|need| need.error_id.as_deref() == Some(error_id))
    }

    /// Whether it needs nobody, whatever the error files say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.needs().all(|need| need.error_id.is_some())
    }
}

fn about(seen: &HandoffView, what: NeedKind) -> NeedView {
    NeedView {
        what: what.into(),
        handoff_id: id(&seen.handoff_id),
        persona_slug: slug(Some(&seen.persona_slug)),
        ..NeedView::default()
    }
}

fn question(seen: &HandoffView) -> Option<NeedView> {
    let open = seen.open_questions();
    let ack = seen.ack.as_ref().filter(|_| seen.asks() || (!open.is_empty() && !seen.waits_after_failure()))?;
    let said = match open.is_empty() {
        true => "The successor waits for an answer".to_owned(),
        false if seen.asks() => format!("The successor asks: {}", line(&open.join(" / "))),
        false => format!("No answer was given to: {}", line(&open.join(" / "))),
    };
    Some(NeedView {
        since: time(ack.at.as_deref()),
        said: line(&said),
        command: format!("tasuki clarify {} {}", short(&seen.handoff_id), answers(open)),
        ..about(seen, NeedKind::Question)
    })
}

/// One answer for each question. A successor that has asked nothing, but waits, gets one.
fn answers(questions: &[String]) -> String {
    vec!["--answer …"; questions.len().clamp(1, 20)].join(" ")
}

fn held(seen: &HandoffView) -> Option<NeedView> {
    let faults = match seen.faults.len() {
        0 => "no faults".to_owned(),
        1 => "1 fault".to_owned(),
        faults => format!("{faults} faults"),
    };
    seen.is_held().then(|| NeedView {
        since: time(seen.held_since.as_deref()),
        said: format!("The document waits to be accepted ({faults})"),
        hint: Some(format!("Read it: tasuki handoffs show {} --document", short(&seen.handoff_id))),
        command: format!("tasuki accept {}", short(&seen.handoff_id)),
        ..about(seen, NeedKind::Held)
    })
}

/// Whether only a person can say if the text of the failed step arrived.
#[must_use]
pub fn is_in_doubt(error: &StepError) -> bool {
    error.step.known().is_some_and(|step| driver::is_doubtful(step, &error.code))
}

/// Whether the successor may have got the document when this step failed; none if it had no successor then.
fn may_be_briefed(error: &StepError) -> Option<bool> {
    match error.step.known()? {
        Step::Starting | Step::Priming => Some(false),
        Step::Briefing => Some(is_in_doubt(error)),
        Step::Reading | Step::Acknowledging => Some(true),
        Step::Waiting
        | Step::Instructing
        | Step::Writing
        | Step::Checking
        | Step::Recording
        | Step::Ending
        | Step::Done
        | Step::Failed
        | Step::Cancelled => None,
    }
}

fn failed(seen: &HandoffView) -> Option<NeedView> {
    let error = seen.error.as_ref().filter(|_| seen.step == Step::Failed)?;
    let step = error.step.known();
    let is_doubtful = is_in_doubt(error);
    // Here the retry itself looks for the agent, so it needs no `--assume`.
    let is_start_in_doubt = step == Some(Step::Starting) && error.code == "no_tmux";
    let what = if is_doubtful || is_start_in_doubt { NeedKind::InDoubt } else { NeedKind::Failed };
    Some(NeedView {
        error_id: id(&error.error_id),
        since: time(seen.steps.last().map(|step| step.entered_at.as_str())),
        said: line(&error.message),
        hint: some_line(&error.hint),
        command: retry(seen, error, is_doubtful),
        ..about(seen, what)
    })
}

/// The command that continues a failed handoff: it answers the successor, or retries the step. If the agent can no
/// longer write, the command that begins another handoff.
fn retry(seen: &HandoffView, error: &StepError, is_doubtful: bool) -> String {
    let retry = format!("tasuki retry {}", short(&seen.handoff_id));
    if is_doubtful {
        return format!("{retry} --assume …");
    }
    // The successor lives and waits for this; a retry would replace it.
    if seen.waits_after_failure() {
        return format!("tasuki clarify {} {}", short(&seen.handoff_id), answers(seen.open_questions()));
    }
    match error.hint.split_once(&retry) {
        Some((_, rest)) if rest.starts_with(" --successor new") => format!("{retry} --successor new"),
        None if matches!(error.code.as_str(), "agent_ended" | "pane_gone")
            && error.hint.contains("--author salvage") =>
        {
            format!("tasuki handoff {} --author salvage", short(&seen.agent_id))
        }
        Some(_) | None => retry,
    }
}

fn publishing(seen: &HandoffView) -> Option<NeedView> {
    let publish = seen.publish.as_ref()?;
    let PublishErrorView { error_id, message, hint, .. } = publish.error.as_ref()?;
    let (what, more) = match publish.state.known()? {
        PublishState::InDoubt => (NeedKind::InDoubt, " --assume …"),
        PublishState::Held if hint.contains("--redacted") => (NeedKind::Held, " --redacted"),
        PublishState::Held => (NeedKind::Held, " --as-is"),
        // The same issue would refuse the document again.
        PublishState::Failed if hint.contains("--to gist") => (NeedKind::Failed, " --to gist"),
        PublishState::Failed => (NeedKind::Failed, ""),
        PublishState::Waiting | PublishState::Running | PublishState::Retrying | PublishState::Published => {
            return None;
        }
    };
    Some(NeedView {
        error_id: id(error_id),
        said: line(message),
        hint: some_line(hint),
        command: format!("tasuki publish {}{more}", short(&seen.handoff_id)),
        ..about(seen, what)
    })
}
