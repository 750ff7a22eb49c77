//! `--fix`: repairs only what is safe. It never touches the state file or another user's file. In a person's own files
//! it makes two changes: `config.toml` loses write access for others, and outdated hooks of this home are replaced.

use super::check::{Check, Repair};
use super::ground::DoctorFacts;
use super::paths::set_mode;
use crate::agents::Profiles;
use crate::agents::install::{Context, Way};
use crate::clock::Clock;
use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes the repairs. Returns for each repaired check, by its id, what was done or why it could not be done.
pub(super) fn all(ground: &DoctorFacts, checks: &[Check]) -> BTreeMap<String, Result<String, String>> {
    let wanted = checks.iter().filter_map(|check| Some((check.id.clone(), check.repair.as_ref()?)));
    wanted.map(|(id, repair)| (id, one(ground, repair))).collect()
}

fn one(ground: &DoctorFacts, repair: &Repair) -> Result<String, String> {
    match repair {
        Repair::Modes(modes) => {
            for (path, mode) in modes {
                set_mode(path, *mode).map_err(|error| format!("{}: {error}", path.display()))?;
            }
            let told = modes.iter().map(|(path, mode)| format!("{} has mode {mode:04o}", path.display()));
            Ok(told.collect::<Vec<_>>().join("; "))
        }
        Repair::Folders(folders) => {
            for folder in folders {
                make(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            }
            Ok(format!("{} folders were created, accessible only to you", folders.len()))
        }
        Repair::Left(files) => {
            let gone = files.iter().filter(|file| std::fs::remove_file(file).is_ok()).count();
            match files.len() - gone {
                0 => Ok(format!("{gone} left-over files were removed")),
                left => Err(format!("{left} files could not be removed")),
            }
        }
        Repair::Hooks(profile) => hooks(ground, profile),
    }
}

/// Makes one folder. Its parent exists by then, because the list names parents first.
fn make(folder: &Path) -> std::io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn hooks(ground: &DoctorFacts, name: &str) -> Result<String, String> {
    let profiles = Profiles::load(Some(&ground.home.profiles())).map_err(|error| error.to_string())?;
    let profile = profiles.get(name).ok_or("there is no such profile")?;
    let program = ground.program.as_ref().ok_or("tasuki can't find the path of its own program")?;
    let context = Context { program, home: ground.home.root(), env: &|name| std::env::var_os(name) };
    let planned = profile.plan_install(&context).map_err(|error| error.to_string())?;
    let more = profile.plan_files(&context, Way::In).map_err(|error| error.to_string())?;
    let file = planned.file().display().to_string();
    let now = Clock::new().now().wall_ms;
    let kept = planned.apply(now).map_err(|error| error.to_string())?;
    for change in more.into_iter().filter_map(|file| file.change) {
        change.apply(now).map_err(|error| error.to_string())?;
    }
    let kept = kept.map(|copy| format!("; the previous version is kept in {}", copy.display())).unwrap_or_default();
    Ok(format!("the hooks in {file} were installed again{kept}"))
}
