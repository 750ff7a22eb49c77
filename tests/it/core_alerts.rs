//! What the operator is told of an agent outside a handoff: dialogs that nobody answers, and turns that fail; once of
//! each cause.

use crate::support::decided::Decided;
use crate::support::facts::demo_facts;
use serde_json::{Value, json};
use tasuki::core::decision::Decision;
use tasuki::core::effect::{Effect, EffectKey, Outcome, Readiness};
use tasuki::core::event::{Event, Exit};
use tasuki::core::hook::{HookEvent, HookKind, SessionReason};
use tasuki::core::id::AgentId;
use tasuki::core::pane::{PaneRef, Process, ServerId};
use tasuki::core::rows::agent::{Agent, AgentState, OurTurn, Purpose};
use tasuki::core::settings::ProfileFacts;

const PANE: PaneRef = PaneRef { server: ServerId { pid: 7, start_time: 1 }, pane: 3, pid: 42 };
const AGENT: &str = "6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa";
/// `notify.blocked_after`, unless set.
const BLOCKED_AFTER_MS: u64 = 120_000;

struct World {
    core: Decided,
}

impl World {
    /// One busy agent of persona `dev`.
    fn new() -> World {
        World::with(demo_facts())
    }

    fn with(profile: ProfileFacts) -> World {
        let mut agent = Agent::new(id(), "demo".to_owned(), String::new());
        agent.persona_slug = "dev".parse().ok();
        agent.state = AgentState::Busy;
        agent.pane = Some(PANE);
        agent.process = Some(Process { pid: 42, start_ticks: 1 });
        World {
            core: Decided::new(
                PANE.server,
                ProfileFacts { reports_context: false, shows_limits: false, ..profile },
                [agent],
            ),
        }
    }

    fn hear(&mut self, kind: HookKind) -> Decision {
        self.hear_said(kind, None)
    }

    fn hear_said(&mut self, kind: HookKind, message: Option<&str>) -> Decision {
        let message = message.map(str::to_owned);
        self.core.decide(Event::Hook(Box::new(HookEvent { agent_id: Some(id()), message, ..HookEvent::new(kind) })))
    }

    fn agent(&mut self) -> &mut Agent {
        self.core.state.agents.get_mut(&id()).expect("it is there")
    }

    /// The effect that looks at the dialog.
    fn look(&self) -> Option<EffectKey> {
        self.core.state.agents[&id()].alerts.dialog.as_ref().and_then(|dialog| dialog.look)
    }

    /// The effect that watches for the end of its turn, or after a long silence.
    fn watch(&self) -> Option<EffectKey> {
        let watches = |key: &EffectKey| self.core.state.agents[&id()].idle_watch.runs(*key);
        self.core.state.outbox.keys().copied().find(watches)
    }

    fn seen(&mut self, readiness: Readiness) -> Decision {
        let key = self.look().expect("it is looked at");
        self.core.decide(Event::Settled { key, outcome: Outcome::Readiness(readiness) })
    }
}

fn id() -> AgentId {
    AGENT.parse().expect("an id")
}

fn dialog() -> Readiness {
    Readiness::Blocked { screen: "1. Yes".to_owned() }
}

fn no_dialog() -> Readiness {
    Readiness::AtWork { screen: "working".to_owned() }
}

fn unclear() -> Readiness {
    Readiness::NotReady { screen: "something".to_owned() }
}

/// What a configured command gets.
fn told(decision: &Decision) -> Vec<Value> {
    let notices = decision.effects.iter().filter_map(|(_, row)| match &row.effect {
        Effect::NotifyOperator(notice) => Some(notice.json.clone()),
        _ => None,
    });
    notices.collect()
}

fn codes(decision: &Decision) -> Vec<Value> {
    told(decision).into_iter().map(|json| json["code"].clone()).collect()
}

fn lines(decision: &Decision, kind: &str) -> Vec<Value> {
    decision.journal.iter().map(|(_, line)| line.clone()).filter(|line| line["type"] == kind).collect()
}

