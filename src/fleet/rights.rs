//! Which host may ask this one for what. Nothing is accepted from anybody until the operator says so: a text that is
//! typed into an agent is code that runs with the rights of this user.

use crate::core::host::HostName;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What another host may be allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// See whole views.
    View,
    /// Send texts to agents.
    Send,
    /// Hand agents' work to this host.
    Receive,
    /// Operate this host: begin, end and decide handoffs, start and end agents.
    Operate,
    /// Delegate work items to this host.
    Work,
    /// Put personas here.
    Personas,
}

/// All rights, in the order of the contract.
pub const RIGHTS: [Right; 6] = [Right::View, Right::Send, Right::Receive, Right::Operate, Right::Work, Right::Personas];

/// The kind that the bridge itself answers.
pub const VIEW: &str = "view";

impl Right {
    /// Its word in the settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Right::View => "view",
            Right::Send => "send",
            Right::Receive => "receive",
            Right::Operate => "operate",
            Right::Work => "work",
            Right::Personas => "personas",
        }
    }

    /// The kinds of requests that it allows.
    #[must_use]
    pub fn kinds(self) -> &'static [&'static str] {
        match self {
            Right::View => &[VIEW],
            Right::Send => &["agent_send"],
            Right::Receive => &["handoff_offer", "handoff_begin", "handoff_withdraw"],
            Right::Operate => &[
                VIEW,
                "handoff",
                "handoff_retry",
                "handoff_abandon",
                "handoff_cancel",
                "handoff_accept",
                "agent_create",
                "agent_shutdown",
                "clarify",
                "ack_override",
                "error_dismiss",
            ],
            Right::Work => &["work_delegate", "work_recall"],
            Right::Personas => &["persona_put"],
        }
    }

    /// Whether a host with this right can make this host run code.
    #[must_use]
    pub fn runs_code(self) -> bool {
        match self {
            Right::View => false,
            Right::Send | Right::Receive | Right::Operate | Right::Work | Right::Personas => true,
        }
    }
}

/// Whether any right allows this kind. The host that asks already refuses to send a request of another kind.
#[must_use]
pub fn may_be_asked(kind: &str) -> bool {
    RIGHTS.iter().any(|right| right.kinds().contains(&kind))
}

/// `[accept]` of the settings: which host has which rights. `"*"` stands for every member that is not named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Accepts(BTreeMap<String, BTreeSet<Right>>);

impl Accepts {
    /// The entry for every member that has none of its own.
    pub const EVERYBODY: &str = "*";

    /// The rights of a host: those of its own entry, or else of everybody's.
    #[must_use]
    pub fn of(&self, host: &HostName) -> BTreeSet<Right> {
        self.0.get(host.as_str()).or_else(|| self.0.get(Self::EVERYBODY)).cloned().unwrap_or_default()
    }

    /// The rights of the entry with this name; none if there is no such entry.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<BTreeSet<Right>> {
        self.0.get(name).cloned()
    }

    /// All entries, by name.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &BTreeSet<Right>)> {
        self.0.iter().map(|(name, rights)| (name.as_str(), rights))
    }

    /// Whether this host may ask for this kind.
    #[must_use]
    pub fn allows(&self, host: &HostName, kind: &str) -> bool {
        self.of(host).iter().any(|right| right.kinds().contains(&kind))
    }

    /// The names of all entries.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The names of entries that are neither a host's name nor everybody's.
    pub fn odd_names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str).filter(|name| *name != Self::EVERYBODY && name.parse::<HostName>().is_err())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::request::KINDS;

    fn accepts(json: &str) -> Accepts {
        serde_json::from_str(json).expect("rights")
    }

    fn host(name: &str) -> HostName {
        name.parse().expect("a name")
    }

    #[test]
    fn nobody_may_ask_for_anything_unless_the_operator_has_said_so() {
        let none = Accepts::default();
        for kind in KINDS.iter().copied().chain([VIEW, "persona_put", "work_delegate"]) {
            assert!(!none.allows(&host("a"), kind), "{kind}");
        }
    }

    #[test]
    fn each_right_allows_its_own_kinds_and_no_other() {
        for right in RIGHTS {
            let accepts = accepts(&format!("{{\"a\": [\"{}\"]}}", right.as_str()));
            for kind in KINDS.iter().copied().chain(RIGHTS.iter().flat_map(|right| right.kinds()).copied()) {
                assert_eq!(accepts.allows(&host("a"), kind), right.kinds().contains(&kind), "{right:?} {kind}");
            }
            assert!(!accepts.allows(&host("b"), right.kinds()[0]));
        }
    }

    #[test]
    fn the_entry_of_a_host_wins_whole_over_that_of_everybody() {
        let accepts = accepts(r#"{"*": ["view", "send"], "a": ["operate"], "b": []}"#);
        assert!(accepts.allows(&host("c"), "agent_send"));
        assert!(!accepts.allows(&host("a"), "agent_send") && accepts.allows(&host("a"), "handoff"));
        assert!(!accepts.allows(&host("b"), VIEW));
    }

    #[test]
    fn what_lets_others_publish_register_or_acknowledge_is_never_asked_for_from_elsewhere() {
        for kind in ["agent_register", "publish", "work_import", "ack", "work_create", "work_complete", "agent_forget"]
        {
            assert!(KINDS.contains(&kind), "{kind} is a kind");
            assert!(!may_be_asked(kind), "{kind}");
        }
    }

    #[test]
    fn an_entry_that_names_no_host_is_found() {
        let accepts = accepts(r#"{"*": ["view"], "Box": ["view"], "box": ["view"]}"#);
        assert_eq!(accepts.odd_names().collect::<Vec<_>>(), ["Box"]);
        assert!(serde_json::from_str::<Accepts>(r#"{"a": ["everything"]}"#).is_err());
    }
}
