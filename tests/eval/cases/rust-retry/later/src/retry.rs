/// How long to wait before the next try, in milliseconds.
pub fn delay(attempt: u32) -> u64 {
    (100 << attempt.min(6)).min(6_400)
}

/// Whether a request may be sent again.
pub fn may_repeat(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "PUT" | "DELETE")
}
