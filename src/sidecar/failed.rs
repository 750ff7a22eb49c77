//! A start that failed, and how that is told.

use crate::limits;

/// A start that failed, and the exit code that says how.
pub(super) struct Failed {
    pub(super) code: u8,
    pub(super) error: anyhow::Error,
}

/// What the system said alone says neither what is short nor what to do about it.
fn in_words(error: anyhow::Error) -> anyhow::Error {
    let causes: Vec<_> = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>()).collect();
    match causes.into_iter().find(|cause| limits::is_shortage(cause)).and_then(limits::in_words) {
        Some(short) => error.context(short),
        None => error,
    }
}

pub(super) fn fails<T, E: Into<anyhow::Error>>(code: u8, result: Result<T, E>) -> Result<T, Failed> {
    result.map_err(|error| Failed { code, error: in_words(error.into()) })
}
