//! With which CLI and model a successor is started, and what becomes of successors that are replaced or out of reach,
//! decided without a machine.

use crate::support::decided::Decided;
use crate::support::facts::demo_facts;
use crate::support::flow_world::{FlowWorld, Instead, Turn, other, outgoing};
use serde_json::{Value, json};
use tasuki::core::decision::Decision;
use tasuki::core::effect::{Outcome, Readiness, Started};
use tasuki::core::event::{Event, Exit};
use tasuki::core::hook::{HookEvent, HookKind, SessionReason};
use tasuki::core::id::{AgentId, ItemId};
use tasuki::core::pane::{PaneRef, Refusal, ServerId, Typed};
use tasuki::core::persona::{PersonaFacts, ProfileChoice};
use tasuki::core::reply::Reply;
use tasuki::core::rows::agent::{Agent, AgentState, Primed};
use tasuki::core::rows::handoff::Handoff;
use tasuki::core::rows::item::{Status, Who};
use tasuki::core::settings::{NewSession, ProfileFacts};

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
    let typo = json!({"successor": {"agent_id": id(2), "profil": "other"}});
    assert_eq!(refused(&typo), (400, "bad_request".to_owned(), field("successor")), "no field is ignored");
    for successor in [json!("same_pane"), json!({"agent_id": id(2)})] {
        let asked = json!({"successor": successor, "profile": "other"});
        assert_eq!(refused(&asked), (400, "bad_request".to_owned(), field("profile")), "{asked}");
    }
}

/// The agent would be ended, and nobody would take over. Its own profile counts if the request names no other.
#[test]
fn an_agent_of_a_profile_that_can_t_be_started_is_handed_off_only_to_another_profile_or_agent() {
    let of = |profile: &str, fields: &Value| {
        let mut world = world();
        world.state.agents.get_mut(&id(1)).expect("an agent").profile = profile.to_owned();
        let decision = ask(&mut world, fields);
        match &decision.answers[0].reply {
            Reply::Refused(error) => Err((error.status, error.code.clone(), error.field.clone(), error.hint.clone())),
            _ => Ok(world.state.handoffs.len()),
        }
    };
    for (profile, code) in [("adopted", "not_launchable"), ("removed", "no_profile")] {
        for fields in [json!({}), json!({"model": "tiny"})] {
            let (status, found, field, hint) = of(profile, &fields).expect_err("refused");
            assert_eq!((status, found.as_str(), field.as_deref()), (400, code, Some("profile")), "{fields}");
            let hint = hint.unwrap_or_default();
            assert!(hint.contains("--profile NAME") && hint.contains("demo, other, plain"), "{hint}");
        }
        assert_eq!(of(profile, &json!({"profile": "other"})), Ok(1), "{profile}");
        assert_eq!(of(profile, &json!({"successor": {"agent_id": id(2)}})), Ok(1), "{profile}");
    }
}

#[test]
fn no_retry_ends_an_agent_for_a_successor_that_can_t_be_started() {
    let mut world = FlowWorld::new().turn("exit", Turn::GoesOn).hand_off(&json!({}));
    world.wait();
    assert_eq!(world.failure(), Some(("ending", "did_not_exit")));
    let launchable = |world: &mut FlowWorld, launchable| {
        let profiles = &mut world.core.state.settings.profiles;
        let facts = ProfileFacts { launchable, new_session: Some(NewSession::Reported), ..demo_facts() };
        profiles.insert("demo".to_owned(), facts);
    };
    launchable(&mut world, false);
    let typed = world.typed.len();
    for fields in [json!({}), json!({"successor": "new"})] {
        let answer = world.ask_of_it("handoff_retry", &fields);
        assert_eq!(answer["error"]["code"], "not_launchable", "{fields}: {answer}");
    }
    assert_eq!((world.step(), world.typed.len()), ("failed", typed));
    assert!(world.agent(&outgoing()).state.is_live());
    launchable(&mut world, true);
    world.ask_of_it("handoff_retry", &json!({}));
    assert_eq!(world.step(), "done");
}

/// A tmux server that is not the one that answers.
const ELSEWHERE: ServerId = ServerId { pid: 8, start_time: 2 };

