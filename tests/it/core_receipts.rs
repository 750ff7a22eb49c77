//! What a receipt is worth, decided without a machine: with a transcript that tells which prompts were taken, and
//! without.

use crate::support::decided::Decided;
use crate::support::facts::demo_facts;
use serde_json::{Value, json};
use tasuki::core::decision::Decision;
use tasuki::core::effect::{Effect, EffectKey, Outcome};
use tasuki::core::event::{Event, IncomingRequest, RequestFacts};
use tasuki::core::hook::{HookEvent, HookKind};
use tasuki::core::id::AgentId;
use tasuki::core::pane::{PaneRef, ServerId};
use tasuki::core::reply::Reply;
use tasuki::core::request;
use tasuki::core::rows::agent::{Agent, AgentState};
use tasuki::core::settings::ProfileFacts;

const PANE: PaneRef = PaneRef { server: ServerId { pid: 7, start_time: 1 }, pane: 3, pid: 42 };
const AGENT: &str = "6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa";

/// One idle agent, and a text that was typed and submitted.
struct World {
    core: Decided,
    /// The text.
    text: String,
}

impl World {
    fn new(proves_prompts: bool) -> World {
        let mut agent = Agent::new(id(), "demo".to_owned(), String::new());
        agent.persona_slug = "dev".parse().ok();
        agent.state = AgentState::Idle;
        agent.pane = Some(PANE);
        agent.hooks_seen = true;
        agent.transcript_path = Some("/t".to_owned());
        let profile = ProfileFacts { reports_context: false, proves_prompts, ..demo_facts() };
        let mut core = Decided::new(PANE.server, profile, [agent]);
        let request = json!({"v": 1, "kind": "agent_send", "agent_id": AGENT, "text": "Look at the parser."});
        let read = request::read(request.to_string().as_bytes());
        let arrived = IncomingRequest {
            id: "r1".parse().expect("an id"),
            sha256: String::new(),
            read,
            facts: RequestFacts::default(),
        };
        core.decide(Event::Request(Box::new(arrived)));
        let text = core.state.outbox.values().find_map(|pending| match &pending.effect {
            Effect::Type(plan) => Some(plan.text.clone()),
            _ => None,
        });
        World { core, text: text.expect("it is typed") }
    }

    /// The CLI tells of something in that turn.
    fn hears(&mut self, kind: HookKind, turn: &str, text: Option<&str>) -> Option<Value> {
        let event = HookEvent {
            agent_id: Some(id()),
            turn_id: Some(turn.to_owned()),
            text: text.map(str::to_owned),
            ..HookEvent::new(kind)
        };
        verdict_in(&self.core.decide(Event::Hook(Box::new(event))))
    }

    /// It tells of our text, with somebody's keys in front of it.
    fn hears_ours(&mut self, keys: &str) -> Option<Value> {
        let text = format!("{keys}{}", self.text);
        self.hears(HookKind::PromptSubmit, "a", Some(&text))
    }

    fn passes(&mut self, ms: u64) -> Option<Value> {
        verdict_in(&self.core.pass(ms))
    }

    /// The effect that reads the transcript.
    fn reading(&self) -> Option<EffectKey> {
        let is_it = |effect: &Effect| matches!(effect, Effect::AwaitPrompt { .. });
        self.core.state.outbox.iter().find(|(_, effect)| is_it(effect)).map(|(key, _)| *key)
    }

    fn is_read(&mut self, outcome: Outcome) -> Option<Value> {
        let key = self.reading().expect("the transcript is read");
        verdict_in(&self.core.decide(Event::Settled { key, outcome }))
    }
}

fn id() -> AgentId {
    AGENT.parse().expect("an id")
}

/// What the sender is told in a decision: verdict and reason.
fn verdict_in(decision: &Decision) -> Option<Value> {
    decision.answers.iter().find_map(|answer| match &answer.reply {
        Reply::Ok(verdict) => Some(json!([verdict["verdict"], verdict["reason"]])),
        _ => None,
    })
}

#[test]
fn a_text_counts_when_it_stands_in_the_transcript() {
    let mut world = World::new(true);
    assert_eq!(world.hears_ours(""), None, "the hook is earlier than the CLI's own mind");
    assert_eq!(world.hears_ours(""), None, "hooks may be installed twice");
    assert_eq!(world.is_read(Outcome::Done), Some(json!(["delivered", null])));
    assert!(world.core.state.outbox.is_empty());
    let mut world = World::new(true);
    world.hears_ours("");
    assert_eq!(world.is_read(Outcome::Failed { why: String::new() }), Some(json!(["delivered", null])));
    let mut world = World::new(true);
    world.hears_ours("x");
    assert_eq!(world.is_read(Outcome::Failed { why: String::new() }), Some(json!(["unconfirmed", "not_taken"])));
}

#[test]
fn a_text_that_does_not_come_into_the_transcript_is_in_doubt() {
    let mut world = World::new(true);
    world.hears_ours("");
    assert_eq!(world.passes(29_999), None, "the user's own hooks may be slow");
    assert_eq!(world.passes(1), Some(json!(["unconfirmed", "not_taken"])));
    assert!(world.reading().is_none(), "and nobody reads on");
    let mut world = World::new(true);
    world.hears_ours("");
    let other = world.hears(HookKind::PromptSubmit, "b", Some("my own words"));
    assert_eq!(other, Some(json!(["unconfirmed", "not_taken"])));
    let mut world = World::new(true);
    world.hears_ours("");
    assert_eq!(world.hears(HookKind::Stop, "a", None), Some(json!(["delivered", null])), "it was answered");
}

#[test]
fn where_nothing_else_tells_a_merged_text_is_believed_when_no_other_prompt_follows() {
    let mut world = World::new(false);
    assert_eq!(world.hears_ours(""), Some(json!(["delivered", null])));
    for same_turn in [true, false] {
        let mut world = World::new(false);
        assert_eq!(world.hears_ours("x"), None);
        let turn = if same_turn { "a" } else { "b" };
        let other = world.hears(HookKind::PromptSubmit, turn, Some("my own words"));
        assert_eq!(other, Some(json!(["unconfirmed", "not_taken"])));
    }
    let mut world = World::new(false);
    world.hears_ours("x");
    assert_eq!(world.passes(1_999), None);
    assert_eq!(world.passes(1), Some(json!(["delivered", "merged_draft"])));
    let mut world = World::new(false);
    world.hears_ours("x");
    assert_eq!(world.hears(HookKind::Stop, "a", None), Some(json!(["delivered", "merged_draft"])));
}
