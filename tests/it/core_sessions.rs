//! Whose event it is if several agents have the same session of their CLI.

use crate::support::decided::Decided;
use crate::support::facts::demo_facts;
use tasuki::core::event::Event;
use tasuki::core::hook::{HookEvent, HookKind};
use tasuki::core::id::AgentId;
use tasuki::core::pane::{PaneRef, Process, ServerId};
use tasuki::core::rows::agent::{Agent, AgentState};

const PANE: PaneRef = PaneRef { server: ServerId { pid: 7, start_time: 1 }, pane: 3, pid: 50 };

/// `claude --continue` in a second pane, while the first CLI still runs there.
#[test]
fn of_two_agents_in_one_session_each_gets_the_events_of_its_own_pane() {
    let agent = |number: u128, pane: u32| {
        let mut agent = Agent::new(AgentId(uuid::Uuid::from_u128(number)), "demo".to_owned(), String::new());
        (agent.state, agent.session.id) = (AgentState::Idle, Some("s".to_owned()));
        agent.pane = Some(PaneRef { pane, ..PANE });
        agent.process = Some(Process { pid: 50 + pane, start_ticks: 1 });
        agent
    };
    let prompt = |pane: u32, ancestors: &[u32]| HookEvent {
        pane: Some(pane),
        server_pid: Some(PANE.server.pid),
        ancestors: ancestors.to_vec(),
        profile: Some("demo".to_owned()),
        session_id: Some("s".to_owned()),
        ..HookEvent::new(HookKind::PromptSubmit)
    };
    for (first, second) in [(3, 4), (4, 3)] {
        for (event, busy) in [
            (prompt(4, &[]), Some(4)),
            (prompt(4, &[90, 54, PANE.server.pid]), Some(4)),
            (prompt(9, &[90, 53]), Some(3)),
            // It has no row yet: its pane is being looked up.
            (prompt(9, &[90, 59, PANE.server.pid]), None),
            // No pane and no process tell more than the session.
            (prompt(9, &[]), Some(first)),
        ] {
            let mut core = Decided::new(PANE.server, demo_facts(), [agent(1, first), agent(2, second)]);
            core.decide(Event::Hook(Box::new(event.clone())));
            let agents = core.state.agents.values();
            let is_busy = |agent: &&Agent| agent.state == AgentState::Busy;
            let found: Vec<u32> = agents.filter(is_busy).filter_map(|agent| Some(agent.pane?.pane)).collect();
            assert_eq!(found, Vec::from_iter(busy), "{first}: {event:?}");
        }
    }
    // A CLI in a third pane, which is known to have had another session, has opened that of the first one.
    let mut third = agent(3, 9);
    third.session.id = Some("t".to_owned());
    let mut core = Decided::new(PANE.server, demo_facts(), [agent(1, 3), third]);
    core.decide(Event::Hook(Box::new(prompt(9, &[]))));
    let first = core.state.agents.values().find(|agent| agent.pane.is_some_and(|pane| pane.pane == 3));
    assert_eq!(first.map(|agent| agent.state), Some(AgentState::Idle), "it has got no prompt");
}
