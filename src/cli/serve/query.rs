//! The query of a list: how many entries, and which.

use super::problem::Problem;
use crate::contract::AgentView;
use std::collections::BTreeSet;

/// The largest `limit`.
pub(super) const MOST: usize = 10_000;
/// The `limit` of a query that names none.
pub(super) const USUAL: usize = 500;

/// Which parameters a list has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parameters {
    /// `limit` alone.
    Limit,
    /// `limit` and `all`.
    All,
    /// `limit`, `all`, `session` and `pane`.
    OfAgents,
}

/// What a query asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListQuery {
    pub(super) limit: usize,
    pub(super) all: bool,
    /// Only agents in this tmux session.
    session: Option<String>,
    /// Only agents in this pane, such as `%3`.
    pane: Option<String>,
}

impl ListQuery {
    /// Parses a query. A parameter that the list does not have, or that is there twice, is an error.
    pub(super) fn read(query: Option<&str>, parameters: Parameters) -> Result<ListQuery, Problem> {
        let mut asked = ListQuery { limit: USUAL, all: false, session: None, pane: None };
        let (with_all, of_agents) = (parameters != Parameters::Limit, parameters == Parameters::OfAgents);
        let mut names = BTreeSet::new();
        for part in query.unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            if !names.insert(name) {
                return Err(Problem::bad("The query has a parameter twice"));
            }
            match (name, value) {
                ("limit", number) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
                    let number = number.parse().ok().filter(|number| (1..=MOST).contains(number));
                    asked.limit = number.ok_or_else(|| Problem::bad(format!("limit must be 1 to {MOST}")))?;
                }
                ("limit", _) => return Err(Problem::bad(format!("limit must be 1 to {MOST}"))),
                ("all", "true") if with_all => asked.all = true,
                ("all", "false") if with_all => asked.all = false,
                ("all", _) if with_all => return Err(Problem::bad("all must be true or false")),
                ("session", name) if of_agents => asked.session = Some(session(name)?),
                ("pane", pane) if of_agents => asked.pane = Some(self::pane(pane)?),
                _ => return Err(Problem::bad("The query has an unknown parameter")),
            }
        }
        Ok(asked)
    }

    /// Whether the agent is in the session and in the pane that the query names.
    pub(super) fn is_there(&self, agent: &AgentView) -> bool {
        let is = |wanted: &Option<String>, own: &Option<String>| wanted.is_none() || wanted == own;
        is(&self.session, &agent.tmux_session) && is(&self.pane, &agent.pane)
    }
}

fn session(value: &str) -> Result<String, Problem> {
    let name = decoded(value).filter(|name| !name.is_empty());
    name.ok_or_else(|| Problem::bad("session must be the name of a tmux session").field("session"))
}

/// A pane's id, with or without its `%`, which an address writes as `%25`.
fn pane(value: &str) -> Result<String, Problem> {
    let id = decoded(value).unwrap_or_default();
    let number = id.strip_prefix('%').unwrap_or(&id);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match number.parse::<u32>().ok().filter(|_| is_number) {
        Some(number) => Ok(format!("%{number}")),
        None => Err(Problem::bad("pane must be the number of a pane, such as 3 for the pane %3")
            .hint("Write pane=3 or pane=%253")
            .field("pane")),
    }
}

/// Decodes a value as forms encode it: `+` is a blank, `%` and two hexadecimal digits are a byte. A `%` without two
/// digits stands for itself. None if the result is not UTF-8.
fn decoded(value: &str) -> Option<String> {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes = value.as_bytes();
    let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let two = digit(bytes.get(at + 1)).zip(digit(bytes.get(at + 2))).filter(|_| *byte == b'%');
        decoded.push(match (byte, two) {
            (_, Some((high, low))) => high * 16 + low,
            (b'+', None) => b' ',
            (byte, None) => *byte,
        });
        at += if two.is_some() { 3 } else { 1 };
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str, parameters: Parameters) -> Option<ListQuery> {
        ListQuery::read(Some(query), parameters).ok()
    }

    #[test]
    fn a_query_of_a_list_is_valid_as_a_whole_or_refused() {
        let known = |query, parameters| read(query, parameters).map(|asked| (asked.limit, asked.all));
        assert_eq!(known("", Parameters::Limit), Some((USUAL, false)));
        assert_eq!(known("limit=3&all=true", Parameters::All), Some((3, true)));
        for wrong in
            ["limit=0", "limit=10001", "limit=-1", "limit=+1", "limit", "limit=99999999999999999999", "all=yes", "x=1"]
        {
            assert_eq!(known(wrong, Parameters::OfAgents), None, "{wrong}");
        }
        assert_eq!(known("all=true", Parameters::Limit), None);
        assert_eq!(known("pane=3", Parameters::All), None, "only agents have panes");
    }

    #[test]
    fn agents_are_found_by_session_and_by_pane() {
        let agent = |session: Option<&str>, pane: Option<&str>| AgentView {
            tmux_session: session.map(str::to_owned),
            pane: pane.map(str::to_owned),
            ..AgentView::default()
        };
        let (own, other, nowhere) =
            (agent(Some("my work"), Some("%3")), agent(Some("my work"), Some("%12")), agent(None, None));
        let found = |query: &str| {
            let asked = read(query, Parameters::OfAgents).unwrap_or_else(|| panic!("{query} is valid"));
            [&own, &other, &nowhere].map(|agent| asked.is_there(agent))
        };
        assert_eq!(found(""), [true; 3]);
        for pane in ["pane=3", "pane=%253", "pane=%3", "session=my+work&pane=3", "session=my%20work&pane=%253"] {
            assert_eq!(found(pane), [true, false, false], "{pane}");
        }
        assert_eq!(found("session=my+work"), [true, true, false]);
        assert_eq!(found("session=your+work&pane=3"), [false; 3]);
        for wrong in
            ["pane=", "pane=x", "pane=-3", "pane=%2b3", "pane=99999999999", "session=", "session=%ff", "pane=3&pane=4"]
        {
            assert_eq!(read(wrong, Parameters::OfAgents), None, "{wrong}");
        }
    }
}
