//! Syncs the files that were written for others to the disk, on a thread beside the loop, because a sync takes long on
//! a busy disk. The next start need not compare files with the store if a finished sync covers them.

use super::projection::Projection;
use crate::spool::{Error, Spool};
use crate::store::Checkpoint;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The checkpoint that is being synced, if there is one.
#[derive(Debug, Default)]
pub(super) struct Checkpoints(Option<Syncing>);

#[derive(Debug)]
struct Syncing {
    checkpoint: Checkpoint,
    done: Receiver<Result<(), Error>>,
}

impl Checkpoints {
    /// Notes what was written so far, and lets a thread sync it. One sync runs at a time; what is written meanwhile
    /// waits for the next.
    ///
    /// # Errors
    /// The thread could not be started.
    pub(super) fn begin(&mut self, projection: &mut Projection, spool: &Spool, ledger_below: u64) -> io::Result<()> {
        if self.0.is_some() || !projection.wants_checkpoint(true) {
            return Ok(());
        }
        let syncer = match spool.syncer() {
            Ok(syncer) => syncer,
            Err(error) => {
                tracing::warn!(%error, "could not sync results, views and the journal to the disk");
                return Ok(());
            }
        };
        let checkpoint = projection.take_checkpoint(ledger_below);
        let (tell, done) = channel();
        // A thread, not a task of the runtime: at the end of the program the runtime would wait for the task, and so
        // for the disk. The receiver may be gone when the sync is done.
        let begun = std::thread::Builder::new().name("sync".to_owned()).spawn(move || drop(tell.send(syncer.sync())));
        if let Err(error) = begun {
            tracing::warn!(%error, "could not start a thread to sync results, views and the journal to the disk");
            projection.give_back(checkpoint);
            return Err(error);
        }
        self.0 = Some(Syncing { checkpoint, done });
        Ok(())
    }

    /// Returns the checkpoint if its sync has succeeded. Waits at most `wait` for a sync that still runs.
    pub(super) fn confirmed(&mut self, projection: &mut Projection, wait: Duration) -> Option<Checkpoint> {
        let syncing = self.0.take()?;
        match syncing.done.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => self.0 = Some(syncing),
            Ok(Ok(())) => return Some(projection.without_newer(syncing.checkpoint)),
            Ok(Err(error)) => {
                tracing::warn!(%error, "could not sync results, views and the journal to the disk");
                projection.give_back(syncing.checkpoint);
            }
            Err(RecvTimeoutError::Disconnected) => projection.give_back(syncing.checkpoint),
        }
        None
    }
}
