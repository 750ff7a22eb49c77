//! Helpers for tests of the tmux connection: its notices, and its control clients.

use super::processes::words;
use super::tmux::Server;
use std::time::Duration;
use tasuki::tmux::TmuxNotice;
use tokio::sync::mpsc;

/// Waits until the adapter sends such a notice.
pub(crate) async fn expect(notices: &mut mpsc::Receiver<TmuxNotice>, wanted: fn(&TmuxNotice) -> bool) {
    let found = async { while !notices.recv().await.as_ref().is_some_and(wanted) {} };
    tokio::time::timeout(Duration::from_secs(20), found).await.expect("the notice comes in time");
}

pub(crate) fn connected(notice: &TmuxNotice) -> bool {
    matches!(notice, TmuxNotice::Connected(_))
}

pub(crate) fn disconnected(notice: &TmuxNotice) -> bool {
    matches!(notice, TmuxNotice::Disconnected { .. })
}

/// The control clients of the server, by their process ids.
pub(crate) fn control_clients(server: &Server) -> Vec<u32> {
    let socket = server.socket();
    let socket = socket.to_str().expect("plain");
    let is_one = |pid: &u32| {
        let words = words(*pid);
        words.iter().any(|word| word == "-C") && words.iter().any(|word| word == socket)
    };
    tasuki::process::all().into_iter().filter(is_one).collect()
}
