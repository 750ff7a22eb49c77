//! The files of a list that can't be read: the list lacks them, and must say so.

use super::error::CliError;

/// The files of a list that exist and can't be read.
#[derive(Debug, Default)]
pub struct Unread {
    count: usize,
    first: Option<CliError>,
}

impl Unread {
    /// What was read. A failure is noted, and counts as nothing read.
    pub fn note<T>(&mut self, read: Result<Option<T>, CliError>) -> Option<T> {
        read.unwrap_or_else(|error| {
            self.count += 1;
            self.first.get_or_insert(error);
            None
        })
    }

    /// How many files they are, and why the first can't be read; `None` if all could be read.
    #[must_use]
    pub fn first(&self) -> Option<(usize, &str)> {
        self.first.as_ref().map(|first| (self.count, first.message.trim_end_matches('.')))
    }

    /// What to do about the first, if something has damaged it.
    #[must_use]
    pub fn remedy(&self) -> Option<&str> {
        self.first.as_ref().filter(|first| first.code == "not_json")?.hint.as_deref()
    }

    /// `missing`, unless some files can't be read: what was looked for may be in one of them. Then the error says so.
    #[must_use]
    pub fn or_missing(self, missing: CliError) -> CliError {
        let Some(first) = self.first else { return missing };
        let (files, them) = match self.count {
            1 => ("1 file".to_owned(), "it"),
            count => (format!("{count} files"), "one of them"),
        };
        let (missing, why) = (missing.message.trim_end_matches('.'), first.message.trim_end_matches('.'));
        let message = format!("{missing}. But {files} can't be read, and it may be in {them}. {why}.");
        let usual = "Make what can't be read readable again, or check the disk, then repeat the command.";
        let hint = first.hint.clone().filter(|_| first.code == "not_json").unwrap_or_else(|| usual.to_owned());
        CliError { message, ..first }.hint(hint)
    }

    /// The warning that a list is not whole; `None` if it is.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let (count, why) = self.first()?;
        let (files, them) = match count {
            1 => ("1 file can't be read, and was".to_owned(), "it"),
            count => (format!("{count} files can't be read, and were"), "them"),
        };
        let usual = format!("Make {them} readable again, or check the disk.");
        Some(format!("This list is not whole: {files} left out. {why}. {}", self.remedy().unwrap_or(&usual)))
    }
}
