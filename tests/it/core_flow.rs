//! Whole handoffs, decided without a machine: each step's good end and its failures, and what a retry repeats.

use crate::support::flow_world::{FlowWorld, Instead, Turn, other, outgoing};
use serde_json::{Value, json};
use tasuki::core::effect::{Composed, DocumentRead, Outcome, Readiness, Started};
use tasuki::core::pane::{Refusal, Typed};

fn steps(world: &FlowWorld) -> Vec<&'static str> {
    world.handoff().steps.iter().map(|span| span.step.as_str()).collect()
}

fn refused(reason: Refusal) -> Instead {
    Instead::Outcome(Outcome::Typed(Typed::Refused { reason }))
}

fn unknown() -> Instead {
    Instead::Outcome(Outcome::Typed(Typed::Unknown { reason: "not_seen".to_owned() }))
}

fn read(document: DocumentRead) -> Instead {
    Instead::Outcome(Outcome::Document(document))
}

fn started(started: Started) -> Instead {
    Instead::Outcome(Outcome::Started(started))
}

fn seen(readiness: Readiness) -> Instead {
    Instead::Outcome(Outcome::Readiness(readiness))
}

#[test]
fn all_goes_well() {
    let world = FlowWorld::new().hand_off(&json!({}));
    assert_eq!(world.step(), "done", "{:?}", world.handoff());
    let passed = [
        "waiting",
        "instructing",
        "writing",
        "checking",
        "recording",
        "ending",
        "starting",
        "priming",
        "briefing",
        "reading",
        "done",
    ];
    assert_eq!(steps(&world), passed);
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
            new().at("read_document", read(DocumentRead::Missing)),
            ("writing", "document_missing"),
            FROM_EXIT,
        ),
        (
            "nothing in it",
            new().at("read_document", read(DocumentRead::Empty)),
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
        ("no skill", new().at("read_persona", no_skill()), ("priming", "priming_failed"), Retry::NeedsWord),
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
    let steps: Vec<&str> = world.state.handoffs.values().map(|handoff| handoff.step.as_str()).collect();
    assert!(steps.contains(&"done") && steps.contains(&"cancelled"), "{steps:?}");
}
