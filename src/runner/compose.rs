//! Writes a document that the agent does not write itself: from its answer, from its transcript, or from the text that
//! was provided.

use super::document::{self, recorded};
use super::{Tools, fault};
use crate::agents::profile::Profile;
use crate::agents::transcript::{self, Role, Transcript};
use crate::agents::{self, ToolCall, ToolKind};
use crate::config::Home;
use crate::core::effect::{Composed, DocumentRead, DocumentSource};
use crate::core::id::{DeliveryId, Slug};
use crate::core::text::{is_blank, normalise, sanitise, signature};
use crate::files::Grade;
use crate::spool;
use crate::spool::documents::{DocumentFolder, DocumentLook, MAX_DOCUMENT_BYTES, prepare_folder, remake_folder};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

/// How long the answer may take to appear in the transcript: it lags behind the end of the turn by up to 60 ms, on a
/// loaded machine by more.
const ANSWER_WITHIN: Duration = Duration::from_millis(1_500);
/// Pause between two looks at the transcript.
const EVERY: Duration = Duration::from_millis(50);
/// How many bytes of the end of a conversation are salvaged. A successor would not read more of a document.
const SALVAGE_BYTES: usize = 40 * 1024;
/// How many bytes of the last request, and of the last answer, are salvaged.
const LAST_BYTES: usize = 6 * 1024;
/// How many tool calls are listed.
const MOST_CALLS: usize = 40;
/// Longest path or command line in that list, in characters.
const MAX_TARGET: usize = 160;

/// Writes the document. If a file of this name exists, an earlier run of this effect or a person has written it, and it
/// stays, with two exceptions. A file whose hash is `replaces` is replaced, and an empty file is replaced if the source
/// is the text from before a repair ([`DocumentSource::Before`]).
pub(super) async fn compose(
    tools: &Tools,
    (persona, file_name): (&Slug, &str),
    source: &DocumentSource,
    replaces: Option<&str>,
) -> Composed {
    let is_repaired = matches!(source, DocumentSource::Before(_));
    let (home, persona, name) = (tools.home.clone(), persona.clone(), file_name.to_owned());
    let replaces = replaces.map(str::to_owned);
    let look = move || place(&home, &persona, name, replaces.as_deref(), is_repaired);
    let place = match fault::blocking(look).await {
        Ok(Ok(Some(place))) => place,
        Ok(Ok(None)) => return Composed::Written,
        Ok(Err(why)) => return Composed::Failed { why },
        Err(error) => return Composed::Failed { why: error.to_string() },
    };
    let text = match text_of(tools, source).await {
        Ok(text) => text,
        Err(why) => return Composed::Failed { why },
    };
    if is_blank(&text) {
        return Composed::Nothing;
    }
    if text.len() as u64 > MAX_DOCUMENT_BYTES {
        return Composed::Failed { why: format!("the text is longer than {MAX_DOCUMENT_BYTES} bytes") };
    }
    match fault::blocking(move || place.write(&text)).await {
        Ok(Ok(())) => Composed::Written,
        Ok(Err(error)) => Composed::Failed { why: error.to_string() },
        Err(error) => Composed::Failed { why: error.to_string() },
    }
}

/// Where the document is to be written.
struct Place {
    folder: DocumentFolder,
    name: String,
    /// There is a file of this name, which is to be replaced.
    replaces: bool,
}

impl Place {
    fn write(&self, text: &str) -> Result<(), spool::Error> {
        match self.replaces {
            true => self.folder.replace(&self.name, text, Grade::Durable),
            false => self.folder.write_new(OsStr::new(&self.name), text.as_bytes()).map(|_| ()),
        }
    }
}

