//! The connection: that it harms nobody, disturbs nobody, and comes back.

use crate::support::connection::{connected, control_clients, disconnected, expect};
use crate::support::stage::Stage;
use crate::support::tally;
use crate::support::tmux::{Server, TAG, TestScreenReader, is_running, plan, wait_until};
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::Pid;
use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tasuki::core::pane::{Activity, Refusal, Typed};
use tasuki::tmux::{Error, Ready, ReadyPlan, SocketOptions, Tmux, TmuxNotice, TypePlan};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn panes_are_listed_with_their_facts_and_without_our_own() {
    let server = Server::start();
    let odd = server.dir.path().join("a dir\nwith %9 1 #[x] line");
    std::fs::create_dir(&odd).expect("a folder");
    server.tmux(&["new-window", "-d", "-t", "main:", "-c", odd.to_str().expect("plain"), "exec cat"]);
    let tmux = server.connect().await;
    let rows = tmux.list_panes().await.expect("an answer");
    assert_eq!(rows.len(), 2, "{rows:?}");
    let row = rows.iter().find(|row| row.pane.pane == 1).expect("the second pane");
    let expected = server.tmux(&["display-message", "-p", "-t", "%1", "#{pane_pid} #{pane_tty}"]);
    assert_eq!(format!("{} {}", row.pane.pid, row.tty), expected);
    assert_eq!((row.session_name.as_str(), row.size, row.dead), ("main", (100, 30), false));
    wait_until("the directory shows", || {
        server.tmux(&["display-message", "-p", "-t", "%1", "#{pane_current_command}"]) == "cat"
    });
    let row = tmux.facts(1).await.expect("an answer").expect("a pane");
    assert_eq!((row.cwd.as_str(), row.command.as_str()), (odd.to_str().expect("plain"), "cat"));
    assert_eq!(tmux.facts(99).await.expect("an answer"), None);
    assert_eq!(tmux.server().expect("connected").id.pid, server.pid());
}

#[tokio::test]
async fn a_capture_is_the_screen_of_exactly_that_pane() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    composer.shows(&tmux, Activity::Ready).await;
    let capture = tmux.capture(&pane).await.expect("a screen");
    assert_eq!((capture.width, capture.height, capture.lines[1].as_str()), (100, 30, "⟦⟧"));
    assert_eq!((capture.cursor_x, capture.cursor_y), (2, 1));
    let other = tasuki::core::pane::PaneRef { pid: 1, ..pane };
    let error = tmux.capture(&other).await.expect_err("another process");
    assert!(matches!(error, Error::Pane { reason: Refusal::PaneChanged, .. }), "{error:?}");
}

#[tokio::test]
async fn ready_means_ready_and_stable() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let times = |within| ReadyPlan {
        within: Duration::from_millis(within),
        calm: Duration::from_millis(200),
        every: Duration::from_millis(20),
        at_work: None,
    };
    let stop = CancellationToken::new();
    assert!(matches!(tmux.wait_ready(&pane, &times(10_000), &TestScreenReader, &stop).await, Ready::Ready(_)));
    composer.set_mode("dialog");
    composer.shows(&tmux, Activity::Blocked).await;
    assert!(matches!(tmux.wait_ready(&pane, &times(10_000), &TestScreenReader, &stop).await, Ready::Blocked(_)));
    let at_work = ReadyPlan { at_work: Some(Duration::from_millis(200)), ..times(400) };
    composer.set_mode("busy");
    composer.shows(&tmux, Activity::Busy).await;
    assert!(matches!(tmux.wait_ready(&pane, &at_work, &TestScreenReader, &stop).await, Ready::AtWork(_)));
    assert!(matches!(tmux.wait_ready(&pane, &times(400), &TestScreenReader, &stop).await, Ready::NotReady(_)));
    composer.set_mode("splash");
    composer.shows(&tmux, Activity::Unknown).await;
    assert!(matches!(tmux.wait_ready(&pane, &times(400), &TestScreenReader, &stop).await, Ready::NotReady(Some(_))));
    server.tmux(&["kill-pane", "-t", &pane.to_string()]);
    assert_eq!(tmux.wait_ready(&pane, &times(400), &TestScreenReader, &stop).await, Ready::Gone(Refusal::PaneGone));
}

#[tokio::test]
async fn a_server_that_starts_later_is_found_and_one_that_goes_is_told() {
    let server = Server::start();
    server.tmux(&["kill-server"]);
    let (notices, mut inbox) = mpsc::channel(8);
    let tmux = Tmux::start(server.options(), notices).expect("a thread");
    expect(&mut inbox, disconnected).await;
    assert!(matches!(tmux.list_panes().await, Err(Error::NoServer(_))));
    server.begin();
    expect(&mut inbox, connected).await;
    assert_eq!(tmux.list_panes().await.expect("an answer").len(), 1);
    server.tmux(&["kill-server"]);
    expect(&mut inbox, disconnected).await;
    assert!(tmux.server().is_none());
}

