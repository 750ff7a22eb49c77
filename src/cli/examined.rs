//! The lines about a handoff's document, made from the handoff's view: the check and its faults, the facts, the chain,
//! and the commands by which a person decides. Pure.

use super::home_option;
use super::names::can_be_id;
use super::output::{one_line, short_text};
use super::view::{self, said};
use crate::contract::facts::{ActionFacts, CommandFacts, RepositoryFacts};
use crate::contract::{DocumentFault, Facts, HandoffView};

/// The most characters that a line shows of one fact.
const LONGEST: usize = 160;
/// How many changed files a line names.
const MOST_FILES: usize = 4;
/// How many faults and earlier documents are listed.
const MOST_LISTED: usize = 60;

/// Whether the handoff waits for a person to accept its document.
#[must_use]
pub fn is_held(seen: &HandoffView) -> bool {
    seen.is_held()
}

/// The commands by which a person decides about a held handoff. `has_writer`: an agent has written the document, so it
/// can be asked to repair it.
#[must_use]
pub fn choices(handoff_id: &str, has_writer: bool) -> String {
    let whole = one_line(handoff_id);
    let (id, host) = whole.rsplit_once('@').unwrap_or((&whole, ""));
    let id: String = id.chars().take(8).collect();
    // A person may copy the commands into a shell, and another host may call its handoff anything.
    let id = if can_be_id(&id) { id } else { "HANDOFF".to_owned() };
    if !host.is_empty() {
        // Another host takes a rework from its own users only.
        return home_option::fit(&format!("tasuki accept {id}@{host} or tasuki cancel {id}@{host}")).into_owned();
    }
    let all = match has_writer {
        true => format!("tasuki accept {id}, tasuki rework {id} --note TEXT, or tasuki cancel {id}"),
        false => format!("tasuki accept {id} or tasuki cancel {id}"),
    };
    home_option::fit(&all).into_owned()
}

/// A number of faults as text.
#[must_use]
pub fn count(faults: usize) -> String {
    match faults {
        0 => "no faults".to_owned(),
        1 => "1 fault".to_owned(),
        faults => format!("{faults} faults"),
    }
}

/// One fault in one line, with its grade.
#[must_use]
pub fn fault(fault: &DocumentFault) -> String {
    let grade = one_line(said(fault.grade.as_str()).unwrap_or("?"));
    format!("{grade:<5} {}", one_line(&fault.sentence()))
}

/// All lines about the document, indented below the handoff's name.
#[must_use]
pub fn lines(seen: &HandoffView) -> Vec<String> {
    let mut lines = Vec::new();
    if is_held(seen) {
        let since = said(seen.held_since.as_deref()).map(view::clock).unwrap_or_default();
        lines.push(row("held since", &format!("{since}; the handoff waits for you to accept its document")));
    }
    if let Some(check) = said(seen.check.as_str()) {
        let review = if seen.review { ", with a review" } else { "" };
        let reworks = match seen.reworks {
            0 => String::new(),
            1 => "; the agent was asked once to write its document again".to_owned(),
            times => format!("; the agent was asked {times} times to write its document again"),
        };
        lines.push(row("check", &format!("{check}{review}{reworks}")));
    }
    if !seen.faults.is_empty() {
        lines.push(row("faults", &seen.faults.len().to_string()));
        lines.extend(seen.faults.iter().take(MOST_LISTED).map(|one| format!("    {}", fault(one))));
    }
    lines.extend(seen.facts.as_ref().map(facts).into_iter().flatten());
    lines.extend(seen.drift.iter().map(|drift| row("drift", drift)));
    if seen.generation > 0 {
        lines.push(row("generation", &seen.generation.to_string()));
    }
    for earlier in seen.earlier.iter().take(MOST_LISTED) {
        let at = said(earlier.checkpoint.as_deref()).map(|at| format!(", checkpoint: {at}")).unwrap_or_default();
        let id: String = earlier.handoff_id.chars().take(8).collect();
        lines.push(row("earlier", &format!("{id} {}{at}", earlier.file_path)));
    }
    if is_held(seen) {
        lines.push(row("decide", &choices(&seen.handoff_id, seen.has_writer())));
    }
    lines
}

