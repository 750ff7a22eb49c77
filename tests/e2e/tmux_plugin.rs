//! The tmux plugin as its user has it: loaded as tpm loads it, seen and pressed at a real terminal.

use crate::support::stage::Stage;
use crate::support::terminal::Terminal;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The file that tpm finds at the top of the repository.
fn plugin() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tasuki.tmux").display().to_string()
}

fn global(stage: &Stage, option: &str) -> String {
    stage.tmux(&["show-option", "-gqv", option]).trim_end_matches('\n').to_owned()
}

/// Loads the plugin after these options were set, and names the program and the home to it.
fn load(stage: &Stage, options: &[(&str, &str)]) {
    load_without_program(stage, &[&[("@tasuki_program", env!("CARGO_BIN_EXE_tasuki"))], options].concat());
}

/// The same, for a program that the server's `PATH` finds.
fn load_without_program(stage: &Stage, options: &[(&str, &str)]) {
    let home = stage.home().display().to_string();
    for (name, value) in [("@tasuki_home", home.as_str()), ("status-interval", "1")].iter().chain(options) {
        stage.tmux(&["set-option", "-g", name, value]);
    }
    stage.tmux(&["run-shell", &plugin()]);
}

fn agents_session(stage: &Stage, agent: &str) -> String {
    stage.agent_view(agent)["tmux_session"].as_str().expect("a session").to_owned()
}

/// The last line of the terminal, in which tmux draws its status.
fn status_line(terminal: &Terminal) -> String {
    terminal.screen().lines().last().unwrap_or_default().to_owned()
}

#[test]
fn nothing_is_bound_or_changed_that_was_not_asked_for() {
    let stage = Stage::without_sidecar("");
    let keys = stage.tmux(&["list-keys"]);
    let (left, right) = (global(&stage, "status-left"), global(&stage, "status-right"));
    load(&stage, &[]);
    assert_eq!(stage.tmux(&["list-keys"]), keys);
    assert_eq!((global(&stage, "status-left"), global(&stage, "status-right")), (left, right));
    // Everything around the placeholder stays, also what tmux's command line would take for its own.
    let mine = "#[fg=red]$HOME \"a\" 'b' \\ #(echo x) %H:%M #{tasuki_status} | #{tasuki_status};";
    load(
        &stage,
        &[("status-right", &mine.replace(';', "\\;")), ("@tasuki_handoff_key", "H"), ("@tasuki_top_key", "M-t")],
    );
    let once = global(&stage, "status-right");
    let parts: Vec<&str> = mine.split("#{tasuki_status}").collect();
    assert!(once.starts_with(parts[0]) && once.contains(parts[1]) && once.ends_with(parts[2]), "{once}");
    assert!(!once.contains("#{tasuki_status}") && once.matches("@tasuki_status").count() == 4, "{once}");
    stage.tmux(&["run-shell", &plugin()]);
    assert_eq!(global(&stage, "status-right"), once, "loading it again changes nothing");
    let notes = stage.tmux(&["list-keys", "-N", "-T", "prefix"]);
    assert!(notes.contains("H ") && notes.contains("hand off the agent in this pane"), "{notes}");
    assert!(notes.contains("M-t ") && notes.contains("watch agents and handoffs"), "{notes}");
}

#[test]
fn the_segment_follows_a_handoff_and_a_dead_sidecar_says_nothing() {
    let stage = Stage::new();
    load(&stage, &[("status-right", "<#{tasuki_status} >"), ("status-right-length", "90")]);
    let agent = stage.agent("dev");
    let terminal = Terminal::attached(&stage, "user");
    let shows = |text: &str| status_line(&terminal).contains(text);
    stage.until("the agent is shown", || shows("< 1 agent >"));
    stage.faults("slow_turn=3000");
    let handoff = stage.hand_off(&agent);
    stage.until("the handoff is shown", || shows("1 handoff: writing 0:"));
    stage.faults("");
    stage.until_step(&handoff, "done");
    stage.until("its end is shown", || shows("< 1 agent >"));
    stage.end_sidecar(Signal::SIGKILL);
    stage.until("nothing is shown of a dead sidecar", || shows("< >"));
    assert_eq!(global(&stage, "@tasuki_status"), "1 agent", "though the option still says it");
    stage.start_sidecar();
    stage.until("it is shown again", || shows("< 1 agent >"));
}

/// What a person, or whoever has filled their paste buffer, may type as a reason.
const REASONS: [&str; 3] = [
    "it's \"full\"; touch pwned; $(touch pwned) `touch pwned` #(touch pwned) & touch pwned",
    "--json %% %1 %%% #{pane_id} #S ${HOME} ~ \\ \\\\ } { ' ; kill-server ;",
    "-- | touch pwned > pwned && ../../pwned 'ünï ✓' !! *",
];

