//! What the disk says of a persona, for a handoff that is asked for and for one that begins by itself.

use crate::config::Home;
use crate::core::event::PersonaFacts;
use crate::core::id::Slug;
use crate::personas;

/// Reads it. A persona that can't be read is there, and broken.
pub(crate) fn facts(home: &Home, slug: &Slug) -> PersonaFacts {
    let personas = home.personas();
    let handoffs_dir = personas.join(slug.as_str()).join("handoffs").display().to_string();
    match personas::facts(&personas, slug) {
        Ok(facts) => PersonaFacts {
            exists: facts.exists,
            has_skill: facts.has_skill,
            broken: None,
            profile: facts.file.profile,
            cwd: facts.file.cwd,
            session: facts.file.session,
            handoff_files: facts.handoff_files.into_iter().collect(),
            handoffs_dir,
        },
        Err(error) => PersonaFacts {
            exists: true,
            has_skill: true,
            broken: Some(error.to_string()),
            handoffs_dir,
            ..PersonaFacts::default()
        },
    }
}
