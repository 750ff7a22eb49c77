//! A start that failed, and how it is reported.

use crate::exit;
use crate::limits;
use std::io;

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

/// The errors of the system that have led to this one.
fn causes(error: &anyhow::Error) -> impl Iterator<Item = &io::Error> {
    error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>())
}

/// Adds what is short, and what to do about it: the system's own error says neither.
fn in_words(error: anyhow::Error) -> anyhow::Error {
    let short = causes(&error).find_map(limits::short_of);
    match short {
        Some((what, fix)) => error.context(format!("{what}; {fix}, then start the sidecar again")),
        None => error,
    }
}

/// The exit code of a start that `error` has failed: `code`, unless the system has refused something for a reason that
/// says nothing about the file.
fn code_of(code: u8, error: &anyhow::Error) -> u8 {
    let is_full = |cause: &io::Error| matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let of_cause = |cause: &io::Error| match cause.kind() {
        io::ErrorKind::PermissionDenied => Some(exit::NOT_ALLOWED),
        _ if limits::is_passing(cause) || is_full(cause) => Some(exit::TRY_AGAIN),
        _ => None,
    };
    causes(error).find_map(of_cause).unwrap_or(code)
}

/// Turns an error into a failed start. `code`: the exit code if the thing itself is at fault. A shortage or a disk that
/// fails counts as [`exit::TRY_AGAIN`], and a missing permission as [`exit::NOT_ALLOWED`].
pub(super) fn fails<T, E: Into<anyhow::Error>>(code: u8, result: Result<T, E>) -> Result<T, StartFailure> {
    result.map_err(|error| {
        let error = error.into();
        StartFailure { code: code_of(code, &error), error: in_words(error) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigError;
    use crate::config::rules::RulesFileError;
    use anyhow::Context;
    use nix::errno::Errno;

    #[test]
    fn a_shortage_or_a_missing_permission_is_not_a_wrong_configuration() {
        let wanted = [
            (Errno::EMFILE, exit::TRY_AGAIN),
            (Errno::EIO, exit::TRY_AGAIN),
            (Errno::ENOSPC, exit::TRY_AGAIN),
            (Errno::EDQUOT, exit::TRY_AGAIN),
            (Errno::EACCES, exit::NOT_ALLOWED),
            (Errno::EPERM, exit::NOT_ALLOWED),
            (Errno::ENOTDIR, exit::CONFIG),
        ];
        for (errno, code) in wanted {
            let source = || io::Error::from(errno);
            let rules = RulesFileError::Read { path: "rules.toml".into(), source: source() };
            let read: Result<(), _> = fails(exit::CONFIG, Err(rules));
            assert_eq!(read.err().map(|failed| failed.code), Some(code), "{errno}");
            let made = Err::<(), _>(source()).context("could not create the folder");
            assert_eq!(fails(exit::CONFIG, made).err().map(|failed| failed.code), Some(code), "{errno}");
        }
        let short = Err::<(), _>(io::Error::from(Errno::EMFILE)).context("rules.toml");
        let said = fails(exit::CONFIG, short).err().map(|failed| format!("{:#}", failed.error)).unwrap_or_default();
        assert!(said.contains("descriptors") && said.contains("ulimit -n") && !said.contains("meanwhile"), "{said}");
    }

    #[test]
    fn a_cause_that_was_told_is_not_told_again() {
        let source = || std::io::Error::from_raw_os_error(20);
        let whole = |error: anyhow::Error| StartFailure { code: 78, error }.in_full();
        let once = "could not read /x: Not a directory (os error 20)";
        assert_eq!(whole(ConfigError::Read { path: "/x".into(), source: source() }.into()), once);
        assert_eq!(whole(anyhow::Error::from(source()).context("could not read /x")), once);
    }
}