/// Looks where the document is to be written; `None` if a file of this name exists that is to stay.
fn place(
    home: &Home,
    persona: &Slug,
    name: String,
    replaces: Option<&str>,
    is_repaired: bool,
) -> Result<Option<Place>, String> {
    // Without its persona's folder, the handoff would end the agent, and then find no skill for its successor.
    let prepare = if is_repaired { prepare_folder } else { remake_folder };
    let folder = prepare(home.root(), persona).map_err(|error| error.to_string())?;
    let replaces = replaces.is_some_and(|sha256| recorded(&folder, &name, sha256).is_some())
        || (is_repaired && document::read_once(home, persona, &name) == DocumentRead::Empty);
    let is_free = replaces || folder.look(OsStr::new(&name)) == DocumentLook::Missing;
    Ok(is_free.then_some(Place { folder, name, replaces }))
}

/// The text to write; empty if the source holds none.
async fn text_of(tools: &Tools, source: &DocumentSource) -> Result<String, String> {
    match source {
        DocumentSource::Text(text) | DocumentSource::Before(text) => Ok(text.clone()),
        DocumentSource::Reply { profile, transcript, delivery_id, last_text } => {
            let profile = tools.profiles.get(profile).cloned();
            let file = profile.zip(transcript.as_ref().map(PathBuf::from));
            answer(file, delivery_id.as_ref(), last_text.as_deref()).await
        }
        DocumentSource::Transcript { profile, transcript, head } => {
            let profile = tools.profiles.get(profile).cloned().ok_or("the agent's profile no longer exists")?;
            salvage(profile, PathBuf::from(transcript), head).await
        }
    }
}

/// Makes a document from a transcript; empty if the transcript holds no conversation. The document begins with what the
/// successor needs first: the last request and the last answer. Then come the agent's actions and the end of the
/// conversation.
async fn salvage(profile: Profile, path: PathBuf, head: &str) -> Result<String, String> {
    let acted = (profile.clone(), path.clone());
    let talk = read(profile, path).await?;
    let tail = talk.salvage(SALVAGE_BYTES);
    if tail.trim().is_empty() {
        return Ok(String::new());
    }
    let facts = fault::blocking(move || agents::read_facts(&acted.0, &acted.1)).await;
    let calls = facts.ok().and_then(Result::ok).and_then(|facts| facts.calls).unwrap_or_default();
    let parts = [
        Some(head.trim_end().to_owned()),
        talk.last_of(Role::User, LAST_BYTES).map(|part| format!("## The last request\n\n{part}")),
        talk.last_of(Role::Assistant, LAST_BYTES).map(|part| format!("## The last answer\n\n{part}")),
        done(&calls).map(|list| format!("## What the agent did last\n\n{list}")),
        Some(format!("## The end of the conversation\n\n{}", tail.trim())),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().map(|part| part.trim_end().to_owned()).collect();
    Ok(format!("{}\n", parts.join("\n\n")))
}

/// A list of the last tool calls, oldest first, with exit codes and failures; `None` if there were no calls.
fn done(calls: &[ToolCall]) -> Option<String> {
    let from = calls.len().saturating_sub(MOST_CALLS);
    let line = |call: &ToolCall| {
        let what = match call.kind {
            ToolKind::Write => "wrote",
            ToolKind::Read => "read",
            ToolKind::Command => "ran",
        };
        let end = match (call.exit, call.failed) {
            (Some(exit), _) => format!(", exit {exit}"),
            (None, Some(true)) => ", which failed".to_owned(),
            (None, _) => String::new(),
        };
        let target: String = sanitise(&call.target).replace(['\n', '`'], " ").chars().take(MAX_TARGET).collect();
        format!("- {what} `{}`{end}", target.trim())
    };
    let lines: Vec<String> = calls[from..].iter().map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

async fn read(profile: Profile, path: PathBuf) -> Result<Transcript, String> {
    let read = fault::blocking(move || transcript::read(&profile, &path)).await;
    read.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// Reads the whole answer from the transcript soon after the end of the turn. The event that reported this end holds
/// the last text of the answer. If the transcript does not end with that text in time, tasuki takes the event's text:
/// the transcript may still end with an earlier answer. If the event held no text, two looks must find the same answer;
/// when the time is over, the last answer found is returned even if only one look has found it.
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
