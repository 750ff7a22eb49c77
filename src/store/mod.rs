//! The authoritative state: a redb file that only the sidecar opens, with one transaction for each batch of decisions.
//!
//! `tables` names the tables, `rows` the rows that are not the core's own, `history` packs old rows. `load` loads the
//! working set, `look` finds single rows. `open` takes the lock and creates a new file, `checking` reads a whole file
//! before it opens it again, `peek` reads a file without changing it, and `seal` marks a file that was closed properly.
//! `handle` is the open file itself; this file commits. Rows are JSON, so that an older row without a newer field can
//! still be read.

mod checking;
mod error;
mod handle;
mod history;
mod load;
mod look;
mod open;
mod peek;
mod rows;
mod seal;
mod tables;
mod upgrade;

use crate::core::decision::Decision;
use crate::core::id::ErrorId;
use crate::core::state::State;
use crate::core::time::{BelievedClock, Now};
use redb::{Database, ReadableTable};
use std::cell::Cell;
use std::fs::File;
use std::path::{Path, PathBuf};

use checking::Checking;
pub use error::Error;
pub use handle::Store;
pub use load::{Loaded, PastIds};
pub use rows::{Batch, Checkpoint, SeenEvent};
pub use tables::SCHEMA;

/// The most rows of each kind that one clean-up removes.
pub(crate) const PURGE_BATCH: usize = 2_000;
/// How long an answered request is remembered, in milliseconds (30 days): until then the same id gets the same answer.
const REMEMBER_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// Event files that are remembered after they were taken.
const EVENTS_REMEMBERED: u64 = 20_000;

impl Store {
    /// Opens the state file under `state_dir`, or creates a new one if there is none. Every page is checked first,
    /// unless the file was [closed](Store::close) properly and has not been changed since.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::Unreadable`], [`Error::NewerSchema`], or what the disk refused.
    pub fn open(state_dir: &Path) -> Result<Store, Error> {
        let path = state_dir.join("tasuki.redb");
        let lock = open::lock(&state_dir.join("tasuki.lock"), &path)?;
        open::begin_if_new(state_dir, &path)?;
        if !seal::take(&path)? {
            let mebibytes = std::fs::metadata(&path).map_or(0, |meta| meta.len() / (1024 * 1024));
            tracing::info!(
                mebibytes,
                "the state file was not closed cleanly, or was changed since: checking the whole file"
            );
            peek::check(&path)?;
        }
        let database = open::existing(&path, false)?;
        let identity = open::identity(&path);
        Store::on(path, database, identity, lock)
    }

    /// Makes a store of an open database: checks its schema and finds the ends of its ledgers.
    fn on(path: PathBuf, database: Database, identity: Option<(u64, u64)>, lock: File) -> Result<Store, Error> {
        let mut store = Store {
            path,
            database: Some(database),
            identity,
            next_ledger: 0,
            next_seen: 0,
            doubt: Cell::new(false),
            checking: None,
            clock: BelievedClock::default(),
            _lock: lock,
        };
        store.check_schema()?;
        store.find_ends()?;
        Ok(store)
    }

