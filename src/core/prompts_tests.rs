//! Tests of the prompts.

use super::*;

#[test]
fn the_instruction_asks_for_the_six_sections_and_the_focus() {
    let values = Instruction {
        reason: "context_limit",
        file_path: "/h/20260220T143025-6f1c3a52.md",
        focus: None,
        tasks: &[],
        urgent: false,
    };
    let text = Prompts::default().instruction(&values);
    for part in ["working on", "progress", "decisions", "Blockers", "Files modified", "Next steps", "first person"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert!(text.contains("`/h/20260220T143025-6f1c3a52.md`"));
    assert!(!text.contains("Additional focus"));
    let focused = Prompts::default().instruction(&Instruction { focus: Some("the parser"), ..values });
    assert!(focused.ends_with("Additional focus: the parser"));
}

#[test]
fn a_template_with_an_unknown_variable_is_refused_at_start() {
    let overrides = BTreeMap::from([("briefing".to_owned(), "{{ predecesor }}".to_owned())]);
    let error = Prompts::new(&overrides).expect_err("the variable is unknown");
    assert!(error.to_string().starts_with("prompt template briefing.md"), "{error}");
}

#[test]
fn values_are_not_templates() {
    let values =
        Instruction { reason: "{{ 7 * 6 }}", file_path: "/f.md", focus: Some("{% raw %}"), tasks: &[], urgent: false };
    assert!(Prompts::default().instruction(&values).contains("{{ 7 * 6 }}"));
}
