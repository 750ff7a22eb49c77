//! Watches folders with the kernel queue of macOS. A watcher holds its folders open, and has one queue and one thread.

use super::notice::FolderNotice;
use super::table::{Kernel, Table};
use nix::errno::Errno;
use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The largest number of notices that are taken from the queue at once.
const AT_ONCE: usize = 64;
/// The event that ends the thread.
const END: usize = 0;

/// Watches a few folders.
#[derive(Debug)]
pub struct FolderWatcher {
    shared: Arc<Shared>,
}

/// What the watcher and its thread share.
#[derive(Debug)]
struct Shared {
    kernel: Kqueue,
    table: Mutex<Table>,
}

impl FolderWatcher {
    /// A watcher without folders. It calls `tell` on a thread of its own.
    ///
    /// # Errors
    /// No queue or no thread is left.
    pub fn new(tell: impl Fn(FolderNotice) + Send + 'static) -> io::Result<FolderWatcher> {
        let shared = Arc::new(Shared { kernel: Kqueue::new()?, table: Mutex::default() });
        shared.end_event(EvFlags::EV_ADD | EvFlags::EV_CLEAR, FilterFlag::empty())?;
        let heard = Arc::clone(&shared);
        std::thread::Builder::new().name("folders".to_owned()).spawn(move || {
            if heard.listen(&tell).is_err() {
                tell(FolderNotice::Broken);
            }
        })?;
        Ok(FolderWatcher { shared })
    }

    /// Watches a folder: what comes and goes there.
    ///
    /// # Errors
    /// It is missing, no descriptor is left, or its file system has no such notices.
    pub fn watch(&mut self, folder: &Path) -> io::Result<()> {
        self.shared.table().watch(&self.shared.kernel, folder)
    }

    /// Reports the growth of a file whose folder is watched. The file need not exist yet.
    pub fn watch_growth(&mut self, file: &Path) {
        self.shared.table().watch_growth(&self.shared.kernel, file);
    }

    /// Stops watching a folder.
    pub fn unwatch(&mut self, folder: &Path) {
        self.shared.table().unwatch(folder);
    }
}

impl Drop for FolderWatcher {
    fn drop(&mut self) {
        // If this fails, the thread waits for ever, which does no harm.
        let _ = self.shared.end_event(EvFlags::empty(), FilterFlag::NOTE_TRIGGER);
    }
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_event(&self, flags: EvFlags, notes: FilterFlag) -> io::Result<()> {
        let change = KEvent::new(END, EventFilter::EVFILT_USER, flags, notes, 0, 0);
        self.kernel.kevent(&[change], &mut [], None)?;
        Ok(())
    }

    /// Takes notices from the queue until the watcher is dropped.
    fn listen(&self, tell: &impl Fn(FolderNotice)) -> Result<(), Errno> {
        let gone = FilterFlag::NOTE_DELETE | FilterFlag::NOTE_RENAME | FilterFlag::NOTE_REVOKE;
        let empty = KEvent::new(END, EventFilter::EVFILT_USER, EvFlags::empty(), FilterFlag::empty(), 0, 0);
        let mut events = [empty; AT_ONCE];
        loop {
            let number = match self.kernel.kevent(&[], &mut events, None) {
                Ok(number) => number,
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(errno),
            };
            for event in events.iter().take(number) {
                if event.filter() == Ok(EventFilter::EVFILT_USER) {
                    return Ok(());
                }
                let Ok(key) = usize::try_from(event.udata()) else { continue };
                // The lock on the table is released before `tell` is called, because `tell` may need the table.
                let seen = self.table().seen(&self.kernel, key, event.fflags().intersects(gone));
                seen.into_iter().for_each(tell);
            }
        }
    }
}

impl Kernel for Kqueue {
    fn tell_of(&self, file: BorrowedFd<'_>, key: usize) -> io::Result<()> {
        let wrong = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let (ident, key) = (usize::try_from(file.as_raw_fd()).map_err(wrong)?, isize::try_from(key).map_err(wrong)?);
        let notes = FilterFlag::NOTE_WRITE
            | FilterFlag::NOTE_EXTEND
            | FilterFlag::NOTE_DELETE
            | FilterFlag::NOTE_RENAME
            | FilterFlag::NOTE_REVOKE;
        let flags = EvFlags::EV_ADD | EvFlags::EV_CLEAR;
        let change = KEvent::new(ident, EventFilter::EVFILT_VNODE, flags, notes, 0, key);
        self.kevent(&[change], &mut [], None)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    #[test]
    fn the_kernel_tells_of_files_that_come_go_and_grow() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("spool");
        fs::create_dir(&folder).expect("made");
        let (sender, told) = mpsc::channel();
        let mut watcher = FolderWatcher::new(move |seen| drop(sender.send(seen))).expect("a queue");
        watcher.watch(&folder).expect("watched");
        let journal = folder.join("journal.jsonl");
        watcher.watch_growth(&journal);
        let until = |wanted: &FolderNotice| {
            let end = Instant::now() + Duration::from_secs(10);
            while told.recv_timeout(end.saturating_duration_since(Instant::now())).expect("it is told") != *wanted {}
        };
        fs::write(dir.path().join("a"), "{}").expect("written");
        fs::rename(dir.path().join("a"), folder.join("a")).expect("moved");
        until(&FolderNotice::In(folder.clone()));
        fs::write(&journal, "1\n").expect("written");
        until(&FolderNotice::Came(journal.clone()));
        let mut file = fs::File::options().append(true).open(&journal).expect("opened");
        std::io::Write::write_all(&mut file, b"2\n").expect("written");
        until(&FolderNotice::Came(journal));
        fs::remove_dir_all(&folder).expect("removed");
        until(&FolderNotice::Left(folder));
        drop(watcher);
        let end = std::iter::repeat_with(|| told.recv_timeout(Duration::from_secs(10))).find_map(Result::err);
        assert_eq!(end, Some(mpsc::RecvTimeoutError::Disconnected), "the thread ends with the watcher");
    }
}
