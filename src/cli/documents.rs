//! Reads the document of a handoff, to show it: only the handoff's own file, and without following a link.

use super::error::CliError;
use super::examined;
use super::view::said;
use crate::config::Home;
use crate::contract::handoff::Step;
use crate::contract::{Facts, HandoffView};
use crate::core::check;
use crate::core::id::Slug;
use crate::core::text::{quotable, sanitise, sha256};
use crate::spool::documents::{self, DocumentError};
use std::path::Path;

/// There is no document yet.
pub(super) const NO_DOCUMENT: &str = "no_document";
/// A document was recorded, but its file is now missing, empty or breaks a rule for documents.
pub(super) const CHANGED: &str = "document_changed";
/// The file breaks a rule for documents, such as that it must not be a link.
pub(super) const UNSAFE: &str = "document_unsafe";
/// No facts were taken.
pub(super) const NO_FACTS: &str = "no_facts";

/// The document of a handoff, as its file is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffDocument {
    pub text: String,
    /// SHA-256 of this text.
    pub sha256: String,
    /// tasuki has recorded another text than this one.
    pub changed: bool,
}

/// Reads a handoff's document.
///
/// # Errors
/// `no_document` if there is none yet, `document_changed` if the recorded one is gone or can't be used any more,
/// `document_unsafe` if the file breaks a rule for documents or is not UTF-8, and the errors of a file or folder that
/// can't be read.
pub fn read(home: &Home, seen: &HandoffView) -> Result<HandoffDocument, CliError> {
    let recorded = said(seen.sha256.as_deref());
    let file = Path::new(&seen.file_path);
    let (Some(name), Ok(slug)) = (file.file_name(), seen.persona_slug.parse::<Slug>()) else {
        return Err(CliError::refused(NO_DOCUMENT, "The handoff's view names no document."));
    };
    let shown = sanitise(&seen.file_path);
    let unread = |error: &DocumentError| match (error, recorded) {
        (DocumentError::Unread { source, .. }, _) => CliError::file("Can't read", file, source),
        (DocumentError::Missing { .. }, Some(_)) if seen.step == Step::Done || seen.step == Step::Cancelled => {
            CliError::refused(CHANGED, format!("{shown}, the recorded document, is not there any more."))
                .hint("The handoff is over, so tasuki keeps no other copy. Restore the file from a backup.")
        }
        (_, Some(_)) => CliError::refused(CHANGED, format!("{shown} is not the recorded document any more: {error}."))
            .hint(
                "until the handoff is done or cancelled, tasuki keeps the recorded text in its state file; if the file \
                 is gone before the successor is briefed, tasuki writes that text again",
            ),
        (DocumentError::Missing { .. } | DocumentError::Empty { .. }, None) => {
            CliError::refused(NO_DOCUMENT, format!("There is no document at {shown} yet."))
        }
        (DocumentError::Unsafe { .. }, None) => CliError::refused(UNSAFE, format!("{error}.")),
    };
    // Without its folder there is no document either.
    if !home.personas().join(slug.as_str()).join("handoffs").exists() {
        return Err(unread(&DocumentError::Missing { path: file.to_owned() }));
    }
    let reading = documents::open_folder(home.root(), &slug)?.read(name).map_err(|error| unread(&error))?;
    let sha256 = sha256(&reading.bytes);
    let changed = recorded.is_some_and(|recorded| recorded != sha256);
    let text =
        String::from_utf8(reading.bytes).map_err(|_| CliError::refused(UNSAFE, format!("{shown} is not UTF-8.")))?;
    Ok(HandoffDocument { text, sha256, changed })
}

/// The warning about a document that is not the recorded one.
#[must_use]
pub fn warning(seen: &HandoffView, document: &HandoffDocument) -> Option<String> {
    let recorded = said(seen.sha256.as_deref()).filter(|_| document.changed)?;
    Some(format!(
        "{} has changed since tasuki recorded it (SHA-256 {} then, {} now).",
        sanitise(&seen.file_path),
        quotable(recorded, 12),
        quotable(&document.sha256, 12)
    ))
}

/// The facts of a handoff.
///
/// # Errors
/// `no_facts`: none were taken.
pub fn facts(seen: &HandoffView) -> Result<&Facts, CliError> {
    seen.facts.as_ref().ok_or_else(|| CliError::refused(NO_FACTS, "tasuki has not taken facts for this handoff."))
}

/// The facts of a handoff as Markdown, as they are in the file beside the document.
///
/// # Errors
/// `no_facts`: none were taken.
pub fn facts_text(seen: &HandoffView) -> Result<String, CliError> {
    facts(seen).map(check::markdown)
}

