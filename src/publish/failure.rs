//! Finds out why a call of `gh` failed. Nearly every failure has exit code 1, so the message decides.

use regex::Regex;
use std::sync::OnceLock;

/// The most characters of `gh`'s own message that are passed on.
const MAX_SAID: usize = 300;

/// Why a document was not published, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GhError {
    /// The error code: `gh_missing`, `gh_auth`, `gh_forbidden`, `gh_rate_limited`, `gh_no_issue`, `gh_offline`,
    /// `gh_server`, `gh_too_large`, `gh_too_many`, `gh_timeout`, `gh_refused` or `gh_failed`.
    pub code: &'static str,
    pub message: String,
    /// The document may have been stored in spite of the failure.
    pub maybe_stored: bool,
    /// tasuki may try again by itself after a pause, because the network or the server failed, or `gh` took too long.
    pub again: bool,
    /// The server does not accept this document at this target.
    pub refused: bool,
}

impl GhError {
    /// A failure after which nothing was stored, and which tasuki does not retry by itself.
    #[must_use]
    pub fn new(code: &'static str, message: impl Into<String>) -> GhError {
        GhError { code, message: message.into(), maybe_stored: false, again: false, refused: false }
    }

    fn refused(self) -> GhError {
        GhError { refused: true, ..self }
    }

    fn again(self) -> GhError {
        GhError { again: true, ..self }
    }

    /// The same failure, after which the document may have been stored.
    #[must_use]
    pub fn maybe_stored(self) -> GhError {
        GhError { maybe_stored: true, ..self }
    }
}

/// What a call of `gh` is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GhCall {
    /// An issue and its comments.
    Issue,
    /// Anything else: a gist, the user, a repository's visibility.
    Other,
}

/// Interprets the failure of a `gh` that ended with `code` (none: a signal ended it) and printed `stderr`. `asked` says
/// what the call was about.
#[must_use]
pub fn explain_failure(asked: GhCall, code: Option<i32>, stderr: &str) -> GhError {
    let said = shown(stderr);
    let failure = |code: &'static str| GhError::new(code, said.clone());
    let has = |words: &[&str]| words.iter().any(|word| stderr.to_lowercase().contains(word));
    // gh's exit code for a missing login.
    if code == Some(4) {
        return failure("gh_auth");
    }
    if code.is_none() {
        return GhError::new("gh_failed", "gh was ended by a signal").maybe_stored();
    }
    if let Some(status) = http_status(stderr) {
        return by_status(asked, status, &said, &has);
    }
    if has(&["graphql: "]) {
        return by_graphql(&said, &has);
    }
    if has(&["gh auth login", "authentication token"]) {
        return failure("gh_auth");
    }
    // There was never a connection, so nothing can have been stored.
    if has(&["error connecting to", "dial tcp", "dial unix", "proxyconnect", "no such host", "network is unreachable"])
    {
        return failure("gh_offline").again();
    }
    if has(&["x509:", "certificate"]) {
        return failure("gh_offline");
    }
    if has(&["post \"", "get \"", "eof", "connection reset", "timeout", "deadline exceeded", "broken pipe"]) {
        return failure("gh_offline").again().maybe_stored();
    }
    if has(&["unknown flag", "unknown command", "unknown shorthand"]) {
        return failure("gh_failed");
    }
    failure("gh_failed").maybe_stored()
}

fn by_status(asked: GhCall, status: u16, said: &str, has: &dyn Fn(&[&str]) -> bool) -> GhError {
    let failure = |code: &'static str| GhError::new(code, said.to_owned());
    match status {
        401 => failure("gh_auth"),
        403 | 429 if status == 429 || has(&["rate limit", "abuse detection"]) => failure("gh_rate_limited"),
        403 => failure("gh_forbidden").refused(),
        404 | 410 if asked == GhCall::Issue => failure("gh_no_issue").refused(),
        // A token without the right to make gists gets this answer.
        404 => failure("gh_forbidden"),
        413 => failure("gh_too_large").refused(),
        422 if has(&["too long", "too large"]) => failure("gh_too_large").refused(),
        408 | 500.. => failure("gh_server").again().maybe_stored(),
        // 1xx to 3xx, such as a redirect, is not a refusal: the upload may be stored.
        ..=399 => failure("gh_failed").maybe_stored(),
        _ => failure("gh_refused").refused(),
    }
}

fn by_graphql(said: &str, has: &dyn Fn(&[&str]) -> bool) -> GhError {
    let failure = |code: &'static str| GhError::new(code, said.to_owned());
    if has(&["rate limit", "submitted too quickly"]) {
        return failure("gh_rate_limited");
    }
    if has(&["could not resolve to"]) {
        return failure("gh_no_issue").refused();
    }
    if has(&["too long", "too large"]) {
        return failure("gh_too_large").refused();
    }
    if has(&["not accessible", "permission", "scope", "locked", "forbidden", "saml"]) {
        return failure("gh_forbidden").refused();
    }
    if has(&["something went wrong", "timeout", "internal error"]) {
        return failure("gh_server").again().maybe_stored();
    }
    failure("gh_refused").refused()
}

