//! Keeps a copy of a recorded document, and publishes that copy at most once, no matter which process is killed in
//! between. If a search for an earlier upload gives no answer, tasuki uploads only if the operator insists. A document
//! that holds credentials is not copied before the operator has said how to publish it.

use super::document::recorded;
use super::environment::{environment_of, known_values};
use super::{Tools, fault};
use crate::config::Home;
use crate::core::effect::{CopyPlan, EnvironmentSearch, Outcome, Posted, PublishFault, PublishPlan, SecretFound};
use crate::core::request::{PublishAs, PublishTarget};
use crate::core::text;
use crate::core::time::date;
use crate::process::READS_ENVIRONMENTS;
use crate::publish::{self, Gh, GhError, MAX_COMMENT_CHARS, Upload, UploadState};
use crate::secrets::{self, Credential, Known};
use crate::spool::documents::{self, DocumentFolder};
use chrono::SecondsFormat;
use regex::Regex;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The most names that are tried for a copy. A name holds a time; each try takes the next second.
const MOST_NAMES: i64 = 600;
/// How many credentials of a document, in their order, are always described to the core. [`described`] says which of
/// the others are described too.
const MOST_FOUND: usize = 1_000;
/// How long a server may still be storing an upload whose answer we no longer wait for: GitHub gives up a request after
/// 10 s. tasuki pauses at most this long before it searches for the upload of an earlier attempt; after a restart it
/// pauses for the limit of one call.
const SERVER_TAKES: Duration = Duration::from_secs(10);

/// Keeps the copy. A file that already has the copy's name and content counts as the copy: an earlier process may have
/// written it. If the document holds credentials, and nobody has said how to publish it, the outcome describes them
/// instead.
pub(super) fn keep_copy(home: &Home, plan: &CopyPlan) -> Outcome {
    copy(home, plan).unwrap_or_else(|why| Outcome::Failed { why })
}

fn copy(home: &Home, plan: &CopyPlan) -> Result<Outcome, String> {
    let folder = documents::prepare_folder(home.root(), &plan.persona).map_err(|error| error.to_string())?;
    let text = match &plan.text {
        Some(text) => text.clone().into_bytes(),
        None => match recorded(&folder, &plan.document, &plan.sha256) {
            Some(text) => text,
            // `Posted::Failed`, although nothing was uploaded: it is the only outcome that carries a code, and the hint
            // depends on the code.
            None => return Ok(Outcome::Posted(Posted::Failed(not_recorded(&folder, &plan.document)))),
        },
    };
    if plan.publish_as != Some(PublishAs::AsIs) && is_environment_lost(plan) {
        return Ok(Outcome::EnvironmentLost(described(with_known(&text, plan, secrets::find)?)));
    }
    let (text, redacted_sha256) = match plan.publish_as {
        Some(PublishAs::AsIs) => (text, None),
        Some(PublishAs::Redacted) => {
            let text = with_known(&text, plan, secrets::redact)?;
            let text = text.ok_or("not every credential can be taken out of the document")?.into_bytes();
            let sha256 = text::sha256(&text);
            (text, Some(sha256))
        }
        None => {
            let found = with_known(&text, plan, secrets::find)?;
            if !found.is_empty() {
                return Ok(Outcome::SecretsFound(described(found)));
            }
            (text, None)
        }
    };
    let sha256 = redacted_sha256.as_ref().unwrap_or(&plan.sha256);
    for second in 0..MOST_NAMES {
        let at = date(plan.wall_ms.saturating_add(second * 1_000));
        let name = format!("{}-{}.md", plan.stem, at.format("%Y%m%dT%H%M%SZ"));
        let is_new = folder.write_new(OsStr::new(&name), &text).map_err(|error| error.to_string())?;
        if is_new || recorded(&folder, &name, sha256).is_some() {
            return Ok(Outcome::Copied { file_name: name, redacted_sha256 });
        }
    }
    Err(format!("there is no free file name for a copy of {}", plan.document))
}

/// Whether tasuki can no longer find out if the document holds a value of the agent's environment. `false` on a system
/// where tasuki can't read environments at all. What a complete search has found says where those values are.
fn is_environment_lost(plan: &CopyPlan) -> bool {
    let is_lost = || plan.process.as_ref().and_then(environment_of).is_none();
    let is_unknown = plan.found.is_empty() || plan.is_unsearched;
    READS_ENVIRONMENTS && plan.environment != EnvironmentSearch::Clean && is_unknown && is_lost()
}