#[test]
fn a_dialog_that_nobody_answers_is_told_once_without_an_error_file() {
    let mut world = World::new();
    let decision = world.hear_said(HookKind::Blocked, Some("run rm -r build?"));
    assert_eq!(codes(&decision), [] as [Value; 0], "a person in front of it answers it");
    assert_eq!(codes(&world.core.pass(BLOCKED_AFTER_MS - 1)), [] as [Value; 0]);
    assert_eq!(world.look(), None);
    assert_eq!(codes(&world.core.pass(1)), [] as [Value; 0], "its screen is looked at first");
    let decision = world.seen(dialog());
    let notices = told(&decision);
    assert_eq!((notices.len(), &notices[0]["code"]), (1, &json!("agent_blocked")), "{notices:?}");
    let notice = &notices[0];
    assert_eq!(notice["message"], "Agent 6f1c3a52 (dev) waits at a dialog in pane %3: run rm -r build?");
    assert_eq!(
        notice["notice"],
        format!("{}. {}", notice["message"].as_str().unwrap_or(""), "Answer the dialog in the agent's pane.")
    );
    assert_eq!((&notice["agent_id"], &notice["handoff_id"], &notice["v"]), (&json!(AGENT), &Value::Null, &json!(1)));
    assert!(decision.errors.is_empty());
    let lines = lines(&decision, "notice");
    assert_eq!((lines.len(), &lines[0]["code"], &lines[0]["message"]), (1, &notice["code"], &notice["message"]));
    // It stays open for a day.
    for _ in 0..40 {
        assert_eq!(codes(&world.core.pass(15 * 60_000)), [] as [Value; 0]);
        if world.look().is_some() {
            assert_eq!(codes(&world.seen(dialog())), [] as [Value; 0]);
        }
        world.hear_said(HookKind::Blocked, Some("run rm -r build?"));
    }
    // It was answered, no event says so, and the same turn asks something else.
    world.hear_said(HookKind::Blocked, Some("push to main?"));
    let mut told_of = Vec::new();
    for _ in 0..4 {
        told_of.extend(codes(&world.core.pass(BLOCKED_AFTER_MS)));
        if world.look().is_some() {
            told_of.extend(codes(&world.seen(dialog())));
        }
    }
    assert_eq!(told_of, [json!("agent_blocked")]);
}

#[test]
fn a_dialog_that_was_answered_is_not_told_of_and_the_next_one_is() {
    let mut world = World::new();
    world.hear(HookKind::Blocked);
    world.core.pass(BLOCKED_AFTER_MS);
    assert_eq!(codes(&world.seen(no_dialog())), [] as [Value; 0], "no event says that it was answered");
    assert_eq!((world.agent().state, world.agent().alerts.dialog.is_none()), (AgentState::Busy, true));
    // Another one of the same turn.
    world.hear(HookKind::Blocked);
    world.core.pass(BLOCKED_AFTER_MS);
    assert_eq!(codes(&world.seen(dialog())), [json!("agent_blocked")]);
    // What a look can't tell changes nothing, and the same dialog is not told twice.
    for readiness in [unclear(), dialog()] {
        world.core.pass(60_000);
        assert_eq!(codes(&world.seen(readiness)), [] as [Value; 0]);
        assert_eq!(world.agent().state, AgentState::Blocked);
    }
    world.core.pass(60_000);
    world.seen(no_dialog());
    assert_eq!(world.agent().state, AgentState::Busy);
    // A dialog that the CLI draws late, or does not report.
    world.core.pass(60_000);
    let key = world.watch().expect("its screen is looked at once more");
    assert_eq!(
        codes(&world.core.decide(Event::Settled { key, outcome: Outcome::Readiness(dialog()) })),
        [] as [Value; 0]
    );
    world.core.pass(BLOCKED_AFTER_MS);
    assert_eq!(codes(&world.seen(dialog())), [json!("agent_blocked")]);
    // An event ends the dialog, and its look with it.
    world.core.pass(BLOCKED_AFTER_MS);
    let key = world.look().expect("it is looked at");
    world.hear(HookKind::Stop);
    assert!(world.agent().alerts.dialog.is_none() && !world.core.state.outbox.contains_key(&key));
    let late = world.core.decide(Event::Settled { key, outcome: Outcome::Readiness(dialog()) });
    assert_eq!(codes(&late), [] as [Value; 0]);
    assert_eq!(codes(&world.core.pass(10 * BLOCKED_AFTER_MS)), [] as [Value; 0]);
}

