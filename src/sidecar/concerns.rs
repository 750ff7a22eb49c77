//! What is wrong around the sidecar until a person repairs it. The sidecar works on meanwhile, and its view names it.

use crate::process;
use std::path::Path;

#[derive(Debug, Default)]
pub(super) struct Concerns {
    /// Why the configuration could not be reloaded.
    unread_config: Option<String>,
    /// The hooks of agents run a program that is gone.
    lost_program: Option<String>,
}

impl Concerns {
    /// Notes whether a reload of the configuration failed, and why.
    pub(super) fn note_reload(&mut self, failed: Option<&str>) {
        self.unread_config = failed.map(|why| format!("{why}. The next start of the sidecar would fail"));
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
        self.lost_program.as_ref().or(self.unread_config.as_ref())
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
}
