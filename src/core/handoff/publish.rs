//! Publishes the recorded document, beside the flow of the handoff. Publishing begins when the document is recorded,
//! never delays the handoff, and may continue after its end. tasuki first writes a copy beside the document, then calls
//! `gh`. It repeats an attempt only after a network or server failure. The server may have stored an upload without
//! answering, so tasuki searches for the upload's mark before each further attempt.

use super::ack::timeline;
use super::row;
use crate::contract::{JournalLine, LineType};
use crate::core::effect::{CopyPlan, Effect, EffectKey, Outcome, Posted, PublishFault, PublishPlan, SecretFound};
use crate::core::id::{ErrorId, HandoffId};
use crate::core::request::{PublishAs, PublishTarget};
use crate::core::rows::outbox::Waiter;
use crate::core::rows::publishing::{Attempt, AttemptError, Copy, PublishError, PublishState, Publishing, Purpose};
use crate::core::text::sentence;
use crate::core::time::Deadline;
use crate::core::tx::{Failure, Tx};

const MOST_ATTEMPTS: usize = 50;
/// Why tasuki holds a document that it could not search for all credentials.
const UNSEARCHED: &str = "it was not searched for the values of the agent's environment, which can't be read";
/// How many credentials of a held document are named one by one. The rest is only counted.
const MOST_SECRETS: usize = 10;
/// How many addresses of earlier publications are kept.
const MOST_FORMER: usize = 20;
/// tasuki searches the uploads that were made since its first attempt. This is how much the server's clock may differ
/// from its own, in milliseconds.
const CLOCKS_DIFFER_MS: i64 = 24 * 3_600_000;

/// Begins to publish the recorded document if the handoff asks for that: after the first record, and after each new
/// one. Gives up a running attempt for an earlier document.
pub(crate) fn begin(tx: &mut Tx<'_>, id: HandoffId) {
    let text = tx.out.documents.get(&id).cloned().flatten();
    if let Some(publishing) = publishing_mut(tx, id) {
        publishing.secrets.clear();
        publishing.is_unsearched = false;
    }
    begin_next(tx, id, text, None);
}

/// Begins to publish the recorded document at a target that was named after its record. The credentials that an earlier
/// search has found are kept. What the operator has allowed for another target does not count for this target.
pub(super) fn begin_at(tx: &mut Tx<'_>, id: HandoffId, there: Publishing, publish_as: Option<PublishAs>) {
    let Some(handoff) = tx.handoff_mut(&id) else { return };
    match &mut handoff.publish {
        Some(publishing) => (publishing.target, publishing.fallback) = (there.target, there.fallback),
        None => handoff.publish = Some(there),
    }
    begin_next(tx, id, None, publish_as);
}

/// Begins the next publication of the handoff.
fn begin_next(tx: &mut Tx<'_>, id: HandoffId, text: Option<String>, publish_as: Option<PublishAs>) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let (Some(record), Some(_)) = (&handoff.record, &handoff.publish) else { return };
    let (sha256, from) = (record.sha256.clone(), handoff.name_of(&handoff.agent_id));
    // A successor that is yet to be started has no id.
    let to = handoff.successor_id.map_or_else(|| format!("{}-new", handoff.persona_slug), |id| handoff.name_of(&id));
    let Some(publishing) = publishing_mut(tx, id) else { return };
    publishing.number += 1;
    publishing.former_urls.extend(publishing.url.take());
    let too_many = publishing.former_urls.len().saturating_sub(MOST_FORMER);
    publishing.former_urls.drain(..too_many);
    publishing.copy = Some(Copy { file_name: None, sha256, from, to });
    publishing.first_try_ms = None;
    publishing.publish_as = publish_as;
    let before = publishing.effect.take();
    if let Some(key) = before {
        tx.drop_effect(key);
    }
    reset_failures(tx, id);
    keep_copy(tx, id, text);
}

