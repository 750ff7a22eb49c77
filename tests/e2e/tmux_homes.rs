//! Several homes on one server, which come, go and make sessions at once: the server outlives it.

use crate::support::tmux::{Server, connect_home};
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;
use tasuki::tmux::{SpawnOutcome, SpawnPlan};

const HOMES: u32 = 8;
const ROUNDS: u32 = 6;
const PATIENCE: Duration = Duration::from_secs(30);

/// A home comes, makes a session, and leaves.
async fn visit(socket: PathBuf, number: u32, round: u32) {
    let tmux = connect_home(&socket, &format!("{number:08x}"), PATIENCE).await;
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
        let visits: Vec<_> = (0..HOMES).map(|number| tokio::spawn(visit(server.socket(), number, round))).collect();
        for visit in visits {
            visit.await.expect("it came and went");
        }
    }
    assert_eq!(server.pid(), pid, "the server has ended and was begun again");
}

#[tokio::test]
async fn a_home_that_leaves_waits_for_one_that_takes_long_to_connect() {
    let server = Server::start();
    let leaving = connect_home(&server.socket(), "0000000a", PATIENCE).await;
    let folder = File::open(server.dir.path()).expect("a folder");
    let connecting = Flock::lock(folder, FlockArg::LockExclusiveNonblock).expect("nobody else has it");
    let mut leaves = tokio::spawn(async move { leaving.close().await });
    let too_soon = tokio::time::timeout(Duration::from_secs(2), &mut leaves).await;
    assert!(too_soon.is_err(), "it left while another home was connecting");
    drop(connecting);
    tokio::time::timeout(PATIENCE, leaves).await.expect("it leaves in time").expect("it leaves");
}
