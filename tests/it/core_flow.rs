//! Whole handoffs, decided without a machine: each step's good end and its failures, and what a retry repeats.

use crate::support::flow_world::{FlowWorld, Instead, Turn, examined, other, outgoing, read, seen, unknown};
use crate::support::steps::STEPS;
use serde_json::{Value, json};
use tasuki::contract::LimitKind;
use tasuki::contract::document::DocumentCheck;
use tasuki::core::effect::{Composed, DocumentRead, Effect, EffectKey, LimitFound, Outcome, Readiness, Started};
use tasuki::core::id::HandoffId;
use tasuki::core::pane::{Refusal, Typed};
use tasuki::core::rows::agent::{AgentState, Owner, Primed, Start};
use tasuki::core::rows::handoff::Read;
use tasuki::core::settings::{NewSession, OnUsageLimit};
use tasuki::core::time::Deadline;

fn steps(world: &FlowWorld) -> Vec<&'static str> {
    world.handoff().steps.iter().map(|span| span.step.as_str()).collect()
}

fn refused(reason: Refusal) -> Instead {
    Instead::Outcome(Outcome::Typed(Typed::Refused { reason }))
}

fn started(started: Started) -> Instead {
    Instead::Outcome(Outcome::Started(started))
}

#[test]
fn all_goes_well() {
    let world = FlowWorld::new().hand_off(&json!({}));
    assert_eq!(world.step(), "done", "{:?}", world.handoff());
    assert_eq!(steps(&world), STEPS);
    let successor = world.handoff().successor_id.expect("a successor");
    assert_eq!(world.texts(&outgoing()), ["instruction", "exit"]);
    assert_eq!(world.texts(&successor), ["priming", "briefing"]);
    assert!(world.errors.is_empty() && !world.ended_unrecorded);
}

/// What a plain retry comes to.
enum Retry {
    /// The handoff ends well; these texts are submitted on the way, and no others.
    Types(&'static [&'static str]),
    /// It is refused: only a person knows whether the text arrived.
    NeedsWord,
}

