//! Finds the agent, handoff or work item that a person names: by its id or a unique prefix of it. A pane names the
//! agent in it. A persona's slug names the persona's only living agent, or the persona's latest handoff.

use super::error::CliError;
use super::unread::Unread;
use super::view::{ViewFile, said, shown};
use super::{client, hosts, view};
use crate::clock::Clock;
use crate::config::Home;
use crate::contract::{AgentView, HandoffView};
use crate::core::id::Slug;
use crate::core::pane::TmuxVariable;
use crate::core::text::sanitise;
use crate::personas;
use std::collections::{BTreeMap, BTreeSet};

/// The environment variable by which an agent knows its own id.
pub const OWN_ID: &str = "TASUKI_AGENT_ID";

/// What is needed of an agent to find it by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedAgent {
    pub id: String,
    pub slug: Option<String>,
    pub living: bool,
    /// Its pane, such as `%3`.
    pub pane: Option<String>,
    /// State and pane, for a list of candidates.
    pub about: String,
}

impl NamedAgent {
    fn read(agent: &ViewFile<AgentView>) -> Option<Self> {
        Some(NamedAgent {
            id: said(agent.agent_id.as_str())?.to_owned(),
            slug: said(agent.persona_slug.as_deref()).map(str::to_owned),
            living: agent.is_living(),
            pane: said(agent.pane.as_deref()).map(str::to_owned),
            about: format!("{} {}", shown(agent.state.as_str()), shown(agent.pane.as_deref())),
        })
    }

    fn candidate(&self) -> String {
        format!("{}  {}  {}", self.id, self.slug.as_deref().unwrap_or("-"), self.about)
    }
}

/// Finds the agent that `text` names; `.` is the agent in whose pane the command runs, `%3` the agent in that pane.
///
/// # Errors
/// `no_agent` or `ambiguous`, the latter with the candidates; `not_from_elsewhere` for `kai@b`.
pub fn agent(home: &Home, text: &str) -> Result<String, CliError> {
    let text = hosts::only_here(home, text)?;
    if text == "." {
        return own_id(home);
    }
    if text.parse::<crate::core::id::AgentId>().is_ok() {
        return Ok(text.to_ascii_lowercase());
    }
    if is_pane(text) {
        check_server(home)?;
        let (known, unread) = known(home)?;
        return in_pane(text, &known).ok_or_else(|| {
            let none = CliError::refused("no_agent", format!("tasuki knows no agent in pane {text}.")).hint(format!(
                "`tasuki agents` lists the agents with their panes. If an agent runs in this pane, adopt it first: \
                     tasuki agent register {text} --persona SLUG"
            ));
            unread.or_missing(none)
        });
    }
    let (known, unread) = known(home)?;
    if is_persona(home, text) && !known.iter().any(|agent| agent.slug.as_deref() == Some(text)) {
        let none = unknown(home, text, unread.or_missing(not_found("agent", text)));
        let others = known.iter().filter(|agent| agent.id.starts_with(text)).count();
        return Err(or_by_id(none, others));
    }
    match pick_agent(text, &known, |slug| how_to_start(home, slug)) {
        Err(error) if error.code == "ambiguous" => Err(error),
        Err(error) => Err(unknown(home, text, unread.or_missing(error))),
        // A text must not be typed, and nobody ended, by a guess: an agent whose view can't be read may be of this
        // persona.
        Ok(_) if unread.first().is_some() && known.iter().any(|agent| agent.slug.as_deref() == Some(text)) => {
            Err(unsure(text, unread))
        }
        found => found,
    }
}

fn unsure(persona: &str, unread: Unread) -> CliError {
    let unsure = CliError::refused("ambiguous", format!("It is not known which agents have the persona {persona}"));
    let error = unread.or_missing(unsure);
    let hint = error.hint.clone().unwrap_or_default();
    error.hint(format!("Name the agent by its id: `tasuki agents` lists those that can be read. Or: {hint}"))
}

/// The error for an unknown name, with a reason if the home shows one: no sidecar runs, or there is a persona of this
/// name but no agent has it.
fn unknown(home: &Home, text: &str, error: CliError) -> CliError {
    if !error.code.starts_with("no_") {
        return error;
    }
    let seen = client::Pulse::new(home).check();
    if !matches!(seen, client::SidecarPresence::Alive { .. }) {
        let none = client::no_sidecar(home, &seen);
        return CliError { message: format!("{}. {}", error.message.trim_end_matches('.'), none.message), ..none };
    }
    if error.code == "no_agent" && error.message.starts_with(NOT_FOUND) && is_persona(home, text) {
        return no_agent_of(home, text);
    }
    error
}

