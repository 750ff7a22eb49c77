//! Sections by their headings, in every form that agents write.

use super::super::lines::read;
use super::super::testing::{GOOD, faults_in_default_world, good_with, only_check};
use super::*;

/// A sentence for each section without a heading.
fn missing_sections(author: Author, text: &str) -> Vec<String> {
    let lower = text.to_ascii_lowercase();
    let document = read(text, &lower);
    missing(&document, author).map(Asked::missing).collect()
}

#[test]
fn missing_sections_are_named_and_present_ones_are_not() {
    let text = "# Handoff\n## What I was working on\nx\n## Progress\n## Key decisions\n**Blockers**\nFiles modified:\n";
    assert_eq!(missing_sections(Author::AgentFile, text), ["the document has no section about next steps"]);
    assert_eq!(missing_sections(Author::AgentReply, text).len(), 3);
    assert_eq!(missing_sections(Author::Salvage, text), Vec::<String>::new());
    assert_eq!(missing_sections(Author::Provided, ""), Vec::<String>::new());
}

#[test]
fn a_heading_has_many_forms() {
    for heading in [
        "## Next steps",
        "# NEXT STEPS",
        "### 6. Next steps",
        "## 🚀 Next Steps",
        "## Next steps:",
        "   ## Next steps ##",
        "**Next steps**",
        "__Next steps__",
        "**Next steps:** run `cargo test`",
        "- **Next steps**: run `cargo test`",
        "Next steps:",
        "6. Next steps",
        "6) Next steps",
        "Next steps\n----------",
        "Next steps\n==========",
        "## What remains to be done",
        "## To do",
    ] {
        let found = only_check("sections", &faults_in_default_world(&good_with("## Next steps", heading)));
        assert_eq!(found, Vec::<String>::new(), "{heading}");
    }
}

#[test]
fn what_looks_like_a_heading_is_not_always_one() {
    let missing = "sections fix: the document has no section about blockers";
    for text in [
        "```\n## Blockers\n```\nNone.",
        "~~~\n## Blockers\n~~~\nNone.",
        "- in a list:\n  ```\n  ## Blockers\n  ```\n  None.",
        "<!--\n## Blockers\n-->\nNone.",
        "The blockers are gone, as I said in the last of the many long texts that were written about it",
    ] {
        let text = GOOD.replace("## Blockers\nNone.", text);
        assert_eq!(only_check("sections", &faults_in_default_world(&text)), [missing], "{text}");
    }
}

#[test]
fn a_placeholder_is_not_a_text_but_none_is() {
    let upper = |word: &str| word.to_uppercase();
    let empty =
        |about: &str, line: usize| vec![format!("sections fix: line {line}: the section about {about} is empty")];
    let placeholders = [
        String::new(),
        upper("todo"),
        upper("tbd") + ".",
        "...".to_owned(),
        "…".to_owned(),
        "-".to_owned(),
        "- [ ]".to_owned(),
        "- ".to_owned() + &upper("todo") + ": …",
        "*(to be filled in)*".to_owned(),
        "_to be written_".to_owned(),
        "[what blocks you]".to_owned(),
        "<describe blockers>".to_owned(),
        "{{ blockers }}".to_owned(),
        "<!-- name what blocks you -->".to_owned(),
        "---".to_owned(),
        "```\n```".to_owned(),
    ];
    for text in &placeholders {
        let found = only_check("sections", &faults_in_default_world(&good_with("None.", text)));
        assert_eq!(found, empty("blockers", 18), "{text:?}");
    }
    for text in [
        "None.",
        "Nothing",
        "no blockers",
        "N/A",
        "- none",
        "**None**",
        "[x] none",
        "[a link](x.md)",
        "`x`",
        "なし",
        "keine",
    ] {
        assert_eq!(
            only_check("sections", &faults_in_default_world(&good_with("None.", text))),
            Vec::<String>::new(),
            "{text}"
        );
    }
    let progress = good_with(
        "Reading works and is checked. Printing is half made: `src/print.rs` still drops the sign of the exponent.\n\
         Committed on branch `exponents` as 1a2b3c4.",
        "N/A",
    );
    assert_eq!(
        only_check("sections", &faults_in_default_world(&progress)),
        empty("current progress", 11),
        "there is always progress to tell"
    );
}

#[test]
fn a_heading_may_say_it_all_and_headings_below_it_too() {
    for text in
        ["## Blockers: none", "## Blockers — nothing", "## Blockers (none)", "## Blockers\n### The network is slow"]
    {
        let text = GOOD.replace("## Blockers\nNone.", text);
        assert_eq!(only_check("sections", &faults_in_default_world(&text)), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn the_title_is_not_a_section_and_another_heading_may_have_the_text() {
    let text = GOOD.replace("# Handoff", "# Work on the next steps of the blocked task\n\nIt goes well.");
    let text = text.replace("None.", "");
    assert_eq!(
        only_check("sections", &faults_in_default_world(&text)),
        ["sections fix: line 20: the section about blockers is empty"]
    );
    let text = text.replace("## Files modified", "## Known problems\nThe network is slow.\n\n## Files modified");
    assert_eq!(
        only_check("sections", &faults_in_default_world(&text)).len(),
        1,
        "but the heading that was asked for stays empty"
    );
    let text = text.replace("## Blockers\n", "## Risks\n");
    assert_eq!(
        only_check("sections", &faults_in_default_world(&text)),
        Vec::<String>::new(),
        "one of two that are like it"
    );
}
