//! Publishes a document with the user's own `gh`: as a comment on an issue, or as a secret gist. Each upload carries a
//! mark, and tasuki searches for that mark before it tries again, so a lost answer never leads to a second upload.
//!
//! `gh` makes one call, `failure` explains a failed call, and this file uploads and searches.

mod failure;
mod gh;

pub use failure::{GhCall, GhError, explain_failure};
pub use gh::{Gh, GhOutput};

use crate::core::request::{Issue, PublishTarget};
use failure::http_status;
use std::path::Path;
use std::time::Duration;

/// The largest number of characters that a comment on GitHub may have, our mark included.
pub const MAX_COMMENT_CHARS: usize = 65_536;
/// The largest number of gists of the same file name that are read.
const MOST_GISTS: usize = 5;
/// Gists on a page of the list: GitHub's maximum.
const PAGE: usize = 100;
/// The largest number of pages of the list that are searched. They hold as many gists as GitHub lets an account make in
/// ten hours.
const MOST_PAGES: usize = 50;
/// Pages of the newest gists that are searched whatever the time of the first attempt: an upload that was just made is
/// among them.
const NEWEST_PAGES: usize = 1;
/// How long GitHub may take to say whether a repository is public.
const VISIBILITY_WITHIN: Duration = Duration::from_secs(5);
/// Longest address that is accepted, in bytes.
const MAX_URL: usize = 2_000;

/// One document to upload.
#[derive(Debug, Clone, Copy)]
pub struct Upload<'a> {
    pub target: &'a PublishTarget,
    /// The file with the whole text, its mark first. Its name is the gist's file name.
    pub file: &'a Path,
    pub mark: &'a str,
    pub description: &'a str,
    /// When the first attempt began, as UTC in ISO 8601; none if that is not known. A search looks only at gists that
    /// changed since then.
    pub since: Option<&'a str>,
}

/// The result of a search for an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UploadState {
    /// It exists, with its address if that is known.
    There(Option<String>),
    NotThere,
    /// It was not found, but it may exist: the search worked, but could not look at everything.
    Inconclusive(GhError),
}

/// Uploads the document. Returns the address that `gh` printed; none if that is not an address of the target.
///
/// # Errors
/// [`GhError`].
pub async fn upload(gh: &Gh, upload: &Upload<'_>) -> Result<Option<String>, GhError> {
    let file = upload.file.to_string_lossy().into_owned();
    let (asked, arguments) = match upload.target {
        PublishTarget::Issue(issue) => (GhCall::Issue, comment_arguments(issue, &file)),
        PublishTarget::Gist { .. } => (GhCall::Other, vec_of(&["gist", "create", &file, "--desc", upload.description])),
    };
    let said = gh.call(&arguments).await?;
    if said.code != Some(0) {
        return Err(explain_failure(asked, said.code, &said.stderr));
    }
    Ok(said.stdout.lines().rev().find_map(|line| address(upload.target, line)))
}

fn comment_arguments(issue: &Issue, file: &str) -> Vec<String> {
    vec_of(&["issue", "comment", &issue.number.to_string(), "-R", &issue.repository(), "--body-file", file])
}

