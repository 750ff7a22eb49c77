//! Each fault of the demo agent, once, in a real pane: a fault that does not happen would make other tests pass by
//! themselves.

use crate::support::demo_tmux::DemoTmux;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use tasuki::agents::{Profiles, read_event};
use tasuki::core::pane::{Activity, ComposerContent};

const DELIVERED: &str = "Your skill follows.\n# Be brief\n(tasuki delivery 5f2a9c81d0e3.)";

fn modified(path: &Path) -> SystemTime {
    fs::symlink_metadata(path).and_then(|meta| meta.modified()).expect("the file's time")
}

/// The document's text, once the handoff's turn has stopped.
fn written_by(faults: &str) -> (DemoTmux, Option<Vec<u8>>) {
    let demo = DemoTmux::start(faults);
    demo.instruct();
    demo.expect(&["session_start", "prompt_submit", "stop"]);
    let bytes = fs::read(demo.document()).ok();
    (demo, bytes)
}

#[test]
fn swallow_enter() {
    let demo = DemoTmux::start("swallow_enter=1");
    demo.send("hello");
    demo.enter();
    demo.expect(&["session_start", "prompt_submit", "stop"]);
    assert_eq!(demo.prompts(), ["hello"]);
}

#[test]
fn swallow_enter_leaves_the_text_where_it_is() {
    let demo = DemoTmux::start("swallow_enter=1000");
    demo.send("hello");
    demo.enter();
    demo.paste("!", false);
    demo.until("the text is still there", || demo.view().composer == ComposerContent::Text("hello!".into()));
    assert!(demo.prompts().is_empty());
}

#[test]
fn start_slow_loses_what_is_typed_before() {
    let demo = DemoTmux::start("start_slow=1500");
    demo.until("it is starting", || demo.screen().contains("Starting"));
    assert_eq!(demo.view().activity, Activity::Unknown);
    demo.paste("too early", true);
    demo.ready();
    assert!(demo.prompts().is_empty());
}

#[test]
fn slow_paste() {
    let demo = DemoTmux::start("slow_paste=1500");
    demo.ready();
    let began = Instant::now();
    demo.paste("hello", true);
    demo.until("the text is there", || demo.view().composer == ComposerContent::Text("hello".into()));
    assert!(began.elapsed() >= Duration::from_millis(1500), "it came at once");
}

#[test]
fn lazy_start() {
    let demo = DemoTmux::start("lazy_start");
    demo.ready();
    assert!(demo.kinds().is_empty());
    demo.send("hello");
    demo.expect(&["session_start", "prompt_submit", "stop"]);
}

#[test]
fn dialog() {
    let demo = DemoTmux::start("dialog");
    demo.until("it is blocked", || demo.view().activity == Activity::Blocked);
    assert_eq!(demo.view().composer, ComposerContent::Unreadable);
    demo.paste("text that a dialog swallows", true);
    assert_eq!(demo.kinds(), ["session_start", "blocked"]);
    demo.enter();
    demo.ready();
    assert!(demo.logged("dialog_answered"));
}

#[test]
fn dialog_on_write() {
    let demo = DemoTmux::start("dialog_on_write");
    demo.instruct();
    demo.until("it is blocked", || demo.view().activity == Activity::Blocked);
    let events = demo.expect(&["session_start", "prompt_submit", "blocked"]);
    assert!(events[2]["message"].as_str().is_some_and(|text| text.contains("Permission")));
    assert!(!demo.document().exists());
    demo.enter();
    demo.expect(&["session_start", "prompt_submit", "blocked", "stop"]);
    assert!(demo.document().exists());
}

#[test]
fn draft() {
    let demo = DemoTmux::start("draft=half typed");
    demo.until("the draft is seen", || demo.view().composer == ComposerContent::Text("halftyped".into()));
    assert_eq!(demo.view().activity, Activity::Ready);
}

#[test]
fn stop_before_writing_and_write_late() {
    for faults in ["stop_before_writing", "write_late=400"] {
        let (demo, _) = written_by(faults);
        demo.until("the document comes", || {
            fs::read_to_string(demo.document()).is_ok_and(|text| text.contains("Next steps"))
        });
        assert!(modified(&demo.document()) > modified(&demo.event_files()[2]), "{faults}");
    }
}

#[test]
fn write_half() {
    let (demo, bytes) = written_by("write_half");
    assert!(bytes.is_some_and(|bytes| !bytes.is_empty()), "half of it is there at the stop");
    demo.until("the rest comes", || fs::read_to_string(demo.document()).is_ok_and(|text| text.contains("Next steps")));
    assert!(modified(&demo.document()) > modified(&demo.event_files()[2]));
}

#[test]
fn documents_that_are_none() {
    for (faults, expected) in [
        ("write_empty", Some(&b""[..])),
        ("write_space", Some(b" \n\t\n")),
        ("write_binary", Some(b"\xff\xfe\x00\x01")),
        ("write_never", None),
        ("write_dir", None),
    ] {
        let (demo, bytes) = written_by(faults);
        assert_eq!(bytes.as_deref(), expected, "{faults}");
        assert_eq!(demo.document().is_dir(), faults == "write_dir");
    }
    let (demo, bytes) = written_by("write_link");
    assert!(demo.document().is_symlink() && bytes.is_some());
}

