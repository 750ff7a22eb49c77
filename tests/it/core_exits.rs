//! What ends an agent of which little is known, decided without a machine: by silence, by its process, by a request.

use crate::support::decided::Decided;
use crate::support::facts::demo_facts;
use tasuki::core::decision::Decision;
use tasuki::core::event::{Event, Exit};
use tasuki::core::hook::{AgentCli, HookEvent, HookKind, SessionReason};
use tasuki::core::id::{AgentId, HandoffId};
use tasuki::core::pane::{PaneRef, Process, ServerId};
use tasuki::core::rows::agent::{Agent, AgentState, OurTurn, Purpose};

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
