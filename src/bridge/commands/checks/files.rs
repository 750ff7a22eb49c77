//! Checks `HOME/fleet`: who can open its folders and files, this host's key, its login, and the rights of other hosts.

use super::finding::{ADMIT_AGAIN, fail, listed, of_error, ok, warn};
use crate::bridge::folder::FleetFolder;
use crate::bridge::identity::{JWT, load_keys};
use crate::bridge::owner_file::OWNER;
use crate::bridge::settings::FleetSettings;
use crate::cli::doctor::Line;
use crate::core::text::shell_word;
use crate::core::time::rfc3339;
use crate::fleet::{Accepts, HostKeys, Right, UserKey, jwt};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a `key_command` may take in this check. That is shorter than elsewhere, so that the doctor does not hang.
const KEY_WITHIN: Duration = Duration::from_secs(4);
/// A login that expires within this time is a warning, in milliseconds.
const SOON_MS: i64 = 14 * 24 * 3_600_000;

/// Whether other users can open the folders and the files in them.
pub(super) fn folders(folder: &FleetFolder) -> Line {
    let id = "fleet.folders";
    if let Some(fault) = folder.faults().into_iter().next() {
        let said = fault.message.trim_end_matches(" Nothing was read or written.").trim_end_matches('.').to_owned();
        return fail(id, said, "close that folder to others (chmod 0700), or see paths.above");
    }
    let open = match folder.open_files() {
        Ok(open) => open,
        Err(error) => return of_error(id, error, "check that folder"),
    };
    if open.is_empty() {
        return ok(id, "only this user can open fleet/ and what lies in it");
    }
    let named: Vec<String> = open.iter().map(|(name, mode)| format!("{name} ({mode:04o})")).collect();
    let said = format!("other users can open files in fleet/: {}", listed(&named));
    let dir = shell_word(&folder.path("", "").display().to_string());
    let fix = format!("chmod go= {dir}*; if a key was open to others, leave the fleet and join with a new one");
    let is_secret = |name: &str| name == "key" || name == OWNER;
    if open.iter().any(|(name, _)| is_secret(name)) { fail(id, said, fix) } else { warn(id, said, fix) }
}

/// Whether this host's key can be read, or its command prints it.
pub(super) fn key(folder: &FleetFolder, settings: &FleetSettings) -> (Line, Option<HostKeys>) {
    let id = "fleet.key";
    let who = settings.key_command.first().map_or_else(|| "the file key holds".to_owned(), |it| format!("{it} prints"));
    match load_keys(folder, settings, KEY_WITHIN) {
        Ok(Some(keys)) => (ok(id, format!("{who} both seeds of this host")), Some(keys)),
        Ok(None) => (fail(id, format!("{} is missing", folder.path("", "key").display()), ADMIT_AGAIN), None),
        Err(error) => (of_error(id, error, "check key_command in fleet.toml, and the file key"), None),
    }
}

/// Whether the claims by which this host logs in are for its key and have not expired. Returns the claims too.
pub(super) fn login(folder: &FleetFolder, keys: Option<&HostKeys>, now_ms: i64) -> (Line, Option<String>) {
    let bytes = match folder.read("", JWT) {
        Ok(bytes) => bytes,
        Err(error) => return (of_error("fleet.jwt", error, ADMIT_AGAIN), None),
    };
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).map(|text| text.trim().to_owned());
    let line = judge_login(text.as_deref(), keys.map(HostKeys::user_key).as_ref(), now_ms);
    (line, text)
}

fn judge_login(text: Option<&str>, own: Option<&UserKey>, now_ms: i64) -> Line {
    let id = "fleet.jwt";
    let Some((subject, end_s)) = text.and_then(jwt::subject_and_end) else {
        return fail(id, "fleet/jwt, by which this host logs in, is missing or can't be read", ADMIT_AGAIN);
    };
    if own.is_some_and(|own| own.as_str() != subject) {
        return fail(id, "fleet/jwt is for another key than this host's", ADMIT_AGAIN);
    }
    let Some(end_ms) = end_s.map(|seconds| seconds.saturating_mul(1_000)) else {
        return ok(id, "the login is for this host's key and does not expire");
    };
    let at = rfc3339(end_ms);
    match end_ms.saturating_sub(now_ms) {
        ..=0 => fail(id, format!("the login has expired at {at}"), ADMIT_AGAIN),
        1..SOON_MS => warn(id, format!("the login expires at {at}"), ADMIT_AGAIN),
        _ => ok(id, format!("the login is for this host's key and expires at {at}")),
    }
}

