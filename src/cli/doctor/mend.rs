//! `--fix`: what is safe, and only to what is tasuki's own. Never a database, never a person's file but for hooks that
//! were installed there before, never what belongs to another user.

use super::check::{Check, Mend};
use super::ground::Ground;
use super::paths::set_mode;
use crate::agents::Profiles;
use crate::agents::install::Context;
use crate::clock::Clock;
use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Mends what can be mended. Gives, by the names of checks, what was done, or why it could not be.
pub(super) fn all(ground: &Ground, checks: &[Check]) -> BTreeMap<String, Result<String, String>> {
    let wanted = checks.iter().filter_map(|check| Some((check.id.clone(), check.mend.as_ref()?)));
    wanted.map(|(id, mend)| (id, one(ground, mend))).collect()
}

fn one(ground: &Ground, mend: &Mend) -> Result<String, String> {
    match mend {
        Mend::Modes(modes) => {
            for (path, mode) in modes {
                set_mode(path, *mode).map_err(|error| format!("{}: {error}", path.display()))?;
            }
            let told = modes.iter().map(|(path, mode)| format!("{} has mode {mode:04o}", path.display()));
            Ok(told.collect::<Vec<_>>().join("; "))
        }
        Mend::Folders(folders) => {
            for folder in folders {
                make(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            }
            Ok(format!("{} folders were made, for you alone", folders.len()))
        }
        Mend::Left(files) => {
            let gone = files.iter().filter(|file| std::fs::remove_file(file).is_ok()).count();
            match files.len() - gone {
                0 => Ok(format!("{gone} files that were left over were removed")),
                left => Err(format!("{left} files could not be removed")),
            }
        }
        Mend::Hooks(profile) => hooks(ground, profile),
    }
}

/// Makes one folder; parents come first in the list that was gathered.
fn make(folder: &Path) -> std::io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// As `hooks install` does.
fn hooks(ground: &Ground, name: &str) -> Result<String, String> {
    let profiles = Profiles::load(Some(&ground.home.profiles())).map_err(|error| error.to_string())?;
    let profile = profiles.get(name).ok_or("there is no such profile")?;
    let program = ground.program.as_ref().ok_or("this program's own path is not known")?;
    let context = Context { program, home: ground.home.root(), env: &|name| std::env::var_os(name) };
    let planned = profile.plan_install(&context).map_err(|error| error.to_string())?;
    let file = planned.file().display().to_string();
    let kept = planned.apply(Clock::new().now().wall_ms).map_err(|error| error.to_string())?;
    let kept = kept.map(|copy| format!("; what it was before is kept in {}", copy.display())).unwrap_or_default();
    Ok(format!("the hooks in {file} were put in anew{kept}"))
}