fn move_elsewhere(agent: &mut Agent) {
    agent.pane.as_mut().expect("a pane").server = ELSEWHERE;
}

#[test]
fn an_agent_in_another_tmux_server_is_neither_handed_off_nor_a_successor_until_it_is_seen_to_be_gone() {
    for (number, fields) in [(1, json!({})), (2, json!({"successor": {"agent_id": id(2)}}))] {
        let mut world = world();
        move_elsewhere(world.state.agents.get_mut(&id(number)).expect("an agent"));
        let decision = ask(&mut world, &fields);
        let Reply::Refused(error) = &decision.answers[0].reply else { panic!("{decision:?}") };
        assert_eq!((error.status, error.code.as_str()), (503, "no_tmux"), "{number}");
        assert!(error.message.contains("another tmux server") && world.state.handoffs.is_empty(), "{error:?}");
    }
    let mut world = world();
    move_elsewhere(world.state.agents.get_mut(&id(1)).expect("an agent"));
    world.decide(Event::AgentExit { agent_id: id(1), how: Exit::PaneGone });
    let decision = ask(&mut world, &json!({}));
    assert!(matches!(decision.answers[0].reply, Reply::Ok(_)), "its server has ended: {decision:?}");
}

/// The successor lives, and tasuki was started again with another server: a second one beside it would be one too many.
#[test]
fn a_retry_starts_no_successor_beside_one_that_lives_in_another_tmux_server() {
    let not_known = || Instead::Outcome(Outcome::Started(Started::Unknown { why: "lost".to_owned() }));
    let refused = || Instead::Outcome(Outcome::Typed(Typed::Refused { reason: Refusal::NoTmux }));
    for (moment, instead) in [("start", not_known()), ("briefing", refused())] {
        let mut world = FlowWorld::new().at(moment, instead).hand_off(&json!({}));
        let successor = world.handoff().successor_id.expect("a successor");
        world.change(&successor, |agent| {
            agent.pane = Some(PaneRef { server: ELSEWHERE, pane: 9, pid: 9 });
            agent.start_server = Some(ELSEWHERE);
        });
        let (started, step) = (world.started.len(), world.step());
        let answer = world.ask_of_it("handoff_retry", &json!({}));
        assert_eq!((&answer["error"]["code"], world.step()), (&json!("no_tmux"), step), "{moment}: {answer}");
        assert_eq!((world.started.len(), world.handoff().successor_id), (started, Some(successor)), "{moment}");
        let answer = world.ask_of_it("handoff_retry", &json!({"successor": "new"}));
        assert_eq!((&answer["ok"], world.step()), (&json!(true), "done"), "{moment}: who asks for another gets one");
    }
}

#[test]
fn a_successor_that_never_took_over_is_no_descendant() {
    let refused = Instead::Outcome(Outcome::Typed(Typed::Refused { reason: Refusal::Draft }));
    let named = json!({"successor": {"agent_id": other()}});
    let mut world = FlowWorld::new().at("briefing", refused).hand_off(&named);
    assert_eq!((world.failure(), world.agent(&other()).previous_agent_id), (Some(("briefing", "not_delivered")), None));
    assert_eq!(world.agent(&outgoing()).successor_id, None, "the two say the same");
    assert_eq!(world.ask_of_it("handoff_retry", &json!({"successor": "new"}))["ok"], true);
    let successor = world.handoff().successor_id.expect("a successor");
    assert_eq!(world.agent(&successor).previous_agent_id, Some(outgoing()));
    assert_eq!((world.step(), world.agent(&other()).previous_agent_id), ("done", None));
}

