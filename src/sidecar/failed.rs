//! A start that failed, and how it is reported.

use crate::limits;

/// A start that failed, and the exit code that says how.
pub(super) struct StartFailure {
    pub(super) code: u8,
    pub(super) error: anyhow::Error,
}

/// Adds what is short, and what to do about it: the system's own error says neither.
fn in_words(error: anyhow::Error) -> anyhow::Error {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    match causes.find_map(limits::in_words) {
        Some(short) => error.context(short),
        None => error,
    }
}

pub(super) fn fails<T, E: Into<anyhow::Error>>(code: u8, result: Result<T, E>) -> Result<T, StartFailure> {
    result.map_err(|error| StartFailure { code, error: in_words(error.into()) })
}
