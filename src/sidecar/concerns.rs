//! What is wrong around the sidecar until a person repairs it. The sidecar works on meanwhile, and its view names it.

use crate::config::Config;
use crate::process;
use std::path::Path;

#[derive(Debug, Default)]
pub(super) struct Concerns {
    at_start: StartKeys,
    /// Which keys have changed since the start, although only a start reads them.
    stale_keys: Option<String>,
    /// Why the configuration could not be reloaded.
    unread_config: Option<String>,
    /// The hooks of agents run a program that is gone.
    lost_program: Option<String>,
}

/// What the configuration said at the start under the keys that only a start reads.
#[derive(Debug, Default)]
struct StartKeys {
    /// `tmux.socket`.
    socket: Option<String>,
    /// Neither `--tmux` nor `TASUKI_TMUX` names the server.
    socket_counts: bool,
    /// `tmux.start`.
    start: bool,
}

impl Concerns {
    /// `socket_counts`: the server's name is taken from the configuration.
    pub(super) fn begin(config: &Config, socket_counts: bool) -> Concerns {
        let at_start = StartKeys { socket: config.tmux_socket.clone(), socket_counts, start: config.tmux_start };
        Concerns { at_start, ..Concerns::default() }
    }

    /// Notes which keys of the configuration, just read again, wait for a restart.
    pub(super) fn compare_with_start(&mut self, config: &Config) {
        let before = &self.at_start;
        let socket = (before.socket_counts && before.socket != config.tmux_socket).then_some("tmux.socket");
        let start = (before.start != config.tmux_start).then_some("tmux.start");
        let changed: Vec<&str> = socket.into_iter().chain(start).collect();
        self.stale_keys = (!changed.is_empty()).then(|| {
            format!(
                "config.toml has another value for {} than at the start of the sidecar; restart the sidecar to use it",
                changed.join(" and for ")
            )
        });
        if let Some(problem) = &self.stale_keys {
            tracing::warn!("{problem}");
        }
    }

    /// Notes whether a reload of the configuration failed, and why.
    pub(super) fn note_reload(&mut self, failed: Option<&str>) {
        self.unread_config = failed.map(|why| format!(
            "{why}. As long as the file says so, the next start of the sidecar fails. When you have corrected it, have \
             the sidecar read it again: kill -HUP {}",
            std::process::id()
        ));
    }

    /// Looks whether tasuki's own program is still where the sidecar found it at its start. The hooks of all agents
    /// name that path: without it, nothing that an agent does is reported.
    pub(super) fn look_at_program(&mut self, program: &Path) {
        let was_there = self.lost_program.is_none();
        self.lost_program = (!process::is_program(program)).then(|| {
            format!(
                "the program {} is gone, and the hooks of agents run it, so tasuki does not learn what the agents do; put \
                 it back there, or a link to the program that you use now",
                program.display()
            )
        });
        if let (Some(problem), true) = (&self.lost_program, was_there) {
            tracing::error!("{problem}");
        }
    }

    /// The most important one.
    pub(super) fn first(&self) -> Option<&String> {
        self.lost_program.as_ref().or(self.unread_config.as_ref()).or(self.stale_keys.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_concern_lasts_until_its_cause_is_gone() {
        let dir = tempfile::tempdir().expect("a folder");
        let program = dir.path().join("tasuki");
        let mut concerns = Concerns::default();
        concerns.look_at_program(&program);
        assert!(concerns.first().is_some_and(|said| said.contains("is gone") && said.contains("/tasuki ")));
        concerns.note_reload(Some("could not reload the configuration"));
        fs::write(&program, "").expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
        concerns.look_at_program(&program);
        assert!(concerns.first().is_some_and(|said| said.contains("could not reload")));
        concerns.note_reload(None);
        assert_eq!(concerns.first(), None);
    }

    #[test]
    fn a_changed_key_that_only_a_start_reads_is_told_until_it_is_as_before() {
        let config = |text: &str| Config::parse(Path::new("config.toml"), text).expect("a configuration");
        let (before, after) = (config(""), config("[tmux]\nsocket = \"other\"\nstart = true\n"));
        let mut concerns = Concerns::begin(&before, true);
        concerns.compare_with_start(&after);
        let said = concerns.first().expect("a concern");
        assert!(said.contains("another value for tmux.socket and for tmux.start than"), "{said}");
        concerns.compare_with_start(&before);
        assert_eq!(concerns.first(), None);
        // `--tmux` names the server: what the file says does not count, after a restart neither.
        let mut concerns = Concerns::begin(&before, false);
        concerns.compare_with_start(&config("[tmux]\nsocket = \"other\"\n"));
        assert_eq!(concerns.first(), None);
    }
}
