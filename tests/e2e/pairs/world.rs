//! A stage with two agents of one persona, to which pairs are done one after the other; and how it comes to rest in
//! between.

use super::acts::{About, Act, Ask};
use super::{Pair, check};
use crate::support::stage::Stage;
use serde_json::{Value, json};
use std::time::Duration;

/// Short limits: whatever waits for an agent that does not answer is over soon.
const LIMITS: &str = "[limits]\nwaiting = \"3s\"\ninstructing = \"3s\"\nwriting = \"4s\"\nending = \"3s\"\nstarting = \"12s\"\npriming = \"4s\"\nbriefing = \"3s\"\nreading = \"3s\"\n";
/// More agents than these are shut down after a pair.
const MOST_AGENTS: usize = 3;

pub(super) struct World {
    pub(super) stage: Stage,
    said: Vec<String>,
    handoff: String,
}

impl World {
    pub(super) fn new() -> World {
        let stage = Stage::with_config(LIMITS);
        stage.player("dev", "developer");
        stage.send(&json!({"kind": "agent_create", "persona_slug": "dev"}));
        World { stage, said: Vec::new(), handoff: "none".to_owned() }
    }

    pub(super) fn say(&mut self, what: String) {
        self.said.push(what);
    }

    /// The last that was said, and all that the stage knows: what a failure is told with.
    pub(super) fn story(&self) -> String {
        let from = self.said.len().saturating_sub(3);
        format!("{}\n{}", self.said[from..].join("\n"), self.stage.story())
    }

    /// Does both, waits until both are answered and everything is at rest, and looks at what is left.
    pub(super) fn run(&mut self, number: u64, pair: Pair) {
        let needs_two = pair.is_about_another || [pair.first, pair.second].contains(&Act::Ask(Ask::Existing));
        let agents = self.free_agents(if needs_two { 2 } else { 1 });
        let view = |place: usize| self.stage.agent_view(&agents[place.min(agents.len() - 1)]);
        let (one, other) = (view(0), view(1));
        let is_work = |act: Act| matches!(act, Act::Ask(Ask::Claim | Ask::Release));
        let wants_item = is_work(pair.first) || is_work(pair.second);
        let item = if wants_item { self.stage.item_of("task", &format!("item {number}")) } else { "none".to_owned() };
        let words = [format!("word-{number}-a"), format!("word-{number}-b")];
        let id_of = |view: &Value| view["agent_id"].as_str().expect("an id").to_owned();
        let (one_id, other_id) = (id_of(&one), id_of(&other));
        let handoff = self.handoff.clone();
        let about = |agent, other, word| About { agent, other, handoff: &handoff, item: &item, word };
        let first = pair.first.go(self, &about(&one, &other_id, &words[0]));
        if pair.later_ms > 0 {
            std::thread::sleep(Duration::from_millis(pair.later_ms));
        }
        let second = if pair.is_about_another {
            pair.second.go(self, &about(&other, &one_id, &words[1]))
        } else {
            pair.second.go(self, &about(&one, &other_id, &words[1]))
        };
        let asked: Vec<(String, String)> =
            [first, second].into_iter().zip(words).filter_map(|(id, word)| Some((id?, word))).collect();
        self.say(format!("asked {asked:?} of {one_id} and {other_id}"));
        let answers = self.answered(&asked);
        self.come_to_rest();
        check::answers(self, &answers);
        check::views(self);
        self.stage.check_once();
        self.tidy(&item);
    }

    fn answered(&mut self, asked: &[(String, String)]) -> Vec<(Value, String)> {
        let answers: Vec<(Value, String)> = asked
            .iter()
            .map(|(id, word)| {
                let answer = self.wait(&format!("{id} is answered"), || {
                    crate::support::stage_files::read_json(&self.stage.spool(&format!("results/{id}.json")))
                });
                (answer, word.clone())
            })
            .collect();
        for (answer, _) in &answers {
            if let Some(id) = answer["result"]["handoff_id"].as_str() {
                id.clone_into(&mut self.handoff);
            }
        }
        self.say(format!("answers {answers:?}"));
        answers
    }