pub(super) fn publishing_mut<'t>(tx: &'t mut Tx<'_>, id: HandoffId) -> Option<&'t mut Publishing> {
    tx.handoff(&id)?.publish.as_ref()?;
    tx.handoff_mut(&id)?.publish.as_mut()
}

/// Resets the failures, so that publishing begins again with the target of the request.
pub(super) fn reset_failures(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(publishing) = publishing_mut(tx, id) else { return };
    publishing.failures = 0;
    publishing.maybe_stored = false;
    publishing.as_gist = false;
    publishing.purpose = Purpose::Post;
    publishing.due = None;
    publishing.error = None;
}

/// Writes a copy beside the document. The copy is published, because the document itself may be changed later.
pub(super) fn keep_copy(tx: &mut Tx<'_>, id: HandoffId, text: Option<String>) {
    let (wall_ms, timestamp) = (tx.now.wall_ms, tx.now.rfc3339());
    let allow = tx.state.settings.publish.allow.clone();
    let Some(handoff) = tx.handoff(&id) else { return };
    let Some(publishing) = &handoff.publish else { return };
    let Some(copy) = publishing.copy.clone() else { return };
    let effect = Effect::KeepCopy(CopyPlan {
        persona: handoff.persona_slug.clone(),
        stem: format!("replacement-handoff-{}-to-{}", copy.from, copy.to),
        wall_ms,
        document: handoff.file_name.clone(),
        sha256: copy.sha256,
        text,
        process: tx.agent(&handoff.agent_id).and_then(|agent| agent.process),
        environment: handoff.examined.environment,
        found: publishing.secrets.clone(),
        is_unsearched: publishing.is_unsearched,
        allow,
        publish_as: publishing.publish_as,
    });
    let key = tx.effect(Waiter::Publishing(id), effect);
    if let Some(publishing) = publishing_mut(tx, id) {
        publishing.effect = Some(key);
        publishing.began_at = Some(timestamp);
        publishing.state = PublishState::Running;
    }
    journal_state(tx, id, None, None);
}

/// Calls `gh`. `insist`: the operator says that nothing was stored, so tasuki uploads even if its search for an earlier
/// upload gives no answer.
pub(super) fn attempt(tx: &mut Tx<'_>, id: HandoffId, insist: bool) {
    let timestamp = tx.now.rfc3339();
    let limit_ms = tx.state.settings.publish.timeout_ms;
    let Some(handoff) = tx.handoff(&id) else { return };
    let Some(publishing) = &handoff.publish else { return };
    let Some(copy) = &publishing.copy else { return };
    let Some(file_name) = copy.file_name.clone() else { return keep_copy(tx, id, None) };
    let target = publishing.destination();
    let is_again = |attempt: &Attempt| attempt.number == publishing.number && attempt.to == target.way();
    let is_first = !publishing.attempts.iter().any(|attempt| attempt.number == publishing.number);
    // In a row of an earlier version of tasuki, the time of the first attempt is missing. tasuki then searches all
    // uploads.
    let first_try_ms = publishing.first_try_ms.or(is_first.then_some(tx.now.wall_ms));
    let plan = PublishPlan {
        handoff_id: id,
        number: publishing.number,
        look_first: insist || publishing.attempts.iter().any(is_again),
        post: publishing.purpose == Purpose::Post,
        may_be_in_flight: publishing.maybe_stored,
        insist,
        target,
        persona: handoff.persona_slug.clone(),
        file_name,
        document: handoff.file_name.clone(),
        sha256: copy.sha256.clone(),
        description: format!("Agent replacement handoff: {} to {}", copy.from, copy.to),
        limit_ms,
        // The clock may have been set back since the first attempt.
        since_ms: first_try_ms.map(|first| first.min(tx.now.wall_ms).saturating_sub(CLOCKS_DIFFER_MS)),
    };
    let key = tx.effect(Waiter::Publishing(id), Effect::Publish(plan));
    if let Some(publishing) = publishing_mut(tx, id) {
        publishing.first_try_ms = first_try_ms;
        publishing.effect = Some(key);
        publishing.began_at = Some(timestamp);
        publishing.due = None;
        publishing.state = PublishState::Running;
    }
    journal_state(tx, id, None, None);
}

