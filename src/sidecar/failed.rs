//! A start that failed, and how that is told.

/// A start that failed, and the exit code that says how.
pub(super) struct Failed {
    pub(super) code: u8,
    pub(super) error: anyhow::Error,
}

pub(super) fn fails<T, E: Into<anyhow::Error>>(code: u8, result: Result<T, E>) -> Result<T, Failed> {
    result.map_err(|error| Failed { code, error: error.into() })
}
