//! HOME: the one folder that everything lies in. Every path of the command line is built here (SPEC section 2).

use super::error::CliError;
use std::path::{Path, PathBuf};

/// The one folder, absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// The environment variable that names it; tasuki puts it into the environment of every agent that it starts.
    pub const VARIABLE: &str = "TASUKI_HOME";

    /// `--home`, else `TASUKI_HOME`, else the user's own data folder. Nothing is created or read.
    ///
    /// # Errors
    /// When none of the three is there, or the working directory that a relative path starts from is gone.
    pub fn resolve(flag: Option<&Path>) -> Result<Self, CliError> {
        let named = flag
            .map(Path::to_path_buf)
            .or_else(|| std::env::var_os(Self::VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from));
        let root = match named {
            Some(root) => root,
            None => directories::ProjectDirs::from("", "", "tasuki")
                .map(|dirs| dirs.data_dir().to_path_buf())
                .ok_or_else(|| {
                    CliError::config("no_home", "No home folder is known for this user.")
                        .hint("Give one with --home DIR or TASUKI_HOME.")
                })?,
        };
        let root = std::path::absolute(&root).map_err(|error| {
            CliError::config("no_home", format!("The home folder {} can't be resolved: {error}.", root.display()))
        })?;
        Ok(Home { root })
    }

    /// The folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where writers make their files before they rename them.
    #[must_use]
    pub fn spool_tmp(&self) -> PathBuf {
        self.root.join("spool/tmp")
    }

    /// Where requests are dropped.
    #[must_use]
    pub fn requests(&self) -> PathBuf {
        self.root.join("spool/requests")
    }

    /// The file of one request.
    #[must_use]
    pub fn request(&self, request_id: &str) -> PathBuf {
        self.requests().join(format!("{request_id}.json"))
    }

    /// The answer to one request.
    #[must_use]
    pub fn result(&self, request_id: &str) -> PathBuf {
        self.root.join("spool/results").join(format!("{request_id}.json"))
    }

    /// One file for each failure that nobody has dismissed.
    #[must_use]
    pub fn errors(&self) -> PathBuf {
        self.root.join("spool/errors")
    }

    /// What dashboards read.
    #[must_use]
    pub fn view(&self) -> PathBuf {
        self.root.join("view")
    }

    /// The sidecar's own view, with its heartbeat.
    #[must_use]
    pub fn sidecar_view(&self) -> PathBuf {
        self.view().join("sidecar.json")
    }

    /// The views of agents.
    #[must_use]
    pub fn agent_views(&self) -> PathBuf {
        self.view().join("agents")
    }

    /// The views of handoffs.
    #[must_use]
    pub fn handoff_views(&self) -> PathBuf {
        self.view().join("handoffs")
    }

    /// The personas' folders.
    #[must_use]
    pub fn personas(&self) -> PathBuf {
        self.root.join("data/personas")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_wins_and_becomes_absolute() {
        let home = Home::resolve(Some(Path::new("some/where"))).expect("a relative path resolves");
        assert!(home.root().is_absolute());
        assert!(home.request("a").ends_with("some/where/spool/requests/a.json"));
    }
}
