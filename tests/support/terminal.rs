//! A user's terminal on a stage's tmux server: a real client with a real keyboard.

use super::stage::Stage;
use super::tmux::Server;

/// A terminal of 100 × 30 that is attached to a session of the stage. It is the pane `pane` of another tmux server,
/// `inner`: keys that are sent to this pane are typed by the user.
pub(crate) struct Terminal {
    pub(crate) inner: Server,
    pub(crate) pane: String,
}

impl Terminal {
    pub(crate) fn attached(stage: &Stage, session: &str) -> Terminal {
        let inner = Server::start();
        let attach = format!("exec env -u TMUX tmux -u -S {} attach -t {session}", stage.socket().display());
        let args = ["new-window", "-P", "-F", "#{pane_id}", "-t", "main:", "-e", "TERM=screen", &attach];
        let pane = inner.tmux(&args);
        stage.until("a terminal is attached", || {
            stage
                .tmux(&["list-clients", "-F", "#{client_control_mode} #{client_session}"])
                .contains(&format!("0 {session}"))
        });
        Terminal { inner, pane }
    }

    /// Types letters.
    pub(crate) fn types(&self, keys: &str) {
        // tmux takes a semicolon at the end of an argument as the end of its command.
        let keys = keys.strip_suffix(';').map_or_else(|| keys.to_owned(), |rest| format!("{rest}\\;"));
        self.inner.tmux(&["send-keys", "-t", &self.pane, "-l", "--", &keys]);
    }

    /// Presses keys by their names.
    pub(crate) fn presses(&self, keys: &[&str]) {
        self.inner.tmux(&[&["send-keys", "-t", self.pane.as_str()], keys].concat());
    }

    pub(crate) fn enter(&self) {
        self.presses(&["Enter"]);
    }

    /// The user's screen.
    pub(crate) fn screen(&self) -> String {
        self.inner.tmux(&["capture-pane", "-p", "-t", &self.pane])
    }
}