#[test]
fn a_dialog_of_a_successor_that_was_replaced_is_not_said_to_block_the_next_one() {
    let mut world = FlowWorld::new().turn("briefing", Turn::GoesOn).hand_off(&json!({}));
    let first = world.handoff().successor_id.expect("a successor");
    world.hear_of(first, HookEvent::new(HookKind::Blocked));
    assert!(world.handoff().successor_blocked_at.is_some(), "{:?}", world.handoff());
    world.die(first);
    assert_eq!(world.failure(), Some(("reading", "successor_failed")));
    assert_eq!(world.handoff().successor_blocked_at, None, "its dialog is gone with it");
    let mut world = FlowWorld::new().turn("briefing", Turn::Fails).hand_off(&json!({}));
    let first = world.handoff().successor_id.expect("a successor");
    let id = world.handoff().handoff_id;
    world.change(&first, |agent| agent.answering = Some(id));
    world.hear_of(first, HookEvent::new(HookKind::Blocked));
    assert!(world.handoff().successor_blocked_at.is_some(), "{:?}", world.handoff());
    assert_eq!(world.ask_of_it("handoff_retry", &json!({"successor": "new"}))["ok"], true);
    world.change(&first, |agent| agent.state = AgentState::Idle);
    world.hear_of(first, HookEvent::new(HookKind::Blocked));
    assert_eq!((world.step(), world.handoff().successor_blocked_at.as_ref()), ("done", None));
}

#[test]
fn a_successor_whose_dialog_was_answered_is_not_said_to_be_blocked_for_the_rest_of_its_turn() {
    let mut world = FlowWorld::new().turn("briefing", Turn::GoesOn).hand_off(&json!({}));
    let successor = world.handoff().successor_id.expect("a successor");
    for _ in 0..2 {
        world.hear_of(successor, HookEvent::new(HookKind::Blocked));
        assert!(world.handoff().successor_blocked_at.is_some(), "{:?}", world.handoff());
        for readiness in [Readiness::Blocked { screen: String::new() }, Readiness::AtWork { screen: String::new() }] {
            world = world.at("await_idle", Instead::Outcome(Outcome::Readiness(readiness)));
            world.pass(2_000);
        }
        let state = world.agent(&successor).state;
        assert_eq!((state, world.handoff().successor_blocked_at.as_ref()), (AgentState::Busy, None));
    }
    assert_eq!(world.step(), "reading");
}

/// A person's `/clear` in the successor's pane: the handoff was done, and nobody knew the document.
#[test]
fn a_successor_that_loses_its_session_before_it_has_read_the_document_has_failed() {
    let mut world = FlowWorld::new().turn("briefing", Turn::GoesOn).hand_off(&json!({}));
    let successor = world.handoff().successor_id.expect("a successor");
    let cleared = HookEvent {
        reason: Some(SessionReason::Replaced),
        session_id: Some("another".to_owned()),
        ..HookEvent::new(HookKind::SessionStart)
    };
    world.hear_of(successor, cleared);
    world.wait();
    assert_eq!(world.failure(), Some(("reading", "successor_failed")));
    assert_eq!(world.ask_of_it("handoff_retry", &json!({"successor": "new"}))["ok"], true);
    assert_eq!((world.step(), world.started.len()), ("done", 2));
}

/// A full disk or a folder without rights took the one report of its session: each retry waited for another in vain.
#[test]
fn a_successor_whose_report_was_lost_is_taken_by_the_retry() {
    let mut world = FlowWorld::new();
    world.unreported = true;
    let mut world = world.hand_off(&json!({}));
    world.pass(600_000);
    assert_eq!(world.failure(), Some(("starting", "successor_failed")));
    let error = world.handoff().error.clone().expect("a failure");
    assert!(error.message.contains("its hooks did not report its session"), "{error:?}");
    let successor = world.handoff().successor_id.expect("a successor");
    let (pane, process) = (world.agent(&successor).pane.expect("a pane"), world.agent(&successor).process);
    let mut world = world.at("start", Instead::Outcome(Outcome::Started(Started::Running { pane, process })));
    assert_eq!(world.ask_of_it("handoff_retry", &json!({}))["ok"], true);
    assert_eq!((world.step(), world.handoff().successor_id), ("done", Some(successor)));
    assert_eq!(world.texts(&successor), ["priming", "briefing"]);
}

/// It stayed as a second agent of the persona, which was ambiguous from then on, and nothing said so.
#[test]
fn a_successor_that_another_one_replaces_is_told_to_run_still() {
    let mut world = FlowWorld::new();
    world.unreported = true;
    let mut world = world.hand_off(&json!({}));
    world.pass(600_000);
    let first = world.handoff().successor_id.expect("a successor");
    world.unreported = false;
    assert_eq!(world.ask_of_it("handoff_retry", &json!({"successor": "new"}))["ok"], true);
    let warned = world.handoff().warnings.join("\n");
    assert!(warned.contains(&format!("{}, which another one replaces, still runs", first.short())), "{warned}");
    assert!(world.step() == "done" && world.agent(&first).state.is_live(), "it is left alone");
}

