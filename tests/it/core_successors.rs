//! With which CLI and model a successor is started, decided without a machine.

use crate::support::decided::Decided;
use crate::support::facts::demo_facts;
use serde_json::{Value, json};
use tasuki::core::decision::Decision;
use tasuki::core::id::AgentId;
use tasuki::core::pane::{PaneRef, ServerId};
use tasuki::core::persona::{PersonaFacts, ProfileChoice};
use tasuki::core::reply::Reply;
use tasuki::core::rows::agent::{Agent, AgentState, Primed};
use tasuki::core::rows::handoff::Handoff;
use tasuki::core::settings::ProfileFacts;

const SERVER: ServerId = ServerId { pid: 7, start_time: 1 };

fn id(number: u128) -> AgentId {
    AgentId(uuid::Uuid::from_u128(number))
}

fn chosen(profile: &str, model: Option<&str>) -> ProfileChoice {
    ProfileChoice { profile: profile.to_owned(), model: model.map(str::to_owned) }
}

/// Two idle agents of a persona whose fallback is a model of the profile `other`; the first was told to use the model
/// `big`. `plain` takes no model, `adopted` has no launch line.
fn world() -> Decided {
    let agents = [(1, Some("big")), (2, None)].map(|(number, model)| {
        let mut agent = Agent::new(id(number.into()), "demo".to_owned(), String::new());
        agent.persona_slug = "dev".parse().ok();
        (agent.state, agent.ours, agent.hooks_seen, agent.primed) = (AgentState::Idle, true, true, Primed::Done);
        agent.pane = Some(PaneRef { server: SERVER, pane: number, pid: number });
        agent.model = model.map(str::to_owned);
        agent
    });
    let mut world = Decided::new(SERVER, demo_facts(), agents);
    for (name, launchable, takes_model) in [("other", true, true), ("plain", true, false), ("adopted", false, false)] {
        let facts = ProfileFacts { name: name.to_owned(), launchable, takes_model, ..demo_facts() };
        world.state.settings.profiles.insert(name.to_owned(), facts);
    }
    world.persona = PersonaFacts { fallbacks: vec![chosen("other", Some("small"))], ..world.persona };
    world
}

/// The answer to a handoff of the first agent with these fields.
fn ask(world: &mut Decided, fields: &Value) -> Decision {
    let mut request = json!({"v": 1, "kind": "handoff", "agent_id": id(1), "reason": "r"});
    let object = request.as_object_mut().expect("an object");
    object.extend(fields.as_object().expect("an object").clone());
    world.ask("r1", &request)
}

fn refused(fields: &Value) -> (u16, String, Option<String>) {
    let mut world = world();
    let decision = ask(&mut world, fields);
    assert!(world.state.handoffs.is_empty());
    let Reply::Refused(error) = &decision.answers[0].reply else { panic!("{decision:?}") };
    (error.status, error.code.clone(), error.field.clone())
}

fn choice(fields: &Value) -> ProfileChoice {
    let mut world = world();
    let decision = ask(&mut world, fields);
    let handoff: &Handoff = world.state.handoffs.values().next().unwrap_or_else(|| panic!("{:?}", decision.answers));
    handoff.choice.clone()
}

#[test]
fn a_successor_has_what_its_predecessor_has_unless_the_request_says_otherwise() {
    assert_eq!(choice(&json!({})), chosen("demo", Some("big")));
    assert_eq!(choice(&json!({"profile": "demo"})), chosen("demo", Some("big")));
    assert_eq!(choice(&json!({"model": "tiny"})), chosen("demo", Some("tiny")));
    assert_eq!(choice(&json!({"profile": "other"})), chosen("other", Some("small")), "the persona's fallback");
    assert_eq!(choice(&json!({"profile": "other", "model": "tiny"})), chosen("other", Some("tiny")));
    assert_eq!(choice(&json!({"profile": "plain"})), chosen("plain", None));
    assert_eq!(choice(&json!({"successor": {"agent_id": id(2)}})), chosen("demo", None), "that agent's own");
}

#[test]
fn a_profile_or_a_model_that_can_t_be_started_is_refused_and_nothing_begins() {
    let field = |name: &str| Some(name.to_owned());
    assert_eq!(refused(&json!({"profile": "nothing"})), (400, "no_profile".to_owned(), field("profile")));
    assert_eq!(refused(&json!({"profile": "adopted"})), (400, "not_launchable".to_owned(), field("profile")));
    let no_option = (400, "no_model_option".to_owned(), field("model"));
    assert_eq!(refused(&json!({"profile": "plain", "model": "tiny"})), no_option);
    for wrong in ["", "-x", "--help", "a b", "a\nb", "a\u{1b}b", &"a".repeat(200)] {
        assert_eq!(refused(&json!({"model": wrong})), (400, "bad_request".to_owned(), field("model")), "{wrong:?}");
    }
    for successor in [json!("same_pane"), json!({"agent_id": id(2)})] {
        let asked = json!({"successor": successor, "profile": "other"});
        assert_eq!(refused(&asked), (400, "bad_request".to_owned(), field("profile")), "{asked}");
    }
}
