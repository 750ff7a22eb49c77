//! The shapes of credentials that rules of vendors don't know, and what only looks like one.

use super::tests::noise;
use super::*;

/// What is left of a text without its credentials.
fn redacted(text: &str) -> String {
    redact(text, &Known::default()).expect("all of it")
}

fn hex(count: usize) -> &'static str {
    &"9f8a3c7e1b5d2046e8c9a7f1d3b5406297ce8fa1b3d5c7e90214f6a8b0c2d4e6f8"[..count]
}

fn upper(count: usize) -> String {
    noise(count).to_uppercase()
}

#[test]
fn keys_of_more_vendors_are_found() {
    let base32 = ["q7zk2vx4lm4tcr2wyb3nfj6shd", "5gpa2euoxiktbvcnmzqjwredyu"].concat();
    let samples = [
        format!("sk-{}", hex(32)),
        format!("sk-{}", noise(48)),
        format!("sk-proj-{}", noise(40)),
        format!("sk-ant-api03-{}", noise(30)),
        format!("xoxc-1234567890-{}", noise(40)),
        format!("xoxd-{}%2B{}", noise(30), noise(10)),
        format!("NRAK-{}", upper(27)),
        format!("figd_{}", noise(40)),
        format!("dckr_pat_{}", noise(27)),
        format!("dckr_oat_{}", noise(32)),
        format!("whsec_{}", noise(32)),
        format!("nvapi-{}", noise(64)),
        format!("pcsk_{}_{}", noise(6), noise(60)),
        format!("csk-{}", noise(48).to_lowercase()),
        format!("lsv2_pt_{}_{}", hex(32), hex(10)),
        format!("tvly-{}", noise(32)),
        format!("sb_secret_{}_{}", noise(22), noise(8)),
        format!("nfp_{}", noise(36)),
        format!("ATBB{}", noise(32)),
        format!("ATCTT3{}", noise(80)),
        format!("CCIPAT_{}_{}", noise(22), hex(40)),
        format!("bkua_{}", hex(40)),
        format!("phx_{}", noise(43)),
        format!("sl.{}", noise(80).repeat(2)),
        format!("rnd_{}", noise(32)),
        format!("hf_{}", noise(34)),
        format!("pat{}.{}", noise(14), hex(64)),
        format!("1//0{}", noise(60)),
        format!("{}AZDO{}", noise(76), noise(4)),
        format!("M{}.{}.{}", noise(23), &noise(80)[30..36], &noise(80)[40..68]),
        format!("azure: {base32}"),
    ];
    for sample in samples {
        let text = redacted(&format!("It is {sample} and that."));
        let end = &sample[sample.len() - 4..];
        assert!(text.contains("[REDACTED:") && !text.contains(end) && text.ends_with(" and that."), "{sample}: {text}");
    }
}

#[test]
fn secrets_are_found_by_what_stands_before_them() {
    let (password, uuid) = (&noise(22)[10..], "6f1c3a52-8d1e-4c0b-9f57-0a1b2c3d4e5f");
    let samples = [
        format!("SECRET_KEY={}", hex(64)),
        format!("API_TOKEN={}", hex(40)),
        format!("API_KEY={uuid}"),
        format!("CONSUL_HTTP_TOKEN={uuid}"),
        format!("\"api_key\": \"{uuid}\","),
        format!("DB_PASS={password}"),
        format!("export MYSQL_PWD='{password}'"),
        format!("PGPASSWORD={password} psql"),
        format!("client-key-data: {}", noise(80)),
        format!("    client-key: LS0tLS1CRUdJTi{}{}", "BSU0EgUFJJVkFURSB", noise(60)),
        format!("\"auth\": \"{}==\"", noise(22)),
        format!("machine api.example.org login kai password {password}"),
        format!("machine api.example.org\n  login kai\n  password {password}"),
        format!("db.example.org:5432:app:kai:{password}"),
        format!("Server=db;Uid=kai;Pwd={password};"),
        format!("mysql -u kai -h db -p{password} app"),
        format!("sshpass -p {password} ssh kai@h"),
        format!("Cookie: theme=dark; session={}; id=4", noise(32)),
        format!("https://h.example.org/v1?a=b&key={}", noise(32)),
        format!("postgres://kai:ab/{password}@db/app"),
        format!("postgres://kai:ab@{password}@db/app"),
        format!("password: 'correct {password} staple'"),
        format!("password: \"correct horse {password} …"),
        format!("DB_PASSWORD=x7...{password}!"),
    ];
    for sample in samples {
        let text = redacted(&format!("# Work\n\n{sample}\n"));
        for secret in [password, uuid, noise(22), hex(40), "staple"] {
            assert!(!text.contains(secret) && text.contains("[REDACTED:"), "{sample}: {text}");
        }
    }
}

