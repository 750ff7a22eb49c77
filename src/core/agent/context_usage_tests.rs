//! What follows from a full context, one decision after the other.

use super::*;
use crate::core::decision::{Cycle, Decision};
use crate::core::effect::Outcome;
use crate::core::event::Event;
use crate::core::hook::{HookEvent, HookKind, SessionReason};
use crate::core::needs::{self, AgentNeeds};
use crate::core::pane::{PaneRef, ServerId};
use crate::core::persona::PersonaFacts;
use crate::core::rows::agent::{AgentState, OurTurn};
use crate::core::rows::handoff::Step;
use crate::core::settings::{ContextLimits, ProfileFacts, Settings};
use crate::core::state::State;
use crate::core::time::Now;
use serde_json::Value;
use std::collections::BTreeMap;

#[path = "context_session_tests.rs"]
mod session;

const PANE: PaneRef = PaneRef { server: ServerId { pid: 7, start_time: 1 }, pane: 3, pid: 42 };

/// A sidecar's state with one idle agent of persona `dev`.
struct World {
    state: State,
    agent_id: AgentId,
    decisions: u8,
    /// How many minutes have passed besides.
    minutes: u64,
}

impl World {
    fn new(suggest_at: Option<u64>, auto_at: Option<u64>) -> Self {
        let agent_id: AgentId = "6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa".parse().expect("an id");
        let mut agent = Agent::new(agent_id, "demo".to_owned(), String::new());
        agent.persona_slug = "dev".parse().ok();
        agent.state = AgentState::Idle;
        agent.pane = Some(PANE);
        agent.session.id = Some("s1".to_owned());
        agent.transcript_path = Some("/t/s1.jsonl".to_owned());
        let profile = ProfileFacts::demo();
        let settings = Settings {
            context: ContextLimits { suggest_at, auto_at },
            profiles: BTreeMap::from([("demo".to_owned(), profile)]),
            ..Settings::default()
        };
        let agents = BTreeMap::from([(agent_id, agent)]);
        World {
            state: State { agents, server: Some(PANE.server), settings, ..State::default() },
            agent_id,
            decisions: 0,
            minutes: 0,
        }
    }

    fn now(&self) -> Now {
        let boot_ms = 1_000 * u64::from(self.decisions) + 60_000 * self.minutes;
        Now { wall_ms: 1_790_000_000_000, boot: 1, boot_ms }
    }

    fn decide(&mut self, event: Event) -> Decision {
        self.decisions += 1;
        let cycle = Cycle { now: self.now(), entropy: [self.decisions; 32] };
        let decision = crate::core::decide(&self.state, event, &cycle);
        self.state.apply(&decision);
        decision
    }

    fn hook(&mut self, kind: HookKind, change: impl FnOnce(&mut HookEvent)) -> Decision {
        let mut event = HookEvent::new(kind);
        event.agent_id = Some(self.agent_id);
        event.session_id.clone_from(&self.agent().session.id);
        change(&mut event);
        self.decide(Event::Hook(Box::new(event)))
    }

    /// Ends a turn after which the transcript says that this many of 100,000 tokens are used.
    fn stop(&mut self, used: u64) -> Decision {
        self.stop_with(ContextUsage { used, window: Some(100_000) }, false)
    }

    fn stop_with(&mut self, usage: ContextUsage, guessed: bool) -> Decision {
        self.hook(HookKind::Stop, |_| {});
        let key = self.agent().context_watch.reading.expect("the transcript is read");
        self.decide(Event::Settled { key, outcome: Outcome::ContextUsage(Some(Measured { usage, guessed })) })
    }

    /// Ends the agent's turn on a text of ours.
    fn stop_ours(&mut self, purpose: Purpose, used: u64) -> Decision {
        self.change(|agent| agent.our_turn = Some(OurTurn::of(purpose)));
        self.stop(used)
    }

    fn settle_check(&mut self, viewers: Option<u64>) -> Decision {
        self.settle_check_with(viewers, None)
    }

