//! Which agent or handoff a person means: a whole id, the beginning of one that no other has, or, for agents, the slug
//! of a persona that one living agent has (SPEC section 9), or its pane.

use super::error::CliError;
use super::view;
use crate::config::Home;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The environment variable by which an agent knows its own id.
pub const OWN_ID: &str = "TASUKI_AGENT_ID";

/// What naming needs to know of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The agent's id.
    pub id: String,
    /// Its persona.
    pub slug: Option<String>,
    /// It has not ended.
    pub living: bool,
    /// Its pane, such as `%3`.
    pub pane: Option<String>,
    /// State and pane, for a list of candidates.
    pub about: String,
}

impl Known {
    fn read(view: &Value) -> Option<Self> {
        Some(Known {
            id: view::text(view, "agent_id")?.to_owned(),
            slug: view::text(view, "persona_slug").map(str::to_owned),
            living: view::is_living(view),
            pane: view::text(view, "pane").map(str::to_owned),
            about: format!("{} {}", view::cell(view, "state"), view::cell(view, "pane")),
        })
    }

    fn candidate(&self) -> String {
        format!("{}  {}  {}", self.id, self.slug.as_deref().unwrap_or("-"), self.about)
    }
}

/// Finds the agent that `text` names; `.` is the agent in whose pane the command runs, `%3` the one in that pane.
///
/// # Errors
/// `no_agent` or `ambiguous`, the latter with the candidates.
pub fn agent(home: &Home, text: &str) -> Result<String, CliError> {
    if text == "." {
        return own_id(home);
    }
    if text.parse::<crate::core::id::AgentId>().is_ok() {
        return Ok(text.to_ascii_lowercase());
    }
    if is_pane(text) {
        check_server(home)?;
        return in_pane(text, &known(home)?).ok_or_else(|| {
            CliError::refused("no_agent", format!("No agent is known in the pane {text}."))
                .hint(format!("Adopt it first: tasuki agent register {text} --persona SLUG"))
        });
    }
    pick_agent(text, &known(home)?)
}

fn known(home: &Home) -> Result<Vec<Known>, CliError> {
    Ok(view::objects(&home.agent_views())?.iter().filter_map(Known::read).collect())
}

fn is_pane(text: &str) -> bool {
    text.strip_prefix('%').is_some_and(|number| number.parse::<u32>().is_ok())
}

/// The living agent in a pane. Of several (a pane that was taken over a moment ago) none.
#[must_use]
pub fn in_pane(pane: &str, known: &[Known]) -> Option<String> {
    let mut found = known.iter().filter(|agent| agent.living && agent.pane.as_deref() == Some(pane));
    let first = found.next()?;
    found.next().is_none().then(|| first.id.clone())
}

/// A pane's number means something on one tmux server only: refuses where this runs in another one than the sidecar's.
pub(super) fn check_server(home: &Home) -> Result<(), CliError> {
    let here = variable("TMUX").and_then(|value| value.split(',').nth(1)?.parse::<u64>().ok());
    let theirs = view::read_json(&home.view().join("sidecar.json"))?.and_then(|view| view["tmux"]["pid"].as_u64());
    match (here, theirs) {
        (Some(here), Some(theirs)) if here != theirs => {
            Err(CliError::refused("other_server", "This pane belongs to another tmux server than the sidecar's.")
                .hint("Name the agent by its id or its persona. `tasuki agents` lists them."))
        }
        _ => Ok(()),
    }
}

pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The agent in whose pane the command runs: the one that the environment names, unless that has ended (a new session
/// in the same process keeps the environment of the former one), else the one that lives in this pane.
///
/// # Errors
/// A usage error when it runs in none.
pub fn own_id(home: &Home) -> Result<String, CliError> {
    let named = variable(OWN_ID).filter(|id| id.parse::<crate::core::id::AgentId>().is_ok());
    let all = known(home)?;
    let has_ended = |id: &String| all.iter().any(|agent| !agent.living && agent.id.eq_ignore_ascii_case(id));
    if let Some(id) = named.clone().filter(|id| !has_ended(id)) {
        return Ok(id.to_ascii_lowercase());
    }
    let pane = variable("TMUX_PANE").filter(|pane| is_pane(pane) && check_server(home).is_ok());
    let here = pane.as_ref().and_then(|pane| in_pane(pane, &all)).or(named);
    here.ok_or_else(|| {
        let reason = match &pane {
            Some(pane) => format!("tasuki knows of no agent in this pane, {pane}"),
            None => format!("this is no agent's pane ({OWN_ID} is not set)"),
        };
        CliError::usage(format!("No agent is named, and {reason}."))
            .hint("Name an agent by id, by the beginning of its id, by its persona, or by its pane. `tasuki agents` lists them.")
    })
}

/// Finds the agent among those that are known.
///
/// # Errors
/// `no_agent` or `ambiguous`, the latter with the candidates.
pub fn pick_agent(text: &str, known: &[Known]) -> Result<String, CliError> {
    let wanted = text.to_ascii_lowercase();
    let same_slug: Vec<&Known> = known.iter().filter(|agent| agent.slug.as_deref() == Some(text)).collect();
    let living: Vec<&Known> = same_slug.iter().copied().filter(|agent| agent.living).collect();
    let mut found = if living.is_empty() { same_slug } else { living };
    for agent in known.iter().filter(|agent| !wanted.is_empty() && agent.id.starts_with(&wanted)) {
        if !found.contains(&agent) {
            found.push(agent);
        }
    }
    match found.as_slice() {
        [one] => Ok(one.id.clone()),
        [] => Err(CliError::refused("no_agent", "Agent not found")
            .hint("`tasuki agents --all` lists all agents by id, persona and pane.")),
        several => Err(ambiguous("agents", text, several.iter().map(|agent| agent.candidate()))),
    }
}

/// Finds the handoff that `text` names.
///
/// # Errors
/// `no_handoff` or `ambiguous`, the latter with the candidates.
pub fn handoff(home: &Home, text: &str) -> Result<String, CliError> {
    if text.parse::<crate::core::id::HandoffId>().is_ok() {
        return Ok(text.to_ascii_lowercase());
    }
    let hint = "`tasuki handoffs` lists them.";
    pick_id("handoff", text, &view::stems(&home.handoff_views())?).map_err(|error| match error.hint {
        None => error.hint(hint),
        Some(_) => error,
    })
}

/// Finds the work item that `text` names.
///
/// # Errors
/// `no_item` or `ambiguous`, the latter with the candidates.
pub fn item(home: &Home, text: &str) -> Result<String, CliError> {
    if text.parse::<crate::core::id::ItemId>().is_ok() {
        return Ok(text.to_ascii_lowercase());
    }
    let hint = "`tasuki work list --all` lists them.";
    pick_id("work item", text, &view::stems(&home.work_views())?).map_err(|error| match error.hint {
        None => CliError { code: "no_item".to_owned(), ..error.hint(hint) },
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
        [] => Err(CliError::refused(format!("no_{what}"), format!("{} not found", capital(what)))),
        several => Err(ambiguous(&format!("{what}s"), text, several.iter().map(|id| (*id).clone()))),
    }
}

/// The beginnings of ids that tables show: 8 characters, more only where two would look alike. Each can be typed instead
/// of the whole id.
#[must_use]
pub fn short<'a>(ids: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, String> {
    const SHORTEST: usize = 8;
    let ids: BTreeSet<&str> = ids.into_iter().collect();
    let mut short = BTreeMap::new();
    let mut before = "";
    let mut rest = ids.iter().copied().peekable();
    while let Some(id) = rest.next() {
        // In sorted order only the neighbours can share more than anybody else.
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
    let text = crate::core::text::sanitise(text);
    CliError::refused("ambiguous", format!("\"{text}\" names {} {what}.", all.len()))
        .hint(format!("Name one of them by its id:\n    {}", shown.join("\n    ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(id: &str, slug: Option<&str>, living: bool) -> Known {
        let pane = Some(format!("%{}", &id[..1]));
        Known { id: id.to_owned(), slug: slug.map(str::to_owned), living, pane, about: "idle %1".to_owned() }
    }

    fn some() -> Vec<Known> {
        vec![
            known("aaaa1111-0000", Some("kai"), false),
            known("aaab2222-0000", Some("kai"), true),
            known("bbbb3333-0000", Some("mia"), true),
            known("bbbc4444-0000", Some("mia"), true),
            known("cccc5555-0000", Some("old"), false),
            known("dddd6666-0000", None, true),
        ]
    }

    fn code(text: &str) -> String {
        pick_agent(text, &some()).unwrap_or_else(|error| error.code)
    }

    #[test]
    fn a_slug_names_the_living_agent() {
        assert_eq!(code("kai"), "aaab2222-0000");
    }

    #[test]
    fn a_slug_of_one_that_has_ended_names_it_if_no_other_lives() {
        assert_eq!(code("old"), "cccc5555-0000");
    }

    #[test]
    fn a_pane_names_the_one_that_lives_in_it() {
        let all = some();
        assert_eq!(in_pane("%d", &all).as_deref(), Some("dddd6666-0000"));
        assert_eq!(in_pane("%a", &all).as_deref(), Some("aaab2222-0000"));
        assert_eq!(in_pane("%c", &all), None, "it has ended");
        assert_eq!(in_pane("%b", &all), None, "two can't be in one pane");
        assert!(is_pane("%12") && !is_pane("%") && !is_pane("%x") && !is_pane("12"));
    }

    #[test]
    fn a_prefix_must_be_unique_and_case_does_not_matter() {
        assert_eq!(code("AAAB"), "aaab2222-0000");
        assert_eq!(code("d"), "dddd6666-0000");
        assert_eq!(code("aaa"), "ambiguous");
        assert_eq!(code("zz"), "no_agent");
        assert_eq!(code(""), "no_agent");
    }

    #[test]
    fn an_ambiguity_lists_the_candidates() {
        let error = pick_agent("mia", &some()).expect_err("two living agents");
        let hint = error.hint.expect("a list");
        assert!(hint.contains("bbbb3333-0000") && hint.contains("bbbc4444-0000"), "{hint}");
        assert_eq!(error.exit, crate::exit::REFUSED);
    }

    #[test]
    fn a_word_that_is_both_a_slug_and_a_prefix_is_ambiguous() {
        let all = [known("feed0000-0000", None, true), known("1234-0000", Some("feed"), true)];
        assert_eq!(pick_agent("feed", &all).expect_err("two meanings").code, "ambiguous");
    }

    #[test]
    fn a_short_id_names_one_and_the_same() {
        let ids = ["aaaa1111-00", "aaaa1111-01", "bbbb2222-00", "cc"];
        let short = short(ids);
        let shown: Vec<&str> = short.values().map(String::as_str).collect();
        assert_eq!(shown, ["aaaa1111-00", "aaaa1111-01", "bbbb2222", "cc"]);
        let known: Vec<String> = ids.map(str::to_owned).to_vec();
        for (id, short) in &short {
            assert_eq!(pick_id("agent", short, &known).as_ref(), Ok(id));
        }
    }

    #[test]
    fn handoffs_are_named_by_a_unique_prefix() {
        let ids = ["0193aa".to_owned(), "0193ab".to_owned()];
        assert_eq!(pick_id("handoff", "0193aa", &ids), Ok("0193aa".to_owned()));
        assert_eq!(pick_id("handoff", "0193", &ids).expect_err("two").code, "ambiguous");
        let error = pick_id("handoff", "x", &ids).expect_err("none");
        assert_eq!((error.code.as_str(), error.message.as_str()), ("no_handoff", "Handoff not found"));
    }
}
