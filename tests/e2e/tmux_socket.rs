//! The way to the server: a socket's path that is a link, and a folder that others name.

use crate::support::tmux::Server;
use std::os::unix::fs::symlink;
use std::time::Duration;
use tasuki::tmux::{Socket, SocketOptions, Tmux, TmuxNotice};
use tokio::sync::mpsc;

async fn expect(notices: &mut mpsc::Receiver<TmuxNotice>, wanted: fn(&TmuxNotice) -> bool) {
    let found = async { while !notices.recv().await.as_ref().is_some_and(wanted) {} };
    tokio::time::timeout(Duration::from_secs(20), found).await.expect("the notice comes in time");
}

/// The link stays the same when the server behind it ends and begins again.
#[tokio::test]
async fn a_server_behind_a_link_is_found_again() {
    let server = Server::start();
    let link = server.dir.path().join("link");
    symlink("s", &link).expect("a link");
    let (notices, mut inbox) = mpsc::channel(64);
    let options = SocketOptions { socket: Socket::Path(link), ..server.options() };
    let tmux = Tmux::start(options, notices).expect("a thread");
    for _ in 0..2 {
        expect(&mut inbox, |notice| matches!(notice, TmuxNotice::Connected(_))).await;
        assert_eq!(tmux.list_panes().await.expect("an answer").len(), 1);
        server.tmux(&["kill-server"]);
        expect(&mut inbox, |notice| matches!(notice, TmuxNotice::Disconnected { .. })).await;
        // So long that the link was looked at without a server.
        tokio::time::sleep(Duration::from_secs(2)).await;
        server.begin();
    }
}
