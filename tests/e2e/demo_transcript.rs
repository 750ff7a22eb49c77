//! The demo agent's transcript in a real pane: where its hooks say it is, what stands in it, and how it lags.

use crate::support::demo_tmux::DemoTmux;
use serde_json::Value;
use std::path::Path;
use tasuki::agents::{Profiles, Transcript, transcript};

fn path(event: &Value) -> &Path {
    Path::new(event["transcript_path"].as_str().expect("the event names the transcript"))
}

fn read(event: &Value) -> Transcript {
    let profiles = Profiles::load(None).expect("built in");
    transcript::read(profiles.get("demo").expect("demo"), path(event)).expect("it can be read")
}

#[test]
fn a_reply_of_several_blocks_is_whole_only_in_the_transcript() {
    for fault in ["", "split_blocks"] {
        let demo = DemoTmux::start(fault);
        demo.send("Please fix the login test.");
        demo.expect(&["session_start", "prompt_submit", "stop"]);
        demo.send("Answer with a handoff document of six sections.");
        let events = demo.expect(&["session_start", "prompt_submit", "stop", "prompt_submit", "stop"]);
        let found = read(&events[4]);
        let reply = found.last_reply().expect("a reply");
        assert_eq!(reply.matches("## ").count(), 6, "{reply}");
        let last = events[4]["last_text"].as_str().expect("the last block");
        assert!(reply.ends_with(last) && last.matches("## ").count() == 2, "{last}");
        assert_eq!(found.messages, 4);
        assert!(found.context.is_some_and(|gauge| gauge.used > 1_000 && gauge.window == Some(100_000)));
    }
}

#[test]
fn a_lagging_transcript_has_the_answer_after_the_stop() {
    let demo = DemoTmux::start("transcript_lag=700");
    demo.send("Answer with a handoff document.");
    let events = demo.expect(&["session_start", "prompt_submit", "stop"]);
    assert!(!path(&events[2]).exists() || read(&events[2]).last_reply().is_none());
    demo.until("the answer is there", || path(&events[2]).exists() && read(&events[2]).last_reply().is_some());
}

#[test]
fn a_transcript_can_be_missing_and_an_answer_empty() {
    let demo = DemoTmux::start("no_transcript");
    demo.send("hello");
    let events = demo.expect(&["session_start", "prompt_submit", "stop"]);
    assert!(!path(&events[2]).exists());
    let demo = DemoTmux::start("empty_answer");
    demo.send("Answer with a handoff document.");
    let events = demo.expect(&["session_start", "prompt_submit", "stop"]);
    assert_eq!(events[2]["last_text"].as_str().unwrap_or_default(), "");
    assert_eq!((read(&events[2]).last_reply(), read(&events[2]).messages), (None, 2));
}

#[test]
fn a_new_session_has_a_transcript_of_its_own() {
    let demo = DemoTmux::start("");
    demo.send("hello");
    demo.expect(&["session_start", "prompt_submit", "stop"]);
    demo.command_line("/clear");
    let events = demo.expect(&["session_start", "prompt_submit", "stop", "session_end", "session_start"]);
    assert_ne!(path(&events[4]), path(&events[0]));
    assert!(events[3]["session_id"] == events[0]["session_id"] && events[4]["session_id"] != events[0]["session_id"]);
}

#[test]
fn a_lazy_clear_tells_nothing_until_the_next_prompt() {
    let demo = DemoTmux::start("lazy_clear");
    demo.send("hello");
    demo.expect(&["session_start", "prompt_submit", "stop"]);
    demo.command_line("/clear");
    demo.until("it says so", || demo.screen().contains("(a new session)"));
    assert_eq!(demo.kinds().len(), 3);
    demo.send("<handoff-context>\nRead `/x.md`.\n</handoff-context>\nGo on.");
    let events = demo.expect(&["session_start", "prompt_submit", "stop", "session_start", "prompt_submit", "stop"]);
    assert!(events[3]["reason"] == "replaced" && events[3]["session_id"] != events[0]["session_id"]);
    assert_eq!(read(&events[5]).said.len(), 2);
}
