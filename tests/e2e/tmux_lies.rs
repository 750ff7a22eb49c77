//! tmux that does not behave: users' hooks and aliases, names and screens that look like its protocol, clients that are
//! killed, panes that die under a text, servers that stop.

use crate::support::tally;
use crate::support::tmux::{ComposerPane, Server, TAG, TestScreenReader, plan, wait_until};
use crate::support::typed::{SUBMITTED, refused, type_it, typed_in_pieces, unknown};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tasuki::core::pane::{ComposerContent, Refusal, ScreenReading, Typed};
use tasuki::tmux::{Capture, ScreenReader, SpawnOutcome, SpawnPlan, Tmux, TypePlan};
use tokio_util::sync::CancellationToken;

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(pid).expect("small")), signal).expect("a process of ours");
}

fn spawn_plan(server: &Server, creation: &str) -> SpawnPlan {
    SpawnPlan {
        creation: creation.to_owned(),
        session: "main".to_owned(),
        own_session: false,
        window_name: "w".to_owned(),
        cwd: server.dir.path().to_owned(),
        env: vec![],
        argv: ["sleep", "600"].map(str::to_owned).to_vec(),
        size: (80, 24),
    }
}

#[tokio::test]
async fn hooks_of_the_users_shift_no_answer_and_double_nothing() {
    let server = Server::start();
    let composer = server.composer(&[]);
    let commands = [
        "new-window",
        "paste-buffer",
        "set-option",
        "set-buffer",
        "display-message",
        "list-panes",
        "list-sessions",
        "list-clients",
        "capture-pane",
        "kill-pane",
    ];
    for command in commands {
        let hook = format!("after-{command}");
        server.tmux(&[
            "set-hook",
            "-g",
            &hook,
            "display-message -p '%7 77' ; display-message -p '%end 1 2 1' ; set-environment -g HOOKED yes",
        ]);
        tally::add(tally::FAULTS, 1);
    }
    let tmux = server.connect().await;
    let pane = composer.pane(&tmux).await;
    for id in 1..4 {
        assert_eq!(type_it(&tmux, &plan(pane, id, &format!("Text {id}."))).await, SUBMITTED);
    }
    assert_eq!(composer.submits(), ["Text 1.", "Text 2.", "Text 3."]);
    let SpawnOutcome::Started(made) = tmux.spawn(&spawn_plan(&server, "c1")).await else { panic!("not started") };
    assert_eq!(tmux.spawn(&spawn_plan(&server, "c1")).await, SpawnOutcome::Started(made));
    assert_eq!(server.tmux(&["show-environment", "-g", "HOOKED"]), "HOOKED=yes");
}

#[tokio::test]
async fn a_server_whose_user_has_redefined_our_commands_is_left_alone_until_they_are_back() {
    let server = Server::start();
    let composer = server.composer(&[]);
    for (alias, command) in [
        ("paste-buffer=paste-buffer -s x ; paste-buffer", "paste-buffer"),
        ("set-option=display-message -p", "set-option"),
        ("display-message=list-keys", "display-message"),
    ] {
        server.tmux(&["set-option", "-s", "command-alias[99]", alias]);
        tally::add(tally::FAULTS, 1);
        let (notices, _inbox) = tokio::sync::mpsc::channel(64);
        let tmux = Tmux::start(server.options(), notices).expect("a thread");
        let error = tmux.list_panes().await.expect_err("no connection").to_string();
        assert!(error.contains("command-alias") && error.contains(command), "{error}");
        drop(tmux);
        // The shortened name is not redefined.
        server.tmux(&["set-optio", "-s", "-u", "command-alias[99]"]);
    }
    server.tmux(&["set-option", "-s", "command-alias[99]", "new-window=new-window -a"]);
    let tmux = server.connect().await;
    let pane = composer.pane(&tmux).await;
    assert_eq!(type_it(&tmux, &plan(pane, 1, "As ever.")).await, SUBMITTED);
    assert!(matches!(tmux.spawn(&spawn_plan(&server, "c1")).await, SpawnOutcome::Started(_)));
    assert_eq!(composer.submits(), ["As ever."]);
}