/// The folder for temporary files may be cleared while the sidecar runs.
#[test]
fn a_sidecar_whose_temporary_folder_was_removed_finds_a_new_server() {
    let stage = Stage::without_sidecar("");
    let folder = stage.work_dir().join("temporary");
    std::fs::create_dir(&folder).expect("a folder");
    stage.spawn_sidecar_by(&["env", &format!("TMPDIR={}", folder.display())], "debug");
    stage.until_beating();
    let server = || stage.sidecar_view()["tmux"]["pid"].as_u64();
    let first = stage.wait_for("it is connected", server);
    std::fs::remove_dir_all(&folder).expect("removed");
    stage.tmux(&["kill-server"]);
    wait_until("the server is gone", || !is_running(u32::try_from(first).expect("an id")));
    stage.start_tmux();
    stage.until("it is connected to the new server", || server().is_some_and(|pid| pid != first));
}

#[tokio::test]
async fn after_a_restart_the_same_pane_number_is_another_pane() {
    let server = Server::start();
    let (notices, mut inbox) = mpsc::channel(64);
    let tmux = Tmux::start(server.options(), notices).expect("a thread");
    expect(&mut inbox, connected).await;
    let pane = tmux.facts(0).await.expect("an answer").expect("a pane").pane;
    server.tmux(&["kill-server"]);
    expect(&mut inbox, disconnected).await;
    let stop = CancellationToken::new();
    let resumed = TypePlan { resumed: true, ..plan(pane, 2, "No.") };
    let lost = Typed::Unknown { reason: "server_lost".into() };
    assert_eq!(tmux.type_text(&resumed, &TestScreenReader, &stop).await, lost);
    server.begin();
    expect(&mut inbox, connected).await;
    let gone = Typed::Refused { reason: Refusal::PaneGone };
    assert_eq!(tmux.type_text(&plan(pane, 1, "No."), &TestScreenReader, &stop).await, gone);
    assert_eq!(tmux.type_text(&resumed, &TestScreenReader, &stop).await, lost);
    assert!(!tmux.kill_pane(&pane).await.expect("an answer"), "a stranger is not killed");
    assert_eq!(tmux.list_panes().await.expect("an answer").len(), 1);
}

#[tokio::test]
async fn new_and_dead_panes_are_told() {
    let server = Server::start();
    let (notices, mut inbox) = mpsc::channel(64);
    let _tmux = Tmux::start(server.options(), notices).expect("a thread");
    expect(&mut inbox, connected).await;
    while inbox.try_recv().is_ok() {}
    let id = server.tmux(&["split-window", "-d", "-P", "-F", "#{pane_id}", "-t", "main:", "exec cat"]);
    expect(&mut inbox, |notice| *notice == TmuxNotice::PanesChanged).await;
    while inbox.try_recv().is_ok() {}
    server.tmux(&["kill-pane", "-t", &id]);
    expect(&mut inbox, |notice| *notice == TmuxNotice::PanesChanged).await;
}

#[tokio::test]
async fn a_stopped_server_is_waited_for_and_nothing_is_typed_twice() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let pid = nix::unistd::Pid::from_raw(server.pid() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).expect("stopped");
    let began = Instant::now();
    let plan = plan(pane, 1, "Through a stop.");
    let go_on = async {
        let answer = tmux.facts(composer.id).await;
        assert!(matches!(answer, Err(Error::NotConnected(_))), "{answer:?}");
        assert!(began.elapsed() < Duration::from_secs(16), "a command has a deadline");
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGCONT).expect("goes on");
    };
    let stop = CancellationToken::new();
    let (typed, ()) = tokio::join!(tmux.type_text(&plan, &TestScreenReader, &stop), go_on);
    assert_eq!(typed, Typed::Submitted { proven: false });
    assert_eq!(composer.submits(), ["Through a stop."]);
}