/// The person answers the first dialog, no event says so, and the CLI asks for the next permission.
#[test]
fn each_dialog_of_a_turn_within_a_handoff_is_told_at_once_and_none_is_told_twice() {
    let mut world = World::new();
    world.core.ask("r1", &json!({"v": 1, "kind": "handoff", "agent_id": AGENT, "reason": "r"}));
    assert_eq!(codes(&world.hear_said(HookKind::Blocked, Some("Bash"))), [json!("agent_blocked")]);
    let look = |world: &mut World, readiness: Readiness| {
        world.core.pass(2_000);
        let key = world.watch().expect("its handoff waits");
        let is_brief = matches!(world.core.state.outbox[&key].effect, Effect::AwaitIdle { brief, .. } if brief);
        assert_eq!(is_brief, world.agent().state == AgentState::Blocked, "a long watch would not end");
        codes(&world.core.decide(Event::Settled { key, outcome: Outcome::Readiness(readiness) }))
    };
    // The dialog is drawn a moment after the event, and reported once more in other words.
    for readiness in [no_dialog(), unclear(), dialog(), dialog()] {
        assert_eq!(look(&mut world, readiness), [] as [Value; 0]);
        assert_eq!(codes(&world.hear_said(HookKind::Blocked, Some("may I use Bash?"))), [] as [Value; 0]);
        assert_eq!(world.agent().state, AgentState::Blocked);
    }
    assert_eq!(look(&mut world, no_dialog()), [] as [Value; 0]);
    assert_eq!(world.agent().state, AgentState::Busy);
    assert_eq!(codes(&world.hear_said(HookKind::Blocked, Some("Bash"))), [json!("agent_blocked")]);
    // One that was answered before anybody saw it: a look says so after a minute.
    assert_eq!(look(&mut world, no_dialog()), [] as [Value; 0]);
    world.core.pass(58_000);
    assert_eq!(codes(&world.seen(no_dialog())), [] as [Value; 0]);
    assert_eq!(world.agent().state, AgentState::Busy);
    assert_eq!(codes(&world.hear_said(HookKind::Blocked, Some("Bash"))), [json!("agent_blocked")]);
    // One that stays open: nobody is told again, however long that is.
    for _ in 0..20 {
        world.core.pass(60_000);
        assert_eq!(codes(&world.seen(dialog())), [] as [Value; 0]);
    }
}

#[test]
fn a_turn_that_pauses_shows_no_dialog() {
    let mut world = World::new();
    world.hear(HookKind::Blocked);
    let pause = HookEvent { agent_id: Some(id()), paused: true, ..HookEvent::new(HookKind::Stop) };
    world.core.decide(Event::Hook(Box::new(pause)));
    assert_eq!((world.agent().state, world.agent().alerts.dialog.is_none()), (AgentState::Busy, true));
    // One that opens meanwhile, and is answered, does not end the turn sooner.
    world.agent().our_turn = Some(OurTurn { paused: true, ..OurTurn::of(Purpose::Priming(None)) });
    world.hear(HookKind::Blocked);
    world.core.pass(BLOCKED_AFTER_MS);
    world.seen(Readiness::Ready);
    assert_eq!((world.agent().state, world.agent().our_turn.is_some()), (AgentState::Busy, true));
}

#[test]
fn a_dialog_ends_with_the_turn_that_a_look_finds_over() {
    let mut world = World::new();
    world.hear(HookKind::Blocked);
    world.core.pass(BLOCKED_AFTER_MS);
    assert_eq!(codes(&world.seen(Readiness::Ready)), [] as [Value; 0]);
    assert_eq!(world.agent().state, AgentState::Idle);
    assert!(world.agent().alerts.dialog.is_none());
}

#[test]
fn a_profile_that_can_t_show_dialogs_is_believed() {
    let mut world = World::with(ProfileFacts { shows_dialogs: false, ..demo_facts() });
    world.hear(HookKind::Blocked);
    assert_eq!(codes(&world.core.pass(BLOCKED_AFTER_MS)), [json!("agent_blocked")]);
    assert_eq!(codes(&world.core.pass(10 * BLOCKED_AFTER_MS)), [] as [Value; 0]);
    // The same within a handoff.
    world.hear(HookKind::Stop);
    world.hear(HookKind::PromptSubmit);
    world.core.ask("r1", &json!({"v": 1, "kind": "handoff", "agent_id": AGENT, "reason": "r"}));
    assert_eq!(codes(&world.hear(HookKind::Blocked)), [json!("agent_blocked")]);
    assert_eq!(codes(&world.core.pass(60_000)), [] as [Value; 0]);
}

#[test]
fn nobody_is_told_of_the_dialog_of_an_anonymous_agent() {
    let mut world = World::new();
    world.agent().persona_slug = None;
    world.hear(HookKind::Blocked);
    assert!(world.agent().alerts.dialog.is_none());
    assert_eq!(codes(&world.core.pass(BLOCKED_AFTER_MS)), [] as [Value; 0]);
}

