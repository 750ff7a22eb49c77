//! The usage limit of each service, in the words and headers by which its CLI knows one.

use super::asked::Dialect;
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// Says that nothing more is taken for so many seconds.
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Value,
}

pub(super) fn refusal(dialect: Dialect, seconds: u64) -> Refusal {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (headers, body) = match dialect {
        Dialect::Anthropic => subscription(now, seconds),
        Dialect::Responses => {
            let error = json!({"type": "usage_limit_reached", "message": "The usage limit has been reached",
                "plan_type": "plus", "resets_at": now + seconds, "resets_in_seconds": seconds});
            (Vec::new(), json!({"error": error}))
        }
        Dialect::Chat => {
            let error = json!({"type": "GoUsageLimitError", "message": "5-hour usage limit reached."});
            let body = json!({"type": "error", "error": error,
                "metadata": {"workspace": "wrk_1", "limitName": "5 hour"}});
            (vec![("retry-after", seconds.to_string())], body)
        }
        Dialect::Gemini => (Vec::new(), quota(seconds)),
    };
    Refusal { status: StatusCode::TOO_MANY_REQUESTS, headers, body }
}

/// Claude Code waits for the end of a limit that is less than a day away; for a later one it opens a dialog.
fn subscription(now: u64, seconds: u64) -> (Vec<(&'static str, String)>, Value) {
    let claim = if seconds > 86_400 { "seven_day" } else { "five_hour" };
    let headers = vec![
        ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
        ("anthropic-ratelimit-unified-reset", (now + seconds).to_string()),
        ("anthropic-ratelimit-unified-representative-claim", claim.to_owned()),
        ("retry-after", seconds.to_string()),
    ];
    let error = json!({"type": "rate_limit_error", "message": "This request would exceed your account's rate limit."});
    (headers, json!({"type": "error", "error": error}))
}

/// Gemini CLI takes a text with "exhausted your capacity" for an overload, and waits in silence.
fn quota(seconds: u64) -> Value {
    let reason = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "QUOTA_EXHAUSTED",
        "domain": "cloudcode-pa.googleapis.com", "metadata": {"model": "gemini-2.5-pro"}});
    let retry = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}.2s")});
    let message = format!("You have reached your quota limit for this model. Your quota will reset after {seconds}s.");
    json!({"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": [reason, retry]}})
}
