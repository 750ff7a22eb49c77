//! tasuki as a service of its user: the programs that can be one ([`ServiceProgram`]), the files that systemd and
//! launchd read ([`mod@unit`], [`plist`]), their contents ([`Plan`]), and the messages to systemd while the sidecar
//! runs ([`watchdog`]).

pub mod plist;
mod program;
pub mod unit;
pub mod watchdog;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub use program::{BRIDGE, SERVICE_VARIABLE, SIDECAR, ServiceProgram};

/// The variables that a service needs, because its own environment is almost empty and no shell sets them: where
/// programs and tmux's sockets are, the terminal's language, and the time zone in which CLIs write times without a
/// zone.
const KEPT: [&str; 13] = [
    "PATH",
    "TMUX_TMPDIR",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "GH_CONFIG_DIR",
    "GH_HOST",
    "TASUKI_LOG",
    "TASUKI_TMUX",
];

/// Longest value of a variable that is written into a file, in bytes.
const MAX_VALUE: usize = 16 * 1024;

/// The contents of a service file, before they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The program that the service runs.
    pub service: &'static ServiceProgram,
    /// The path of its executable.
    pub program: PathBuf,
    pub home: PathBuf,
    /// The tmux server, if one was named.
    pub tmux: Option<String>,
    pub environment: BTreeMap<String, String>,
    /// The sidecar may start a tmux server. Whatever confines the sidecar would confine that server and every agent in
    /// it, so the unit gets no confining lines.
    pub starts_server: bool,
    /// Where launchd writes the program's output.
    pub log: PathBuf,
}

/// The contents of a service file that tasuki wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The words of the command line.
    pub words: Vec<String>,
    /// The variables that were taken from the shell in which the file was written.
    pub environment: Vec<(String, String)>,
}

impl Written {
    /// The home that the command line names, if it names one.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        let at = self.words.iter().position(|word| word == "--home")?;
        self.words.get(at + 1).map(Path::new)
    }

    /// The plan from which launchd's file would be written again; `None` if the command line is not as tasuki writes
    /// it. For systemd's, the caller sets `starts_server`, which the file does not say. `log`: where launchd writes the
    /// program's output.
    #[must_use]
    pub fn plan(&self, service: &'static ServiceProgram, log: PathBuf) -> Option<Plan> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let (program, home, tmux) = match words.as_slice() {
            [program, "--home", home, "run"] => (program, home, None),
            [program, "--home", home, "run", "--tmux", tmux] => (program, home, Some((*tmux).to_owned())),
            _ => return None,
        };
        Some(Plan {
            service,
            program: PathBuf::from(program),
            home: PathBuf::from(home),
            tmux,
            environment: self.environment.iter().cloned().collect(),
            starts_server: false,
            log,
        })
    }
}

/// Why a value can't be written into a service file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} can't be written into a service file: {why}. Nothing was changed")]
pub struct UnfitValue {
    pub what: String,
    pub why: &'static str,
}

impl Plan {
    /// The words of the command line.
    ///
    /// # Errors
    /// One of the paths is not UTF-8.
    pub fn words(&self) -> Result<Vec<String>, UnfitValue> {
        let mut words = vec![text("the path of this program", &self.program)?, "--home".to_owned()];
        words.extend([text("the path of the home", &self.home)?, "run".to_owned()]);
        if let Some(tmux) = &self.tmux {
            words.extend(["--tmux".to_owned(), fit("the name of the tmux server", tmux)?.to_owned()]);
        }
        Ok(words)
    }
}

/// The variables that go into a service file, and the names of those that are set but can't be written.
pub fn environment(get: impl Fn(&str) -> Option<OsString>) -> (BTreeMap<String, String>, Vec<&'static str>) {
    let (mut kept, mut left_out) = (BTreeMap::new(), Vec::new());
    for name in KEPT {
        let Some(value) = get(name).filter(|value| !value.is_empty()) else { continue };
        match std::str::from_utf8(value.as_bytes()).ok().filter(|value| fit(name, value).is_ok()) {
            Some(value) => {
                kept.insert(name.to_owned(), value.to_owned());
            }
            None => left_out.push(name),
        }
    }
    (kept, left_out)
}

fn text(what: &str, path: &Path) -> Result<String, UnfitValue> {
    let text = path.to_str().ok_or(UnfitValue { what: what.to_owned(), why: "it is not UTF-8" })?;
    fit(what, text).map(str::to_owned)
}

fn fit<'a>(what: &str, value: &'a str) -> Result<&'a str, UnfitValue> {
    let unfit = |why| Err(UnfitValue { what: what.to_owned(), why });
    if value.len() > MAX_VALUE {
        return unfit("it is too long");
    }
    if value.chars().any(char::is_control) {
        return unfit("it holds control characters");
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_service_needs_is_kept_and_what_cannot_be_written_is_named() {
        let get = |name: &str| match name {
            "PATH" => Some(OsString::from("/opt/bin:/usr/bin")),
            "LANG" => Some(OsString::from("C.UTF-8\nExecStart=/bin/evil")),
            "AWS_SECRET_ACCESS_KEY" => Some(OsString::from("secret")),
            _ => None,
        };
        let (kept, left_out) = environment(get);
        assert_eq!(kept, BTreeMap::from([("PATH".to_owned(), "/opt/bin:/usr/bin".to_owned())]));
        assert_eq!(left_out, ["LANG"]);
    }
}