/// A failure: its name, what brings it about, its step and code, and what a plain retry comes to.
type Failure = (&'static str, FlowWorld, (&'static str, &'static str), Retry);

const ALL: Retry = Retry::Types(&["instruction", "exit", "priming", "briefing"]);
const FROM_EXIT: Retry = Retry::Types(&["exit", "priming", "briefing"]);
const FROM_PRIMING: Retry = Retry::Types(&["priming", "briefing"]);

fn before_the_record() -> Vec<Failure> {
    let full = || Instead::Outcome(Outcome::Failed { why: "no space".to_owned() });
    let link = DocumentRead::Unsafe { why: "it is a link".to_owned() };
    let new = FlowWorld::new;
    vec![
        ("a draft", new().at("instruction", refused(Refusal::Draft)), ("instructing", "not_delivered"), ALL),
        ("a dialog", new().at("instruction", refused(Refusal::Dialog)), ("instructing", "not_delivered"), ALL),
        ("no pane", new().at("instruction", refused(Refusal::PaneGone)), ("instructing", "pane_gone"), ALL),
        ("no folder", new().at("prepare_folder", full()), ("instructing", "not_delivered"), ALL),
        ("not seen", new().at("instruction", unknown()), ("instructing", "unconfirmed"), Retry::NeedsWord),
        ("no verdict", new().at("instruction", Instead::Silence), ("instructing", "unconfirmed"), Retry::NeedsWord),
        ("a failed turn", new().turn("instruction", Turn::Fails), ("writing", "agent_failed"), FROM_EXIT),
        ("an endless turn", new().turn("instruction", Turn::GoesOn), ("writing", "stop_never_came"), FROM_EXIT),
        ("a dead author", new().turn("instruction", Turn::Dies), ("writing", "agent_ended"), FROM_PRIMING),
        (
            "no document",
            new().at("read_document", read(DocumentRead::Missing)).at("read_document", read(DocumentRead::Missing)),
            ("writing", "document_missing"),
            FROM_EXIT,
        ),
        (
            "nothing in it",
            new().at("read_document", read(DocumentRead::Empty)).at("read_document", read(DocumentRead::Empty)),
            ("writing", "document_empty"),
            FROM_EXIT,
        ),
        ("a link", new().at("read_document", read(link)), ("writing", "document_unsafe"), FROM_EXIT),
    ]
}

fn after_the_record() -> Vec<Failure> {
    let screen = || "the last lines".to_owned();
    let (failed, lost) = (Started::Failed { why: screen() }, Started::Unknown { why: screen() });
    let not_ready = Readiness::NotReady { screen: screen() };
    let (blocked, gone) = (Readiness::Blocked { screen: screen() }, Readiness::Gone { screen: screen() });
    let no_skill = || Instead::Outcome(Outcome::Persona(None));
    let new = FlowWorld::new;
    let start = ("starting", "successor_failed");
    vec![
        ("a draft", new().at("exit", refused(Refusal::Draft)), ("ending", "did_not_exit"), FROM_EXIT),
        ("no pane", new().at("exit", refused(Refusal::PaneGone)), ("ending", "did_not_exit"), FROM_EXIT),
        ("not seen", new().at("exit", unknown()), ("ending", "did_not_exit"), FROM_EXIT),
        ("no end", new().turn("exit", Turn::GoesOn), ("ending", "did_not_exit"), FROM_EXIT),
        ("died at once", new().at("start", started(Started::Died)), start, FROM_PRIMING),
        ("no program", new().at("start", started(failed)), start, FROM_PRIMING),
        ("no server", new().at("start", started(Started::NoTmux)), ("starting", "no_tmux"), FROM_PRIMING),
        ("started or not", new().at("start", started(lost)), start, FROM_PRIMING),
        ("no word of it", new().at("start", Instead::Silence), start, FROM_PRIMING),
        ("no composer", new().at("await_ready", seen(not_ready)), start, FROM_PRIMING),
        ("a dialog", new().at("await_ready", seen(blocked)), start, FROM_PRIMING),
        ("died early", new().at("await_ready", seen(gone)), start, FROM_PRIMING),
        ("a draft", new().at("priming", refused(Refusal::Draft)), ("priming", "not_delivered"), FROM_PRIMING),
        ("no pane", new().at("priming", refused(Refusal::PaneGone)), ("priming", "pane_gone"), FROM_PRIMING),
        ("not seen", new().at("priming", unknown()), ("priming", "unconfirmed"), Retry::NeedsWord),
        ("a failed turn", new().turn("priming", Turn::Fails), ("priming", "priming_failed"), Retry::NeedsWord),
        ("an endless turn", new().turn("priming", Turn::GoesOn), ("priming", "priming_failed"), Retry::NeedsWord),
        ("dead", new().turn("priming", Turn::Dies), ("priming", "agent_ended"), FROM_PRIMING),
        ("no skill", new().at("read_persona", no_skill()), ("priming", "not_delivered"), FROM_PRIMING),
        (
            "a draft",
            new().at("briefing", refused(Refusal::Draft)),
            ("briefing", "not_delivered"),
            Retry::Types(&["briefing"]),
        ),
        ("no pane", new().at("briefing", refused(Refusal::PaneGone)), ("briefing", "pane_gone"), FROM_PRIMING),
        ("not seen", new().at("briefing", unknown()), ("briefing", "unconfirmed"), Retry::NeedsWord),
        (
            "a failed turn",
            new().turn("briefing", Turn::Fails),
            ("reading", "successor_failed"),
            Retry::Types(&["briefing"]),
        ),
        ("dead", new().turn("briefing", Turn::Dies), ("reading", "successor_failed"), FROM_PRIMING),
    ]
}

/// A failure stops the flow at its step, leaves one error and what there is; a retry goes on from there.
fn try_out(failures: Vec<Failure>, is_recorded: bool) {
    for (name, world, (step, code), retry) in failures {
        let mut world = world.hand_off(&json!({}));
        world.wait();
        let name = format!("{name} in {step}: {:?}", world.handoff());
        assert_eq!((world.step(), world.failure()), ("failed", Some((step, code))), "{name}");
        assert_eq!((world.errors.len(), &world.errors[0]["code"]), (1, &json!(code)), "{name}");
        assert_eq!(world.handoff().record.is_some(), is_recorded, "{name}");
        assert!(is_recorded || code == "agent_ended" || world.agent_lives(), "{name}: nobody ended the agent");
        let typed = world.typed.len();
        world.interrupt();
        let answer = world.ask_of_it("handoff_retry", &json!({}));
        world.wait();
        let texts: Vec<&str> = world.typed[typed..].iter().map(|(_, text)| *text).collect();
        match retry {
            Retry::Types(expected) => assert_eq!((world.step(), texts.as_slice()), ("done", expected), "{name}"),
            Retry::NeedsWord => {
                assert_eq!((&answer["status"], texts.len()), (&json!(409), 0), "{name}: {answer}");
                assert_eq!((world.step(), world.errors.len()), ("failed", 1), "{name}");
            }
        }
    }
}

#[test]
fn a_failure_before_the_record_leaves_the_agent_and_a_retry_repeats_nothing() {
    try_out(before_the_record(), false);
}

#[test]
fn a_failure_after_the_record_keeps_it_and_a_retry_repeats_nothing() {
    try_out(after_the_record(), true);
}

/// Where nobody can know whether a text arrived, a person says so: then it is typed again, or taken as arrived.
#[test]
fn what_a_person_says_of_a_text_decides_whether_it_is_typed_again() {
    let cases: [(&str, &[&str], &[&str]); 3] = [
        ("instruction", &["exit", "priming", "briefing"], &["instruction", "exit", "priming", "briefing"]),
        ("priming", &["briefing"], &["priming", "briefing"]),
        ("briefing", &[], &["briefing"]),
    ];
    for (text, after_delivered, after_not_delivered) in cases {
        for (word, expected) in [("delivered", after_delivered), ("not_delivered", after_not_delivered)] {
            let mut world = FlowWorld::new().at(text, unknown()).hand_off(&json!({}));
            world.wait();
            assert_eq!(world.failure().map(|(_, code)| code), Some("unconfirmed"), "{text}");
            let hint = world.handoff().error.as_ref().map(|error| error.hint.clone()).unwrap_or_default();
            let asked = world.ask_of_it("handoff_retry", &json!({}))["error"]["hint"].to_string();
            for said in [&hint, &asked] {
                let short = world.handoff().handoff_id.short();
                let named = |word: &str| said.contains(&format!("tasuki retry {short} --assume {word}"));
                assert!(named("delivered;") && named("not-delivered") && !said.contains('|'), "a shell's pipe: {said}");
            }
            let typed = world.typed.len();
            let answer = world.ask_of_it("handoff_retry", &json!({ "assume": word }));
            world.wait();
            let texts: Vec<&str> = world.typed[typed..].iter().map(|(_, text)| *text).collect();
            assert_eq!((world.step(), texts.as_slice()), ("done", expected), "{text} {word}: {answer}");
        }
    }
}

#[test]
fn each_author_has_its_document_recorded_before_the_agent_is_ended() {
    let cases: [(Value, &[&str]); 4] = [
        (json!({"author": "agent_file"}), &["instruction", "exit"]),
        (json!({"author": "agent_reply"}), &["instruction", "exit"]),
        (json!({"author": "salvage"}), &["exit"]),
        (json!({"author": "provided", "document": {"text": "# Work\n\nThe parser is half done.\n"}}), &["exit"]),
    ];
    for (fields, texts) in cases {
        let world = FlowWorld::new().hand_off(&fields);
        assert_eq!((world.step(), world.texts(&outgoing()).as_slice()), ("done", texts), "{fields}");
        assert!(world.handoff().record.is_some() && !world.ended_unrecorded && world.errors.is_empty(), "{fields}");
    }
}

#[test]
fn a_document_that_tasuki_can_t_make_fails_the_handoff_and_leaves_the_agent() {
    for (composed, code) in
        [(Composed::Nothing, "document_empty"), (Composed::Failed { why: "no space".to_owned() }, "document_unsafe")]
    {
        let instead = Instead::Outcome(Outcome::Composed(composed));
        let world = FlowWorld::new().at("compose_document", instead).hand_off(&json!({"author": "salvage"}));
        assert_eq!(world.failure().map(|(_, code)| code), Some(code), "{:?}", world.handoff());
        assert!(world.agent_lives() && world.typed.is_empty() && world.handoff().record.is_none());
    }
}

#[test]
fn an_agent_that_runs_already_takes_over_without_a_second_skill() {
    let world = FlowWorld::new().hand_off(&json!({"successor": {"agent_id": other()}}));
    assert_eq!((world.step(), world.started.len()), ("done", 0), "{:?}", world.handoff());
    assert_eq!(world.texts(&other()), ["briefing"]);
    assert_eq!(world.agent(&other()).previous_agent_id, Some(outgoing()));
}

#[test]
fn a_handoff_can_be_cancelled_until_its_document_is_recorded() {
    let before = [
        FlowWorld::new().at("prepare_folder", Instead::Silence),
        FlowWorld::new().at("instruction", Instead::Silence),
        FlowWorld::new().turn("instruction", Turn::GoesOn),
        FlowWorld::new().at("read_document", Instead::Silence),
        FlowWorld::new().at("examine", Instead::Silence),
    ];
    for world in before {
        let mut world = world.hand_off(&json!({}));
        let step = world.step();
        let answer = world.ask_of_it("handoff_cancel", &json!({}));
        assert_eq!((&answer["status"], world.step()), (&json!(200), "cancelled"), "{step}: {answer}");
        world.wait();
        assert!(world.agent_lives() && world.started.is_empty() && world.errors.is_empty(), "{step}");
        assert_eq!(world.agent(&outgoing()).handoff_id, None, "{step}: it may be handed off again");
    }
    for moment in ["exit", "start", "await_ready", "read_persona", "priming", "briefing"] {
        let mut world = FlowWorld::new().at(moment, Instead::Silence).hand_off(&json!({}));
        let (step, typed) = (world.step(), world.typed.len());
        let answer = world.ask_of_it("handoff_cancel", &json!({}));
        assert_eq!(
            (&answer["status"], world.step(), world.typed.len()),
            (&json!(409), step, typed),
            "{moment}: {answer}"
        );
    }
}

#[test]
fn an_abandoned_handoff_keeps_its_record_and_makes_room_for_another() {
    let mut world = FlowWorld::new().turn("exit", Turn::GoesOn).hand_off(&json!({}));
    world.wait();
    assert_eq!(world.failure(), Some(("ending", "did_not_exit")));
    let again = json!({"v": 1, "kind": "handoff", "agent_id": outgoing(), "reason": "r"});
    assert_eq!(world.ask("h2", &again)["status"], 409, "the first one has a record of this agent");
    assert_eq!(world.ask_of_it("handoff_abandon", &json!({}))["status"], 200);
    assert!(world.handoff().record.is_some() && world.step() == "cancelled");
    assert_eq!(world.ask("h3", &again)["status"], 200);
    let steps: Vec<&str> = world.core.state.handoffs.values().map(|handoff| handoff.step.as_str()).collect();
    assert!(steps.contains(&"done") && steps.contains(&"cancelled"), "{steps:?}");
}

/// A successor that a handoff has let go may have been handed off itself since then: that is no matter of this handoff.
#[test]
fn another_successor_may_be_chosen_whatever_has_become_of_the_first() {
    let mut world = FlowWorld::new().at("briefing", unknown()).hand_off(&json!({}));
    world.wait();
    let first = world.handoff().successor_id.expect("a successor");
    world.change(&first, |agent| agent.recorded_in = Some(HandoffId(uuid::Uuid::nil())));
    let answer = world.ask_of_it("handoff_retry", &json!({"successor": "new"}));
    assert_eq!((&answer["status"], world.step()), (&json!(200), "done"), "{answer}");
    assert_eq!((world.handoff().former_successors.as_slice(), world.started.len()), ([first].as_slice(), 2));
}

/// To name the present successor again is no way around the question whether a text has arrived.
#[test]
fn the_same_successor_again_is_a_plain_retry() {
    let mut world = FlowWorld::new().at("briefing", unknown()).hand_off(&json!({}));
    world.wait();
    let successor = world.handoff().successor_id.expect("a successor");
    let answer = world.ask_of_it("handoff_retry", &json!({"successor": {"agent_id": successor}}));
    assert_eq!(
        (&answer["error"]["code"], world.texts(&successor).as_slice()),
        (&json!("in_doubt"), ["priming"].as_slice())
    );
    let same = json!({"successor": {"agent_id": successor}, "assume": "delivered"});
    assert_eq!((world.ask_of_it("handoff_retry", &same)["ok"].clone(), world.step()), (json!(true), "done"));
    assert_eq!(world.texts(&successor), ["priming"], "it is not briefed again");
}

#[test]
fn a_successor_that_is_said_to_have_the_document_is_not_briefed_again() {
    let mut world = FlowWorld::new().turn("briefing", Turn::Fails).hand_off(&json!({}));
    world.wait();
    assert_eq!(world.failure(), Some(("reading", "successor_failed")));
    world.ask_of_it("handoff_retry", &json!({"assume": "delivered"}));
    assert_eq!((world.step(), world.handoff().read), ("done", Some(Read::Unseen)), "{:?}", world.handoff());
    assert_eq!(world.typed.iter().filter(|(_, text)| *text == "briefing").count(), 1);
}

/// Nothing is known of the agent's pane and process, so nobody ends it.
#[test]
fn an_agent_that_was_not_ended_is_not_said_to_have_ended() {
    let mut world = FlowWorld::new();
    world.change(&outgoing(), |agent| (agent.pane, agent.process) = (None, None));
    let world = world.hand_off(&json!({"author": "provided", "document": {"text": "# Work\n"}}));
    assert_eq!((world.step(), world.agent_lives()), ("done", true), "{:?}", world.handoff());
    let points =
        serde_json::to_value(tasuki::core::view::handoff(world.handoff(), &world.core.state.settings)).expect("a view");
    let points = points["checklist"].as_array().expect("points").clone();
    let ended = points.iter().find(|point| point["point"] == "outgoing agent ended").expect("it is there");
    assert!(ended["at"].is_null() && ended.to_string().contains("did not end it"), "{ended}");
}

/// A handoff knows who has taken over. A request that only says so changes nothing.
#[test]
fn an_agent_that_is_created_does_not_take_the_place_of_a_proven_successor() {
    let mut world = FlowWorld::new().hand_off(&json!({}));
    let successor = world.handoff().successor_id;
    assert!(world.step() == "done" && world.agent(&outgoing()).successor_id == successor);
    let asked = json!({"v": 1, "kind": "agent_create", "persona_slug": "dev", "profile": "demo", "previous_agent_id": outgoing()});
    let answer = world.ask("c1", &asked);
    assert_eq!((&answer["ok"], world.started.len()), (&json!(true), 2), "{answer}");
    assert_eq!(world.agent(&outgoing()).successor_id, successor);
}

/// A person who reviews a document sees its faults, whatever the request says of the checks.
#[test]
fn a_document_that_is_reviewed_is_checked() {
    let world = FlowWorld::new().at("examine", Instead::Silence).hand_off(&json!({"check": "off", "review": true}));
    let plans = world.core.state.outbox.values().filter_map(|pending| match &pending.effect {
        Effect::Examine(plan) => Some(plan.rules.check),
        _ => None,
    });
    assert_eq!(plans.collect::<Vec<_>>(), [DocumentCheck::Hold]);
}

#[test]
fn an_agent_is_not_ended_for_a_successor_that_is_dead() {
    let mut world =
        FlowWorld::new().turn("instruction", Turn::GoesOn).hand_off(&json!({"successor": {"agent_id": other()}}));
    world.die(other());
    world.end_turn(outgoing());
    assert_eq!(world.failure(), Some(("ending", "successor_failed")), "{:?}", world.handoff());
    assert!(world.agent_lives() && world.handoff().record.is_some() && world.errors.len() == 1);
    let answer = world.ask_of_it("handoff_retry", &json!({"successor": "new"}));
    assert_eq!((world.step(), world.texts(&outgoing())), ("done", vec!["instruction", "exit"]), "{answer}");
}

/// Two agents in one folder would change the same files.
/// At the end of its context an agent may leave one line on what it has repaired in place of its document.
#[test]
fn a_repaired_document_that_is_worse_is_not_recorded_in_place_of_the_one_before() {
    for (faults, is_kept) in [(3, true), (1, false), (0, false)] {
        let good = FlowWorld::new().document;
        let found = Instead::Outcome(examined(&good, 1));
        let mut world = FlowWorld::new().at("examine", found).turn("rework", Turn::GoesOn).hand_off(&json!({}));
        assert_eq!((world.step(), world.texts(&outgoing()).last()), ("checking", Some(&"rework")));
        "Fixed: I removed the wrong path.\n".clone_into(&mut world.document);
        let mut world = world.at("examine", Instead::Outcome(examined("Fixed: I removed the wrong path.\n", faults)));
        world.end_turn(outgoing());
        assert_eq!((world.step(), world.document == good), ("done", is_kept), "{faults}: {:?}", world.handoff());
        let warned = world.handoff().warnings.iter().any(|warning| warning.contains("kept the one before"));
        assert_eq!(warned, is_kept, "{:?}", world.handoff().warnings);
        assert_eq!(world.handoff().record.as_ref().map(|record| record.bytes), Some(world.document.len() as u64));
    }
}

/// The turn in which a person had the document repaired did not end in time, and the person takes the document.
#[test]
fn half_of_a_repaired_document_is_not_accepted_in_place_of_the_one_before() {
    for is_over in [false, true] {
        let good = FlowWorld::new().document;
        let found = Instead::Outcome(examined(&good, 1));
        let world = FlowWorld::new().at("examine", found).turn("rework", Turn::GoesOn);
        let mut world = world.hand_off(&json!({"check": "hold"}));
        world.ask_of_it("handoff_rework", &json!({"note": "Name the branch."}));
        "# Work\n\n## Curr".clone_into(&mut world.document);
        world.wait();
        assert_eq!(world.failure(), Some(("checking", "stop_never_came")), "{:?}", world.handoff());
        if is_over {
            world.end_turn(outgoing());
        }
        let half = world.document.clone();
        let mut world = world.at("examine", Instead::Outcome(examined(&half, 3)));
        let answer = world.ask_of_it("handoff_accept", &json!({}));
        assert_eq!(answer["result"]["status"], "accepted", "{answer}");
        let wanted = if is_over { &half } else { &good };
        let record = world.handoff().record.as_ref().unwrap_or_else(|| panic!("{:?}", world.handoff()));
        assert_eq!((record.bytes, &world.document), (wanted.len() as u64, wanted), "{is_over}");
        let warned = world.handoff().warnings.iter().any(|warning| warning.contains("was still repairing"));
        assert_eq!(warned, !is_over, "{:?}", world.handoff().warnings);
    }
}

/// Its directory is gone, or its CLI is not installed: the agent was ended, and nobody could take over.
#[test]
fn an_agent_is_not_ended_for_a_successor_that_can_t_be_started() {
    let why = "/work/tree is not a directory".to_owned();
    let world = FlowWorld::new().at("hold_place", Instead::Outcome(Outcome::CannotStart { why }));
    let mut world = world.hand_off(&json!({}));
    assert_eq!(world.failure(), Some(("ending", "successor_failed")));
    assert!(world.agent(&outgoing()).state.is_live() && !world.texts(&outgoing()).contains(&"exit"));
    let error = world.handoff().error.clone().expect("an error");
    assert!(error.message.contains("/work/tree is not a directory") && error.hint.contains("--cwd"), "{error:?}");
    assert_eq!(world.ask_of_it("handoff_retry", &json!({}))["ok"], true);
    assert_eq!((world.step(), world.started.len()), ("done", 1));
}

#[test]
fn no_other_successor_starts_while_the_outgoing_process_may_run() {
    let mut world = FlowWorld::new().turn("exit", Turn::GoesOn).hand_off(&json!({}));
    world.wait();
    assert_eq!(world.failure(), Some(("ending", "did_not_exit")));
    world.change(&outgoing(), |agent| agent.state = AgentState::Lost);
    let mut world = world.at("await_death", Instead::Silence);
    world.ask_of_it("handoff_retry", &json!({"successor": "new"}));
    assert_eq!((world.step(), world.started.len()), ("ending", 0), "{:?}", world.handoff());
    world.wait();
    assert_eq!((world.failure(), world.started.len()), (Some(("ending", "did_not_exit")), 0));
}

/// A person asked for the repair, and nobody can know whether the agent was asked: a person decides.
#[test]
fn a_repair_that_may_not_have_been_asked_for_records_nothing() {
    for (word, typed) in [("delivered", 0), ("not_delivered", 1)] {
        let mut world = FlowWorld::new().hand_off(&json!({"review": true}));
        assert_eq!((world.step(), world.handoff().examined.held_since.is_some()), ("checking", true));
        // What a failed step leaves after the one repair that tasuki asks for by itself.
        let examined = &mut world.core.state.handoffs.values_mut().next().expect("a handoff").examined;
        (examined.review, examined.check, examined.reworks) = (false, DocumentCheck::Fix, 1);
        let mut world = world.at("rework", unknown());
        world.ask_of_it("handoff_rework", &json!({"note": "Name the branch."}));
        world.wait();
        assert_eq!(world.failure(), Some(("checking", "unconfirmed")), "{:?}", world.handoff());
        assert!(world.agent_lives() && world.handoff().record.is_none());
        assert_eq!(world.ask_of_it("handoff_retry", &json!({}))["error"]["code"], "in_doubt");
        world.change(&outgoing(), |agent| agent.state = AgentState::Idle);
        world.ask_of_it("handoff_retry", &json!({ "assume": word }));
        let asked = world.typed.iter().filter(|(_, text)| *text == "rework").count();
        assert_eq!((world.step(), asked), ("done", typed), "{word}: {:?}", world.handoff());
    }
}

/// An agent that is still starting for somebody else is started on, whatever becomes of the handoff.
#[test]
fn a_handoff_that_lets_a_starting_agent_go_leaves_its_start_to_who_asked_for_it() {
    let mut world = FlowWorld::new();
    let deadline = Deadline::after(&world.core.now, 3_600_000);
    world.change(&other(), |agent| {
        agent.start = Some(Start::begun(Owner::Request("c1".parse().expect("an id")), EffectKey(900), deadline));
        (agent.state, agent.primed) = (AgentState::Blocked, Primed::Never);
    });
    let mut world = world.hand_off(&json!({"successor": {"agent_id": other()}}));
    world.wait();
    assert_eq!(world.failure(), Some(("starting", "successor_failed")), "{:?}", world.handoff());
    world.ask_of_it("handoff_retry", &json!({"successor": "new"}));
    assert_eq!(world.step(), "done");
    assert!(world.agent(&other()).start.is_some(), "{:?}", world.agent(&other()));
}

/// Of an agent in a handoff the operator is only told: the handoff itself decides, and it can be retried. A second one
/// would not have the focus of the first.
#[test]
fn a_limit_that_fails_a_handoff_begins_no_second_one_that_would_leave_something_out() {
    let found = LimitFound {
        kind: LimitKind::UsageLimit,
        until_ms: None,
        said: "You've hit your limit".to_owned(),
        on_screen: false,
    };
    for (text, failure) in [("instruction", ("writing", "agent_failed")), ("priming", ("priming", "priming_failed"))] {
        let limit = Instead::Outcome(Outcome::Limit(Some(found.clone())));
        let mut world = FlowWorld::new().turn(text, Turn::Fails).at("read_limit", limit);
        world.core.state.settings.on_usage_limit = OnUsageLimit::HandOff;
        let mut world = world.hand_off(&json!({"focus": "the parser"}));
        world.wait();
        assert_eq!(
            (world.core.state.handoffs.len(), world.failure()),
            (1, Some(failure)),
            "{:?}",
            world.core.state.handoffs
        );
        assert!(world.core.state.agents.values().any(|agent| agent.limits.limited.is_some()), "it is known");
        let assumed = world.ask_of_it("handoff_retry", &json!({"assume": "not_delivered"}));
        world.wait();
        assert_eq!(world.step(), "done", "{assumed}");
    }
}

/// Whoever accepts a document has seen that text, and no other.
#[test]
fn a_text_that_took_the_accepted_ones_place_waits_for_the_person_again() {
    let mut world = FlowWorld::new().hand_off(&json!({"review": true}));
    let seen = world.document.clone();
    let sha256 = tasuki::core::text::sha256(seen.as_bytes());
    world.document = "# Work\n\nSomething else.\n".to_owned();
    let mut world = world.at("read_document", read(DocumentRead::Whole { text: seen, sha256 }));
    assert_eq!(world.ask_of_it("handoff_accept", &json!({}))["ok"], true);
    assert_eq!(
        (world.step(), world.handoff().examined.held_since.is_some()),
        ("checking", true),
        "{:?}",
        world.handoff()
    );
    assert!(world.agent_lives() && world.handoff().record.is_none());
    assert_eq!(world.ask_of_it("handoff_accept", &json!({}))["ok"], true);
    assert_eq!((world.step(), world.handoff().record.is_some()), ("done", true));
}

#[test]
fn an_agent_that_has_ended_begins_no_new_session() {
    let failed = Started::Failed { why: "no such program".to_owned() };
    let mut world = FlowWorld::new().at("start", started(failed)).hand_off(&json!({}));
    world.core.state.settings.profiles.get_mut("demo").expect("a profile").new_session = Some(NewSession::Reported);
    let answer = world.ask_of_it("handoff_retry", &json!({"successor": "same_pane"}));
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(400), &json!("same_pane_unavailable")));
}

#[test]
fn an_agent_that_ends_before_it_is_asked_for_a_document_is_not_said_to_have_written_one() {
    let mut world = FlowWorld::new().at("await_idle", Instead::Silence);
    world.change(&outgoing(), |agent| agent.state = AgentState::Busy);
    let mut world = world.hand_off(&json!({}));
    assert_eq!(world.step(), "waiting");
    world.die(outgoing());
    assert_eq!(world.failure(), Some(("waiting", "agent_ended")));
    let hint = world.handoff().error.as_ref().map(|error| error.hint.clone()).unwrap_or_default();
    assert!(hint.starts_with("Hand the agent off without its help") && !hint.contains("document"), "{hint}");
}
