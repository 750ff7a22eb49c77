//! Personas: folders in `data/personas/`. A folder with a `skill.md` is a persona; there is no other registration.

use crate::contract::document::DocumentCheck;
use crate::core::id::Slug;
use crate::core::persona::{MAX_FALLBACKS, ProfileChoice, PublishDefault, check_model};
use crate::core::text::{line_of, quotable};
use crate::files::{self, Grade, Unfit, way};
use crate::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The most that `skill.md` or `experience.md` may hold, in bytes.
pub const MAX_TEXT_BYTES: u64 = 1024 * 1024;
/// The most that `persona.toml` may hold, in bytes.
const MAX_TOML_BYTES: u64 = 64 * 1024;
const MAX_PERSONAS: usize = 10_000;
/// The largest number of document names that are listed.
const MAX_DOCUMENTS: usize = 100_000;
/// The fixed temporary name of a file in a folder that is still private to this call.
const TEMP: &str = ".tasuki-new";

/// `data/personas/<slug>/persona.toml`, which is optional, as all its keys are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PersonaFile {
    /// The name that people read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The profile of agents that are started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The folder in which they work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The role that it plays for work items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The tmux session in which its windows are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What is done about faults of its documents, instead of `document.check` in config.toml.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<DocumentCheck>,
    /// Other profiles, each with a model if one is wanted, on which the work continues if a limit of the agent's CLI is
    /// reached; the first that can be used is taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<ProfileChoice>,
    /// Where its documents are published, instead of `publish.to` in config.toml: "owner/repo#42", "gist", or false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publish: Option<PublishDefault>,
}

/// What is known of one persona, for a decision.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersonaOnDisk {
    pub exists: bool,
    pub has_skill: bool,
    pub file: PersonaFile,
    /// The names in its `handoffs/`, in order; not complete beyond 100,000.
    pub handoff_files: Vec<String>,
}

/// A persona that comes with the program.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    pub slug: &'static str,
    pub toml: &'static str,
    pub skill: &'static str,
    pub experience: Option<&'static str>,
}

/// The personas that come with the program; the first is what a new one is made from.
pub const EXAMPLES: [Example; 3] = [
    Example {
        slug: "developer",
        toml: include_str!("../data/personas/developer/persona.toml"),
        skill: include_str!("../data/personas/developer/skill.md"),
        experience: Some(include_str!("../data/personas/developer/experience.md")),
    },
    Example {
        slug: "project-manager",
        toml: include_str!("../data/personas/project-manager/persona.toml"),
        skill: include_str!("../data/personas/project-manager/skill.md"),
        experience: None,
    },
    Example {
        slug: "scrum-master",
        toml: include_str!("../data/personas/scrum-master/persona.toml"),
        skill: include_str!("../data/personas/scrum-master/skill.md"),
        experience: None,
    },
];

/// Trouble with a persona's files. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The persona does not exist, or has no `skill.md`.
    #[error("{path}: there is no such file; a persona is a folder with a skill.md")]
    Missing { path: String },
    /// A file is not fit to be read.
    #[error("{path}: {why}; nothing was changed")]
    Unfit { path: String, why: String },
    #[error("{path}, line {line}: {message}")]
    Wrong {
        path: String,
        /// The line, from 1.
        line: usize,
        message: String,
    },
    #[error("{path}: a persona with that name already exists; nothing was changed. Choose another name")]
    Taken { path: String },
    #[error("could not {action} {path}: {source}")]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        path: String,
        source: io::Error,
    },
}

impl Error {
    fn io(action: &'static str, path: &Path, source: io::Error) -> Error {
        Error::Io { action, path: path.display().to_string(), source }
    }

    /// The system's error, if it says nothing about the thing that was looked at.
    #[must_use]
    pub fn unavailable(&self) -> Option<&io::Error> {
        match self {
            Error::Io { source, .. } if limits::is_unavailable(source) => Some(source),
            _ => None,
        }
    }

    fn unfit(path: &Path, unfit: Unfit) -> Error {
        match unfit {
            Unfit::Missing => Error::Missing { path: path.display().to_string() },
            Unfit::Io(source) => Error::io("read", path, source),
            other => Error::Unfit { path: path.display().to_string(), why: other.to_string() },
        }
    }
}

