//! Which roles an agent has: those that `rules.toml` gives its persona, and that of its own `persona.toml`.

use crate::core::id::Slug;
use crate::core::rows::agent::Agent;
use crate::core::rules::{Rule, Rules};
use crate::core::tx::Tx;
use std::collections::{BTreeMap, BTreeSet};

/// The rules and roles by which tasuki judges who can process an item.
#[derive(Clone, Copy)]
pub(super) struct Judge<'t> {
    pub(super) rules: &'t Rules,
    roles: &'t BTreeMap<Slug, String>,
}

impl<'t> Judge<'t> {
    /// With what is in force now.
    pub(super) fn now(tx: &'t Tx<'_>) -> Self {
        Judge { rules: tx.rules(), roles: tx.out.roles.as_ref().unwrap_or(&tx.state.roles) }
    }

    /// With what was in force before this decision.
    pub(super) fn before(tx: &'t Tx<'_>) -> Self {
        Judge { rules: &tx.state.settings.rules, roles: &tx.state.roles }
    }

    /// An agent without a persona has none.
    pub(super) fn roles_of(&self, agent: &Agent) -> BTreeSet<&'t str> {
        let Some(slug) = &agent.persona_slug else { return BTreeSet::new() };
        self.rules.roles_of(slug, self.roles.get(slug).map(String::as_str))
    }

    /// Whether an agent has one of the rule's roles.
    pub(super) fn plays(&self, agent: &Agent, rule: &Rule) -> bool {
        rule.is_for(&self.roles_of(agent))
    }
}
