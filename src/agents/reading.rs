//! Finds in a transcript whether the agent has read a document: the proof that a successor has seen more than the text
//! that names it.

use super::profile::Profile;
use super::tool_calls::{ToolKind, calls_in};
use super::transcript::{MAX_TAIL_READ, TranscriptError, is_skipped, rules};
use super::transcript_file::{TranscriptFile, lines};
use std::path::{Component, Path, PathBuf};

/// Whether the last 1 MiB of a transcript has a tool call that reads this document, or a command that names its
/// absolute path. How the call ended does not matter. Always `false` if the profile has no rules for tool calls.
///
/// # Errors
/// As [`super::transcript::read`].
pub fn has_read(profile: &Profile, transcript: &Path, document: &Path) -> Result<bool, TranscriptError> {
    let rules = rules(profile)?;
    let Some(tools) = &rules.tools else { return Ok(false) };
    let (bytes, _) = TranscriptFile::open(transcript)?.tail(MAX_TAIL_READ)?;
    // The caller asks often, so only lines that contain the document's name are parsed.
    let name = document.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let name = unescaped_part(&name);
    let may_be = |line: &&[u8]| std::str::from_utf8(line).is_ok_and(|line| line.contains(name));
    let named = bytes.split(|byte| *byte == b'\n').filter(may_be).flat_map(lines);
    let mut calls = named.filter(|line| !is_skipped(rules, line)).flat_map(|line| calls_in(tools, &line));
    Ok(calls.any(|call| call.uses.iter().any(|(kind, target)| is_reading(*kind, target, document))))
}

/// The longest part of a name that JSON writes without an escape, even as JSON text within a JSON string.
fn unescaped_part(name: &str) -> &str {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    name.split(|c| !is_plain(c)).max_by_key(|part| part.len()).unwrap_or_default()
}

fn is_reading(kind: ToolKind, target: &str, document: &Path) -> bool {
    match kind {
        ToolKind::Read => is_path_of(Path::new(target.trim()), document),
        ToolKind::Command => {
            let path = document.to_string_lossy();
            names(target, &path) || names(&target.replace('\\', ""), &path)
        }
        ToolKind::Write => false,
    }
}

/// Whether a path, which may be relative to a folder that is not known, is that of the document.
fn is_path_of(path: &Path, document: &Path) -> bool {
    if path.is_absolute() {
        return resolved(path) == resolved(document);
    }
    let mut known = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) if name != "~" => known.push(name),
            Component::CurDir => {}
            // What is above the folder is not known.
            _ => known.clear(),
        }
    }
    known.file_name().is_some() && document.ends_with(&known)
}

/// An absolute path without `.` and `..`.
fn resolved(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut whole, component| {
        match component {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            component => whole.push(component),
        }
        whole
    })
}

/// Whether a command line has this path as a whole, and not as a part of a longer one.
fn names(command: &str, path: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
    // A longer path may also begin with `~`, a variable, a substitution, a pattern, or another host's name.
    let may_lead = |c: char| continues(c) || matches!(c, '~' | '}' | ')' | ']' | '*' | '?' | ':');
    command
        .match_indices(path)
        .any(|(at, _)| !command[at + path.len()..].starts_with(continues) && !command[..at].ends_with(may_lead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_that_of_the_document_however_it_is_written() {
        let document = Path::new("/h/o m/handoffs/a-1.md");
        for path in [
            "/h/o m/handoffs/a-1.md",
            "/h/./o m//handoffs/x/../a-1.md",
            "a-1.md",
            "./a-1.md",
            "../handoffs/a-1.md",
            "~/handoffs/a-1.md",
        ] {
            assert!(is_reading(ToolKind::Read, path, document), "{path}");
        }
        for path in ["/h/handoffs/a-1.md", "/h/o m/handoffs", "-1.md", "../other/a-1.md", "..", "", "/"] {
            assert!(!is_reading(ToolKind::Read, path, document), "{path}");
        }
        assert!(!is_reading(ToolKind::Write, "/h/o m/handoffs/a-1.md", document));
    }

    #[test]
    fn a_command_must_name_the_whole_path() {
        let document = Path::new("/h/o m/handoffs/a-1.md");
        for command in [
            "cat '/h/o m/handoffs/a-1.md'",
            "sed -n 1,9p \"/h/o m/handoffs/a-1.md\"; ls",
            r"cat /h/o\ m/handoffs/a-1.md|head",
            "python3 -c \"print(open('/h/o m/handoffs/a-1.md').read())\"",
            "bat --file='/h/o m/handoffs/a-1.md'",
            "while read -r line; do echo; done <\"/h/o m/handoffs/a-1.md\"",
        ] {
            assert!(is_reading(ToolKind::Command, command, document), "{command}");
        }
        for command in [
            "cat a-1.md",
            "cat '/h/o m/handoffs/a-1.md.bak'",
            "cat '/h/o m/handoffs/a-1.mdx'",
            "cat '/h/o m/handoffs/a-1.mdé'",
            "cat '/mnt/backup/h/o m/handoffs/a-1.md'",
            "cat '/mnt/日本/h/o m/handoffs/a-1.md'",
            "cat \"$HOME/h/o m/handoffs/a-1.md\"",
            "cat \"${ROOT}/h/o m/handoffs/a-1.md\"",
            "cat \"$(pwd)/h/o m/handoffs/a-1.md\"",
            "scp 'host:/h/o m/handoffs/a-1.md' .",
        ] {
            assert!(!is_reading(ToolKind::Command, command, document), "{command}");
        }
    }

    #[test]
    fn the_part_of_a_name_that_json_never_escapes_is_looked_for() {
        assert_eq!(unescaped_part("20261121T200000-6f1c3a52.md"), "20261121T200000-6f1c3a52.md");
        assert_eq!(unescaped_part("ein \"Übergabe\".md"), "bergabe");
        assert_eq!(unescaped_part("引き継ぎ"), "");
    }
}
