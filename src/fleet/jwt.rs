//! What the server believes: signed claims, as NATS servers read them. The operator's key vouches for the fleet's
//! account. The account's key, or a signing key of it, vouches for each member. A member's claims list all that it may
//! publish and read; the server refuses everything else.
//!
//! The claims limit what a member can do to others. They do not prove who sent what: only seal and signature do.

use super::keys::{AccountKey, LoginKey, ServerKeys, UserKey};
use crate::core::host::{FleetName, HostName};
use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The most that all streams of a fleet may hold on the server's disks, in bytes: 1.25 GiB for each of three replicas,
/// and a little. A server that may keep less serves the fleet no streams at all.
const MOST_ON_DISKS: u64 = 4 << 30;
/// What the server must be allowed to store, in bytes. If two hosts connect at the same moment while the server starts,
/// it reserves the account's room twice. If it has no room for that, the fleet gets no streams until the next start
/// (seen with 2.9.10 in a third of the starts).
pub const SERVER_MAY_KEEP: u64 = 2 * MOST_ON_DISKS;
/// No limit.
const ANY: i64 = -1;

/// Claims with their signature, as they are written to files and shown to the server.
fn signed(mut claims: Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let id = BASE32_NOPAD.encode(&Sha256::digest(claims.to_string()));
    claims["jti"] = id.into();
    let head = BASE64URL_NOPAD.encode(br#"{"typ":"JWT","alg":"ed25519-nkey"}"#);
    let body = BASE64URL_NOPAD.encode(claims.to_string().as_bytes());
    let text = format!("{head}.{body}");
    let signature = BASE64URL_NOPAD.encode(&sign(text.as_bytes()));
    format!("{text}.{signature}")
}

/// The operator's own claims. They name the system account.
#[must_use]
pub fn operator(keys: &ServerKeys, fleet: &FleetName, at_s: i64) -> String {
    let key = keys.operator_key();
    let nats = json!({"type": "operator", "version": 2, "system_account": keys.system_key()});
    let claims = json!({"iat": at_s, "iss": key, "sub": key, "name": format!("tasuki {fleet}"), "nats": nats});
    signed(claims, |bytes| keys.sign_as_operator(bytes))
}

/// The claims of the system account, which reports on the server itself and takes new claims of the fleet's account.
#[must_use]
pub fn system_account(keys: &ServerKeys, at_s: i64) -> String {
    account(keys, &keys.system_key(), "system", (0, &BTreeMap::new()), at_s)
}

/// The claims of the fleet's account. `expelled`: the keys that may no longer log in, each with the time since when, in
/// seconds since 1970.
#[must_use]
pub fn fleet_account(
    keys: &ServerKeys,
    fleet: (&FleetName, &AccountKey),
    expelled: &BTreeMap<UserKey, i64>,
    at_s: i64,
) -> String {
    account(keys, fleet.1.as_str(), fleet.0.as_str(), (MOST_ON_DISKS, expelled), at_s)
}

/// The keys that may no longer log in by these claims of an account, each with the time since when, in seconds since
/// 1970. Claims that can't be read name no keys.
#[must_use]
pub fn expelled_in(claims: &str) -> BTreeMap<UserKey, i64> {
    // As much as the server takes in one message.
    let claims = read(claims, 2 << 20).unwrap_or_default();
    let all = claims["nats"]["revocations"].as_object().into_iter().flatten();
    all.filter_map(|(key, since_s)| Some((key.parse().ok()?, since_s.as_i64()?))).collect()
}

fn account(
    keys: &ServerKeys,
    key: &str,
    name: &str,
    (disk, expelled): (u64, &BTreeMap<UserKey, i64>),
    at_s: i64,
) -> String {
    let streams = if disk > 0 { ANY } else { 0 };
    let limits = json!({
        "subs": ANY, "data": ANY, "payload": ANY, "imports": ANY, "exports": ANY, "wildcards": true, "conn": ANY, "leaf": ANY,
        "mem_storage": 0, "disk_storage": disk, "streams": streams, "consumer": streams,
    });
    let nats = json!({
        "type": "account", "version": 2, "limits": limits, "revocations": expelled,
        "default_permissions": {"pub": {}, "sub": {}},
    });
    let claims = json!({"iat": at_s, "iss": keys.operator_key(), "sub": key, "name": name, "nats": nats});
    signed(claims, |bytes| keys.sign_as_operator(bytes))
}

fn user(issuer: &str, key: &UserKey, name: &str, may: &Value, at_s: i64) -> Value {
    let mut nats = json!({"type": "user", "version": 2, "subs": ANY, "data": ANY, "payload": ANY});
    for (what, subjects) in may.as_object().into_iter().flatten() {
        nats[what] = json!({ "allow": subjects });
    }
    json!({"iat": at_s, "iss": issuer, "sub": key, "name": name, "nats": nats})
}

/// When claims are dated as made, in seconds since 1970. The server refuses claims that are as old as the expulsion of
/// their key or older, so they are later than it even within the same second, or if the clock was set back meanwhile.
#[must_use]
pub fn issued_s(now_s: i64, expelled_s: Option<i64>) -> i64 {
    expelled_s.map_or(now_s, |expelled_s| now_s.max(expelled_s.saturating_add(1)))
}

/// What a member may do at the server: send letters in its own name, tell of itself, and read what is sent to it.
/// `domain`: the domain of the server's streams; empty if they have none.
#[must_use]
pub fn member(login: &LoginKey, fleet: &FleetName, domain: &str, name: &HostName, key: &UserKey, at_s: i64) -> String {
    let mut publish = vec![format!("tk.{fleet}.box.*.{name}.*"), format!("tk.{fleet}.host.{name}")];
    let of_domain = Some(domain).filter(|domain| !domain.is_empty());
    let in_domain = of_domain.map(|domain| format!("$JS.{domain}.API"));
    for api in std::iter::once("$JS.API".to_owned()).chain(in_domain) {
        for what in ["req", "res"] {
            publish.push(format!("{api}.CONSUMER.MSG.NEXT.tk_{fleet}_box.{name}-{what}"));
            publish.push(format!("{api}.CONSUMER.INFO.tk_{fleet}_box.{name}-{what}"));
        }
        publish.push(format!("{api}.STREAM.INFO.tk_{fleet}_hosts"));
        publish.push(format!("{api}.STREAM.INFO.tk_{fleet}_box"));
        publish.push(format!("{api}.DIRECT.GET.tk_{fleet}_hosts.>"));
    }
    for what in ["req", "res"] {
        publish.push(format!("$JS.ACK.tk_{fleet}_box.{name}-{what}.>"));
        // Newer servers name domain and account in this subject, and `_` if there is no domain.
        let domain = of_domain.unwrap_or("_");
        publish.push(format!("$JS.ACK.{domain}.*.tk_{fleet}_box.{name}-{what}.>"));
    }
    let subscribe = [format!("_INBOX.{name}.>"), format!("tk.{fleet}.roster.*")];
    let may = json!({"pub": publish, "sub": subscribe});
    signed(of_account(login, user(&login.public_key(), key, name.as_str(), &may, at_s)), |bytes| login.sign(bytes))
}

/// What the person who holds the key of logins may do in the fleet's account: everything, for ten minutes.
#[must_use]
pub fn owner(login: &LoginKey, key: &UserKey, at_s: i64) -> String {
    let mut claims = of_account(login, user(&login.public_key(), key, "owner", &json!({}), at_s));
    claims["exp"] = (at_s + 600).into();
    signed(claims, |bytes| login.sign(bytes))
}

/// Names the account in claims that a signing key signs for it.
fn of_account(login: &LoginKey, mut claims: Value) -> Value {
    if let Some(account) = login.signs_for() {
        claims["nats"]["issuer_account"] = account.as_str().into();
    }
    claims
}

/// What the person who holds the operator's key may do in the system account: everything, for ten minutes.
#[must_use]
pub fn system_user(keys: &ServerKeys, key: &UserKey, at_s: i64) -> String {
    let mut claims = user(&keys.system_key(), key, "owner", &json!({}), at_s);
    claims["exp"] = (at_s + 600).into();
    signed(claims, |bytes| keys.sign_as_system(bytes))
}

/// The content of claims of at most `most` bytes.
fn read(jwt: &str, most: usize) -> Option<Value> {
    let body = jwt.split('.').nth(1).filter(|_| jwt.len() <= most)?;
    serde_json::from_slice(&BASE64URL_NOPAD.decode(body.as_bytes()).ok()?).ok()
}

/// The key that claims are about, and when they end, in seconds since 1970; none if they can't be read. Their signature
/// is not checked: the server does that.
#[must_use]
pub fn subject_and_end(jwt: &str) -> Option<(String, Option<i64>)> {
    let claims = read(jwt, 64 << 10)?;
    Some((claims["sub"].as_str()?.to_owned(), claims["exp"].as_i64()))
}

#[cfg(test)]
mod tests {
    use super::super::keys::{FleetKeys, HostKeys};
    use super::*;
    use proptest::prelude::*;

    fn body_of(jwt: &str) -> Value {
        let body = BASE64URL_NOPAD.decode(jwt.split('.').nth(1).expect("a body").as_bytes()).expect("base64");
        serde_json::from_slice(&body).expect("JSON")
    }

    #[test]
    fn a_member_s_claims_name_its_own_places_and_no_others() {
        let (fleet, keys, host) = ("home".parse().expect("a name"), FleetKeys::generate(), HostKeys::generate());
        let name = "box".parse().expect("a name");
        let login = LoginKey::of_fleet(&keys);
        let jwt = member(&login, &fleet, "hub", &name, &host.user_key(), 1_790_000_000);
        let claims = body_of(&jwt);
        let allowed = |way: &str| claims["nats"][way]["allow"].as_array().cloned().unwrap_or_default();
        let publish: Vec<String> =
            allowed("pub").iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect();
        assert_eq!(publish.len(), 2 + 2 * 7 + 4, "{publish:#?}");
        for subject in &publish {
            let is_own = subject.contains("box.*.box.*")
                || subject.ends_with("host.box")
                || ["box-req", "box-res", "STREAM.INFO", "DIRECT.GET.tk_home_hosts"]
                    .iter()
                    .any(|own| subject.contains(own));
            assert!(is_own, "{subject}");
        }
        assert_eq!(allowed("sub"), [json!("_INBOX.box.>"), json!("tk.home.roster.*")]);
        assert_eq!(subject_and_end(&jwt), Some((host.user_key().to_string(), None)));
        assert_eq!((&claims["iss"], &claims["nats"]["issuer_account"]), (&json!(keys.account_key()), &Value::Null));
        let plain = body_of(&member(&login, &fleet, "", &name, &host.user_key(), 1));
        let subjects = plain["nats"]["pub"]["allow"].as_array().expect("a list");
        assert!(subjects.iter().all(|subject| !subject.as_str().unwrap_or_default().contains("..")), "{subjects:?}");
    }

    #[test]
    fn claims_are_later_than_the_expulsion_of_their_key() {
        assert_eq!(
            [None, Some(50), Some(99), Some(100), Some(500)].map(|at| issued_s(100, at)),
            [100, 100, 100, 101, 501]
        );
    }

    #[test]
    fn claims_by_a_signing_key_name_the_account() {
        let (account, signing, host) = (FleetKeys::generate(), FleetKeys::generate(), HostKeys::generate());
        let login = LoginKey::from_seed(&signing.seed(), account.account_key()).expect("a seed");
        let claims = body_of(&owner(&login, &host.user_key(), 1));
        assert_eq!(claims["iss"], json!(signing.account_key()));
        assert_eq!(claims["nats"]["issuer_account"], json!(account.account_key()));
        // A server refuses this field if the account's own key signs.
        let own = LoginKey::from_seed(&account.seed(), account.account_key()).expect("a seed");
        assert_eq!(body_of(&owner(&own, &host.user_key(), 1))["nats"]["issuer_account"], Value::Null);
    }

    #[test]
    fn the_keys_that_were_expelled_are_read_back_from_the_claims() {
        let (server, fleet) = (ServerKeys::generate(), FleetKeys::generate());
        let name = "home".parse().expect("a name");
        let expelled = BTreeMap::from([(HostKeys::generate().user_key(), 7), (HostKeys::generate().user_key(), 9)]);
        let claims = fleet_account(&server, (&name, &fleet.account_key()), &expelled, 1_790_000_000);
        assert_eq!(expelled_in(&claims), expelled);
        assert_eq!(expelled_in(""), BTreeMap::new());
    }

    #[test]
    fn an_owner_s_claims_end_by_themselves() {
        let (keys, host) = (FleetKeys::generate(), HostKeys::generate());
        let jwt = owner(&LoginKey::of_fleet(&keys), &host.user_key(), 1_000);
        assert_eq!(subject_and_end(&jwt), Some((host.user_key().to_string(), Some(1_600))));
    }

    proptest! {
        #[test]
        fn claims_that_are_none_are_read_as_none(text in "\\PC{0,200}|[A-Za-z0-9_-]{0,40}\\.[A-Za-z0-9_-]{0,80}\\.[A-Za-z0-9_-]{0,20}") {
            let _ = subject_and_end(&text);
            prop_assert!(expelled_in(&text).is_empty());
        }
    }
}