#[tokio::test]
async fn the_user_notices_nothing() {
    let server = Server::start();
    server.tmux(&["set-buffer", "-b", "mine", "precious", ";", "set-buffer", "top"]);
    let state = || {
        let windows =
            server.tmux(&["list-windows", "-t", "main", "-F", "#{window_id} #{window_active} #{window_layout}"]);
        let session = server.tmux(&["display-message", "-p", "-t", "main:", "#{session_attached} #{session_windows}"]);
        let hooks = server.tmux(&["show-hooks", "-g"]);
        (windows, session, hooks, server.tmux(&["list-buffers"]), server.tmux(&["show-buffer"]))
    };
    let composer = server.composer(&[]);
    let before = state();
    let tmux = server.connect().await;
    let pane = composer.pane(&tmux).await;
    let stop = CancellationToken::new();
    for id in 1..4 {
        let typed = tmux.type_text(&plan(pane, id, "Some text."), &TestScreenReader, &stop).await;
        assert_eq!(typed, Typed::Submitted { proven: false });
    }
    assert_eq!(state(), before);
    assert!(!composer.bytes().windows(3).any(|bytes| bytes == b"\x1b[I"), "no focus event");
    tmux.close().await;
    assert_eq!(state(), before);
    assert_eq!(server.tmux(&["list-sessions", "-F", "#{session_name}"]), "main");
    assert!(!server.tmux(&["show-options", "-s"]).contains("@tasuki_fence"));
    wait_until("the client is gone", || control_clients(&server).is_empty());
}

#[tokio::test]
async fn the_private_session_has_no_process_and_cannot_crash_by_its_own_end() {
    let server = Server::start();
    server.tmux(&[
        "set-option",
        "-t",
        "main",
        "destroy-unattached",
        "off",
        ";",
        "set-option",
        "-g",
        "destroy-unattached",
        "on",
    ]);
    let pid = server.pid();
    for _ in 0..5 {
        let tmux = server.connect().await;
        let session = format!("=_tasuki-{TAG}:");
        let panes = server.tmux(&["list-panes", "-s", "-t", &session, "-F", "#{?pane_pid,#{pane_pid},0}"]);
        assert_eq!(panes, "0");
        assert_eq!(server.tmux(&["show-options", "-v", "-t", &session, "destroy-unattached"]), "off");
        drop(tmux);
        wait_until("the client is gone", || control_clients(&server).is_empty());
        assert_eq!(server.pid(), pid);
    }
}

#[tokio::test]
async fn a_server_that_only_we_are_left_in_is_left() {
    let server = Server::start();
    let _tmux = server.connect().await;
    let pid = server.pid();
    server.tmux(&["kill-session", "-t", "=main"]);
    wait_until("the server has ended", || !is_running(pid));
}

#[tokio::test]
async fn buffers_that_a_crash_left_are_swept() {
    let server = Server::start();
    let name = format!("tasuki-{TAG}-000000000001");
    server.tmux(&["set-buffer", "-b", &name, "left", ";", "set-buffer", "-b", "tasuki-99999999-1", "another home's"]);
    let _tmux = server.connect().await;
    wait_until("ours is swept", || server.tmux(&["list-buffers", "-F", "#{buffer_name}"]) == "tasuki-99999999-1");
}

#[tokio::test]
async fn marks_of_creations_that_nobody_asks_for_any_more_are_swept() {
    let server = Server::start();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
    let [old, young] = ["a0", "a1"].map(|creation| format!("@tasuki_made_{TAG}_{creation}"));
    for (name, age) in [(&old, 8 * 24 * 3600), (&young, 6 * 24 * 3600)] {
        server.tmux(&["set-option", "-s", name, &(now - age).to_string()]);
    }
    let _tmux = server.connect().await;
    let options = || server.tmux(&["show-options", "-s"]);
    wait_until("the old one is swept", || !options().contains(&old));
    assert!(options().contains(&young), "it may still be asked for");
}

#[tokio::test]
async fn a_message_is_shown_as_it_is_written() {
    let server = Server::start();
    let tmux = server.connect().await;
    assert_eq!(tmux.notify_clients("nobody is there").await.expect("an answer"), 0);
    let inner = Server::start();
    let attach = format!("exec env -u TMUX tmux -u -S {} attach -t main", server.socket().display());
    let id = inner.tmux(&["new-window", "-P", "-F", "#{pane_id}", "-t", "main:", "-e", "TERM=screen", &attach]);
    wait_until("a terminal is attached", || {
        server.tmux(&["list-clients", "-F", "#{client_control_mode}"]).contains('0')
    });
    let text = "50% of #{pid} #(id) %H \"quoted\" ; ended #1";
    assert_eq!(tmux.notify_clients(text).await.expect("an answer"), 1);
    wait_until("it is shown", || inner.tmux(&["capture-pane", "-p", "-t", &id]).contains(text));
}

#[tokio::test]
async fn a_terminal_that_lands_in_our_session_is_shown_out() {
    let server = Server::start();
    let tmux = server.connect().await;
    let inner = Server::start();
    let attach = format!("exec env -u TMUX tmux -u -S {} attach -t _tasuki-{TAG}", server.socket().display());
    inner.tmux(&["new-window", "-t", "main:", "-e", "TERM=screen", &attach]);
    let rows = || server.tmux(&["list-clients", "-F", "#{client_control_mode} #{client_session}"]);
    wait_until("it is back in main", || rows().contains("0 main"));
    drop(tmux);
}