/// Calls `work`, which finds or redacts credentials, with a document's text and what is known in addition to the
/// general rules. The credentials in the environments of all known agents count, and those that an earlier search found
/// in the document. Text that matches one of the operator's expressions does not count.
fn with_known<T>(text: &[u8], plan: &CopyPlan, work: impl FnOnce(&str, &Known<'_>) -> T) -> Result<T, String> {
    let text = String::from_utf8_lossy(text);
    let mut environment = known_values(plan.process.as_ref());
    for found in &plan.found {
        let (name, value) = (found.kind.strip_prefix(secrets::ENVIRONMENT), text.get(found.start..found.end));
        environment.extend(name.zip(value).map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    let allowed: Result<Vec<Regex>, _> = plan.allow.iter().map(|expression| Regex::new(expression)).collect();
    let allowed = allowed.map_err(|error| format!("publish.allow in config.toml: {error}"))?;
    Ok(work(&text, &Known { environment: &environment, allowed: &allowed }))
}

/// Describes the first [`MOST_FOUND`] credentials that were found. Of the rest, it describes only values of environment
/// variables, and of each variable only the first value of each length (a value that overlaps another credential counts
/// as one longer credential). If the agent has ended by the next search, [`with_known`] reads the variable's value at
/// that place, so that the search finds the value everywhere.
fn described(found: Vec<Credential>) -> Vec<SecretFound> {
    let mut variables = BTreeSet::new();
    let mut kept = Vec::new();
    for credential in found {
        let is_variable = credential.kind.starts_with(secrets::ENVIRONMENT);
        if (is_variable && variables.insert((credential.kind.clone(), credential.bytes.len())))
            || kept.len() < MOST_FOUND
        {
            let Credential { kind, line, last, bytes } = credential;
            kept.push(SecretFound { kind, line, last, start: bytes.start, end: bytes.end });
        }
    }
    kept
}

/// The fault if the document is missing, can't be read, or does not hold the recorded text.
fn not_recorded(folder: &DocumentFolder, name: &str) -> PublishFault {
    let path = folder.path().join(name);
    let message =
        format!("the recorded text can't be read from {} any more, and there is no copy of it", path.display());
    PublishFault { code: "document_changed".to_owned(), message, ..PublishFault::default() }
}

/// Publishes the copy. If an earlier attempt or process may have uploaded it, searches for that upload first.
pub(super) async fn publish(tools: &Tools, plan: &PublishPlan, resumed: bool, stop: &CancellationToken) -> Posted {
    let mark = format!("<!-- tasuki:{}:{} -->", plan.handoff_id, plan.number);
    // A plan that uploads nothing needs only the mark, which identifies an earlier upload. So it works also if the text
    // is too long for a comment or can't be read any more.
    let only_searches = !plan.post && !plan.insist;
    let folder = format!("{}-{}", plan.handoff_id, plan.number);
    let (home, of, its_mark, into) = (tools.home.clone(), plan.clone(), mark.clone(), folder.clone());
    let prepared = fault::blocking(move || {
        let text = match body(&home, &of, &its_mark) {
            Ok(text) => text,
            Err(_) if only_searches => its_mark,
            Err(fault) => return Err(fault),
        };
        let written = documents::write_upload(home.root(), &into, &of.file_name, &text);
        written.map_err(|error| GhError::new("copy_failed", error.to_string()))
    });
    let file = match prepared.await {
        Ok(Ok(file)) => file,
        Ok(Err(fault)) => return failed(plan, resumed, fault),
        Err(error) => return failed(plan, resumed, GhError::new("copy_failed", error.to_string())),
    };
    let gh = Gh {
        program: tools.gh.clone(),
        limit: Duration::from_millis(plan.limit_ms),
        host: host(&plan.target),
        folder: file.parent().map_or_else(|| tools.home.root().to_path_buf(), std::path::Path::to_path_buf),
    };
    let since = plan.since_ms.map(|since| date(since).to_rfc3339_opts(SecondsFormat::Secs, true));
    let (description, since) = (&*plan.description, since.as_deref());
    let upload = Upload { target: &plan.target, file: &file, mark: &mark, description, since };
    let posted = tokio::select! {
        posted = search_and_upload(&gh, &upload, plan, resumed) => posted,
        () = stop.cancelled() => Posted::Failed(PublishFault {
            code: "gh_failed".to_owned(),
            message: "tasuki stopped waiting for gh".to_owned(),
            maybe_stored: true,
            ..PublishFault::default()
        }),
    };
    let (home, file_name) = (tools.home.clone(), plan.file_name.clone());
    // If that fails, the next upload overwrites the file.
    let _ = fault::blocking(move || documents::remove_upload(home.root(), &folder, &file_name)).await;
    posted
}

fn host(target: &PublishTarget) -> Option<String> {
    match target {
        PublishTarget::Issue(issue) => issue.host.clone(),
        PublishTarget::Gist { host } => host.clone(),
    }
}

/// The text to upload: the mark, which GitHub does not display, then the copy's text. If the copy is gone, the document
/// may still hold the same text, which is used then.
fn body(home: &Home, plan: &PublishPlan, mark: &str) -> Result<String, GhError> {
    let folder = documents::open_folder(home.root(), &plan.persona);
    let folder = folder.map_err(|error| GhError::new("document_changed", error.to_string()))?;
    let names = [&plan.file_name, &plan.document];
    let bytes = names.into_iter().find_map(|name| recorded(&folder, name, &plan.sha256));
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| {
        let what = "neither the document nor its copy holds the recorded text";
        GhError::new("document_changed", format!("{what}: {}", folder.path().join(&plan.file_name).display()))
    })?;
    let text = format!("{mark}\n{text}");
    let chars = text.chars().count();
    if matches!(plan.target, PublishTarget::Issue(_)) && chars > MAX_COMMENT_CHARS {
        let message =
            format!("a comment may have at most {MAX_COMMENT_CHARS} characters, and this one would have {chars}");
        return Err(GhError { refused: true, ..GhError::new("gh_too_large", message) });
    }
    Ok(text)
}

/// Searches for an earlier upload if there may be one, and uploads if there is none and the plan asks for that.
async fn search_and_upload(gh: &Gh, upload: &Upload<'_>, plan: &PublishPlan, resumed: bool) -> Posted {
    if resumed {
        // After this pause the server has stored whatever an earlier process had sent.
        tokio::time::sleep(gh.limit).await;
    } else if plan.may_be_in_flight {
        tokio::time::sleep(gh.limit.min(SERVER_TAKES)).await;
    }
    if resumed || plan.look_first || !plan.post {
        match publish::search(gh, upload).await {
            Ok(UploadState::There(url)) => {
                return Posted::Done { url, is_public: goes_to_a_public_repository(gh, upload).await };
            }
            Ok(UploadState::NotThere) if !plan.post => return Posted::NotThere,
            Ok(UploadState::NotThere) => {}
            Ok(UploadState::Inconclusive(fault)) | Err(fault) if plan.insist => {
                tracing::info!(
                    code = fault.code,
                    "could not find out whether the document is published already; publishing it again"
                );
            }
            // Only a person can tell now, so the upload is in doubt, whatever the earlier attempts said.
            Ok(UploadState::Inconclusive(fault)) => return Posted::Failed(publish_fault(&fault, true)),
            Err(fault) => return failed(plan, resumed, fault),
        }
    }
    let is_public = goes_to_a_public_repository(gh, upload).await;
    match publish::upload(gh, upload).await {
        Ok(url) => Posted::Done { url, is_public },
        Err(fault) => Posted::Failed(publish_fault(&fault, false)),
    }
}

async fn goes_to_a_public_repository(gh: &Gh, upload: &Upload<'_>) -> bool {
    match upload.target {
        PublishTarget::Issue(issue) => publish::is_public(gh, issue).await,
        PublishTarget::Gist { .. } => false,
    }
}

/// A failure before anything new was uploaded. Whether an earlier attempt was stored stays unknown if it was unknown
/// before.
fn failed(plan: &PublishPlan, resumed: bool, fault: GhError) -> Posted {
    let earlier_maybe_stored = plan.may_be_in_flight || resumed || !plan.post;
    Posted::Failed(publish_fault(&GhError { maybe_stored: false, ..fault }, earlier_maybe_stored))
}

fn publish_fault(fault: &GhError, earlier_maybe_stored: bool) -> PublishFault {
    PublishFault {
        code: fault.code.to_owned(),
        // gh's message may quote the address or the header that it used, which may hold the user's token.
        message: secrets::redact(&fault.message, &Known::default())
            .unwrap_or_else(|| "gh failed; its message holds a credential".to_owned()),
        maybe_stored: fault.maybe_stored || earlier_maybe_stored,
        is_retryable: fault.again,
        refused: fault.refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_of_a_variables_value_is_described_after_however_many_other_credentials() {
        let found_at = |kind: &str, bytes| Credential { kind: kind.to_owned(), line: 1, last: String::new(), bytes };
        let mut found: Vec<Credential> = (0..MOST_FOUND + 5).map(|at| found_at("github-pat", at..at + 1)).collect();
        // The first overlaps another credential, and is longer than the value; the second is the value.
        found.extend([2_000..2_009, 2_020..2_024, 2_030..2_034].map(|bytes| found_at("environment:A_KEY", bytes)));
        let kept: Vec<(usize, usize)> =
            described(found).iter().skip(MOST_FOUND).map(|kept| (kept.start, kept.end)).collect();
        assert_eq!(kept, [(2_000, 2_009), (2_020, 2_024)]);
    }
}
