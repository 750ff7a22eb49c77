//! `rules check`: whether the rules for work items are valid, and what they say. It needs no sidecar.

use super::CliSession;
use super::error::CliError;
use super::output::eprint_quietly;
use crate::config::rules as file;
use crate::core::id::Slug;
use crate::core::rules::{HUMAN, Rule, Rules};
use crate::core::text::sanitise;
use crate::exit;
use crate::personas;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// `rules …`.
#[derive(Debug, Subcommand)]
pub enum RulesCommand {
    /// Check that the rules can be used, and show them.
    #[command(after_help = "Example:\n  tasuki rules check")]
    Check(RulesArgs),
}

/// `rules check`.
#[derive(Debug, Args)]
pub struct RulesArgs {
    /// The file with the rules [default: HOME/data/rules.toml].
    pub file: Option<PathBuf>,
}

/// Checks the rules.
///
/// # Errors
/// Exit code 77: others could write the file. 78: the rules can't be used (the message has line and column), or the
/// named file does not exist.
pub fn command(session: &CliSession, command: &RulesCommand) -> Result<(), CliError> {
    match command {
        RulesCommand::Check(args) => check(session, args),
    }
}

fn check(session: &CliSession, args: &RulesArgs) -> Result<(), CliError> {
    let path = args.file.clone().unwrap_or_else(|| session.home.rules());
    let rules = match &args.file {
        Some(named) => file::load_named(named),
        None => file::load(&path),
    };
    let rules = rules.map_err(|error| {
        let (exit, code) =
            if error.is_about_rights() { (exit::NOT_ALLOWED, "not_allowed") } else { (exit::CONFIG, "bad_rules") };
        CliError::new(exit, code, format!("{}.", sanitise(&error.to_string())))
    })?;
    let players = players(session, &rules);
    if session.out.is_json() {
        let types: Vec<Value> = rules.types.iter().map(|(name, rule)| type_json(name, rule)).collect();
        return session.out.document(&json!({ "path": path.display().to_string(), "types": types, "roles": players }));
    }
    let row = |(name, rule): (&String, &Rule)| {
        let needs = requirements(rule).join(", ");
        vec![name.clone(), rule.processed_by.join(", "), rule.output.clone(), rule.creates.join(", "), needs]
    };
    let rows: Vec<Vec<String>> = rules.types.iter().map(row).collect();
    session.out.table(&["TYPE", "PROCESSED BY", "OUTPUT IS", "CREATES ITEMS", "OUTPUT MUST HAVE"], &rows)?;
    session.out.line("")?;
    for (role, personas) in &players {
        let who = if personas.is_empty() { "nobody yet".to_owned() } else { personas.join(", ") };
        session.out.line(&format!("{role}: {who}"))?;
    }
    Ok(())
}

/// The personas of each role that a rule names.
fn players(session: &CliSession, rules: &Rules) -> BTreeMap<String, Vec<String>> {
    let folder = session.home.personas();
    let slugs = personas::list(&folder).unwrap_or_default();
    let named: BTreeSet<&String> = rules.types.values().flat_map(|rule| &rule.processed_by).collect();
    let own: Vec<Option<String>> = slugs.iter().map(|slug| own_role(&folder, slug)).collect();
    let plays = |role: &String| {
        let has = slugs.iter().zip(&own);
        let has = has.filter(|(slug, own)| rules.roles_of(slug, own.as_deref()).contains(role.as_str()));
        has.map(|(slug, _)| slug.to_string()).collect()
    };
    named.into_iter().filter(|role| *role != HUMAN).map(|role| (role.clone(), plays(role))).collect()
}

/// The role in a persona's file. A file that can't be read is named on standard error.
fn own_role(folder: &Path, slug: &Slug) -> Option<String> {
    personas::role(folder, slug).unwrap_or_else(|error| {
        eprint_quietly(&format!("tasuki: {error}"));
        None
    })
}

fn requirements(rule: &Rule) -> Vec<String> {
    let plain = |pointer: &String| pointer.trim_start_matches('/').to_owned();
    let mut needs: Vec<String> = rule.all.iter().map(plain).collect();
    needs.extend(
        rule.non_empty.iter().map(|pointer| if pointer.is_empty() { "something".to_owned() } else { plain(pointer) }),
    );
    let any: Vec<String> = rule.any.iter().map(plain).collect();
    needs.extend((!any.is_empty()).then(|| any.join(" or ")));
    needs
}

fn type_json(name: &str, rule: &Rule) -> Value {
    json!({
        "type": name, "processed_by": rule.processed_by, "output": rule.output, "creates": rule.creates,
        "all": rule.all, "any": rule.any, "non_empty": rule.non_empty, "next_status": rule.next_status.as_str(),
        "ask_human": rule.ask_human,
    })
}
