//! Time in the decisions themselves: deadlines that outlive a boot, and an agent of which nothing is heard.

use crate::support::decided::Decided;
use crate::support::facts::demo_facts;
use serde_json::{Value, json};
use tasuki::core::decision::Decision;
use tasuki::core::effect::{Effect, EffectKey, Outcome, Readiness, Started};
use tasuki::core::event::{Event, Exit};
use tasuki::core::hook::{HookEvent, HookKind, SessionReason};
use tasuki::core::id::AgentId;
use tasuki::core::pane::{PaneFacts, PaneRef, Process, Refusal, ServerId, Typed};
use tasuki::core::reply::Reply;
use tasuki::core::rows::agent::{
    Agent, AgentState, Asker, IdleWatch, OpenDialog, OurTurn, Owner, PendingExit, Phase, Primed, Purpose, Queued,
    Shutdown, Start, Typing, WatchState,
};
use tasuki::core::rows::outbox::Pending;
use tasuki::core::settings::ProfileFacts;
use tasuki::core::state::State;
use tasuki::core::time::{Deadline, Now};

const PANE: PaneRef = PaneRef { server: ServerId { pid: 7, start_time: 1 }, pane: 3, pid: 42 };
const AGENT: &str = "6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa";
/// So long nothing may be heard of a busy agent, in milliseconds.
const SILENCE_MS: u64 = 10 * 60_000;

/// A state with one busy agent, and the time.
struct World {
    core: Decided,
}

impl World {
    fn new() -> World {
        let mut agent = Agent::new(id(), "demo".to_owned(), String::new());
        agent.persona_slug = "dev".parse().ok();
        agent.state = AgentState::Busy;
        agent.pane = Some(PANE);
        let profile = ProfileFacts { reports_context: false, shows_limits: false, ..demo_facts() };
        World { core: Decided::new(PANE.server, profile, [agent]) }
    }

    fn hear(&mut self, kind: HookKind) -> Decision {
        let event = HookEvent { agent_id: Some(id()), ..HookEvent::new(kind) };
        self.core.decide(Event::Hook(Box::new(event)))
    }

    fn agent(&mut self) -> &mut Agent {
        self.core.state.agents.get_mut(&id()).expect("it is there")
    }

    fn glance(&self) -> Option<EffectKey> {
        self.effect(|effect| matches!(effect, Effect::AwaitIdle { brief: true, .. }))
    }

    fn effect(&self, is_it: impl Fn(&Effect) -> bool) -> Option<EffectKey> {
        self.core.state.outbox.iter().find(|(_, pending)| is_it(&pending.effect)).map(|(key, _)| *key)
    }

    fn seen(&mut self, readiness: Readiness) -> Decision {
        let key = self.glance().expect("it is looked at");
        self.core.decide(Event::Settled { key, outcome: Outcome::Readiness(readiness) })
    }
}

fn id() -> AgentId {
    AGENT.parse().expect("an id")
}

