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
fn an_author_is_told_what_its_successor_is_to_do_and_must_repeat() {
    let tasks = ["fix the flaky test".to_owned(), "answer issue 7".to_owned()];
    let values = Instruction { reason: "r", file_path: "/f.md", focus: None, tasks: &tasks, urgent: true };
    let prompts = Prompts::default();
    for ask in [Prompts::instruction, Prompts::reply] {
        let text = ask(&prompts, &values);
        assert!(text.contains("checkpoint: where your successor begins"), "{text}");
        assert!(text.contains("must repeat this checkpoint"), "{text}");
        assert!(text.ends_with("Your successor is to do this:\n- fix the flaky test\n- answer issue 7"), "{text}");
        let calm = ask(&prompts, &Instruction { tasks: &[], urgent: false, ..values.clone() });
        assert!(calm.contains("checkpoint: where your successor begins"), "{calm}");
        assert!(!calm.contains("must repeat") && !calm.contains("is to do this"), "{calm}");
    }
}

#[test]
fn a_template_with_an_unknown_variable_is_refused_at_start() {
    let overrides = BTreeMap::from([("briefing".to_owned(), "{{ predecesor }}".to_owned())]);
    let error = Prompts::new(&overrides).expect_err("the variable is unknown");
    assert!(error.to_string().starts_with("data/prompts/briefing.md: "), "{error}");
}

#[test]
fn values_are_not_templates() {
    let values =
        Instruction { reason: "{{ 7 * 6 }}", file_path: "/f.md", focus: Some("{% raw %}"), tasks: &[], urgent: false };
    assert!(Prompts::default().instruction(&values).contains("{{ 7 * 6 }}"));
}

/// With an empty `briefing.md` the handoff was done, and the successor did not know where the document is.
#[test]
fn a_template_that_would_lose_the_document_is_refused_at_start() {
    for (name, text, lacks) in [
        ("briefing", "", "file_path"),
        ("instruction", "Write a handoff.", "file_path"),
        ("context", "Continue.", "document"),
        ("rework", "Repair it.", "file_path"),
        ("long", "It is long.", "file_path"),
    ] {
        let error = Prompts::new(&BTreeMap::from([(name.to_owned(), text.to_owned())])).expect_err("refused");
        assert!(error.to_string().contains(&format!("{name}.md: the text lacks {{{{ {lacks} }}}}")), "{error}");
    }
}