/// Writes a journal line with the state of the publishing.
fn journal_state(tx: &mut Tx<'_>, id: HandoffId, fault: Option<(&str, &str)>, error_id: Option<ErrorId>) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let Some(publishing) = &handoff.publish else { return };
    let line = JournalLine {
        state: Some(publishing.state.as_str().to_owned()),
        number: Some(publishing.number),
        to: Some(publishing.destination().way().as_str().to_owned()),
        url: publishing.url.clone(),
        code: fault.map(|(code, _)| code.to_owned()),
        message: fault.map(|(_, message)| message.to_owned()),
        error_id: error_id.map(|id| id.to_string()),
        publish_as: publishing.publish_as.map(|publish_as| publish_as.as_str().to_owned()),
        ..JournalLine::of_handoff(LineType::Publish, &id, &handoff.agent_id)
    };
    tx.journal(line);
}

/// An effect of this publishing has ended.
pub(crate) fn settled(tx: &mut Tx<'_>, id: HandoffId, key: EffectKey, outcome: Outcome) {
    let Some(publishing) = publishing_mut(tx, id) else { return };
    if publishing.effect != Some(key) {
        return;
    }
    publishing.effect = None;
    if let Outcome::Copied { file_name, redacted_sha256 } = outcome {
        if let Some(copy) = &mut publishing.copy {
            copy.file_name = Some(file_name);
            copy.sha256 = redacted_sha256.unwrap_or_else(|| copy.sha256.clone());
        }
        attempt(tx, id, false);
    } else if let Outcome::SecretsFound(secrets) = outcome {
        hold(tx, id, secrets, false);
    } else if let Outcome::EnvironmentLost(secrets) = outcome {
        hold(tx, id, secrets, true);
    } else if let Outcome::Posted(posted) = outcome {
        match posted {
            Posted::Done { url, is_public } => {
                if is_public {
                    warn_of_public(tx, id);
                }
                published(tx, id, url);
            }
            Posted::NotThere => upload_missing(tx, id),
            Posted::Failed(fault) => failed(tx, id, &fault),
        }
    } else if let Outcome::Failed { why } = outcome {
        let is_copied = publishing.copy.as_ref().is_some_and(|copy| copy.file_name.is_some());
        let code = if is_copied { "gh_failed" } else { "copy_failed" };
        let fault =
            PublishFault { code: code.to_owned(), message: why, maybe_stored: is_copied, ..PublishFault::default() };
        failed(tx, id, &fault);
    }
}

fn warn_of_public(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(publishing) = publishing_mut(tx, id) else { return };
    let PublishTarget::Issue(issue) = &publishing.target else { return };
    let told = format!("the repository {} is public: everybody can read the published document", issue.repository());
    row::warn(tx, id, &told);
}

fn note_attempt(tx: &mut Tx<'_>, id: HandoffId, error: Option<AttemptError>) {
    let timestamp = tx.now.rfc3339();
    let Some(publishing) = publishing_mut(tx, id) else { return };
    let at = publishing.began_at.take().unwrap_or_else(|| timestamp.clone());
    let to = publishing.destination().way().into();
    publishing.attempts.push(Attempt { number: publishing.number, to, at, ended_at: timestamp, error });
    let from = publishing.attempts.len().saturating_sub(MOST_ATTEMPTS);
    publishing.attempts.drain(..from);
}

fn published(tx: &mut Tx<'_>, id: HandoffId, url: Option<String>) {
    note_attempt(tx, id, None);
    end_published(tx, id, url);
}

