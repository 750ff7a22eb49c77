//! `hosts` and `audit`: show the hosts of the fleet, and the letters that this host has sent and taken.

use super::ground::Ground;
use crate::bridge::audit::FILE as AUDIT;
use crate::bridge::folder::FleetFolder;
use crate::bridge::identity::HostFile;
use crate::bridge::members_file;
use crate::bridge::settings::rights_in_words;
use crate::cli::CliSession;
use crate::cli::error::CliError;
use crate::cli::hosts;
use crate::cli::output::Tone;
use crate::contract::HostState;
use crate::core::text::sanitise;
use clap::Args;
use serde_json::{Value, json};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// How much of the end of the audit file is read, in bytes.
const MOST_AUDIT: u64 = 4 << 20;

/// `audit`.
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// How many of the last lines to show.
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: usize,
}

/// Lists the members of the fleet, and what is known of each.
pub(super) fn list(session: &CliSession) -> Result<(), CliError> {
    let ground = Ground::open(session)?;
    let host = HostFile::load(&ground.folder)?.ok_or_else(hosts::no_fleet)?;
    let fleet = host.fleet.ok_or_else(hosts::no_fleet)?;
    let members = members_file::load(&ground.folder, &fleet.key, &fleet.name)?;
    let seen = hosts::all(&session.home)?;
    session.warn(&seen.unread);
    let (mut rows, mut tones, mut all) = (Vec::new(), Vec::new(), Vec::<Value>::new());
    for member in &members.members {
        let view = seen.hosts.iter().find(|view| view.host == member.name.as_str());
        let state = view.map_or(HostState::Unknown, |view| seen.state(view));
        let told = view.map(|view| view.told_at.clone()).unwrap_or_default();
        let is_own = member.name == host.name;
        let rights =
            if is_own { "this host".to_owned() } else { rights_in_words(&ground.settings.accept, &member.name) };
        let agents = view.map_or_else(|| "-".to_owned(), |view| view.agents.len().to_string());
        let version = view.map_or_else(|| "-".to_owned(), |view| view.version.clone());
        let told_at = if told.is_empty() { "never".to_owned() } else { session.out.when(&told) };
        let journal = view.map(|view| view.journal.clone()).unwrap_or_default();
        let last = journal.last().map_or_else(
            || "-".to_owned(),
            |event| format!("{}, {}", sanitise(&event.r#type), session.out.when(&event.at)),
        );
        let state_word = state.as_str().to_owned();
        rows.push(vec![member.name.to_string(), state_word, told_at, agents, version, last, rights.clone()]);
        tones.push(if state == HostState::Live { Tone::Plain } else { Tone::Faint });
        all.push(json!({
            "host": member.name, "home_id": member.home_id, "admitted_at": member.admitted_at, "state": state.as_str(),
            "told_at": told, "own": is_own, "accepts": rights, "journal": journal,
        }));
    }
    if session.out.is_json() {
        return session.out.document(&json!({"fleet": fleet.name, "version": members.version, "hosts": all}));
    }
    if !seen.is_fresh {
        session.out.note("This host's own bridge does not run, or reaches no server: what is shown may be old.");
    }
    session.out.toned(&["HOST", "STATE", "TOLD", "AGENTS", "VERSION", "LAST EVENT", "MAY ASK US FOR"], &rows, &tones)
}

/// Prints the last lines of the audit.
pub(super) fn audit(session: &CliSession, args: &AuditArgs) -> Result<(), CliError> {
    let ground = Ground::open(session)?;
    let lines = last_lines(&ground.folder, args.limit)?;
    if session.out.is_json() {
        return lines.iter().try_for_each(|line| session.out.record(line));
    }
    let word = |line: &Value, name: &str| sanitise(line[name].as_str().unwrap_or_default());
    let row = |line: &Value| {
        let at = session.out.when(&word(line, "at"));
        vec![at, word(line, "dir"), word(line, "host"), word(line, "kind"), word(line, "status"), word(line, "id")]
    };
    let rows: Vec<Vec<String>> = lines.iter().map(row).collect();
    if rows.is_empty() {
        session.out.note("No letter was sent or taken yet.");
        return Ok(());
    }
    session.out.table(&["AT", "WAY", "HOST", "KIND", "STATUS", "ID"], &rows)
}

/// The last lines of the audit, the oldest first. Of the former files, the newest is read, and only if the present one
/// has too few: it may have begun a moment ago.
fn last_lines(folder: &FleetFolder, limit: usize) -> Result<Vec<Value>, CliError> {
    let mut lines = end_of(&folder.path("", AUDIT))?;
    if lines.len() < limit {
        lines.splice(..0, end_of(&folder.path("", &format!("{AUDIT}.1")))?);
    }
    lines.drain(..lines.len().saturating_sub(limit));
    Ok(lines)
}

/// The lines at the end of a file; none if there is no such file.
fn end_of(path: &Path) -> Result<Vec<Value>, CliError> {
    let failed = |error: &std::io::Error| CliError::file("Can't read", path, error);
    let (mut file, meta) = match crate::files::open(path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(&error)),
    };
    file.seek(SeekFrom::Start(meta.file_stamp.size.saturating_sub(MOST_AUDIT))).map_err(|error| failed(&error))?;
    let mut bytes = Vec::new();
    file.take(MOST_AUDIT).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::super::super::folder::of_test;
    use super::*;

    #[test]
    fn a_file_that_has_just_begun_does_not_hide_the_lines_before_it() {
        let (_dir, _, folder) = of_test();
        let seqs = |limit: usize| {
            let lines = last_lines(&folder, limit).expect("read");
            lines.iter().map(|line| line["seq"].as_u64().expect("a number")).collect::<Vec<_>>()
        };
        assert!(seqs(5).is_empty(), "there is no file");
        std::fs::write(folder.path("", "audit.jsonl.1"), "{\"seq\":1}\n{\"seq\":2}\n").expect("written");
        assert_eq!(seqs(5), [1, 2]);
        std::fs::write(folder.path("", AUDIT), "{\"seq\":3}\n").expect("written");
        assert_eq!((seqs(5), seqs(2), seqs(1)), (vec![1, 2, 3], vec![2, 3], vec![3]));
    }
}