fn vec_of(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Whether everybody can read the issue's repository. False also if GitHub does not say.
pub async fn is_public(gh: &Gh, issue: &Issue) -> bool {
    let path = format!("repos/{}/{}", issue.owner, issue.repo);
    let arguments = ["api", &path, "--jq", ".private"];
    let answer = tokio::time::timeout(VISIBILITY_WITHIN, ask(gh, GhCall::Other, &arguments)).await;
    matches!(answer, Ok(Ok(said)) if said.trim() == "false")
}

/// Searches for an upload with that mark.
///
/// # Errors
/// [`GhError`]: the search itself failed.
pub async fn search(gh: &Gh, upload: &Upload<'_>) -> Result<UploadState, GhError> {
    match upload.target {
        PublishTarget::Issue(issue) => search_issue(gh, upload, issue).await,
        PublishTarget::Gist { .. } => search_gists(gh, upload).await,
    }
}

async fn search_issue(gh: &Gh, upload: &Upload<'_>, issue: &Issue) -> Result<UploadState, GhError> {
    let filter = format!(".comments[] | select(.body | contains({})) | .url", quoted(upload.mark));
    let (number, repository) = (issue.number.to_string(), issue.repository());
    let arguments = ["issue", "view", &number, "-R", &repository, "--json", "comments", "--jq", &filter];
    let said = ask(gh, GhCall::Issue, &arguments).await?;
    let mut lines = said.lines().filter(|line| !line.trim().is_empty());
    Ok(lines.next().map_or(UploadState::NotThere, |line| UploadState::There(address(upload.target, line))))
}

/// Searches the gists that changed since the first attempt. If this computer's clock was wrong at that time, `since`
/// may be a time that has not come yet on GitHub, so the search also looks at the newest gists of all times.
async fn search_gists(gh: &Gh, upload: &Upload<'_>) -> Result<UploadState, GhError> {
    match search_pages(gh, upload, upload.since, MOST_PAGES).await? {
        None => Ok(inconclusive(not_in_newest(upload.since))),
        Some(UploadState::NotThere) if upload.since.is_some() => {
            Ok(search_pages(gh, upload, None, NEWEST_PAGES).await?.unwrap_or(UploadState::NotThere))
        }
        Some(found) => Ok(found),
    }
}

/// GitHub's list of gists leaves out the contents of their files, so tasuki opens each gist that has a file with our
/// name. The newest come first. An account that many agents share may make hundreds between two attempts, so the search
/// continues until a page is empty. None if it is in none of so many pages, and there are more.
async fn search_pages(
    gh: &Gh,
    upload: &Upload<'_>,
    since: Option<&str>,
    most: usize,
) -> Result<Option<UploadState>, GhError> {
    let name = upload.file.file_name().unwrap_or_default().to_string_lossy();
    let ours = format!(".[] | select(.files | has({})) | [.id, .html_url] | @tsv", quoted(&name));
    // The first line of the output is the number of gists on the page.
    let filter = format!("length, ({ours})");
    let since = since.map(|since| format!("&since={since}")).unwrap_or_default();
    let lost = || inconclusive(format!("GitHub has listed a gist with a file {name}, and can't find it"));
    let (mut looked_into, mut is_one_lost) = (0, false);
    for number in 1..=most {
        let path = format!("gists?per_page={PAGE}&page={number}{since}");
        let listed = ask(gh, GhCall::Other, &["api", &path, "--jq", &filter]).await?;
        let mut lines = listed.lines();
        match lines.next().and_then(|length| length.trim().parse::<usize>().ok()) {
            Some(0) if is_one_lost => return Ok(Some(lost())),
            Some(0) => return Ok(Some(UploadState::NotThere)),
            Some(_) => {}
            None => return Err(GhError::new("gh_failed", "gh listed gists in a form that tasuki does not know")),
        }
        for line in lines {
            looked_into += 1;
            if looked_into > MOST_GISTS {
                return Ok(Some(inconclusive(format!("there are more than {MOST_GISTS} gists with a file {name}"))));
            }
            let (id, url) = line.split_once('\t').unwrap_or((line, ""));
            match bears_mark(gh, upload, id, &name).await? {
                Some(true) => return Ok(Some(UploadState::There(address(upload.target, url)))),
                Some(false) => {}
                None => is_one_lost = true,
            }
        }
    }
    Ok(is_one_lost.then(lost))
}

/// The message that none of the newest gists holds the document. It says "since the first try" if that time is known.
fn not_in_newest(since: Option<&str>) -> String {
    let since = since.map_or("", |_| " since the first try");
    format!("the document is in none of the {} newest gists{since}", MOST_PAGES * PAGE)
}

fn inconclusive(message: String) -> UploadState {
    UploadState::Inconclusive(GhError::new("gh_too_many", message).maybe_stored())
}

/// Whether the file of that gist has the mark. None if GitHub has listed the gist and can't find it.
async fn bears_mark(gh: &Gh, upload: &Upload<'_>, id: &str, name: &str) -> Result<Option<bool>, GhError> {
    if id.is_empty() || id.len() > 64 || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(Some(false));
    }
    let filter = format!(".files[{}].content | contains({})", quoted(name), quoted(upload.mark));
    let said = gh.call(&["api", &format!("gists/{id}"), "--jq", &filter]).await?;
    match said.code {
        Some(0) => Ok(Some(said.stdout.trim() == "true")),
        // Somebody has deleted it since it was listed, or GitHub does not show it everywhere yet.
        Some(_) if http_status(&said.stderr) == Some(404) => Ok(None),
        code => Err(explain_failure(GhCall::Other, code, &said.stderr)),
    }
}