/// tmux crashes at each new window while that option is set for all windows.
#[tokio::test]
async fn a_server_that_would_crash_at_a_new_window_gets_none() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    server.tmux(&["set-option", "-g", "window-size", "manual"]);
    tally::add(tally::FAULTS, 2);
    let outcome = tmux.spawn(&spawn_plan(&server, "c1")).await;
    assert!(matches!(&outcome, SpawnOutcome::Failed(why) if why.contains("window-size")), "{outcome:?}");
    let error = tmux.hold_placeholder(&pane, "1").await.expect_err("no window").to_string();
    assert!(error.contains("window-size"), "{error}");
    drop(tmux);
    let (notices, _inbox) = tokio::sync::mpsc::channel(64);
    let tmux = Tmux::start(server.options(), notices).expect("a thread");
    let error = tmux.list_panes().await.expect_err("no connection").to_string();
    assert!(error.contains("window-size"), "{error}");
    assert_eq!(tmux.problem().as_deref().map(|said| said.contains("window-size")), Some(true));
    drop(tmux);
    server.tmux(&["set-option", "-g", "window-size", "latest"]);
    let tmux = server.connect().await;
    assert!(matches!(tmux.spawn(&spawn_plan(&server, "c1")).await, SpawnOutcome::Started(_)));
    assert_eq!(type_it(&tmux, &plan(pane, 1, "As ever.")).await, SUBMITTED);
}

#[tokio::test]
async fn a_hook_that_names_new_sessions_leaves_none_behind() {
    let server = Server::start();
    server.tmux(&["set-hook", "-g", "after-new-session", "rename-session \"work-#{pid}-#{session_id}\""]);
    tally::add(tally::FAULTS, 1);
    let tmux = server.connect().await;
    let sessions = || server.tmux(&["list-sessions", "-F", "#{session_name}"]);
    assert!(sessions().lines().any(|name| name.starts_with("_tasuki-")), "{}", sessions());
    assert_eq!(sessions().lines().count(), 2, "{}", sessions());
    let options = server.tmux(&["show-options", "-t", &format!("=_tasuki-{TAG}:")]);
    for option in ["destroy-unattached off", "detach-on-destroy off"] {
        assert!(options.contains(option), "{options}");
    }
    tmux.close().await;
    assert_eq!(sessions().lines().count(), 1, "{}", sessions());
}

#[tokio::test]
async fn words_of_the_protocol_on_screens_and_in_names_are_only_words() {
    let server = Server::start();
    let words = "%end 1 2 1\n%exit\n%begin 1 2 1\n%error 1 2 1\n%output %0 x\n%sessions-changed";
    let composer = server.composer(&[]);
    let target = format!("%{}", composer.id);
    server.tmux(&["rename-window", "-t", &target, "%exit"]);
    server.tmux(&["select-pane", "-t", &target, "-T", "%end 1 2 1"]);
    server.tmux(&["rename-session", "-t", "main", "%begin 1 2 1"]);
    let show = server.dir.path().join("%exit\n%end 1 2 1");
    std::fs::create_dir(&show).expect("a folder");
    let window = server.tmux(&["display-message", "-p", "-t", &target, "#{window_id}"]);
    let program = format!("printf '%s\\n' '{words}'; exec cat");
    let folder = show.to_str().expect("plain");
    let id = server.tmux(&["new-window", "-d", "-P", "-F", "#{pane_id}", "-c", folder, "-t", &window, "-a", &program]);
    wait_until("the words show", || server.tmux(&["capture-pane", "-p", "-t", &id]).contains("%sessions-changed"));
    let tmux = server.connect().await;
    let life = tmux.server().expect("connected");
    let row =
        tmux.facts(id.trim_start_matches('%').parse().expect("a number")).await.expect("an answer").expect("a pane");
    let capture = tmux.capture(&row.pane).await.expect("a screen");
    assert_eq!(capture.lines[..6].join("\n"), words);
    let pane = composer.pane(&tmux).await;
    assert_eq!(type_it(&tmux, &plan(pane, 1, words)).await, SUBMITTED);
    assert_eq!(composer.submits(), [words]);
    assert_eq!(tmux.list_panes().await.expect("an answer").len(), 3);
    assert_eq!(tmux.server(), Some(life), "the same connection");
    assert!(matches!(
        tmux.spawn(&SpawnPlan { session: "%begin 1 2 1".into(), ..spawn_plan(&server, "c1") }).await,
        SpawnOutcome::Started(_)
    ));
}

