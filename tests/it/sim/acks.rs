//! Acknowledgements in the simulated world: agents that acknowledge, ask, refuse, err or keep silent; an operator who
//! answers or overrides; and what must hold of them.

use super::world::World;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tasuki::core::id::HandoffId;
use tasuki::core::rows::ack::{Ack, Kind, Sending, Standing};
use tasuki::core::rows::handoff::Step;
use tasuki::core::settings::{Settings, Target};

/// What some world must have come to.
pub(crate) const WAYS: [&str; 6] = [
    "ack acknowledged",
    "ack acknowledged_with_delay",
    "ack late",
    "ack after answers",
    "ack with another document",
    "limit of acknowledging",
];

/// The world's own orchestrator and escalation target.
pub(crate) fn targets(settings: &Settings, seed: u64) -> Settings {
    let target = |n: u64| match n % 4 {
        0 => Target::Operator,
        1 => Target::Command(vec!["page".to_owned()]),
        2 => Target::Agent("dev".to_owned()),
        _ => Target::Agent("nobody".to_owned()),
    };
    Settings { orchestrator: target(seed), escalation: target(seed / 4), ..settings.clone() }
}

impl World {
    pub(crate) fn urgency(&mut self) -> Option<&'static str> {
        match self.rng.below(12) {
            0 | 1 => Some("immediate"),
            2 => Some("prepare"),
            3 => Some("when_available"),
            _ => None,
        }
    }

    /// Agents whose turn has told them how to acknowledge do so, or something else.
    pub(crate) fn agents_acknowledge(&mut self) {
        let handoffs: Vec<HandoffId> = self.disk.handoffs().map(|row| row.handoff_id).collect();
        let asked: Vec<String> = self
            .tmux
            .agents
            .iter_mut()
            .filter(|agent| agent.alive)
            .filter_map(|agent| agent.asked_to_ack.take())
            .collect();
        for form in asked {
            let Ok(mut ack) = serde_json::from_str::<Value>(&form) else { continue };
            match self.rng.below(14) {
                0..4 => {}
                12 | 4 => ack["questions"] = json!(["Which one?"]),
                5 => (ack["questions"], ack["status"]) = (json!(["Which one?", "Why?"]), json!("needs_clarification")),
                6 => ack["status"] = json!("rejected"),
                7 => ack["status"] = json!("environment_issue"),
                8 => ack["understanding"] = json!(7),
                9 => ack["handoff_id"] = json!(handoffs[self.rng.below(handoffs.len() as u64) as usize]),
                _ => continue,
            }
            self.ask(&ack);
            if self.rng.chance(20) {
                self.ask(&ack);
            }
        }
        self.ack_late();
    }

    /// A successor that was silent until its time was up, and now answers.
    fn ack_late(&mut self) {
        if !self.rng.chance(10) {
            return;
        }
        let late = self.disk.handoffs().find(|row| row.error.as_ref().is_some_and(|error| error.code == "ack_timeout"));
        let Some((id, Some(agent_id))) = late.map(|row| (row.handoff_id, row.successor_id)) else { return };
        let status = if !self.faults_on || self.rng.chance(70) { "ready_to_proceed" } else { "needs_clarification" };
        let questions = if status == "ready_to_proceed" { json!([]) } else { json!(["What?"]) };
        self.ask(&json!({
            "v": 1, "kind": "ack", "handoff_id": id, "agent_id": agent_id, "understanding": "late",
            "starting_from": "there", "questions": questions, "status": status,
        }));
    }

    /// A handoff whose successor waits for answers.
    fn asking(&self) -> Option<HandoffId> {
        let asks = |ack: &Ack| ack.standing == Standing::NeedsClarification && ack.timer.is_some();
        self.disk.handoffs().find(|row| row.ack.as_ref().is_some_and(asks)).map(|row| row.handoff_id)
    }

    /// The operator answers questions, if there are any.
    pub(crate) fn answer_questions(&mut self) -> bool {
        let Some(id) = self.asking() else { return false };
        let request = self.clarify(id);
        self.ask(&request);
        true
    }

    pub(crate) fn clarify(&mut self, id: HandoffId) -> Value {
        let answers = json!([{"question": "Which one?", "answer": "This one."}]);
        let mut request = json!({ "v": 1, "kind": "clarify", "handoff_id": id, "clarifications": answers });
        if self.rng.chance(40) {
            request["document"] = json!({ "text": "---\ncheckpoint: there\n---\n# Work\nBetter.\n" });
        }
        request
    }

    /// The ways in which acknowledgements of this world ended.
    pub(crate) fn ack_ways(&self) -> BTreeSet<String> {
        let done = self.disk.handoffs().filter(|handoff| handoff.step == Step::Done);
        let mut ways = BTreeSet::new();
        for ack in done.filter_map(|handoff| handoff.ack.as_ref()) {
            ways.insert(format!("ack {}", ack.standing.as_str()));
            if ack.received.as_ref().is_some_and(|received| received.late) {
                ways.insert("ack late".to_owned());
            }
            if !ack.answers.is_empty() && ack.standing == Standing::Acknowledged {
                ways.insert("ack after answers".to_owned());
            }
            if !ack.former_documents.is_empty() {
                ways.insert("ack with another document".to_owned());
            }
        }
        ways
    }
}

/// What must hold of acknowledgements when everything has come to rest.
pub(crate) fn at_rest(world: &World) -> Result<(), String> {
    for handoff in world.disk.handoffs() {
        let Some(ack) = &handoff.ack else { continue };
        let id = handoff.handoff_id;
        let unsettled =
            |message: &&tasuki::core::rows::ack::Message| matches!(message.sending, Sending::Waiting | Sending::Open);
        if let Some(message) = ack.messages.iter().find(unsettled) {
            return Err(format!("handoff {id}: a message is neither sent nor given up: {message:?}"));
        }
        if ack.timer.is_some() || ack.clarifying.is_some() {
            return Err(format!("handoff {id} has ended, and its acknowledgement waits: {ack:?}"));
        }
        let count = |kind: &str, code: Option<&str>| {
            let of = |line: &&(u64, Value)| line.1["type"] == kind && line.1["handoff_id"] == json!(id);
            world.disk.journal.iter().filter(of).filter(|line| code.is_none_or(|code| line.1["code"] == code)).count()
        };
        let (escalations, timeouts) = (count("escalation", None), count("handoff.failed", Some("ack_timeout")));
        if escalations != timeouts {
            return Err(format!("handoff {id}: {timeouts} times nobody answered, and {escalations} escalations"));
        }
        let reminders = ack.messages.iter().filter(|message| message.kind == Kind::Reminder).count();
        if ack.messages.len() < 100 && count("reminder", None) != reminders {
            return Err(format!("handoff {id}: {reminders} reminders, and the journal says otherwise"));
        }
    }
    once(world)
}

/// Each reminder was submitted at most once.
fn once(world: &World) -> Result<(), String> {
    let mut seen: BTreeMap<Vec<&str>, u32> = BTreeMap::new();
    let submitted = world.tmux.agents.iter().flat_map(|agent| &agent.submitted);
    for text in submitted.filter(|text| text.contains("[REMINDER]")) {
        let names = ["handoff_id: ", "original_sent: ", "reminder_number: ", "final_deadline: "];
        let fields = text.lines().filter(|line| names.iter().any(|name| line.starts_with(name))).collect();
        *seen.entry(fields).or_default() += 1;
    }
    match seen.into_iter().find(|(_, times)| *times > 1) {
        Some((reminder, times)) => Err(format!("a reminder was submitted {times} times: {reminder:?}")),
        None => Ok(()),
    }
}
