//! A server that another party runs: it has given an account, and a signing key of it. It must be able to make nobody a
//! member.

use crate::fleet::{NatsServer, TestHost, free_port, succeeded};
use async_nats::ConnectOptions;
use data_encoding::{BASE64, BASE64URL_NOPAD};
use nkeys::KeyPair;
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use tasuki::fleet::{FleetKeys, MemberList};

/// The other party's server, its account, and two signing keys of the account.
struct GivenServer {
    server: NatsServer,
    account: KeyPair,
    signing: [KeyPair; 2],
    dir: tempfile::TempDir,
}

/// Claims as the other party's own tools write them.
fn claims(by: &KeyPair, subject: &str, nats: &Value) -> String {
    let body = json!({"iat": 1_790_000_000, "iss": by.public_key(), "sub": subject, "name": "theirs", "nats": nats});
    let text = format!(
        "{}.{}",
        BASE64URL_NOPAD.encode(br#"{"typ":"JWT","alg":"ed25519-nkey"}"#),
        BASE64URL_NOPAD.encode(body.to_string().as_bytes())
    );
    let signature = by.sign(text.as_bytes()).expect("it has its secret half");
    format!("{text}.{}", BASE64URL_NOPAD.encode(&signature))
}

fn account_claims(by: &KeyPair, account: &KeyPair, disk: i64, signing: &[String]) -> String {
    let streams = if disk > 0 { -1 } else { 0 };
    let limits = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
        "mem_storage": 0, "disk_storage": disk, "streams": streams, "consumer": streams,
    });
    let nats = json!({"type": "account", "version": 2, "limits": limits, "signing_keys": signing});
    claims(by, &account.public_key(), &nats)
}

impl GivenServer {
    /// Without a domain, as managed servers are.
    fn start() -> Option<GivenServer> {
        let (dir, port) = (tempfile::tempdir().expect("a folder"), free_port());
        let server = NatsServer::at(dir.path().to_owned(), port)?;
        let (operator, system, account) = (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_account());
        let signing = [KeyPair::new_account(), KeyPair::new_account()];
        let public: Vec<String> = signing.iter().map(KeyPair::public_key).collect();
        let of_operator = json!({"type": "operator", "version": 2, "system_account": system.public_key()});
        let conf = format!(
            "listen: \"127.0.0.1:{port}\"\noperator: {}\nsystem_account: {system_key}\nresolver: MEMORY\n\
             resolver_preload: {{\n  {system_key}: {}\n  {}: {}\n}}\njetstream {{\n  store_dir: \"{}\"\n  max_file_store: 8589934592\n}}\n",
            claims(&operator, &operator.public_key(), &of_operator),
            account_claims(&operator, &system, 0, &[]),
            account.public_key(),
            account_claims(&operator, &account, 2 << 30, &public),
            dir.path().join("jetstream").display(),
            system_key = system.public_key(),
        );
        fs::write(dir.path().join("nats-server.conf"), conf).expect("written");
        server.start();
        Some(GivenServer { server, account, signing, dir })
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.server.port)
    }

    /// A file with a seed, as such files are given.
    fn seed_file(&self, name: &str, key: &KeyPair) -> String {
        let path = self.dir.path().join(name);
        fs::write(&path, format!("# a signing key\n{}\n", key.seed().expect("a seed"))).expect("written");
        path.display().to_string()
    }

    fn setup(&self, host: &TestHost, seed_file: &str) -> std::process::Output {
        let (account, url) = (self.account.public_key(), self.url());
        let args =
            ["setup", "--account", &account, "--signing-key", seed_file, "--server", &url, "--name", "test", "--as"];
        host.fleet_command(&[&args[..], &[&host.name]].concat()).output().expect("it runs")
    }
}

fn own_files(host: &TestHost) -> (Value, Value) {
    let jwt = fs::read_to_string(host.files("jwt")).expect("its claims");
    let body = BASE64URL_NOPAD.decode(jwt.split('.').nth(1).expect("a body").as_bytes()).expect("base64");
    let file = fs::read(host.files("host.json")).expect("its file");
    (serde_json::from_slice(&body).expect("JSON"), serde_json::from_slice(&file).expect("JSON"))
}

