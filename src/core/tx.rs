//! Write access to rows while a decision is made: a read finds a row as this decision has already changed it, or else
//! as the state has it.

use super::decision::{Cycle, Decision, ErrorRow};
use super::effect::{Effect, EffectKey, Notice};
use super::fact::Fact;
use super::id::{AgentId, DeliveryId, ErrorId, HandoffId, RequestId};
use super::notice::OperatorNotice;
use super::pane::ServerId;
use super::reply::{Answer, Refused, Reply};
use super::rows::agent::{Agent, AgentState};
use super::rows::handoff::Handoff;
use super::rows::outbox::{Pending, Waiter};
use super::state::State;
use super::text::sentence;
use super::time::Now;
use crate::contract::{JournalLine, LineType, maybe};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use uuid::Uuid;

/// A row to change: as this decision has already changed it, or else a copy from the state; none if there is no such
/// row.
pub(crate) fn to_change<'t, K: Ord + Copy, R: Clone + 't>(
    changed: &'t mut BTreeMap<K, R>,
    id: &K,
    before: impl FnOnce() -> Option<&'t R>,
) -> Option<&'t mut R> {
    match changed.entry(*id) {
        Entry::Occupied(row) => Some(row.into_mut()),
        Entry::Vacant(place) => before().map(|row| place.insert(row.clone())),
    }
}

/// A decision in the making: the state as it was, and the rows that the decision changes.
pub(crate) struct Tx<'s> {
    pub(crate) state: &'s State,
    pub(crate) now: Now,
    entropy: [u8; 32],
    drawn: u64,
    facts: VecDeque<Fact>,
    pub(crate) out: Decision,
}

impl<'s> Tx<'s> {
    pub(crate) fn new(state: &'s State, cycle: &Cycle) -> Self {
        let out = Decision { next_effect: state.next_effect, next_seq: state.next_seq, ..Decision::default() };
        Tx { state, now: cycle.now, entropy: cycle.entropy, drawn: 0, facts: VecDeque::new(), out }
    }

    /// 32 bytes that no other call of this decision gets.
    fn draw(&mut self) -> [u8; 32] {
        self.drawn += 1;
        let mut hash = Sha256::new();
        hash.update(self.entropy);
        hash.update(self.drawn.to_le_bytes());
        hash.finalize().into()
    }

    pub(crate) fn draw_uuid(&mut self) -> Uuid {
        let bytes = self.draw();
        let mut half = [0; 16];
        half.copy_from_slice(&bytes[..16]);
        uuid::Builder::from_random_bytes(half).into_uuid()
    }

    pub(crate) fn new_agent_id(&mut self) -> AgentId {
        AgentId(self.draw_uuid())
    }

    pub(crate) fn new_handoff_id(&mut self) -> HandoffId {
        HandoffId(self.draw_uuid())
    }

    pub(crate) fn new_delivery_id(&mut self) -> DeliveryId {
        let bytes = self.draw();
        let mut bits = [0; 8];
        bits.copy_from_slice(&bytes[..8]);
        DeliveryId::from_bits(u64::from_le_bytes(bits))
    }

    pub(crate) fn agent(&self, id: &AgentId) -> Option<&Agent> {
        self.out.agents.get(id).or_else(|| self.state.agents.get(id))
    }

    /// The agent's row, to be changed; an unknown id changes nothing.
    pub(crate) fn agent_mut(&mut self, id: &AgentId) -> Option<&mut Agent> {
        to_change(&mut self.out.agents, id, || self.state.agents.get(id))
    }

    pub(crate) fn handoff(&self, id: &HandoffId) -> Option<&Handoff> {
        self.out.handoffs.get(id).or_else(|| self.state.handoffs.get(id))
    }

    pub(crate) fn handoff_mut(&mut self, id: &HandoffId) -> Option<&mut Handoff> {
        to_change(&mut self.out.handoffs, id, || self.state.handoffs.get(id))
    }

