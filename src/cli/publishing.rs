//! The state of a handoff's publishing as text.

use super::view::{self, said};
use crate::contract::{PublishState, PublishView};

/// The line about a handoff's publishing; none if the view does not say anything about it.
pub(super) fn summary(seen: &PublishView) -> Option<String> {
    let state = said(seen.state.as_str())?;
    let to = said(seen.to.as_str()).unwrap_or("?");
    let tried = seen.attempts.last().and_then(|last| said(last.error.as_ref()?.code.as_str()));
    // A held document was never sent, so no attempt holds the code.
    let code = tried.or_else(|| said(seen.error.as_ref()?.code.as_str()));
    let code = code.map(|code| format!(" ({code})")).unwrap_or_default();
    Some(match (seen.state.known(), said(seen.url.as_deref())) {
        (Some(PublishState::Published), Some(url)) => url.to_owned(),
        (Some(PublishState::Published), None) => format!("{to}: published, at an unknown address"),
        (Some(PublishState::Retrying), _) => {
            let at = said(seen.next_try_at.as_deref()).map(view::clock).unwrap_or_default();
            format!("{to}: retrying at {at}{code}")
        }
        (Some(PublishState::Waiting), _) => format!("{to}: waiting until the document is recorded"),
        (Some(PublishState::Running), _) => format!("{to}: running"),
        _ => format!("{to}: {}{code}", state.replace('_', " ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn the_line_says_how_far_the_publishing_is() {
        let of = |publish: Value| summary(&crate::contract::understood(publish).expect("an object"));
        assert_eq!(of(json!({})), None);
        let url = "https://x/1";
        assert_eq!(of(json!({"state": "published", "to": "issue", "url": url})).as_deref(), Some(url));
        let failed = json!({"state": "in_doubt", "to": "gist", "attempts": [{"error": {"code": "gh_timeout"}}]});
        assert_eq!(of(failed).as_deref(), Some("gist: in doubt (gh_timeout)"));
    }
}