pub(super) fn end_published(tx: &mut Tx<'_>, id: HandoffId, url: Option<String>) {
    if url.is_none() {
        row::warn(tx, id, "the document is published, but its address is not known");
    }
    let Some(publishing) = publishing_mut(tx, id) else { return };
    publishing.state = PublishState::Published;
    publishing.url = url;
    publishing.maybe_stored = false;
    publishing.error = None;
    journal_state(tx, id, None, None);
    timeline::document_published(tx, id);
}

/// Nothing was sent, because the document seems to hold credentials, or was not searched for all of them. The operator
/// decides what to do.
fn hold(tx: &mut Tx<'_>, id: HandoffId, secrets: Vec<SecretFound>, is_unsearched: bool) {
    let one = |secret: &SecretFound| {
        let last = if secret.last.is_empty() { String::new() } else { format!(" (…{})", secret.last) };
        format!("line {} {}{last}", secret.line, secret.kind)
    };
    let mut lines: Vec<String> = secrets.iter().take(MOST_SECRETS).map(one).collect();
    if secrets.len() > MOST_SECRETS {
        lines.push(format!("and {} more", secrets.len() - MOST_SECRETS));
    }
    let found = (!lines.is_empty()).then(|| format!("it seems to hold credentials: {}", lines.join(", ")));
    let unsearched = is_unsearched.then(|| UNSEARCHED.to_owned());
    let message = found.into_iter().chain(unsearched).collect::<Vec<_>>().join("; and ");
    let fault = PublishFault { code: "secrets_found".to_owned(), message, ..PublishFault::default() };
    if let Some(publishing) = publishing_mut(tx, id) {
        publishing.secrets = secrets;
        publishing.is_unsearched = is_unsearched;
    }
    end(tx, id, PublishState::Held, &fault);
}

/// Handles a failed attempt: publishes a gist instead, tries again later, searches for the upload, or gives up.
fn failed(tx: &mut Tx<'_>, id: HandoffId, fault: &PublishFault) {
    let error = AttemptError { code: fault.code.clone(), message: fault.message.clone() };
    note_attempt(tx, id, Some(error));
    let pauses = tx.state.settings.publish.retry_after_ms.clone();
    let now = tx.now;
    let Some(publishing) = publishing_mut(tx, id) else { return };
    publishing.maybe_stored = fault.maybe_stored;
    let is_issue = matches!(publishing.target, PublishTarget::Issue(_)) && !publishing.as_gist;
    let pause = pauses.get(publishing.failures as usize).copied().filter(|_| fault.is_retryable);
    if fault.refused && !fault.maybe_stored && is_issue && publishing.fallback {
        publishing.as_gist = true;
        publishing.failures = 0;
        let warning = format!("the issue comment failed ({}); tasuki publishes a secret gist instead", fault.code);
        row::warn(tx, id, &warning);
        attempt(tx, id, false);
    } else if let Some(pause) = pause {
        publishing.failures += 1;
        publishing.state = PublishState::Retrying;
        publishing.due = Some(Deadline::after(&now, pause));
        journal_state(tx, id, Some((&fault.code, &fault.message)), None);
    } else if fault.maybe_stored && publishing.purpose == Purpose::Post {
        // tasuki sends nothing any more, but an earlier attempt may have been stored: search for it.
        publishing.purpose = Purpose::Look;
        attempt(tx, id, false);
    } else if fault.maybe_stored {
        end(tx, id, PublishState::InDoubt, fault);
    } else {
        end(tx, id, PublishState::Failed, fault);
    }
}

/// tasuki searched for an upload that may have been stored, and did not find it: publishing has failed with the error
/// of the last attempt that had one.
fn upload_missing(tx: &mut Tx<'_>, id: HandoffId) {
    let Some(publishing) = publishing_mut(tx, id) else { return };
    publishing.maybe_stored = false;
    let last = publishing.attempts.iter().rev().find_map(|attempt| attempt.error.clone());
    let (code, message) = last.map_or_else(
        || ("gh_failed".to_owned(), "gh did not find the document there".to_owned()),
        |error| (error.code, format!("{}; tasuki looked for the document and did not find it", error.message)),
    );
    end(tx, id, PublishState::Failed, &PublishFault { code, message, ..PublishFault::default() });
}

