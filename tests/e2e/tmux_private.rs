//! Our private session is nobody's trap: windows and terminals of a user that tmux puts there come out alive, and its
//! own end is the end of the connection.

use crate::support::connection::{connected, control_clients, disconnected, expect};
use crate::support::tmux::{Server, TAG, is_running, wait_until};
use crate::support::viewer::Viewer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::Duration;
use tasuki::tmux::{SocketOptions, Tmux};
use tokio::sync::mpsc;

/// What a user runs.
const PROGRAM: &str = "exec sleep 600";

/// A user's program, started by a command without a target.
struct Landed {
    pane: String,
    pid: u32,
}

impl Landed {
    /// Starts it, and checks that tmux has put it into our session: else the test would test nothing.
    fn by(server: &Server, command: &[&str], then: &[&str]) -> Landed {
        let print = ["-P", "-F", "#{session_name} #{pane_id} #{pane_pid}", PROGRAM];
        let said = server.tmux(&[command, &print, then].concat());
        let words: Vec<&str> = said.split(' ').collect();
        assert_eq!(words[0], format!("_tasuki-{TAG}"), "it landed elsewhere");
        Landed { pane: words[1].to_owned(), pid: words[2].parse().expect("a number") }
    }

    fn session(&self, server: &Server) -> String {
        server.tmux(&["display-message", "-p", "-t", &self.pane, "#{session_name}"])
    }

    fn moves_to(&self, server: &Server, session: &str) {
        wait_until("it is in the user's session", || self.session(server) == session);
        assert!(is_running(self.pid), "the program was killed");
    }
}

async fn is_listed(tmux: &Tmux, landed: &Landed) -> bool {
    tmux.list_panes().await.expect("an answer").iter().any(|row| row.pane.to_string() == landed.pane)
}

fn our_panes(server: &Server) -> String {
    server.tmux(&["list-panes", "-s", "-t", &format!("=_tasuki-{TAG}:"), "-F", "#{?pane_pid,#{pane_pid},0}"])
}

/// Ends the adapter as a crash does: the session stays.
fn crash(server: &Server, tmux: Tmux) {
    drop(tmux);
    wait_until("the client is gone", || control_clients(server).is_empty());
}

#[tokio::test]
async fn a_window_that_lands_in_our_session_moves_to_the_users() {
    let server = Server::start();
    let tmux = server.connect().await;
    for command in [&["new-window"] as &[&str], &["new-window", "-d"], &["split-window"], &["split-window", "-d"]] {
        let before = server.tmux(&["display-message", "-p", "-t", "main:", "#{window_id}"]);
        let landed = Landed::by(&server, command, &[]);
        assert!(is_listed(&tmux, &landed).await, "a pane that is there counts as gone");
        landed.moves_to(&server, "main");
        assert!(is_listed(&tmux, &landed).await);
        let after = server.tmux(&["display-message", "-p", "-t", "main:", "#{window_id}"]);
        assert_eq!(after, before, "the user's current window changed");
    }
    wait_until("our session holds its empty pane again", || our_panes(&server) == "0");
    assert_eq!(tmux.list_panes().await.expect("an answer").len(), 5);
}

#[tokio::test]
async fn a_program_that_is_started_in_our_own_pane_moves_out_of_our_session() {
    let server = Server::start();
    let tmux = server.connect().await;
    server.tmux(&["respawn-pane", "-k", PROGRAM]);
    let pid = our_panes(&server).parse().expect("a process");
    wait_until("it is in the user's session", || {
        server.tmux(&["list-panes", "-s", "-t", "=main:", "-F", "#{pane_pid}"]).contains(&format!("{pid}"))
    });
    wait_until("our session holds an empty pane again", || our_panes(&server) == "0");
    assert!(is_running(pid));
    drop(tmux);
}

#[tokio::test]
async fn a_window_in_our_session_outlives_the_end_of_a_sidecar() {
    let server = Server::start();
    let tmux = server.connect().await;
    let landed = Landed::by(&server, &["new-window"], &[]);
    tmux.close().await;
    landed.moves_to(&server, "main");
    assert_eq!(server.tmux(&["list-sessions", "-F", "#{session_name}"]), "main");
}

#[tokio::test]
async fn what_came_into_our_session_while_no_sidecar_ran_outlives_the_next_start() {
    let server = Server::start();
    let tmux = server.connect().await;
    crash(&server, tmux);
    let landed = [&["new-window"] as &[&str], &["split-window"]].map(|command| Landed::by(&server, command, &[]));
    let tmux = server.connect().await;
    landed.iter().for_each(|landed| landed.moves_to(&server, "main"));
    assert_eq!(our_panes(&server), "0");
    tmux.close().await;
    assert!(landed.iter().all(|landed| is_running(landed.pid)));
}

#[tokio::test]
async fn a_window_outlives_the_users_last_own_session() {
    let server = Server::start();
    server.tmux(&["set-option", "-g", "destroy-unattached", "off"]);
    let tmux = server.connect().await;
    let landed = Landed::by(&server, &["new-window"], &[";", "kill-session", "-t", "=main"]);
    wait_until("it has a session of its own", || !landed.session(&server).starts_with("_tasuki-"));
    tokio::time::sleep(Duration::from_secs(4)).await;
    let session = landed.session(&server);
    assert!(is_running(landed.pid) && is_listed(&tmux, &landed).await);
    assert_eq!(server.tmux(&["list-panes", "-s", "-t", &format!("={session}:"), "-F", "#{pane_id}"]), landed.pane);
    tmux.close().await;
    assert!(is_running(landed.pid));
    assert_eq!(server.tmux(&["list-sessions", "-F", "#{session_name}"]), session);
}