/// Faults, document and facts in one text, without control characters other than line breaks and tabs.
#[must_use]
pub fn whole(home: &Home, seen: &HandoffView) -> String {
    let faults: Vec<String> = seen.faults.iter().map(|fault| format!("- {}", examined::fault(fault))).collect();
    let faults = if faults.is_empty() { "none".to_owned() } else { faults.join("\n") };
    let text = match read(home, seen) {
        Ok(document) => {
            let warning = warning(seen, &document).map(|warning| format!("{warning}\n\n")).unwrap_or_default();
            format!("{warning}{}", document.text.trim_end())
        }
        Err(error) => error.message,
    };
    let facts = facts_text(seen).unwrap_or_else(|error| error.message);
    // These titles do not look like Markdown headings, so that a person can tell them from the document's own.
    let part = |title: &str, text: &str| format!("======== {title} ========\n\n{}\n", text.trim_end());
    let parts = [
        part("Faults that the checks found", &faults),
        part(&format!("The document {}", seen.file_path), &text),
        part("The facts", &facts),
    ];
    sanitise(&parts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::understood;
    use serde_json::json;
    use std::fs;

    const TEXT: &str = "# Handoff\n\nAll of it.\n";

    /// A home with a document, and the view of its handoff.
    fn made(sha256: Option<&str>) -> (tempfile::TempDir, Home, HandoffView) {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("data/personas/kai/handoffs");
        fs::create_dir_all(&folder).expect("folders");
        fs::write(folder.join("a.md"), TEXT).expect("a document");
        let home = Home::at(dir.path()).expect("a home");
        let view = json!({"persona_slug": "kai", "file_path": folder.join("a.md"), "sha256": sha256});
        (dir, home, understood(view).expect("an object"))
    }

    fn code(home: &Home, seen: &HandoffView) -> String {
        read(home, seen).expect_err("refused").code
    }

    #[test]
    fn a_document_is_read_and_compared_with_its_record() {
        let (_dir, home, seen) = made(Some(&sha256(TEXT.as_bytes())));
        let document = read(&home, &seen).expect("readable");
        assert_eq!((document.text.as_str(), document.changed), (TEXT, false));
        assert_eq!(warning(&seen, &document), None);
        let other = HandoffView { sha256: Some("00ff".to_owned()), ..seen };
        let document = read(&home, &other).expect("readable");
        assert!(document.changed && warning(&other, &document).is_some_and(|said| said.contains("00ff then")));
    }

    #[test]
    fn a_document_that_is_not_written_yet_is_told_apart_from_a_lost_one() {
        let (dir, home, seen) = made(None);
        assert!(!read(&home, &seen).expect("readable").changed, "nothing is recorded that it could differ from");
        fs::remove_file(&seen.file_path).expect("removed");
        assert_eq!(code(&home, &seen), NO_DOCUMENT);
        let recorded = HandoffView { sha256: Some("00ff".to_owned()), ..seen.clone() };
        assert_eq!(code(&home, &recorded), CHANGED);
        fs::remove_dir_all(dir.path().join("data")).expect("removed");
        assert_eq!((code(&home, &seen), code(&home, &recorded)), (NO_DOCUMENT.to_owned(), CHANGED.to_owned()));
    }

    #[test]
    fn the_text_of_faults_document_and_facts_holds_no_control_characters() {
        let (_dir, home, seen) = made(None);
        fs::write(&seen.file_path, "# All\u{1b}[2J of it\n").expect("a document");
        let more: HandoffView = understood(json!({
            "faults": [{"grade": "fix", "line": 1, "said": "names no command\u{9b}31m"}],
            "facts": {"taken_at": "2026-11-21T20:00:01.000Z", "repository": {"root": "/w", "branch": "main"}},
        }))
        .expect("an object");
        let text = whole(&home, &HandoffView { faults: more.faults, facts: more.facts, ..seen.clone() });
        for part in ["fix   line 1: names no command31m", "# All[2J of it", "- branch: `main`"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        fs::remove_file(&seen.file_path).expect("removed");
        let text = whole(&home, &seen);
        for part in ["========\n\nnone\n", "There is no document at ", "has not taken facts"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }

    #[test]
    fn no_link_and_no_other_file_is_read() {
        let (dir, home, seen) = made(None);
        let secret = dir.path().join("secret");
        fs::write(&secret, "secret").expect("written");
        let outside = HandoffView { file_path: secret.display().to_string(), ..seen.clone() };
        assert_eq!(code(&home, &outside), NO_DOCUMENT, "only the handoff's folder is searched");
        fs::remove_file(&seen.file_path).expect("removed");
        std::os::unix::fs::symlink(&secret, &seen.file_path).expect("a link");
        assert_eq!(code(&home, &seen), UNSAFE);
        let nameless = HandoffView { persona_slug: "../kai".to_owned(), ..seen };
        assert_eq!(code(&home, &nameless), NO_DOCUMENT);
    }
}
