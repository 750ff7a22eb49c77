//! Reads a persona's folder: the facts that a handoff needs, and the texts of the priming.

use super::Tools;
use super::retry_look::{self, LookResult};
use crate::config::Home;
use crate::core::effect::{Outcome, PersonaTexts};
use crate::core::id::Slug;
use crate::core::persona::PersonaFacts;
use crate::limits;
use crate::personas::{self, Error, PersonaOnDisk};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Reads a persona's folder. A persona that can't be read counts as existing and broken.
///
/// # Errors
/// The machine had no descriptors or memory left, which says nothing of the persona. A later look may succeed.
pub(crate) fn facts(home: &Home, slug: &Slug) -> Result<PersonaFacts, String> {
    let personas = home.personas();
    let handoffs_dir = personas.join(slug.as_str()).join("handoffs").display().to_string();
    match personas::facts(&personas, slug).and_then(|facts| with_usable_texts(&personas, slug, facts)) {
        Ok(facts) => Ok(PersonaFacts {
            exists: facts.exists,
            has_skill: facts.has_skill,
            broken: None,
            profile: facts.file.profile,
            cwd: facts.file.cwd,
            session: facts.file.session,
            check: facts.file.check,
            fallbacks: facts.file.fallbacks,
            publish: facts.file.publish,
            handoff_files: facts.handoff_files.into_iter().collect(),
            handoffs_dir,
        }),
        Err(error) if error.unavailable().is_some_and(limits::is_shortage) => Err(error.to_string()),
        Err(error) => Ok(PersonaFacts {
            exists: true,
            has_skill: true,
            broken: Some(error.to_string()),
            handoffs_dir,
            ..PersonaFacts::default()
        }),
    }
}

/// The same facts if a successor could be primed with the persona's texts. That must be known before an agent ends.
fn with_usable_texts(personas: &Path, slug: &Slug, facts: PersonaOnDisk) -> Result<PersonaOnDisk, Error> {
    if facts.has_skill {
        personas::read_texts(personas, slug)?;
    }
    Ok(facts)
}

/// Reads the persona's skill and experience. A file that can't be read does not count as missing.
pub(super) async fn read(tools: &Tools, slug: &Slug, stop: &CancellationToken) -> Outcome {
    let (personas, slug) = (tools.home.personas(), slug.clone());
    match retry_look::until_answered(stop, move || texts(personas::read_texts(&personas, &slug))).await {
        Ok(Ok(texts)) => Outcome::Persona(texts),
        Ok(Err(why)) | Err(why) => Outcome::Failed { why },
    }
}

/// The result of reading a persona's texts: the texts; none if there is no `skill.md`; or, in words, why a file can't
/// be read, such as a link in its place. A failure that may pass gives no answer.
fn texts(read: Result<(String, Option<String>), Error>) -> LookResult<Result<Option<PersonaTexts>, String>> {
    match read {
        Ok((skill, experience)) => LookResult::Answered(Ok(Some(PersonaTexts { skill, experience }))),
        Err(Error::Missing { .. }) => LookResult::Answered(Ok(None)),
        Err(error) if error.unavailable().is_some() => LookResult::Unavailable(error.to_string()),
        Err(error) => LookResult::Answered(Err(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    #[test]
    fn a_persona_whose_texts_cant_be_typed_is_broken_before_anything_begins() {
        let dir = tempfile::tempdir().expect("a folder");
        let home = Home::resolve(Some(dir.path())).expect("a home");
        let folder = home.personas().join("kai");
        std::fs::create_dir_all(&folder).expect("made");
        let broken = |file: &str, text: &[u8]| {
            std::fs::write(folder.join("skill.md"), "# Kai").expect("written");
            std::fs::write(folder.join("experience.md"), "").expect("written");
            std::fs::write(folder.join(file), text).expect("written");
            facts(&home, &"kai".parse().expect("a slug")).expect("facts").broken
        };
        assert_eq!(broken("experience.md", b""), None);
        for (file, text, why) in [
            ("skill.md", &b"\xff\xfe skill"[..], "skill.md: it is not UTF-8"),
            ("skill.md", b" \n", "skill.md: it is empty"),
            ("experience.md", b"\xff\xfe", "experience.md: it is not UTF-8"),
        ] {
            assert!(broken(file, text).is_some_and(|said| said.contains(why)), "{file} {why}");
        }
    }

    #[test]
    fn a_skill_that_could_not_be_read_is_not_missing() {
        for errno in [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, Errno::EACCES, Errno::EIO] {
            let met = Error::Io { action: "read", path: "skill.md".to_owned(), source: errno.into() };
            assert!(
                matches!(texts(Err(met)), LookResult::Unavailable(why) if why.contains(&std::io::Error::from(errno).to_string())),
                "{errno}"
            );
        }
        let missing = Error::Missing { path: "skill.md".to_owned() };
        assert!(matches!(texts(Err(missing)), LookResult::Answered(Ok(None))));
        let link = Error::Unfit { path: "skill.md".to_owned(), why: "it is a link".to_owned() };
        assert!(matches!(texts(Err(link)), LookResult::Answered(Err(why)) if why.contains("it is a link")));
    }
}