/// What is known of a persona; that it does not exist is a fact too. `personas` is `HOME/data/personas`.
///
/// # Errors
/// Its folder or its `skill.md` is a link, for example, or its `persona.toml` is wrong: file and line are named.
pub fn facts(personas: &Path, slug: &Slug) -> Result<PersonaOnDisk, Error> {
    let path = personas.join(slug.as_str());
    let Some(dir) = open(personas, slug)? else { return Ok(PersonaOnDisk::default()) };
    let skill_path = path.join("skill.md");
    let skill = files::meta_at(&dir, "skill.md").map_err(|error| Error::io("look at", &skill_path, error))?;
    if let Some(meta) = &skill {
        files::check_own(meta, MAX_TEXT_BYTES).map_err(|unfit| Error::unfit(&skill_path, unfit))?;
        guard(&skill_path)?;
    }
    let file = read_toml(&dir, &path.join("persona.toml"))?;
    Ok(PersonaOnDisk { exists: true, has_skill: skill.is_some(), file, handoff_files: handoff_files(personas, slug)? })
}

/// The stamp of a persona's own file; none if it does not exist.
#[must_use]
pub fn file_stamp(personas: &Path, slug: &Slug) -> Option<files::FileStamp> {
    files::file_stamp(&personas.join(slug.as_str()).join("persona.toml"))
}

/// The role that a persona's own file names.
///
/// # Errors
/// As [`facts`].
pub fn role(personas: &Path, slug: &Slug) -> Result<Option<String>, Error> {
    let Some(dir) = open(personas, slug)? else { return Ok(None) };
    Ok(read_toml(&dir, &personas.join(slug.as_str()).join("persona.toml"))?.role)
}

/// The names of all personas, in order: folders with a legal name and a `skill.md`.
///
/// # Errors
/// The folder can't be read. A missing folder holds no personas.
pub fn list(personas: &Path) -> Result<Vec<Slug>, Error> {
    let dir = match files::open_dir(personas) {
        Ok(dir) => dir,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("list the folder", personas, error)),
    };
    let legal = |name: &OsStr| name.to_str().is_some_and(|name| name.parse::<Slug>().is_ok());
    let listed = files::names(&dir, MAX_PERSONAS, legal);
    let (names, _) = listed.map_err(|error| Error::io("list the folder", personas, error))?;
    let has_skill = |slug: &Slug| {
        files::open_dir_at(&dir, slug.as_str())
            .is_ok_and(|persona| files::meta_at(&persona, "skill.md").is_ok_and(|skill| skill.is_some()))
    };
    let mut slugs: Vec<Slug> = names.iter().filter_map(|name| name.to_str()?.parse().ok()).filter(has_skill).collect();
    slugs.sort_unstable();
    Ok(slugs)
}

/// The skill, and the experience if there is one: the texts that prime a successor.
///
/// # Errors
/// There is no skill, it is empty, or a file is a link, too large or not UTF-8.
pub fn read_texts(personas: &Path, slug: &Slug) -> Result<(String, Option<String>), Error> {
    let path = personas.join(slug.as_str());
    let skill_path = || path.join("skill.md").display().to_string();
    let dir = open(personas, slug)?.ok_or_else(|| Error::Missing { path: skill_path() })?;
    let skill = Some(read_text(&dir, &path, "skill.md")?).filter(|text| !text.trim().is_empty());
    let skill = skill.ok_or_else(|| Error::Unfit { path: skill_path(), why: "it is empty".to_owned() })?;
    match read_text(&dir, &path, "experience.md") {
        Err(Error::Missing { .. }) => Ok((skill, None)),
        read => Ok((skill, Some(read?).filter(|text| !text.trim().is_empty()))),
    }
}

