//! Several homes on one server, which come, go and make sessions at once: the server outlives it.

use crate::support::tmux::Server;
use std::time::Duration;
use tasuki::tmux::{Socket, SocketOptions, SpawnOutcome, SpawnPlan, Tmux, TmuxNotice};
use tokio::sync::mpsc;

const HOMES: u32 = 8;
const ROUNDS: u32 = 6;
const PATIENCE: Duration = Duration::from_secs(30);

/// A home comes, makes a session, and leaves.
async fn visit(server: Socket, number: u32, round: u32) {
    let (notices, mut inbox) = mpsc::channel(64);
    let options = SocketOptions {
        socket: server,
        home_tag: format!("{number:08x}"),
        program: "tmux".into(),
        start_server: false,
    };
    let tmux = Tmux::start(options, notices).expect("a thread");
    let mut heard = Vec::new();
    let connected = async {
        while let Some(notice) = inbox.recv().await {
            let is_it = matches!(notice, TmuxNotice::Connected(_));
            heard.push(notice);
            if is_it {
                break;
            }
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, connected).await;
    assert!(in_time.is_ok(), "not connected in time: {heard:?}");
    let made = tmux.spawn(&plan(number, round)).await;
    assert!(matches!(made, SpawnOutcome::Started(_)), "{made:?}");
    tmux.close().await;
}

fn plan(number: u32, round: u32) -> SpawnPlan {
    SpawnPlan {
        creation: format!("{round}-{number}"),
        session: format!("agent-{number}-{round}"),
        own_session: true,
        window_name: "agent".to_owned(),
        cwd: "/".into(),
        size: (80, 24),
        env: Vec::new(),
        argv: vec!["sleep".to_owned(), "600".to_owned()],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn homes_that_come_and_go_at_once_do_not_end_the_server() {
    let server = Server::start();
    let pid = server.pid();
    for round in 0..ROUNDS {
        let socket = || Socket::Path(server.socket());
        let visits: Vec<_> = (0..HOMES).map(|number| tokio::spawn(visit(socket(), number, round))).collect();
        for visit in visits {
            visit.await.expect("it came and went");
        }
    }
    assert_eq!(server.pid(), pid, "the server has ended and was begun again");
}
