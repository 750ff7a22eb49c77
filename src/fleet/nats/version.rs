//! Which versions of the server are known to be safe where others can reach them.

/// The versions that closed the known holes, as text for a person.
pub const SOUND_VERSIONS: &str = "2.11.16, 2.12.7 or 2.14.0";

/// Whether the known holes are closed in this version; none if it is not a version.
#[must_use]
pub fn is_sound(version: &str) -> Option<bool> {
    let [major, minor, patch] = numbers(version)?;
    Some(match (major, minor) {
        (2, 11) => patch >= 16,
        (2, 12) => patch >= 7,
        (2, ..=13) | (..=1, _) => false,
        _ => true,
    })
}

/// Whether this version knows `sync_interval: always`, by which a letter is on the disk before the server confirms it;
/// none if it is not a version.
#[must_use]
pub fn knows_sync_always(version: &str) -> Option<bool> {
    numbers(version).map(|[major, minor, _]| (major, minor) >= (2, 10))
}

fn numbers(version: &str) -> Option<[u32; 3]> {
    let plain = version.trim_start_matches('v').split(['-', '+']).next()?;
    let numbers: Vec<u32> = plain.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_versions_has_its_own_bound() {
        for version in ["2.11.16", "v2.11.20", "2.12.7", "2.14.0", "2.15.1", "2.15.0-RC.1", "3.0.0"] {
            assert_eq!(is_sound(version), Some(true), "{version}");
        }
        for version in ["2.9.10", "2.10.29", "2.11.15", "2.12.6", "2.13.0", "2.13.9", "1.4.1", "0.0.0"] {
            assert_eq!(is_sound(version), Some(false), "{version}");
        }
        for version in ["", "2", "2.11", "2.11.x", "2.11.16.1", "two.1.2"] {
            assert_eq!(is_sound(version), None, "{version}");
        }
    }

    #[test]
    fn versions_before_2_10_can_t_put_each_letter_on_the_disk_at_once() {
        let versions = ["2.9.10", "2.10.0", "3.0.0", "main"];
        assert_eq!(versions.map(knows_sync_always), [Some(false), Some(true), Some(true), None]);
    }
}
