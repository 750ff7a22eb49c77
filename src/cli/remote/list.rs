//! `--all-hosts`: agents, handoffs and errors of all hosts of the fleet. A host that is away stays in the list, with
//! the time since it went away, so that nobody takes it for a host without agents.

use super::own;
use crate::cli::CliSession;
use crate::cli::error::CliError;
use crate::cli::hosts;
use crate::cli::names;
use crate::cli::output::{Tone, bar};
use crate::cli::view::{ViewFile, said, shown};
use crate::contract::fleet::SidecarWord;
use crate::contract::{AgentState, HostState, HostView, Step, Word};
use crate::core::text::sanitise;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

/// A host of the fleet with what is known of it at this moment.
struct ListedHost {
    view: ViewFile<HostView>,
    state: HostState,
}

/// One line of a table: the cells after HOST and SEEN, and their tone while the host is live.
struct Line {
    cells: Vec<String>,
    tone: Tone,
}

/// Lists the agents of all hosts.
///
/// # Errors
/// `no_fleet`; when the files can't be read.
pub fn agents(session: &CliSession) -> Result<(), CliError> {
    let hosts = read(session)?;
    let all = || hosts.iter().flat_map(|host| &host.view.agents);
    let ids = all().flat_map(|agent| [Some(agent.agent_id.as_str()), agent.handoff_id.as_deref()]);
    let short = names::short(ids.filter_map(said));
    let with_context = all().any(|agent| agent.context.is_some());
    let mut headings = vec!["AGENT", "PERSONA", "PROFILE", "STATE"];
    headings.extend(with_context.then_some("CONTEXT"));
    headings.extend(["HANDOFF", "SINCE"]);
    let lines = |host: &HostView| {
        let line = |agent: &crate::contract::fleet::HostAgent| {
            let id = |id: Option<&str>| id.and_then(|id| short.get(id)).cloned().unwrap_or_else(|| "-".to_owned());
            let mut cells = vec![id(Some(&agent.agent_id)), shown(agent.persona.as_deref())];
            cells.extend([shown(agent.profile.as_str()), shown(agent.state.as_str())]);
            let context = agent
                .context
                .map(|percent| format!("{} {percent:>3} %", bar(u64::from(percent), session.out.is_unicode())));
            cells.extend(with_context.then(|| context.unwrap_or_else(|| "-".to_owned())));
            cells.extend([id(agent.handoff_id.as_deref()), when(session, &agent.since)]);
            let tone = match Word::<AgentState>::from(agent.state.as_str()).known() {
                Some(AgentState::Blocked | AgentState::Lost) => Tone::Bad,
                _ => Tone::Plain,
            };
            Line { cells, tone }
        };
        host.agents.iter().map(line).collect()
    };
    print(session, &hosts, &headings, &lines)
}

/// Lists the handoffs of all hosts, at most `limit` of each host.
///
/// # Errors
/// As [`agents`].
pub fn handoffs(session: &CliSession, limit: usize) -> Result<(), CliError> {
    let hosts = read(session)?;
    let all = hosts.iter().flat_map(|host| &host.view.handoffs);
    let short = names::short(all.flat_map(|one| [one.handoff_id.as_str(), one.agent_id.as_str()]).filter_map(said));
    let lines = |host: &HostView| {
        let mut newest: Vec<_> = host.handoffs.iter().collect();
        newest.sort_by_key(|handoff| std::cmp::Reverse(&handoff.since));
        let line = |handoff: &crate::contract::fleet::HostHandoff| {
            let id = |id: &str| short.get(id).cloned().unwrap_or_else(|| "-".to_owned());
            let step = shown(handoff.step.as_str());
            let step = said(handoff.error.as_deref()).map_or_else(|| step.clone(), |code| format!("{step}: {code}"));
            let persona = shown(handoff.persona.as_deref());
            let cells =
                vec![id(&handoff.handoff_id), persona, step, when(session, &handoff.since), id(&handoff.agent_id)];
            let has_failed = Word::<Step>::from(handoff.step.as_str()) == Step::Failed;
            Line { cells, tone: if has_failed { Tone::Bad } else { Tone::Plain } }
        };
        newest.into_iter().take(limit).map(line).collect()
    };
    print(session, &hosts, &["HANDOFF", "PERSONA", "STEP", "SINCE", "AGENT"], &lines)
}

/// Lists the failures of all hosts that nobody has dismissed, at most `limit` of each host.
///
/// # Errors
/// As [`agents`].
pub fn errors(session: &CliSession, limit: usize) -> Result<(), CliError> {
    let hosts = read(session)?;
    let short =
        names::short(hosts.iter().flat_map(|host| &host.view.errors).filter_map(|one| said(one.error_id.as_str())));
    let lines = |host: &HostView| {
        let mut newest: Vec<_> = host.errors.iter().collect();
        newest.sort_by_key(|error| std::cmp::Reverse(&error.at));
        let line = |error: &crate::contract::fleet::HostError| {
            let id = short.get(&error.error_id).cloned().unwrap_or_else(|| "-".to_owned());
            Line { cells: vec![id, shown(error.code.as_str()), when(session, &error.at)], tone: Tone::Bad }
        };
        newest.into_iter().take(limit).map(line).collect()
    };
    print(session, &hosts, &["ERROR", "CODE", "AT"], &lines)
}