/// The boots in which the deadlines below are counted.
fn boots(value: &Value) -> Vec<u64> {
    match value {
        Value::Object(fields) if fields.contains_key("due_boot_ms") => vec![fields["boot"].as_u64().expect("a boot")],
        Value::Object(fields) => fields.values().flat_map(boots).collect(),
        Value::Array(items) => items.iter().flat_map(boots).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_deadline_of_another_boot_is_counted_in_this_one() {
    let mut world = World::new();
    asks_for_a_handoff(&mut world);
    let due = Deadline::after(&world.core.now, 60_000);
    let request_id: tasuki::core::id::RequestId = "r2".parse().expect("an id");
    let agent = world.agent();
    agent.start = Some(Start {
        owner: Owner::Request(request_id.clone()),
        effect: None,
        registered: false,
        reported_pane: None,
        ready: false,
        deadline: due,
        last_screen: String::new(),
        look_again: Some(due),
        dialog_error: None,
    });
    let queued = Queued { asker: Asker::Request(request_id.clone()), text: String::new(), deadline: due };
    agent.typing = Some(Typing {
        delivery_id: tasuki::core::id::DeliveryId::from_bits(1),
        purpose: Purpose::Send(request_id.clone()),
        expected: String::new(),
        phase: Phase::Submitted,
        deadline: due,
        queued: Some(queued.clone()),
    });
    agent.queue.push(queued);
    agent.shutdown = Some(Shutdown { request_id, effect: None, deadline: due });
    agent.priming_deadline = Some(due);
    agent.idle_watch = IdleWatch { turn: WatchState::Due(due), silence: WatchState::Due(due) };
    agent.pending_exit = Some(PendingExit { due, pane_gone: false });
    agent.alerts.dialog =
        Some(OpenDialog { due: Some(due), look: None, is_told: false, is_seen: false, message: None });
    agent.primed = Primed::Begun;
    let count = |state: &State| boots(&json!([state.agents, state.handoffs]));
    assert_eq!(
        count(&world.core.state),
        [1; 13],
        "eleven of the agent's, two of the handoff's: a new one belongs here too"
    );
    world.core.state.rebase(&Now { boot: 2, boot_ms: 70, ..world.core.now });
    assert_eq!(count(&world.core.state), [2; 13]);
    // What was counted anew once is not counted anew again.
    let before = json!([world.core.state.agents, world.core.state.handoffs]);
    world.core.state.rebase(&Now { boot: 2, boot_ms: 9_000, wall_ms: 0 });
    assert_eq!(json!([world.core.state.agents, world.core.state.handoffs]), before);
}

/// A handoff that waits for the busy agent.
fn asks_for_a_handoff(world: &mut World) {
    world.core.ask("r1", &json!({"v": 1, "kind": "handoff", "agent_id": AGENT, "reason": "r"}));
    assert_eq!(world.core.state.handoffs.len(), 1, "it waits for the agent");
}

#[test]
fn what_is_due_of_another_touches_no_handoff_that_waits() {
    let mut world = World::new();
    asks_for_a_handoff(&mut world);
    let mut other = Agent::new(AgentId(uuid::Uuid::nil()), "demo".to_owned(), String::new());
    other.pending_exit = Some(PendingExit { due: Deadline::after(&world.core.now, 1), pane_gone: false });
    world.core.state.agents.insert(other.agent_id, other);
    let decision = world.core.pass(1);
    let written: Vec<_> = decision.agents.keys().collect();
    assert_eq!(written, [&AgentId(uuid::Uuid::nil())], "it has ended, and no other row is written");
    assert_eq!(decision.handoffs.len(), 0, "nothing of the handoff is due");
}

#[test]
fn an_event_of_a_cli_that_the_agent_runs_writes_no_row() {
    let mut world = World::new();
    world.agent().session.id = Some("own".to_owned());
    let session_id = Some("nested".to_owned());
    let event = HookEvent { agent_id: Some(id()), session_id, ..HookEvent::new(HookKind::Notification) };
    let decision = world.core.decide(Event::Hook(Box::new(event)));
    assert!(decision.is_empty(), "{decision:?}");
}

/// The effect that watches the busy agent for the handoff that waits.
fn watching(world: &World) -> Option<EffectKey> {
    let is_watch = |effect: &Effect| matches!(effect, Effect::AwaitIdle { .. });
    world.core.state.outbox.iter().find(|(_, effect)| is_watch(effect)).map(|(key, _)| *key)
}

#[test]
fn a_screen_that_cannot_be_looked_at_is_not_asked_for_without_pause() {
    for readiness in [
        Readiness::NotReady { screen: String::new() },
        Readiness::Gone { screen: String::new() },
        Readiness::Blocked { screen: String::new() },
    ] {
        let mut world = World::new();
        asks_for_a_handoff(&mut world);
        let key = watching(&world).expect("somebody waits for the end of its turn");
        world.core.decide(Event::Settled { key, outcome: Outcome::Readiness(readiness) });
        assert!(watching(&world).is_none(), "the next look would end as soon");
        let due = world.core.state.next_deadline_ms(&world.core.now).expect("it is looked at again");
        assert!((1_000..=10_000).contains(&due), "{due}");
        world.core.pass(due);
        assert!(watching(&world).is_some());
    }
}

#[test]
fn nothing_is_looked_at_where_no_profile_tells_what_is_seen() {
    let mut world = World::new();
    let profiles = &mut world.core.state.settings.profiles;
    let facts = profiles.remove("demo").expect("its profile");
    profiles.insert("other".to_owned(), facts);
    world.core.ask("r1", &json!({"v": 1, "kind": "handoff", "agent_id": AGENT, "reason": "r", "profile": "other"}));
    assert!(watching(&world).is_none(), "{:?}", world.core.state.outbox);
    assert!(world.hear(HookKind::Stop).handoffs.values().any(|handoff| handoff.step.as_str() == "instructing"));
}

#[test]
fn what_an_agent_waited_for_is_due_no_more_when_it_has_ended() {
    let mut world = World::new();
    asks_for_a_handoff(&mut world);
    let soon = Deadline::after(&world.core.now, 60_000);
    world.agent().notices.not_before = Some(soon);
    world.core.decide(Event::AgentExit { agent_id: id(), how: Exit::Dead });
    world.core.pass(2_000);
    assert_eq!(world.agent().state, AgentState::Ended);
    assert_eq!(world.agent().notices.not_before, None);
    // A row that an older tasuki has written.
    world.agent().notices.not_before = Some(soon);
    world.core.pass(60_000);
    assert_ne!(world.core.state.next_deadline_ms(&world.core.now), Some(0), "nobody would ever take it away");
}

#[test]
fn an_agent_that_was_silent_for_long_is_looked_at_once_and_is_idle_if_it_looks_so() {
    let mut world = World::new();
    world.hear(HookKind::PromptSubmit);
    assert_eq!(
        world.core.state.next_deadline_ms(&world.core.now),
        Some(SILENCE_MS),
        "nobody waits, and yet it is minded"
    );
    world.core.pass(SILENCE_MS - 1);
    assert!(world.glance().is_none());
    world.core.pass(1);
    assert!(world.glance().is_some() && world.core.state.next_deadline_ms(&world.core.now).is_none());
    let decision = world.seen(Readiness::Ready);
    assert_eq!(world.agent().state, AgentState::Idle);
    assert!(decision.journal.iter().any(|(_, line)| line["type"] == "agent.state" && line["state"] == "idle"));
    assert!(world.core.state.outbox.is_empty() && world.core.state.next_deadline_ms(&world.core.now).is_none());
}

#[test]
fn one_that_works_on_in_silence_is_left_alone_for_as_long_again() {
    let mut world = World::new();
    world.hear(HookKind::PromptSubmit);
    world.core.pass(SILENCE_MS);
    world.seen(Readiness::NotReady { screen: String::new() });
    assert_eq!(world.agent().state, AgentState::Busy);
    assert_eq!(world.core.state.next_deadline_ms(&world.core.now), Some(SILENCE_MS));
}

#[test]
fn what_is_heard_meanwhile_is_newer_than_what_was_seen() {
    let mut world = World::new();
    world.hear(HookKind::PromptSubmit);
    world.core.pass(SILENCE_MS - 1);
    world.hear(HookKind::Notification);
    world.core.pass(1);
    assert!(world.glance().is_none(), "each word begins the silence anew");
    world.core.pass(SILENCE_MS);
    let key = world.glance().expect("it is looked at");
    world.hear(HookKind::PromptSubmit);
    assert!(world.glance().is_none(), "another turn has begun: the look is called off");
    world.core.decide(Event::Settled { key, outcome: Outcome::Readiness(Readiness::Ready) });
    assert_eq!(world.agent().state, AgentState::Busy);
    world.hear(HookKind::Stop);
    assert!(world.core.state.next_deadline_ms(&world.core.now).is_none(), "an idle agent is not waited for");
}

#[test]
fn a_session_that_begins_in_the_pane_of_one_that_has_just_died_is_seen() {
    let mut world = World::new();
    world.agent().session.id = Some("old".to_owned());
    world.agent().process = Some(Process { pid: 42, start_ticks: 1 });
    world.core.decide(Event::AgentExit { agent_id: id(), how: Exit::Dead });
    let event = HookEvent {
        pane: Some(PANE.pane),
        session_id: Some("new".to_owned()),
        ancestors: vec![99],
        ..HookEvent::new(HookKind::SessionStart)
    };
    let decision = world.core.decide(Event::Hook(Box::new(event)));
    let [(key, Pending { effect: Effect::Identify { pane: 3, .. }, .. })] = decision.effects[..] else {
        panic!("nobody looks: {decision:?}")
    };
    world.core.decide(Event::Settled { key, outcome: Outcome::Pane(Some(front(Some(99)))) });
    let new = world.core.state.agents.values().find(|agent| agent.agent_id != id()).expect("it is registered");
    assert_eq!((new.session.id.as_deref(), new.pane), (Some("new"), Some(PANE)));
    world.core.pass(2_000);
    assert_eq!(world.agent().state, AgentState::Ended);
}

/// What is seen of the pane, with that process in front.
fn front(pid: Option<u32>) -> PaneFacts {
    PaneFacts {
        pane: PANE,
        session_name: "work".to_owned(),
        cwd: "/w".to_owned(),
        agent: pid.map(|pid| Process { pid, start_ticks: 2 }),
        bare_shell: false,
        profile: Some("demo".to_owned()),
        agent_id: None,
        claimed_by: None,
    }
}

/// tmux answers, and something else is in the way.
#[test]
fn a_pane_that_can_not_be_looked_up_is_refused_with_the_reason() {
    let mut world = World::new();
    world.core.decide(Event::AgentExit { agent_id: id(), how: Exit::Dead });
    let request = json!({"v": 1, "kind": "agent_register", "pane": "%3", "persona_slug": "dev"});
    let decision = world.core.ask("r1", &request);
    let [(key, Pending { effect: Effect::Identify { pane: 3, .. }, .. })] = decision.effects[..] else {
        panic!("nobody looks: {decision:?}")
    };
    let why = "no more files can be opened".to_owned();
    let decision = world.core.decide(Event::Settled { key, outcome: Outcome::Failed { why } });
    let Reply::Refused(refused) = &decision.answers[0].reply else { panic!("{decision:?}") };
    assert_eq!(refused.status, 503);
    assert!(refused.message.ends_with("no more files can be opened"), "{}", refused.message);
}

/// A person ends it and registers its pane in the same moment: what is left of it there is no other agent.
#[test]
fn what_is_left_of_an_agent_that_has_just_died_is_not_registered_as_another() {
    for (pid, is_another) in [(None, false), (Some(42), false), (Some(99), true)] {
        let mut world = World::new();
        world.agent().process = Some(Process { pid: 42, start_ticks: 2 });
        world.core.decide(Event::AgentExit { agent_id: id(), how: Exit::Dead });
        let request = json!({"v": 1, "kind": "agent_register", "pane": "%3", "persona_slug": "dev"});
        let decision = world.core.ask("r1", &request);
        let [(key, Pending { effect: Effect::Identify { pane: 3, .. }, .. })] = decision.effects[..] else {
            panic!("nobody looks: {decision:?}")
        };
        let decision = world.core.decide(Event::Settled { key, outcome: Outcome::Pane(Some(front(pid))) });
        let reply = &decision.answers[0].reply;
        let is_refused = matches!(reply, Reply::Refused(refused) if refused.code == "no_pane");
        assert_eq!(
            (is_refused, world.core.state.agents.len()),
            (!is_another, 1 + usize::from(is_another)),
            "{reply:?}"
        );
    }
}

#[test]
fn a_dialog_that_was_left_without_a_word_does_not_block_its_agent_for_ever() {
    let mut world = World::new();
    world.hear(HookKind::Blocked);
    assert_eq!(world.agent().state, AgentState::Blocked);
    world.core.pass(SILENCE_MS);
    world.seen(Readiness::Blocked { screen: String::new() });
    assert_eq!(world.agent().state, AgentState::Blocked, "it is open still");
    world.core.pass(SILENCE_MS);
    world.seen(Readiness::Ready);
    assert_eq!(world.agent().state, AgentState::Idle);
}

#[test]
fn an_agent_that_took_our_prompt_into_the_turn_that_ran_is_free_when_it_rests() {
    let mut world = World::new();
    let request: tasuki::core::id::RequestId = "r9".parse().expect("an id");
    world.agent().our_turn =
        Some(OurTurn { purpose: Purpose::Send(request), turn_id: Some("t1".to_owned()), queued: true, paused: false });
    let stop = HookEvent { agent_id: Some(id()), turn_id: Some("t1".to_owned()), ..HookEvent::new(HookKind::Stop) };
    world.core.decide(Event::Hook(Box::new(stop)));
    assert!(!world.agent().is_free(), "our turn may be the next one");
    let key = watching(&world).expect("it is looked at: no other end may ever come");
    world.core.decide(Event::Settled { key, outcome: Outcome::Readiness(Readiness::Ready) });
    assert!(world.agent().is_free(), "{:?}", world.agent());
    assert!(watching(&world).is_none());
}

#[test]
fn a_start_of_which_no_tmux_server_tells_leaves_no_agent_that_starts_for_ever() {
    let mut world = World::new();
    let asked = json!({"v": 1, "kind": "agent_create", "persona_slug": "dev", "profile": "demo"});
    let decision = world.core.ask("r1", &asked);
    let key = decision.effects.iter().find(|(_, row)| matches!(row.effect, Effect::Start(_))).expect("it starts").0;
    let decision = world.core.decide(Event::Settled { key, outcome: Outcome::Started(Started::NoTmux) });
    assert!(decision.answers[0].to_json(&world.core.now)["error"]["code"] == "no_tmux");
    let agent = decision.agents.values().next().expect("its row");
    assert_eq!((agent.state, agent.ended_at.is_some()), (AgentState::Lost, true), "nothing would ever end it");
}

#[test]
fn an_agent_without_a_pane_is_let_go_by_force() {
    let mut world = World::new();
    world.agent().pane = None;
    let gently = json!({"v": 1, "kind": "agent_shutdown", "agent_id": AGENT});
    let decision = world.core.ask("r1", &gently);
    assert_eq!(decision.answers[0].to_json(&world.core.now)["error"]["code"], "no_pane");
    let forced = json!({"v": 1, "kind": "agent_shutdown", "agent_id": AGENT, "force": true});
    let decision = world.core.ask("r2", &forced);
    let answer = decision.answers[0].to_json(&world.core.now);
    assert_eq!((&answer["status"], answer["result"]["ended_at"].is_string()), (&json!(200), true), "{answer}");
    assert_eq!(world.agent().state, AgentState::Lost);
    assert!(!decision.effects.iter().any(|(_, row)| matches!(row.effect, Effect::KillPane { .. })));
}

/// The codes of the notices that an agent's death leaves.
fn told_of_death(world: &mut World) -> Vec<Value> {
    world.core.decide(Event::AgentExit { agent_id: id(), how: Exit::Dead });
    let decision = world.core.pass(2_000);
    assert_eq!(world.agent().state, AgentState::Ended);
    let notices = decision.effects.iter().filter_map(|(_, row)| match &row.effect {
        Effect::NotifyOperator(notice) => Some(notice.json["code"].clone()),
        _ => None,
    });
    notices.collect()
}

#[test]
fn an_agent_that_dies_unasked_is_told_of() {
    let mut world = World::new();
    world.agent().state = AgentState::Idle;
    assert_eq!(told_of_death(&mut world), [json!("agent_died")]);
    let mut world = World::new();
    world.agent().process = Some(Process { pid: 42, start_ticks: 1 });
    let reason = Some(SessionReason::Process);
    let end = HookEvent { agent_id: Some(id()), reason, ..HookEvent::new(HookKind::SessionEnd) };
    world.core.decide(Event::Hook(Box::new(end)));
    assert_eq!(told_of_death(&mut world), [] as [Value; 0], "whoever quits a CLI knows of it");
    let mut world = World::new();
    world.agent().persona_slug = None;
    assert_eq!(told_of_death(&mut world), [] as [Value; 0], "an anonymous agent is left alone");
}

#[test]
fn a_text_that_has_waited_too_long_is_refused_with_what_it_waited_for() {
    for (state, word) in
        [(AgentState::Blocked, "dialog"), (AgentState::Starting, "not_ready"), (AgentState::Busy, "busy")]
    {
        let mut world = World::new();
        world.core.ask("r3", &json!({"v": 1, "kind": "agent_send", "agent_id": AGENT, "text": "Look."}));
        world.agent().state = state;
        let decision = world.core.pass(10 * 60_000);
        let refused = match &decision.answers[0].reply {
            Reply::Refused(refused) => refused,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused.field.as_deref(), Some(word), "{refused:?}");
        assert!(refused.message.contains(&format!("({word}): ")), "{refused:?}");
    }
}

/// The agent's screen shows a turn that no event has reported, and nothing was typed.
#[test]
fn a_text_that_meets_a_turn_waits_for_its_end_within_the_time_that_it_had() {
    let mut world = World::new();
    (world.agent().state, world.agent().hooks_seen) = (AgentState::Idle, true);
    let asked = world.core.ask("r3", &json!({"v": 1, "kind": "agent_send", "agent_id": AGENT, "text": "Look."}));
    assert!(asked.answers.is_empty());
    let meets_a_turn = |world: &mut World| {
        let key = world.effect(|effect| matches!(effect, Effect::Type(_))).expect("it is typed");
        let busy = Outcome::Typed(Typed::Refused { reason: Refusal::Busy });
        world.core.decide(Event::Settled { key, outcome: busy })
    };
    let decision = meets_a_turn(&mut world);
    let told = decision.journal.iter().any(|(_, line)| line["type"] == "delivery");
    assert!(decision.answers.is_empty() && !told, "nothing is said of it: {decision:?}");
    assert_eq!(world.agent().state, AgentState::Busy);
    world.core.pass(4 * 60_000);
    let watch =
        world.effect(|effect| matches!(effect, Effect::AwaitIdle { .. })).expect("the turn's end is watched for");
    world.core.decide(Event::Settled { key: watch, outcome: Outcome::Readiness(Readiness::Ready) });
    meets_a_turn(&mut world);
    let decision = world.core.pass(6 * 60_000);
    assert_eq!(decision.answers.len(), 1, "ten minutes in all");
    assert!(world.agent().queue.is_empty() && world.agent().typing.is_none());
}
