//! The few settings of a repository that tasuki copies, and the configuration file that it makes of them. Nothing in
//! that configuration file names a program or an address to call, and the only file that it names is the user's own
//! list of ignored files. tasuki checks each value. Calls that look at files read no other setting of the repository.

use super::words::plain_line;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// The names of the settings that `git config --get-regexp` prints.
pub(super) const WANTED: &str = concat!(
    r"^(core\.(autocrlf|checkstat|eol|filemode|ignorecase|precomposeunicode|protecthfs|protectntfs|sparsecheckout",
    r"|sparsecheckoutcone|symlinks|trustctime)|extensions\..*|remote\..*\.(url|fetch))$"
);

/// Extensions of the repository format that change nothing about how files, index and objects are read.
const HARMLESS: [&str; 7] = [
    "noop",
    "noop-v1",
    "partialclone",
    "preciousobjects",
    "relativeworktrees",
    "submodulepathconfig",
    "worktreeconfig",
];
/// Longest value of a setting of `core`; they are words such as `true` or `input`.
const MAX_WORD: usize = 10;
/// Most `fetch` rules of one remote, which say where its branches are kept.
const MAX_RULES: usize = 20;

/// A remote repository, as the configuration names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Remote {
    pub name: Vec<u8>,
    /// As it was written, with whatever credentials it holds.
    pub url: Option<Vec<u8>>,
    /// Where its branches are kept, such as `+refs/heads/*:refs/remotes/origin/*`.
    pub fetch: Vec<Vec<u8>>,
}

/// The settings that tasuki copies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CopiedSettings {
    /// Names and values in the section `core`.
    core: Vec<(String, String)>,
    /// Branches are kept in the format `reftable`.
    pub reftable: bool,
    pub remotes: Vec<Remote>,
    /// The user's own file of patterns for files that are ignored; it is not the repository's.
    pub ignored: Option<PathBuf>,
}

/// The upstream of the current branch, as the configuration names it.
#[derive(Debug, Clone, Default)]
pub(super) struct ConfiguredUpstream {
    pub branch: Vec<u8>,
    /// The name of a remote, or `.` for this repository.
    pub remote: Option<Vec<u8>>,
    /// The name of the branch there.
    pub merge: Option<Vec<u8>>,
}