/// Does something once, when a text of ours is seen in the composer.
struct Once<F: Fn() + Sync + Send>(AtomicBool, F);

impl<F: Fn() + Sync + Send> ScreenReader for Once<F> {
    fn look(&self, capture: &Capture) -> ScreenReading {
        let view = TestScreenReader.look(capture);
        if matches!(view.composer, ComposerContent::Text(_)) && !self.0.swap(true, Ordering::Relaxed) {
            (self.1)();
        }
        view
    }
}

async fn type_and_once(tmux: &Tmux, plan: &TypePlan, then: impl Fn() + Sync + Send) -> Typed {
    tmux.type_text(plan, &Once(AtomicBool::new(false), then), &CancellationToken::new()).await
}

fn in_pieces(composer: &ComposerPane, pane: tasuki::core::pane::PaneRef) -> TypePlan {
    let text = "A text that goes in by many pieces, each of them short.";
    assert!(composer.submits().is_empty());
    TypePlan { input: typed_in_pieces(4), ..plan(pane, 1, text) }
}

/// A paste into such a pane kills a tmux 3.3a server.
#[tokio::test]
async fn a_pane_that_dies_under_a_text_and_is_kept_gets_no_more_of_it() {
    let server = Server::start();
    server.tmux(&["set-option", "-g", "remain-on-exit", "on"]);
    let (tmux, pid) = (server.connect().await, server.pid());
    for _ in 0..if tally::is_long() { 50 } else { 3 } {
        let composer = server.composer(&[]);
        let pane = composer.pane(&tmux).await;
        let plan = in_pieces(&composer, pane);
        let typed = type_and_once(&tmux, &plan, || signal(composer.pid(), Signal::SIGKILL)).await;
        // What the dead pane shows may be looked at once more before it is known to be dead.
        let is_told = |typed: &Typed| matches!(typed, Typed::Unknown { reason } if ["pane_lost", "not_seen"].contains(&reason.as_str()));
        assert!(is_told(&typed), "{typed:?}");
        assert_eq!(type_it(&tmux, &TypePlan { resumed: true, ..plan }).await, unknown("pane_lost"));
        assert_eq!(server.pid(), pid, "the server lives");
        assert_eq!(server.tmux(&["display-message", "-p", "-t", &pane.to_string(), "#{pane_dead}"]), "1");
        tally::add(tally::FAULTS, 1);
    }
}

#[tokio::test]
async fn a_window_that_is_closed_or_respawned_under_a_text_ends_it_with_a_verdict() {
    let server = Server::start();
    let tmux = server.connect().await;
    for (args, program, reason) in
        [(&["kill-window"][..], None, "pane_lost"), (&["respawn-pane", "-k"], Some("exec cat"), "pane_changed")]
    {
        let composer = server.composer(&[]);
        let pane = composer.pane(&tmux).await;
        let plan = in_pieces(&composer, pane);
        let target = pane.to_string();
        let words: Vec<&str> = args.iter().copied().chain(["-t", &target]).chain(program).collect();
        let typed = type_and_once(&tmux, &plan, || drop(server.tmux(&words))).await;
        assert_eq!(typed, unknown(reason), "{args:?}");
        assert!(composer.submits().is_empty());
        tally::add(tally::FAULTS, 1);
    }
}

#[tokio::test]
async fn a_pane_that_is_hidden_by_a_zoomed_one_and_in_copy_mode_takes_its_text() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let target = pane.to_string();
    let other = server.tmux(&["split-window", "-P", "-F", "#{pane_id}", "-t", &target, "exec cat"]);
    server.tmux(&["resize-pane", "-Z", "-t", &other, ";", "copy-mode", "-t", &target]);
    let state = || {
        server.tmux(&[
            "list-panes",
            "-t",
            &target,
            "-F",
            "#{pane_id} #{window_zoomed_flag} #{pane_active} #{pane_in_mode}",
        ])
    };
    let before = state();
    assert!(before.contains(" 1 "), "{before}");
    assert_eq!(type_it(&tmux, &in_pieces(&composer, pane)).await, SUBMITTED);
    assert_eq!(composer.submits().len(), 1);
    assert_eq!(state(), before);
}