fn handoff_of(agent: AgentId) -> Value {
    json!({"v": 1, "kind": "handoff", "agent_id": agent, "reason": "r"})
}

/// It knows nothing but its skill: a handoff of this agent would leave its predecessor's document behind.
#[test]
fn a_successor_that_was_not_briefed_is_not_handed_off() {
    let new = || FlowWorld::new().turn("priming", Turn::Fails).hand_off(&json!({}));
    let mut world = new();
    world.wait();
    assert_eq!(world.failure(), Some(("priming", "priming_failed")));
    let (id, successor) = (world.handoff().handoff_id, world.handoff().successor_id.expect("a successor"));
    let refused = world.ask("h2", &handoff_of(successor));
    assert_eq!((&refused["status"], &refused["error"]["code"]), (&json!(409), &json!("handoff_in_progress")));
    let hint = refused["error"]["hint"].to_string();
    assert!(hint.contains(&format!("tasuki retry {} --successor new", id.short())), "{refused}");
    let to_it =
        json!({"v": 1, "kind": "handoff", "agent_id": other(), "reason": "r", "successor": {"agent_id": successor}});
    let refused = world.ask("h4", &to_it);
    assert_eq!((&refused["status"], &refused["error"]["code"]), (&json!(409), &json!("successor_taken")), "{refused}");
    let retried = world.ask_of_it("handoff_retry", &json!({"successor": "new"}));
    assert_eq!((world.step(), world.started.len()), ("done", 2), "{retried}");
    assert_eq!(world.ask("h3", &handoff_of(successor))["status"], 200, "it waits for no document any more");
    let mut world = new();
    world.wait();
    let successor = world.handoff().successor_id.expect("a successor");
    world.ask_of_it("handoff_abandon", &json!({}));
    assert_eq!(world.ask("h2", &handoff_of(successor))["status"], 200);
}

/// The briefing was to be typed, and nothing of it was.
#[test]
fn a_successor_whose_briefing_was_refused_is_not_handed_off_either() {
    let draft = || Instead::Outcome(Outcome::Typed(Typed::Refused { reason: Refusal::Draft }));
    let unknown = || Instead::Outcome(Outcome::Typed(Typed::Unknown { reason: "not_seen".to_owned() }));
    let mut world = FlowWorld::new().at("briefing", draft()).hand_off(&json!({}));
    assert_eq!(world.failure(), Some(("briefing", "not_delivered")));
    let successor = world.handoff().successor_id.expect("a successor");
    let refused = world.ask("h2", &handoff_of(successor));
    assert_eq!(refused["error"]["code"], "handoff_in_progress", "{refused}");
    assert_eq!(world.ask_of_it("handoff_retry", &json!({}))["ok"], true);
    assert_eq!((world.step(), world.agent(&successor).chain.generation), ("done", 1));
    assert_eq!(world.ask("h3", &handoff_of(successor))["status"], 200, "it has the document");
    // It may have the document, until somebody says that it has not.
    let mut world = FlowWorld::new().at("briefing", unknown()).hand_off(&json!({}));
    world.wait();
    assert_eq!(world.failure(), Some(("briefing", "unconfirmed")));
    let successor = world.handoff().successor_id.expect("a successor");
    assert_eq!(world.agent(&successor).chain.generation, 1);
    let mut world = world.at("briefing", draft());
    assert_eq!(world.ask_of_it("handoff_retry", &json!({"assume": "not_delivered"}))["ok"], true);
    assert_eq!(world.failure(), Some(("briefing", "not_delivered")));
    let refused = world.ask("h2", &handoff_of(successor));
    assert_eq!(refused["error"]["code"], "handoff_in_progress", "{refused}");
    let mut world = FlowWorld::new().at("briefing", unknown()).hand_off(&json!({}));
    world.wait();
    let successor = world.handoff().successor_id.expect("a successor");
    assert_eq!(world.ask("h2", &handoff_of(successor))["status"], 200);
}

