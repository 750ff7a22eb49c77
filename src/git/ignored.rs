//! Finds the user's file of patterns for files to ignore in every repository. Agent CLIs add their own files to it.
//! Without it, these files would count as changes in each repository.

use super::call::{GitCaller, GitEnd, GitPlace};
use super::words::{path_of, without_break};
use std::env::var_os;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Asks git for the setting outside of any repository, so that git reads only the configuration of the user and of the
/// machine, and the files that these include. If the setting is missing, or git can't read its configuration, the
/// answer is git's own default. `None` if git does not answer in time or can't run, or if `HOME` is not set.
pub(super) async fn ignored_everywhere(caller: &GitCaller) -> Option<PathBuf> {
    let home = var_os("HOME").filter(|home| !home.is_empty())?;
    let config = var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty());
    let default = default_file(&home, config.as_deref());
    let unset = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"].map(|name| (name, None));
    let nowhere = ("GIT_DIR", Some("/nonexistent".into()));
    let mut variables = vec![("HOME", Some(home)), ("XDG_CONFIG_HOME", config), nowhere];
    variables.extend(unset);
    let place = GitPlace { cwd: PathBuf::from("/"), variables };
    let answer = caller.call(&place, &["config", "--type=path", "--get", "core.excludesFile"]).await;
    match answer.end {
        GitEnd::Exit(0) => Some(path_of(without_break(&answer.stdout)).to_owned()),
        GitEnd::Exit(_) => Some(default),
        _ => None,
    }
}

/// Where git looks if the user has set nothing.
fn default_file(home: &OsStr, config: Option<&OsStr>) -> PathBuf {
    let config = config.map_or_else(|| Path::new(home).join(".config"), PathBuf::from);
    config.join("git/ignore")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_that_of_git() {
        let home = OsStr::new("/home/kai");
        assert_eq!(default_file(home, None), Path::new("/home/kai/.config/git/ignore"));
        assert_eq!(default_file(home, Some(OsStr::new("/cfg"))), Path::new("/cfg/git/ignore"));
    }
}