#[test]
fn a_dialog_outlives_a_restart() {
    let mut world = World::new();
    world.hear(HookKind::Blocked);
    let mut row = json!(world.agent());
    let stored: Agent = serde_json::from_value(row.clone()).expect("a row");
    assert_eq!(&stored, world.agent());
    // A row of an earlier version has nothing of it.
    row.as_object_mut().expect("an object").remove("alerts");
    assert!(serde_json::from_value::<Agent>(row).expect("a row").alerts.dialog.is_none());
}

#[test]
fn a_turn_that_fails_is_an_error_once_until_a_turn_succeeds() {
    let mut world = World::new();
    let decision = world.hear_said(HookKind::StopFailure, Some("API error: 500"));
    assert_eq!(codes(&decision), [json!("turn_failed")]);
    assert_eq!(decision.errors.len(), 1, "it stays until it is dismissed");
    let error = &decision.errors[0];
    assert_eq!((error.code.as_str(), error.agent_id), ("turn_failed", Some(id())));
    assert_eq!(error.message, "A turn of agent 6f1c3a52 (dev) ended in an error: API error: 500");
    assert_eq!(lines(&decision, "error")[0]["code"], "turn_failed");
    for _ in 0..60 {
        world.hear(HookKind::PromptSubmit);
        let decision = world.hear(HookKind::StopFailure);
        assert!(codes(&decision).is_empty() && decision.errors.is_empty());
    }
    world.hear(HookKind::Interrupted);
    assert!(codes(&world.hear(HookKind::StopFailure)).is_empty(), "no turn has succeeded");
    world.hear(HookKind::Stop);
    assert_eq!(codes(&world.hear(HookKind::StopFailure)), [json!("turn_failed")]);
}

#[test]
fn a_turn_that_fails_within_a_handoff_is_the_handoff_s_business() {
    let mut world = World::new();
    let asked = json!({"v": 1, "kind": "handoff", "agent_id": AGENT, "reason": "r"});
    world.core.ask("r1", &asked);
    assert!(world.agent().handoff_id.is_some());
    assert!(!codes(&world.hear(HookKind::StopFailure)).contains(&json!("turn_failed")));
    // The handoff fails by the turn of its text, and doubled hooks report that turn once more.
    let handoff = world.agent().handoff_id.expect("it runs");
    world.agent().our_turn = Some(OurTurn::of(Purpose::Instruction(handoff)));
    world.hear(HookKind::StopFailure);
    world.agent().handoff_id = None;
    assert!(!codes(&world.hear(HookKind::StopFailure)).contains(&json!("turn_failed")));
    world.hear(HookKind::Stop);
    assert!(codes(&world.hear(HookKind::StopFailure)).contains(&json!("turn_failed")), "the next failure is news");
    let mut world = World::new();
    world.agent().persona_slug = None;
    assert!(codes(&world.hear(HookKind::StopFailure)).is_empty(), "an anonymous agent is left alone");
}

