//! Killed at any instant and started again, a process types each text at most once, in order, and says truly what it
//! knows.

use crate::support::strace;
use crate::support::tally;
use crate::support::tmux::{Server, TAG, TestScreenReader, plan, wait_until};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tasuki::core::pane::Typed;
use tasuki::tmux::{Input, Socket, SocketOptions, Tmux, TmuxNotice, TypePlan};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

fn text(id: u64) -> String {
    let body: String = (0..40).map(|n| format!("{n} of text {id}; \"with\" $signs\n")).collect();
    format!("Text {id}.\n{body}(tasuki delivery {id:012x}.)")
}

fn note(path: &Path, line: &str) {
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())).expect("written");
}

fn notes(path: &Path) -> Vec<(String, u64, String)> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.lines().filter(|line| line.ends_with('.')).map(|line| line.trim_end_matches('.'));
    whole
        .filter_map(|line| {
            let mut fields = line.splitn(3, ' ');
            Some((
                fields.next()?.to_owned(),
                fields.next()?.parse().ok()?,
                fields.next().unwrap_or_default().to_owned(),
            ))
        })
        .collect()
}

/// Not a test: types texts 1 to N into a pane, with a journal, and ends. It is killed and started again at will.
#[tokio::test]
async fn typing_program() {
    let Some(dir) = std::env::var_os("TASUKI_TEST_TYPIST").map(PathBuf::from) else { return };
    let read = |name: &str| fs::read_to_string(dir.join(name)).expect("given");
    let pane = serde_json::from_str(&read("pane")).expect("a pane");
    let count: u64 = read("count").parse().expect("a number");
    let journal = dir.join("journal");
    let (notices, mut inbox) = mpsc::channel(64);
    let options = SocketOptions {
        socket: Socket::Path(dir.join("s")),
        home_tag: TAG.into(),
        program: "tmux".into(),
        start_server: false,
    };
    let tmux = Tmux::start(options, notices).expect("a thread");
    tokio::spawn(async move { while inbox.recv().await.is_some() {} });
    for id in 1..=count {
        let done = notes(&journal);
        if done.iter().any(|(what, number, _)| what == "end" && *number == id) {
            continue;
        }
        let resumed = done.iter().any(|(what, number, _)| what == "begin" && *number == id);
        note(&journal, &format!("begin {id}."));
        let input = match id % 2 {
            0 => Input::Bracketed,
            _ => Input::Pieces { chars: 300, gap: Duration::from_millis(5), settle: Duration::from_millis(5) },
        };
        let plan = TypePlan { resumed, input, enter_delay: Duration::from_millis(10), ..plan(pane, id, &text(id)) };
        let typed = tmux.type_text(&plan, &TestScreenReader, &CancellationToken::new()).await;
        note(
            &journal,
            &format!("end {id} {}.", if matches!(typed, Typed::Submitted { .. }) { "submitted" } else { "other" }),
        );
        assert!(!matches!(typed, Typed::Refused { .. }), "{typed:?}");
    }
}

fn typist(server: &Server) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("our own path"));
    command.args(["tmux_crash::typing_program", "--exact", "--nocapture"]);
    command.env("TASUKI_TEST_TYPIST", server.dir.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("our own program runs")
}

#[tokio::test]
async fn however_often_it_is_killed_each_text_arrives_once_and_in_order() {
    let (count, kills): (u64, u64) = if tally::is_long() { (400, 500) } else { (12, 10) };
    let server = Server::start();
    let pid = server.pid();
    let composer = server.composer(&[]);
    let tmux = server.connect().await;
    let pane = composer.pane(&tmux).await;
    tmux.close().await;
    fs::write(server.dir.path().join("pane"), serde_json::to_string(&pane).expect("plain data")).expect("written");
    fs::write(server.dir.path().join("count"), count.to_string()).expect("written");
    for round in 0..kills {
        let mut child = typist(&server);
        // Not while it is still connecting: tmux 3.3a itself can crash when a control client dies in its first moments.
        wait_until("it is connected or done", || {
            server.tmux(&["list-clients"]).contains("_tasuki") || child.try_wait().expect("a child").is_some()
        });
        std::thread::sleep(Duration::from_millis(round * 7919 % 700));
        child.kill().expect("killed");
        child.wait().expect("reaped");
    }
    let mut child = typist(&server);
    assert!(child.wait().expect("ended").success());
    wait_until("the last text is there", || composer.submits().last() == Some(&text(count)));
    let expected: Vec<String> = (1..=count).map(text).collect();
    assert!(composer.submits() == expected, "texts were doubled, lost, mixed or reordered");
    let ends = notes(&server.dir.path().join("journal"));
    let ends: Vec<_> = ends.iter().filter(|(what, ..)| what == "end").collect();
    assert_eq!(ends.len() as u64, count);
    assert!(ends.iter().all(|(_, _, how)| how == "submitted"), "a crash alone leaves nothing in doubt: {ends:?}");
    assert_eq!(server.pid(), pid, "the server lives");
    assert_eq!(server.tmux(&["list-buffers"]), "", "no buffer is left");
}

#[tokio::test]
async fn closing_does_not_harm_the_server_however_slow_our_client_is() {
    if !strace::is_there() {
        return;
    }
    let server = Server::start();
    let pid = server.pid();
    // Its last call takes so long that the server has a client without a session for more than the second between two
    // looks at subscriptions, but not so long that it is killed.
    let slow = server.dir.path().join("slow-tmux");
    let script = "#!/bin/sh\nexec strace -D -qq -o /dev/null -e trace=exit_group \\\n\
                  -e inject=exit_group:delay_enter=1600000 tmux \"$@\"\n";
    fs::write(&slow, script).expect("written");
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o700)).expect("a program");
    let (notices, mut inbox) = mpsc::channel(64);
    let tmux = Tmux::start(SocketOptions { program: slow, ..server.options() }, notices).expect("a thread");
    let connected = async { while !matches!(inbox.recv().await, Some(TmuxNotice::Connected(_))) {} };
    tokio::time::timeout(Duration::from_secs(20), connected).await.expect("connected in time");
    // The first look has to be over: from then on only changes are told, and the end of our session is one.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    tmux.close().await;
    assert_eq!(server.try_tmux(&["display-message", "-p", "#{pid}"]), Some(pid.to_string()), "the server lives");
}
