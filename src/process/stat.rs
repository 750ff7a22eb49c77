//! The facts about a process, in one form for all systems.

/// What a system says of a process, as far as we need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// A letter as `ps` shows it: `Z` for a zombie, `T` for a stopped process.
    pub(super) state: u8,
    pub(super) parent: u32,
    /// The foreground group of its terminal; -1 if it has none.
    pub(super) foreground: i64,
    /// See [`crate::core::pane::Process`].
    pub(super) start_ticks: u64,
}

/// The value of an environment variable, if it is UTF-8.
#[cfg_attr(any(tasuki_portable, not(any(target_os = "linux", target_os = "macos"))), allow(dead_code))]
pub(super) fn variable<'e>(mut environ: impl Iterator<Item = &'e [u8]>, name: &str) -> Option<String> {
    let value = environ.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    String::from_utf8(value.to_vec()).ok()
}

/// The name and the value of an entry of the environment, if it is UTF-8.
#[cfg_attr(any(tasuki_portable, not(any(target_os = "linux", target_os = "macos"))), allow(dead_code))]
pub(super) fn name_and_value(entry: &[u8]) -> Option<(String, String)> {
    let (name, value) = std::str::from_utf8(entry).ok()?.split_once('=')?;
    Some((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environ = b"XTASUKI_HOME=/x\0TASUKI_HOME=/h=1\0A=b\0";
        let entries = || environ.split(|byte| *byte == 0);
        assert_eq!(variable(entries(), "TASUKI_HOME").as_deref(), Some("/h=1"));
        assert_eq!(variable(entries(), "TASUKI"), None);
        assert_eq!(name_and_value(b"TASUKI_HOME=/h=1"), Some(("TASUKI_HOME".to_owned(), "/h=1".to_owned())));
        assert_eq!(name_and_value(b"TASUKI_HOME"), None);
    }
}