/// The facts in a few short lines. `tasuki handoffs show ID --facts` has all of them.
#[must_use]
pub fn facts(facts: &Facts) -> Vec<String> {
    let mut rows: Vec<(&str, String)> = Vec::new();
    if let Some(repository) = &facts.repository {
        rows.push(("branch", branch(repository)));
        rows.push(("HEAD", head(repository)));
        rows.extend(changed(repository).map(|text| ("changed", text)));
    }
    if let Some(ActionFacts { last_test, sent, .. }) = &facts.actions {
        rows.extend(last_test.as_ref().map(|test| ("last test", command(test))));
        let sent: Vec<&CommandFacts> = sent.iter().filter(|sent| sent.failed != Some(true)).collect();
        rows.extend(sent.last().map(|last| ("sent", format!("{}{}", command(last), more(sent.len() - 1)))));
    }
    if let Some(first) = facts.not_known.first() {
        rows.push(("not known", format!("{first}{}", more(facts.not_known.len() - 1))));
    }
    let mut lines = vec![row("facts", &format!("taken at {}", view::clock(&facts.taken_at)))];
    let inner = |(name, text): (&str, String)| format!("    {name:<10} {}", short_text(&one_line(&text), LONGEST));
    lines.extend(rows.into_iter().map(inner));
    lines
}

fn branch(repository: &RepositoryFacts) -> String {
    let name = repository.branch.as_deref().unwrap_or("none, HEAD is detached");
    let upstream = repository.upstream.as_deref().map(|upstream| {
        let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        format!("; {} ahead of {upstream}, {} behind", count(repository.ahead), count(repository.behind))
    });
    let state = repository.in_progress.as_deref().map(|state| format!("; a {state} is in progress"));
    format!("{name}{}{}", upstream.unwrap_or_default(), state.unwrap_or_default())
}

fn head(repository: &RepositoryFacts) -> String {
    let Some(head) = repository.head.as_deref() else { return "there are no commits".to_owned() };
    let short: String = head.chars().take(12).collect();
    let pushed = match repository.head_on_remote {
        Some(true) => " (on a remote branch)",
        Some(false) => " (not pushed)",
        None => "",
    };
    format!("{short}{pushed} {}", repository.subject.as_deref().unwrap_or_default())
}

fn changed(repository: &RepositoryFacts) -> Option<String> {
    let count = repository.changed?;
    if count == 0 {
        return Some("no files".to_owned());
    }
    let named: Vec<&str> = repository.status.iter().take(MOST_FILES).map(|file| file.path.as_str()).collect();
    let files = if count == 1 { "file" } else { "files" };
    let more = if count > named.len() as u64 { ", …" } else { "" };
    Some(format!("{count} {files}: {}{more}", named.join(", ")))
}

fn command(ran: &CommandFacts) -> String {
    let end = match (ran.exit, ran.failed) {
        (Some(exit), _) => format!(": exit {exit}"),
        (None, Some(true)) => ": failed".to_owned(),
        (None, Some(false)) => ": did not fail".to_owned(),
        (None, None) => String::new(),
    };
    let at = said(ran.at.as_deref()).map(|at| format!(", at {}", view::clock(at))).unwrap_or_default();
    format!("{}{end}{at}", short_text(&one_line(&ran.command), LONGEST / 2))
}

fn more(count: usize) -> String {
    if count == 0 { String::new() } else { format!("; {count} more") }
}

fn row(name: &str, text: &str) -> String {
    format!("  {name:<10} {}", one_line(text))
}

#[cfg(test)]
#[path = "examined_tests.rs"]
mod tests;
