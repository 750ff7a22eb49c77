//! Rows of history that a decision needs are there when it is made.

use super::growth_tests::failed_handoff;
use super::tests::Ground;
use crate::core::decision::Decision;
use crate::core::effect::{AutoHandoffCheck, Effect, EffectKey, Outcome};
use crate::core::event::Event;
use crate::core::hook::ContextUsage;
use crate::core::id::AgentId;
use crate::core::pane::{PaneRef, ServerId};
use crate::core::persona::PersonaFacts;
use crate::core::rows::agent::{Agent, AgentState};
use crate::core::rows::handoff::Handoff;
use crate::core::rows::outbox::{Pending, Waiter};
use crate::store::Batch;
use uuid::Uuid;

/// Its predecessor and the failed handoff, which still has the document, are history.
#[tokio::test]
async fn a_successor_that_was_not_briefed_is_not_handed_off_automatically() {
    let mut ground = Ground::new().await;
    ground.settle();
    let agent = |number: u128, state: AgentState| {
        let mut agent = Agent::new(AgentId(Uuid::from_u128(number)), "demo".to_owned(), String::new());
        agent.persona_slug = "dev".parse().ok();
        agent.state = state;
        agent
    };
    let pane = PaneRef { server: ServerId { pid: 7, start_time: 1 }, pane: 3, pid: 42 };
    let (key, mut heir) = (EffectKey(900), agent(7, AgentState::Idle));
    let heir_id = heir.agent_id;
    let handoff = Handoff { successor_id: Some(heir_id), ..failed_handoff(6) };
    let gone = Agent { recorded_in: Some(handoff.handoff_id), ..agent(6, AgentState::Ended) };
    (heir.previous_agent_id, heir.pane) = (Some(gone.agent_id), Some(pane));
    heir.context = Some(ContextUsage { used: 90, window: Some(100) });
    heir.context_watch.checking = Some(key);
    let effect = Effect::CheckAutoHandoff { agent_id: heir_id, pane, persona: "dev".parse().expect("a slug") };
    let decision = Decision {
        agents: [gone, heir].map(|agent| (agent.agent_id, agent)).into(),
        handoffs: [(handoff.handoff_id, handoff)].into(),
        effects: vec![(key, Pending { waiter: Waiter::Agent(heir_id), effect })],
        next_effect: 901,
        next_seq: ground.sidecar.state.next_seq,
        ..Decision::default()
    };
    let (now, sidecar) = (ground.sidecar.clock.now(), &mut ground.sidecar);
    sidecar.store.commit(&Batch { decision: &decision, now, seen: &[] }).expect("a commit");
    sidecar.state.apply(&decision);
    sidecar.state.evict_past(&decision);
    sidecar.state.settings.context.auto_at = Some(80);
    assert!(sidecar.state.handoffs.is_empty(), "it is history");
    let persona = PersonaFacts { exists: true, has_skill: true, ..PersonaFacts::default() };
    let outcome = Outcome::AutoHandoffCheck(Box::new(AutoHandoffCheck::new(Some(0), persona)));
    sidecar.events.push(Event::Settled { key, outcome });
    ground.cycle();
    let state = &ground.sidecar.state;
    let why = state.agents[&heir_id].context_watch.deferred_because.clone().unwrap_or_default();
    assert!(why.contains("has not got its predecessor's document"), "{why}");
    assert!(state.handoffs.is_empty(), "and the rows are history again");
}
