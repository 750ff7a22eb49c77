//! Asks the server for everything that the checks need, and judges the server itself: its version, its clock, and the
//! streams and consumers that it has for the fleet.

use super::finding::{ADMIT_AGAIN, SETUP, fail, listed, ok, skipped, span, warn};
use super::members::{FoundList, newest, opened};
use crate::bridge::identity::is_local;
use crate::cli::doctor::Line;
use crate::clock::Clock;
use crate::core::host::HostName;
use crate::fleet::nats::looks::{ServerFacts, ServerObject};
use crate::fleet::nats::streams::{consumer_differences, stream_differences};
use crate::fleet::nats::version::{SOUND_VERSIONS, is_sound, knows_sync_always};
use crate::fleet::nats::{CourierError, FleetPlace, NatsCourier, ServerAccess, StoredRoster};
use crate::fleet::{AccountKey, HostKeys, MemberList, Topic, What};
use futures_util::{StreamExt, stream};
use std::sync::Arc;
use std::time::Duration;

/// How long connecting may take, all addresses together.
const CONNECT_WITHIN: Duration = Duration::from_secs(7);
/// How long reading all rosters may take.
const ROSTERS_WITHIN: Duration = Duration::from_secs(3);
/// How many rosters are asked for at once.
const AT_ONCE: usize = 64;
/// The server must take messages at least this large, in bytes.
const LEAST_PAYLOAD: usize = 1 << 20;
/// How far this machine's clock may differ from the server's, in milliseconds: more than the first is a warning, more
/// than the second a failure.
const CLOCK_WARN_MS: i64 = 5 * 60_000;
const CLOCK_FAIL_MS: i64 = 24 * 3_600_000;

type Found = Result<Option<ServerObject>, CourierError>;

/// What the server has as the roster of each host.
pub(super) type FoundRosters = Vec<(HostName, Result<Option<StoredRoster>, CourierError>)>;

/// What the server has answered.
pub(super) struct ServerSeen {
    pub(super) facts: ServerFacts,
    streams: [Found; 2],
    consumers: [Found; 2],
    pub(super) list: FoundList,
    pub(super) rosters: FoundRosters,
    /// The server's clock when it was asked, in milliseconds since 1970. If no answer tells it, the time at which the
    /// newest roster was stored.
    pub(super) server_ms: Option<i64>,
    /// This machine's clock at that time, in milliseconds since 1970.
    own_ms: i64,
}

/// Connects to the server, and asks for everything.
///
/// # Errors
/// The server was not reached, or refuses this host.
pub(super) async fn ask(
    place: &FleetPlace,
    access: &ServerAccess,
    keys: Arc<HostKeys>,
    fleet_key: &AccountKey,
    kept: &MemberList,
) -> Result<ServerSeen, CourierError> {
    let connecting = NatsCourier::connect_once(place.clone(), access, keys);
    let late = |_| CourierError::Unreachable("it did not answer in time".to_owned());
    let courier = tokio::time::timeout(CONNECT_WITHIN, connecting).await.map_err(late)??;
    let facts = courier.facts().ok_or_else(|| CourierError::Unreachable("it said nothing of itself".to_owned()))?;
    let (letters, hosts, requests, results, list) = tokio::join!(
        courier.stream("box"),
        courier.stream("hosts"),
        courier.consumer(What::Req),
        courier.consumer(What::Res),
        courier.standing(&Topic::Fleet),
    );
    let own_ms = Clock::new().now().wall_ms;
    let list = opened(list, fleet_key, &place.fleet);
    let rosters = rosters(&courier, newest(&list, kept)).await;
    let told = [&letters, &hosts, &requests].into_iter().find_map(|found| found.as_ref().ok()?.as_ref()?.server_ms);
    // If no answer tells the server's time, the newest roster is near enough: a live host puts its roster every 15 s.
    let stored = rosters.iter().filter_map(|(_, found)| found.as_ref().ok()?.as_ref()).map(|roster| roster.stored_ms);
    let server_ms = told.or(stored.max());
    let (streams, consumers) = ([letters, hosts], [requests, results]);
    Ok(ServerSeen { facts, streams, consumers, list, rosters, server_ms, own_ms })
}