#[test]
fn a_fleet_lives_in_an_account_of_another_party_that_can_make_nobody_a_member() {
    let Some(given) = GivenServer::start() else { return };
    let [a, b] = ["a", "b"].map(TestHost::new);
    let wrong = given.setup(&a, &given.seed_file("wrong", &KeyPair::new_account()));
    assert_eq!(wrong.status.code(), Some(77), "{wrong:?}");
    assert!(!a.files("owner.json").exists(), "a key that the server does not take is not kept");
    let seed_file = given.seed_file("seed", &given.signing[0]);
    succeeded(&given.setup(&a, &seed_file));
    // The same again changes nothing.
    let key = own_files(&a).1["fleet"]["key"].clone();
    succeeded(&given.setup(&a, &seed_file));
    let (own, file) = own_files(&a);
    assert_eq!(file["fleet"]["key"], key);
    let [account, signing] = [&given.account, &given.signing[0]].map(|pair| json!(pair.public_key()));
    assert_eq!((&own["iss"], &own["nats"]["issuer_account"]), (&signing, &account));
    assert!(key != account && key != signing, "the fleet's key is its own");
    let line = b.fleet(&["key", "b"]);
    let ticket = a.fleet(&["admit", line.trim()]);
    b.fleet(&["join", ticket.trim()]);
    b.accept("a", &["view"]);
    [&a, &b].into_iter().for_each(TestHost::start_bridge);
    [&a, &b].into_iter().for_each(TestHost::until_serving);
    let view = json!({"kind": "view", "of": "agents"});
    assert_eq!(a.ask("v1", "b", &view)["status"], 200);
    // The other party makes a list of members with its own keys: an empty one, of a high version.
    forge_list(&given);
    b.until("it is seen", || b.bridge_view()["problem"].as_str().is_some_and(|it| it.contains("not believed")));
    assert_eq!(a.ask("v2", "b", &view)["status"], 200, "a is a member still");
}

/// With all rights of the account, and signed by what it has: the signing key, and the account's own.
fn forge_list(given: &GivenServer) {
    let list = MemberList::new("test".parse().expect("a name"), 99, Vec::new());
    let user = KeyPair::new_user();
    let nats = json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1});
    let (jwt, user) = (claims(&given.account, &user.public_key(), &nats), Arc::new(user));
    let options = ConnectOptions::with_jwt(jwt, move |nonce| {
        let user = Arc::clone(&user);
        async move { user.sign(&nonce).map_err(async_nats::AuthError::new) }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = options.connect(given.url()).await.expect("it is their server");
        for pair in [&given.signing[0], &given.account] {
            let keys = FleetKeys::from_seed(&pair.seed().expect("a seed")).expect("such a key");
            let stored = client.request("tk.test.host._fleet", list.sign(&keys).into()).await.expect("stored");
            assert!(!String::from_utf8_lossy(&stored.payload).contains("error"), "{stored:?}");
        }
    });
}

#[test]
fn a_signing_key_can_be_replaced_and_who_can_only_be_revoked_elsewhere_is_told() {
    let Some(given) = GivenServer::start() else { return };
    let [a, b] = ["a", "b"].map(TestHost::new);
    succeeded(&given.setup(&a, &given.seed_file("seed", &given.signing[0])));
    let line = b.fleet(&["key", "b"]);
    let before = fs::read(a.files("owner.json")).expect("its file");
    let wrong = given.seed_file("wrong", &KeyPair::new_account());
    let refused = a.fleet_command(&["admit", "--signing-key", &wrong, line.trim()]).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(77), "{refused:?}");
    assert_eq!(fs::read(a.files("owner.json")).expect("its file"), before);
    let next = given.seed_file("next", &given.signing[1]);
    let ticket = a.fleet(&["admit", "--signing-key", &next, line.trim()]);
    b.fleet(&["join", ticket.trim()]);
    assert_eq!(own_files(&b).0["iss"], json!(given.signing[1].public_key()));
    // It is kept: the next one needs no option.
    assert_eq!(a.fleet(&["admit", line.trim()]).len(), ticket.len());
    let signed = fs::read(a.files("members.json")).expect("the list");
    let signed: Value = serde_json::from_slice(&signed).expect("JSON");
    assert!(BASE64.decode(signed["signed"].as_str().expect("signed").as_bytes()).is_ok());
    let expelled = a.fleet_command(&["expel", "b"]).output().expect("it runs");
    succeeded(&expelled);
    let key = line.split('.').nth(3).expect("its user key");
    let told = String::from_utf8_lossy(&expelled.stderr).into_owned();
    assert!(told.contains("Revoke its user key") && told.contains(key), "{told}");
}
