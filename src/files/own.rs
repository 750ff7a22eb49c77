//! Finds a path of our own program that still leads to it after an upgrade.

use super::way::{self, Unsafe};
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// The absolute path of our own program, for what outlives this process: hooks, service files, launch lines.
///
/// Linux only says where the program's file lies, after all links. Some installers put versions beside each other, let
/// a link lead to the newest version, and remove old versions some day. So if this process was started through such a
/// link, this function returns the link's path. It returns a path other than the system's only if every user who could
/// replace what lies there could also replace the program itself.
///
/// # Errors
/// The system does not say where our program is.
pub fn own_program() -> io::Result<PathBuf> {
    let found = std::env::current_exe()?;
    let named = std::env::args_os().next().unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folder = std::env::current_dir().unwrap_or_default();
    Ok(as_started(&named, &path, &folder, &found).unwrap_or(found))
}

/// Whether two paths lead to the same file: the same inode, over links too.
#[must_use]
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    file(one).is_some_and(|one| file(other) == Some(one))
}

/// The path by which the program that lies at `found` was started. `named` is its name in the command line, `path` the
/// value of `PATH`, and `folder` the working directory. None if no such path leads to the program, or if others could
/// let that path lead elsewhere.
fn as_started(named: &OsStr, path: &OsStr, folder: &Path, found: &Path) -> Option<PathBuf> {
    let is_path = named.as_encoded_bytes().contains(&b'/');
    let folders = if is_path { vec![PathBuf::new()] } else { std::env::split_paths(path).collect() };
    let places = folders.iter().map(|of| without_dots(&folder.join(of).join(named)));
    let mut ours = places.filter(|place| place.is_absolute() && is_same_file(place, found));
    ours.find(|place| place == found || is_as_safe(place, found))
}

/// The path without `.` and `..`. After a link to a folder, `..` means another folder. Then the result leads elsewhere
/// or nowhere, and the caller does not take it.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

/// Whether others can't replace what the path `place` leads to, or those who can could also replace the program where
/// it lies. The second case is that of Homebrew: all its folders belong to one user and group, and the group may write.
fn is_as_safe(place: &Path, found: &Path) -> bool {
    match (way::trust(place), way::trust(found)) {
        (Ok(_), _) => true,
        (Err(of_place), Err(of_found)) => {
            rights(&of_place).is_some_and(|rights_there| rights(&of_found) == Some(rights_there))
        }
        (Err(_), Ok(_)) => false,
    }
}

/// The rights on the folder, link or file that makes a path untrusted: its user, its group, and the rights to write of
/// the group and of others.
fn rights(fault: &Unsafe) -> Option<(u32, u32, u32)> {
    let meta = std::fs::symlink_metadata(fault.blamed()?).ok()?;
    Some((meta.uid(), meta.gid(), meta.mode() & 0o022))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// An installation in which `bin/tasuki` leads through the link `current` to the program of one version.
    struct Installed(tempfile::TempDir);

    impl Installed {
        fn new() -> Installed {
            let dir = tempfile::tempdir().expect("a folder");
            let installed = Installed(dir);
            for folder in ["v1", "bin", "other"] {
                fs::create_dir(installed.at(folder)).expect("made");
                installed.mode(folder, 0o755);
            }
            fs::write(installed.at("v1/tasuki"), "1").expect("written");
            fs::write(installed.at("other/tasuki"), "2").expect("written");
            symlink("v1", installed.at("current")).expect("a link");
            symlink("../current/tasuki", installed.at("bin/tasuki")).expect("a link");
            installed
        }

        fn at(&self, below: &str) -> PathBuf {
            self.0.path().canonicalize().expect("it is there").join(below)
        }

        fn mode(&self, below: &str, mode: u32) {
            fs::set_permissions(self.at(below), fs::Permissions::from_mode(mode)).expect("ours");
        }

        fn started(&self, named: &str, path: &str) -> Option<PathBuf> {
            as_started(named.as_ref(), path.as_ref(), &self.at("other"), &self.at("v1/tasuki"))
        }
    }

    #[test]
    fn a_program_is_named_by_the_link_through_which_it_was_started() {
        let installed = Installed::new();
        let link = Some(installed.at("bin/tasuki"));
        assert_eq!(installed.started(&installed.at("bin/tasuki").display().to_string(), ""), link);
        assert_eq!(installed.started("../bin/./tasuki", ""), link, "from the folder in which it was started");
        let path = format!("{}:{}", installed.at("other").display(), installed.at("bin").display());
        assert_eq!(installed.started("tasuki", &path), link, "the first in the PATH that is our program");
        let by_folder = installed.at("current/tasuki");
        assert_eq!(installed.started(&by_folder.display().to_string(), ""), Some(by_folder));
        // Whatever starts a program can give it any name.
        for other in ["tasuki", "", "none/tasuki", "../other/tasuki", "../bin"] {
            assert_eq!(installed.started(other, "/no/such"), None, "{other:?}");
        }
    }

    #[test]
    fn a_link_that_others_could_replace_is_not_taken_unless_they_could_replace_the_program() {
        let installed = Installed::new();
        let link = || installed.started("../bin/tasuki", "");
        installed.mode("bin", 0o777);
        assert_eq!(link(), None);
        installed.mode("v1", 0o775);
        assert_eq!(link(), None, "everybody can replace the link, and only a group the program");
        installed.mode("bin", 0o775);
        assert_eq!(link(), Some(installed.at("bin/tasuki")));
        installed.mode("v1", 0o755);
        assert_eq!(link(), None);
    }
}