/// All hosts, sorted by name. This host is read from its own views.
fn read(session: &CliSession) -> Result<Vec<ListedHost>, CliError> {
    let fleet = hosts::all(&session.home)?;
    let mut unread = fleet.unread;
    let own = own::host(&session.home, &fleet.own, &mut unread)?;
    session.warn(&unread);
    let others = fleet.hosts.into_iter().filter(|host| host.host != fleet.own.as_str());
    let mut all: Vec<ListedHost> = others.map(|view| ListedHost { state: view.state(fleet.is_fresh), view }).collect();
    // This host's own views need no bridge, so this host is always live.
    all.push(ListedHost { state: HostState::Live, view: json!(own).into() });
    all.sort_by(|one, other| one.view.host.cmp(&other.view.host));
    if !fleet.is_fresh {
        session.out.note(&session.out.paint(
            Tone::Faint,
            "The bridge of this home does not run or reaches no server, so the other hosts are shown as they were last \
             seen. To start it: tasuki fleet run",
        ));
    }
    Ok(all)
}

fn print(
    session: &CliSession,
    hosts: &[ListedHost],
    headings: &[&str],
    lines: &dyn Fn(&HostView) -> Vec<Line>,
) -> Result<(), CliError> {
    if session.out.is_json() {
        return session.out.document(&json!({"hosts": hosts.iter().map(document).collect::<Vec<Value>>()}));
    }
    let now = Utc::now();
    let (mut rows, mut tones) = (Vec::new(), Vec::new());
    for host in hosts {
        let mut own = lines(&host.view);
        if own.is_empty() {
            own.push(Line { cells: vec!["-".to_owned(); headings.len()], tone: Tone::Plain });
        }
        let (name, seen) = (shown(host.view.host.as_str()), seen(&host.view, host.state, now));
        for line in own {
            let mut row = vec![name.clone(), seen.clone()];
            row.extend(line.cells);
            rows.push(row);
            tones.push(if host.state == HostState::Live { line.tone } else { Tone::Faint });
        }
    }
    let headings: Vec<&str> = ["HOST", "SEEN"].iter().chain(headings).copied().collect();
    session.out.toned(&headings, &rows, &tones)?;
    for host in hosts.iter().filter(|host| host.view.more > 0) {
        let (name, more) = (sanitise(&host.view.host), host.view.more);
        session.out.note(&format!("The roster of {name} had no room for {more} more entries."));
    }
    Ok(())
}

/// A host as `--json` prints it.
fn document(host: &ListedHost) -> Value {
    // All fields of the host's file, even if this version does not know them.
    let mut json = host.view.json();
    if let Some(fields) = json.as_object_mut() {
        fields.insert("state".to_owned(), host.state.as_str().into());
    }
    json
}

fn when(session: &CliSession, at: &str) -> String {
    said(at).map_or_else(|| "-".to_owned(), |at| session.out.when(at))
}

/// The cell SEEN: a host's state. If the host is not live, also how long ago it went away or was last seen.
fn seen(host: &HostView, state: HostState, now: DateTime<Utc>) -> String {
    let since = match state {
        HostState::Live if host.sidecar.state == SidecarWord::Away => return "live, no sidecar".to_owned(),
        HostState::Live => return state.as_str().to_owned(),
        HostState::Away => host.away_since.as_deref(),
        HostState::NotAuthentic | HostState::Unknown => Some(host.seen_at.as_str()),
    };
    let age = said(since).and_then(|since| age(since, now)).map(|age| format!(" {age}"));
    format!("{}{}", state.as_str(), age.unwrap_or_default())
}

/// How long ago a time was, in one short unit, such as `5m`.
fn age(at: &str, now: DateTime<Utc>) -> Option<String> {
    let at = DateTime::parse_from_rfc3339(at).ok()?.with_timezone(&Utc);
    Some(match (now - at).num_seconds().max(0) {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_is_shown_with_its_age() {
        let now = DateTime::parse_from_rfc3339("2026-11-25T12:10:00.000Z").expect("a time").to_utc();
        let host = HostView {
            seen_at: "2026-11-25T12:09:58.000Z".to_owned(),
            away_since: Some("2026-11-25T12:05:00.000Z".to_owned()),
            ..HostView::default()
        };
        let all = [HostState::Live, HostState::Away, HostState::NotAuthentic, HostState::Unknown];
        assert_eq!(all.map(|state| seen(&host, state, now)), ["live", "away 5m", "not authentic 2s", "unknown 2s"]);
        let mut without = host.clone();
        without.sidecar.state = SidecarWord::Away.into();
        assert_eq!(seen(&without, HostState::Live, now), "live, no sidecar");
        let silent = HostView { away_since: None, seen_at: String::new(), ..host };
        assert_eq!(all.map(|state| seen(&silent, state, now)), ["live", "away", "not authentic", "unknown"]);
    }

    #[test]
    fn an_age_has_one_unit() {
        let now = DateTime::parse_from_rfc3339("2026-11-25T12:00:00.000Z").expect("a time").to_utc();
        let ages = [
            "2026-11-25T11:59:01Z",
            "2026-11-25T11:00:01Z",
            "2026-11-25T10:00:00Z",
            "2026-11-22T10:00:00Z",
            "2026-11-26T00:00:00Z",
        ];
        assert_eq!(ages.map(|at| age(at, now).expect("a time")), ["59s", "59m", "2h", "3d", "0s"]);
        assert_eq!(age("never", now), None);
    }
}