    /// Closes the file, opens it again and loads the working set: after an I/O error redb refuses to write until then.
    /// If any of it fails, the store stays closed, and nothing can be committed until a later call succeeds. If damage
    /// may have caused the error, or the path leads to another file, every page is checked. That is done on a thread of
    /// its own, because the loop would wait for it, and this returns none until a later call finds it done. A disk that
    /// is merely full damages nothing.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn reopen(&mut self) -> Result<Option<Loaded>, Error> {
        self.database = None;
        let opened = match self.checking.take() {
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
                if self.doubt.get() || found != self.identity {
                    self.checking = Some(Checking::begin(&self.path)?);
                    return Ok(None);
                }
                open::existing(&self.path, false)?
            }
        };
        self.database = Some(opened);
        self.doubt.set(false);
        self.identity = open::identity(&self.path);
        let loaded = self.check_schema().and_then(|()| self.find_ends()).and_then(|()| self.load());
        if loaded.is_err() {
            self.database = None;
        }
        loaded.map(Some)
    }

    /// Closes the file, and marks it as closed properly if nothing is wrong: then the next start need not read all of
    /// it. A store that is dropped instead gets no mark.
    pub fn close(mut self) {
        let is_well = !self.doubt.get() && self.check_in_place().is_ok();
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

    fn find_ends(&mut self) -> Result<(), Error> {
        let read = self.read()?;
        let failed = |error: redb::Error| self.failed("read", error);
        let last = |table: redb::TableDefinition<'static, u64, &'static str>| -> Result<u64, redb::Error> {
            let table = read.open_table(table)?;
            let last = table.last()?.map_or(0, |(key, _)| key.value() + 1);
            Ok(last)
        };
        let (next_ledger, next_seen) =
            (last(tables::LEDGER_ORDER).map_err(failed)?, last(tables::SEEN_ORDER).map_err(failed)?);
        self.next_ledger = next_ledger.max(self.meta("ledger_synced")?.unwrap_or(0));
        self.next_seen = next_seen;
        Ok(())
    }

    /// Commits one batch: all of it, or nothing.
    ///
    /// # Errors
    /// What the disk refused. It is then not known whether the batch was committed: reopen, and read the state again.
    pub fn commit(&mut self, batch: &Batch<'_>) -> Result<(), Error> {
        let ends = self.write(|write| tables::put_batch(write, batch, self.next_ledger, self.next_seen))?;
        (self.next_ledger, self.next_seen) = ends;
        Ok(())
    }

    /// Confirms files that were synced, so that the next start need not check them.
    ///
    /// # Errors
    /// What the disk refused.
    pub fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), Error> {
        self.write(|write| tables::put_checkpoint(write, checkpoint))
    }

    /// Forgets errors whose files were deleted, which dismisses them.
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

    /// Writes live rows again, with deadlines counted in the present boot.
    ///
    /// # Errors
    /// What the disk refused.
    pub fn put_live(&mut self, state: &State) -> Result<(), Error> {
        let decision = Decision {
            agents: state.agents.clone(),
            handoffs: state.handoffs.clone(),
            next_effect: state.next_effect,
            next_seq: state.next_seq,
            ..Decision::default()
        };
        let now = Now { wall_ms: 0, boot: 0, boot_ms: 0 };
        self.commit(&Batch { decision: &decision, now, seen: &[] })
    }

    /// Forgets requests that were answered more than 30 days ago, and event files beyond the last 20,000. Each call
    /// does a bounded amount of work and returns the number of rows; `PURGE_BATCH` or more means that there may be more
    /// of them. It does not rely on the wall clock alone: a clock that jumps ahead and is corrected makes it forget
    /// nothing.
    ///
    /// # Errors
    /// What the disk refused.
    pub fn purge(&mut self, now: &Now) -> Result<usize, Error> {
        let before_ms = self.clock.wall_ms(now).map_or(i64::MIN, |wall_ms| wall_ms.saturating_sub(REMEMBER_MS));
        let seen_below = self.next_seen.saturating_sub(EVENTS_REMEMBERED);
        if !self.has_purgeable(before_ms, seen_below)? {
            return Ok(0);
        }
        self.write(|write| tables::purge(write, before_ms, seen_below, PURGE_BATCH))
    }

    /// Packs loose rows of history, if there are enough of them. Each call does a bounded amount of work and returns
    /// the number of rows.
    ///
    /// # Errors
    /// What the disk refused.
    pub fn pack(&mut self) -> Result<usize, Error> {
        let is_due = history::is_packing_due(&self.read()?).map_err(|error| self.failed("read", error))?;
        if is_due { self.write(history::pack) } else { Ok(0) }
    }

    /// Whether there is anything to purge: checked before a write, so that an idle sidecar never commits.
    fn has_purgeable(&self, before_ms: i64, seen_below: u64) -> Result<bool, Error> {
        let read = self.read()?;
        let failed = |error: redb::Error| self.failed("read", error);
        tables::has_purgeable(&read, before_ms, seen_below).map_err(failed)
    }
}

#[cfg(test)]
mod power_tests;
#[cfg(test)]
mod tests;