#[test]
fn never_stops() {
    let demo = DemoTmux::start("never_stops");
    demo.instruct();
    demo.until("the document is there", || demo.screen().contains("I have written"));
    assert_eq!(demo.view().activity, Activity::Busy);
    assert_eq!(demo.kinds(), ["session_start", "prompt_submit"]);
    demo.command_line("/exit");
    demo.expect(&["session_start", "prompt_submit", "session_end"]);
}

#[test]
fn fail_turn() {
    let demo = DemoTmux::start("fail_turn");
    demo.instruct();
    let events = demo.expect(&["session_start", "prompt_submit", "stop_failure"]);
    assert_eq!(events[2]["message"], "API error: 529 overloaded");
    assert!(!demo.document().exists());
}

#[test]
fn fail_priming_fails_only_what_tasuki_typed() {
    let demo = DemoTmux::start("fail_priming");
    demo.send(DELIVERED);
    demo.expect(&["session_start", "prompt_submit", "stop_failure"]);
    demo.send("hello");
    demo.expect(&["session_start", "prompt_submit", "stop_failure", "prompt_submit", "stop"]);
}

#[test]
fn ignore_exit() {
    let demo = DemoTmux::start("ignore_exit");
    demo.command_line("/exit");
    demo.until("it says goodbye", || demo.screen().contains("Goodbye"));
    demo.ready();
    assert!(demo.is_alive());
    assert_eq!(demo.kinds(), ["session_start"]);
}

#[test]
fn in_shell() {
    let demo = DemoTmux::start("in_shell");
    demo.ready();
    let pane_pid = demo.tmux(&["display-message", "-p", "#{pane_pid}"]);
    demo.send("hello");
    demo.expect(&["session_start", "prompt_submit", "stop"]);
    demo.command_line("/exit");
    demo.until("the shell is in front", || {
        demo.tmux(&["display-message", "-p", "#{pane_current_command}"]).trim() == "sh"
    });
    assert_eq!(demo.tmux(&["display-message", "-p", "#{pane_pid}"]), pane_pid, "the pane is the shell's");
}

#[test]
fn a_prompt_can_arrive_with_more_or_with_less_than_was_typed() {
    for (faults, told) in [("merge=and also", "and also hello there"), ("cut", " there")] {
        let demo = DemoTmux::start(faults);
        demo.send("hello there");
        let events = demo.expect(&["session_start", "prompt_submit", "stop"]);
        assert_eq!(events[1]["payload"]["prompt"], told, "{}", events[1]);
        assert_eq!(demo.prompts(), ["hello there"]);
    }
}

#[test]
fn linger() {
    let demo = DemoTmux::start("linger=3000");
    demo.command_line("/exit");
    demo.expect(&["session_start", "session_end"]);
    assert!(demo.is_alive());
    demo.until("it ends after all", || !demo.is_alive());
}

#[test]
fn die_at_each_step() {
    for (step, kinds) in [
        ("prompt", &["session_start"][..]),
        ("turn", &["session_start", "prompt_submit"]),
        ("write", &["session_start", "prompt_submit"]),
        ("stop", &["session_start", "prompt_submit"]),
        ("stopped", &["session_start", "prompt_submit", "stop"]),
    ] {
        let demo = DemoTmux::start(&format!("die_at={step}"));
        demo.instruct();
        demo.until("it is dead", || !demo.is_alive());
        assert_eq!(demo.kinds(), kinds, "{step}");
        assert_eq!(demo.prompts().len(), 1);
        let text = fs::read_to_string(demo.document()).unwrap_or_default();
        assert_eq!(!text.is_empty(), ["write", "stop", "stopped"].contains(&step), "{step}");
        assert_eq!(text.contains("Next steps"), step.starts_with("stop"));
    }
}

#[test]
fn die_at_start_and_exit() {
    let demo = DemoTmux::start("die_at=start");
    demo.until("the server has nothing to serve", || demo.tmux(&["list-sessions"]).is_empty());
    assert!(demo.kinds().is_empty() && demo.log().is_empty());
    let demo = DemoTmux::start("die_at=exit");
    demo.command_line("/exit");
    demo.until("it is dead", || !demo.is_alive());
    assert_eq!(demo.kinds(), ["session_start"]);
}

#[test]
fn collapse() {
    let demo = DemoTmux::start("collapse");
    demo.ready();
    demo.paste("1\n2\n3\n4\n5", true);
    demo.until("it is collapsed", || demo.view().composer == ComposerContent::Collapsed { size: Some(5) });
    demo.enter();
    let events = demo.expect(&["session_start", "prompt_submit", "stop"]);
    assert_eq!(events[1]["text"], "1\n2\n3\n4\n5");
}

