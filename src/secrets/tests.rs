//! What is found as a credential, and what is not.

use super::*;

/// Letters and digits without an order, so that each shape below has the entropy of a real key. They are put together
/// here, so that no file of the repository holds anything that looks like a key.
const NOISE: &str = "q7Zk2Vx9Lm4TcR8wYb3NfJ6sHd5GpA1eUoXiKtBvCnMzQjWrEyDuFgShLaPO0I7k9x2m4c8w3n6d5p1e";

pub(super) fn noise(count: usize) -> &'static str {
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
        let redacted = redact(&text, &Known::default()).expect("all of it");
        assert!(kinds(&redacted).is_empty(), "{kind}: {redacted}");
        assert!(redacted.starts_with("# Work\n\nThe key is ") && redacted.contains("[REDACTED:"), "{redacted}");
    }
}

#[test]
fn keys_are_found_as_prose_markdown_and_configuration_hold_them() {
    let stripe = format!("sk_live_{}", noise(24));
    let secret = noise(24);
    for sample in [
        format!("It is {stripe}."),
        format!("({stripe})"),
        format!("**{stripe}**"),
        format!("| a | {stripe} | b |"),
        format!("https://h/p?a={stripe}&b=1"),
        format!("**Password:** {secret}"),
        format!("- **API key**: `{secret}`"),
        format!("| password | {secret} |"),
        format!("OPENAI_KEY='{secret}'"),
        format!("AccountKey={secret}=="),
        format!("{{\\\"apiKey\\\":\\\"{secret}\\\"}}"),
        format!("<password>{secret}</password>"),
        format!("login --password {secret}"),
        format!("{{\"Authorization\": \"Basic {secret}\"}}"),
        format!("AWS_SECRET_ACCESS_KEY=/{}", noise(39)),
        format!("SECRET_KEY={}.kZ9x", noise(28)),
        format!("sk-ant-oat01-{}", noise(60)),
        format!("https://{}@github.com/o/r.git", noise(40)),
        format!("postgres://u:%23{secret}@h/db"),
        format!("password: \"{},{};{}\"", noise(10), noise(12), noise(11)),
        format!("TOKEN={}", noise(80).repeat(8)),
        format!("Authorization: Bearer {}", noise(80).repeat(17)),
        format!(
            "-----BEGIN RSA PRIVATE KEY-----\n{secret}\n\n-----BEGIN PRIVATE KEY-----\n{secret}...\n-----END PRIVATE KEY-----"
        ),
        format!("curl -u a:{secret} https://h/\ncurl -ub:{}Z https://h/", noise(20)),
        format!("The password is `{secret}`."),
        format!("Log in as kai, password \"{secret}\"."),
        format!("the Password for db-1 is '{secret}'"),
        format!("The passphrase (`{secret}`) opens it."),
        format!("docker login -u kai -p {secret} ghcr.io"),
        format!("helm registry login r.io --username kai -p '{secret}'"),
        format!("redis-cli -h cache-1 -a {secret} ping"),
        format!("mongosh \"mongodb://h\" -u kai -p {secret}"),
        format!("postgres://postgres:{secret}@localhost:5432/app"),
    ] {
        let text = format!("# Work\n\n{sample}\n");
        let redacted = redact(&text, &Known::default()).expect("all of it");
        for part in [noise(8), &secret[16..], &noise(80)[70..]] {
            assert!(!redacted.contains(part), "{part} in {redacted}, of {sample}");
        }
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
token_expires: 2026-11-24T04:15:36Z; api_key_id = 6f1c3a52-8d1e-4c0b-9f57-0a1b2c3d4e5f; `let token = TokenKind::Ident2`
Fix token: 5584fc9878fdd7126efcfe820cd407e24441fc59; `secrets::tests::finds_24_keys: ok`; Bearer YOUR_TOKEN_HERE_2
secret_arn = \"arn:aws:secretsmanager:eu-1:123456789012:secret:app\"; JWT_SECRET=replace-me-2024; bearer token-validation-code
postgres://postgres:postgres@localhost:5432/app redis://dev:dev@127.0.0.1 amqp://guest:guest@[::1]:5672
The password `users.password_hash`, the password is `PASSWORD_2`, password `PasswordV2`; password \"${DB_PASS2}\" password 'hash_v2'
docker run -p 8080:80 web; docker login -p $TOKEN1 -u kai; redis-cli -a \"$REDIS_PASS1\"; docker compose -p app2 up; mongosh -p
postgres://user:password@localhost/db; `token: src/auth/v2/token_2.rs:42`; --token-file /run/secrets/t1; --password-stdin
sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
secret: kubernetes/prod/db-password-v2; secretRef: projects/123456/secrets/db-pass/versions/7, api_token: api/v1/tokens/create_token
secret_name: my-app-prod-db-credentials-20261128 token = csrf_token_from_cookie_v2 reset tokens: token_expires_at_2026_11_28
curl -u admin:admin http://localhost:8080
";
    let found = find(text, &Known::default());
    assert!(found.is_empty(), "{:?}", found.iter().map(|one| &text[one.bytes.clone()]).collect::<Vec<_>>());
}

#[test]
fn values_of_the_agents_environment_are_found_wherever_they_are() {
    let environment = [
        ("MY_API_KEY".to_owned(), "correct horse 7".to_owned()),
        ("SSH_KEY_FILE".to_owned(), env!("CARGO_MANIFEST_DIR").to_owned()),
        ("TOKEN_LIMIT".to_owned(), "20000000".to_owned()),
        ("PATH".to_owned(), "usr-bin-and-more".to_owned()),
        ("SHORT_SECRET".to_owned(), "abc1".to_owned()),
    ];
    let text = concat!("It says correct horse 7, ", env!("CARGO_MANIFEST_DIR"), ", 20000000, usr-bin-and-more, abc1.");
    let found = find(text, &Known { environment: &environment, allowed: &[] });
    assert_eq!(found.iter().map(|secret| &*secret.kind).collect::<Vec<_>>(), ["environment:MY_API_KEY"]);
    assert_eq!(found[0].last, "", "it is short");
    let redacted = redact(text, &Known { environment: &environment, allowed: &[] }).expect("all of it");
    assert!(redacted.starts_with("It says [REDACTED:environment:MY_API_KEY], /"), "{redacted}");
}

#[test]
fn a_value_that_is_a_word_is_found_only_where_it_stands_alone() {
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let environment = [
        variable("POSTGRES_PASSWORD", "postgres"),
        variable("PIN_PASS", "31415926"),
        variable("DB_PASSWORD", "correcthorsebatterystaple"),
    ];
    let text = "The postgresql migration, postgres_data, mypostgres, 314159265; postgres:postgres@db, `31415926`, \
        -pcorrecthorsebatterystaple";
    let known = Known { environment: &environment, allowed: &[] };
    let [postgres, pin, db] =
        ["POSTGRES_PASSWORD", "PIN_PASS", "DB_PASSWORD"].map(|name| format!("[REDACTED:environment:{name}]"));
    let expected = format!(
        "The postgresql migration, postgres_data, mypostgres, 314159265; {postgres}:{postgres}@db, `{pin}`, -p{db}"
    );
    assert_eq!(without(text, &known), expected);
    assert_eq!(without_words(environment.to_vec()), environment[2..]);
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
    let redacted = redact(&text, &Known::default()).expect("all of it");
    assert!(!redacted.contains(noise(12)), "{redacted}");
    assert!(redacted.starts_with("é→[REDACTED:"), "{redacted}");
}

/// Facts hold hundreds of paths and command lines, and each one is searched.
#[test]
fn many_short_texts_are_searched_in_time() {
    let texts: Vec<String> =
        (0..1_000).map(|n| format!("curl -s http://localhost:{n}/api-key; cat src/token_{n}.rs # secret")).collect();
    let start = std::time::Instant::now();
    assert!(texts.iter().all(|text| redact(text, &Known::default()).is_some_and(|redacted| redacted == *text)));
    // It takes a tenth of a second; if each search compiled its expressions, it would take longer than this.
    assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn a_document_of_the_largest_size_is_searched_in_time() {
    let line =
        "The secret token of the api key is in the vault; see `src/auth.rs`. password curl bearer sk- ghp_ ://\n";
    let text = line.repeat(1024 * 1024 / line.len());
    let start = std::time::Instant::now();
    assert_eq!(kinds(&text), [] as [&str; 0]);
    // A limit against expressions that need time out of all proportion, not a measure of the machine.
    assert!(start.elapsed() < std::time::Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn a_value_counts_without_its_frame_and_line_by_line() {
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let environment = [
        variable("CR_PASSWORD", "Cr0ub4dor-mallet-91x\r"),
        variable("QU_TOKEN", "\"Qr0ub4dor-mallet-91x\""),
        variable("ML_KEY", "Mr0ub4dor-mallet-91x\nNr0ub4dor-mallet-91x"),
        variable("PATH", "/usr/bin"),
    ];
    let values = values(&environment);
    let known = Known { environment: &values, allowed: &[] };
    for text in ["Cr0ub4dor-mallet-91x", "Qr0ub4dor-mallet-91x", "> Mr0ub4dor-mallet-91x\n> Nr0ub4dor-mallet-91x"] {
        let left = without(text, &known);
        assert!(!left.contains("mallet"), "{left}");
    }
    assert!(values.iter().all(|(name, _)| name != "PATH"));
}