/// The rosters of all members. Rosters that do not arrive in time are left out.
async fn rosters(courier: &NatsCourier, list: &MemberList) -> FoundRosters {
    let names: Vec<HostName> = list.members.iter().map(|member| member.name.clone()).collect();
    let one = |name: HostName| async move {
        let standing = courier.standing(&Topic::Host(&name)).await;
        (name, standing)
    };
    let mut asked = stream::iter(names.into_iter().map(one)).buffer_unordered(AT_ONCE);
    let (end, mut found) = (tokio::time::Instant::now() + ROSTERS_WITHIN, Vec::new());
    while let Ok(Some(roster)) = tokio::time::timeout_at(end, asked.next()).await {
        found.push(roster);
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

/// The result if the server was not reached, or refuses this host.
pub(super) fn not_reached(urls: &[String], error: &CourierError) -> Line {
    let (id, at) = ("fleet.server", listed(urls));
    match error {
        CourierError::NotAllowed(_) => fail(
            id,
            format!(
                "the server at {at} refuses this host's login: the host was expelled, or its ticket is for another server"
            ),
            ADMIT_AGAIN,
        ),
        CourierError::BadAddress(_) => fail(id, error.to_string(), "correct [server] urls in fleet.toml"),
        CourierError::Unreachable(_) | CourierError::Refused(_) => fail(
            id,
            format!("{error} ({at}); requests to other hosts wait meanwhile"),
            "look whether nats-server runs there, and whether this machine reaches it",
        ),
    }
}

/// Judges the server that was reached: its version, its largest message, and encryption. Whether it writes each letter
/// to the disk at once, it tells only to its own system account, for which no host has a login. So for this check, only
/// the version counts.
pub(super) fn judge(facts: &ServerFacts, urls: &[String]) -> Line {
    let id = "fleet.server";
    let ServerFacts { version, max_payload, needs_tls } = facts;
    let is_local = urls.iter().all(|url| is_local(url));
    let is_encrypted = *needs_tls || urls.iter().all(|url| url.starts_with("tls://") || url.starts_with("wss://"));
    let mut what = format!("nats-server {version} at {}", listed(urls));
    if knows_sync_always(version) == Some(false) {
        what += " knows no sync_interval: always, so a power cut can take letters that it has confirmed; it";
    }
    let replace = format!("replace it by {SOUND_VERSIONS}, or later");
    let sound = is_sound(version);
    if sound == Some(false) && !is_local {
        return fail(id, format!("{what} has known holes, and others can reach it"), replace);
    }
    if *max_payload < LEAST_PAYLOAD {
        let said = format!("{what} takes messages up to {} KiB; letters may have 1 MiB", max_payload >> 10);
        return fail(id, said, "in the server's configuration: max_payload: 2MB");
    }
    if !is_encrypted && !is_local {
        let said =
            format!("{what} is reached without encryption, as fleet.toml allows: rosters can be read on the way");
        return warn(id, said, "give the server a certificate, and use an address that begins with tls://");
    }
    match sound {
        Some(false) => warn(id, format!("{what} has known holes; only this machine reaches it there"), replace),
        None => warn(id, format!("the version of {what} can't be read"), replace),
        Some(true) => {
            let how = if is_encrypted { "encrypted" } else { "on this machine" };
            let size = max_payload >> 10;
            let sync = "whether it has sync_interval: always, only its configuration says";
            ok(id, format!("{what}, {how}; it takes messages up to {size} KiB; {sync}"))
        }
    }
}

/// Compares this machine's clock with the server's.
pub(super) fn clock(seen: &ServerSeen) -> Line {
    let Some(server_ms) = seen.server_ms else {
        return skipped("fleet.clock", "the server does not say its time, and no host has told of itself");
    };
    judge_clock(seen.own_ms.saturating_sub(server_ms))
}

fn judge_clock(ahead_ms: i64) -> Line {
    let id = "fleet.clock";
    let side = if ahead_ms > 0 { "ahead of" } else { "behind" };
    let said = format!("this machine's clock is {} {side} the server's", span(ahead_ms));
    let fix = "set the clock that is wrong (timedatectl shows this machine's): hosts whose clocks differ by more than 8 days \
               refuse each other's requests";
    match ahead_ms.saturating_abs() {
        apart if apart > CLOCK_FAIL_MS => fail(id, said, fix),
        apart if apart > CLOCK_WARN_MS => warn(id, said, fix),
        _ => ok(id, "this machine's clock agrees with the server's"),
    }
}

/// Judges the fleet's two streams, and this host's two consumers.
pub(super) fn objects(place: &FleetPlace, seen: &ServerSeen) -> [Line; 2] {
    let FleetPlace { fleet, host } = place;
    let streams = ["box", "hosts"].map(|what| format!("tk_{fleet}_{what}"));
    let consumers = ["req", "res"].map(|what| format!("{host}-{what}"));
    let streams = judge_objects("fleet.streams", &streams, &seen.streams, |found| stream_differences(fleet, found));
    let of_host = |found: [&_; 2]| consumer_differences(fleet, host, found);
    [streams, judge_objects("fleet.consumers", &consumers, &seen.consumers, of_host)]
}

fn judge_objects(
    id: &str,
    names: &[String; 2],
    found: &[Found; 2],
    differences: impl FnOnce([&serde_json::Value; 2]) -> Vec<String>,
) -> Line {
    let mut missing = Vec::new();
    for (name, found) in names.iter().zip(found) {
        match found {
            Ok(Some(_)) => {}
            Ok(None) => missing.push(name.clone()),
            Err(error) => {
                let said = format!("{name} can't be checked: {error}");
                return warn(id, said, "try again; if it stays so, have the owner of the fleet admit this host again");
            }
        }
    }
    let [Ok(Some(first)), Ok(Some(second))] = found else {
        return fail(id, format!("missing at the server: {}", listed(&missing)), SETUP);
    };
    let differences = differences([&first.config, &second.config]);
    if differences.is_empty() {
        return ok(id, format!("{} are at the server as the fleet needs them", names.join(" and ")));
    }
    let said = format!("not as the fleet needs it: {}", listed(&differences));
    let fix = "have the owner of the server set it back; tasuki fleet setup makes only what is missing";
    warn(id, said, fix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_server_with_known_holes_fails_only_if_other_machines_reach_it() {
        let status = |version: &str, url: &str, needs_tls| {
            let facts = ServerFacts { version: version.to_owned(), max_payload: 2 << 20, needs_tls };
            judge(&facts, &[url.to_owned()]).status
        };
        assert_eq!(status("2.12.7", "tls://10.0.0.1:4222", true), "ok");
        assert_eq!(status("2.12.6", "tls://10.0.0.1:4222", true), "fail");
        assert_eq!(status("2.12.6", "nats://127.0.0.1:4222", false), "warn");
        assert_eq!(status("2.12.7", "nats://127.0.0.1:4222", false), "ok");
        assert_eq!(status("2.12.7", "nats://10.0.0.1:4222", false), "warn");
        assert_eq!(status("main", "tls://10.0.0.1:4222", true), "warn");
        // Only its own system account can ask the server for this setting.
        let said = |version: &str| {
            let facts = ServerFacts { version: version.to_owned(), max_payload: 2 << 20, needs_tls: true };
            judge(&facts, &["tls://127.0.0.1:4222".to_owned()]).said
        };
        assert!(said("2.12.7").ends_with("sync_interval: always, only its configuration says"), "{}", said("2.12.7"));
        assert!(said("2.9.10").contains("knows no sync_interval: always, so a power cut"), "{}", said("2.9.10"));
        let small = ServerFacts { version: "2.15.1".to_owned(), max_payload: 64 << 10, needs_tls: true };
        assert_eq!(judge(&small, &["tls://127.0.0.1:1".to_owned()]).status, "fail");
    }

    #[test]
    fn clocks_may_differ_by_minutes_and_not_by_days() {
        let status = |ms: i64| (judge_clock(ms).status, judge_clock(-ms).status);
        let both = |word: &str| (word.to_owned(), word.to_owned());
        assert_eq!(status(CLOCK_WARN_MS), both("ok"));
        assert_eq!(status(CLOCK_WARN_MS + 1), both("warn"));
        assert_eq!(status(CLOCK_FAIL_MS + 1), both("fail"));
        assert!(judge_clock(3 * CLOCK_WARN_MS).said.contains("15 min ahead of the server's"));
    }

    #[test]
    fn what_is_missing_or_different_at_the_server_is_named() {
        let names = ["one".to_owned(), "two".to_owned()];
        let there = || Ok(Some(ServerObject { config: json!({}), created: String::new(), server_ms: None }));
        let judged = |found: [Found; 2], differences: Vec<String>| {
            judge_objects("fleet.streams", &names, &found, |_: [&Value; 2]| differences)
        };
        assert_eq!(judged([there(), there()], Vec::new()).status, "ok");
        let missing = judged([there(), Ok(None)], Vec::new());
        assert_eq!((missing.status.as_str(), missing.said.as_str()), ("fail", "missing at the server: two"));
        let silent = judged([there(), Err(CourierError::Unreachable("silence".to_owned()))], Vec::new());
        assert!(silent.status == "warn" && silent.said.contains("two can't be checked"), "{silent:?}");
        let other = judged([there(), there()], vec!["one: max_age is 1day".to_owned()]);
        assert!(other.status == "warn" && other.said.ends_with("one: max_age is 1day"), "{other:?}");
    }
}