    fn settle_check_with(&mut self, viewers: Option<u64>, broken: Option<&str>) -> Decision {
        let key = self.agent().context_watch.checking.expect("the preconditions are checked");
        let broken = broken.map(str::to_owned);
        let persona = PersonaFacts { exists: true, has_skill: true, broken, ..PersonaFacts::default() };
        self.decide(Event::Settled {
            key,
            outcome: Outcome::AutoHandoffCheck(Box::new(AutoHandoffCheck::new(viewers, persona))),
        })
    }

    fn agent(&self) -> &Agent {
        &self.state.agents[&self.agent_id]
    }

    fn change(&mut self, change: impl FnOnce(&mut Agent)) {
        change(self.state.agents.get_mut(&self.agent_id).expect("it is there"));
    }
}

fn journaled(decision: &Decision) -> Vec<(String, Option<String>)> {
    let lines = decision.journal.iter().map(|(_, line)| line).filter(|line| line["auto"].is_string());
    let text = |value: &Value| value.as_str().map(str::to_owned);
    lines.map(|line| (text(&line["auto"]).unwrap_or_default(), text(&line["reason"]))).collect()
}

fn notices(decision: &Decision) -> usize {
    decision.effects.iter().filter(|(_, pending)| matches!(pending.effect, Effect::NotifyOperator(_))).count()
}

#[test]
fn context_usage_is_read_after_each_stop_and_shown() {
    let mut world = World::new(None, None);
    let decision = world.stop(45_900);
    assert_eq!(
        crate::core::view::agent(world.agent(), &world.state.settings).context.and_then(|context| context.percent),
        Some(45)
    );
    assert_eq!((journaled(&decision), notices(&decision)), (vec![], 0));
    assert_eq!(world.agent().context_watch.checking, None);
}

#[test]
fn a_later_stop_takes_the_place_of_an_earlier_reading() {
    let mut world = World::new(None, None);
    world.hook(HookKind::Stop, |_| {});
    let first = world.agent().context_watch.reading.expect("reading");
    world.stop(10);
    let usage = ContextUsage { used: 99, window: None };
    let late = Outcome::ContextUsage(Some(Measured { usage, guessed: false }));
    world.decide(Event::Settled { key: first, outcome: late });
    assert_eq!(world.agent().context.map(|context| context.used), Some(10));
    assert!(world.state.outbox.is_empty());
}

#[test]
fn the_operator_is_notified_of_a_full_context_once_in_a_session() {
    let mut world = World::new(Some(70), None);
    assert_eq!(journaled(&world.stop(69_999)), []);
    let decision = world.stop(70_000);
    assert_eq!((journaled(&decision), notices(&decision)), (vec![("suggested".to_owned(), None)], 1));
    assert_eq!(notices(&world.stop(80_000)), 0);
    assert_eq!(notices(&world.stop(10)) + notices(&world.stop(90_000)), 0);
    world.hook(HookKind::SessionEnd, |event| event.reason = Some(SessionReason::Replaced));
    world.hook(HookKind::SessionStart, |event| {
        event.reason = Some(SessionReason::Replaced);
        event.session_id = Some("s2".to_owned());
    });
    assert_eq!(world.agent().context, None);
    assert_eq!(notices(&world.stop(70_000)), 1);
}

#[test]
fn a_suggested_handoff_is_shown_as_long_as_the_context_is_full() {
    let mut world = World::new(Some(70), None);
    let is_seen = |world: &World| {
        let view = crate::core::view::agent(world.agent(), &world.state.settings);
        let needs = needs::list(&[AgentNeeds::of(&view)], &[], &[], &[]);
        (view.handoff_suggested, needs.into_iter().map(|need| need.command).collect::<Vec<_>>())
    };
    world.stop(69_999);
    assert_eq!(is_seen(&world), (false, vec![]));
    world.stop(70_000);
    let id = world.agent().agent_id.short();
    assert_eq!(is_seen(&world), (true, vec![format!("tasuki handoff {id} --reason context_limit --wait")]));
    world.stop(90_000);
    assert!(is_seen(&world).0, "it was told, and still holds");
    // The CLI has compacted it.
    world.stop(10_000);
    assert!(!is_seen(&world).0);
    world.stop(90_000);
    let handoff = HandoffId(uuid::Uuid::from_u128(1));
    world.change(|agent| agent.handoff_id = Some(handoff));
    assert!(!is_seen(&world).0, "its handoff is under way");
    world.change(|agent| agent.handoff_id = None);
    world.hook(HookKind::SessionEnd, |event| event.reason = Some(SessionReason::Replaced));
    world.hook(HookKind::SessionStart, |event| {
        event.reason = Some(SessionReason::Replaced);
        event.session_id = Some("s2".to_owned());
    });
    assert!(!is_seen(&world).0, "another session");
}