/// The first HTTP status in `gh`'s message: `HTTP 404: …`, `… (HTTP 404)`, or (when `gh` lists comments)
/// `non-200 OK status code: 404 Not Found`.
pub(super) fn http_status(said: &str) -> Option<u16> {
    static PATTERN: OnceLock<Regex> = OnceLock::new();
    let pattern = PATTERN.get_or_init(|| {
        Regex::new(r"\b(?:HTTP|status code:) ([1-5][0-9]{2})\b").expect("a valid pattern: the tests below use it")
    });
    pattern.captures(said)?.get(1)?.as_str().parse().ok()
}

/// What `gh` said, on one line without control characters.
fn shown(stderr: &str) -> String {
    let line = stderr.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("- Creating gist"));
    let joined = line.collect::<Vec<_>>().join(" ");
    let joined = joined.strip_prefix("X ").unwrap_or(&joined);
    let said = crate::core::text::quotable(joined, MAX_SAID);
    if said.is_empty() { "gh failed and printed nothing".to_owned() } else { said }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of gh 2.23, observed or taken from its sources. For each the error code, and whether the upload may
    /// have been stored, may be tried again, was refused.
    const SAID: [(&str, &str, [bool; 3]); 26] = [
        ("HTTP 401: Bad credentials (u)\nTry authenticating with:  gh auth login\n", "gh_auth", [false; 3]),
        ("HTTP 403: Resource not accessible by integration (u)", "gh_forbidden", REFUSED),
        ("HTTP 403: API rate limit exceeded for user ID 1. (u)", "gh_rate_limited", [false; 3]),
        ("HTTP 429: slow down (u)", "gh_rate_limited", [false; 3]),
        ("GraphQL: was submitted too quickly (addComment)", "gh_rate_limited", [false; 3]),
        ("GraphQL: Could not resolve to an issue with the number of 42. (repository.issue)", "gh_no_issue", REFUSED),
        ("GraphQL: Could not resolve to a Repository with the name 'o/r'. (repository)", "gh_no_issue", REFUSED),
        ("HTTP 404: Not Found (u)", "gh_no_issue", REFUSED),
        ("HTTP 410: This issue was deleted (u)", "gh_no_issue", REFUSED),
        ("GraphQL: Body is too long (maximum is 65536 characters) (addComment)", "gh_too_large", REFUSED),
        ("HTTP 413: Payload Too Large (u)", "gh_too_large", REFUSED),
        ("GraphQL: Unable to create comment because issue is locked. (addComment)", "gh_forbidden", REFUSED),
        ("GraphQL: Something went wrong while executing your query. (addComment)", "gh_server", UNCLEAR),
        ("HTTP 422: Validation Failed (u)", "gh_refused", REFUSED),
        ("HTTP 302: Found (u)", "gh_failed", [true, false, false]),
        ("HTTP 408: Request Timeout (u)", "gh_server", UNCLEAR),
        ("HTTP 502: Bad Gateway (u)", "gh_server", UNCLEAR),
        ("non-200 OK status code: 502 Bad Gateway body: \"{}\"", "gh_server", UNCLEAR),
        ("HTTP 500 (u)", "gh_server", UNCLEAR),
        ("error connecting to api.github.com\ncheck your internet connection", "gh_offline", [false, true, false]),
        ("Post \"http://h/graphql\": dial unix /s: connect: refused", "gh_offline", [false, true, false]),
        ("Post \"https://h/graphql\": EOF", "gh_offline", UNCLEAR),
        ("Post \"https://h/graphql\": read tcp 1->2: read: connection reset by peer", "gh_offline", UNCLEAR),
        ("unknown flag: --body-file\n\nUsage: gh issue comment", "gh_failed", [false; 3]),
        ("panic: oh", "gh_failed", [true, false, false]),
        ("", "gh_failed", [true, false, false]),
    ];
    const REFUSED: [bool; 3] = [false, false, true];
    const UNCLEAR: [bool; 3] = [true, true, false];

    #[test]
    fn each_failure_is_known_by_its_words() {
        for (said, code, is_so) in SAID {
            let failure = explain_failure(GhCall::Issue, Some(1), said);
            assert_eq!((failure.code, [failure.maybe_stored, failure.again, failure.refused]), (code, is_so), "{said}");
        }
        assert_eq!(
            explain_failure(GhCall::Issue, Some(4), "To get started with GitHub CLI, please run:  gh auth login").code,
            "gh_auth"
        );
        assert_eq!(
            explain_failure(GhCall::Other, Some(1), "X Failed to create gist: HTTP 404: Not Found (u)").code,
            "gh_forbidden"
        );
        assert!(explain_failure(GhCall::Other, None, "").maybe_stored);
    }

    #[test]
    fn a_message_of_gh_is_cut_and_cannot_control_a_terminal() {
        let said = format!("- Creating gist a.md\nX Failed\u{1b}[31m: {}", "x".repeat(2_000));
        let message = explain_failure(GhCall::Other, Some(1), &said).message;
        assert!(message.starts_with("Failed[31m: xx") && message.chars().count() == MAX_SAID + 1, "{message}");
    }
}
