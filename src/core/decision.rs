//! What `decide` returns: everything that one commit writes, and what may be done after the commit.

use super::effect::EffectKey;
use super::id::{AgentId, ErrorId, HandoffId, ItemId, RequestId, Slug};
use super::pane::ServerId;
use super::reply::Answer;
use super::rows::agent::Agent;
use super::rows::handoff::Handoff;
use super::rows::item::Item;
use super::rows::lookup::OpenRequest;
use super::rows::outbox::Pending;
use super::rules::Rules;
use super::time::Now;
use crate::contract::ErrorFile;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The input of one cycle besides the event: both clocks, and random bytes from which ids are made.
#[derive(Debug, Clone, Copy)]
pub struct Cycle {
    pub now: Now,
    pub entropy: [u8; 32],
}

/// A failure that the operator is notified of: the content of a file in `errors/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRow {
    /// Also the file's name, without `.json`.
    pub error_id: ErrorId,
    pub at: String,
    pub code: String,
    pub message: String,
    pub hint: String,
    /// The handoff in which the failure happened, if any.
    pub handoff_id: Option<HandoffId>,
    /// The agent that the failure concerns, if any.
    pub agent_id: Option<AgentId>,
    pub step: Option<String>,
}

impl ErrorRow {
    /// The content of its file in `errors/`.
    #[must_use]
    pub fn file(&self) -> ErrorFile {
        ErrorFile {
            v: 1,
            error_id: self.error_id.to_string(),
            at: self.at.clone(),
            code: self.code.clone(),
            message: self.message.clone(),
            hint: self.hint.clone(),
            handoff_id: self.handoff_id.map(|id| id.to_string()),
            agent_id: self.agent_id.map(|id| id.to_string()),
            step: self.step.clone(),
        }
    }
}

/// Everything that one commit writes, and what may be done after it.
#[derive(Debug, Clone, Default)]
pub struct Decision {
    pub agents: BTreeMap<AgentId, Agent>,
    pub handoffs: BTreeMap<HandoffId, Handoff>,
    pub items: BTreeMap<ItemId, Item>,
    /// Texts of recorded documents to store. `None` deletes a text that no step needs any more.
    pub documents: BTreeMap<HandoffId, Option<String>>,
    /// Requests that this decision accepts. `answers` may already answer them.
    pub opened: Vec<(RequestId, OpenRequest)>,
    pub answers: Vec<Answer>,
    pub effects: Vec<(EffectKey, Pending)>,
    pub dropped: Vec<EffectKey>,
    pub errors: Vec<ErrorRow>,
    pub dismissed: Vec<ErrorId>,
    pub journal: Vec<(u64, Value)>,
    /// The key of the first effect after this decision.
    pub next_effect: u64,
    /// The number of the first journal line after this decision.
    pub next_seq: u64,
    /// The tmux server that answers now, if that has changed; `Some(None)` if none answers any more.
    pub server: Option<Option<ServerId>>,
    /// The rules for work items, if they have changed.
    pub rules: Option<Rules>,
    /// The roles of personas, if they have changed.
    pub roles: Option<BTreeMap<Slug, String>>,
    /// The loop's own probe was among the events. Nothing is written for it.
    pub probed: bool,
}

impl Decision {
    /// Joins a later decision of the same batch to this one.
    pub fn absorb(&mut self, later: Decision) {
        self.agents.extend(later.agents);
        self.handoffs.extend(later.handoffs);
        self.items.extend(later.items);
        self.documents.extend(later.documents);
        self.opened.extend(later.opened);
        self.answers.extend(later.answers);
        self.effects.extend(later.effects);
        self.dropped.extend(later.dropped);
        self.errors.extend(later.errors);
        self.dismissed.extend(later.dismissed);
        self.journal.extend(later.journal);
        self.next_effect = self.next_effect.max(later.next_effect);
        self.next_seq = self.next_seq.max(later.next_seq);
        if later.server.is_some() {
            self.server = later.server;
        }
        self.rules = later.rules.or(self.rules.take());
        self.roles = later.roles.or(self.roles.take());
        self.probed |= later.probed;
    }

    /// Whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.agents.is_empty()
            && self.handoffs.is_empty()
            && self.items.is_empty()
            && self.documents.is_empty()
            && self.opened.is_empty()
            && self.answers.is_empty()
            && self.effects.is_empty()
            && self.dropped.is_empty()
            && self.errors.is_empty()
            && self.dismissed.is_empty()
            && self.journal.is_empty()
    }
}