/// A home whose agents take work items, and an item that the first agent has claimed.
fn with_item(mut world: FlowWorld) -> (FlowWorld, ItemId) {
    world.core.state.roles.insert("dev".parse().expect("a slug"), "developer".to_owned());
    let made = world.ask("w1", &json!({"v": 1, "kind": "work_create", "type": "task", "title": "The till"}));
    let item = made["result"]["item_id"].as_str().and_then(|id| id.parse().ok()).expect("an item");
    let claim = json!({"v": 1, "kind": "work_claim", "item_id": item, "agent_id": outgoing()});
    assert_eq!(world.ask("w2", &claim)["ok"], true);
    (world, item)
}

#[test]
fn the_items_of_a_successor_that_has_its_document_are_ready_again_when_it_ends() {
    let row = |world: &FlowWorld, item: &ItemId| world.core.state.items.get(item).expect("it is open").clone();
    let (world, item) = with_item(FlowWorld::new().turn("briefing", Turn::Fails));
    let mut world = world.hand_off(&json!({}));
    assert_eq!(world.failure(), Some(("reading", "successor_failed")));
    let (id, successor) = (world.handoff().handoff_id, world.handoff().successor_id.expect("a successor"));
    let held = row(&world, &item);
    assert_eq!((held.held_by, held.claimed_by), (Some(id), Some(Who::Agent(successor))));
    world.die(successor);
    let free = row(&world, &item);
    assert_eq!((free.status, free.held_by, free.claimed_by), (Status::Ready, None, None), "nobody retries the handoff");
    // Its death is the failure, or it had no document: the next successor gets the items.
    for (text, step) in [("briefing", "reading"), ("priming", "priming")] {
        let (world, item) = with_item(FlowWorld::new().turn(text, Turn::Dies));
        let mut world = world.hand_off(&json!({}));
        assert_eq!(world.failure().map(|(step, _)| step), Some(step));
        let (id, dead) = (world.handoff().handoff_id, world.handoff().successor_id.expect("a successor"));
        let held = row(&world, &item);
        assert_eq!((held.held_by, held.claimed_by), (Some(id), Some(Who::Agent(dead))), "{step}");
        assert_eq!(world.ask_of_it("handoff_retry", &json!({}))["ok"], true);
        let successor = world.handoff().successor_id.expect("a successor");
        assert_eq!((world.step(), row(&world, &item).claimed_by), ("done", Some(Who::Agent(successor))), "{step}");
    }
    // A successor that was replaced dies while the next one starts.
    let (world, item) = with_item(FlowWorld::new().turn("briefing", Turn::Fails));
    let mut world = world.hand_off(&json!({})).at("start", Instead::Silence);
    let (id, first) = (world.handoff().handoff_id, world.handoff().successor_id.expect("a successor"));
    assert_eq!(world.ask_of_it("handoff_retry", &json!({"successor": "new"}))["ok"], true);
    assert_eq!(world.step(), "starting");
    world.die(first);
    assert_eq!(row(&world, &item).held_by, Some(id), "the next one gets it");
}

#[test]
fn the_refusal_of_a_retry_says_which_other_handoff_has_taken_over() {
    let mut world = FlowWorld::new().turn("briefing", Turn::Fails).hand_off(&json!({}));
    world.wait();
    assert_eq!(world.failure(), Some(("reading", "successor_failed")));
    let (first, successor) = (world.handoff().handoff_id, world.handoff().successor_id.expect("a successor"));
    let second = world.ask("h2", &handoff_of(successor));
    assert_eq!(second["status"], 200, "it has been briefed: {second}");
    world.wait();
    let second = second["result"]["handoff_id"].as_str().expect("an id").to_owned();
    let refused = world.ask("q", &json!({"v": 1, "kind": "handoff_retry", "handoff_id": first}));
    assert_eq!(
        refused["error"]["message"], "Another handoff of this handoff's successor has its document",
        "{refused}"
    );
    let hint = refused["error"]["hint"].to_string();
    assert!(hint.contains(&format!("tasuki handoffs show {}", &second[..8])), "{refused}");
}