/// Which hosts have rights by which they can have code run here.
pub(super) fn rights(accepts: &Accepts) -> Line {
    let id = "fleet.rights";
    let words = |rights: &BTreeSet<Right>| {
        rights.iter().filter(|right| right.runs_code()).map(|right| right.as_str()).collect::<Vec<_>>().join(", ")
    };
    let trusted = accepts.entries().filter(|(_, rights)| rights.iter().any(|right| right.runs_code()));
    let trusted: Vec<(&str, String)> = trusted.map(|(name, rights)| (name, words(rights))).collect();
    if let Some((_, words)) = trusted.iter().find(|(name, _)| *name == Accepts::EVERYBODY) {
        let said = format!("every host of the fleet that has no entry of its own may have code run here ({words})");
        return warn(id, said, "name the hosts instead: tasuki fleet refuse '*', then tasuki fleet accept HOST …");
    }
    let named: Vec<String> = trusted.iter().map(|(name, words)| format!("{name} ({words})")).collect();
    if named.is_empty() {
        return ok(id, "no other host may have code run here");
    }
    ok(id, format!("may have code run here: {}", listed(&named)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Home;
    use crate::fleet::{FleetKeys, LoginKey};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn hosts_that_may_run_code_are_named_and_a_right_for_every_host_is_a_warning() {
        let of = |json: &str| rights(&serde_json::from_str(json).expect("rights"));
        let status = |json: &str| of(json).status;
        assert_eq!(of("{}").said, "no other host may have code run here");
        assert_eq!(of(r#"{"a": ["view"], "*": ["view"]}"#).said, of("{}").said);
        assert_eq!(of(r#"{"a": ["view", "send"]}"#).said, "may have code run here: a (send)");
        assert_eq!((status(r#"{"a": ["send"]}"#), status(r#"{"*": ["send"]}"#)), ("ok".to_owned(), "warn".to_owned()));
    }

    #[test]
    fn a_login_must_be_for_this_host_s_key_and_must_not_have_expired() {
        let (fleet, own, other) = (FleetKeys::generate(), HostKeys::generate(), HostKeys::generate());
        let login = LoginKey::of_fleet(&fleet);
        let claims = jwt::owner(&login, &own.user_key(), 1_000_000);
        let end_ms = 1_000_600_000;
        let judged = |text: Option<&str>, keys: &HostKeys, now_ms| judge_login(text, Some(&keys.user_key()), now_ms);
        let status = |now_ms| judged(Some(&claims), &own, now_ms).status;
        assert_eq!(status(end_ms - SOON_MS), "ok");
        assert_eq!((status(end_ms - 1), status(end_ms)), ("warn".to_owned(), "fail".to_owned()));
        assert!(judged(Some(&claims), &other, 0).said.contains("another key"));
        assert_eq!((judged(None, &own, 0).status, judged(Some("x"), &own, 0).status), ("fail".into(), "fail".into()));
        let name = "box".parse().expect("a name");
        let member = jwt::member(&login, &"home".parse().expect("a name"), "hub", &name, &own.user_key(), 1);
        assert!(judged(Some(&member), &own, end_ms).said.contains("does not expire"));
    }

    #[test]
    fn files_that_others_can_open_and_keys_that_can_t_be_read_are_found() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = FleetFolder::open(&Home::at(dir.path()).expect("a home")).expect("it is made");
        let mode = |name: &str, mode| {
            let path = folder.path("", name);
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
        };
        assert_eq!(folders(&folder).status, "ok");
        let settings = FleetSettings::default();
        assert!(key(&folder, &settings).0.said.ends_with("key is missing"));
        crate::bridge::identity::save_keys(&folder, &HostKeys::generate()).expect("saved");
        std::fs::write(folder.path("", "looked"), "").expect("written");
        mode("looked", 0o644);
        assert_eq!(folders(&folder).status, "warn");
        mode("key", 0o640);
        assert_eq!(folders(&folder).status, "fail");
        assert!(folders(&folder).said.contains("key (0640)"));
        mode("out", 0o755);
        assert!(folders(&folder).said.contains("out (mode 0755)"), "{:?}", folders(&folder));
        let by_command = |words: &[&str]| {
            let key_command = words.iter().map(|word| (*word).to_owned()).collect();
            key(&folder, &FleetSettings { key_command, ..FleetSettings::default() })
        };
        assert!(key(&folder, &settings).1.is_some());
        assert_eq!(by_command(&["false"]).0.status, "fail");
        assert!(by_command(&["sleep", "300"]).0.said.contains("did not end within 4 s"));
        let file = folder.path("", "key").display().to_string();
        assert!(by_command(&["cat", &file]).1.is_some());
    }
}
