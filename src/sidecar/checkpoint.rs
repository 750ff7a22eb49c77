//! Syncs the files that were written for others to the disk, in parallel with the loop, because on a busy disk a sync
//! takes long and delays everybody's files. What a finished sync covers, the next start need not compare with the
//! store.

use super::projection::Projection;
use crate::spool::{Error, Spool};
use crate::store::Checkpoint;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// A checkpoint on its way to the disk, if one is.
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
    /// There is no thread for it.
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
        // No task of the runtime: that would wait for the disk at the end of the program. The receiver may be gone by
        // then.
        let begun = std::thread::Builder::new().name("sync".to_owned()).spawn(move || drop(tell.send(syncer.sync())));
        if let Err(error) = begun {
            tracing::warn!(%error, "could not start a thread to sync results, views and the journal to the disk");
            projection.give_back(checkpoint);
            return Err(error);
        }
        self.0 = Some(Syncing { checkpoint, done });
        Ok(())
    }

    /// A checkpoint that is on the disk; it is waited for at most for `wait`.
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
