//! `persona push`: gives a persona to another host.

use super::ground::Ground;
use crate::bridge::personas::{FILES, KIND};
use crate::cli::error::CliError;
use crate::cli::remote::request::{RemoteRequest, ask};
use crate::cli::view::ViewFile;
use crate::cli::{ANSWER_SOON, CliSession};
use crate::contract::fleet::FleetPart;
use crate::core::host::HostName;
use crate::core::id::Slug;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

/// `persona …`.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetPersonaCommand {
    /// Give a persona's persona.toml and skill.md to another host, which must accept that.
    #[command(after_help = "Example:\n  tasuki fleet persona push kai box")]
    Push(PushArgs),
}

/// `persona push`.
#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// The persona's slug.
    #[arg(id = "persona", value_name = "SLUG")]
    pub(crate) slug: Slug,
    /// The host.
    #[arg(id = "host", value_name = "HOST", required_unless_present = "to", conflicts_with = "to")]
    host: Option<HostName>,
    /// The host, in another form: `--to HOST`.
    #[arg(long, value_name = "HOST")]
    to: Option<HostName>,
    /// Replace a persona of this name that is another one there. What it was is kept there in fleet/replaced.
    #[arg(long)]
    pub(crate) replace: bool,
}

pub(super) fn command(session: &CliSession, command: &FleetPersonaCommand) -> Result<(), CliError> {
    let FleetPersonaCommand::Push(args) = command;
    let Some(to) = args.host.as_ref().or(args.to.as_ref()) else {
        return Err(CliError::usage("Name the host: tasuki fleet persona push SLUG HOST"));
    };
    Ground::open(session)?;
    let place = session.home.personas().join(args.slug.as_str());
    let part = |name: &&str| {
        let path = place.join(name);
        path.is_file().then(|| FleetPart { name: (*name).to_owned(), path: path.display().to_string() })
    };
    let parts: Vec<FleetPart> = FILES.iter().filter_map(part).collect();
    if parts.is_empty() {
        let message = format!("There is no persona {} here. Nothing was sent.", args.slug);
        return Err(CliError::refused("no_persona", message));
    }
    let fields = Map::from_iter([
        ("slug".to_owned(), Value::from(args.slug.as_str())),
        ("replace".to_owned(), Value::from(args.replace)),
    ]);
    let patience = session.timeout.unwrap_or(ANSWER_SOON);
    let request = RemoteRequest { host: to, kind: KIND, fields, patience, ttl: session.timeout, parts };
    let answer: ViewFile<Value> = ask(&session.home, &request)?;
    let status = answer["status"].as_str().unwrap_or_default();
    let line = format!("The host {to} has the persona {}: {status}.", args.slug);
    session.report(&json!({"status": status, "host": to, "slug": args.slug}), &line)
}