#[test]
fn wrap() {
    let demo = DemoTmux::start("wrap");
    demo.send(DELIVERED);
    let events = demo.expect(&["session_start", "prompt_submit", "stop"]);
    assert!(events[1]["text"].as_str().is_some_and(|text| text.starts_with("<pasted_content")));
    let profiles = Profiles::load(None).expect("built in");
    let event = read_event(&fs::read(&demo.event_files()[1]).expect("readable"), &profiles).expect("an event");
    assert_eq!(event.text.as_deref(), Some(DELIVERED));
}

#[test]
fn queue() {
    let demo = DemoTmux::start("queue");
    demo.instruct();
    let events = demo.expect(&["session_start", "prompt_submit", "prompt_submit", "stop", "stop"]);
    assert!(events[2]["text"].as_str().is_some_and(|text| text.contains("handoff document")));
    assert_eq!(events[2]["turn_id"], events[3]["turn_id"]);
    assert_ne!(events[2]["turn_id"], events[4]["turn_id"]);
    assert!(demo.document().exists());
}

#[test]
fn nested() {
    let demo = DemoTmux::start("nested");
    demo.send("hello");
    let events = demo.expect(&[
        "session_start",
        "prompt_submit",
        "session_start",
        "prompt_submit",
        "stop",
        "session_end",
        "stop",
    ]);
    assert!(events.iter().all(|event| event["agent_id"] == events[0]["agent_id"]));
    assert_ne!(events[4]["session_id"], events[6]["session_id"]);
    assert_eq!(events[1]["session_id"], events[6]["session_id"]);
}

#[test]
fn stop_twice() {
    let demo = DemoTmux::start("stop_twice");
    demo.send("hello");
    let events = demo.expect(&["session_start", "prompt_submit", "stop", "stop"]);
    assert_eq!(events[2]["turn_id"], events[3]["turn_id"]);
}

#[test]
fn end_by_clear() {
    let demo = DemoTmux::start("end_by_clear");
    demo.instruct();
    let events = demo.expect(&["session_start", "prompt_submit", "session_end", "session_start", "stop"]);
    assert_eq!(events[2]["reason"], "replaced");
    assert_ne!(events[1]["session_id"], events[4]["session_id"]);
    assert!(demo.document().exists());
}

#[test]
fn interrupt() {
    let demo = DemoTmux::start("interrupt");
    demo.instruct();
    demo.until("it says so", || demo.screen().contains("Interrupted"));
    demo.ready();
    assert_eq!(demo.kinds(), ["session_start", "prompt_submit"]);
    assert!(!demo.document().exists());
}

#[test]
fn hooks_off() {
    let demo = DemoTmux::start("hooks_off");
    demo.instruct();
    demo.until("the document is there", || demo.screen().contains("I have written"));
    demo.command_line("/exit");
    demo.until("it ends", || !demo.is_alive());
    assert!(demo.kinds().is_empty());
}

#[test]
fn slow_hooks_come_after_the_turn_has_moved_on() {
    let demo = DemoTmux::start("slow_hooks=1500");
    demo.instruct();
    demo.until("all came", || demo.kinds().len() == 3);
    assert!(modified(&demo.document()) < modified(&demo.event_files()[1]), "the receipt came after the document");
    demo.command_line("/exit");
    demo.until("the end came", || demo.kinds().last().is_some_and(|kind| kind == "session_end"));
}

#[test]
fn no_bracket() {
    let demo = DemoTmux::start("no_bracket");
    demo.send("a first line that is long enough\nand a second one");
    let events = demo.expect(&["session_start", "prompt_submit", "stop"]);
    assert_eq!(events[1]["text"], "a first line that is long enough\nand a second one");
}

#[test]
fn ghost() {
    let demo = DemoTmux::start("ghost");
    demo.ready();
    assert!(demo.screen().contains("\u{1b}[7mA"), "the first letter stands under a reversed cursor");
}

#[test]
fn background() {
    let (faults, kinds) = ("background", ["session_start", "prompt_submit", "stop", "stop"]);
    let demo = DemoTmux::start(faults);
    demo.instruct();
    let events = demo.expect(&kinds);
    assert_eq!((events[2]["paused"].as_bool(), events[3]["paused"].as_bool()), (Some(true), None));
    let files = demo.event_files();
    assert!(modified(&files[2]) < modified(&demo.document()) && modified(&demo.document()) < modified(&files[3]));
}

#[test]
fn faults_change_between_steps_by_a_file() {
    let demo = DemoTmux::start("");
    demo.send("hello");
    demo.expect(&["session_start", "prompt_submit", "stop"]);
    fs::write(demo.faults_file(), "slow_turn=200\ndev: fail_turn\nother: die_at=turn\n").expect("written");
    demo.send("again");
    demo.expect(&["session_start", "prompt_submit", "stop", "prompt_submit", "stop_failure"]);
    fs::write(demo.faults_file(), "slow_turn=200\n").expect("written");
    demo.send("once more");
    demo.until("it works again", || demo.kinds().last().is_some_and(|kind| kind == "stop") && demo.kinds().len() == 7);
}
