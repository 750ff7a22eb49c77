//! The request `publish`: publishes a recorded document now. With it the operator may also say whether an earlier
//! upload arrived, and how a document with credentials is to be published.

use super::publish::{self, attempt, end_published, keep_copy, publishing_mut, reset_failures};
use super::{publish_targets, row};
use crate::contract::reply::HandoffReply;
use crate::core::event::RequestFacts;
use crate::core::id::{HandoffId, RequestId};
use crate::core::reply::{Refused, Reply};
use crate::core::request::{AssumePublished, PublishAs, PublishNow};
use crate::core::rows::publishing::{PublishState, Publishing};
use crate::core::tx::Tx;

/// What the operator can do with a document that was not searched for all credentials.
const AS_IS: &str = "read the document; if all of it may be published, ask again with --as-is (in a request: the field as, \
                     as_is)";

/// `publish`: publishes the document at a target that is named now, or at the default if the handoff never asked for
/// publishing, or tries again if publishing has failed, is held, or waits for its next attempt.
pub(crate) fn asked(tx: &mut Tx<'_>, request: &RequestId, asked: &PublishNow, facts: &RequestFacts) {
    let found = row::find(tx, &asked.handoff_id).map(|handoff| handoff.handoff_id);
    let id = match found.and_then(|id| publish_now(tx, id, asked, facts).map(|()| id)) {
        Ok(id) => id,
        Err(refused) => return tx.refuse(request, refused),
    };
    let publishing = tx.handoff(&id).and_then(|handoff| handoff.publish.as_ref());
    let is_there = publishing.is_some_and(|publishing| publishing.state == PublishState::Published);
    let url = publishing.and_then(|publishing| publishing.url.clone());
    let reply = if is_there {
        HandoffReply { url: Some(url), ..HandoffReply::new(&id, PublishState::Published.as_str()) }
    } else {
        HandoffReply::new(&id, "publishing")
    };
    tx.answer(request, Reply::ok(&reply));
}

fn publish_now(tx: &mut Tx<'_>, id: HandoffId, asked: &PublishNow, facts: &RequestFacts) -> Result<(), Refused> {
    let named = asked.to.as_ref().map(|to| publish_targets::named(tx, "to", to)).transpose()?;
    let Some(handoff) = tx.handoff(&id) else { return Ok(()) };
    let state = handoff.publish.as_ref().map(|publishing| publishing.state);
    if asked.publish_as.is_some() && state != Some(PublishState::Held) {
        let message = "Publishing is not held, so there is no choice between redacted and as_is";
        return Err(Refused::new(409, "not_held", message)
            .hint("ask again without --redacted and --as-is (in a request: without the field as)"));
    }
    let is_known = asked.assume == Some(AssumePublished::Published) && state == Some(PublishState::Published);
    if asked.assume.is_some() && state != Some(PublishState::InDoubt) && !is_known {
        let state = state.map_or("not asked for", PublishState::as_str);
        let message = format!("It is not in doubt whether the document was published: publishing is {state}");
        return Err(Refused::new(409, "not_in_doubt", message).hint(
            "nothing was published; look at the target, and if the document is not there, ask again without --assume \
             (in a request: without the field assume)",
        ));
    }
    let Some(publishing) = &handoff.publish else {
        let persona = facts.persona.as_ref().filter(|(slug, _)| *slug == handoff.persona_slug);
        let there = named.or_else(|| publish_targets::default_of(tx, &persona?.1)).ok_or_else(no_target)?;
        if handoff.record.is_none() {
            return Err(no_record("ask again when it is recorded"));
        }
        publish::begin_at(tx, id, there, None);
        return Ok(());
    };
    match named {
        Some(there) if !is_same_place(publishing, &there) => publish_elsewhere(tx, id, there, asked.publish_as),
        named => try_again(tx, id, asked, named.is_some_and(|there| there.fallback)),
    }
}

/// Whether the document is, or is to go, where the request says.
fn is_same_place(publishing: &Publishing, there: &Publishing) -> bool {
    let is_there = publishing.state == PublishState::Published && publishing.destination() == there.target;
    publishing.target == there.target || is_there
}

/// Publishes the document at another place than before, unless publishing is under way or in doubt.
fn publish_elsewhere(
    tx: &mut Tx<'_>,
    id: HandoffId,
    there: Publishing,
    publish_as: Option<PublishAs>,
) -> Result<(), Refused> {
    let state = publishing_mut(tx, id).map(|publishing| publishing.state);
    match state {
        Some(PublishState::Waiting) => return Err(no_record("ask again when it is recorded")),
        Some(PublishState::Running | PublishState::Retrying) => {
            let hint = "wait until that has ended, then ask again";
            return Err(in_progress("The document is being published at another place").hint(hint));
        }
        Some(PublishState::InDoubt) => {
            let hint = "look at that place, say with assume what you see, and only then name another place";
            return Err(in_doubt("It is not known whether the document was published at another place").hint(hint));
        }
        Some(PublishState::Held) => held_check(tx, id, publish_as)?,
        Some(PublishState::Published | PublishState::Failed) | None => {}
    }
    publish::begin_at(tx, id, there, publish_as);
    Ok(())
}