/// What the operator does if it is not known whether the document was published. Each command can be pasted as it is.
pub(super) fn hint_in_doubt(id: HandoffId) -> String {
    let short = id.short();
    format!(
        "look at the target; if the document is there: tasuki publish {short} --assume published; otherwise: tasuki \
         publish {short} --assume not-published"
    )
}

/// Publishing has stopped, because it failed, is in doubt or is held: writes an error file, a journal line and a
/// warning in the view, and notifies by every channel.
fn end(tx: &mut Tx<'_>, id: HandoffId, state: PublishState, fault: &PublishFault) {
    let Some(handoff) = tx.handoff(&id) else { return };
    let Some(publishing) = &handoff.publish else { return };
    let (agent_id, target) = (handoff.agent_id, publishing.destination());
    let short = id.short();
    let (code, message, hint) = if state == PublishState::InDoubt {
        let message = format!("It is not known whether the document was published ({target}): {}", fault.message);
        ("in_doubt".to_owned(), message, hint_in_doubt(id))
    } else if state == PublishState::Held {
        let message = format!("The document was not published ({target}), because {}", fault.message);
        let is_unsearched = handoff.publish.as_ref().is_some_and(|publishing| publishing.is_unsearched);
        let hint = if is_unsearched {
            format!("read {}; if all of it may be published: tasuki publish {short} --as-is", handoff.file_name)
        } else {
            format!(
                "look at these lines of {}, then: tasuki publish {short} --redacted, or --as-is if they may be published",
                handoff.file_name
            )
        };
        (fault.code.clone(), message, hint)
    } else {
        let message = format!("The document was not published ({target}): {}", fault.message);
        let hint = match fault.code.as_str() {
            "gh_too_large" => format!("publish a gist instead: tasuki publish {short} --to gist"),
            code => format!("{}; then: tasuki publish {short}", remedy(code)),
        };
        (fault.code.clone(), message, hint)
    };
    let hint = sentence(&hint);
    let error_id = tx.notify_failure(Failure {
        code: code.clone(),
        message: message.clone(),
        hint: hint.clone(),
        handoff_id: Some(id),
        agent_id: Some(agent_id),
        step: Some("publishing".to_owned()),
    });
    row::warn(tx, id, &format!("publishing: {message} ({code})"));
    let said = (code.clone(), message.clone());
    if let Some(publishing) = publishing_mut(tx, id) {
        publishing.state = state;
        publishing.error = Some(PublishError { error_id, code, message, hint });
    }
    journal_state(tx, id, Some((&said.0, &said.1)), Some(error_id));
}

fn remedy(code: &str) -> &'static str {
    match code {
        "gh_missing" => "install gh (https://cli.github.com), or name it in config.toml: [publish] gh",
        "gh_auth" => "log in with: gh auth login",
        "gh_forbidden" => "give the account that gh uses the right to comment there or to create gists",
        "gh_rate_limited" => "wait until GitHub accepts requests from that account again",
        "gh_no_issue" => "check that the issue exists and that the account may see it",
        "gh_offline" => "check the network and gh's own settings",
        "gh_server" | "gh_timeout" => "check https://www.githubstatus.com",
        "gh_too_many" => "look through the gists of that account yourself",
        "document_changed" => "put the recorded document back in its place",
        "copy_failed" => "check that tasuki can write to the document's folder",
        _ => "try the same with gh yourself, and run tasuki doctor delivery",
    }
}

pub(crate) fn deadline(tx: &mut Tx<'_>, id: HandoffId) {
    let now = tx.now;
    let due = tx.handoff(&id).and_then(|handoff| handoff.publish.as_ref()?.due);
    if due.is_some_and(|due| due.is_due(&now)) {
        attempt(tx, id, false);
    }
}
