//! A small file system for one test: nothing outside the test sees it, and it is removed with the test.

use super::tally;
#[cfg(target_os = "linux")]
use nix::mount::{MntFlags, MsFlags, mount, umount2};
#[cfg(target_os = "linux")]
use nix::sched::{CloneFlags, unshare};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Gives this thread, and the programs that it starts, a mount namespace of their own. If that is not allowed, the test
/// counts as skipped.
pub(crate) fn has_mounts_of_its_own() -> bool {
    let allowed = nix::unistd::geteuid().is_root() && mounts_privately();
    if !allowed {
        tally::skip("a small disk is mounted by root only");
    }
    allowed
}

#[cfg(target_os = "linux")]
fn mounts_privately() -> bool {
    let private = || {
        unshare(CloneFlags::CLONE_NEWNS)?;
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
    };
    private().is_ok()
}

#[cfg(not(target_os = "linux"))]
fn mounts_privately() -> bool {
    false
}

#[cfg(target_os = "linux")]
fn mount_over(path: &Path, options: &str) {
    mount(Some("tasuki-test"), path, Some("tmpfs"), MsFlags::empty(), Some(options)).expect("a tmpfs");
}

/// Is never called: [`has_mounts_of_its_own`] is false here.
#[cfg(not(target_os = "linux"))]
fn mount_over(path: &Path, options: &str) {
    panic!("only Linux mounts {options} over {}", path.display());
}

/// A tmpfs over a folder.
pub(crate) struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts a tmpfs over a folder, with options such as `size=6m` or `nr_inodes=300`.
    pub(crate) fn over(path: &Path, options: &str) -> SmallDisk {
        let options = format!("mode=0700,{options}");
        mount_over(path, &options);
        SmallDisk { path: path.to_owned() }
    }

    fn filler(&self) -> PathBuf {
        self.path.join(".filler")
    }

    /// Takes every free block. If it is called again, it takes the blocks that were freed in between.
    pub(crate) fn fill_blocks(&self) {
        let file = File::options().create(true).append(true).open(self.filler());
        let mut file = file.expect("a filler");
        while file.write_all(&[b'x'; 4096]).is_ok() {}
    }

    /// Takes every free inode.
    pub(crate) fn fill_inodes(&self) {
        let _ = fs::create_dir(self.filler());
        let mut number = 0;
        while File::create(self.filler().join(number.to_string())).is_ok() {
            number += 1;
        }
    }

    /// Frees everything that was taken.
    pub(crate) fn make_room(&self) {
        if fs::remove_file(self.filler()).is_err() {
            fs::remove_dir_all(self.filler()).expect("the filler goes");
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        let _ = umount2(&self.path, MntFlags::MNT_DETACH);
    }
}
