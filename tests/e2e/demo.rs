//! The demo agent in a real pane, left alone: what it tells by its hooks and how its screen is read.

use crate::support::demo_tmux::{AGENT, DemoTmux};
use tasuki::agents::{Profiles, read_event};
use tasuki::core::hook::{HookKind, SessionReason};
use tasuki::core::pane::{Activity, ComposerContent};

#[test]
fn a_prompt_is_reported_and_answered_in_order() {
    let demo = DemoTmux::start("");
    demo.send("Good morning.\nPlease look at the tests.");
    let events = demo.expect(&["session_start", "prompt_submit", "stop"]);
    assert_eq!(events[1]["text"], "Good morning.\nPlease look at the tests.");
    assert!(events[1]["turn_id"].is_string() && events[1]["turn_id"] == events[2]["turn_id"]);
    assert!(events.iter().all(|event| event["agent_id"] == AGENT && event["session_id"] == events[0]["session_id"]));
    assert!(events.iter().all(|event| event["persona_slug"] == "dev" && event["pane"] == "%0"));
    assert!(events[2]["last_text"].as_str().is_some_and(|text| text.contains("Good morning")));
    assert!(events[1]["ancestors"].as_array().is_some_and(|above| above.contains(&demo.pid().into())));
    assert_eq!(demo.prompts().len(), 1);
}

#[test]
fn the_sidecar_reads_what_the_agent_reports() {
    let demo = DemoTmux::start("");
    demo.send("hello");
    demo.expect(&["session_start", "prompt_submit", "stop"]);
    let profiles = Profiles::load(None).expect("built in");
    let files = demo.event_files();
    let events = files.iter().map(|path| std::fs::read(path).expect("readable"));
    let events: Vec<_> = events.map(|bytes| read_event(&bytes, &profiles).expect("an event")).collect();
    assert_eq!(events[0].kind, HookKind::SessionStart);
    assert_eq!(events[0].reason, Some(SessionReason::Process));
    assert_eq!((events[1].pane, events[1].text.as_deref()), (Some(0), Some("hello")));
    assert!(events[1].server_pid.is_some() && !events[2].paused);
}

#[test]
fn each_agent_writes_a_document_of_its_own() {
    let demo = DemoTmux::start("");
    demo.send("Please fix the login test.");
    demo.expect(&["session_start", "prompt_submit", "stop"]);
    demo.instruct();
    demo.expect(&["session_start", "prompt_submit", "stop", "prompt_submit", "stop"]);
    let document = std::fs::read_to_string(demo.document()).expect("the document");
    assert!(document.contains("fix the login test") && document.matches("\n## ").count() == 6, "{document}");
    demo.send(&format!("Please read the handoff document `{}` and go on.", demo.document().display()));
    demo.until("the third stop", || demo.kinds().iter().filter(|kind| *kind == "stop").count() == 3);
    let last = demo.events().pop().expect("events");
    assert!(last["last_text"].as_str().is_some_and(|text| text.contains("fix the login test")), "{last}");
}

#[test]
fn a_prompt_that_is_queued_bears_the_running_turns_id() {
    let demo = DemoTmux::start("slow_turn=2500");
    demo.send("the first one");
    demo.until("the turn runs", || demo.view().activity == Activity::Busy);
    demo.paste("the second one", true);
    demo.until("it is seen", || demo.view().composer == ComposerContent::Text("thesecondone".into()));
    demo.enter();
    let events = demo.expect(&["session_start", "prompt_submit", "prompt_submit", "stop", "stop"]);
    let turn = |at: usize| events[at]["turn_id"].as_str().expect("a turn id");
    assert_eq!((turn(1), turn(2)), (turn(2), turn(3)));
    assert_ne!(turn(3), turn(4));
}

#[test]
fn a_long_text_arrives_whole_and_once() {
    let demo = DemoTmux::start("");
    let text: String = (0..600).map(|n| format!("line {n} of a long text, with äöü and 漢字\n")).collect();
    demo.send(text.trim_end());
    demo.expect(&["session_start", "prompt_submit", "stop"]);
    assert_eq!(demo.prompts(), [text.trim_end()]);
}

#[test]
fn unbracketed_line_ends_do_not_submit() {
    let demo = DemoTmux::start("");
    demo.ready();
    demo.paste("a first line that is long enough\nand a second one", false);
    demo.until(
        "it is seen",
        || matches!(demo.view().composer, ComposerContent::Text(text) if text.ends_with("secondone")),
    );
    assert!(demo.prompts().is_empty());
    demo.enter();
    demo.expect(&["session_start", "prompt_submit", "stop"]);
}

#[test]
fn exit_is_reported_before_the_process_ends() {
    let demo = DemoTmux::start("");
    demo.command_line("/exit");
    let events = demo.expect(&["session_start", "session_end"]);
    assert_eq!(
        (events[1]["reason"].as_str(), events[1]["payload"]["reason"].as_str()),
        (Some("process"), Some("prompt_input_exit"))
    );
    demo.until("the process is gone", || !demo.is_alive());
}

#[test]
fn clear_changes_the_session_and_not_the_process() {
    let demo = DemoTmux::start("");
    demo.command_line("/clear");
    let events = demo.expect(&["session_start", "session_end", "session_start"]);
    assert_eq!((&events[1]["reason"], &events[2]["reason"]), (&"replaced".into(), &"replaced".into()));
    assert_ne!(events[0]["session_id"], events[2]["session_id"]);
    assert_eq!(events[0]["session_id"], events[1]["session_id"]);
    demo.ready();
}

#[test]
fn an_unknown_command_has_no_event() {
    let demo = DemoTmux::start("");
    demo.command_line("/nonsense");
    demo.until("it says so", || demo.screen().contains("Unknown command"));
    assert_eq!(demo.kinds(), ["session_start"]);
}

#[test]
fn escape_ends_the_turn_without_an_event() {
    let demo = DemoTmux::start("slow_turn=20000");
    demo.send("hello");
    demo.until("the turn runs", || demo.view().activity == Activity::Busy);
    demo.tmux(&["send-keys", "Escape"]);
    demo.ready();
    assert_eq!(demo.kinds(), ["session_start", "prompt_submit"]);
}

#[test]
fn a_closed_pane_and_a_signal_end_the_session() {
    let demo = DemoTmux::start("");
    demo.tmux(&["set-option", "-s", "exit-empty", "off"]);
    demo.ready();
    demo.tmux(&["kill-pane"]);
    demo.until("the process is gone", || !demo.is_alive());
    assert_eq!(demo.kinds(), ["session_start", "session_end"]);

    let demo = DemoTmux::start("");
    demo.ready();
    let pid = nix::unistd::Pid::from_raw(demo.pid());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("it is ours");
    let events = demo.expect(&["session_start", "session_end"]);
    assert_eq!(events[1]["payload"]["reason"], "other");
}

#[test]
fn small_panes_and_changes_of_size_do_no_harm() {
    let demo = DemoTmux::sized("slow_turn=1500", 20, 5);
    demo.send("hello");
    demo.until("the turn is seen in a small pane", || demo.view().activity == Activity::Busy);
    for (width, height) in [(5, 2), (100, 30), (12, 3), (40, 10), (1, 1), (80, 24)] {
        demo.tmux(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }
    demo.expect(&["session_start", "prompt_submit", "stop"]);
    demo.ready();
    demo.send("still there?");
    demo.expect(&["session_start", "prompt_submit", "stop", "prompt_submit", "stop"]);
}