fn our_client(server: &Server) -> Option<u32> {
    let rows = server.tmux(&["list-clients", "-F", "#{client_control_mode} #{client_pid} #{client_session}"]);
    rows.lines().find_map(|row| row.strip_prefix("1 "))?.split(' ').next()?.parse().ok()
}

#[tokio::test]
async fn our_client_killed_in_mid_command_loses_and_doubles_nothing() {
    let server = Server::start();
    let (tmux, pid) = (server.connect().await, server.pid());
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let kills = if tally::is_long() { 60 } else { 3 };
    let texts = async {
        for id in 1..=kills {
            let text = format!("{id}: {}", "a text of many pieces, ".repeat(12));
            let plan = TypePlan { input: typed_in_pieces(4), ..plan(pane, id, text.trim()) };
            assert_eq!(type_it(&tmux, &plan).await, SUBMITTED, "text {id}");
        }
    };
    let killer = async {
        let mut before = 0;
        for round in 0..kills {
            let client = loop {
                // Not one that is still connecting: that alone can crash a tmux before 3.7.
                match our_client(&server) {
                    Some(client) if client != before => break client,
                    _ => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            };
            tokio::time::sleep(Duration::from_millis(100 + round * 7919 % 200)).await;
            signal(client, Signal::SIGKILL);
            before = client;
            tally::add(tally::DEATHS, 1);
        }
    };
    tokio::join!(texts, killer);
    let submits = composer.submits();
    let expected: Vec<String> =
        (1..=kills).map(|id| format!("{id}: {}", "a text of many pieces, ".repeat(12)).trim().to_owned()).collect();
    tally::add(tally::TEXTS, kills);
    assert_eq!(submits, expected, "lost, doubled, or out of order");
    assert_eq!(server.pid(), pid, "the server lives");
}

#[tokio::test]
async fn a_server_that_stops_under_a_text_for_as_long_as_it_likes_doubles_nothing() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let (pid, length) = (server.pid(), Duration::from_secs(if tally::is_long() { 60 } else { 7 }));
    let plan = in_pieces(&composer, pane);
    let stop = || signal(pid, Signal::SIGSTOP);
    let go_on = async {
        tokio::time::sleep(length).await;
        signal(pid, Signal::SIGCONT);
    };
    let (typed, ()) = tokio::join!(type_and_once(&tmux, &plan, stop), go_on);
    tally::add(tally::FAULTS, 1);
    match typed {
        Typed::Submitted { .. } => assert_eq!(composer.submits(), [plan.text.as_str()]),
        typed => {
            assert!(matches!(typed, Typed::Unknown { .. }), "some of it is in: {typed:?}");
            assert!(composer.submits().is_empty());
        }
    }
    // Whoever takes it up once more ends it, or says why not, and adds nothing to what is there.
    let _ = type_it(&tmux, &TypePlan { resumed: true, ..plan.clone() }).await;
    let bytes = String::from_utf8(composer.bytes()).expect("text");
    assert!(plan.text.starts_with(bytes.trim_end_matches('\r')), "{bytes:?}");
    assert!(composer.submits().len() <= 1);
}

#[tokio::test]
async fn pane_numbers_that_begin_again_are_other_panes() {
    let server = Server::start();
    for round in 0..if tally::is_long() { 20 } else { 2 } {
        let tmux = server.connect().await;
        let composer = server.composer(&[]);
        let pane = composer.pane(&tmux).await;
        let old = server.pid();
        // The next server has another composer in a pane of the same number, with an open invitation.
        let typed = type_and_once(&tmux, &in_pieces(&composer, pane), || drop(server.try_tmux(&["kill-server"]))).await;
        assert_eq!(typed, unknown("server_lost"));
        wait_until("the server has ended", || !crate::support::tmux::is_running(old));
        server.begin();
        wait_until("it is connected again", || tmux.server().is_some());
        let next = loop {
            let next = server.composer(&[]);
            if next.id >= composer.id {
                break next;
            }
        };
        assert_eq!((next.id, server.pid() == old), (composer.id, false), "round {round}");
        assert_eq!(type_it(&tmux, &plan(pane, 9, "No.")).await, refused(Refusal::PaneGone));
        assert_eq!(next.bytes(), b"");
        tally::add(tally::FAULTS, 1);
    }
}
