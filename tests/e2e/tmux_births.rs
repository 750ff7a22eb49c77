//! New windows under the worst of circumstances: the server is stopped with a backlog of lines, and their sender
//! killed.

use crate::support::processes::bearing;
use crate::support::tally;
use crate::support::tmux::{Server, TAG, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tasuki::tmux::{Socket, SocketOptions, SpawnOutcome, SpawnPlan, Tmux};
use tokio::sync::mpsc;

const WINDOWS: u32 = 12;

/// Not a test: makes windows with the creation ids of one round, all at once, and says that it is done.
#[tokio::test]
async fn making_program() {
    let Some(socket) = std::env::var_os("TASUKI_TEST_MAKER") else { return };
    let round = std::env::var("TASUKI_TEST_ROUND").expect("given");
    let (notices, mut inbox) = mpsc::channel(64);
    let socket = Socket::Path(socket.into());
    let options = SocketOptions { socket, home_tag: TAG.into(), program: "tmux".into(), start_server: false };
    let tmux = Tmux::start(options, notices).expect("a thread");
    tokio::spawn(async move { while inbox.recv().await.is_some() {} });
    let windows: Vec<_> = (0..WINDOWS)
        .map(|number| {
            let (tmux, plan) = (tmux.clone(), plan(&round, number));
            tokio::spawn(async move {
                // Twice at once, and again without a server's answer in time, as a retry does.
                let ask = async || while tmux.spawn(&plan).await == SpawnOutcome::NoTmux {};
                tokio::join!(ask(), ask());
            })
        })
        .collect();
    for window in windows {
        window.await.expect("no panic");
    }
}

fn plan(round: &str, number: u32) -> SpawnPlan {
    SpawnPlan {
        creation: format!("{round}-{number}"),
        session: "main".to_owned(),
        own_session: false,
        window_name: "w".to_owned(),
        cwd: "/".into(),
        env: vec![],
        argv: ["sleep", "600"].map(str::to_owned).to_vec(),
        size: (80, 24),
    }
}

fn maker(server: &Server, round: u32) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("our own path"));
    command.args(["tmux_births::making_program", "--exact", "--nocapture"]);
    command.env("TASUKI_TEST_MAKER", server.socket()).env("TASUKI_TEST_ROUND", format!("{:x}", round + 0xa0));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("our own program runs")
}

/// How many processes bear a creation id; every one that ever lived is still there.
fn born(round: u32, number: u32, socket: &str) -> usize {
    let is_here = |pid: &u32| {
        let tmux = tasuki::process::environ_var(*pid, "TMUX");
        tmux.is_some_and(|tmux| tmux.starts_with(&format!("{socket},")))
    };
    bearing(&format!("TASUKI_CREATION={:x}-{number}", round + 0xa0)).iter().filter(|pid| is_here(pid)).count()
}

#[test]
fn a_creation_makes_one_process_whatever_stops_or_dies_meanwhile() {
    let server = Server::start();
    let pid = Pid::from_raw(i32::try_from(server.pid()).expect("small"));
    let (mut lost, mut twice) = (Vec::new(), Vec::new());
    for round in 0..if tally::is_long() { 80 } else { 3 } {
        let mut first = maker(&server, round);
        wait_until("it is connected", || server.tmux(&["list-clients"]).contains("_tasuki"));
        std::thread::sleep(Duration::from_millis(u64::from(round) * 13 % 40));
        kill(pid, Signal::SIGSTOP).expect("stopped");
        // Lines go on into the backlog.
        std::thread::sleep(Duration::from_millis(100));
        first.kill().expect("killed");
        first.wait().expect("reaped");
        let mut second = maker(&server, round);
        std::thread::sleep(Duration::from_millis(300));
        kill(pid, Signal::SIGCONT).expect("goes on");
        assert!(second.wait().expect("ended").success(), "round {round}");
        let socket = server.socket().display().to_string();
        for number in 0..WINDOWS {
            let name = format!("round {round}, window {number}");
            match born(round, number, &socket) {
                0 => lost.push(name),
                1 => {}
                _ => twice.push(name),
            }
        }
        tally::add(tally::DEATHS, 1);
        server.tmux(&["kill-session", "-a", "-t", "main"]);
        for window in server.tmux(&["list-windows", "-t", "main", "-F", "#{window_id} #{window_name}"]).lines() {
            if let Some(id) = window.strip_suffix(" w") {
                server.tmux(&["kill-window", "-t", id]);
            }
        }
        assert_eq!(server.pid(), u32::try_from(pid.as_raw()).expect("positive"), "the server lives");
    }
    tally::none_lost_none_twice("windows by creation id", &lost, &twice);
}
