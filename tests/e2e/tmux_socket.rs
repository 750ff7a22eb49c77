//! The way to the server: a socket's path that is a link, and a folder that others name.

use crate::support::connection::{connected, disconnected, expect};
use crate::support::tmux::Server;
use std::os::unix::fs::symlink;
use std::time::Duration;
use tasuki::tmux::{Socket, SocketOptions, Tmux};
use tokio::sync::mpsc;

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
        expect(&mut inbox, connected).await;
        assert_eq!(tmux.list_panes().await.expect("an answer").len(), 1);
        server.tmux(&["kill-server"]);
        expect(&mut inbox, disconnected).await;
        // So long that the link was looked at without a server.
        tokio::time::sleep(Duration::from_secs(2)).await;
        server.begin();
    }
}
