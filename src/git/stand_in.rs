//! A stand-in for a repository's git directory. Its objects, branches, index and exclusions are those of the
//! repository, but its configuration is written by tasuki.
//!
//! A configuration can name programs in dozens of places: monitors of the file system, filters, drivers for diff and
//! merge, hooks, pagers, addresses of remotes from which a missing object would be fetched. A list of all of them would
//! be out of date with the next version of git, and a process in the repository could change the file between a look
//! at it and its use. So calls that look at files and objects never read that file, and nothing in it has an effect: an
//! attribute may name a filter, but nothing says which program the filter is.

use super::index::{copy_shared_part, is_sparse};
use super::settings::{ConfiguredUpstream, CopiedSettings};
use crate::files;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// How the names of the temporary folders begin.
const PREFIX: &str = "tasuki-git-";
/// The settings that let git read a sparse index as it is.
const SPARSE_INDEX: &str = "[core]\nsparseCheckout = true\nsparseCheckoutCone = true\n[index]\nsparse = true\n";

/// The folders in which git keeps a repository.
#[derive(Debug, Clone)]
pub(super) struct GitDirs {
    /// Of this work tree: HEAD and index.
    pub own: PathBuf,
    /// Of all work trees of the repository: objects and branches. Usually the same.
    pub common: PathBuf,
}

/// What a stand-in is made from.
#[derive(Debug, Clone)]
pub(super) struct StandInPlan {
    pub dirs: GitDirs,
    /// What the file `HEAD` holds: a hash, or the branch that has no commit yet.
    pub head: Vec<u8>,
    /// As git names it: `sha1` or `sha256`.
    pub object_format: &'static str,
    pub has_work_tree: bool,
    pub settings: CopiedSettings,
    pub upstream: ConfiguredUpstream,
}

/// Two git directories of links in a temporary folder, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct StandIn {
    folder: TempDir,
}

impl StandIn {
    /// Makes the stand-in. Some of its links may lead nowhere; for git, such a file does not exist.
    ///
    /// # Errors
    /// If the temporary folder can't be made or written.
    pub(super) fn make(plan: &StandInPlan) -> io::Result<StandIn> {
        let folder = files::temporary(|at| tempfile::Builder::new().prefix(PREFIX).tempdir_in(at))?;
        let made = StandIn { folder };
        plan.make_files(&made.files())?;
        plan.make_branches(&made.branches())?;
        Ok(made)
    }

    /// The git directory for calls that look at files. It has the index, the objects and HEAD, which is a hash, or a
    /// branch that has no commit yet. It has no branches, so that git can't take a hash for the name of a branch, and
    /// so that the format of branches does not matter.
    pub(super) fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    /// The git directory for calls that look at branches. It has the branches, their logs and the objects. Its log of
    /// HEAD is that of the main work tree.
    pub(super) fn branches(&self) -> PathBuf {
        self.folder.path().join("branches")
    }
}

/// Removes the stand-ins that a sidecar has left because it was killed. Each may hold a copy of a part of an index.
pub fn remove_left_stand_ins() {
    files::remove_left_behind(PREFIX);
}

impl StandInPlan {
    fn make_files(&self, at: &Path) -> io::Result<()> {
        let (own, common) = (&self.dirs.own, &self.dirs.common);
        self.make_common(at, if is_sparse(own) { SPARSE_INDEX } else { "" })?;
        fs::create_dir(at.join("refs"))?;
        symlink(own.join("index"), at.join("index"))?;
        let info = at.join("info");
        fs::create_dir(&info)?;
        for name in ["exclude", "attributes"] {
            symlink(common.join("info").join(name), info.join(name))?;
        }
        symlink(own.join("info/sparse-checkout"), info.join("sparse-checkout"))?;
        copy_shared_part(own, at);
        Ok(())
    }

    fn make_branches(&self, at: &Path) -> io::Result<()> {
        self.make_common(at, self.settings.ref_storage())?;
        for name in ["refs", "packed-refs", "logs", "reftable"] {
            symlink(self.dirs.common.join(name), at.join(name))?;
        }
        Ok(())
    }

    fn make_common(&self, at: &Path, more: &str) -> io::Result<()> {
        fs::create_dir(at)?;
        let mut config = self.settings.text(self.has_work_tree, self.object_format, &self.upstream);
        config.extend(more.as_bytes());
        fs::write(at.join("config"), config)?;
        fs::write(at.join("HEAD"), [&self.head[..], b"\n"].concat())?;
        symlink(self.dirs.common.join("shallow"), at.join("shallow"))?;
        // If git should write an object after all, it writes it here.
        let objects = at.join("objects");
        fs::create_dir_all(objects.join("info"))?;
        let from = self.dirs.common.join("objects");
        fs::write(objects.join("info/alternates"), [from.as_os_str().as_bytes(), b"\n"].concat())
    }
}
