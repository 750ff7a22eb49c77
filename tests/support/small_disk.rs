//! A small file system of its own for one test: nobody else sees it, and it goes with the test.

use super::tally;
#[cfg(target_os = "linux")]
use nix::mount::{MntFlags, MsFlags, mount, umount2};
#[cfg(target_os = "linux")]
use nix::sched::{CloneFlags, unshare};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Gives this thread, and the programs that it starts, a view of their own of what is mounted where. Counts what is
/// skipped if that is not allowed.
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

/// Nobody comes here: see [`has_mounts_of_its_own`].
#[cfg(not(target_os = "linux"))]
fn mount_over(path: &Path, options: &str) {
    panic!("only Linux mounts {options} over {}", path.display());
}

/// A tmpfs over a folder.
pub(crate) struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts it over a folder, with options such as `size=6m` or `nr_inodes=300`.
    pub(crate) fn over(path: &Path, options: &str) -> SmallDisk {
        let options = format!("mode=0700,{options}");
        mount_over(path, &options);
        SmallDisk { path: path.to_owned() }
    }

    fn filler(&self) -> PathBuf {
        self.path.join(".filler")
    }

    /// Takes every block that is left. Again and again it takes what was freed in between.
    pub(crate) fn fill_blocks(&self) {
        let file = File::options().create(true).append(true).open(self.filler());
        let mut file = file.expect("a filler");
        while file.write_all(&[b'x'; 4096]).is_ok() {}
    }

    /// The same with inodes.
    pub(crate) fn fill_inodes(&self) {
        let _ = fs::create_dir(self.filler());
        let mut number = 0;
        while File::create(self.filler().join(number.to_string())).is_ok() {
            number += 1;
        }
    }

    /// Makes room again.
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
