//! A user at a real terminal on the very server: whole handoffs change nothing of what is theirs, and what they type
//! into an agent's pane is never merged with a text of ours unseen.

use crate::support::stage::Stage;
use crate::support::tally;
use crate::support::terminal::Terminal;
use crate::support::tmux::wait_until;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// All that is the user's own. The line about us is ours.
fn users_things(stage: &Stage) -> String {
    let clients = "#{?client_control_mode,,#{client_session} #{client_width}x#{client_height} #{client_flags}}";
    let windows = "#{window_id} #{window_name} #{window_active} #{window_layout} #{pane_id} #{window_flags}";
    let asked: [&[&str]; 7] = [
        &["list-clients", "-F", clients],
        &["list-windows", "-t", "user", "-F", windows],
        &["display-message", "-p", "-t", "user:", "#{session_attached} #{session_windows} #{session_alerts}"],
        &["list-buffers"],
        &["show-buffer"],
        &["show-hooks", "-g"],
        &["show-options", "-g"],
    ];
    asked
        .map(|args| stage.tmux(args))
        .join("--\n")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("@tasuki_status "))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_whole_handoff_leaves_the_users_size_focus_buffers_and_windows_alone() {
    let stage = Stage::new();
    stage.tmux(&["set-buffer", "-b", "mine", "precious", ";", "set-buffer", "top"]);
    stage.tmux(&[
        "set-option",
        "-g",
        "focus-events",
        "on",
        ";",
        "new-window",
        "-t",
        "user:",
        "-n",
        "second",
        "exec cat",
    ]);
    stage.tmux(&["split-window", "-t", "user:", "exec cat"]);
    let terminal = Terminal::attached(&stage, "user");
    let agent = stage.agent("dev");
    let before = users_things(&stage);
    let handoff = stage.hand_off(&agent);
    let view = stage.wait_for("the handoff ends", || {
        assert_eq!(users_things(&stage), before, "in {}", stage.handoff_view(&handoff)["step"]);
        let view = stage.handoff_view(&handoff);
        ["done", "failed"].contains(&view["step"].as_str().unwrap_or_default()).then_some(view)
    });
    stage.until_step(&handoff, "done");
    stage.check_done(&view);
    assert_eq!(users_things(&stage), before);
    tally::add(tally::TEXTS, 4);
    drop(terminal);
}

#[test]
fn what_a_user_types_while_we_type_is_never_merged_unseen() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let view = stage.agent_view(&agent);
    let session =
        stage.tmux(&["display-message", "-p", "-t", view["pane"].as_str().expect("a pane"), "#{session_name}"]);
    let terminal = Terminal::attached(&stage, session.trim());
    let (texts, done) = (if tally::is_long() { 60 } else { 5 }, AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round: u64 = 0;
            while !done.load(Ordering::Relaxed) {
                round += 1;
                terminal.types(["u", "user words", "zz"][(round % 3) as usize]);
                std::thread::sleep(Duration::from_millis(round * 7919 % 400));
                if round.is_multiple_of(2) {
                    terminal.enter();
                    std::thread::sleep(Duration::from_millis(round * 6007 % 900));
                }
            }
            terminal.enter();
        });
        for number in 0..texts {
            let text = format!("Text number {number} of ours, which is one line.");
            let id = stage.send(&json!({"kind": "agent_send", "agent_id": agent, "text": text}));
            let answer = stage.wait_for("an answer", || {
                let found = std::fs::read(stage.spool("results").join(format!("{id}.json"))).ok();
                found.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok())
            });
            judge(&stage, &agent, &text, &answer);
        }
        done.store(true, Ordering::Relaxed);
    });
    tally::add(tally::TEXTS, texts);
}

/// A plain "delivered" means that the prompt was ours and nothing else; a merged one says so; a refusal typed nothing.
fn judge(stage: &Stage, agent: &str, text: &str, answer: &serde_json::Value) {
    let prompts: Vec<String> = stage.prompts(agent).into_iter().filter(|prompt| prompt.contains(text)).collect();
    assert!(prompts.len() <= 1, "typed twice: {prompts:?}\n{}", stage.story());
    let (verdict, reason) = (&answer["result"]["verdict"], &answer["result"]["reason"]);
    let is_clean = |prompt: &String| prompt.starts_with("Text from the operator.") && prompt.ends_with(".)");
    match (verdict.as_str(), prompts.first()) {
        (Some("delivered"), Some(prompt)) if is_clean(prompt) => assert!(reason.is_null(), "{answer}"),
        (Some("delivered"), Some(prompt)) => assert_eq!(reason, "merged_draft", "{prompt:?}"),
        (Some("delivered"), None) => panic!("delivered, and no prompt: {answer}\n{}", stage.story()),
        (Some("unconfirmed"), _) => assert!(reason.is_string(), "{answer}"),
        (None | Some("not_delivered"), prompt) => {
            assert!(prompt.is_none() && answer["status"] != 200, "{answer}\n{}", stage.story());
        }
        (Some(other), _) => panic!("an unknown verdict {other}"),
    }
    // What has an answer leaves the composer to the user: nothing of ours is in the way of the next text.
    wait_until("the agent's pane is there", || {
        !stage.screen(stage.agent_view(agent)["pane"].as_str().unwrap_or("%0")).is_empty()
    });
}
