//! What this host tells the others of itself, read from the views that its sidecar writes.

use super::personas::{FILES, MOST};
use super::settings::ShowSettings;
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
use std::io::{Read, Seek, SeekFrom};

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
}

impl RosterSource {
    /// Reads the views. Returns whether something has changed since the last time.
    pub(super) fn refresh(&mut self, home: &Home, show: &ShowSettings, now: &Now) -> bool {
        let hide = &show.hide;
        let mut entries = Entries {
            sidecar: sidecar(home, &self.last.sidecar, now),
            agents: agents(home, hide),
            handoffs: handoffs(home, hide, now),
            errors: errors(home),
            personas: personas(home, hide),
            journal: if show.journal { events(home) } else { Vec::new() },
        };
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

/// The number of the last line in the home's journal; none if there is no journal, or it can't be read.
pub(super) fn journal_seq(home: &Home) -> Option<u64> {
    let opened = crate::files::open(&home.spool().join("journal.jsonl")).ok();
    opened.and_then(|(mut file, _)| last_whole_line(&mut file).ok()?.1)
}

/// The number of the last line in the home's journal from before a time. `wall_ms`: this time, in milliseconds since
/// 1970. None if there is no such line in the last 64 KiB of the journal.
pub(super) fn journal_seq_before(home: &Home, wall_ms: i64) -> Option<u64> {
    let is_before = |line: &JournalLine| millis(&line.at).is_some_and(|at| at < wall_ms);
    last_lines(&journal_tail(home)).find(is_before).map(|line| line.seq)
}

/// The last lines of the journal, the oldest first: only number, time and type of each.
fn events(home: &Home) -> Vec<HostEvent> {
    let one = |line: JournalLine| HostEvent { seq: line.seq, at: line.at, r#type: line.r#type.as_str().to_owned() };
    let mut events: Vec<HostEvent> = last_lines(&journal_tail(home)).take(MOST_EVENTS).map(one).collect();
    events.reverse();
    events
}

/// The end of the journal; nothing if it can't be read.
fn journal_tail(home: &Home) -> Vec<u8> {
    let Ok((mut file, meta)) = crate::files::open(&home.spool().join("journal.jsonl")) else { return Vec::new() };
    let from = meta.file_stamp.size.saturating_sub(MOST_TAIL);
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(from)).and_then(|_| file.take(MOST_TAIL).read_to_end(&mut bytes));
    read.map(|_| bytes).unwrap_or_default()
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

fn agents(home: &Home, hide: &[String]) -> Vec<HostAgent> {
    let views: Vec<ViewFile<AgentView>> = view::all(&home.agent_views()).unwrap_or_default();
    let one = |agent: &ViewFile<AgentView>| {
        let told = HostAgent::from(&**agent);
        HostAgent { persona: told.persona.clone().filter(|persona| is_shown(persona, hide)), ..told }
    };
    // `view::all` sorts by file name, so the agents are in the order of their ids.
    views.iter().filter(|agent| agent.is_living()).map(one).collect()
}

/// The open handoffs, then the last ended handoffs. Both begin with the handoff whose view changed last.
fn handoffs(home: &Home, hide: &[String], now: &Now) -> Vec<HostHandoff> {
    let views: Vec<ViewFile<HandoffView>> = view::latest(&home.handoff_views(), MOST_ENTRIES).unwrap_or_default();
    let is_recent = |told: &HostHandoff| millis(&told.since).is_some_and(|at| now.wall_ms - at <= A_DAY_MS);
    let one = |handoff: &ViewFile<HandoffView>| {
        let told = HostHandoff::from(&**handoff);
        HostHandoff { persona: told.persona.clone().filter(|persona| is_shown(persona, hide)), ..told }
    };
    let (open, ended): (Vec<_>, Vec<_>) = views.iter().map(one).partition(HostHandoff::is_open);
    open.into_iter().chain(ended.into_iter().filter(is_recent).take(MOST_ENDED)).collect()
}

fn errors(home: &Home) -> Vec<HostError> {
    let files: Vec<ViewFile<ErrorFile>> = view::latest(&home.errors(), MOST_ENTRIES).unwrap_or_default();
    files.iter().map(|error| HostError::from(&**error)).collect()
}

/// The personas of this home, without those that the settings hide.
pub(super) fn personas(home: &Home, hide: &[String]) -> Vec<HostPersona> {
    let Ok(entries) = std::fs::read_dir(home.personas()) else { return Vec::new() };
    let slugs: BTreeSet<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|slug| slug.parse::<crate::core::id::Slug>().is_ok() && !hide.contains(slug))
        .take(MOST_ENTRIES)
        .collect();
    let one = |slug: String| Some(HostPersona { sha256: persona_sha256(home, &slug)?, slug });
    slugs.into_iter().filter_map(one).collect()
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
