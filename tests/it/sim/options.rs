//! What the operator of the world asks of a handoff: its dials, turned by chance.

use super::world::World;
use serde_json::{Value, json};

impl World {
    /// A handoff with its dials turned by chance.
    pub(crate) fn handoff(&mut self, agent: &str, other: &str) -> Value {
        let mut request = json!({ "v": 1, "kind": "handoff", "agent_id": agent, "reason": "context_limit" });
        request["now"] = json!(self.rng.chance(20));
        match self.rng.below(10) {
            0..2 => request["author"] = json!("agent_reply"),
            2 => request["author"] = json!("salvage"),
            3 => {
                request["author"] = json!("provided");
                request["document"] = json!({ "text": "# Work" });
            }
            _ => {}
        }
        if let Some(successor) = self.successor(other) {
            request["successor"] = successor;
        }
        if let Some(urgency) = self.urgency() {
            request["urgency"] = json!(urgency);
            request["tasks"] = json!(["the task"]);
        }
        match self.rng.below(12) {
            0 => request["check"] = json!("off"),
            1 => request["check"] = json!("warn"),
            2 => request["check"] = json!("hold"),
            3 => request["review"] = json!(true),
            _ => {}
        }
        self.publish_dial(&mut request);
        request
    }

    pub(crate) fn successor(&mut self, other: &str) -> Option<Value> {
        match self.rng.below(8) {
            0 | 1 => Some(json!("same_pane")),
            2..5 => Some(json!({ "agent_id": other })),
            5 => Some(json!("new")),
            _ => None,
        }
    }

    /// Mostly one that could take over.
    pub(crate) fn another(&mut self, agent: &str, agents: &[String]) -> String {
        let could = |other: &&String| {
            let row = self.disk.agents().find(|row| row.agent_id.to_string() == **other);
            *other != agent && row.is_some_and(|row| row.state.is_live() && row.persona_slug.is_some())
        };
        let fit: Vec<&String> = agents.iter().filter(could).collect();
        let from = if fit.is_empty() || self.rng.chance(30) { agents.iter().collect() } else { fit };
        from[self.rng.below(from.len() as u64) as usize].clone()
    }

    /// Turns the dial of a handoff that is asked for.
    fn publish_dial(&mut self, request: &mut Value) {
        match self.rng.below(6) {
            0 => request["publish"] = json!({ "gist": true }),
            1 => request["publish"] = json!({ "issue": "o/r#42" }),
            2 => request["publish"] = json!({ "issue": "o/r#42", "fallback": "gist" }),
            _ => {}
        }
    }
}
