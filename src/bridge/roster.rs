//! What this host tells the others of itself, read from the views that its sidecar writes.

use super::personas::{FILES, MOST};
use super::settings::ShowSettings;
use crate::cli::error::CliError;
use crate::cli::view::{self, ViewFile};
use crate::config::Home;
use crate::contract::fleet::{
    HostAgent, HostError, HostEvent, HostHandoff, HostPersona, HostSidecar, MOST_ENDED, MOST_EVENTS, SidecarWord,
};
use crate::contract::{AgentView, ErrorFile, HandoffView, JournalLine};
use crate::core::text::sha256;
use crate::core::time::{Now, millis};
use crate::fleet::Roster;
use crate::fleet::roster::{MOST_ENTRIES, Teller};
use crate::spool::client::{SidecarPresence, sidecar_alive};
use crate::spool::journal::last_whole_line;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Seek, SeekFrom};

/// How much of the journal's end is read, in bytes.
const MOST_TAIL: u64 = 64 << 10;
/// For how long a handoff that has ended is in the roster, in milliseconds.
const A_DAY_MS: i64 = 24 * 3_600_000;

/// The entries of a roster.
#[derive(Debug, Clone, Default, PartialEq)]
struct Entries {
    sidecar: HostSidecar,
    agents: Vec<HostAgent>,
    handoffs: Vec<HostHandoff>,
    errors: Vec<HostError>,
    personas: Vec<HostPersona>,
    journal: Vec<HostEvent>,
}

/// Reads the views, and remembers what was read last.
#[derive(Debug, Default)]
pub(super) struct RosterSource {
    last: Entries,
    /// What could not be read at the last look. The log says so once.
    unread: Option<String>,
}

impl RosterSource {
    /// Reads the views. Returns whether something has changed since the last time. Of a folder that is there and can't
    /// be read, such as while no file can be opened, the roster keeps what was read before.
    pub(super) fn refresh(&mut self, home: &Home, show: &ShowSettings, now: &Now) -> bool {
        let (hide, last, mut unread) = (&show.hide, &self.last, None);
        let mut entries = Entries {
            sidecar: sidecar(home, &last.sidecar, now),
            agents: or_last(agents(home, hide), &last.agents, &mut unread),
            handoffs: or_last(handoffs(home, hide, now), &last.handoffs, &mut unread),
            errors: or_last(errors(home), &last.errors, &mut unread),
            personas: or_last(personas(home, hide), &last.personas, &mut unread),
            journal: if show.journal { or_last(events(home), &last.journal, &mut unread) } else { Vec::new() },
        };
        if unread != self.unread {
            self.unread = unread;
            if let Some(what) = &self.unread {
                tracing::warn!("{what}; other hosts are still told what was there before");
            }
        }
        // While the folder of the agents' views is not there, the roster keeps the last agents.
        if entries.agents.is_empty() && !home.agent_views().is_dir() {
            entries.agents.clone_from(&self.last.agents);
        }
        let is_new = entries != self.last;
        self.last = entries;
        is_new
    }

    /// The roster with the entries that were read last. `n`: its number.
    pub(super) fn roster(&self, teller: Teller, n: u64, home: &Home) -> Roster {
        let Entries { sidecar, agents, handoffs, errors, personas, journal } = self.last.clone();
        let mut roster = Roster::new(teller, n, journal_seq(home).unwrap_or_default(), sidecar);
        (roster.agents, roster.handoffs, roster.errors, roster.personas) = (agents, handoffs, errors, personas);
        roster.journal = journal;
        roster
    }
}

/// What was read; or else what was read before, and `unread` says why.
fn or_last<T: Clone>(read: Result<Vec<T>, CliError>, last: &[T], unread: &mut Option<String>) -> Vec<T> {
    read.unwrap_or_else(|error| {
        *unread = Some(error.message);
        last.to_vec()
    })
}

/// The number of the last line in the home's journal; none if there is no journal, or it can't be read.
pub(super) fn journal_seq(home: &Home) -> Option<u64> {
    let opened = crate::files::open(&home.spool().join("journal.jsonl")).ok();
    opened.and_then(|(mut file, _)| last_whole_line(&mut file).ok()?.1)
}

/// The number of the last line in the home's journal from before a time. `wall_ms`: this time, in milliseconds since
/// 1970. None if there is no such line in the last 64 KiB of the journal.
pub(super) fn journal_seq_before(home: &Home, wall_ms: i64) -> Option<u64> {
    let is_before = |line: &JournalLine| millis(&line.at).is_some_and(|at| at < wall_ms);
    last_lines(&journal_tail(home).unwrap_or_default()).find(is_before).map(|line| line.seq)
}

