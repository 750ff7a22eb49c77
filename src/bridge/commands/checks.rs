//! `checks`: the checks of this host and its fleet that `tasuki doctor` reports. They change nothing, here or at the
//! server.
//!
//! `finding` makes the result of one check. `files` checks `HOME/fleet`, and `bridge` the bridge's process. `server`
//! asks the server and checks it. `members` checks the list of members, and `hosts` the other hosts.

mod bridge;
mod files;
mod finding;
mod hosts;
mod members;
mod server;

use crate::bridge::folder::FleetFolder;
use crate::bridge::identity::{HostFile, JoinedFleet, access};
use crate::bridge::members_file;
use crate::bridge::runtime::wait_for;
use crate::bridge::seen::SeenFile;
use crate::bridge::settings::FleetSettings;
use crate::cli::CliSession;
use crate::cli::doctor::{FleetChecks, Line};
use crate::cli::error::CliError;
use crate::cli::hosts::no_fleet;
use crate::clock::Clock;
use crate::config::Home;
use crate::fleet::nats::FleetPlace;
use crate::fleet::{HostKeys, MemberList};
use serde_json::json;
use std::sync::Arc;

/// The checks that are reported as skipped if the server is not reached.
const AT_SERVER: [&str; 4] = ["fleet.clock", "fleet.streams", "fleet.consumers", "fleet.hosts"];

/// This host, as its files describe it.
struct OwnHost<'a> {
    home: &'a Home,
    folder: &'a FleetFolder,
    host: &'a HostFile,
    fleet: &'a JoinedFleet,
}

/// Runs all checks and prints their results.
///
/// # Errors
/// This home has joined no fleet, or `host.json` can't be read.
pub(super) fn print(session: &CliSession) -> Result<(), CliError> {
    let folder = FleetFolder::unchecked(&session.home);
    let host = HostFile::load(&folder)?.ok_or_else(no_fleet)?;
    let fleet = host.fleet.clone().ok_or_else(no_fleet)?;
    let checks = look(&OwnHost { home: &session.home, folder: &folder, host: &host, fleet: &fleet });
    let version = env!("CARGO_PKG_VERSION").to_owned();
    if session.out.is_json() {
        return session.out.document(&json!(FleetChecks { v: 1, version, checks }));
    }
    let row = |line: &Line| vec![line.id.clone(), line.status.clone(), line.said.clone()];
    let rows: Vec<Vec<String>> = checks.iter().map(row).collect();
    session.out.table(&["CHECK", "STATUS", "FOUND"], &rows)
}

fn look(own: &OwnHost<'_>) -> Vec<Line> {
    let now_ms = Clock::new().now().wall_ms;
    let mut all = vec![files::folders(own.folder)];
    let settings = match FleetSettings::load(own.folder) {
        Ok(settings) => {
            all.push(finding::ok("fleet.settings", "fleet.toml is valid"));
            settings
        }
        Err(error) => {
            all.push(finding::of_error("fleet.settings", error, "correct that file; a bridge keeps its last settings"));
            let unknown = ["fleet.key", "fleet.rights", "fleet.server"].map(|id| skipped(id, "fleet.settings"));
            all.extend(unknown.into_iter().chain(bridge::look(own.home, own.folder, now_ms)));
            return all;
        }
    };
    let (key, keys) = files::key(own.folder, &settings);
    let (login, jwt) = files::login(own.folder, keys.as_ref(), now_ms);
    all.extend([key, login, files::rights(&settings.accept)]);
    all.extend(bridge::look(own.home, own.folder, now_ms));
    let kept = members_file::load(own.folder, &own.fleet.key, &own.fleet.name);
    let kept = kept.unwrap_or_else(|_| MemberList::new(own.fleet.name.clone(), 0, Vec::new()));
    match (keys, jwt) {
        (Some(keys), Some(jwt)) => all.extend(at_server(own, &settings, &Arc::new(keys), &jwt, &kept)),
        (keys, _) => {
            let cause = if keys.is_none() { "fleet.key" } else { "fleet.jwt" };
            all.push(skipped("fleet.server", cause));
            all.push(members::judge(own.host, keys.as_ref(), &kept, None));
        }
    }
    all
}

fn skipped(id: &str, cause: &str) -> Line {
    finding::skipped(id, format!("not checked (see {cause})"))
}

/// The checks that ask the server.
fn at_server(
    own: &OwnHost<'_>,
    settings: &FleetSettings,
    keys: &Arc<HostKeys>,
    jwt: &str,
    kept: &MemberList,
) -> Vec<Line> {
    let access = match access(own.fleet, jwt, own.folder, settings) {
        Ok(access) => access,
        Err(error) => {
            let line = finding::of_error("fleet.server", error, "correct [server] in fleet.toml");
            return unreached(own, line, keys, kept);
        }
    };
    let place = FleetPlace { fleet: own.fleet.name.clone(), host: own.host.name.clone() };
    let asked = wait_for(async { Ok(server::ask(&place, &access, Arc::clone(keys), &own.fleet.key, kept).await) });
    let seen = match asked {
        Ok(Ok(seen)) => seen,
        Ok(Err(error)) => return unreached(own, server::not_reached(&access.urls, &error), keys, kept),
        Err(error) => return unreached(own, finding::of_error("fleet.server", error, "try again"), keys, kept),
    };
    let mut all = vec![server::judge(&seen.facts, &access.urls), server::clock(&seen)];
    all.extend(server::objects(&place, &seen));
    all.push(members::judge(own.host, Some(keys), kept, Some(&seen.list)));
    let mut numbers = SeenFile::load(own.folder).numbers;
    let looks = hosts::read(&seen.rosters, members::newest(&seen.list, kept), &mut numbers, seen.server_ms);
    all.extend(hosts::judge(own.home, &own.host.name, &settings.show.hide, &looks));
    all
}

/// The results if the server is not reached. `server`: the result that says why. The list of members is judged as it
/// was last read.
fn unreached(own: &OwnHost<'_>, server: Line, keys: &HostKeys, kept: &MemberList) -> Vec<Line> {
    let mut all = vec![server];
    all.extend(AT_SERVER.map(|id| skipped(id, "fleet.server")));
    all.push(members::judge(own.host, Some(keys), kept, None));
    all
}
