//! The folders and files that are watched through the kernel queue. Each is held open, and has a key that the kernel
//! gives with its notices. This file does not use the queue itself, so that it is tested on every system.

use super::notice::FolderNotice;
use crate::files;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The part of the kernel that reports changes. It forgets a file that is closed.
pub(super) trait Kernel {
    /// Asks the kernel to report changes of an open file or folder, with this key.
    fn tell_of(&self, file: BorrowedFd<'_>, key: usize) -> io::Result<()>;
}

#[derive(Debug, Default)]
pub(super) struct Table {
    /// The last key that was used. No key is used again: a late notice must not count for another file.
    next: usize,
    folders: BTreeMap<PathBuf, Watched>,
    /// Files whose growth is reported; none for a file that does not exist.
    files: BTreeMap<PathBuf, Option<Watched>>,
}

#[derive(Debug)]
struct Watched {
    key: usize,
    file: OwnedFd,
}

impl Table {
    /// Watches a folder. A folder that is watched already is opened again.
    pub(super) fn watch(&mut self, kernel: &impl Kernel, folder: &Path) -> io::Result<()> {
        let watched = self.begin(kernel, files::open_dir(folder)?)?;
        self.folders.insert(folder.to_owned(), watched);
        Ok(())
    }

    /// Watches a file. It need not exist yet if its folder is watched.
    pub(super) fn watch_growth(&mut self, kernel: &impl Kernel, file: &Path) {
        self.files.insert(file.to_owned(), None);
        self.renew(kernel, file);
    }

    pub(super) fn unwatch(&mut self, folder: &Path) {
        self.folders.remove(folder);
    }

    /// The notices for a change that the kernel has reported. `gone`: the file or folder was removed or renamed.
    pub(super) fn seen(&mut self, kernel: &impl Kernel, key: usize, gone: bool) -> Vec<FolderNotice> {
        if let Some(folder) = self.folders.iter().find(|(_, known)| known.key == key).map(|(path, _)| path.clone()) {
            let inside: Vec<PathBuf> =
                self.files.keys().filter(|file| file.parent() == Some(&folder)).cloned().collect();
            let came: Vec<FolderNotice> =
                inside.into_iter().filter(|file| self.renew(kernel, file)).map(FolderNotice::Came).collect();
            let told = if gone { FolderNotice::Left(folder) } else { FolderNotice::In(folder) };
            return std::iter::once(told).chain(came).collect();
        }
        let is_it = |known: &Option<Watched>| known.as_ref().is_some_and(|known| known.key == key);
        let Some(file) = self.files.iter().find(|(_, known)| is_it(known)).map(|(path, _)| path.clone()) else {
            return Vec::new();
        };
        if gone {
            self.renew(kernel, &file);
        }
        vec![FolderNotice::Came(file)]
    }

    /// Looks whether a new file is at the path of a watched file, and if so watches the new file. Returns whether it
    /// does.
    fn renew(&mut self, kernel: &impl Kernel, path: &Path) -> bool {
        let opened = files::open(path).ok().filter(|(_, meta)| meta.is_file()).map(|(file, _)| OwnedFd::from(file));
        let known = self.files.get(path).and_then(Option::as_ref);
        let identity = |file: &OwnedFd| files::meta(file).ok().map(|meta| (meta.file_stamp.dev, meta.file_stamp.ino));
        let is_same = opened.as_ref().zip(known).is_some_and(|(new, old)| identity(new) == identity(&old.file));
        if is_same {
            return false;
        }
        let watched = opened.and_then(|file| self.begin(kernel, file).ok());
        let is_new = watched.is_some();
        self.files.insert(path.to_owned(), watched);
        is_new
    }