/// Publishes the document where it was to go before. `fallback`: publish a gist if the issue refuses the document.
fn try_again(tx: &mut Tx<'_>, id: HandoffId, asked: &PublishNow, fallback: bool) -> Result<(), Refused> {
    let Some(publishing) = publishing_mut(tx, id) else { return Ok(()) };
    let before = publishing.fallback;
    publishing.fallback |= fallback;
    let result = try_same_target(tx, id, asked);
    // A refused request changes nothing.
    if result.is_err()
        && let Some(publishing) = publishing_mut(tx, id)
    {
        publishing.fallback = before;
    }
    result
}

fn try_same_target(tx: &mut Tx<'_>, id: HandoffId, asked: &PublishNow) -> Result<(), Refused> {
    let Some(publishing) = publishing_mut(tx, id) else { return Ok(()) };
    match (publishing.state, asked.assume) {
        (PublishState::Published, _) => {}
        (PublishState::Waiting, _) => {
            return Err(no_record("tasuki publishes the document by itself as soon as it is recorded"));
        }
        (PublishState::Running, _) => return Err(in_progress("The document is being published now")),
        (PublishState::Retrying, _) => attempt(tx, id, false),
        (PublishState::Failed, _) => {
            reset_failures(tx, id);
            attempt(tx, id, false);
        }
        (PublishState::Held, _) => return publish_held(tx, id, asked.publish_as),
        (PublishState::InDoubt, None) => {
            let hint = publish::hint_in_doubt(id);
            let hint = format!("{hint} (in a request: the field assume, published or not_published)");
            return Err(in_doubt("It is not known whether the document was published").hint(hint));
        }
        (PublishState::InDoubt, Some(AssumePublished::Published)) => end_published(tx, id, None),
        (PublishState::InDoubt, Some(AssumePublished::NotPublished)) => {
            let as_gist = publishing.as_gist;
            reset_failures(tx, id);
            if let Some(publishing) = publishing_mut(tx, id) {
                publishing.as_gist = as_gist;
            }
            attempt(tx, id, true);
        }
    }
    Ok(())
}

fn no_target() -> Refused {
    let hint = "name an issue or a gist: --to owner/repo#42, or --to gist (in a request: the field to)";
    Refused::new(409, "not_asked", "The request for this handoff did not ask for publishing, and there is no default")
        .hint(hint)
}

fn no_record(hint: &str) -> Refused {
    Refused::new(409, "no_record", "There is no recorded document yet").hint(hint)
}

fn in_progress(message: &str) -> Refused {
    Refused::new(409, "publish_in_progress", message)
}

fn in_doubt(message: &str) -> Refused {
    Refused::new(409, "in_doubt", message)
}

/// The operator has decided how a held document is to be published.
fn publish_held(tx: &mut Tx<'_>, id: HandoffId, publish_as: Option<PublishAs>) -> Result<(), Refused> {
    held_check(tx, id, publish_as)?;
    reset_failures(tx, id);
    if let Some(publishing) = publishing_mut(tx, id) {
        publishing.publish_as = publish_as;
    }
    keep_copy(tx, id, None);
    Ok(())
}

/// Checks that a held document may be published in this way.
fn held_check(tx: &mut Tx<'_>, id: HandoffId, publish_as: Option<PublishAs>) -> Result<(), Refused> {
    let is_unsearched = publishing_mut(tx, id).is_some_and(|publishing| publishing.is_unsearched);
    match publish_as {
        None if is_unsearched => {
            let message = "The document was not searched for all credentials";
            Err(Refused::new(409, "secrets_found", message).hint(AS_IS))
        }
        None => {
            let message = "The document seems to hold credentials";
            let hint = "look at its lines, which publish.error names, then ask again with --redacted or --as-is (in a \
                        request: the field as, redacted or as_is)";
            Err(Refused::new(409, "secrets_found", message).hint(hint))
        }
        Some(PublishAs::Redacted) if is_unsearched => {
            let message = "tasuki can't take out the values of the agent's environment, because it does not know them";
            Err(Refused::new(409, "secrets_found", message).hint(AS_IS))
        }
        Some(PublishAs::Redacted | PublishAs::AsIs) => Ok(()),
    }
}
