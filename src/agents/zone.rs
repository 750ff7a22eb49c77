//! Whether a zone that a CLI names is this machine's time zone.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Where a system keeps the zones, one file for each name.
const ZONES: &str = "/usr/share/zoneinfo";

/// Whether a zone is UTC by another name.
pub(super) fn is_utc(name: &str) -> bool {
    ["UTC", "GMT", "Etc/UTC", "Etc/GMT"].iter().any(|utc| utc.eq_ignore_ascii_case(name))
}

/// Whether a zone is that of this machine. `name` holds no dots.
pub(super) fn is_here(name: &str) -> bool {
    is_zone_of(&file(), name, Path::new(ZONES))
}

/// The file that decides the zone of this process: the file of the zone that `TZ` names, else `/etc/localtime`.
fn file() -> PathBuf {
    match env::var("TZ") {
        Ok(variable) if !matches!(variable.as_str(), "localtime" | ":localtime") => {
            Path::new(ZONES).join(variable.strip_prefix(':').unwrap_or(&variable))
        }
        _ => PathBuf::from("/etc/localtime"),
    }
}

/// Old names that CLIs still print, and for which many systems have no file any more.
const RENAMED: [(&str, &str); 6] = [
    ("America/Buenos_Aires", "America/Argentina/Buenos_Aires"),
    ("Asia/Calcutta", "Asia/Kolkata"),
    ("Asia/Katmandu", "Asia/Kathmandu"),
    ("Asia/Rangoon", "Asia/Yangon"),
    ("Asia/Saigon", "Asia/Ho_Chi_Minh"),
    ("Europe/Kiev", "Europe/Kyiv"),
];

/// Whether a file is that of the zone `name`, or of the name that this zone has today.
fn is_zone_of(file: &Path, name: &str, zones: &Path) -> bool {
    let today = RENAMED.iter().find(|(old, _)| *old == name).map(|(_, today)| *today);
    std::iter::once(name).chain(today).any(|name| is_file_of(file, name, zones))
}

/// Whether a file is that of the zone `name`, links to it, or is a copy of it. Some zones have two names
/// (`Asia/Calcutta`, `Asia/Kolkata`): their files are the same.
fn is_file_of(file: &Path, name: &str, zones: &Path) -> bool {
    let is_named =
        |path: &Path| path.to_str().and_then(|path| path.split_once("/zoneinfo/")).is_some_and(|(_, of)| of == name);
    is_named(file)
        || fs::read_link(file).is_ok_and(|target| is_named(&target))
        || fs::read(file).is_ok_and(|rules| fs::read(zones.join(name)).is_ok_and(|others| others == rules))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_zone_is_known_by_its_name_by_a_link_and_by_its_rules() {
        let dir = tempfile::tempdir().expect("a folder");
        let (zones, local) = (dir.path(), dir.path().join("localtime"));
        for (name, rules) in [("Kolkata", "a"), ("Calcutta", "a"), ("Tokyo", "b")] {
            fs::write(zones.join(name), rules).expect("written");
        }
        assert!(is_zone_of(Path::new("/no/zoneinfo/Asia/Tokyo"), "Asia/Tokyo", zones), "the name in TZ");
        assert!(!is_zone_of(Path::new("/no/zoneinfo/Asia/Tokyo"), "Asia/Seoul", zones));
        assert!(is_zone_of(Path::new("/no/zoneinfo/Asia/Kolkata"), "Asia/Calcutta", zones), "its name of before");
        assert!(!is_zone_of(&local, "Tokyo", zones), "the machine has no zone");
        // As on Linux and on macOS.
        for folder in ["/no", "../var/db/timezone"] {
            symlink(format!("{folder}/zoneinfo/America/Los_Angeles"), &local).expect("linked");
            assert!(is_zone_of(&local, "America/Los_Angeles", zones), "{folder}");
            assert!(!is_zone_of(&local, "Los_Angeles", zones) && !is_zone_of(&local, "Tokyo", zones));
            fs::remove_file(&local).expect("removed");
        }
        fs::write(&local, "a").expect("a copy");
        let is_here = |name: &str| is_zone_of(&local, name, zones);
        assert!(is_here("Kolkata") && is_here("Calcutta"));
        assert!(!is_here("Tokyo") && !is_here("Nowhere") && !is_here(""));
    }
}