#[test]
fn context_usage_reported_by_the_cli_suggests_a_handoff_but_begins_none() {
    let mut world = World::new(Some(70), Some(70));
    let usage = ContextUsage { used: 90, window: Some(100) };
    let decision = world.hook(HookKind::Context, |event| event.context = Some(usage));
    assert_eq!(notices(&decision), 1);
    assert!(world.agent().context_watch.checking.is_none() && !world.agent().hooks_seen);
}

#[test]
fn an_automatic_handoff_begins_when_no_client_shows_the_agent() {
    let mut world = World::new(None, Some(80));
    world.stop(85_000);
    let decision = world.settle_check(Some(0));
    let handoff = world.state.handoffs.values().next().expect("a handoff");
    assert_eq!((handoff.reason.as_str(), handoff.agent_id), (REASON, world.agent_id));
    assert_ne!(handoff.step, Step::Failed);
    assert_eq!(journaled(&decision), [("begun".to_owned(), None)]);
    assert!(decision.answers.is_empty());
    assert_eq!(world.agent().handoff_id, Some(handoff.handoff_id));
}

#[test]
fn an_automatic_handoff_is_deferred_while_a_client_shows_the_agent() {
    let mut world = World::new(None, Some(80));
    world.stop(85_000);
    let why = |text: &str| vec![("put_off".to_owned(), Some(text.to_owned()))];
    let decision = world.settle_check(Some(1));
    assert_eq!(journaled(&decision), why("a tmux client is attached to the agent's window"));
    assert_eq!(notices(&decision), 0, "somebody is there");
    world.stop(86_000);
    assert_eq!(journaled(&world.settle_check(Some(2))), [], "the journal has said so");
    world.stop(86_000);
    assert_eq!(journaled(&world.settle_check(None)), why("tasuki could not check the agent's window"));
    assert!(world.state.handoffs.is_empty());
    world.stop(87_000);
    world.settle_check(Some(0));
    assert_eq!(world.state.handoffs.len(), 1);
}

#[test]
fn no_automatic_handoff_of_an_agent_that_is_busy_anonymous_or_in_a_handoff() {
    let cases: [fn(&mut Agent); 4] = [
        |agent| agent.persona_slug = None,
        |agent| agent.pane = None,
        |agent| agent.recorded_in = Some(HandoffId(uuid::Uuid::nil())),
        |agent| agent.handoff_id = Some(HandoffId(uuid::Uuid::nil())),
    ];
    for change in cases {
        let mut world = World::new(Some(50), Some(50));
        world.change(change);
        world.stop(90_000);
        assert!(world.agent().context_watch.checking.is_none());
    }
    let mut world = World::new(None, Some(50));
    world.stop(90_000);
    world.hook(HookKind::PromptSubmit, |event| event.text = Some("continue".to_owned()));
    world.settle_check(Some(0));
    assert!(world.state.handoffs.is_empty(), "the agent has become busy meanwhile");
}

#[test]
fn the_operator_learns_once_why_an_automatic_handoff_is_refused() {
    let mut world = World::new(None, Some(50));
    world.stop(90_000);
    world.state.server = None;
    let decision = world.settle_check(Some(0));
    assert_eq!(journaled(&decision), [("put_off".to_owned(), Some("No tmux server answers".to_owned()))]);
    assert_eq!(notices(&decision), 1);
    world.stop(91_000);
    let decision = world.settle_check(Some(0));
    assert_eq!((journaled(&decision), notices(&decision)), (vec![], 0), "for the same reason");
    world.stop(92_000);
    let key = world.agent().context_watch.checking.expect("the preconditions are checked");
    let decision = world.decide(Event::Settled { key, outcome: Outcome::Failed { why: "a disk hangs".to_owned() } });
    assert_eq!((journaled(&decision).len(), notices(&decision)), (1, 1), "another reason");
}