/// The last lines of the journal, the oldest first: only number, time and type of each.
fn events(home: &Home) -> Result<Vec<HostEvent>, CliError> {
    let one = |line: JournalLine| HostEvent { seq: line.seq, at: line.at, r#type: line.r#type.as_str().to_owned() };
    let mut events: Vec<HostEvent> = last_lines(&journal_tail(home)?).take(MOST_EVENTS).map(one).collect();
    events.reverse();
    Ok(events)
}

/// The end of the journal; nothing if there is no journal.
fn journal_tail(home: &Home) -> Result<Vec<u8>, CliError> {
    let path = home.spool().join("journal.jsonl");
    let (mut file, meta) = match crate::files::open(&path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CliError::file("Can't read", &path, &error)),
    };
    let from = meta.file_stamp.size.saturating_sub(MOST_TAIL);
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(from)).and_then(|_| file.take(MOST_TAIL).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|error| CliError::file("Can't read", &path, &error))
}

/// The lines in the end of a journal, the newest first.
fn last_lines(tail: &[u8]) -> impl Iterator<Item = JournalLine> {
    // The bytes after the last line feed are a line that is still being written. The first line may be cut off: it is
    // not valid JSON then, and is left out.
    let whole = tail.rsplit(|byte| *byte == b'\n').skip(1);
    whole.filter_map(|line| serde_json::from_slice::<JournalLine>(line).ok())
}

fn sidecar(home: &Home, before: &HostSidecar, now: &Now) -> HostSidecar {
    let state = match sidecar_alive(home.root(), now) {
        SidecarPresence::Alive { .. } => SidecarWord::Runs,
        SidecarPresence::Stale { .. } | SidecarPresence::None => SidecarWord::Away,
    };
    if before.state == state { before.clone() } else { HostSidecar { state: state.into(), since: now.rfc3339() } }
}

fn is_shown(persona: &str, hide: &[String]) -> bool {
    !hide.iter().any(|hidden| hidden == persona)
}

fn agents(home: &Home, hide: &[String]) -> Result<Vec<HostAgent>, CliError> {
    let views: Vec<ViewFile<AgentView>> = view::readable(&home.agent_views())?;
    let one = |agent: &ViewFile<AgentView>| {
        let told = HostAgent::from(&**agent);
        HostAgent { persona: told.persona.clone().filter(|persona| is_shown(persona, hide)), ..told }
    };
    // `view::readable` sorts by file name, so the agents are in the order of their ids.
    Ok(views.iter().filter(|agent| agent.is_living()).map(one).collect())
}

/// The open handoffs, then the last ended handoffs. Both begin with the handoff whose view changed last.
fn handoffs(home: &Home, hide: &[String], now: &Now) -> Result<Vec<HostHandoff>, CliError> {
    let views: Vec<ViewFile<HandoffView>> = view::latest_readable(&home.handoff_views(), MOST_ENTRIES)?;
    let is_recent = |told: &HostHandoff| millis(&told.since).is_some_and(|at| now.wall_ms - at <= A_DAY_MS);
    let one = |handoff: &ViewFile<HandoffView>| {
        let told = HostHandoff::from(&**handoff);
        HostHandoff { persona: told.persona.clone().filter(|persona| is_shown(persona, hide)), ..told }
    };
    let (open, ended): (Vec<_>, Vec<_>) = views.iter().map(one).partition(HostHandoff::is_open);
    Ok(open.into_iter().chain(ended.into_iter().filter(is_recent).take(MOST_ENDED)).collect())
}

fn errors(home: &Home) -> Result<Vec<HostError>, CliError> {
    let files: Vec<ViewFile<ErrorFile>> = view::latest_readable(&home.errors(), MOST_ENTRIES)?;
    Ok(files.iter().map(|error| HostError::from(&**error)).collect())
}

/// The personas of this home, without those that the settings hide.
///
/// # Errors
/// Their folder is there and can't be read.
pub(super) fn personas(home: &Home, hide: &[String]) -> Result<Vec<HostPersona>, CliError> {
    let entries = match std::fs::read_dir(home.personas()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CliError::file("Can't read", &home.personas(), &error)),
    };
    let slugs: BTreeSet<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|slug| slug.parse::<crate::core::id::Slug>().is_ok() && !hide.contains(slug))
        .take(MOST_ENTRIES)
        .collect();
    let one = |slug: String| Some(HostPersona { sha256: persona_sha256(home, &slug)?, slug });
    Ok(slugs.into_iter().filter_map(one).collect())
}

