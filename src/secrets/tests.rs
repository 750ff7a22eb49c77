//! What is found as a credential, and what is not.

use super::*;

/// Letters and digits without an order, so that each shape below has the entropy of a real key. They are put together here,
/// so that no file of the repository holds anything that looks like a key.
const NOISE: &str = "q7Zk2Vx9Lm4TcR8wYb3NfJ6sHd5GpA1eUoXiKtBvCnMzQjWrEyDuFgShLaPO0I7k9x2m4c8w3n6d5p1e";

fn noise(count: usize) -> &'static str {
    &NOISE[..count]
}

fn kinds(text: &str) -> Vec<String> {
    find(text, &Known::default()).into_iter().map(|secret| secret.kind).collect()
}

#[test]
fn keys_of_the_common_vendors_are_found() {
    let base32 = "Q7ZK2VX4LM4TCR2W";
    let samples = [
        ("github-pat", format!("ghp_{}", noise(36))),
        ("github-fine-grained-pat", format!("github_pat_{}aB", noise(80))),
        ("gitlab-pat", format!("glpat-{}", noise(20))),
        ("aws-access-token", format!("AKIA{base32}")),
        ("anthropic-api-key", format!("sk-ant-api03-{}AA", &noise(80).repeat(2)[..93])),
        ("slack-bot-token", format!("xoxb-1234567890123-1234567890123-{}", noise(24))),
        ("stripe-access-token", format!("sk_live_{}", noise(24))),
        ("npm-access-token", format!("npm_{}", noise(36).to_lowercase())),
        ("private-key", format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", noise(80))),
        ("password-in-address", format!("postgres://kai:{}@db.example.org/app", noise(9))),
        ("bearer-token", format!("curl -H 'Authorization: Bearer {}'", noise(32))),
        ("assigned-secret", format!("DB_PASSWORD={}", noise(14))),
        ("assigned-secret", format!("`api_key: \"{}\"`", noise(24))),
    ];
    for (kind, sample) in samples {
        let text = format!("# Work\n\nThe key is {sample} and stays there.\n");
        let found = find(&text, &Known::default());
        assert!(found.iter().any(|secret| secret.kind == kind), "{kind}: {sample}: {found:?}");
        assert!(found.iter().all(|secret| secret.line >= 3), "{found:?}");
        let redacted = redact(&text, &found);
        assert!(kinds(&redacted).is_empty(), "{kind}: {redacted}");
        assert!(redacted.starts_with("# Work\n\nThe key is ") && redacted.contains("[REDACTED:"), "{redacted}");
    }
}

#[test]
fn what_an_honest_document_says_of_credentials_is_none() {
    let text = "\
The token is read from `src/auth/token.rs:42`; secret: see the vault. password: none.
API_KEY=$API_KEY, TOKEN=${GITHUB_TOKEN}, token: <your token>, `secret = env.SECRET_VALUE`
HEAD is 5584fc9878fdd7126efcfe820cd407e24441fc59; max_token: 200000; tokens: 128,000; password = ********
postgres://user:$PASSWORD@host/db and https://example.org:8080/a@b; git@github.com:o/r.git
authorization: bearer <token>; the key is `config.keys.primary`, the secret: Vault::read_secret(name)
access_token: \"self.session.access_token\" api-key: \"XXXXXXXXXXXXXXXX\" token_path=/etc/tasuki/token.json
sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
";
    assert_eq!(kinds(text), [] as [&str; 0]);
}

#[test]
fn values_of_the_agents_environment_are_found_wherever_they_are() {
    let environment = [
        ("MY_API_KEY".to_owned(), "correct horse 7".to_owned()),
        ("SSH_KEY_FILE".to_owned(), "/home/kai/.ssh/id".to_owned()),
        ("TOKEN_LIMIT".to_owned(), "20000000".to_owned()),
        ("PATH".to_owned(), "usr-bin-and-more".to_owned()),
        ("SHORT_SECRET".to_owned(), "abc1".to_owned()),
    ];
    let text = "It says correct horse 7, /home/kai/.ssh/id, 20000000, usr-bin-and-more and abc1.";
    let found = find(text, &Known { environment: &environment, allowed: &[] });
    assert_eq!(found.iter().map(|secret| &*secret.kind).collect::<Vec<_>>(), ["environment:MY_API_KEY"]);
    assert_eq!(found[0].last, "", "it is short");
    assert!(redact(text, &found).starts_with("It says [REDACTED:environment:MY_API_KEY], /home"));
}

#[test]
fn what_the_operator_allows_is_none_and_the_rest_is() {
    let one = format!("ghp_{}", noise(36));
    let other = format!("glpat-{}", noise(20));
    let text = format!("{one}\n{other}\n");
    let allowed = [Regex::new("^ghp_q7").expect("an expression")];
    let found = find(&text, &Known { environment: &[], allowed: &allowed });
    assert_eq!(found.iter().map(|secret| (&*secret.kind, secret.line)).collect::<Vec<_>>(), [("gitlab-pat", 2)]);
    assert_eq!(found[0].last, &other[other.len() - 4..]);
}

#[test]
fn letters_of_many_bytes_and_overlaps_are_taken_out_whole() {
    let key = format!("ghp_{}", noise(36));
    let text = format!("é→{key} TOKEN={key}é\nAuthorization: Bearer {key}\n");
    let found = find(&text, &Known::default());
    let redacted = redact(&text, &found);
    assert!(!redacted.contains(noise(12)), "{redacted}");
    assert!(redacted.starts_with("é→[REDACTED:"), "{redacted}");
}

#[test]
fn a_document_of_the_largest_size_is_searched_in_time() {
    let line =
        "The secret token of the api key is in the vault; see `src/auth.rs`. password curl bearer sk- ghp_ ://\n";
    let text = line.repeat(MAX_TEXT / line.len());
    let start = std::time::Instant::now();
    assert_eq!(kinds(&text), [] as [&str; 0]);
    // A limit against expressions that need time out of all proportion, not a measure of the machine.
    assert!(start.elapsed() < std::time::Duration::from_secs(60), "{:?}", start.elapsed());
}
