//! What ends an agent of which little is known, decided without a machine: by silence, by its process, by a request.
//! And whose a session is that begins in a pane where another agent is or was.

use crate::support::decided::Decided;
use crate::support::facts::demo_facts;
use serde_json::json;
use tasuki::core::decision::Decision;
use tasuki::core::effect::{Effect, EffectKey, Outcome};
use tasuki::core::event::{Event, Exit};
use tasuki::core::hook::{AgentCli, HookEvent, HookKind, SessionReason};
use tasuki::core::id::{AgentId, HandoffId};
use tasuki::core::pane::{PaneFacts, PaneRef, Process, ServerId};
use tasuki::core::rows::agent::{Agent, AgentState, OurTurn, Purpose};
use tasuki::core::settings::ProfileFacts;

const PANE: PaneRef = PaneRef { server: ServerId { pid: 7, start_time: 1 }, pane: 3, pid: 50 };
const LAUNCHER: Process = Process { pid: 50, start_ticks: 1 };
const DAY_MS: u64 = 24 * 60 * 60_000;

struct World {
    core: Decided,
}

impl World {
    fn new() -> World {
        World { core: Decided::new(PANE.server, demo_facts(), []) }
    }

    /// With an agent that the operator has registered, whose pane runs a launcher.
    fn with_a_launcher() -> World {
        let mut agent = Agent::new(AgentId(uuid::Uuid::nil()), "demo".to_owned(), String::new());
        agent.persona_slug = "dev".parse().ok();
        agent.state = AgentState::Idle;
        (agent.pane, agent.process) = (Some(PANE), Some(LAUNCHER));
        World { core: Decided::new(PANE.server, demo_facts(), [agent]) }
    }

    fn hear(&mut self, event: HookEvent) -> Decision {
        self.core.decide(Event::Hook(Box::new(event)))
    }

    fn agent(&self) -> &Agent {
        self.core.state.agents.values().next().expect("it is there")
    }
}

fn cli(pid: u32) -> AgentCli {
    AgentCli { process: Process { pid, start_ticks: 9 }, profile: "demo".to_owned() }
}

/// An event of a session in the launcher's pane, from below these CLIs; the others are shells.
fn below(kind: HookKind, session: &str, clis: &[u32]) -> HookEvent {
    HookEvent {
        pane: Some(PANE.pane),
        profile: Some("demo".to_owned()),
        session_id: Some(session.to_owned()),
        ancestors: vec![90, 80, 70, 60, LAUNCHER.pid],
        clis: clis.iter().map(|pid| cli(*pid)).collect(),
        ..HookEvent::new(kind)
    }
}

/// A session that begins in no pane that we know.
fn outside(clis: &[u32]) -> HookEvent {
    HookEvent { pane: None, ..below(HookKind::SessionStart, "out", clis) }
}

#[test]
fn a_session_of_which_nothing_else_is_known_is_lost_after_a_week_of_silence() {
    let mut world = World::new();
    world.hear(outside(&[]));
    assert_eq!((world.agent().state, world.agent().process), (AgentState::Idle, None));
    world.core.pass(6 * DAY_MS);
    world.hear(HookEvent { kind: HookKind::Stop, ..outside(&[]) });
    world.core.pass(6 * DAY_MS);
    assert_eq!(world.agent().state, AgentState::Idle, "it was heard of six days ago");
    world.core.pass(DAY_MS);
    assert_eq!(world.agent().state, AgentState::Lost);
    assert!(world.core.state.next_deadline_ms(&world.core.now).is_none(), "nothing is waited for");
}

#[test]
fn a_session_whose_process_is_found_lives_as_long_as_that() {
    let mut world = World::new();
    world.hear(outside(&[]));
    world.hear(HookEvent { kind: HookKind::Stop, ..outside(&[80]) });
    assert_eq!(world.agent().process, Some(cli(80).process));
    world.core.pass(30 * DAY_MS);
    assert_eq!(world.agent().state, AgentState::Idle);
    let agent_id = world.agent().agent_id;
    world.core.decide(Event::AgentExit { agent_id, how: Exit::Dead });
    world.core.pass(2_000);
    assert_eq!(world.agent().state, AgentState::Ended);
}

#[test]
fn a_process_is_one_agents_alone() {
    let mut world = World::new();
    world.hear(outside(&[80]));
    world.hear(HookEvent { session_id: Some("other".to_owned()), ..outside(&[80]) });
    let known: Vec<_> = world.core.state.agents.values().filter_map(|agent| agent.process).collect();
    assert_eq!((world.core.state.agents.len(), known), (2, vec![cli(80).process]));
}

