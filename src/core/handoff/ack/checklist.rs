//! The delivery checklist: each point with the time at which it was reached, or with the reason why it was not.

use super::checkpoint;
use crate::contract::handoff::{Author, PointView};
use crate::core::pane::{DeliveryVerdict, Verdict};
use crate::core::rows::ack::{Ack, Kind, Sending, Standing};
use crate::core::rows::handoff::{Handoff, OutgoingSession, Span, Step};

/// A point of the checklist: its name, when it was reached, or why not.
fn point(what: &str, at: Option<&str>, why_not: &str) -> PointView {
    let reason = Some(why_not).filter(|why_not| at.is_none() && !why_not.is_empty());
    PointView { point: what.to_owned(), at: at.map(str::to_owned), reason: reason.map(str::to_owned) }
}

/// Every point of a handoff's delivery.
#[must_use]
pub fn points(handoff: &Handoff) -> Vec<PointView> {
    let mut points = of_flow(handoff);
    if let Some(ack) = &handoff.ack {
        points.extend(before(handoff, ack));
        points.extend(after(handoff, ack));
    }
    points
}

fn delivered(verdict: Option<&DeliveryVerdict>) -> Option<&str> {
    verdict.filter(|verdict| verdict.verdict == Verdict::Delivered).map(|verdict| verdict.at.as_str())
}

fn last(handoff: &Handoff, step: Step) -> Option<&Span> {
    handoff.steps.iter().rev().find(|span| span.step == step)
}

/// The points that every handoff has.
fn of_flow(handoff: &Handoff) -> Vec<PointView> {
    let why_not = why_not_reached(handoff).unwrap_or_default();
    let was_left = handoff.session.may_still_run;
    let ended = last(handoff, Step::Ending)
        .and_then(|span| span.left_at.as_deref())
        .filter(|_| handoff.successor_id.is_some() && !was_left);
    let why_not_ended = if was_left { OutgoingSession::NOT_ENDED } else { why_not };
    let ready = last(handoff, Step::Priming).map(|span| span.entered_at.as_str());
    let verdicts = &handoff.verdicts;
    let [asked, primed, briefed] = [&verdicts.instruction, &verdicts.priming, &verdicts.briefing].map(Option::as_ref);
    let had_skill = primed.is_none() && last(handoff, Step::Briefing).is_some();
    let not_asked = match handoff.author {
        Author::Salvage => "no agent was asked: tasuki wrote the document from the transcript",
        Author::Provided => "no agent was asked: the document was provided",
        Author::AgentFile | Author::AgentReply => why_not,
    };
    let not_primed = if had_skill { "the successor had its skill already" } else { why_not };
    vec![
        text("instruction delivered", asked, not_asked),
        point("document recorded", handoff.record.as_ref().map(|record| record.created_at.as_str()), why_not),
        point("outgoing agent ended", ended, why_not_ended),
        point("successor registered and ready", ready, why_not),
        text("priming delivered", primed, not_primed),
        text("briefing delivered", briefed, why_not),
    ]
}

/// A point about a typed text. If the text has no verdict, it was not typed, and `why_not` is the reason.
fn text(what: &str, verdict: Option<&DeliveryVerdict>, why_not: &str) -> PointView {
    let Some(seen) = verdict else { return point(what, None, why_not) };
    let reason = seen.reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let why_not = match seen.verdict {
        Verdict::Delivered => String::new(),
        Verdict::Unconfirmed => format!("it is not known whether the text arrived{reason}"),
        Verdict::NotDelivered => format!("the text was not typed{reason}"),
    };
    point(what, delivered(verdict), &why_not)
}

/// Why nothing more is reached, if the handoff has ended before its last point.
fn why_not_reached(handoff: &Handoff) -> Option<&'static str> {
    match handoff.step {
        Step::Failed => Some("the handoff failed before"),
        Step::Cancelled if handoff.error.is_some() => Some("the handoff failed before, and was abandoned"),
        Step::Cancelled => Some("the handoff was cancelled before"),
        Step::Waiting
        | Step::Instructing
        | Step::Writing
        | Step::Checking
        | Step::Recording
        | Step::Ending
        | Step::Starting
        | Step::Priming
        | Step::Briefing
        | Step::Reading
        | Step::Acknowledging
        | Step::Done => None,
    }
}

