//! The document's name, and what tasuki reads in its text: checkpoint and first paragraph.

use crate::core::check::{front_matter_value, without_front_matter};
use crate::core::id::{AgentId, Slug};
use crate::core::persona::PersonaFacts;
use crate::core::text::{normalise, sanitise};
use crate::core::time::date;
use crate::core::tx::Tx;
use chrono::Duration;
use std::collections::BTreeSet;

/// How many names of documents each agent's row keeps.
const MOST_PROMISED: usize = 16;
/// Longest first paragraph, in characters, that goes into the briefing.
const MAX_PARAGRAPH: usize = 400;

/// The document's name: `<YYYYMMDDTHHmmss>-<first 8 of agent_id>.md`, UTC; if that is taken, the next free second.
#[must_use]
pub fn file_name(wall_ms: i64, agent_id: &AgentId, taken: &BTreeSet<String>) -> String {
    let mut second = date(wall_ms);
    loop {
        let name = format!("{}-{}.md", second.format("%Y%m%dT%H%M%S"), agent_id.short());
        if !taken.contains(&name) {
            return name;
        }
        second += Duration::seconds(1);
    }
}

/// Notes that a handoff of this agent uses this name, so that no later handoff of the agent gets it.
pub(crate) fn reserve_name(tx: &mut Tx<'_>, agent_id: &AgentId, file_name: &str) {
    let Some(agent) = tx.agent_mut(agent_id) else { return };
    let from = (agent.promised.len() + 1).saturating_sub(MOST_PROMISED);
    agent.promised.drain(..from);
    agent.promised.push(file_name.to_owned());
}

/// Names that can't be used for a new document: of files in the folder, and of other handoffs.
pub(crate) fn taken_names(tx: &Tx<'_>, agent_id: &AgentId, slug: &Slug, persona: &PersonaFacts) -> BTreeSet<String> {
    let rows = tx.state.handoffs.values().chain(tx.out.handoffs.values());
    let of_handoffs = rows.filter(|handoff| handoff.persona_slug == *slug).map(|handoff| handoff.file_name.clone());
    let own = tx.agent(agent_id).into_iter().flat_map(|agent| agent.promised.clone());
    persona.handoff_files.iter().cloned().chain(of_handoffs).chain(own).collect()
}

fn is_heading(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('#') || (line.starts_with("**") && line.len() < 100) || (line.ends_with(':') && line.len() < 100)
}

/// The checkpoint in the document's front matter: the value of `checkpoint` or `starting_from`.
#[must_use]
pub fn checkpoint(text: &str) -> Option<String> {
    front_matter_value(text, "checkpoint").or_else(|| front_matter_value(text, "starting_from"))
}

/// The first paragraph after the front matter that is not a heading, on one line: task context for the briefing.
#[must_use]
pub fn first_paragraph(text: &str) -> Option<String> {
    let mut lines = without_front_matter(text).lines().skip_while(|line| line.trim().is_empty() || is_heading(line));
    let paragraph: Vec<&str> = lines.by_ref().take_while(|line| !line.trim().is_empty()).collect();
    let joined = normalise(&sanitise(&paragraph.join(" ")));
    if joined.is_empty() {
        return None;
    }
    if joined.chars().count() <= MAX_PARAGRAPH {
        return Some(joined);
    }
    Some(joined.chars().take(MAX_PARAGRAPH).chain(" …".chars()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_taken_name_gives_the_next_free_second() {
        let agent = AgentId(Uuid::from_u128(0x6f1c_3a52_8f0e_4d5b_9a57_2f64_c1f6_f0aa));
        let wall_ms = 1_771_597_825_000;
        let first = file_name(wall_ms, &agent, &BTreeSet::new());
        assert_eq!(first, "20260220T143025-6f1c3a52.md");
        let second = file_name(wall_ms, &agent, &BTreeSet::from([first]));
        assert_eq!(second, "20260220T143026-6f1c3a52.md");
    }

    #[test]
    fn the_front_matter_may_state_a_checkpoint() {
        let stated = |front: &str| checkpoint(&format!("---\n{front}\n---\n# Work\ncheckpoint: no\n"));
        assert_eq!(stated("title: x\ncheckpoint: step 3 of  5"), Some("step 3 of 5".to_owned()));
        assert_eq!(stated("starting_from: \"the #2 parser\" # there"), Some("the #2 parser".to_owned()));
        assert_eq!(stated("checkpoint: 'a'\nstarting_from: b"), Some("a".to_owned()));
        assert_eq!(stated("checkpoint: here # not there"), Some("here".to_owned()));
        for none in
            ["title: x", "checkpoint:", "checkpoint: |", "  checkpoint: nested", "checkpoints: x", "# checkpoint: x"]
        {
            assert_eq!(stated(none), None, "{none}");
        }
        assert_eq!(checkpoint("# Work\n---\ncheckpoint: x\n---\n"), None, "only at the very beginning");
    }

    #[test]
    fn the_first_paragraph_skips_headings_and_is_bounded() {
        assert_eq!(first_paragraph("# A\n\nI was\nhere.\n\nMore"), Some("I was here.".to_owned()));
        assert_eq!(first_paragraph("# A\n\n"), None);
        assert!(first_paragraph(&"wort ".repeat(1000)).is_some_and(|p| p.chars().count() <= MAX_PARAGRAPH + 2));
    }
}
