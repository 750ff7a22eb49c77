//! `accept` and `refuse`: which host may ask this one for what.

use super::ground::Ground;
use crate::bridge::settings::{FleetSettings, rights_in_words, set_rights};
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

/// The rights that the host has now, by its own entry or else by that of every host.
fn rights_now(settings: &FleetSettings, host: &str) -> Vec<Right> {
    let rights = match host.parse::<HostName>() {
        Ok(host) => settings.accept.of(&host),
        Err(_) => settings.accept.entry(host).unwrap_or_default(),
    };
    rights.into_iter().collect()
}

pub(super) fn accept(session: &CliSession, args: &AcceptHostArgs) -> Result<(), CliError> {
    check_host(&args.host)?;
    let ground = Ground::open(session)?;
    let mut rights = rights_now(&ground.settings, &args.host);
    rights.extend(args.rights.iter().filter(|right| !rights.contains(right)).copied().collect::<Vec<_>>());
    let dangerous: Vec<&str> = rights.iter().filter(|right| right.runs_code()).map(|right| right.as_str()).collect();
    if !dangerous.is_empty() {
        let who = if args.host == Accepts::EVERYBODY { "every host of the fleet" } else { &args.host };
        let warning = format!(
            "With {} you let {who} run code here: a text that is typed into an agent is code that runs with your rights.",
            dangerous.join(", ")
        );
        session.out.note(&session.out.paint(Tone::Care, &warning));
    }
    set_rights(&ground.folder, &args.host, Some(&rights))?;
    told(session, &ground, &args.host)
}

pub(super) fn refuse(session: &CliSession, args: &RefuseHostArgs) -> Result<(), CliError> {
    check_host(&args.host)?;
    let ground = Ground::open(session)?;
    let mut rights = rights_now(&ground.settings, &args.host);
    rights.retain(|right| !args.rights.is_empty() && !args.rights.contains(right));
    // An empty entry stays: it wins over that of every host.
    set_rights(&ground.folder, &args.host, Some(&rights))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::folder::of_test;

    #[test]
    fn the_first_entry_of_a_host_begins_with_what_every_host_may_ask() {
        let (_dir, _, folder) = of_test();
        set_rights(&folder, "*", Some(&[Right::View, Right::Send])).expect("written");
        set_rights(&folder, "empty", Some(&[])).expect("written");
        let settings = FleetSettings::load(&folder).expect("readable");
        assert_eq!(rights_now(&settings, "desk"), [Right::View, Right::Send]);
        assert_eq!(rights_now(&settings, "*"), [Right::View, Right::Send]);
        assert_eq!(rights_now(&settings, "empty"), []);
    }
}