#[test]
fn what_a_launcher_has_started_is_the_agent_and_what_that_runs_is_not() {
    let mut world = World::with_a_launcher();
    world.hear(below(HookKind::Stop, "nested", &[80, 60]));
    assert!(!world.agent().hooks_seen, "another agent stands between");
    world.hear(HookEvent { profile: Some("other".to_owned()), ..below(HookKind::Stop, "alien", &[]) });
    assert!(!world.agent().hooks_seen, "nobody knows what stands between");
    world.hear(below(HookKind::Stop, "own", &[80]));
    assert!(world.agent().hooks_seen);
    assert_eq!(world.agent().session.id.as_deref(), Some("own"));
    world.hear(below(HookKind::PromptSubmit, "nested", &[80, 60]));
    assert_eq!(world.agent().state, AgentState::Idle, "bound is bound");
    let reason = Some(SessionReason::Replaced);
    world.hear(HookEvent { reason, ..below(HookKind::SessionStart, "nested", &[80, 60]) });
    assert_eq!(world.agent().session.id.as_deref(), Some("own"));
    world.hear(HookEvent { reason, ..below(HookKind::SessionStart, "next", &[80]) });
    assert_eq!(world.agent().session.id.as_deref(), Some("next"), "a new session in the same process");
}

#[test]
fn a_session_that_takes_the_place_of_another_begins_idle() {
    for state in [HookKind::PromptSubmit, HookKind::Blocked] {
        let mut world = World::with_a_launcher();
        world.hear(below(state, "own", &[80]));
        assert_ne!(world.agent().state, AgentState::Idle);
        let reason = Some(SessionReason::Replaced);
        world.hear(HookEvent { reason, ..below(HookKind::SessionEnd, "own", &[80]) });
        world.hear(HookEvent { reason, ..below(HookKind::SessionStart, "next", &[80]) });
        assert_eq!(world.agent().state, AgentState::Idle, "the turn of the session before has ended with it");
    }
}

#[test]
fn a_turn_of_ours_goes_on_in_a_session_that_takes_the_place_of_another() {
    let mut world = World::with_a_launcher();
    world.hear(below(HookKind::PromptSubmit, "own", &[80]));
    let purpose = Purpose::Instruction(HandoffId(uuid::Uuid::nil()));
    let ours = OurTurn { purpose, turn_id: None, queued: false, paused: false };
    world.core.state.agents.values_mut().for_each(|agent| agent.our_turn = Some(ours.clone()));
    let reason = Some(SessionReason::Replaced);
    world.hear(HookEvent { reason, ..below(HookKind::SessionEnd, "own", &[80]) });
    world.hear(HookEvent { reason, ..below(HookKind::SessionStart, "next", &[80]) });
    assert_eq!((world.agent().state, &world.agent().our_turn), (AgentState::Busy, &Some(ours)));
}

/// Codex and opencode say of a new session in the same process only that it has begun, when it gets its first prompt.
#[test]
fn a_new_session_of_a_cli_that_tells_no_reason_takes_the_place_of_the_one_before() {
    let mut world = World::with_a_launcher();
    let is_lazy = ProfileFacts { starts_at_launch: false, ..demo_facts() };
    world.core.state.settings.profiles.insert("demo".to_owned(), is_lazy);
    world.hear(below(HookKind::PromptSubmit, "own", &[80]));
    let reason = Some(SessionReason::Process);
    world.hear(HookEvent { reason, ..below(HookKind::SessionStart, "nested", &[80, 60]) });
    assert_eq!(world.agent().session.id.as_deref(), Some("own"), "another agent stands between");
    world.hear(HookEvent { reason, ..below(HookKind::SessionStart, "next", &[80]) });
    assert_eq!((world.agent().session.id.as_deref(), world.agent().state), (Some("next"), AgentState::Idle));
    world.hear(below(HookKind::PromptSubmit, "next", &[80]));
    assert_eq!(world.agent().state, AgentState::Busy, "it is heard");
    world.hear(below(HookKind::Stop, "own", &[80]));
    assert_eq!(world.agent().state, AgentState::Busy, "the last words of the session before");
    world.hear(below(HookKind::PromptSubmit, "own", &[80]));
    assert_eq!(world.agent().session.id.as_deref(), Some("own"), "its person has gone back");
}

/// A person may go back to the session that a handoff has ended: the successor lives in it then.
#[test]
fn a_successor_in_the_same_pane_that_goes_back_to_the_session_before_is_heard() {
    let successor = || {
        let mut world = World::with_a_launcher();
        for agent in world.core.state.agents.values_mut() {
            // Its start was given up.
            (agent.in_place, agent.state) = (true, AgentState::Starting);
            agent.session.former = Some("old".to_owned());
        }
        world
    };
    for reason in [Some(SessionReason::Replaced), Some(SessionReason::Process), None] {
        let mut world = successor();
        world.hear(below(HookKind::Stop, "old", &[80]));
        assert_eq!(world.agent().state, AgentState::Starting, "the end of a turn of the session before");
        world.hear(HookEvent { reason, ..below(HookKind::SessionStart, "old", &[80]) });
        world.hear(below(HookKind::Stop, "old", &[80]));
        assert_eq!(world.agent().state, AgentState::Idle, "{reason:?}");
    }
    let mut world = successor();
    world.hear(HookEvent { reason: Some(SessionReason::Same), ..below(HookKind::SessionStart, "old", &[80]) });
    assert_eq!(world.agent().session.id, None, "a compaction of the session before begins none");
    world.hear(below(HookKind::Stop, "new", &[80]));
    assert_eq!(world.agent().state, AgentState::Idle);
}

