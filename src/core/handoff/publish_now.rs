//! The request `publish`: the operator wants a recorded document published now, and says what they know of it.

use super::publish::{attempt, end_published, keep_copy, publish_again, publishing_mut};
use super::row;
use crate::contract::reply::HandoffReply;
use crate::core::id::{HandoffId, RequestId};
use crate::core::reply::{Refused, Reply};
use crate::core::request::{AssumePublished, PublishAs, PublishNow};
use crate::core::rows::publishing::PublishState;
use crate::core::tx::Tx;

/// What the operator can do with a document that was not searched for all credentials.
const AS_IS: &str = "read the document; if all of it may be published, ask again with --as-is (in a request: the field as, \
                     as_is)";

/// `publish`: publishes the document now if publishing has failed, is held, or waits for its next attempt.
pub(crate) fn asked(tx: &mut Tx<'_>, request: &RequestId, asked: &PublishNow) {
    let found = row::find(tx, &asked.handoff_id).map(|handoff| handoff.handoff_id);
    let id = match found.and_then(|id| publish_now(tx, id, asked).map(|()| id)) {
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

fn publish_now(tx: &mut Tx<'_>, id: HandoffId, asked: &PublishNow) -> Result<(), Refused> {
    let publishing = tx.handoff(&id).and_then(|handoff| handoff.publish.as_ref());
    let Some(publishing) = publishing else {
        let hint = "name the issue or gist when you begin the handoff: --publish (in a request: the field publish)";
        return Err(
            Refused::new(409, "not_asked", "The request for this handoff did not ask for publishing").hint(hint)
        );
    };
    if asked.publish_as.is_some() && publishing.state != PublishState::Held {
        let message = "Publishing is not held, so there is no choice between redacted and as_is";
        return Err(Refused::new(409, "not_held", message)
            .hint("ask again without --redacted and --as-is (in a request: without the field as)"));
    }
    match (publishing.state, asked.assume) {
        (PublishState::Published, _) => {}
        (PublishState::Waiting, _) => {
            let hint = "tasuki publishes the document by itself as soon as it is recorded";
            return Err(Refused::new(409, "no_record", "There is no recorded document yet").hint(hint));
        }
        (PublishState::Running, _) => {
            return Err(Refused::new(409, "publish_in_progress", "The document is being published now"));
        }
        (PublishState::Retrying, _) => attempt(tx, id, false),
        (PublishState::Failed, _) => {
            publish_again(tx, id);
            attempt(tx, id, false);
        }
        (PublishState::Held, _) => return publish_held(tx, id, asked.publish_as),
        (PublishState::InDoubt, None) => {
            let message = "It is not known whether the document was published";
            let hint = "look at the target, then ask again with assume published or not_published";
            return Err(Refused::new(409, "in_doubt", message).hint(hint));
        }
        (PublishState::InDoubt, Some(AssumePublished::Published)) => end_published(tx, id, None),
        (PublishState::InDoubt, Some(AssumePublished::NotPublished)) => {
            let as_gist = publishing.as_gist;
            publish_again(tx, id);
            if let Some(publishing) = publishing_mut(tx, id) {
                publishing.as_gist = as_gist;
            }
            attempt(tx, id, true);
        }
    }
    Ok(())
}

/// The operator has decided about a document that seems to hold credentials.
fn publish_held(tx: &mut Tx<'_>, id: HandoffId, publish_as: Option<PublishAs>) -> Result<(), Refused> {
    let is_unsearched = publishing_mut(tx, id).is_some_and(|publishing| publishing.is_unsearched);
    match publish_as {
        None if is_unsearched => {
            let message = "The document was not searched for all credentials";
            return Err(Refused::new(409, "secrets_found", message).hint(AS_IS));
        }
        None => {
            let message = "The document seems to hold credentials";
            let hint = "look at its lines, which publish.error names, then ask again with --redacted or --as-is (in a \
                        request: the field as, redacted or as_is)";
            return Err(Refused::new(409, "secrets_found", message).hint(hint));
        }
        Some(PublishAs::Redacted) if is_unsearched => {
            let message = "tasuki can't take out the values of the agent's environment, because it does not know them";
            return Err(Refused::new(409, "secrets_found", message).hint(AS_IS));
        }
        Some(PublishAs::Redacted | PublishAs::AsIs) => {}
    }
    publish_again(tx, id);
    if let Some(publishing) = publishing_mut(tx, id) {
        publishing.publish_as = publish_as;
    }
    keep_copy(tx, id, None);
    Ok(())
}