    /// The ids of all agents in memory, including those that this decision adds.
    pub(crate) fn agent_ids(&self) -> Vec<AgentId> {
        let mut ids: Vec<AgentId> = self.state.agents.keys().copied().collect();
        ids.extend(self.out.agents.keys().filter(|id| !self.state.agents.contains_key(id)));
        ids
    }

    /// Queues a fact for the layers above.
    pub(crate) fn learn(&mut self, fact: Fact) {
        self.facts.push_back(fact);
    }

    /// Takes the oldest fact from the queue.
    pub(crate) fn next_fact(&mut self) -> Option<Fact> {
        self.facts.pop_front()
    }

    /// Adds an effect to the outbox, with what waits for its outcome.
    pub(crate) fn effect(&mut self, waiter: Waiter, effect: Effect) -> EffectKey {
        let key = EffectKey(self.out.next_effect);
        self.out.next_effect += 1;
        self.out.effects.push((key, Pending { waiter, effect }));
        key
    }

    /// Adds an effect to the outbox; a state machine of this agent waits for its outcome.
    pub(crate) fn effect_of(&mut self, agent_id: &AgentId, effect: Effect) -> EffectKey {
        self.effect(Waiter::Agent(*agent_id), effect)
    }

    /// Takes an effect out of the outbox: it is settled, or nobody wants it any more.
    pub(crate) fn drop_effect(&mut self, key: EffectKey) {
        let before = self.out.effects.len();
        self.out.effects.retain(|(other, _)| *other != key);
        if self.out.effects.len() == before {
            self.out.dropped.push(key);
        }
    }

    /// Gives a journal line its number and its time.
    pub(crate) fn journal(&mut self, line: JournalLine) {
        let seq = self.out.next_seq;
        let line = JournalLine { seq, at: self.now.rfc3339(), ..line };
        self.out.journal.push((seq, json!(line)));
        self.out.next_seq += 1;
    }

    /// Answers an open request, unless it was answered already.
    pub(crate) fn answer(&mut self, request_id: &RequestId, reply: Reply) {
        let opened = self.out.opened.iter().find(|(id, _)| id == request_id).map(|(_, open)| open);
        let Some(open) = opened.or_else(|| self.state.open_requests.get(request_id)) else { return };
        if self.out.answers.iter().any(|answer| answer.request_id == *request_id) {
            return;
        }
        let answer = Answer {
            request_id: request_id.clone(),
            kind: Some(open.kind.clone()),
            request_sha256: open.sha256.clone(),
            reply,
        };
        self.out.answers.push(answer);
    }

    /// The tmux server that answers.
    ///
    /// # Errors
    /// 503 `no_tmux`, with what is known of the cause.
    pub(crate) fn connected(&self) -> Result<ServerId, Refused> {
        self.state.server.ok_or_else(|| self.no_tmux())
    }

    /// The refusal of a request that needs a tmux server, while none answers.
    pub(crate) fn no_tmux(&self) -> Refused {
        Refused::no_tmux(self.state.tmux_problem.as_deref())
    }

    pub(crate) fn refuse(&mut self, request_id: &RequestId, refused: Refused) {
        self.answer(request_id, Reply::Refused(refused));
    }

    /// Reports a failure to the operator: an error file, and a notice by every configured channel. The caller writes
    /// the journal line.
    pub(crate) fn notify_failure(&mut self, failure: Failure) -> ErrorId {
        let row = self.error_row(failure);
        // If publishing fails, the handoff itself has not failed.
        let is_handoff = row.step.as_deref().is_some_and(|step| step != "publishing");
        let what = if is_handoff { "Handoff failed: " } else { "" };
        let text = format!("tasuki: {what}{} ({}). {}", row.message, row.code, row.hint);
        self.effect(
            Waiter::Nobody,
            Effect::NotifyOperator(Notice { error_id: Some(row.error_id), text, json: json!(row.file()) }),
        );
        row.error_id
    }