/// A session of the CLI with that process id, in a shell in the pane; the process has ended where there is no CLI.
fn in_shell(kind: HookKind, session: &str, pid: u32, clis: &[u32]) -> HookEvent {
    let event = below(kind, session, clis);
    HookEvent { server_pid: Some(PANE.server.pid), ancestors: vec![90, pid, PANE.pid, PANE.server.pid], ..event }
}

/// What is seen of the pane, with that process in front.
fn front(pid: u32) -> PaneFacts {
    PaneFacts {
        pane: PANE,
        session_name: "work".to_owned(),
        cwd: "/w".to_owned(),
        agent: Some(Process { pid, start_ticks: 9 }),
        bare_shell: pid == PANE.pid,
        profile: Some("demo".to_owned()).filter(|_| pid != PANE.pid),
        agent_id: None,
        claimed_by: None,
    }
}

impl World {
    /// The lookups of the pane that are under way.
    fn lookups(&self) -> Vec<EffectKey> {
        let rows = self.core.state.outbox.iter();
        rows.filter(|(_, row)| matches!(row.effect, Effect::Identify { .. })).map(|(key, _)| *key).collect()
    }

    fn seen(&mut self, key: EffectKey, facts: PaneFacts) -> Decision {
        self.core.decide(Event::Settled { key, outcome: Outcome::Pane(Some(facts)) })
    }

    /// Session, process and pane of each live agent.
    fn live(&self) -> Vec<(Option<&str>, Option<u32>, Option<PaneRef>)> {
        let live = self.core.state.agents.values().filter(|agent| agent.state.is_live());
        let pid = |agent: &Agent| agent.process.map(|process| process.pid);
        live.map(|agent| (agent.session.id.as_deref(), pid(agent), agent.pane)).collect()
    }
}

#[test]
fn a_session_that_ends_before_its_pane_was_looked_up_is_not_registered() {
    let mut world = World::new();
    world.hear(in_shell(HookKind::SessionStart, "a", 60, &[]));
    world.hear(HookEvent { reason: Some(SessionReason::Same), ..in_shell(HookKind::SessionEnd, "a", 60, &[]) });
    assert_eq!(world.lookups().len(), 1, "a compaction ends no session");
    world.hear(HookEvent { reason: Some(SessionReason::Process), ..in_shell(HookKind::SessionEnd, "a", 60, &[]) });
    assert!(world.lookups().is_empty(), "it is over");
    world.hear(in_shell(HookKind::SessionStart, "b", 61, &[61]));
    let key = world.lookups()[0];
    world.seen(key, front(61));
    assert_eq!(world.live(), [(Some("b"), Some(61), Some(PANE))]);
}

/// The sidecar was down while a person killed a CLI and started another one in the same pane.
#[test]
fn a_session_does_not_get_the_process_that_is_in_its_pane_by_now() {
    for order in [[0, 1], [1, 0]] {
        let mut world = World::new();
        world.hear(in_shell(HookKind::SessionStart, "a", 60, &[]));
        world.hear(in_shell(HookKind::SessionStart, "b", 61, &[61]));
        let keys = world.lookups();
        order.into_iter().for_each(|index: usize| drop(world.seen(keys[index], front(61))));
        assert_eq!(world.live(), [(Some("b"), Some(61), Some(PANE))], "{order:?}");
    }
    let mut world = World::new();
    world.hear(in_shell(HookKind::SessionStart, "a", 60, &[]));
    let key = world.lookups()[0];
    world.seen(key, front(PANE.pid));
    assert_eq!(world.live(), [], "only the shell is left");
}

#[test]
fn a_session_in_the_background_of_its_pane_has_no_pane() {
    for in_front in [PANE.pid, 77] {
        let mut world = World::new();
        world.hear(in_shell(HookKind::SessionStart, "a", 60, &[60]));
        let key = world.lookups()[0];
        world.seen(key, front(in_front));
        assert_eq!(world.live(), [(Some("a"), Some(60), None)]);
    }
    // From inside a container nobody knows which of the pane's processes ran the hook.
    let mut world = World::new();
    world.hear(HookEvent { ancestors: vec![90, 60], ..in_shell(HookKind::SessionStart, "a", 60, &[]) });
    let key = world.lookups()[0];
    world.seen(key, front(77));
    assert_eq!(world.live(), [(Some("a"), Some(77), Some(PANE))]);
}