impl CopiedSettings {
    /// Reads the output of `git config -z --get-regexp`.
    ///
    /// # Errors
    /// A sentence, if the repository has a format that tasuki does not know.
    pub(super) fn read(printed: &[u8]) -> Result<CopiedSettings, String> {
        let mut copied = CopiedSettings::default();
        for entry in printed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let end = entry.iter().position(|byte| *byte == b'\n');
            // A name alone means true.
            let (key, value) = end.map_or((entry, &b"true"[..]), |end| (&entry[..end], &entry[end + 1..]));
            if let Some(name) = key.strip_prefix(b"core.") {
                copied.note_core(name, value);
            } else if let Some(name) = key.strip_prefix(b"extensions.") {
                copied.note_extension(name, value)?;
            } else if let Some(rest) = key.strip_prefix(b"remote.") {
                copied.note_remote(rest, value);
            }
        }
        Ok(copied)
    }

    fn note_core(&mut self, name: &[u8], value: &[u8]) {
        let is_word = |bytes: &[u8]| !bytes.is_empty() && bytes.iter().all(u8::is_ascii_alphanumeric);
        if is_word(name) && is_word(value) && value.len() <= MAX_WORD {
            let [name, value] = [name, value].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            self.core.push((name, value));
        }
    }

    fn note_extension(&mut self, name: &[u8], value: &[u8]) -> Result<(), String> {
        match (name, value) {
            (b"refstorage", b"reftable") => self.reftable = true,
            (b"refstorage", b"files") => {}
            // Git itself says which format the objects have.
            (b"objectformat" | b"compatobjectformat", _) => {}
            _ if HARMLESS.iter().any(|known| known.as_bytes() == name) => {}
            _ => {
                let [name, value] = [name, value].map(|bytes| plain_line(bytes, 40));
                return Err(format!("the repository's format has the extension {name} = {value}, unknown to tasuki"));
            }
        }
        Ok(())
    }

    fn note_remote(&mut self, rest: &[u8], value: &[u8]) {
        let Some(dot) = rest.iter().rposition(|byte| *byte == b'.') else { return };
        let (name, variable) = (&rest[..dot], &rest[dot + 1..]);
        let at = self.remotes.iter().position(|remote| remote.name == name).unwrap_or_else(|| {
            self.remotes.push(Remote { name: name.to_vec(), ..Remote::default() });
            self.remotes.len() - 1
        });
        let remote = &mut self.remotes[at];
        match variable {
            // Git fetches from the first of several addresses.
            b"url" if remote.url.is_none() => remote.url = Some(value.to_vec()),
            b"fetch" if remote.fetch.len() < MAX_RULES => remote.fetch.push(value.to_vec()),
            _ => {}
        }
    }

    /// The remote that the branch follows, else `origin`, else the first.
    pub(super) fn remote(&self, upstream: &ConfiguredUpstream) -> Option<&Remote> {
        let named = |name: &[u8]| self.remotes.iter().find(|remote| remote.name == name);
        let followed = upstream.remote.as_deref().and_then(named);
        followed.or_else(|| named(b"origin")).or_else(|| self.remotes.first())
    }

    /// The text of a configuration file. `object_format`: as git names it.
    pub(super) fn text(&self, has_work_tree: bool, object_format: &str, upstream: &ConfiguredUpstream) -> Vec<u8> {
        let mut lines = Vec::new();
        let mut line = |parts: &[&[u8]]| {
            lines.extend(parts.concat());
            lines.push(b'\n');
        };
        line(&[b"[core]\nrepositoryFormatVersion = 1"]);
        line(&[b"bare = ", if has_work_tree { b"false" } else { b"true" }]);
        for (name, value) in &self.core {
            line(&[name.as_bytes(), b" = ", value.as_bytes()]);
        }
        if let Some(path) = self.ignored.as_ref().and_then(|path| quoted(path.as_os_str().as_bytes())) {
            line(&[b"excludesFile = ", &path]);
        }
        line(&[b"[extensions]\nobjectFormat = ", object_format.as_bytes()]);
        let section = [(&b"remote"[..], &upstream.remote), (&b"merge"[..], &upstream.merge)];
        if let Some(branch) = quoted(&upstream.branch) {
            line(&[b"[branch ", &branch, b"]"]);
            for (name, value) in section.iter().filter_map(|(name, value)| Some((name, quoted(value.as_deref()?)?))) {
                line(&[name, b" = ", &value]);
            }
        }
        let followed = self.remotes.iter().find(|remote| upstream.remote.as_ref() == Some(&remote.name));
        if let Some((remote, name)) = followed.and_then(|remote| Some((remote, quoted(&remote.name)?))) {
            line(&[b"[remote ", &name, b"]"]);
            remote.fetch.iter().filter_map(|rule| quoted(rule)).for_each(|rule| line(&[b"fetch = ", &rule]));
        }
        lines
    }

    /// What the stand-in for branches (`StandIn::branches`) needs in its configuration file in addition: the format in
    /// which branches are kept.
    pub(super) fn ref_storage(&self) -> &'static str {
        if self.reftable { "[extensions]\nrefStorage = reftable\n" } else { "" }
    }
}

/// A text as a configuration file quotes it; none for a text that could end its line, or is empty.
fn quoted(text: &[u8]) -> Option<Vec<u8>> {
    if text.is_empty() || text.iter().any(u8::is_ascii_control) {
        return None;
    }
    let mut quoted = vec![b'"'];
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    Some(quoted)
}