#[test]
fn what_looks_like_such_a_secret_is_none() {
    let text = format!(
        "\
Fix token: {0}; CACHE_KEY={0}; cache_key: \"{0}\"; PUBLIC_KEY={0}; PASS: tests/a_1.rs; first_pass = 12345678
http://localhost:8080/@scope/pkg@2; https://registry.example.org:4873/@scope/pkg; file.rs:12:34:56:warning
PWD=/work/x; PASS=$PASS; DB_PASS=<password>; mysql -u root -p app; mysql -p\"$DB_PASS\"; sshpass -p \"$PASS\" ssh h
password: 'at least 8 characters', password = \"Password is required\"; Cookie: SameSite=Lax; ?key=your-key-goes-here-1
login with a password first; machine learning; the `auth`: \"basic\"; sk-learn; slots.sl.get; task-1234567890abcdef
The key sk-...abcd1234 and DB_PASSWORD=abcd...wxyz; `-----BEGIN CERTIFICATE-----`; pattern.matches; 1//04
",
        hex(40)
    );
    let found = find(&text, &Known::default());
    assert!(
        found.is_empty(),
        "{:?}",
        found.iter().map(|one| (&one.kind, &text[one.bytes.clone()])).collect::<Vec<_>>()
    );
}

#[test]
fn a_private_key_is_found_by_its_end_and_takes_no_prose_with_it() {
    let lines = format!("{}\n", &noise(80)[..64]).repeat(6);
    let end = format!("-----END RSA PRIVATE {}-----", "KEY");
    for (before, last) in [("", "\n"), ("q8==\n", "\n"), ("Zk\n", ""), ("=aBcD\n", "\n")] {
        let text = redacted(&format!("The words before\n{lines}{before}{end}{last}and after."));
        assert_eq!(text.replace("\nand", "and"), "The words before\n[REDACTED:private-key-end]and after.");
    }
    let numbered: String = lines.lines().enumerate().map(|(at, line)| format!("     {}\t{line}\n", at + 2)).collect();
    let text = redacted(&format!("{numbered}     8\t{end}"));
    assert!(!text.contains(noise(20)), "{text}");
    let openssh = format!("b3BlbnNzaC1rZXkt{}\n{lines}AAAEB==\n", noise(40));
    let text = format!("cat:\n{openssh}These words stay. And these.\n");
    let found = find(&text, &Known::default());
    assert_eq!((found.len(), found[0].last.as_str()), (1, ""), "{found:?}");
    assert_eq!(redacted(&text), "cat:\n[REDACTED:openssh-key]\nThese words stay. And these.\n");
}

#[test]
fn a_variable_whose_name_says_secret_needs_no_odd_value() {
    let value = "correcthorsebatterystaple";
    for name in ["ADMIN_PASSWORD", "DB_PASS", "MYSQL_PWD", "PGPASSWORD", "A_PASSWD", "API_TOKEN", "SSH_PASSPHRASE"] {
        assert!(is_secret(name, value) && is_secret(name, "31415926"), "{name}");
    }
    for name in ["PWD", "OLDPWD", "SSH_ASKPASS", "KEYBOARD_LAYOUT", "TOKEN_LIMIT", "SECRET_BACKEND", "GIT_BYPASS"] {
        assert!(!is_secret(name, value) && !is_secret(name, "31415926"), "{name}");
    }
    assert!(!is_secret("ADMIN_PASSWORD", "secret1"), "it is short");
    assert!(!is_secret("HOST_KEY", env!("CARGO_MANIFEST_DIR")), "a path");
}