fn no_agent_of(home: &Home, slug: &str) -> CliError {
    CliError::refused("no_agent", format!("No agent has the persona {slug}."))
        .hint(format!("Start one: {}", how_to_start(home, slug)))
}

/// The command that starts an agent of a persona. If the persona names no profile, the command must.
fn how_to_start(home: &Home, slug: &str) -> String {
    let known = slug.parse().ok().and_then(|slug| personas::facts(&home.personas(), &slug).ok());
    let has_profile = known.is_none_or(|known| known.file.profile.is_some());
    format!("tasuki agent create {slug}{}", if has_profile { "" } else { " --profile NAME" })
}

const NOT_FOUND: &str = "Agent not found";

fn is_persona(home: &Home, text: &str) -> bool {
    text.parse::<Slug>().is_ok() && home.personas().join(text).is_dir()
}

/// The agents whose views can be read, and what is known of the others.
fn known(home: &Home) -> Result<(Vec<NamedAgent>, Unread), CliError> {
    let mut unread = Unread::default();
    let views = view::all(&home.agent_views(), &mut unread)?;
    Ok((views.iter().filter_map(NamedAgent::read).collect(), unread))
}

fn is_pane(text: &str) -> bool {
    text.strip_prefix('%').is_some_and(|number| number.parse::<u32>().is_ok())
}

/// The living agent in a pane; none if there are several, as there may be for a moment after a pane was taken over.
#[must_use]
pub fn in_pane(pane: &str, known: &[NamedAgent]) -> Option<String> {
    let mut found = known.iter().filter(|agent| agent.living && agent.pane.as_deref() == Some(pane));
    let first = found.next()?;
    found.next().is_none().then(|| first.id.clone())
}

/// A pane's number is valid on one tmux server only: refuses if the command runs in another server than the sidecar's.
pub(super) fn check_server(home: &Home) -> Result<(), CliError> {
    let here = variable("TMUX").and_then(|value| Some(TmuxVariable::read(&value)?.server_pid));
    let theirs = view::sidecar(home)?.and_then(|view| Some(view.tmux.as_ref()?.pid));
    match (here, theirs) {
        (Some(here), Some(theirs)) if here != theirs => {
            Err(CliError::refused("other_server", "This pane is on another tmux server than the sidecar's.")
                .hint("Name the agent by its id or its persona. `tasuki agents` lists the agents."))
        }
        _ => Ok(()),
    }
}

pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The agent in whose pane the command runs: the living agent of this pane, else the agent that the environment names.
/// The pane comes first, because a new session in the same process still has the environment of the agent before it.
///
/// # Errors
/// A usage error if the command runs in no agent's pane.
pub fn own_id(home: &Home) -> Result<String, CliError> {
    let named = variable(OWN_ID).filter(|id| id.parse::<crate::core::id::AgentId>().is_ok());
    let here = variable("TMUX_PANE").filter(|pane| is_pane(pane) && check_server(home).is_ok());
    let (known, unread) = known(home)?;
    own_of(named, &known, here.as_deref()).ok_or_else(|| {
        let reason = match &here {
            Some(pane) => format!("tasuki knows no agent in this pane ({pane})"),
            None => format!("this is not an agent's pane ({OWN_ID} is not set)"),
        };
        let none = CliError::usage(format!("You named no agent, and {reason}."))
            .hint("Name an agent by id, a unique prefix of it, persona or pane. `tasuki agents` lists the agents.");
        unread.or_missing(none)
    })
}

/// The agent that lives in the pane, else the agent that the environment names. That agent may have ended or be unknown
/// here: the sidecar knows what became of it. But it must not live in another pane: a window that was opened beside an
/// agent may have that agent's environment.
fn own_of(named: Option<String>, known: &[NamedAgent], pane: Option<&str>) -> Option<String> {
    let lives_elsewhere = |id: &String| {
        let agent = known.iter().find(|agent| agent.living && agent.id.eq_ignore_ascii_case(id));
        pane.is_some() && agent.is_some_and(|agent| agent.pane.is_some() && agent.pane.as_deref() != pane)
    };
    let named = named.map(|id| id.to_ascii_lowercase());
    pane.and_then(|pane| in_pane(pane, known)).or_else(|| named.filter(|id| !lives_elsewhere(id)))
}

