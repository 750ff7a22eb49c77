//! A client that shows a session's window, as a person's terminal does.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The client. Dropping this ends it.
pub(crate) struct Viewer(Child);

impl Viewer {
    /// Begins to attach. The caller must wait until the server counts the client.
    pub(crate) fn attach(socket: &Path, session: &str) -> Viewer {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(socket).args(["-C", "attach", "-t", session]).env_remove("TMUX");
        Viewer(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("tmux runs"))
    }

    /// Detaches by closing the client's input, and waits until it has ended.
    pub(crate) fn detach(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().expect("it ends");
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
