//! Documents with a flaw such as real agents make, for the demo agent's fault `flaw=WORD`. Pure.

use crate::core::check::without_front_matter;

/// The longest predecessor's document that is kept to be copied, in bytes.
pub const MAX_KEPT: usize = 64 * 1024;
/// The least size of a document with the flaw `long`, in bytes.
const LONG: usize = 200 * 1024;

/// A good document with a flaw in it; unchanged if there is no flaw of that name. `predecessor`: the document that this
/// agent has read.
#[must_use]
pub fn with_flaw(document: &str, flaw: &str, predecessor: Option<&str>) -> String {
    let added = |text: &str| format!("{document}\n{text}\n");
    match flaw {
        "headings" => document.lines().filter(|line| line.starts_with('#')).map(|line| format!("{line}\n\n")).collect(),
        "claims" => added(
            "Everything is committed at deadbee, the working tree is clean, the branch is pushed, and 412 tests pass.",
        ),
        "missing_file" => document.replace("None but this document.", "- `src/no_such_file.rs`: the new parser"),
        "fence" => added("```rust\nlet answer = 42;"),
        "secrets" => added(&format!(
            "I used the token {} and the database postgres://app:{}@db.internal/app.",
            credential("ghp_", 36),
            credential("", 20),
        )),
        "copy" => predecessor.map_or_else(|| document.to_owned(), str::to_owned),
        "no_checkpoint" => without_front_matter(document).to_owned(),
        "long" => {
            let more = "I looked at this as well, and wrote down every word of it.\n";
            added(&more.repeat(LONG / more.len() + 1))
        }
        _ => document.to_owned(),
    }
}

/// A text that looks like a credential but is not one. It is made at run time, so that no file of this repository holds
/// such a text.
fn credential(prefix: &str, length: usize) -> String {
    const LETTERS: &[u8] = b"q7Zx2Kd9mWc4TnR8vBp6Ls3HyJf5Gt1aXeUoQiNzMrCwVkPb";
    let letters = (0..length).map(|at| char::from(LETTERS[(at * 29 + 11) % LETTERS.len()]));
    prefix.chars().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flaw_is_in_its_document_and_an_unknown_one_is_not() {
        let good = "---\ncheckpoint: here\n---\n\n# Handoff\n\n## Next steps\n\nContinue.\n";
        assert_eq!(with_flaw(good, "none of them", None), good);
        assert_eq!(with_flaw(good, "headings", None), "# Handoff\n\n## Next steps\n\n");
        assert_eq!(with_flaw(good, "no_checkpoint", None), "# Handoff\n\n## Next steps\n\nContinue.\n");
        assert_eq!(with_flaw(good, "copy", Some("old")), "old");
        assert!(with_flaw(good, "long", None).len() > LONG);
        let secrets = with_flaw(good, "secrets", None);
        assert!(secrets.contains("ghp_") && secrets.contains("postgres://app:"), "{secrets}");
    }
}
