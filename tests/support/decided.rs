//! The core alone: a state, the time, and decisions that are applied one after the other.

use serde_json::Value;
use std::collections::BTreeMap;
use tasuki::core::decision::{Cycle, Decision};
use tasuki::core::event::{Event, IncomingRequest, RequestFacts};
use tasuki::core::pane::ServerId;
use tasuki::core::persona::PersonaFacts;
use tasuki::core::request;
use tasuki::core::rows::agent::Agent;
use tasuki::core::settings::{ProfileFacts, Settings};
use tasuki::core::state::State;
use tasuki::core::time::Now;

pub(crate) struct Decided {
    pub(crate) state: State,
    pub(crate) now: Now,
    /// What is known of the persona `dev`.
    pub(crate) persona: PersonaFacts,
    decisions: u64,
}

impl Decided {
    /// A state with this tmux server, this profile and these agents.
    pub(crate) fn new(server: ServerId, profile: ProfileFacts, agents: impl IntoIterator<Item = Agent>) -> Decided {
        let settings = Settings { profiles: BTreeMap::from([(profile.name.clone(), profile)]), ..Settings::default() };
        let agents = agents.into_iter().map(|agent| (agent.agent_id, agent)).collect();
        let state = State { agents, server: Some(server), settings, ..State::default() };
        let persona = PersonaFacts { exists: true, has_skill: true, ..PersonaFacts::default() };
        Decided { state, persona, now: Now { wall_ms: 1_790_000_000_000, boot: 1, boot_ms: 5_000 }, decisions: 0 }
    }

    pub(crate) fn decide(&mut self, event: Event) -> Decision {
        self.decisions += 1;
        let mut entropy = [0; 32];
        entropy[..8].copy_from_slice(&self.decisions.to_le_bytes());
        let decision = tasuki::core::decide(&self.state, event, &Cycle { now: self.now, entropy });
        self.state.apply(&decision);
        decision
    }

    /// Decides a request, in a home with a persona `dev`. The decision holds the answer, if there is one at once.
    pub(crate) fn ask(&mut self, id: &str, request: &Value) -> Decision {
        self.ask_with(id, request, RequestFacts::default())
    }

    /// The same, with more facts that the intake has collected for the request.
    pub(crate) fn ask_with(&mut self, id: &str, request: &Value, facts: RequestFacts) -> Decision {
        let persona = Some(("dev".parse().expect("a slug"), self.persona.clone()));
        let facts = RequestFacts { persona, ..facts };
        let read = request::read(request.to_string().as_bytes());
        let arrived = IncomingRequest { id: id.parse().expect("an id"), sha256: String::new(), read, facts };
        self.decide(Event::Request(Box::new(arrived)))
    }

    /// Lets time pass since boot, and decides the deadlines that are due then.
    pub(crate) fn pass(&mut self, ms: u64) -> Decision {
        self.now.boot_ms += ms;
        self.decide(Event::Deadlines)
    }
}