    fn begin(&mut self, kernel: &impl Kernel, file: OwnedFd) -> io::Result<Watched> {
        self.next += 1;
        kernel.tell_of(file.as_fd(), self.next)?;
        Ok(Watched { key: self.next, file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::fs;

    /// Remembers which files it was asked to report: each key with its inode.
    #[derive(Default)]
    struct Asked(RefCell<BTreeMap<usize, u64>>);

    impl Kernel for Asked {
        fn tell_of(&self, file: BorrowedFd<'_>, key: usize) -> io::Result<()> {
            self.0.borrow_mut().insert(key, files::meta(file)?.file_stamp.ino);
            Ok(())
        }
    }

    impl Asked {
        /// The last key of the file that is at this path now.
        fn key(&self, path: &Path) -> usize {
            let ino = files::file_stamp(path).expect("there").ino;
            let keys = self.0.borrow();
            *keys.iter().rev().find(|(_, known)| **known == ino).expect("it was asked for").0
        }

        fn count(&self) -> usize {
            self.0.borrow().len()
        }
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("spool");
        fs::create_dir(&folder).expect("made");
        (dir, folder)
    }

    #[test]
    fn a_folder_is_told_by_the_path_that_was_given_also_over_a_link() {
        let (dir, folder) = folder();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).expect("a link");
        let (mut table, asked) = (Table::default(), Asked::default());
        table.watch(&asked, &link).expect("watched");
        let key = asked.key(&folder);
        assert_eq!(table.seen(&asked, key, false), [FolderNotice::In(link.clone())]);
        assert_eq!(table.seen(&asked, key, true), [FolderNotice::Left(link.clone())]);
        assert!(table.seen(&asked, key + 1, false).is_empty(), "nobody has this key");
        table.watch(&asked, &link).expect("watched again");
        assert!(table.seen(&asked, key, false).is_empty(), "a late notice of the folder that was closed");
        table.unwatch(&link);
        assert!(table.seen(&asked, key + 1, false).is_empty());
        assert!(table.watch(&asked, &dir.path().join("missing")).is_err());
    }

    #[test]
    fn a_file_that_grows_is_followed_when_it_comes_and_when_another_takes_its_place() {
        let (_dir, folder) = folder();
        let journal = folder.join("journal.jsonl");
        let (mut table, asked) = (Table::default(), Asked::default());
        table.watch(&asked, &folder).expect("watched");
        let of_folder = asked.key(&folder);
        table.watch_growth(&asked, &journal);
        assert_eq!(asked.count(), 1, "it does not exist");
        fs::write(&journal, "1\n").expect("written");
        let both = [FolderNotice::In(folder.clone()), FolderNotice::Came(journal.clone())];
        assert_eq!(table.seen(&asked, of_folder, false), both);
        let first = asked.key(&journal);
        assert_eq!(table.seen(&asked, first, false), [FolderNotice::Came(journal.clone())]);
        assert_eq!(table.seen(&asked, of_folder, false), [FolderNotice::In(folder.clone())], "it is the same file");
        // The journal rotates: first the file has another name, then there is a new one.
        fs::rename(&journal, folder.join("journal-1.jsonl")).expect("renamed");
        assert_eq!(table.seen(&asked, first, true), [FolderNotice::Came(journal.clone())]);
        assert!(table.seen(&asked, first, false).is_empty(), "it is watched no more");
        fs::write(&journal, "2\n").expect("written");
        assert_eq!(table.seen(&asked, of_folder, false), both);
        assert_eq!(table.seen(&asked, asked.key(&journal), false), [FolderNotice::Came(journal.clone())]);
        // Another file is moved to its name, so that it is never missing.
        fs::write(folder.join("copy"), "3\n").expect("written");
        fs::rename(folder.join("copy"), &journal).expect("renamed");
        assert_eq!(table.seen(&asked, of_folder, false), both);
        // A folder or a pipe at its place is not opened.
        fs::remove_file(&journal).expect("removed");
        fs::create_dir(&journal).expect("made");
        assert_eq!(table.seen(&asked, of_folder, false), [FolderNotice::In(folder.clone())]);
    }
}