/// The sidecar was down while a person quit a registered CLI and started it again, so its death is noticed only after
/// the events.
#[test]
fn a_session_that_begins_where_an_agent_was_is_seen_although_its_death_was_not() {
    for session in ["b", "a"] {
        let mut world = World::with_a_launcher();
        let old = world.agent().agent_id;
        for agent in world.core.state.agents.values_mut() {
            agent.process = Some(Process { pid: 60, start_ticks: 9 });
            agent.session.id = Some("a".to_owned());
        }
        let nested =
            HookEvent { ancestors: vec![91, 70, 90, 60, 50, 7], ..in_shell(HookKind::SessionStart, "n", 0, &[]) };
        world.hear(nested);
        assert!(world.lookups().is_empty(), "a CLI that it runs itself");
        world.hear(in_shell(HookKind::SessionStart, session, 61, &[61]));
        let key = world.lookups()[0];
        world.seen(key, front(61));
        world.core.decide(Event::AgentExit { agent_id: old, how: Exit::Dead });
        world.core.pass(2_000);
        assert_eq!(world.live(), [(Some(session), Some(61), Some(PANE))]);
        world.hear(in_shell(HookKind::PromptSubmit, session, 61, &[61]));
        let busy = world.core.state.agents.values().filter(|agent| agent.state == AgentState::Busy).count();
        assert_eq!(busy, 1);
    }
}

#[test]
fn the_last_session_of_a_process_is_bound_whichever_lookup_ends_first() {
    for order in [[0, 1], [1, 0]] {
        let mut world = World::new();
        world.hear(HookEvent {
            reason: Some(SessionReason::Process),
            ..in_shell(HookKind::SessionStart, "first", 60, &[60])
        });
        world.hear(HookEvent {
            reason: Some(SessionReason::Replaced),
            ..in_shell(HookKind::SessionStart, "next", 60, &[60])
        });
        let keys = world.lookups();
        order.into_iter().for_each(|index: usize| drop(world.seen(keys[index], front(60))));
        assert_eq!(world.live(), [(Some("next"), Some(60), Some(PANE))], "{order:?}");
    }
}

#[test]
fn a_session_of_a_server_that_is_not_known_yet_is_looked_up_in_that_server() {
    for known in [None, Some(ServerId { pid: 6, start_time: 1 })] {
        let mut world = World::new();
        world.core.state.server = known;
        world.hear(in_shell(HookKind::SessionStart, "a", 60, &[60]));
        let key = world.lookups()[0];
        let effect = &world.core.state.outbox[&key].effect;
        assert!(matches!(effect, Effect::Identify { pane: 3, server_pid: Some(7) }), "{effect:?}");
        world.core.decide(Event::Settled { key, outcome: Outcome::Failed { why: "no server".to_owned() } });
        let key = world.lookups()[0];
        world.seen(key, front(60));
        assert_eq!(world.live(), [(Some("a"), Some(60), Some(PANE))]);
    }
    // Of another server than ours it has no pane.
    let mut world = World::new();
    world.hear(HookEvent { server_pid: Some(8), ..in_shell(HookKind::SessionStart, "a", 60, &[60]) });
    let key = world.lookups()[0];
    world.core.decide(Event::Settled { key, outcome: Outcome::Pane(None) });
    assert_eq!(world.live(), [(Some("a"), Some(60), None)]);
}

#[test]
fn the_pane_of_an_agent_that_registered_without_one_is_registered_with_that_agent() {
    for (claimed_by, persona, code) in
        [(None, Some("dev"), None), (None, None, None), (Some("00c0ffee"), Some("dev"), Some("pane_claimed"))]
    {
        let mut world = World::new();
        world.hear(HookEvent { pane: None, ..in_shell(HookKind::SessionStart, "a", 60, &[60]) });
        let mut request = json!({"v": 1, "kind": "agent_register", "pane": "%3"});
        persona.into_iter().for_each(|slug| request["persona_slug"] = json!(slug));
        world.core.ask("r1", &request);
        let key = world.lookups()[0];
        let facts = PaneFacts { claimed_by: claimed_by.map(str::to_owned), ..front(60) };
        let answer = world.seen(key, facts).answers[0].to_json(&world.core.now);
        assert_eq!(answer["error"]["code"].as_str(), code, "{answer}");
        assert_eq!(world.live(), [(Some("a"), Some(60), Some(PANE).filter(|_| code.is_none()))]);
        if code.is_none() {
            assert_eq!(answer["result"]["hooks"], "seen", "{answer}");
            assert_eq!(world.agent().persona_slug.as_ref().map(|slug| slug.to_string()).as_deref(), persona);
        }
    }
}