#[test]
fn a_key_hands_off_the_agent_in_the_pane_whatever_the_reason_is_made_of() {
    let stage = Stage::new();
    load(&stage, &[("@tasuki_handoff_key", "H")]);
    let mut agent = stage.agent("dev");
    let session = agents_session(&stage, &agent);
    let terminal = Terminal::attached(&stage, &session);
    terminal.presses(&["C-b", "H"]);
    stage.until("it is asked for a reason", || terminal.screen().contains("leave empty to abort"));
    terminal.enter();
    stage.until("the popup is gone", || !terminal.screen().contains("leave empty to abort"));
    for reason in REASONS {
        terminal.presses(&["C-b", "H"]);
        let pane = stage.agent_view(&agent)["pane"].as_str().expect("a pane").to_owned();
        stage.until("it is asked for a reason", || terminal.screen().contains(&format!("in pane {pane}.")));
        terminal.types(reason);
        terminal.enter();
        let is_new = |view: &Value| view["reason"] == reason;
        let view = stage.wait_for(&format!("a handoff for the reason {reason}\n{}", terminal.screen()), || {
            stage.views("handoffs").into_iter().find(is_new)
        });
        assert_eq!(view["agent_id"], agent.as_str());
        stage.until("its result is shown", || terminal.screen().contains("Press Enter to close."));
        terminal.enter();
        let done = stage.until_step(view["handoff_id"].as_str().expect("an id"), "done");
        agent = done["successor_id"].as_str().expect("a successor").to_owned();
        stage.until_idle(&agent);
    }
    assert_eq!(stage.views("handoffs").len(), REASONS.len(), "an empty reason hands off nobody");
    for folder in [stage.work_dir(), stage.home(), Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()] {
        assert!(!folder.join("pwned").exists(), "{}", folder.display());
    }
    stage.check_once();
}

#[test]
fn a_key_opens_the_live_screen_in_a_popup() {
    let stage = Stage::without_sidecar("");
    let program = stage.work_dir().join("it's a tasuki");
    fs::write(&program, "#!/bin/sh\necho \"called with <$*>\"\nread -r _\n").expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
    load(
        &stage,
        &[("@tasuki_top_key", "T"), ("@tasuki_program", &program.display().to_string()), ("@tasuki_home", "~/a home")],
    );
    let terminal = Terminal::attached(&stage, "user");
    terminal.presses(&["C-b", "T"]);
    stage.until("it is there", || terminal.screen().contains("a home top>"));
    assert!(terminal.screen().contains("called with <--home /"), "{}", terminal.screen());
    terminal.enter();
    stage.until("it has gone", || !terminal.screen().contains("called with"));
}

/// Opens a popup by its key, and waits until the terminal shows that text in its frame.
fn opens(stage: &Stage, terminal: &Terminal, key: &str, text: &str) {
    terminal.presses(&["C-b", key]);
    stage.until(&format!("{text} is in a popup"), || {
        let screen = terminal.screen();
        assert!(!screen.contains("returned") && !screen.contains("recursion"), "{screen}");
        screen.contains(text) && screen.contains('┌')
    });
}

/// Presses a key that ends the popup. Until its frame has gone, it would take the next keys too.
fn closes(stage: &Stage, terminal: &Terminal, key: &str) {
    terminal.presses(&[key]);
    stage.until("the popup is gone", || !terminal.screen().contains('┌'));
}

#[test]
fn both_keys_run_the_program_that_the_path_finds() {
    let stage = Stage::new();
    let folder = Path::new(env!("CARGO_BIN_EXE_tasuki")).parent().expect("a folder").display();
    let path = format!("{folder}:{}", std::env::var("PATH").expect("a PATH"));
    stage.tmux(&["set-environment", "-g", "PATH", &path]);
    load_without_program(&stage, &[("@tasuki_handoff_key", "H"), ("@tasuki_top_key", "T")]);
    let agent = stage.agent("dev");
    let session = agents_session(&stage, &agent);
    let terminal = Terminal::attached(&stage, &session);
    opens(&stage, &terminal, "T", "1 Agents");
    closes(&stage, &terminal, "q");
    opens(&stage, &terminal, "H", "leave empty to abort");
    // A popup that is broken off is no failure: tmux would tell of it in the agent's own pane, which then takes no
    // text.
    closes(&stage, &terminal, "C-c");
    opens(&stage, &terminal, "T", "1 Agents");
    assert_eq!(
        stage.tmux(&["display-message", "-p", "-t", &session, "#{pane_in_mode}"]),
        "0\n",
        "{}",
        terminal.screen()
    );
    closes(&stage, &terminal, "C-c");
    opens(&stage, &terminal, "H", "leave empty to abort");
    terminal.types("full");
    terminal.enter();
    stage.until("its result is shown", || terminal.screen().contains("Press Enter to close."));
    let view = stage.wait_for("a handoff", || stage.views("handoffs").into_iter().next());
    stage.until_step(view["handoff_id"].as_str().expect("an id"), "done");
}
