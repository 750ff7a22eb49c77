//! The state file: a redb database that only the sidecar opens, with one transaction for each batch of decisions.
//! tasuki writes views, result files and the journal from it.
//!
//! `tables` defines the tables, `rows` the rows that are not the core's own, and `history` keeps the rows of ended
//! agents, finished handoffs and finished work items, and compresses them. `load` loads the working set, and what the
//! last run may not have written to files; `lookup` finds single rows. `open` takes the lock and opens or creates the
//! file, `upgrade` upgrades an older one, `checking` checks all pages of a file and opens it again, `peek` checks a
//! file without changing it, and `seal` notes that a file was closed properly. `handle` is the open file and its
//! transactions; this file opens, commits and closes. Rows are JSON, so that an older row without a newer field can
//! still be read.

mod case_twins;
mod checking;
mod error;
mod handle;
mod history;
mod load;
mod lookup;
mod open;
mod peek;
mod rows;
mod seal;
mod tables;
mod upgrade;

use crate::core::decision::{Decision, ErrorRow};
use crate::core::id::ErrorId;
use crate::core::state::State;
use crate::core::time::{BelievedClock, Now};
use redb::{Database, ReadableTable};
use std::cell::Cell;
use std::fs::File;
use std::path::{Path, PathBuf};

use checking::IntegrityCheck;
pub use error::Error;
pub use handle::Store;
pub use load::{Loaded, PastIds};
use rows::Clocks;
pub use rows::{Batch, Checkpoint, NamedInErrors, SeenEvent};
pub use tables::SCHEMA;

/// The most rows of each kind that one clean-up removes.
pub(crate) const PURGE_BATCH: usize = 2_000;
/// How many decided event files are remembered.
const EVENTS_REMEMBERED: u64 = 20_000;

impl Store {
    /// Opens the state file in `state_dir`, or creates one if there is none. Checks every page of an existing file
    /// first, unless the file was [closed](Store::close) properly and has not changed since.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::Unreadable`], [`Error::NotAllowed`], [`Error::NewerSchema`]; [`Error::Gone`] if the
    /// file was replaced meanwhile; what the disk refused is [`Error::Io`].
    pub fn open(state_dir: &Path) -> Result<Store, Error> {
        let path = state_dir.join("tasuki.redb");
        let lock = open::lock(&state_dir.join("tasuki.lock"), &path)?;
        let is_new = open::create_if_missing(state_dir, &path)?;
        if !seal::take(&path)? && !is_new {
            let mebibytes = std::fs::metadata(&path).map_or(0, |meta| meta.len() / (1024 * 1024));
            tracing::info!(
                mebibytes,
                "the state file was not closed cleanly, or was changed since: checking the whole file"
            );
            peek::check(&path, None)?;
        }
        let (database, opened) = open::open_existing(&path)?;
        Store::from_database(path, database, Some(opened), lock)
    }

    /// Makes a store of an open database: checks or upgrades its schema, and finds the next numbers of the ledger and
    /// of the seen events.
    fn from_database(
        path: PathBuf,
        database: Database,
        identity: Option<(u64, u64)>,
        lock: File,
    ) -> Result<Store, Error> {
        let mut store = Store {
            path,
            database: Some(database),
            identity,
            home: None,
            next_ledger: 0,
            next_seen: 0,
            may_be_damaged: Cell::new(false),
            checking: None,
            clock: BelievedClock::default(),
            _lock: lock,
        };
        store.check_schema()?;
        store.home = store.meta("home")?;
        store.find_next_numbers()?;
        Ok(store)
    }

    /// Closes the file, opens it again and loads the working set: after an I/O error, redb refuses to write until then.
    /// If this fails, the store stays closed, and nothing can be committed until a later call succeeds. Every page is
    /// checked first if damage may have caused the I/O error that made the reopening necessary, or if the path leads to
    /// another file. The check can take long, so it runs on its own thread, and calls return `None` until it has ended.
    /// An error of a full disk needs no check.
    ///
    /// # Errors
    /// As [`Store::open`]; [`Error::Gone`] also if no file is at the path; [`Error::OtherHome`] if another home's is
    /// there.
    pub fn reopen(&mut self) -> Result<Option<Loaded>, Error> {
        self.database = None;
        let (database, opened) = match self.checking.take() {
            Some(checking) if !checking.is_done() => {
                self.checking = Some(checking);
                return Ok(None);
            }
            Some(checking) => checking.opened()?,
            None => {
                let found = open::identity(&self.path);
                if found.is_none() {
                    return Err(self.gone());
                }
                if self.may_be_damaged.get() || found != self.identity {
                    self.checking = Some(IntegrityCheck::begin(&self.path, self.home)?);
                    return Ok(None);
                }
                let (database, opened) = open::open_existing(&self.path)?;
                if found != Some(opened) {
                    return Err(self.gone());
                }
                (database, opened)
            }
        };
        self.database = Some(database);
        self.may_be_damaged.set(false);
        self.identity = Some(opened);
        // Since the file was opened, another one may have come to the path.
        let loaded = self
            .check_in_place()
            .and_then(|()| self.check_schema())
            .and_then(|()| self.find_next_numbers())
            .and_then(|()| self.load());
        if loaded.is_err() {
            self.database = None;
        }
        loaded.map(Some)
    }

