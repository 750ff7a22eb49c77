//! The open database file: read and write transactions, and what their errors mean.

use super::checking::IntegrityCheck;
use super::error::{self, Error};
use super::{open, tables};
use crate::core::time::BelievedClock;
use redb::{Database, Durability, ReadableDatabase};
use std::cell::Cell;
use std::fs::File;
use std::path::PathBuf;

/// The database of one home.
pub struct Store {
    pub(super) path: PathBuf,
    /// `None` from an error until [`Store::reopen`] succeeds.
    pub(super) database: Option<Database>,
    /// Device and inode of the open file; `None` for a test's store that is not in a file.
    pub(super) identity: Option<(u64, u64)>,
    /// The number that identifies the home; see [`Store::home_tag`].
    pub(super) home: Option<u64>,
    /// The number of the ledger's next row.
    pub(super) next_ledger: u64,
    /// The number of the next seen event.
    pub(super) next_seen: u64,
    /// Whether an error since the last full check may have been caused by damage.
    pub(super) may_be_damaged: Cell<bool>,
    /// The running check of all pages, if there is one.
    pub(super) checking: Option<IntegrityCheck>,
    /// The clock that decides when an answer is old enough to be forgotten.
    pub(super) clock: BelievedClock,
    // Held for its lock: one sidecar for each home, also while the database is closed to be opened again.
    pub(super) _lock: File,
}

impl Store {
    /// Checks that the file at the path is still the one that is open: commits into a file that is no longer there
    /// would be lost.
    ///
    /// # Errors
    /// [`Error::Gone`].
    pub fn check_in_place(&self) -> Result<(), Error> {
        let is_so = self.identity.is_none() || self.identity == open::identity(&self.path);
        if is_so { Ok(()) } else { Err(self.gone()) }
    }

    pub(super) fn gone(&self) -> Error {
        Error::Gone { path: self.path.clone() }
    }

    fn database(&self) -> Result<&Database, Error> {
        let why = "it was closed after an error";
        self.database.as_ref().ok_or_else(|| Error::Io { path: self.path.clone(), what: "used", why: why.to_owned() })
    }

    /// Converts an error of redb, and notes whether damage may have caused it. `what` is a participle, as in
    /// [`Error::Io`].
    pub(super) fn failed(&self, what: &'static str, error: impl Into<redb::Error>) -> Error {
        let error = error.into();
        if error::may_be_corruption(&error) {
            self.may_be_damaged.set(true);
        }
        Error::of(&self.path, what, error)
    }

    /// The error of a row that can't be parsed, found while all rows of a table are read: the whole file counts as
    /// unreadable.
    pub(super) fn corrupt(&self, table: &str, why: &impl ToString) -> Error {
        self.may_be_damaged.set(true);
        let why = format!("a row of its table {table} can't be understood: {}", why.to_string());
        Error::Unreadable { path: self.path.clone(), why }
    }

    /// The error of such a row, found where a single row is looked up: only the request that needs this row fails.
    pub(super) fn row_corrupt(&self, table: &str, why: &impl ToString) -> Error {
        self.may_be_damaged.set(true);
        Error::Row { path: self.path.clone(), table: table.to_owned(), why: why.to_string() }
    }

    pub(super) fn read(&self) -> Result<redb::ReadTransaction, Error> {
        self.database()?.begin_read().map_err(|error| self.failed("read", error))
    }

    /// Runs `work` in a transaction and commits it. When this returns, the commit is on the disk.
    pub(super) fn write<T>(
        &self,
        work: impl FnOnce(&redb::WriteTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, Error> {
        let mut write = self.database()?.begin_write().map_err(|error| self.failed("written", error))?;
        write.set_durability(Durability::Immediate).map_err(|error| self.failed("written", error))?;
        // With this, redb itself need not read the whole file when it opens it after a crash or an I/O error. tasuki's
        // own check reads it nevertheless: at a start without a valid seal, and in `reopen` if the file may be damaged
        // or is another one than before.
        write.set_quick_repair(true);
        let done = work(&write).map_err(|error| self.failed("written", error))?;
        write.commit().map_err(|error| self.failed("written", error))?;
        // After the commit, so that a file that was moved in the meantime is noticed.
        self.check_in_place()?;
        Ok(done)
    }

    /// A number of the table `meta` that every state file has.
    pub(super) fn number(&self, name: &str) -> Result<u64, Error> {
        let missing = || format!("it holds no number {name}, so it is not a tasuki state file");
        self.meta(name)?.ok_or_else(|| Error::Unreadable { path: self.path.clone(), why: missing() })
    }

    /// A number of the table `meta`; none if it was never written.
    pub(super) fn meta(&self, name: &str) -> Result<Option<u64>, Error> {
        let table = self.read()?.open_table(tables::META).map_err(|error| self.failed("read", error))?;
        let found = table.get(name).map_err(|error| self.failed("read", error))?;
        Ok(found.map(|value| value.value()))
    }

    /// The 8 hexadecimal digits that identify this home in the options and names that tasuki sets in a tmux server.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the file has no such number, or what the disk refused.
    pub fn home_tag(&self) -> Result<String, Error> {
        Ok(format!("{:08x}", self.number("home")? & 0xffff_ffff))
    }

    /// The number of the ledger's next row.
    #[must_use]
    pub fn next_ledger(&self) -> u64 {
        self.next_ledger
    }
}