#[test]
fn no_handoff_begins_by_itself_without_the_settings_of_its_persona() {
    let mut world = World::new(None, Some(50));
    for (used, told) in [(90_000, 1), (91_000, 0)] {
        world.stop(used);
        let decision = world.settle_check_with(Some(0), Some("persona.toml, line 2: unknown field"));
        assert_eq!((notices(&decision), world.state.handoffs.len()), (told, 0), "{used}: told once");
    }
    world.stop(92_000);
    world.settle_check(Some(0));
    assert_eq!(world.state.handoffs.len(), 1, "as soon as it can be read");
}

#[test]
fn only_one_automatic_handoff_begins_in_a_session() {
    let mut world = World::new(None, Some(50));
    world.stop(90_000);
    world.settle_check(Some(0));
    world.state.handoffs.clear();
    world.change(|agent| agent.handoff_id = None);
    world.stop(95_000);
    assert!(world.agent().context_watch.checking.is_none());
}

/// A successor that is full without any work would be followed by another, as full as itself, and so on for ever. A
/// successor that has worked until its context was full is handed off, however many there were before.
#[test]
fn a_successor_that_is_full_before_it_has_worked_is_not_handed_off() {
    let briefing = || Purpose::Briefing(HandoffId(uuid::Uuid::from_u128(1)));
    for (used_by_priming, minutes, why) in [
        (80_000, 0, Some(FULL_AT_START)),
        (80_000, 60, Some(FULL_AT_START)),
        (79_999, 1, Some(FULL_WITHOUT_WORK)),
        (79_999, 3, None),
        (20_000, 60, None),
    ] {
        for is_released in [false, true] {
            let mut world = World::new(None, Some(80));
            world.change(|agent| agent.handoff_id = Some(HandoffId(uuid::Uuid::from_u128(1))));
            world.stop_ours(Purpose::Priming(None), used_by_priming);
            let now = world.now();
            world.change(|agent| {
                briefed(&now, agent);
                agent.handoff_id = None;
                // The handoff was done when the agent was seen to read its document.
                agent.answering = is_released.then(|| HandoffId(uuid::Uuid::from_u128(1)));
            });
            world.minutes += minutes;
            let decision = if is_released { world.stop(85_000) } else { world.stop_ours(briefing(), 85_000) };
            let expected: Vec<_> = why.map(|why| ("put_off".to_owned(), Some(why.to_owned()))).into_iter().collect();
            assert_eq!(journaled(&decision), expected, "{used_by_priming} {minutes} {is_released}");
            assert_eq!(notices(&decision), expected.len());
            assert_eq!(world.agent().context_watch.checking.is_none(), why.is_some());
            if why.is_some() {
                world.change(|agent| agent.answering = None);
                assert_eq!(notices(&world.stop(86_000)), 0);
            }
            world.settle_check(Some(0));
            assert_eq!(world.state.handoffs.len(), 1, "it has worked, at least in its next turn");
        }
    }
}

#[test]
fn an_agent_that_has_read_only_its_skill_is_not_handed_off() {
    let mut world = World::new(None, Some(80));
    let decision = world.stop_ours(Purpose::Priming(None), 90_000);
    assert_eq!((journaled(&decision).len(), notices(&decision)), (1, 1));
    assert_eq!(world.agent().context_watch.checking, None);
}

#[test]
fn a_guessed_window_begins_no_handoff_and_a_reported_one_replaces_it() {
    let guess = ContextUsage { used: 190_000, window: Some(200_000) };
    let mut world = World::new(None, Some(50));
    let decision = world.stop_with(guess, true);
    assert!(journaled(&decision)[0].1.as_ref().is_some_and(|why| why.contains("is a guess")));
    assert!(world.agent().context_watch.checking.is_none());
    let told = ContextUsage { used: 190_000, window: Some(1_000_000) };
    world.hook(HookKind::Context, |event| event.context = Some(told));
    world.stop_with(guess, true);
    assert_eq!(world.agent().context.and_then(|context| context.percent()), Some(19));
    assert!(!world.agent().context_watch.guessed);
}