/// Finds an agent among the known ones. A persona that agents have wins over prefixes of ids, even if all of them have
/// ended: a short slug such as `ed` is often also the prefix of some id, and a `shutdown` that is repeated must not end
/// somebody else. An agent that has ended can be named by its id only.
///
/// # Errors
/// `no_agent` or `ambiguous`, the latter with the candidates. `start` gives the command that starts an agent of a
/// persona.
pub fn pick_agent(text: &str, known: &[NamedAgent], start: impl Fn(&str) -> String) -> Result<String, CliError> {
    let wanted = text.to_ascii_lowercase();
    let same_slug: Vec<&NamedAgent> = known.iter().filter(|agent| agent.slug.as_deref() == Some(text)).collect();
    let living: Vec<&NamedAgent> = same_slug.iter().copied().filter(|agent| agent.living).collect();
    // A session without a pane has only claimed the persona, so an agent with a known pane has precedence.
    let seen: Vec<&NamedAgent> = living.iter().copied().filter(|agent| agent.pane.is_some()).collect();
    let living = if seen.len() == 1 { seen } else { living };
    let by_id: Vec<&NamedAgent> =
        known.iter().filter(|agent| !wanted.is_empty() && agent.id.starts_with(&wanted)).collect();
    if living.is_empty() && !same_slug.is_empty() {
        let others = by_id.iter().filter(|agent| agent.slug.as_deref() != Some(text)).count();
        return Err(or_by_id(all_ended(text, &same_slug, &start(text)), others));
    }
    let found = if living.is_empty() { by_id } else { living };
    match found.as_slice() {
        [one] => Ok(one.id.clone()),
        [] => Err(not_found("agent", text).hint("`tasuki agents --all` lists all agents by id, persona and pane.")),
        several => Err(ambiguous("agents", text, several.iter().map(|agent| agent.candidate()))),
    }
}

/// Adds how an agent is named whose id begins like the persona's name.
fn or_by_id(error: CliError, others: usize) -> CliError {
    match error.hint.clone() {
        Some(hint) if others > 0 && error.code == "no_agent" => error.hint(format!(
            "{hint}. An id begins like this name too: to name that agent, type its whole id, or its persona"
        )),
        _ => error,
    }
}

/// The refusal of a persona whose agents have all ended.
fn all_ended(slug: &str, ended: &[&NamedAgent], start: &str) -> CliError {
    let slug = sanitise(slug);
    let (ended, id) = match ended {
        [one] => ("its agent has ended".to_owned(), one.id.chars().take(8).collect()),
        all => (format!("all {} have ended", all.len()), "ID".to_owned()),
    };
    CliError::refused("no_agent", format!("No agent of {slug} is running: {ended}.")).hint(format!(
        "Start one: {start}. To hand off an agent that has ended, name it by its id (`tasuki agents \
         --all` lists it): tasuki handoff {id} --author salvage"
    ))
}

/// Whether a text from another host can be an id. Messages name ids in commands, and a person may copy these into a
/// shell.
#[must_use]
pub(super) fn can_be_id(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    text.chars().all(is_plain) && text.starts_with(|letter: char| letter != '-')
}

/// The refusal of a name that nothing has: `no_agent`, `no_handoff`, `no_error` …
pub(super) fn not_found(what: &str, text: &str) -> CliError {
    CliError::refused(format!("no_{what}"), format!("{} not found: \"{}\"", capital(what), sanitise(text)))
}

/// Finds the handoff that `text` names: by its id, or the last handoff of a persona.
///
/// # Errors
/// `no_handoff` or `ambiguous`, the latter with the candidates; `not_from_elsewhere` for `5f2a@b`.
pub fn handoff(home: &Home, text: &str) -> Result<String, CliError> {
    let text = hosts::only_here(home, text)?;
    if text.parse::<crate::core::id::HandoffId>().is_ok() {
        return Ok(text.to_ascii_lowercase());
    }
    if is_persona(home, text) {
        let last = last_of(home, text)?;
        return last.ok_or_else(|| {
            CliError::refused("no_handoff", format!("There is no recent handoff of an agent of {text}."))
                .hint("`tasuki handoffs` lists the handoffs.")
        });
    }
    pick_id("handoff", text, &view::stems(&home.handoff_views())?).or_else(|error| {
        // The persona's folder may be gone, and its handoffs still need a person.
        let is_slug = error.code != "ambiguous" && text.parse::<Slug>().is_ok();
        let last = Some(text).filter(|_| is_slug).and_then(|slug| last_of(home, slug).ok().flatten());
        last.ok_or_else(|| unknown(home, text, with_hint(error, "`tasuki handoffs` lists the handoffs.")))
    })
}

