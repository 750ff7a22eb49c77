//! The version of tmux.

use std::fmt;

/// tmux's version, as far as features depend on it. `next-3.8` counts as 3.8, `3.3a` as 3.3; a version without a
/// number, such as `master`, counts as newer than all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    /// The `a` of 3.3a.
    pub letter: Option<char>,
}

impl Version {
    /// The oldest version that tasuki uses: older ones lack `-N`, client flags and subscriptions.
    pub const MINIMUM: Version = Version { major: 3, minor: 2, letter: None };

    /// Reads the version from tmux's own output. A missing minor number counts as 0; a version without a number counts
    /// as new enough.
    #[must_use]
    pub fn parse(text: &str) -> Version {
        let start = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
        let unnumbered = Version { major: u32::MAX, minor: 0, letter: None };
        // OpenBSD names its tmux after the system; any that still runs is new enough.
        if text.contains("openbsd") {
            return unnumbered;
        }
        let mut parts = text[start..].split('.').map(|part| {
            let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            let letter = part[end..].chars().next().filter(char::is_ascii_lowercase);
            part[..end].parse::<u32>().ok().map(|number| (number, letter))
        });
        let Some((major, _)) = parts.next().flatten() else { return unnumbered };
        let (minor, letter) = parts.next().flatten().unwrap_or_default();
        Version { major, minor, letter }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.major == u32::MAX {
            return f.write_str("unnumbered");
        }
        write!(f, "{}.{}", self.major, self.minor)?;
        self.letter.map_or(Ok(()), |letter| write!(f, "{letter}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_loosely() {
        for (text, major, minor, letter) in [
            ("3.3a", 3, 3, Some('a')),
            ("next-3.8", 3, 8, None),
            ("3.2", 3, 2, None),
            ("4", 4, 0, None),
            ("3.5-rc2", 3, 5, None),
        ] {
            assert_eq!(Version::parse(text), Version { major, minor, letter }, "{text}");
        }
        assert_eq!(Version::parse("tmux 3.3a").to_string(), "3.3a");
        assert!(Version::parse("3.3a") > Version::parse("3.3"));
        assert!(Version::parse("master") > Version::MINIMUM);
        assert!(Version::parse("openbsd-7.6") > Version::MINIMUM);
        assert!(Version::parse("3.1c") < Version::MINIMUM);
    }
}