#[tokio::test]
async fn a_server_is_started_only_when_asked_to() {
    let server = Server::start();
    server.tmux(&["kill-server"]);
    let (notices, mut inbox) = mpsc::channel(8);
    let options = SocketOptions { start_server: true, ..server.options() };
    let tmux = Tmux::start(options, notices).expect("a thread");
    expect(&mut inbox, connected).await;
    assert!(tmux.list_panes().await.expect("an answer").is_empty());
    let pid = tmux.server().expect("connected").id.pid;
    let id = |pid: u32| Pid::from_raw(i32::try_from(pid).expect("an id"));
    let session = nix::unistd::getsid(Some(id(pid))).expect("it runs");
    assert_eq!(session, id(pid), "the server leads a session of its own");
}

/// Not a test: a process that asks without end, to be killed with answers on their way.
#[tokio::test]
async fn asking_program() {
    let Some(socket) = std::env::var_os("TASUKI_TEST_ASKER") else { return };
    let (notices, mut inbox) = mpsc::channel(64);
    let socket = tasuki::tmux::Socket::Path(socket.into());
    let options = SocketOptions { socket, home_tag: TAG.into(), program: "tmux".into(), start_server: false };
    let tmux = Tmux::start(options, notices).expect("a thread");
    expect(&mut inbox, connected).await;
    println!("connected");
    loop {
        let _ = tokio::join!(tmux.list_panes(), tmux.list_panes(), tmux.list_panes(), tmux.list_panes());
    }
}

fn asker(server: &Server) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("our own path"));
    command.args(["tmux_server::asking_program", "--exact", "--nocapture"]);
    command.env("TASUKI_TEST_ASKER", server.socket()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("our own program runs")
}

#[test]
fn killing_us_with_answers_on_their_way_leaves_no_client_and_a_healthy_server() {
    let server = Server::start();
    let pid = server.pid();
    let rounds = if tally::is_long() { 100 } else { 4 };
    for round in 0..rounds {
        let mut child = asker(&server);
        wait_until("it is connected", || server.tmux(&["list-clients"]).contains("_tasuki"));
        std::thread::sleep(Duration::from_millis(round % 7 * 10));
        child.kill().expect("killed");
        child.wait().expect("reaped");
        wait_until("its client is gone", || control_clients(&server).is_empty());
        assert_eq!(server.pid(), pid, "round {round}");
    }
    let began = Instant::now();
    server.tmux(&["kill-server"]);
    wait_until("the server is gone", || !is_running(pid));
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_client_that_a_former_process_left_is_ended_first() {
    let server = Server::start();
    let mut former = asker(&server);
    wait_until("it is connected", || server.tmux(&["list-clients"]).contains("_tasuki"));
    // Stopped in the middle of that it would hold the lock on the server, for which a home waits longer than this test.
    wait_until("no home connects", || {
        let folder = File::open(server.dir.path()).expect("a folder");
        Flock::lock(folder, FlockArg::LockExclusiveNonblock).is_ok()
    });
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(former.id() as i32), nix::sys::signal::Signal::SIGSTOP)
        .expect("stopped");
    let stale = control_clients(&server);
    let tmux = server.connect().await;
    assert_eq!(tmux.list_panes().await.expect("an answer").len(), 1);
    wait_until("the stale client is gone", || stale.iter().all(|pid| !is_running(*pid)));
    former.kill().expect("killed");
    former.wait().expect("reaped");
    assert!(tmux.list_panes().await.is_ok());
}

/// The names of options are anybody's to choose, and tmux reads a `;` in a line as the end of a command.
#[tokio::test]
async fn an_options_name_that_goes_on_as_a_command_is_left_alone() {
    let server = Server::start();
    let old = format!("@tasuki_made_{TAG}_0123456789abcdef0123456789abcdef");
    let odd = ["y;set-option\t-s\t@ran\t1", "0;kill-server", "0{", "\\;", "'"]
        .map(|tail| format!("@tasuki_made_{TAG}_{tail}"));
    server.tmux(&["set-option", "-s", &old, "1"]);
    odd.iter().for_each(|name| drop(server.tmux(&["set-option", "-s", name, "1"])));
    let pid = server.pid();
    let _tmux = server.connect().await;
    assert_eq!(server.try_tmux(&["show-options", "-s", "-v", "@ran"]), None, "the name was run");
    assert_eq!(server.pid(), pid);
    // What is ours and old goes; the rest stays.
    assert_eq!(server.try_tmux(&["show-options", "-s", "-v", &old]), None);
    let left = server.tmux(&["show-options", "-s"]);
    assert_eq!(left.matches(&format!("@tasuki_made_{TAG}_")).count(), odd.len(), "{left}");
}