/// Points of a handoff that wants an acknowledgement: what must be true when the successor is briefed.
fn before(handoff: &Handoff, ack: &Ack) -> Vec<PointView> {
    let recorded = handoff.record.as_ref().map(|record| record.created_at.as_str());
    let briefed = delivered(handoff.verdicts.briefing.as_ref()).or(ack.sent_at.as_deref());
    let started = briefed.filter(|_| ack.sent_at.is_some());
    let why_not = why_not_reached(handoff);
    let waits = why_not.unwrap_or("the briefing has not arrived yet");
    let urgency = format!("urgency level sent as asked ({})", ack.urgency.as_str());
    vec![
        point("document uploaded", uploaded(handoff), not_uploaded(handoff)),
        point("local copy saved", recorded, why_not.unwrap_or("the document is not recorded yet")),
        point("handoff message sent", briefed, waits),
        point("message names where the document is", briefed, waits),
        point("message names all tasks", briefed.filter(|_| !handoff.tasks.is_empty()), no_tasks(handoff, waits)),
        point(&urgency, briefed, waits),
        point("acknowledgement timer started", started, waits),
    ]
}

/// When the document was published: the end of the successful attempt.
fn uploaded(handoff: &Handoff) -> Option<&str> {
    handoff.published_url()?;
    let attempts = handoff.publish.iter().flat_map(|publishing| publishing.attempts.iter());
    attempts.rev().find(|attempt| attempt.error.is_none()).map(|attempt| attempt.ended_at.as_str())
}

fn not_uploaded(handoff: &Handoff) -> &str {
    let Some(publishing) = &handoff.publish else {
        return "the handoff did not ask for an upload; the briefing names the local file";
    };
    match &publishing.error {
        Some(error) => &error.message,
        None => "the document is not published yet; the briefing names the local file",
    }
}

fn no_tasks<'t>(handoff: &Handoff, waits: &'t str) -> &'t str {
    if handoff.tasks.is_empty() { "no tasks were given" } else { waits }
}

/// Points of a handoff that wants an acknowledgement: what follows from the ACK.
fn after(handoff: &Handoff, ack: &Ack) -> Vec<PointView> {
    let said = ack.received.as_ref();
    let at = said.map(|said| said.at.as_str());
    let done = last(handoff, Step::Done).map(|span| span.entered_at.as_str());
    let not_done = why_not_reached(handoff).unwrap_or("the handoff is not done yet");
    let by_operator = ack.overridden.as_ref().is_none_or(|overridden| overridden.by == "operator");
    let no_ack = match ack.standing {
        Standing::AcknowledgedWithDelay if by_operator => "overridden by the operator: no ACK came",
        Standing::AcknowledgedWithDelay => "overridden by the orchestrator: no ACK came",
        Standing::NotAsked
        | Standing::Pending
        | Standing::Acknowledged
        | Standing::NeedsClarification
        | Standing::EnvironmentIssue
        | Standing::Rejected
        | Standing::TimedOut => "no ACK was accepted yet",
    };
    let judged = if said.is_some() { "a person must compare it with the tasks; tasuki shows both" } else { no_ack };
    let (from, why_not) = documented_checkpoint(ack);
    let (answered, open) = questions(ack);
    let told = handoff.ack.as_ref().and_then(|ack| ack.last_to_others(Kind::HandoffComplete));
    let told_at = told.filter(|message| message.sending == Sending::Sent).and_then(|message| message.at.as_deref());
    let not_told = told.map_or(not_done.to_owned(), |message| {
        message.reason.clone().unwrap_or_else(|| "the message is on its way".to_owned())
    });
    vec![
        point("ACK handoff_id matches", at, no_ack),
        point("understanding is accurate", None, judged),
        point("starting_from matches the documented checkpoint", from, why_not.as_deref().unwrap_or(no_ack)),
        point("all questions answered", answered, open.as_deref().unwrap_or(no_ack)),
        point("state updated", done, not_done),
        point("target told of the handoff", told_at, &not_told),
    ]
}

fn documented_checkpoint(ack: &Ack) -> (Option<&str>, Option<String>) {
    let Some(said) = ack.received.as_ref() else { return (None, None) };
    match &ack.checkpoint {
        None => (None, Some("the document states no checkpoint".to_owned())),
        Some(documented) if checkpoint::is_same(documented, &said.starting_from) => (Some(&said.at), None),
        Some(documented) => {
            (None, Some(format!("the document says “{documented}”, the successor “{}”", said.starting_from)))
        }
    }
}

fn questions(ack: &Ack) -> (Option<&str>, Option<String>) {
    let Some(said) = ack.received.as_ref() else { return (None, None) };
    match (said.questions.as_slice(), ack.unanswered.as_slice()) {
        ([], []) => (Some(&said.at), None),
        (open, []) => (None, Some(format!("open: {}", open.join(" / ")))),
        (_, unanswered) => (None, Some(format!("no answer was given to: {}", unanswered.join(" / ")))),
    }
}