/// Makes a persona from the example of the same name, or else from the first one, with `file` over the example's
/// values. It appears whole or not at all. Returns its folder.
///
/// # Errors
/// There is one of that name, or the system refuses.
pub fn create(personas: &Path, slug: &Slug, file: &PersonaFile) -> Result<PathBuf, Error> {
    let path = personas.join(slug.as_str());
    let failed = |error: io::Error| Error::io("create the persona", &path, error);
    let example = EXAMPLES.iter().find(|example| example.slug == slug.as_str());
    let (example, own) = (example.unwrap_or(&EXAMPLES[0]), example.is_some());
    let toml = toml_of(example, own, file, slug).map_err(|error| failed(io::Error::other(error)))?;
    std::os::unix::fs::DirBuilderExt::mode(std::fs::DirBuilder::new().recursive(true), 0o700)
        .create(personas)
        .map_err(failed)?;
    let root = files::open_dir(personas).map_err(failed)?;
    // Calls at the same time take turns: they would write into the same unfinished folder, and remove it.
    let _turn = files::open_dir(personas).and_then(files::lock_dir).map_err(failed)?;
    // Made under a name that is not a slug, so that an unfinished folder is never read as a persona; a later call
    // continues what a crash left.
    let temp = format!(".new-{slug}");
    let dir = files::make_dir_at(&root, &temp).map_err(failed)?;
    let write = |name: &str, text: &str| {
        files::replace_at(&dir, OsStr::new(TEMP), OsStr::new(name), text.as_bytes(), Grade::Durable).map_err(failed)
    };
    write("persona.toml", &toml)?;
    if let Some(text) = example.experience {
        write("experience.md", text)?;
    }
    write("skill.md", example.skill)?;
    files::make_dir_at(&dir, "handoffs").map_err(failed)?;
    match move_folder(&root, &temp, slug) {
        Ok(()) => Ok(path),
        Err(error) => {
            let _ = std::fs::remove_dir_all(personas.join(&temp));
            match error.kind() {
                io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => {
                    Err(Error::Taken { path: path.display().to_string() })
                }
                _ => Err(failed(error)),
            }
        }
    }
}

/// A plain rename would replace an empty folder. That is checked first, because systems have no rename without
/// replacement for folders.
fn move_folder(root: &OwnedFd, temp: &str, slug: &Slug) -> io::Result<()> {
    if files::meta_at(root, slug.as_str())?.is_some() {
        return Err(io::Error::from(io::ErrorKind::AlreadyExists));
    }
    nix::fcntl::renameat(root, temp, root, slug.as_str())?;
    if let Err(error) = files::sync_folder(root) {
        // The caller will report that there is no such persona. If it can't be moved back, it counts as made.
        return nix::fcntl::renameat(root, slug.as_str(), root, temp).map_or(Ok(()), |()| Err(error));
    }
    Ok(())
}

fn toml_of(example: &Example, own: bool, file: &PersonaFile, slug: &Slug) -> Result<String, String> {
    let base: PersonaFile = toml::from_str(example.toml).map_err(|error| error.to_string())?;
    let name = if own { base.name } else { Some(slug.to_string()) };
    let merged = PersonaFile {
        name: file.name.clone().or(name),
        profile: file.profile.clone().or(base.profile),
        cwd: file.cwd.clone().or(base.cwd),
        role: file.role.clone().or(base.role),
        session: file.session.clone().or(base.session),
        check: file.check.or(base.check),
        fallbacks: if file.fallbacks.is_empty() { base.fallbacks } else { file.fallbacks.clone() },
        publish: file.publish.clone().or(base.publish),
    };
    let keys = toml::to_string(&merged).map_err(|error| error.to_string())?;
    Ok(format!("# All keys are optional: name, profile, cwd, role, session, check, fallbacks, publish.\n{keys}"))
}

