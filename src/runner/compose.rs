//! Writes a document that the agent does not write itself: from its answer, from its transcript, or from the text that
//! was provided.

use super::Tools;
use crate::agents::profile::Profile;
use crate::agents::transcript::{self, Role, Transcript};
use crate::core::effect::{Composed, DocumentSource};
use crate::core::id::{DeliveryId, Slug};
use crate::core::text::{is_blank, normalise, sanitise, signature};
use crate::spool::documents::{DocumentLook, MAX_DOCUMENT_BYTES, prepare_folder};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// How long the answer may take to appear in the transcript: it lags behind the end of the turn by up to 60 ms, on a
/// loaded machine by more.
const ANSWER_WITHIN: Duration = Duration::from_millis(1_500);
/// Pause between two looks at the transcript.
const EVERY: Duration = Duration::from_millis(50);
/// How much of the end of a conversation is salvaged, in bytes.
const SALVAGE_BYTES: usize = 192 * 1024;

/// Writes the document, unless its name is taken: an earlier run of this effect, or a person, has written it.
pub(super) async fn compose(tools: &Tools, persona: &Slug, file_name: &str, source: &DocumentSource) -> Composed {
    let failed = |why: String| Composed::Failed { why };
    let folder = match prepare_folder(tools.home.root(), persona) {
        Ok(folder) => folder,
        Err(error) => return failed(error.to_string()),
    };
    let name = OsStr::new(file_name);
    if folder.look(name) != DocumentLook::Missing {
        return Composed::Written;
    }
    let text = match text_of(tools, source).await {
        Ok(text) => text,
        Err(why) => return failed(why),
    };
    if is_blank(&text) {
        return Composed::Nothing;
    }
    if text.len() as u64 > MAX_DOCUMENT_BYTES {
        return failed(format!("the text is longer than {MAX_DOCUMENT_BYTES} bytes"));
    }
    match folder.write_new(name, text.as_bytes()) {
        Ok(_) => Composed::Written,
        Err(error) => failed(error.to_string()),
    }
}

/// The document's text; empty if there is none.
async fn text_of(tools: &Tools, source: &DocumentSource) -> Result<String, String> {
    match source {
        DocumentSource::Text(text) => Ok(text.clone()),
        DocumentSource::Reply { profile, transcript, delivery_id, last_text } => {
            let profile = tools.profiles.get(profile).cloned();
            let file = profile.zip(transcript.as_ref().map(PathBuf::from));
            answer(file, delivery_id.as_ref(), last_text.as_deref()).await
        }
        DocumentSource::Transcript { profile, transcript, head } => {
            let profile = tools.profiles.get(profile).cloned().ok_or("the agent's profile no longer exists")?;
            let tail = read(profile, PathBuf::from(transcript)).await?.salvage(SALVAGE_BYTES);
            Ok(if tail.trim().is_empty() { String::new() } else { format!("{}\n\n{}\n", head.trim_end(), tail.trim()) })
        }
    }
}

async fn read(profile: Profile, path: PathBuf) -> Result<Transcript, String> {
    let read = super::fault::blocking(move || transcript::read(&profile, &path)).await;
    read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// Reads the whole answer from the transcript soon after the end of the turn. The event that reported this end holds
/// the last text of the answer. If the transcript does not end with that text in time, tasuki takes the event's text:
/// the transcript may still end with an earlier answer. If the event held no text, two looks must find the same answer.
async fn answer(
    file: Option<(Profile, PathBuf)>,
    delivery_id: Option<&DeliveryId>,
    last_text: Option<&str>,
) -> Result<String, String> {
    let last = last_text.map(|text| normalise(&sanitise(text))).filter(|text| !text.is_empty());
    let fallback = last_text.map(sanitise).filter(|text| !text.trim().is_empty());
    let Some((profile, path)) = file else {
        return Ok(fallback.unwrap_or_default());
    };
    let limit = Instant::now() + ANSWER_WITHIN;
    let mut before = None;
    loop {
        let transcript = read(profile.clone(), path.clone()).await;
        let found = transcript.as_ref().ok().and_then(|transcript| answer_in(transcript, delivery_id));
        let is_whole = match (&found, &last) {
            (Some(found), Some(last)) => normalise(found).ends_with(last.as_str()),
            (Some(_), None) => before == found,
            (None, _) => false,
        };
        if let Some(found) = found.clone().filter(|_| is_whole) {
            return Ok(found);
        }
        if Instant::now() >= limit {
            return match (fallback, transcript) {
                (Some(text), _) => Ok(text),
                (None, Ok(_)) => Ok(found.unwrap_or_default()),
                (None, Err(why)) => Err(why),
            };
        }
        before = found;
        tokio::time::sleep(EVERY).await;
    }
}

/// The last answer after our instruction, if the transcript shows the instruction; otherwise the last answer of all.
fn answer_in(transcript: &Transcript, delivery_id: Option<&DeliveryId>) -> Option<String> {
    let signature = delivery_id.map(signature);
    let is_ours = |text: &str| signature.as_ref().is_some_and(|signature| text.contains(signature.as_str()));
    let asked = transcript.said.iter().rposition(|said| said.role == Role::User && is_ours(&said.text));
    match asked {
        Some(at) => {
            let mut after = transcript.said[at + 1..].iter().rev();
            after.find(|said| said.role == Role::Assistant).map(|said| sanitise(&said.text))
        }
        None => transcript.last_reply().map(sanitise),
    }
}
