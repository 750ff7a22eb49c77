//! HOME: the one folder that holds all of tasuki's files, and the paths of its most important files and folders.

use super::ConfigError;
use super::load::is_taken;
use std::path::{Path, PathBuf};

/// The one folder that holds all of tasuki's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
    /// Another place for `config.toml`, if the home is the default one, however it was named.
    config_place: Option<PathBuf>,
}

/// Refuses a relative path in a variable: the variable is the same in every folder, but its path would lead to another
/// home from each folder.
fn from_the_root(name: &'static str, path: &Path) -> Result<(), ConfigError> {
    match path.is_absolute() || path.as_os_str().is_empty() {
        true => Ok(()),
        false => Err(ConfigError::NotFromTheRoot { name, path: path.to_owned() }),
    }
}

impl Home {
    /// The environment variable that names the home. tasuki sets it for every agent that it starts.
    pub const VARIABLE: &str = "TASUKI_HOME";

    /// The home that a person means: `--home`, else `TASUKI_HOME`, else the user's own data place. Nothing is created
    /// or read.
    ///
    /// # Errors
    /// The system knows no home folder of this user, `TASUKI_HOME` or `HOME` is a relative path, or the path can't be
    /// made absolute.
    pub fn resolve(flag: Option<&Path>) -> Result<Home, ConfigError> {
        let variable = std::env::var_os(Self::VARIABLE).map(PathBuf::from);
        if flag.is_none() {
            variable.as_deref().map_or(Ok(()), |path| from_the_root(Self::VARIABLE, path))?;
        }
        let named = flag.map(Path::to_path_buf).or(variable).filter(|path| !path.as_os_str().is_empty());
        match named {
            Some(path) => {
                let home = Home::at(&path)?;
                // A service, and every pane of an agent, names the default home by its path.
                Ok(Home::by_default().ok().filter(|default| default.root == home.root).unwrap_or(home))
            }
            None => Home::by_default(),
        }
    }

    /// The user's own data place.
    fn by_default() -> Result<Home, ConfigError> {
        let dirs = directories::ProjectDirs::from("", "", "tasuki").ok_or(ConfigError::NoHome)?;
        std::env::var_os("HOME").map_or(Ok(()), |home| from_the_root("HOME", Path::new(&home)))?;
        let home = Home::at(dirs.data_local_dir())?;
        Ok(Home { config_place: Some(dirs.config_dir().join("config.toml")), ..home })
    }

    /// The home at a path; a relative one counts from the present folder. Links in it are followed here, once: a user
    /// who could change a link later must not move the home that was checked.
    ///
    /// # Errors
    /// The path can't be made absolute.
    pub fn at(path: &Path) -> Result<Home, ConfigError> {
        let root = std::path::absolute(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Ok(Home { root: without_links(&root), config_place: None })
    }

    /// The home folder, absolute and without links.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `config.toml`: in the home, or, for the default home, in the user's configuration folder if it exists only
    /// there.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        let here = self.root.join("config.toml");
        match &self.config_place {
            Some(place) if !is_taken(&here) && is_taken(place) => place.clone(),
            _ => here,
        }
    }

    /// `spool/`.
    #[must_use]
    pub fn spool(&self) -> PathBuf {
        self.root.join("spool")
    }

    /// `spool/requests/`: where requests are dropped.
    #[must_use]
    pub fn requests(&self) -> PathBuf {
        self.root.join("spool/requests")
    }

    /// `spool/errors/`: one file for each failure that nobody has dismissed.
    #[must_use]
    pub fn errors(&self) -> PathBuf {
        self.root.join("spool/errors")
    }

    /// `state/`.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.root.join("state")
    }

    /// `state/tmux-socket`: the socket of the tmux server that the last sidecar has used, a line. Commands name that
    /// server when they say how to start a sidecar again; the sidecar itself never reads it.
    #[must_use]
    pub fn last_socket(&self) -> PathBuf {
        self.root.join("state/tmux-socket")
    }

    /// `view/`.
    #[must_use]
    pub fn view(&self) -> PathBuf {
        self.root.join("view")
    }

    /// `view/agents/`.
    #[must_use]
    pub fn agent_views(&self) -> PathBuf {
        self.root.join("view/agents")
    }

    /// `view/handoffs/`.
    #[must_use]
    pub fn handoff_views(&self) -> PathBuf {
        self.root.join("view/handoffs")
    }

    /// `view/work/`.
    #[must_use]
    pub fn work_views(&self) -> PathBuf {
        self.root.join("view/work")
    }

    /// `view/work/open/`: a name for each item that is not done.
    #[must_use]
    pub fn open_work(&self) -> PathBuf {
        self.root.join("view/work/open")
    }

    /// `fleet/`: the files of the bridge to other hosts. There is none if this home has joined no fleet.
    #[must_use]
    pub fn fleet(&self) -> PathBuf {
        self.root.join("fleet")
    }

    /// `data/personas/`.
    #[must_use]
    pub fn personas(&self) -> PathBuf {
        self.root.join("data/personas")
    }

    /// `data/profiles/`.
    #[must_use]
    pub fn profiles(&self) -> PathBuf {
        self.root.join("data/profiles")
    }

    /// `data/prompts/`.
    #[must_use]
    pub fn prompts(&self) -> PathBuf {
        self.root.join("data/prompts")
    }

    /// `data/rules.toml`.
    #[must_use]
    pub fn rules(&self) -> PathBuf {
        self.root.join("data/rules.toml")
    }
}

/// The path without links, as far as it exists.
fn without_links(path: &Path) -> PathBuf {
    let known = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    known.map_or_else(
        || path.to_owned(),
        |(above, real)| path.strip_prefix(above).map_or_else(|_| path.to_owned(), |rest| join(real, rest)),
    )
}

/// Joins two paths, without the slash at the end that an empty `rest` would leave.
fn join(real: PathBuf, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { real } else { real.join(rest) }
}