fn open(personas: &Path, slug: &Slug) -> Result<Option<OwnedFd>, Error> {
    let path = personas.join(slug.as_str());
    guard(&path)?;
    let opened = files::open_dir(personas).and_then(|root| files::open_dir_at(&root, slug.as_str()));
    match opened {
        Ok(dir) => Ok(Some(dir)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if files::is_not_a_dir(&error) => {
            let why = "it is a link or a file; a persona is a folder".to_owned();
            Err(Error::Unfit { path: path.display().to_string(), why })
        }
        Err(error) => Err(Error::io("open the folder", &path, error)),
    }
}

/// These files are typed, and name a folder and a profile: no other user may be able to change them. A missing file
/// or a link is reported where it is read.
fn guard(path: &Path) -> Result<(), Error> {
    match way::trust_if_there(path) {
        Err(way::Unsafe::Exposed { path, what, fix }) => {
            Err(Error::Unfit { path: path.display().to_string(), why: format!("it {what}; {fix}") })
        }
        _ => Ok(()),
    }
}

fn read_toml(dir: &OwnedFd, path: &Path) -> Result<PersonaFile, Error> {
    guard(path)?;
    let bytes = match files::read_own_at(dir, OsStr::new("persona.toml"), MAX_TOML_BYTES) {
        Ok((bytes, _)) => bytes,
        Err(Unfit::Missing) => return Ok(PersonaFile::default()),
        Err(unfit) => return Err(Error::unfit(path, unfit)),
    };
    let text = utf8(bytes, path)?;
    let wrong = |line: usize, message: &str| Error::Wrong {
        path: path.display().to_string(),
        line,
        message: quotable(message.trim(), 400),
    };
    let file: PersonaFile =
        toml::from_str(&text).map_err(|error| wrong(line_of(&text, error.span()), error.message()))?;
    match fallback_fault(&file.fallbacks) {
        None => Ok(file),
        Some(why) => {
            let line = text.lines().position(|line| line.contains("fallbacks")).unwrap_or(0);
            Err(wrong(line + 1, &why))
        }
    }
}

/// What of the fallbacks serde can't see to be wrong.
fn fallback_fault(fallbacks: &[ProfileChoice]) -> Option<String> {
    if fallbacks.len() > MAX_FALLBACKS {
        return Some(format!("fallbacks may hold at most {MAX_FALLBACKS} entries"));
    }
    let fault = |choice: &ProfileChoice| {
        if choice.profile.parse::<Slug>().is_err() {
            return Some(format!("fallbacks: {} is not the name of a profile", choice.profile));
        }
        check_model("fallbacks", choice.model.as_deref()?).err().map(|refused| refused.message)
    };
    fallbacks.iter().find_map(fault)
}

fn read_text(dir: &OwnedFd, folder: &Path, name: &str) -> Result<String, Error> {
    let path = folder.join(name);
    guard(&path)?;
    match files::read_own_at(dir, OsStr::new(name), MAX_TEXT_BYTES) {
        Ok((bytes, _)) => utf8(bytes, &path),
        Err(unfit) => Err(Error::unfit(&path, unfit)),
    }
}

fn utf8(bytes: Vec<u8>, path: &Path) -> Result<String, Error> {
    String::from_utf8(bytes)
        .map_err(|_| Error::Unfit { path: path.display().to_string(), why: "it is not UTF-8".to_owned() })
}

/// The names in a persona's `handoffs/`, whatever its other files are like.
pub(crate) fn handoff_files(personas: &Path, slug: &Slug) -> Result<Vec<String>, Error> {
    let path = personas.join(slug.as_str()).join("handoffs");
    let Some(dir) = open(personas, slug)? else { return Ok(Vec::new()) };
    let handoffs = match files::open_dir_at(dir, "handoffs") {
        Ok(handoffs) => handoffs,
        // A link or a file there is reported when a document is to be written.
        Err(error) if error.kind() == io::ErrorKind::NotFound || files::is_not_a_dir(&error) => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("open the folder", &path, error)),
    };
    let listed = files::names(&handoffs, MAX_DOCUMENTS, |name| name.to_str().is_some());
    let names = listed.map_err(|error| Error::io("list the folder", &path, error))?.0;
    let mut names: Vec<String> = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_os = "linux")]
    fn a_persona_whose_folder_cant_be_synced_is_taken_back() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(dir.path().join(".new-kai")).expect("a folder");
        // The names in such a folder can be changed, but it can't be synced.
        let root = nix::fcntl::open(dir.path(), nix::fcntl::OFlag::O_PATH, nix::sys::stat::Mode::empty());
        let moved = super::move_folder(&root.expect("a folder"), ".new-kai", &"kai".parse().expect("a slug"));
        assert!(moved.is_err() && dir.path().join(".new-kai").exists() && !dir.path().join("kai").exists());
    }
}
