//! The rules of `data/secrets.toml`: what a credential looks like.

use regex::bytes::{Captures, Match, Regex, RegexBuilder};
use serde::Deserialize;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

/// The rules, read once.
pub(super) static RULES: LazyLock<Vec<SecretRule>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct SecretRuleFile {
        rules: Vec<SecretRule>,
    }
    let text = include_str!("../../data/secrets.toml");
    let file: SecretRuleFile = toml::from_str(text).expect("a test reads the same file");
    file.rules
});

/// What one credential looks like.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretRule {
    id: String,
    regex: String,
    #[serde(default)]
    entropy: f64,
    keywords: Vec<String>,
    /// If one of these matches the credential, it does not count.
    #[serde(default)]
    allow: Vec<String>,
    /// If one of these matches the whole match of `regex`, the credential in it does not count.
    #[serde(default)]
    unless: Vec<String>,
    /// Which group of `regex` is the credential. If not set: the first group that matched, or the whole match.
    group: Option<usize>,
    #[serde(skip)]
    compiled: OnceLock<Compiled>,
}

/// The expressions of a rule, ready for use.
struct Compiled {
    secret: Regex,
    allowed: Vec<Regex>,
    unless: Vec<Regex>,
}

impl SecretRule {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Whether the expression is worth trying on a text: it holds a keyword of the rule. `lower` is the text in lower
    /// case.
    pub(super) fn may_match(&self, lower: &str) -> bool {
        self.keywords.iter().any(|keyword| lower.contains(keyword))
    }

    /// Where this rule finds credentials in a text, in bytes. The expressions are compiled when a text first holds a
    /// keyword of the rule: to compile all of them at the start would take half a second, and few are ever tried.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        let Compiled { secret, allowed, unless } = self.compiled();
        let found = secret.captures_iter(text.as_bytes());
        let found = found.filter(|found| !unless.iter().any(|unless| unless.is_match(&found[0])));
        let secrets = found.filter_map(|found| self.secret(&found));
        let secrets = secrets.map(|secret| secret.start()..secret.start() + without_end(secret.as_bytes()).len());
        let counts = |bytes: &Range<usize>| {
            let secret = &text.as_bytes()[bytes.clone()];
            !allowed.iter().any(|allowed| allowed.is_match(secret)) && entropy(secret) >= self.entropy
        };
        secrets.filter(counts).map(|bytes| whole_letters(text, bytes)).collect()
    }

    fn compiled(&self) -> &Compiled {
        let all = |expressions: &[String]| expressions.iter().map(|expression| compile(expression)).collect();
        self.compiled.get_or_init(|| Compiled {
            secret: compile(&self.regex),
            allowed: all(&self.allow),
            unless: all(&self.unless),
        })
    }

    fn secret<'t>(&self, found: &Captures<'t>) -> Option<Match<'t>> {
        match self.group {
            Some(group) => found.get(group),
            None => found.iter().skip(1).flatten().next().or_else(|| found.get(0)),
        }
    }
}

/// The credential without the comma or other mark that ends the clause.
fn without_end(secret: &[u8]) -> &[u8] {
    let len = secret.iter().rposition(|byte| !b",;:.".contains(byte)).map_or(0, |at| at + 1);
    &secret[..len]
}

/// The expressions work on bytes. A find that begins or ends within a character is extended to the whole character.
fn whole_letters(text: &str, mut bytes: Range<usize>) -> Range<usize> {
    while !text.is_char_boundary(bytes.start) {
        bytes.start -= 1;
    }
    while !text.is_char_boundary(bytes.end) {
        bytes.end += 1;
    }
    bytes
}

/// Compiles an expression, without Unicode classes: no credential is written in the letters of other alphabets, and
/// without them an expression is many times smaller.
fn compile(expression: &str) -> Regex {
    RegexBuilder::new(expression).unicode(false).build().expect("a test compiles every rule")
}

/// Shannon's entropy of the bytes of a text, in bits for each of them.
pub(super) fn entropy(text: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text {
        counts[usize::from(*byte)] += 1;
    }
    let len = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX).max(1));
    let share = |count: &u32| f64::from(*count) / len;
    counts.iter().filter(|count| **count > 0).map(share).map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_compiles_and_has_a_keyword_in_lower_case() {
        assert!(RULES.len() > 200, "{} rules", RULES.len());
        for rule in RULES.iter() {
            assert!(rule.find("").is_empty(), "{}", rule.id());
            assert!(!rule.keywords.is_empty(), "{}", rule.id());
            for keyword in &rule.keywords {
                assert_eq!(*keyword, keyword.to_lowercase(), "{}", rule.id());
            }
        }
    }

    #[test]
    fn entropy_is_that_of_the_letters() {
        assert!(entropy(b"").abs() < 1e-9);
        assert!(entropy(b"aaaa").abs() < 1e-9);
        assert!((entropy(b"abcd") - 2.0).abs() < 1e-9);
    }
}
