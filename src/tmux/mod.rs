//! The tmux adapter: knows panes, and types into them; knows nothing of agents or handoffs.
//!
//! One thread keeps one control client attached to the server, and everything else asks through it. Read in this order:
//!
//! - [`protocol`], [`quote`]: bytes to answers, texts to arguments; no input or output
//! - `socket`, `notice`, `error`: which server is meant, what is reported about it, and why a question has no answer
//! - `owner`: who owns a socket, checked before anything speaks to the server behind it
//! - `pty`, `probe`: the control client's process, and the only place that runs a `tmux` of its own, before there is a
//!   connection; `version`: tmux's version
//! - `client`: requests and replies over one connection; `server`: prepares the server for our connection, or starts
//!   one; `private`: our own session there, and how users' programs and terminals are moved out of it
//! - `supervisor`: the thread that finds the server, connects with care and reconnects; `stale`: clients of an earlier
//!   sidecar, and a running sidecar of a copied home; `server_lock`: homes that share a server; `handle`: what
//!   everything else asks through
//! - `notice_queue`: the queue of notices for the sidecar, which never makes the thread wait
//! - [`examine`]: examines a server from outside, for a person who asks what is wrong
//! - `guard`: names inside the server, the guard of every line that types, the marks; `claim`: which home a pane
//!   belongs to
//! - `pane`, `look`, `composer_match`: what is known and seen of a pane
//! - `plan`, `typing`, `deliver`: what is typed, and how it is typed exactly once, into the agent and nobody else;
//!   `create`: new windows; `started`: how a process was started, and by which one; `placeholder`: placeholder windows,
//!   messages and the variables of a session; `status`: a line about tasuki that users may show; `terminals`:
//!   notifications (OSC 9 and 777) that terminals show on the desktop
//!
//! Never: `send-keys`, `run-shell`, Escape; a resize, a focus change or a use of the user's buffers; a line that types
//! or kills in a user's pane without the guard; a second sending of a line that changes something, because its answer
//! was lost.

mod claim;
mod client;
mod composer_match;
mod create;
mod deliver;
mod error;
pub mod examine;
mod guard;
mod handle;
mod look;
mod notice;
mod notice_queue;
mod owner;
mod pane;
mod placeholder;
mod plan;
mod private;
mod probe;
pub mod protocol;
mod pty;
pub mod quote;
mod server;
mod server_lock;
mod socket;
mod stale;
mod started;
mod status;
mod supervisor;
mod terminals;
mod typing;
mod version;

pub use create::{CreationState, SpawnOutcome, SpawnPlan};
pub use error::Error;
pub use handle::Tmux;
pub use look::{Ready, ReadyPlan, ScreenReader, is_shell};
pub use notice::{ServerInfo, TmuxNotice};
pub use pane::{Capture, PaneRow};
pub use placeholder::PaneLocation;
pub use plan::{Input, TypePlan};
pub use socket::{LONGEST_SOCKET_PATH, Socket, SocketOptions, SocketPathTooLong, check_length};
pub use version::Version;

use server_lock::ServerLock;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;
use supervisor::{ConnectionStatus, LiveClient};

/// How often [`Tmux::close`] tries to end our session while a user's program is in it. Between two tries, the thread
/// moves the program out.
const LEAVES: u32 = 5;
/// The pause between two tries.
const LEAVE_EVERY: Duration = Duration::from_millis(400);

impl Tmux {
    /// Ends for good and cleanly: removes our options and our session from the server, then closes the client's
    /// terminal. The adapter answers nothing afterwards. Takes at most some seconds, also when tmux does not answer.
    pub async fn close(&self) {
        let shared = &self.inner.shared;
        // Held until our client has exited: the server notifies the control clients of other homes of that, and before
        // tmux 3.7 it crashes if one of them is just connecting.
        let mut _lock = None;
        if let Ok(live) = self.live_within(Duration::ZERO).await {
            for left in (0..LEAVES).rev() {
                let socket = PathBuf::from(&live.info.socket_path);
                _lock = tokio::task::spawn_blocking(move || ServerLock::exclusive(&socket, server_lock::LEAVES_WITHIN))
                    .await
                    .ok();
                shared.leaves.store(true, Ordering::Release);
                if self.leave(&live, left == 0).await {
                    break;
                }
                if left > 0 {
                    shared.leaves.store(false, Ordering::Release);
                    _lock = None;
                    tokio::time::sleep(LEAVE_EVERY).await;
                }
            }
        }
        shared.stop();
        let mut status = shared.status.subscribe();
        let closed = status.wait_for(|status| matches!(status, ConnectionStatus::Closed));
        if tokio::time::timeout(Duration::from_secs(10), closed).await.is_err() {
            tracing::warn!("the tmux thread did not end in time");
        }
    }

    /// Removes our options and our session; `false` if a program runs in the session, which then stays. If this
    /// `is_last` try finds such a program, it removes the options alone.
    async fn leave(&self, live: &LiveClient, is_last: bool) -> bool {
        let names = &self.inner.shared.names;
        let options = format!("set-option -s -u {} ; set-option -s -u {} ; ", names.directory(), names.fence());
        let end = private::end_session(names, &names.fenced(&live.fence), &options);
        // Killing the session ends our client too, often before it has received the answer. So no answer means success.
        let Ok(reply) = live.ask(format!("{} ; {end}", status::withdraw(names.tag()))).await else { return true };
        if reply.iter().any(|block| block.text() == private::ENDS) {
            return true;
        }
        if is_last {
            tracing::warn!(session = names.session(), "a program runs in tasuki's own tmux session, so it stays");
            let fenced = names.fenced(&live.fence);
            let _ = live.ask(format!("if-shell -F \"{fenced}\" {{ {options}{} }}", private::UNSUBSCRIBE)).await;
        }
        false
    }
}