    /// Every handoff ends, and every agent rests, at the latest when a person has tidied its pane and its turn has
    /// ended.
    fn come_to_rest(&self) {
        self.wait("every handoff has ended", || self.running_handoffs().is_empty().then_some(()));
        for agent in self.living() {
            if let Some(pane) = agent["pane"].as_str() {
                self.stage.tmux(&["send-keys", "-t", pane, "-X", "cancel"]);
                self.stage.tmux(&["send-keys", "-t", pane, "C-e", "C-u"]);
            }
        }
        self.wait("no agent starts any more", || self.in_states(&["starting"]).is_empty().then_some(()));
        self.wait("no text waits", || self.texts().is_empty().then_some(()));
        let mut looks = 0;
        self.wait("every agent rests", || {
            let restless = self.in_states(&["starting", "busy", "blocked"]);
            // A turn of its own is over by now: what never ended was told by a hook of ours alone, and so is its end.
            if looks % 50 == 20 {
                restless.iter().for_each(|agent| self.end_turn(agent, looks));
            }
            looks += 1;
            restless.is_empty().then_some(())
        });
    }

    fn end_turn(&self, agent: &Value, number: usize) {
        let stop = json!({"v": 1, "event": "stop", "agent_id": agent["agent_id"], "pane": agent["pane"],
            "session_id": agent["session_id"], "profile": "demo"});
        let name = format!("rest-{}-{number}-{}.json", self.said.len(), agent["pid"]);
        self.stage.drop_file("events", &name, stop.to_string().as_bytes());
    }

    /// What would be in the way of the next pair: failed handoffs, and agents beyond a few.
    fn tidy(&mut self, item: &str) {
        for handoff in self.stage.views("handoffs").iter().filter(|view| view["step"] == "failed") {
            let asked = json!({"kind": "handoff_abandon", "handoff_id": handoff["handoff_id"]});
            let answer = self.ask(&asked);
            let code = answer["error"]["code"].as_str().unwrap_or_default();
            assert!(answer["ok"] == true || code == "abandoned", "{answer}\n{}", self.story());
        }
        if item != "none" {
            self.ask(&json!({"kind": "work_escalate", "item_id": item, "agent_id": "human", "reason": "over"}));
        }
        for agent in self.living().iter().skip(MOST_AGENTS) {
            self.ask(&json!({"kind": "agent_shutdown", "agent_id": agent["agent_id"], "force": true}));
        }
        self.come_to_rest();
    }

    fn ask(&self, request: &Value) -> Value {
        let id = self.stage.send(request);
        self.wait(&format!("{request} is answered"), || {
            crate::support::stage_files::read_json(&self.stage.spool(&format!("results/{id}.json")))
        })
    }

    /// As many idle agents of the persona in panes of their own, made if there are too few.
    fn free_agents(&self, wanted: usize) -> Vec<String> {
        let free = || -> Vec<String> {
            let is_free = |view: &&Value| {
                let is_whole =
                    view["persona_slug"] == "dev" && view["pane"].is_string() && view["handoff_id"].is_null();
                view["state"] == "idle" && is_whole
            };
            let ids = self.stage.views("agents");
            ids.iter().filter(is_free).filter_map(|view| view["agent_id"].as_str().map(str::to_owned)).collect()
        };
        loop {
            // The same look that has found them: one of them may be in a turn at the next.
            let free = free();
            if free.len() >= wanted {
                return free;
            }
            let answer = self.ask(&json!({"kind": "agent_create", "persona_slug": "dev"}));
            assert!(answer["ok"] == true, "{answer}\n{}", self.story());
            let made = answer["result"]["agent_id"].as_str().expect("an id");
            self.wait("the new agent is idle", || (self.stage.agent_view(made)["state"] == "idle").then_some(()));
            self.come_to_rest();
        }
    }

    pub(super) fn living(&self) -> Vec<Value> {
        let mut views = self.stage.views("agents");
        views.retain(|view| !matches!(view["state"].as_str(), Some("ended" | "lost")));
        views
    }

    fn in_states(&self, states: &[&str]) -> Vec<Value> {
        let mut views = self.living();
        views.retain(|view| states.iter().any(|state| view["state"] == *state));
        views
    }

    fn running_handoffs(&self) -> Vec<Value> {
        let mut views = self.stage.views("handoffs");
        views.retain(|view| !matches!(view["step"].as_str(), Some("done" | "failed" | "cancelled")));
        views
    }

    /// Agents for which a text waits.
    fn texts(&self) -> Vec<Value> {
        let mut views = self.living();
        views.retain(|view| view["waiting_texts"] != 0);
        views
    }

    /// Polls until there is something; fails with the pair and all that the stage knows.
    fn wait<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let until = std::time::Instant::now() + crate::support::stage::PATIENCE;
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(std::time::Instant::now() < until, "never: {what}\n{}", self.story());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