/// Calls `gh` to read something; nothing is changed.
async fn ask<S: AsRef<std::ffi::OsStr>>(gh: &Gh, asked: GhCall, arguments: &[S]) -> Result<String, GhError> {
    let said = gh.call(arguments).await?;
    if said.code == Some(0) { Ok(said.stdout) } else { Err(explain_failure(asked, said.code, &said.stderr)) }
}

/// The text as a `jq` string literal; its syntax is that of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The text, if it is an address of an upload to this target: with `https`, on the target's host if it names one, and
/// for a comment, of the target's issue.
fn address(target: &PublishTarget, text: &str) -> Option<String> {
    let text = text.trim();
    let (host, path) = text.strip_prefix("https://")?.split_once('/')?;
    let is_plain =
        text.len() <= MAX_URL && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'`<>\\".contains(&byte));
    let host = host.to_ascii_lowercase();
    let is_host = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    let fits = match target {
        PublishTarget::Issue(issue) => {
            let path = path.to_ascii_lowercase();
            let names = format!("{}/{}", issue.owner, issue.repo).to_ascii_lowercase();
            let is_of = |kind: &str| path.starts_with(&format!("{names}/{kind}/{}#", issue.number));
            issue.host.as_ref().is_none_or(|asked| *asked == host) && (is_of("issues") || is_of("pull"))
        }
        PublishTarget::Gist { host: asked } => {
            let is_there = |asked: &String| host == *asked || host == format!("gist.{asked}");
            asked.as_ref().is_none_or(is_there) && !path.is_empty()
        }
    };
    (is_plain && is_host && fits).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_names_the_first_try_only_if_its_time_is_known() {
        assert_eq!(not_in_newest(None), "the document is in none of the 5000 newest gists");
        let since = not_in_newest(Some("2026-01-01T00:00:00Z"));
        assert_eq!(since, "the document is in none of the 5000 newest gists since the first try");
    }

    /// `sh api gists/…` runs the file `api` in its folder.
    #[tokio::test]
    async fn a_gist_that_was_deleted_after_it_was_listed_does_not_end_the_search() {
        let dir = tempfile::tempdir().expect("a folder");
        let script = "case $1 in
            gists/gone) echo 'gh: Not Found (HTTP 404)' >&2; exit 1 ;;
            gists/ours) echo true ;;
            gists/*) echo 'gh: Bad Gateway (HTTP 502)' >&2; exit 1 ;;
            *page=2*) echo 0 ;;
            *) printf '2\\ngone\\thttps://gist.github.com/gone\\n%s\\thttps://gist.github.com/ours\\n' $(cat second) ;;
        esac";
        std::fs::write(dir.path().join("api"), script).expect("written");
        let limit = Duration::from_secs(20);
        let gh = Gh { program: "sh".to_owned(), limit, host: None, folder: dir.path().to_owned() };
        let target = PublishTarget::Gist { host: None };
        let file = Path::new("doc.md");
        let upload = Upload { target: &target, file, mark: "m", description: "d", since: None };
        std::fs::write(dir.path().join("second"), "ours").expect("written");
        let found = search(&gh, &upload).await.expect("it is there");
        assert_eq!(found, UploadState::There(Some("https://gist.github.com/ours".to_owned())));
        std::fs::write(dir.path().join("second"), "gone").expect("written");
        let lost = search(&gh, &upload).await.expect("no failure");
        assert!(matches!(lost, UploadState::Inconclusive(_)), "the lost one may be ours: {lost:?}");
        std::fs::write(dir.path().join("second"), "failing").expect("written");
        assert_eq!(search(&gh, &upload).await.expect_err("the server failed").code, "gh_server");
    }

    /// This computer's clock was days ahead at the first attempt, so GitHub has nothing that is newer.
    #[tokio::test]
    async fn an_upload_is_found_also_if_the_clock_was_wrong_at_the_first_attempt() {
        let dir = tempfile::tempdir().expect("a folder");
        let script = "case $1 in
            gists/*) echo true ;;
            *since=*) echo 0 ;;
            *page=1) cat newest ;;
            *) echo 'gh: Bad Gateway (HTTP 502)' >&2; exit 1 ;;
        esac";
        std::fs::write(dir.path().join("api"), script).expect("written");
        let limit = Duration::from_secs(20);
        let gh = Gh { program: "sh".to_owned(), limit, host: None, folder: dir.path().to_owned() };
        let target = PublishTarget::Gist { host: None };
        let since = Some("2999-01-01T00:00:00Z");
        let upload = Upload { target: &target, file: Path::new("doc.md"), mark: "m", description: "d", since };
        let newest = |text: &str| std::fs::write(dir.path().join("newest"), text).expect("written");
        newest("100\nours\thttps://gist.github.com/ours\n");
        let found = search(&gh, &upload).await.expect("it is there");
        assert_eq!(found, UploadState::There(Some("https://gist.github.com/ours".to_owned())));
        for nothing in ["100\n", "0\n"] {
            newest(nothing);
            assert_eq!(search(&gh, &upload).await, Ok(UploadState::NotThere), "older ones are not searched");
        }
    }

    #[test]
    fn an_address_is_taken_only_if_it_belongs_to_the_target() {
        let target = |text: &str| PublishTarget::Issue(Issue::read(text).expect("an issue"));
        let good = "https://github.com/O/r/issues/42#issuecomment-1";
        assert_eq!(address(&target("o/r#42"), good), Some(good.to_owned()));
        assert_eq!(address(&target("https://github.com/o/r/issues/42"), good), Some(good.to_owned()));
        assert!(address(&target("o/r#42"), "https://github.com/o/r/pull/42#issuecomment-1\n").is_some());
        for bad in [
            "http://github.com/o/r/issues/42#issuecomment-1",
            "https://github.com/o/r/issues/421#issuecomment-1",
            "https://github.com/o/other/issues/42#issuecomment-1",
            "https://evil@github.com/o/r/issues/42#issuecomment-1",
            "https://github.com/o/r/issues/42#a b",
            "https://github.com/o/r/issues/42#\u{1b}[31m",
            "Creating",
            "",
        ] {
            assert_eq!(address(&target("o/r#42"), bad), None, "{bad}");
        }
        let other = target("https://ghe.example/o/r/issues/42");
        assert_eq!(address(&other, good), None);
        let gist = |host: Option<&str>| PublishTarget::Gist { host: host.map(str::to_owned) };
        assert!(address(&gist(None), "https://gist.github.com/abc").is_some());
        assert!(address(&gist(Some("github.com")), "https://gist.github.com/abc").is_some());
        assert!(address(&gist(Some("ghe.example")), "https://ghe.example/gist/abc").is_some());
        assert_eq!(address(&gist(Some("ghe.example")), "https://gist.github.com/abc"), None);
    }
}
