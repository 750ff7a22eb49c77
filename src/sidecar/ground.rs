//! What must be safe before the sidecar starts: the home's own folders, and the files in them that name programs or are
//! typed.

use super::failed::{StartFailure, fails};
use crate::agents::{ProfileError, Profiles};
use crate::config::Home;
use crate::core::prompts::{self, Prompts};
use crate::core::text::sanitise;
use crate::exit;
use crate::files::way;
use anyhow::{Context, anyhow};
use std::collections::BTreeMap;
use std::path::Path;

/// The most bytes of a template.
const MAX_TEMPLATE: u64 = 256 * 1024;

/// Checks the home's path. It is typed to agents between backticks, and appears in the log and in commands: a path that
/// can't be written there unchanged would fail each handoff.
pub(super) fn check_name(home: &Home) -> Result<(), StartFailure> {
    let named = home.root().to_str().filter(|path| sanitise(path) == *path && !path.contains(['`', '\n', '\t']));
    if named.is_some() {
        return Ok(());
    }
    let shown = sanitise(&home.root().to_string_lossy());
    let error = anyhow!(
        "the home's path {shown:?} has a character that can't be shown or typed as it is: choose a home whose path is \
         UTF-8 without control characters and backticks. Nothing was created"
    );
    Err(StartFailure { code: exit::CONFIG, error })
}

/// The home's own folders that the spool does not make.
pub(super) fn make_home(home: &Home) -> Result<(), StartFailure> {
    for folder in [home.root().to_path_buf(), home.personas(), home.profiles(), home.prompts()] {
        let made = std::os::unix::fs::DirBuilderExt::mode(std::fs::DirBuilder::new().recursive(true), 0o700)
            .create(&folder)
            .with_context(|| format!("could not create the folder {}", folder.display()));
        fails(exit::CONFIG, made)?;
    }
    let data = home.root().join("data");
    [data, home.personas(), home.profiles(), home.prompts()].iter().try_for_each(|folder| trust(folder).map(drop))
}

/// Checks that only this user can write a file that names programs, or whose text is typed. Returns whether it exists.
fn trust(path: &Path) -> Result<bool, StartFailure> {
    match way::trust_if_there(path) {
        Ok(is_there) => Ok(is_there),
        Err(way::Unsafe::Io { path, source }) => {
            let looked = Err(source).with_context(|| format!("could not look at {}", path.display()));
            fails(exit::CONFIG, looked)
        }
        Err(error @ way::Unsafe::Exposed { .. }) => {
            let error = anyhow!("{error}. tasuki runs or types what is there, so it was not read");
            Err(StartFailure { code: exit::NOT_ALLOWED, error })
        }
    }
}

pub(super) fn load_profiles(home: &Home) -> Result<Profiles, StartFailure> {
    Profiles::load(Some(&home.profiles())).or_else(|error| {
        let code = if matches!(error, ProfileError::Exposed(_)) { exit::NOT_ALLOWED } else { exit::CONFIG };
        fails(code, Err(error))
    })
}

/// What is wrong with the home's own prompts, if anything is.
#[must_use]
pub fn fault_of_prompts(home: &Home) -> Option<String> {
    load_prompts(home).err().map(|failed| format!("{:#}", failed.error))
}

pub(super) fn load_prompts(home: &Home) -> Result<Prompts, StartFailure> {
    let mut overrides = BTreeMap::new();
    trust(&home.prompts())?;
    for name in prompts::names() {
        let path = home.prompts().join(format!("{name}.md"));
        if !trust(&path)? {
            continue;
        }
        let meta = std::fs::metadata(&path).with_context(|| format!("could not look at {}", path.display()));
        let meta = fails(exit::CONFIG, meta)?;
        if !meta.is_file() || meta.len() > MAX_TEMPLATE {
            let error = anyhow!("{} is not a readable file of at most {MAX_TEMPLATE} bytes", path.display());
            return Err(StartFailure { code: exit::CONFIG, error });
        }
        let text = std::fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()));
        overrides.insert(name.to_owned(), fails(exit::CONFIG, text)?);
    }
    fails(exit::CONFIG, Prompts::new(&overrides))
}