#[tokio::test]
async fn a_window_on_a_server_of_ours_gets_a_session() {
    let server = Server::start();
    server.tmux(&["kill-server"]);
    let (notices, mut inbox) = mpsc::channel(64);
    let options = SocketOptions { start_server: true, ..server.options() };
    let tmux = Tmux::start(options, notices).expect("a thread");
    expect(&mut inbox, connected).await;
    server.tmux(&["set-option", "-g", "destroy-unattached", "on"]);
    let landed = Landed::by(&server, &["new-window"], &[]);
    wait_until("it has a session of its own", || !landed.session(&server).starts_with("_tasuki-"));
    tmux.close().await;
    assert!(is_running(landed.pid));
    assert!(!landed.session(&server).starts_with("_tasuki-"));
}

#[tokio::test]
async fn a_window_that_is_linked_into_our_session_stays_where_it_was() {
    let server = Server::start();
    let tmux = server.connect().await;
    server.tmux(&["new-window", "-d", "-t", "main:", PROGRAM]);
    server.tmux(&["link-window", "-s", "main:1"]);
    wait_until("the link is gone", || our_panes(&server) == "0");
    assert_eq!(server.tmux(&["list-windows", "-t", "=main:", "-F", "#{window_linked}"]), "0\n0");
    assert_eq!(tmux.list_panes().await.expect("an answer").len(), 2);
}

/// Without a target, `rename-session` means our session too.
#[tokio::test]
async fn our_session_keeps_its_name() {
    let server = Server::start();
    let _tmux = server.connect().await;
    server.tmux(&["rename-session", "mine"]);
    wait_until("it has its name again", || {
        server.tmux(&["list-sessions", "-F", "#{session_name}"]) == format!("_tasuki-{TAG}\nmain")
    });
}

/// tmux tells us first that a session was renamed, and then that ours has ended and that we are in the renamed one.
#[tokio::test]
async fn a_users_session_keeps_its_name_if_ours_ends_as_it_is_renamed() {
    let server = Server::start();
    server.tmux(&["split-window", "-d", "-t", "main:", PROGRAM]);
    let (notices, mut inbox) = mpsc::channel(64);
    let _tmux = Tmux::start(server.options(), notices).expect("a thread");
    expect(&mut inbox, connected).await;
    let panes = |session| {
        server.tmux(&["list-panes", "-s", "-t", session, "-F", "#{window_id} #{pane_id} #{pane_pid}"])
            + &server.tmux(&["show-options", "-t", session])
    };
    let before = panes("=main:");
    server.tmux(&["rename-session", "-t", "main", "work", ";", "kill-session", "-a", "-t", "=work"]);
    expect(&mut inbox, disconnected).await;
    expect(&mut inbox, connected).await;
    assert_eq!(server.tmux(&["list-sessions", "-F", "#{session_name}"]), format!("_tasuki-{TAG}\nwork"));
    assert_eq!(panes("=work:"), before);
}

#[tokio::test]
async fn after_the_end_of_our_session_we_are_in_nobody_elses() {
    for option in ["off", "on"] {
        let server = Server::start();
        server.tmux(&["set-option", "-g", "detach-on-destroy", option]);
        let (notices, mut inbox) = mpsc::channel(64);
        let tmux = Tmux::start(server.options(), notices).expect("a thread");
        expect(&mut inbox, connected).await;
        let former = control_clients(&server);
        server.tmux(&["kill-session", "-a", "-t", "=main"]);
        expect(&mut inbox, disconnected).await;
        expect(&mut inbox, connected).await;
        wait_until("the former client is gone", || !former.iter().any(|pid| is_running(*pid)));
        assert_eq!(server.tmux(&["list-clients", "-F", "#{client_session}"]), format!("_tasuki-{TAG}"), "{option}");
        tmux.show_status("1 agent").await.expect("an answer");
        tmux.close().await;
    }
}

#[tokio::test]
async fn the_end_of_our_session_under_a_slow_client_does_not_crash_the_server() {
    let server = Server::start();
    let _tmux = server.connect().await;
    let (pid, clients) = (server.pid(), control_clients(&server));
    for client in clients {
        kill(Pid::from_raw(i32::try_from(client).expect("small")), Signal::SIGSTOP).expect("it runs");
    }
    server.tmux(&["kill-session", "-a", "-t", "=main"]);
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let now = server.try_tmux(&["display-message", "-p", "#{pid}"]);
    assert_eq!(now, Some(pid.to_string()), "the server has crashed");
    wait_until("we are back", || server.tmux(&["list-sessions"]).contains(&format!("_tasuki-{TAG}")));
}

#[tokio::test]
async fn a_terminal_that_goes_through_the_sessions_passes_ours() {
    let server = Server::start();
    for name in ["Alpha", "Beta", "zeta"] {
        server.tmux(&["new-session", "-d", "-s", name, "exec cat"]);
    }
    let _tmux = server.connect().await;
    let viewer = Viewer::attach(&server.socket(), "=Beta");
    let rows = || server.tmux(&["list-clients", "-F", "#{client_session} #{client_name}"]);
    let is_in = |session: &str| {
        let rows = rows();
        rows.lines().find(|row| !row.starts_with("_tasuki-")).is_some_and(|row| row.starts_with(session))
    };
    wait_until("it is attached", || is_in("Beta "));
    let rows = rows();
    let client = rows.lines().find_map(|row| row.strip_prefix("Beta ")).expect("the viewer");
    for (step, session) in [("-n", "main "), ("-p", "Beta "), ("-p", "Alpha "), ("-p", "zeta "), ("-p", "main ")] {
        server.tmux(&["switch-client", step, "-c", client]);
        wait_until("it is in the next session", || is_in(session));
    }
    drop(viewer);
}