/// The persona's handoff that was requested last. Only the 2,000 handoffs whose views changed last are searched.
fn last_of(home: &Home, slug: &str) -> Result<Option<String>, CliError> {
    const LOOK_AT: usize = 2_000;
    const CLOCKS_DIFFER_MS: i64 = 3_600_000;
    let mut unread = Unread::default();
    let latest: Vec<ViewFile<HandoffView>> = view::latest(&home.handoff_views(), LOOK_AT, &mut unread)?;
    if unread.first().is_some() {
        let unsure = CliError::refused("no_handoff", format!("The last handoff of {slug} is not known."));
        return Err(unread
            .or_missing(unsure)
            .hint("Name the handoff by its id. `tasuki handoffs` lists the handoffs."));
    }
    let own = latest.iter().filter(|handoff| handoff.persona_slug == slug);
    // One from the future was requested while the clock was wrong.
    let soon = crate::core::time::rfc3339(Clock::new().now().wall_ms + CLOCKS_DIFFER_MS);
    let last = own.max_by_key(|handoff| (handoff.created_at <= soon, &handoff.created_at));
    Ok(last.and_then(|handoff| view::said(handoff.handoff_id.as_str())).map(str::to_owned))
}

/// Adds this hint to the error, unless it has one.
pub(super) fn with_hint(error: CliError, hint: &str) -> CliError {
    if error.hint.is_some() { error } else { error.hint(hint) }
}

/// Finds the work item that `text` names.
///
/// # Errors
/// `no_item` or `ambiguous`, the latter with the candidates; `not_from_elsewhere` for `5f2a@b`.
pub fn item(home: &Home, text: &str) -> Result<String, CliError> {
    let text = hosts::only_here(home, text)?;
    if text.parse::<crate::core::id::ItemId>().is_ok() {
        return Ok(text.to_ascii_lowercase());
    }
    pick_id("work item", text, &view::stems(&home.work_views())?).map_err(|error| match error.hint {
        None => unknown(
            home,
            text,
            CliError { code: "no_item".to_owned(), ..error.hint("`tasuki work list --all` lists the work items.") },
        ),
        Some(_) => error,
    })
}

/// Finds the one id that begins with `text`.
///
/// # Errors
/// `no_<what>` or `ambiguous`, the latter with the candidates.
pub fn pick_id(what: &str, text: &str, ids: &[String]) -> Result<String, CliError> {
    let wanted = text.to_ascii_lowercase();
    let found: Vec<&String> = ids.iter().filter(|id| !wanted.is_empty() && id.starts_with(&wanted)).collect();
    match found.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(not_found(what, text)),
        several => Err(ambiguous(&format!("{what}s"), text, several.iter().map(|id| (*id).clone()))),
    }
}

/// The beginnings of ids that tables show: 8 characters, more only if two would be the same. Each can be typed
/// instead of the whole id.
#[must_use]
pub fn short<'a>(ids: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, String> {
    const SHORTEST: usize = 8;
    let ids: BTreeSet<&str> = ids.into_iter().collect();
    let mut short = BTreeMap::new();
    let mut before = "";
    let mut rest = ids.iter().copied().peekable();
    while let Some(id) = rest.next() {
        // In sorted order, the longest common prefix is shared with a neighbour.
        let shared = shared_prefix(id, before).max(rest.peek().map_or(0, |next| shared_prefix(id, next)));
        short.insert(id.to_owned(), id.chars().take((shared + 1).max(SHORTEST)).collect());
        before = id;
    }
    short
}

fn shared_prefix(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}

fn ambiguous(what: &str, text: &str, candidates: impl Iterator<Item = String>) -> CliError {
    const MOST: usize = 10;
    let all: Vec<String> = candidates.collect();
    let mut shown: Vec<String> = all.iter().take(MOST).cloned().collect();
    if all.len() > MOST {
        shown.push(format!("… and {} more", all.len() - MOST));
    }
    let text = sanitise(text);
    CliError::refused("ambiguous", format!("\"{text}\" matches {} {what}.", all.len()))
        .hint(format!("Name one of them by its id:\n    {}", shown.join("\n    ")))
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