/// A hash over the files of a persona that are there, each after its name and length; none if there are none.
fn persona_sha256(home: &Home, slug: &str) -> Option<String> {
    let mut all = Vec::new();
    for name in FILES {
        if let Ok(Some(bytes)) = view::read_bytes(&home.personas().join(slug).join(name), MOST) {
            all.extend_from_slice(format!("{name} {}\n", bytes.len()).as_bytes());
            all.extend_from_slice(&bytes);
        }
    }
    (!all.is_empty()).then(|| sha256(&all))
}

#[cfg(test)]
mod tests {
    use super::super::folder::of_test;
    use super::*;

    #[test]
    fn the_journal_is_shown_only_if_the_settings_say_so_and_then_only_number_time_and_type() {
        let (_dir, home, _) = of_test();
        std::fs::create_dir_all(home.spool()).expect("made");
        let line = |seq: u64| {
            format!(
                "{{\"seq\":{seq},\"at\":\"2026-11-25T12:00:00.000Z\",\"type\":\"delivery\",\"agent_id\":\"secret\"}}\n"
            )
        };
        let text: String = (1..=30).map(line).collect();
        std::fs::write(home.spool().join("journal.jsonl"), format!("{text}{{\"seq\":31,")).expect("written");
        let (mut source, now) = (RosterSource::default(), crate::clock::Clock::new().now());
        let show = |journal| ShowSettings { journal, ..ShowSettings::default() };
        source.refresh(&home, &show(false), &now);
        assert!(source.last.journal.is_empty());
        assert!(source.refresh(&home, &show(true), &now));
        let seqs: Vec<u64> = source.last.journal.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, (11..=30).collect::<Vec<_>>());
        let told = serde_json::to_string(&source.last.journal).expect("a plain value");
        assert!(told.contains("delivery") && !told.contains("secret"), "{told}");
        assert!(!source.refresh(&home, &show(true), &now), "nothing has changed");
    }

    #[test]
    fn what_can_t_be_read_is_told_as_it_was_before() {
        let (_dir, home, _) = of_test();
        let one = |folder: &std::path::Path, text: &str| {
            std::fs::create_dir_all(folder).expect("made");
            std::fs::write(folder.join("a.json"), text).expect("written");
        };
        one(&home.agent_views(), r#"{"agent_id":"a","status":"live"}"#);
        one(&home.handoff_views(), r#"{"handoff_id":"h","step":"writing"}"#);
        one(&home.errors(), r#"{"error_id":"e"}"#);
        one(&home.personas().join("kai"), "{}");
        std::fs::write(home.personas().join("kai/skill.md"), "x").expect("written");
        let line = r#"{"seq":1,"at":"2026-11-25T12:00:00.000Z","type":"delivery"}"#;
        std::fs::write(home.spool().join("journal.jsonl"), format!("{line}\n")).expect("written");
        let (mut source, now) = (RosterSource::default(), crate::clock::Clock::new().now());
        let show = ShowSettings { journal: true, ..ShowSettings::default() };
        let counts = |source: &RosterSource| {
            let Entries { agents, handoffs, errors, personas, journal, .. } = &source.last;
            [agents.len(), handoffs.len(), errors.len(), personas.len(), journal.len()]
        };
        source.refresh(&home, &show, &now);
        assert_eq!(counts(&source), [1; 5]);
        // A file in the place of a folder, and a folder in the place of a file, can't be read.
        let all = [home.agent_views(), home.handoff_views(), home.errors(), home.personas()];
        for folder in all {
            std::fs::remove_dir_all(&folder).expect("removed");
            std::fs::write(&folder, "").expect("written");
        }
        std::fs::remove_file(home.spool().join("journal.jsonl")).expect("removed");
        std::fs::create_dir(home.spool().join("journal.jsonl")).expect("made");
        assert!(!source.refresh(&home, &show, &now), "{:?}", source.last);
        assert_eq!(counts(&source), [1; 5]);
        std::fs::remove_file(home.errors()).expect("removed");
        assert!(source.refresh(&home, &show, &now), "what is not there any more is not told");
        assert_eq!(counts(&source), [1, 1, 0, 1, 1]);
    }

    #[test]
    fn the_last_journal_line_from_before_a_boot_is_found() {
        let (_dir, home, _) = of_test();
        std::fs::create_dir_all(home.spool()).expect("made");
        let at = |second: u32| format!("2026-11-25T12:00:{second:02}.000Z");
        let line = |seq: u32| format!("{{\"seq\":{seq},\"at\":{:?},\"type\":\"work\"}}\n", at(seq));
        let boot = |second: u32| millis(&at(second)).expect("a time");
        assert_eq!(journal_seq_before(&home, boot(9)), None);
        std::fs::write(home.spool().join("journal.jsonl"), (5..=30).map(line).collect::<String>()).expect("written");
        assert_eq!([5, 9, 59].map(|second| journal_seq_before(&home, boot(second))), [None, Some(8), Some(30)]);
    }
}
