//! `persona new` and `persona list`. A persona is a folder, and making the folder registers it, so neither command
//! needs a sidecar.

use super::CliSession;
use super::agents;
use super::error::CliError;
use super::hooks;
use super::output::eprint_quietly;
use super::view::shown;
use crate::agents::Profiles;
use crate::config::Home;
use crate::core::id::Slug;
use crate::core::rules::is_name;
use crate::core::text::sanitise;
use crate::personas::{self, PersonaFile};
use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;

/// `persona …`.
#[derive(Debug, Subcommand)]
pub enum PersonaCommand {
    /// Create a persona: a folder with a skill to edit.
    #[command(after_help = "Example:\n  tasuki persona new kai --name Kai --role developer --profile demo")]
    New(PersonaArgs),
    /// List the personas.
    #[command(after_help = "Example:\n  tasuki persona list")]
    List,
}

/// `persona new`.
#[derive(Debug, Args)]
pub struct PersonaArgs {
    /// The folder's name: 1 to 64 of a-z, 0-9 and -.
    pub slug: Slug,
    /// The persona's display name.
    #[arg(long)]
    pub name: Option<String>,
    /// The persona's role, such as `developer`.
    #[arg(long)]
    pub role: Option<String>,
    /// The profile that its agents run with.
    #[arg(long)]
    pub profile: Option<String>,
    /// The folder that its agents work in.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

/// Makes or lists personas.
///
/// # Errors
/// When a folder can't be read or made, or is there already.
pub fn command(session: &CliSession, command: &PersonaCommand) -> Result<(), CliError> {
    match command {
        PersonaCommand::New(args) => create(session, args),
        PersonaCommand::List => list(session),
    }
}

fn create(session: &CliSession, args: &PersonaArgs) -> Result<(), CliError> {
    if let Some(name) = &args.profile {
        let profiles = Profiles::load(Some(&session.home.profiles()))?;
        if profiles.get(name).is_none() {
            return Err(hooks::unknown(name, &profiles));
        }
    }
    if let Some(role) = args.role.as_deref().filter(|role| !is_name(role)) {
        let said = format!("\"{}\" is not the name of a role: a role is 1 to 64 of a-z, 0-9, _ and -.", sanitise(role));
        return Err(CliError::usage(said));
    }
    let file = PersonaFile {
        name: args.name.clone(),
        profile: args.profile.clone(),
        cwd: args.cwd.as_deref().map(agents::folder).transpose()?,
        role: args.role.clone(),
        fallbacks: Vec::new(),
        session: None,
        check: None,
        publish: None,
    };
    let folder = personas::create(&session.home.personas(), &args.slug, &file)?;
    let answer = json!({"persona_slug": args.slug.as_str(), "path": folder});
    session.report(&answer, &format!("persona {} in {}", args.slug, folder.display()))?;
    let profile = if args.profile.is_some() { "" } else { " --profile NAME" };
    session.out.note(&format!("Edit its skill.md, then start an agent: tasuki agent create {}{profile}", args.slug));
    Ok(())
}

fn list(session: &CliSession) -> Result<(), CliError> {
    let folder = session.home.personas();
    let report = |error: CliError| eprint_quietly(&format!("tasuki: {}", error.message));
    let found = all(&session.home, report)?;
    if session.out.is_json() {
        return session.out.document(&json!(found));
    }
    if found.is_empty() {
        session.out.note("No personas. Create one with: tasuki persona new SLUG");
        return Ok(());
    }
    let row = |persona: &About| {
        let said = [&persona.name, &persona.role, &persona.profile].map(|text| shown(text.as_deref()));
        [vec![persona.persona_slug.clone()], said.to_vec(), vec![persona.documents.to_string()]].concat()
    };
    let rows: Vec<_> = found.iter().map(row).collect();
    session.out.table(&["PERSONA", "NAME", "ROLE", "PROFILE", "DOCUMENTS"], &rows)?;
    session.out.note(&format!("The personas are in {}.", folder.display()));
    Ok(())
}

/// What a persona's folder says of itself.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Persona")]
pub(super) struct About {
    /// The folder's name.
    persona_slug: String,
    /// Its display name.
    name: Option<String>,
    /// Its role.
    role: Option<String>,
    /// The profile that its agents run with.
    profile: Option<String>,
    /// The folder that its agents work in.
    cwd: Option<String>,
    /// The tmux session of its agents' windows.
    session: Option<String>,
    /// How many handoff documents it has.
    documents: usize,
    /// Its folder, absolute.
    path: PathBuf,
}

/// All personas, by their slugs. A `persona.toml` that can't be read is reported, and the list continues.
///
/// # Errors
/// When the folder of all personas can't be read.
pub(super) fn all(home: &Home, mut report: impl FnMut(CliError)) -> Result<Vec<About>, CliError> {
    let slugs = personas::list(&home.personas())?;
    Ok(slugs.iter().map(|slug| about(home, slug, &mut report)).collect())
}

/// Whether a file in the folder of handoff documents is a document: tasuki also keeps facts and published copies there.
fn is_document(name: &str) -> bool {
    name.ends_with(".md") && !name.ends_with(".facts.md") && !name.starts_with("replacement-handoff-")
}

fn about(home: &Home, slug: &Slug, report: &mut impl FnMut(CliError)) -> About {
    let facts = personas::facts(&home.personas(), slug).unwrap_or_else(|error| {
        report(error.into());
        // Its documents can be counted all the same.
        let handoff_files = personas::handoff_files(&home.personas(), slug).unwrap_or_default();
        personas::PersonaOnDisk { handoff_files, ..personas::PersonaOnDisk::default() }
    });
    About {
        persona_slug: slug.to_string(),
        name: facts.file.name.clone(),
        role: facts.file.role.clone(),
        profile: facts.file.profile.clone(),
        cwd: facts.file.cwd.clone(),
        session: facts.file.session.clone(),
        documents: facts.handoff_files.iter().filter(|name| is_document(name)).count(),
        path: home.personas().join(slug.as_str()),
    }
}