    /// Adds the error file of a failure.
    fn error_row(&mut self, failure: Failure) -> ErrorRow {
        let row = ErrorRow {
            error_id: ErrorId(self.draw_uuid()),
            at: self.now.rfc3339(),
            code: failure.code,
            message: failure.message,
            hint: sentence(&failure.hint),
            handoff_id: failure.handoff_id,
            agent_id: failure.agent_id,
            step: failure.step,
        };
        self.out.errors.push(row.clone());
        row
    }

    /// Reports a failure that does not stop a handoff: as [`Tx::notify_failure`], and with a journal line.
    pub(crate) fn notify_error(&mut self, failure: Failure) -> ErrorId {
        let line = failure.line();
        let error_id = self.notify_failure(failure);
        self.journal(JournalLine { error_id: Some(error_id.to_string()), ..line });
        error_id
    }

    /// Leaves an error file and a journal line for a failure. The caller sends one notice for several such failures.
    pub(crate) fn leave_error(&mut self, failure: Failure) -> ErrorId {
        let line = failure.line();
        let error_id = self.error_row(failure).error_id;
        self.journal(JournalLine { error_id: Some(error_id.to_string()), ..line });
        error_id
    }

    /// Reports a failure that concerns only one agent: as [`Tx::notify_error`].
    pub(crate) fn notify_agent_failure(
        &mut self,
        agent_id: &AgentId,
        code: &str,
        message: &str,
        hint: &str,
    ) -> ErrorId {
        self.notify_error(Failure::of_agent(agent_id, code, message, hint))
    }

    /// Notifies the operator of something that is not a failure, by every configured channel, with a journal line. The
    /// effect is in the same commit as the rows that led to it, so a crash loses no notice and adds none.
    pub(crate) fn notify_operator(&mut self, notice: OperatorNotice) {
        let (agent_id, handoff_id) = (notice.agent_id, notice.handoff_id);
        let record = notice.record(&self.now);
        self.journal(JournalLine {
            code: Some(record.code.as_str().to_owned()),
            message: Some(record.message.clone()),
            agent_id: maybe(agent_id),
            handoff_id: handoff_id.map(|id| Some(id.to_string())),
            ..JournalLine::new(LineType::Notice)
        });
        let text = format!("tasuki: {}", record.notice);
        self.effect(Waiter::Nobody, Effect::NotifyOperator(Notice { error_id: None, text, json: json!(record) }));
    }

    /// Sets an agent's state. If the state is a new one, writes the agent's journal line.
    pub(crate) fn set_state(&mut self, id: &AgentId, state: AgentState) {
        let timestamp = self.now.rfc3339();
        let Some(agent) = self.agent_mut(id) else { return };
        if agent.state == state {
            return;
        }
        agent.state = state;
        agent.state_since = Some(timestamp.clone());
        if !state.is_live() {
            agent.ended_at.get_or_insert(timestamp);
            agent.open_turn = None;
        }
        // Whatever dialog was open is closed by now.
        let dialog = agent.alerts.dialog.take_if(|_| state != AgentState::Blocked);
        let line = agent.line();
        if let Some(key) = dialog.and_then(|dialog| dialog.look) {
            self.drop_effect(key);
        }
        self.journal(line);
    }
}

pub(crate) struct Failure {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) hint: String,
    pub(crate) handoff_id: Option<HandoffId>,
    pub(crate) agent_id: Option<AgentId>,
    pub(crate) step: Option<String>,
}

impl Failure {
    /// A failure that concerns only one agent.
    pub(crate) fn of_agent(agent_id: &AgentId, code: &str, message: &str, hint: &str) -> Failure {
        Failure {
            code: code.to_owned(),
            message: message.to_owned(),
            hint: hint.to_owned(),
            handoff_id: None,
            agent_id: Some(*agent_id),
            step: None,
        }
    }

    /// Its journal line, without the id of its error file.
    fn line(&self) -> JournalLine {
        JournalLine {
            code: Some(self.code.clone()),
            message: Some(self.message.clone()),
            agent_id: maybe(self.agent_id),
            handoff_id: self.handoff_id.map(|id| Some(id.to_string())),
            ..JournalLine::new(LineType::Error)
        }
    }
}
