//! `accept` and `refuse`: which host may ask this one for what.

use super::ground::Ground;
use crate::bridge::settings::{FleetSettings, change_rights, rights_in_words, rights_now};
use crate::cli::CliSession;
use crate::cli::error::CliError;
use crate::cli::output::Tone;
use crate::core::host::HostName;
use crate::fleet::rights::RIGHTS;
use crate::fleet::{Accepts, Right};
use clap::Args;
use serde_json::json;

/// `accept`.
#[derive(Debug, Args)]
pub(crate) struct AcceptHostArgs {
    /// The host's name, or `*` for every host that has no rights of its own.
    pub(crate) host: String,
    /// What it may ask for.
    #[arg(required = true, value_parser = right)]
    pub(crate) rights: Vec<Right>,
}

/// `refuse`.
#[derive(Debug, Args)]
pub(crate) struct RefuseHostArgs {
    /// The host's name, or `*`.
    pub(crate) host: String,
    /// What it may not ask for any more [default: everything].
    #[arg(value_parser = right)]
    pub(crate) rights: Vec<Right>,
}

fn right(word: &str) -> Result<Right, String> {
    let known = RIGHTS.into_iter().find(|right| right.as_str() == word);
    known.ok_or_else(|| format!("must be one of {}", RIGHTS.map(Right::as_str).join(", ")))
}

fn check_host(host: &str) -> Result<(), CliError> {
    if host == Accepts::EVERYBODY || host.parse::<HostName>().is_ok() {
        return Ok(());
    }
    Err(CliError::usage(format!("{host:?} is not the name of a host. Nothing was changed.")))
}

pub(super) fn accept(session: &CliSession, args: &AcceptHostArgs) -> Result<(), CliError> {
    check_host(&args.host)?;
    let ground = Ground::open(session)?;
    change_rights(&ground.folder, &args.host, |mut rights| {
        rights.extend(args.rights.iter().filter(|right| !rights.contains(right)).copied().collect::<Vec<_>>());
        warn_of_code(session, &args.host, &rights);
        Some(rights)
    })?;
    told(session, &ground, &args.host)
}

/// Warns, before anything is written, that some of these rights let a host run code here.
fn warn_of_code(session: &CliSession, host: &str, rights: &[Right]) {
    let dangerous: Vec<&str> = rights.iter().filter(|right| right.runs_code()).map(|right| right.as_str()).collect();
    if !dangerous.is_empty() {
        let who = if host == Accepts::EVERYBODY { "every host of the fleet" } else { host };
        let warning = format!(
            "With {} you let {who} run code here: a text that is typed into an agent is code that runs with your rights.",
            dangerous.join(", ")
        );
        session.out.note(&session.out.paint(Tone::Care, &warning));
    }
}

pub(super) fn refuse(session: &CliSession, args: &RefuseHostArgs) -> Result<(), CliError> {
    check_host(&args.host)?;
    let ground = Ground::open(session)?;
    // An entry without rights stays in the file: it counts instead of the entry `*`.
    change_rights(&ground.folder, &args.host, |mut rights| {
        rights.retain(|right| !args.rights.is_empty() && !args.rights.contains(right));
        Some(rights)
    })?;
    told(session, &ground, &args.host)
}

fn told(session: &CliSession, ground: &Ground, host: &str) -> Result<(), CliError> {
    let settings = FleetSettings::load(&ground.folder)?;
    let rights = rights_now(&settings, host);
    let words = match host.parse::<HostName>() {
        Ok(host) => rights_in_words(&settings.accept, &host),
        Err(_) if rights.is_empty() => "nothing".to_owned(),
        Err(_) => rights.iter().map(|right| right.as_str()).collect::<Vec<_>>().join(", "),
    };
    let rights: Vec<&str> = rights.iter().map(|right| right.as_str()).collect();
    let line = format!("{host} may ask this host for: {words}. A bridge that runs knows it within 5 s.");
    session.report(&json!({"status": "set", "host": host, "rights": rights}), &line)
}
