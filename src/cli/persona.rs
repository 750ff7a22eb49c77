//! `persona new` and `persona list`. A persona is a folder; making the folder is the registration, so no sidecar is
//! needed for it (SPEC section 12, Persona).

use super::Session;
use super::args::{PersonaArgs, PersonaCommand};
use super::error::CliError;
use super::output::eprint_quietly;
use super::{agents, view};
use crate::core::id::Slug;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The largest `persona.toml` that is read, in bytes.
const LARGEST_TOML: u64 = 64 << 10;

/// Makes or lists personas.
///
/// # Errors
/// When a folder can't be read or made, or is there already.
pub fn command(session: &Session, command: &PersonaCommand) -> Result<(), CliError> {
    match command {
        PersonaCommand::New(args) => {
            let folder = create(&session.home.personas(), args)?;
            let answer = json!({"persona_slug": args.slug.as_str(), "path": folder});
            session.tell(&answer, &format!("persona {} in {}", args.slug, folder.display()))?;
            session.out.note(&format!("Edit its skill.md, then start an agent: tasuki agent create {}", args.slug));
            Ok(())
        }
        PersonaCommand::List => list(session),
    }
}

/// Makes a persona's folder under `personas`. The skill comes last: without it the folder is not yet a persona.
pub(crate) fn create(personas: &Path, args: &PersonaArgs) -> Result<PathBuf, CliError> {
    let folder = personas.join(args.slug.as_str());
    let failed = |path: &Path, error: &std::io::Error| CliError::file("Can't make", path, error);
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700);
    builder.recursive(true).create(personas).map_err(|error| failed(personas, &error))?;
    builder.recursive(false).create(&folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            CliError::refused("persona_exists", format!("{} is there already and was left as it is.", folder.display()))
                .hint("Edit its files, or take another slug.")
        }
        _ => failed(&folder, &error),
    })?;
    let handoffs = folder.join("handoffs");
    builder.create(&handoffs).map_err(|error| failed(&handoffs, &error))?;
    for (name, text) in [("persona.toml", settings(args)?), ("skill.md", skill(args))] {
        let path = folder.join(name);
        write_new(&path, &text).map_err(|error| failed(&path, &error))?;
    }
    Ok(folder)
}

fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// `persona.toml` with the keys that were given.
fn settings(args: &PersonaArgs) -> Result<String, CliError> {
    let mut table = toml::Table::new();
    let cwd = args.cwd.as_deref().map(agents::folder).transpose()?;
    for (key, value) in [("name", &args.name), ("role", &args.role), ("profile", &args.profile), ("cwd", &cwd)] {
        if let Some(value) = value {
            table.insert(key.to_owned(), toml::Value::String(value.clone()));
        }
    }
    let head = "# All keys are optional: name, profile, cwd, role, session.\n";
    Ok(format!("{head}{table}"))
}

/// The skill's first text, for a person to go on with.
fn skill(args: &PersonaArgs) -> String {
    let name = args.name.as_deref().unwrap_or(args.slug.as_str());
    let role = args.role.as_deref().unwrap_or("software developer");
    format!(
        "# {name}\n\nYou are {name}, a {role}. Work in small steps, say what you found before you say what you did, and\n\
         leave things so that whoever comes after you can go on at once.\n"
    )
}

fn list(session: &Session) -> Result<(), CliError> {
    let mut found = Vec::new();
    let folder = session.home.personas();
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries.take(view::MOST_NAMES).filter_map(Result::ok).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(CliError::file("Can't read", &folder, &error)),
    };
    for entry in entries {
        let slug = entry.file_name().into_string().ok().and_then(|name| name.parse::<Slug>().ok());
        if let Some(slug) = slug.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            found.push(about(&entry.path(), &slug));
        }
    }
    found.sort_by_key(|persona| view::cell(persona, "persona_slug"));
    if session.out.is_json() {
        return session.out.document(&Value::Array(found));
    }
    if found.is_empty() {
        session.out.note("No personas. Make one with: tasuki persona new SLUG");
        return Ok(());
    }
    let skill = |persona: &Value| match persona.get("has_skill").and_then(Value::as_bool) {
        Some(true) => "skill.md".to_owned(),
        _ => "no skill.md".to_owned(),
    };
    let row = |persona: &Value| {
        let cell = |key: &str| view::cell(persona, key);
        vec![cell("persona_slug"), cell("name"), cell("role"), cell("profile"), skill(persona)]
    };
    session.out.table(&["PERSONA", "NAME", "ROLE", "PROFILE", "SKILL"], &found.iter().map(row).collect::<Vec<_>>())
}

/// What a persona's folder says of itself. A `persona.toml` that can't be read is said so, and the list goes on.
fn about(folder: &Path, slug: &Slug) -> Value {
    let path = folder.join("persona.toml");
    let read = view::read_bytes(&path, LARGEST_TOML).map_err(|error| error.message).and_then(|bytes| {
        let text = String::from_utf8(bytes.unwrap_or_default()).map_err(|error| error.to_string())?;
        text.parse::<toml::Table>().map_err(|error| format!("{}: {}", path.display(), error.message()))
    });
    let table = read.unwrap_or_else(|message| {
        eprint_quietly(&format!("tasuki: {message}"));
        toml::Table::new()
    });
    let key = |name: &str| table.get(name).and_then(toml::Value::as_str);
    let has_skill = fs::symlink_metadata(folder.join("skill.md")).is_ok_and(|file| file.is_file());
    json!({
        "persona_slug": slug.as_str(), "name": key("name"), "role": key("role"), "profile": key("profile"),
        "cwd": key("cwd"), "session": key("session"), "has_skill": has_skill, "path": folder,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn args(slug: &str) -> PersonaArgs {
        let slug = slug.parse().expect("a legal slug");
        PersonaArgs {
            slug,
            name: Some("Kai \"K\"".to_owned()),
            role: None,
            profile: Some("demo".to_owned()),
            cwd: None,
        }
    }

    #[test]
    fn a_new_persona_is_a_private_folder_with_a_skill() {
        let home = tempfile::tempdir().expect("a folder");
        let personas = home.path().join("data/personas");
        let folder = create(&personas, &args("kai")).expect("made");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join("skill.md"))), (0o700, 0o600));
        assert!(folder.join("handoffs").is_dir());
        let about = about(&folder, &"kai".parse().expect("a legal slug"));
        assert_eq!((about["name"].as_str(), about["profile"].as_str()), (Some("Kai \"K\""), Some("demo")));
        assert_eq!(about["has_skill"], json!(true));
    }

    #[test]
    fn a_persona_that_is_there_is_left_as_it_is() {
        let home = tempfile::tempdir().expect("a folder");
        create(home.path(), &args("kai")).expect("made");
        fs::write(home.path().join("kai/skill.md"), "mine").expect("written");
        assert_eq!(create(home.path(), &args("kai")).expect_err("refused").code, "persona_exists");
        assert_eq!(fs::read_to_string(home.path().join("kai/skill.md")).expect("there"), "mine");
    }
}
