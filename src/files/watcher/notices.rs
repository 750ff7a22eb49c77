//! Watches folders with the crate `notify`, on all systems but macOS.

use super::notice::FolderNotice;
use notify::event::{Event, EventKind, ModifyKind, RenameMode};
use notify::{Config, RecommendedWatcher, RecursiveMode, Watcher};
use std::io;
use std::path::Path;

/// Watches a few folders.
#[derive(Debug)]
pub struct FolderWatcher {
    watcher: RecommendedWatcher,
}

impl FolderWatcher {
    /// A watcher without folders. It calls `tell` on a thread of its own.
    ///
    /// # Errors
    /// The system has no watchers left.
    pub fn new(tell: impl Fn(FolderNotice) + Send + 'static) -> io::Result<FolderWatcher> {
        // On some systems events are merged, and their kinds mean little.
        let is_exact = cfg!(target_os = "linux");
        let watcher = RecommendedWatcher::new(
            move |event: notify::Result<Event>| match event {
                Ok(event) => seen(event, is_exact).into_iter().for_each(&tell),
                Err(_) => tell(FolderNotice::Broken),
            },
            Config::default().with_follow_symlinks(false),
        );
        Ok(FolderWatcher { watcher: watcher.map_err(io::Error::other)? })
    }

    /// Watches a folder: what comes and goes there, and what grows.
    ///
    /// # Errors
    /// It is missing, or no watch is left.
    pub fn watch(&mut self, folder: &Path) -> io::Result<()> {
        self.watcher.watch(folder, RecursiveMode::NonRecursive).map_err(io::Error::other)
    }

    /// Reports the growth of a file whose folder is watched. The file need not exist yet. There is nothing to do here,
    /// because the watch of the folder reports growth too.
    #[allow(clippy::unused_self)]
    pub fn watch_growth(&mut self, _file: &Path) {}

    /// Stops watching a folder.
    pub fn unwatch(&mut self, folder: &Path) {
        // This fails if the folder is gone, and its watch with it.
        let _ = self.watcher.unwatch(folder);
    }
}

/// The notices for an event of the system. Opening or reading a file gives none: tasuki does that itself.
fn seen(event: Event, is_exact: bool) -> Vec<FolderNotice> {
    if event.need_rescan() || event.paths.is_empty() {
        return vec![FolderNotice::Lost];
    }
    match event.kind {
        EventKind::Access(_) => Vec::new(),
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) if is_exact => {
            event.paths.into_iter().map(FolderNotice::Left).collect()
        }
        _ => event.paths.into_iter().map(FolderNotice::Came).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::event::{AccessKind, AccessMode, CreateKind, DataChange, Flag, RemoveKind};

    #[test]
    fn a_notice_without_a_path_means_look() {
        assert_eq!(
            seen(Event::new(EventKind::Other).set_flag(Flag::Rescan).add_path("/a".into()), true),
            [FolderNotice::Lost]
        );
        assert_eq!(seen(Event::new(EventKind::Other), true), [FolderNotice::Lost]);
    }

    #[test]
    fn what_comes_is_told_apart_from_what_leaves_where_the_system_does_so() {
        let event = |kind| Event::new(kind).add_path("/a".into());
        let name = |mode| event(EventKind::Modify(ModifyKind::Name(mode)));
        let (came, left) = (vec![FolderNotice::Came("/a".into())], vec![FolderNotice::Left("/a".into())]);
        for coming in [
            name(RenameMode::To),
            event(EventKind::Create(CreateKind::File)),
            event(EventKind::Modify(ModifyKind::Data(DataChange::Any))),
        ] {
            assert_eq!(seen(coming, true), came);
        }
        for leaving in [name(RenameMode::From), event(EventKind::Remove(RemoveKind::File))] {
            assert_eq!((seen(leaving.clone(), true), seen(leaving, false)), (left.clone(), came.clone()));
        }
        assert!(seen(event(EventKind::Access(AccessKind::Close(AccessMode::Write))), true).is_empty());
    }
}
