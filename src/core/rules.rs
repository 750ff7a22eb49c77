//! The rules for work items: who processes which type, what its output must hold, and which type follows. They are
//! data, built in for six types. A user's `data/rules.toml` adds types, or replaces a built-in type as a whole.

mod form;
mod rule;

pub use form::{RulesFile, is_name};
pub use rule::{FailureRule, HUMAN, Rule, Rules, RulesError, ValueType};

use crate::core::id::Slug;
use std::collections::BTreeSet;

/// The built-in rules, as they are in the repository's `data/`.
pub const BUILT_IN: &str = include_str!("../../data/rules.toml");

impl Default for Rules {
    fn default() -> Self {
        form::parse(BUILT_IN, None).expect("the built-in rules are parsed by a test")
    }
}

impl Rules {
    /// A user's rules, and the built-in rules of the other types, unless the user's rules exclude these.
    ///
    /// # Errors
    /// Says where in the text the fault is, and what is wrong.
    pub fn with(text: &str) -> Result<Rules, RulesError> {
        form::parse(text, Some(Rules::default()))
    }

    /// The roles of a persona: those that the rules give it, and the role from its `persona.toml` (`own`).
    #[must_use]
    pub fn roles_of<'r>(&'r self, persona: &Slug, own: Option<&'r str>) -> BTreeSet<&'r str> {
        let given = self.roles.iter().filter(|(_, personas)| personas.contains(persona));
        given.map(|(role, _)| role.as_str()).chain(own).collect()
    }

    /// The types that one of these roles processes.
    pub fn types_for<'r>(&'r self, roles: &BTreeSet<&str>) -> impl Iterator<Item = &'r str> {
        let found: Vec<&str> =
            self.types.iter().filter(|(_, rule)| rule.is_for(roles)).map(|(name, _)| name.as_str()).collect();
        found.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::rows::item::Status;

    fn wrong(text: &str) -> (usize, usize, String) {
        let error = Rules::with(text).expect_err(text);
        (error.line, error.column, error.message)
    }

    #[test]
    fn the_six_types_are_built_in() {
        let rules = Rules::default();
        let names: Vec<&str> = rules.types.keys().map(String::as_str).collect();
        assert_eq!(names, ["bug", "feature", "prd", "project_spec", "story", "task"]);
        assert_eq!(rules.types["feature"], rules.types["project_spec"]);
        assert_eq!(rules.types["prd"].creates, ["story"]);
        assert!(rules.types["story"].creates.is_empty() && rules.types["story"].allows_people());
        assert!(rules.types.values().all(|rule| rule.next_status == Status::Done && rule.rollback_on.is_empty()));
    }

    #[test]
    fn a_wrong_value_in_a_list_is_named_by_its_place_alone() {
        let said = wrong("[types.a]\nprocessed_by = [\"human\"]\nrollback_on = [\"zzz\"]\n").2;
        assert!(said.starts_with("types.a.rollback_on[0]: \"zzz\" must be one of"), "{said}");
    }

    #[test]
    fn a_users_rules_go_over_the_built_in_ones_type_by_type() {
        let rules = Rules::with(
            "[roles]\ndeveloper = [\"kai\"]\n[types.story]\nprocessed_by = [\"developer\"]\ncreates = [\"check\"]\n\
             next_status = \"escalated\"\nask_human = true\ntaken_within = \"4h\"\nrollback_on = [\"timed_out\"]\n\
             [types.story.require]\nall = [\"/a~1b\"]\n[types.story.require.values]\n\"/n\" = \"integer\"\n\
             [types.check]\nprocessed_by = [\"human\"]\n",
        )
        .expect("rules");
        let story = &rules.types["story"];
        assert!(story.any.is_empty() && story.ask_human && !story.allows_people(), "as a whole: {story:?}");
        assert_eq!((story.next_status, story.taken_within_ms), (Status::Escalated, Some(4 * 3_600_000)));
        assert_eq!(story.values["/n"], ValueType::Integer);
        assert_eq!(rules.types.len(), 7);
        assert_eq!(rules.types["check"].processed_by, [HUMAN]);
        let kai = "kai".parse().expect("a slug");
        let roles = rules.roles_of(&kai, Some("scrum_master"));
        assert_eq!(roles.iter().copied().collect::<Vec<_>>(), ["developer", "scrum_master"]);
        assert_eq!(rules.types_for(&roles).collect::<Vec<_>>(), ["bug", "prd", "story", "task"]);
        let alone = Rules::with("built_in = false\n[types.task]\nprocessed_by = [\"human\"]\n").expect("rules");
        assert_eq!(alone.types.len(), 1);
    }

    #[test]
    fn an_error_in_the_rules_names_line_and_column() {
        assert_eq!(wrong("[types.a]\nprocessed_by = [\"x\", ]]\n").0, 2);
        let (line, column, message) = wrong("[types.a]\nprocessed_by = [\"x\"]\ncreates = [\"a\", \"b\"]\n");
        assert_eq!((line, column), (3, 17), "{message}");
        assert!(message.contains("types.a.creates") && message.contains("\"b\""), "{message}");
        let (line, _, message) = wrong("\n[types.a]\nprocessed_by = []\n");
        assert!(line == 3 && message.contains("types.a.processed_by"), "{line}: {message}");
        for (text, word) in [
            ("[types.a]\nprocessed = [\"x\"]\n", "processed"),
            ("[types.a]\n", "processed_by"),
            ("[types.\"a b\"]\nprocessed_by = [\"x\"]\n", "a b"),
            ("[types.a]\nprocessed_by = [\"x\"]\nrequire.all = [\"no\"]\n", "pointer"),
            ("[types.a]\nprocessed_by = [\"x\"]\nnext_status = \"claimed\"\n", "claimed"),
            ("[types.a]\nprocessed_by = [\"x\"]\nrequire.values.\"/a\" = \"date\"\n", "date"),
            ("[types.a]\nprocessed_by = [\"x\"]\ntaken_within = \"soon\"\n", "soon"),
            ("[types.a]\nprocessed_by = [\"x\"]\nrollback_on = [\"timed_out\"]\n", "taken_within"),
            ("[roles]\ndeveloper = [\"Kai\"]\n", "slug"),
            ("built_in = false\n", "types"),
        ] {
            let (_, _, message) = wrong(text);
            assert!(message.contains(word), "{text}: {message}");
        }
    }
}
