//! A start that failed, and how it is reported.

use crate::limits;

/// A start that failed, and the exit code that says how.
pub(super) struct StartFailure {
    pub(super) code: u8,
    pub(super) error: anyhow::Error,
}

impl StartFailure {
    /// The error with its causes. A cause that an error's own text ends with is not repeated.
    pub(super) fn in_full(&self) -> String {
        self.error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.as_str() {
            "" => cause,
            whole if whole.ends_with(&cause) => text,
            whole => format!("{whole}: {cause}"),
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigError;

    #[test]
    fn a_cause_that_was_told_is_not_told_again() {
        let source = || std::io::Error::from_raw_os_error(20);
        let whole = |error: anyhow::Error| StartFailure { code: 78, error }.in_full();
        let once = "could not read /x: Not a directory (os error 20)";
        assert_eq!(whole(ConfigError::Read { path: "/x".into(), source: source() }.into()), once);
        assert_eq!(whole(anyhow::Error::from(source()).context("could not read /x")), once);
    }
}
