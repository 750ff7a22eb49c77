//! Bringing what was written for others onto the disk, beside the loop: a busy disk takes its time, and that of everybody
//! else's files with it. What is confirmed is what was written before; the next start need not compare it with the store.

use super::Sidecar;
use crate::core::time::Now;
use crate::limits;
use crate::spool::Error;
use crate::store::Checkpoint;
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A checkpoint on its way to the disk.
pub(super) struct Syncing {
    numbers: Checkpoint,
    done: Receiver<Result<(), Error>>,
}

impl Sidecar {
    /// Notes what was written so far, and lets a thread sync it. One at a time: what comes meanwhile has its turn later.
    pub(super) fn begin_checkpoint(&mut self) {
        let projector = &mut self.projector;
        let is_anything = projector.since_checkpoint > 0 || !projector.written.is_empty();
        if !is_anything || self.pending.store_again.is_some() || self.pending.syncing.is_some() {
            return;
        }
        let syncer = match self.spool.syncer() {
            Ok(syncer) => syncer,
            Err(error) => return tracing::warn!(%error, "files for others can't be synced"),
        };
        let all_written = projector.waiting.is_empty();
        let numbers = Checkpoint {
            journal_below: projector.journal.last_seq() + 1,
            ledger_below: if all_written { self.store.next_ledger() } else { 0 },
            views: if all_written { std::mem::take(&mut projector.views) } else { Vec::new() },
            errors: std::mem::take(&mut projector.written),
        };
        projector.since_checkpoint = 0;
        let (tell, done) = channel();
        // No task of the runtime: that would wait for the disk at the end of the program. Nobody may listen any more.
        let begun = std::thread::Builder::new().name("sync".to_owned()).spawn(move || drop(tell.send(syncer.sync())));
        if let Err(error) = begun {
            tracing::warn!(%error, "files for others can't be synced: there is no thread for it");
            self.projector.no_thread = limits::no_thread();
            return self.give_back(numbers);
        }
        self.pending.syncing = Some(Syncing { numbers, done });
    }

    /// Confirms a checkpoint that is on the disk; waits for it no longer than so.
    pub(super) fn confirm_checkpoint(&mut self, now: &Now, wait: Duration) {
        let Some(syncing) = self.pending.syncing.take() else { return };
        match syncing.done.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => self.pending.syncing = Some(syncing),
            // The store is opened anew first.
            Ok(_) if self.pending.store_again.is_some() => self.give_back(syncing.numbers),
            Ok(Ok(())) => self.confirm(now, syncing.numbers),
            Ok(Err(error)) => {
                tracing::warn!(%error, "files for others can't be synced");
                self.give_back(syncing.numbers);
            }
            Err(RecvTimeoutError::Disconnected) => self.give_back(syncing.numbers),
        }
    }

    fn confirm(&mut self, now: &Now, mut numbers: Checkpoint) {
        // What was written again meanwhile is not on the disk as it is in the store.
        let newer: BTreeSet<&String> = self.projector.views.iter().collect();
        numbers.views.retain(|view| !newer.contains(view));
        if let Err(error) = self.store.checkpoint(&numbers) {
            self.give_back(numbers);
            self.store_failed(now, &error);
        }
    }

    /// Nothing of it is known to be on the disk: the next one has it again.
    fn give_back(&mut self, numbers: Checkpoint) {
        self.projector.written.extend(numbers.errors);
        self.projector.views.extend(numbers.views);
        self.projector.since_checkpoint = self.projector.since_checkpoint.max(1);
    }
}
