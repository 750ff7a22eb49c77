//! Tells whether a pane lives in another tmux server than the one that the sidecar is connected to.

use crate::core::pane::{PaneRef, ServerId};
use crate::process;

/// Whether this pane is in another tmux server than `connected`, and lives there, as far as is known: its process is
/// still a child of that server. If the server has ended, it is not, whichever processes have the two ids by now.
pub(crate) fn lives_elsewhere(pane: &PaneRef, connected: &ServerId) -> bool {
    // Two servers that run at the same time have different process ids.
    pane.server.pid != connected.pid && process::is_child(pane.pid, pane.server.pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_pane_lives_elsewhere_only_while_its_process_is_a_child_of_its_own_server() {
        let mut child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().expect("sleep is everywhere");
        let own = std::process::id();
        let pane = |server, pid| PaneRef { server: ServerId { pid: server, start_time: 1 }, pane: 3, pid };
        let is_so = |pane: PaneRef, connected| lives_elsewhere(&pane, &ServerId { pid: connected, start_time: 2 });
        assert!(is_so(pane(own, child.id()), 1));
        assert!(
            !is_so(pane(own, child.id()), own),
            "a server that began later has the same id, so the first has ended"
        );
        assert!(!is_so(pane(1, child.id()), own), "the process has another parent, so the server has ended");
        child.kill().and_then(|()| child.wait()).expect("our own child");
        assert!(!is_so(pane(own, child.id()), 1), "the pane's process has ended");
    }
}
