//! Bringing what was written for others onto the disk, beside the loop: a busy disk takes its time, and that of everybody
//! else's files with it. What is confirmed is what was written before; the next start need not compare it with the store.

use super::projector::Projector;
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
    numbers: Checkpoint,
    done: Receiver<Result<(), Error>>,
}

impl Checkpoints {
    /// Notes what was written so far, and lets a thread sync it. One at a time: what comes meanwhile has its turn later.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(super) fn begin(&mut self, projector: &mut Projector, spool: &Spool, ledger_below: u64) -> io::Result<()> {
        if self.0.is_some() || !projector.wants_checkpoint(true) {
            return Ok(());
        }
        let syncer = match spool.syncer() {
            Ok(syncer) => syncer,
            Err(error) => {
                tracing::warn!(%error, "files for others can't be synced");
                return Ok(());
            }
        };
        let numbers = projector.take_checkpoint(ledger_below);
        let (tell, done) = channel();
        // No task of the runtime: that would wait for the disk at the end of the program. Nobody may listen any more.
        let begun = std::thread::Builder::new().name("sync".to_owned()).spawn(move || drop(tell.send(syncer.sync())));
        if let Err(error) = begun {
            tracing::warn!(%error, "files for others can't be synced: there is no thread for it");
            projector.give_back(numbers);
            return Err(error);
        }
        self.0 = Some(Syncing { numbers, done });
        Ok(())
    }

    /// A checkpoint that is on the disk; it is waited for no longer than so.
    pub(super) fn confirmed(&mut self, projector: &mut Projector, wait: Duration) -> Option<Checkpoint> {
        let syncing = self.0.take()?;
        match syncing.done.recv_timeout(wait) {
            Err(RecvTimeoutError::Timeout) => self.0 = Some(syncing),
            Ok(Ok(())) => return Some(projector.without_newer(syncing.numbers)),
            Ok(Err(error)) => {
                tracing::warn!(%error, "files for others can't be synced");
                projector.give_back(syncing.numbers);
            }
            Err(RecvTimeoutError::Disconnected) => projector.give_back(syncing.numbers),
        }
        None
    }
}