    /// Closes the file and seals it, so that the next start need not check the whole file. A store that may be damaged,
    /// or that is dropped instead, is not sealed.
    pub fn close(mut self) {
        let is_well = !self.may_be_damaged.get() && self.check_in_place().is_ok();
        match self.database.take().map(Database::close) {
            Some(Ok(())) if is_well => seal::put(&self.path),
            Some(Err(error)) => tracing::warn!(%error, "the state file was not closed cleanly"),
            Some(Ok(())) | None => {}
        }
    }

    fn check_schema(&self) -> Result<(), Error> {
        let found = self.number("schema")?;
        if found > SCHEMA {
            return Err(Error::NewerSchema { path: self.path.clone(), found });
        }
        if found < SCHEMA { self.write(upgrade::upgrade) } else { Ok(()) }
    }

    /// Finds the numbers of the ledger's next row and of the next seen event.
    fn find_next_numbers(&mut self) -> Result<(), Error> {
        let read = self.read()?;
        let failed = |error: redb::Error| self.failed("read", error);
        let next = |table: redb::TableDefinition<'static, u64, &'static str>| -> Result<u64, redb::Error> {
            let table = read.open_table(table)?;
            let next = table.last()?.map_or(0, |(key, _)| key.value() + 1);
            Ok(next)
        };
        let (next_ledger, next_seen) =
            (next(tables::LEDGER_ORDER).map_err(failed)?, next(tables::SEEN_ORDER).map_err(failed)?);
        // A purge may have emptied the table. Then the numbers continue at the checkpoint: a new row with a lower
        // number would count as one whose result file is written.
        self.next_ledger = next_ledger.max(self.meta("ledger_synced")?.unwrap_or(0));
        self.next_seen = next_seen;
        Ok(())
    }

    /// Commits one batch: all of it, or nothing.
    ///
    /// # Errors
    /// What the disk refused, or [`Error::Gone`]. Then it is unknown whether the batch was committed: call
    /// [`Store::reopen`].
    pub fn commit(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        let ends = self.write(|write| tables::put_batch(write, batch, self.next_ledger, self.next_seen))?;
        (self.next_ledger, self.next_seen) = ends;
        Ok(())
    }

    /// Notes which files are on the disk, so that the next start does not write them again.
    ///
    /// # Errors
    /// What the disk refused.
    pub fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), Error> {
        self.write(|write| tables::put_checkpoint(write, checkpoint))
    }

    /// Removes errors whose files were deleted: deleting the file dismisses the error.
    ///
    /// # Errors
    /// What the disk refused.
    pub fn forget_errors(&mut self, ids: &[ErrorId]) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        let decision = Decision { dismissed: ids.to_vec(), ..Decision::default() };
        self.write(|write| tables::put_errors(write, &decision))
    }

    /// Notes errors that lie in `errors/` and that this state file does not know.
    ///
    /// # Errors
    /// What the disk refused.
    pub fn adopt_errors(&mut self, rows: &[ErrorRow]) -> Result<(), Error> {
        let decision = Decision { errors: rows.to_vec(), ..Decision::default() };
        self.write(|write| tables::put_errors(write, &decision))
    }

    /// Writes the rows of the working set that have deadlines again: agents, handoffs, and items whose completion is
    /// watched. Their deadlines, which count from a boot, were recomputed for the present boot.
    ///
    /// # Errors
    /// What the disk refused.
    pub fn put_live(&mut self, state: &State) -> Result<(), Error> {
        let decision = Decision {
            agents: state.agents.clone(),
            handoffs: state.handoffs.clone(),
            items: state.items.limited().map(|item| (item.item_id, item.clone())).collect(),
            next_effect: state.next_effect,
            next_seq: state.next_seq,
            ..Decision::default()
        };
        // Only the ledger notes the time of a commit, and this batch has no request.
        let now = Now { wall_ms: 0, boot: 0, boot_ms: 0 };
        self.commit(&Batch { decision: &decision, now, seen: &[] })
    }

    /// Forgets the requests that were answered more than 30 days ago, and all event files that were decided, except the
    /// last 20,000. Each call handles a bounded number of rows, and returns how many: if `PURGE_BATCH` or more, there
    /// may be more. Ages are computed by the boot clock, and across boots with [`BelievedClock`]: a wall clock that is
    /// wrong for a while removes nothing.
    ///
    /// # Errors
    /// What the disk refused.
    pub fn purge(&mut self, now: &Now) -> Result<usize, Error> {
        let clocks = Clocks { now: *now, believed_ms: self.clock.wall_ms(now) };
        let seen_below = self.next_seen.saturating_sub(EVENTS_REMEMBERED);
        if !self.has_purgeable(&clocks, seen_below)? {
            return Ok(0);
        }
        self.write(|write| tables::purge(write, &clocks, seen_below, PURGE_BATCH))
    }

    /// Compresses rows of the history if enough of them are not compressed yet. Each call takes a bounded number of
    /// rows, and returns how many.
    ///
    /// # Errors
    /// What the disk refused.
    pub fn pack(&mut self) -> Result<usize, Error> {
        let is_due = history::is_packing_due(&self.read()?).map_err(|error| self.failed("read", error))?;
        if is_due { self.write(history::pack) } else { Ok(0) }
    }

    /// Whether [`Store::purge`] would change anything. Asked first, so that an idle sidecar never commits.
    fn has_purgeable(&self, clocks: &Clocks, seen_below: u64) -> Result<bool, Error> {
        let read = self.read()?;
        let failed = |error: redb::Error| self.failed("read", error);
        tables::has_purgeable(&read, clocks, seen_below).map_err(failed)
    }
}

#[cfg(test)]
mod power_tests;
#[cfg(test)]
mod tests;