#[test]
fn a_death_leaves_an_error_file_unless_the_cli_has_said_that_it_ends() {
    let mut world = World::new();
    world.agent().transcript_path = Some("/t.jsonl".to_owned());
    world.core.decide(Event::AgentExit { agent_id: id(), how: Exit::Dead });
    let decision = world.core.pass(2_000);
    assert_eq!((codes(&decision), decision.errors.len()), (vec![json!("agent_died")], 1));
    let error = &decision.errors[0];
    let said = "Agent 6f1c3a52 (dev) has died: its process is dead, and nobody asked it to end";
    assert_eq!(error.message, said);
    assert!(error.hint.contains("tasuki handoff 6f1c3a52 --author salvage"), "{}", error.hint);
    // Without a transcript, the author `salvage` would be refused.
    let mut world = World::new();
    world.core.decide(Event::AgentExit { agent_id: id(), how: Exit::Dead });
    let hint = &world.core.pass(2_000).errors[0].hint;
    assert!(hint.contains("tasuki handoff 6f1c3a52 --author provided --document FILE"), "{hint}");
    // The event file of the last hook may be read after the death of the process.
    let mut world = World::new();
    world.core.decide(Event::AgentExit { agent_id: id(), how: Exit::Dead });
    let reason = Some(SessionReason::Process);
    let end = HookEvent { agent_id: Some(id()), reason, ..HookEvent::new(HookKind::SessionEnd) };
    world.core.decide(Event::Hook(Box::new(end)));
    let decision = world.core.pass(2_000);
    assert_eq!(world.agent().state, AgentState::Ended);
    assert!(codes(&decision).is_empty() && decision.errors.is_empty(), "a person typed its exit command");
    // Its pane was closed, and the CLI had the time to say that it was told to end.
    let killed =
        HookEvent { agent_id: Some(id()), reason: Some(SessionReason::Killed), ..HookEvent::new(HookKind::SessionEnd) };
    let mut world = World::new();
    world.core.decide(Event::Hook(Box::new(killed.clone())));
    world.core.decide(Event::AgentExit { agent_id: id(), how: Exit::Dead });
    let decision = world.core.pass(2_000);
    assert_eq!((codes(&decision), decision.errors.len()), (vec![json!("agent_died")], 1), "nobody asked it to end");
    // The same of an agent whose process is not known: what it says is its end.
    let mut world = World::new();
    world.agent().process = None;
    let decision = world.core.decide(Event::Hook(Box::new(killed)));
    assert_eq!((world.agent().state, codes(&decision)), (AgentState::Ended, vec![json!("agent_died")]));
    // The process has lived on, with another session.
    let mut world = World::new();
    for kind in [HookKind::SessionEnd, HookKind::SessionStart] {
        world.core.decide(Event::Hook(Box::new(HookEvent { agent_id: Some(id()), reason, ..HookEvent::new(kind) })));
    }
    world.core.decide(Event::AgentExit { agent_id: id(), how: Exit::Dead });
    assert_eq!(codes(&world.core.pass(2_000)), [json!("agent_died")]);
}

/// Many agents die together if their tmux server ends: each leaves its failure, and one notice is sent.
#[test]
fn agents_that_die_together_are_told_in_one_notice() {
    let new = |number: u32, slug: &str| {
        let agent_id: AgentId = format!("{number:08x}-8f0e-4d5b-9a57-2f64c1f6f0aa").parse().expect("an id");
        let mut agent = Agent::new(agent_id, "demo".to_owned(), String::new());
        (agent.persona_slug, agent.state, agent.pane) = (slug.parse().ok(), AgentState::Idle, Some(PANE));
        agent.process = Some(Process { pid: 100 + number, start_ticks: 1 });
        agent
    };
    let agents: Vec<Agent> = (1..=22).map(|number| new(number, if number == 22 { "" } else { "dev" })).collect();
    let ids: Vec<AgentId> = agents.iter().map(|agent| agent.agent_id).collect();
    let mut core = Decided::new(PANE.server, ProfileFacts { shows_limits: false, ..demo_facts() }, agents);
    // Number 1 has said that it ends, as a person told it to. Number 22 has no persona.
    let reason = Some(SessionReason::Process);
    let end = HookEvent { agent_id: Some(ids[0]), reason, ..HookEvent::new(HookKind::SessionEnd) };
    core.decide(Event::Hook(Box::new(end)));
    for agent_id in &ids {
        core.decide(Event::AgentExit { agent_id: *agent_id, how: Exit::Dead });
        core.pass(20);
    }
    // The second is due now, and the others in the next 400 ms.
    let decision = core.pass(2_000 - 21 * 20);
    let notices = told(&decision);
    assert_eq!((notices.len(), decision.errors.len()), (1, 20), "{notices:?}");
    let named = "00000002 (dev), 00000003 (dev), 00000004 (dev) and 17 more";
    assert_eq!(notices[0]["message"], format!("20 agents have died, and nobody asked them to end: {named}"));
    assert_eq!((&notices[0]["code"], &notices[0]["agent_id"]), (&json!("agent_died"), &Value::Null));
    let list = |name: &str| notices[0][name].as_array().cloned().unwrap_or_default();
    assert_eq!(list("agent_ids").len(), 20);
    let files: Vec<Value> = decision.errors.iter().map(|error| json!(error.error_id.to_string())).collect();
    assert_eq!(list("error_ids"), files);
    assert!(decision.errors.iter().all(|error| error.code == "agent_died" && error.agent_id.is_some()));
    assert_eq!((lines(&decision, "error").len(), lines(&decision, "notice").len()), (20, 1));
    assert!(told(&core.pass(60_000)).is_empty(), "once");
    assert!(ids.iter().all(|id| core.state.agents[id].state == AgentState::Ended));
}
