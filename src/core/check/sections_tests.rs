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
    assert_eq!(missing_sections(Author::Provided, text), missing_sections(Author::AgentFile, text));
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
fn a_label_with_a_text_and_headings_in_other_words_stand_for_a_section() {
    for (heading, others) in [
        (
            "## Current progress",
            "State: it works.|- **Done:** the parser|## Shipped|## Where we are|## Verified|## Stand|## 当前进度|\
             ## 進捗|## 진행 상황|## État actuel|## Estado|## Kemajuan",
        ),
        (
            "## Blockers",
            "Known gaps: none.|## Known limitations|## Gotchas|## Deferred|## Open questions|## Bugs|\
             ## Offene Fragen|## 问题|## 課題|## 이슈|## Problèmes|## Riesgos|## Hambatan",
        ),
        (
            "## Next steps",
            "Next: run `cargo test`.|## First action|## Follow-up|## Nächste Schritte|## 下一步|## 次のステップ|\
             ## 다음 단계|## Prochaines étapes|## Próximos pasos|## Langkah selanjutnya",
        ),
        (
            "## Files modified",
            "## What changed|## Touched|## What was built|## Dateien|## 修改的文件|## 変更したファイル|## 수정된 파일|\
             ## Fichiers modifiés|## Archivos|## Arquivos|## Berkas",
        ),
        (
            "## Key decisions and why",
            "## Invariants|## Locked|Why: it is three times slower.|## Entscheidungen|## 关键决策|## 決定事項|\
             ## 주요 결정|## Décisions|## Decisiones|## Decisões|## Keputusan",
        ),
        (
            "## What I was working on",
            "Purpose: numbers with exponents.|## This session|## Project|## Ziel|## 任务|## 目的|## 작업 내용|\
             ## Objectif|## Objetivo|## Tujuan",
        ),
    ] {
        for other in others.split('|') {
            let found = only_check("sections", &faults_in_default_world(&good_with(heading, other)));
            assert_eq!(found, Vec::<String>::new(), "{other}");
        }
        let without = only_check("sections", &faults_in_default_world(&good_with(heading, "## Other things")));
        assert_eq!(without.len(), 1, "{heading}");
    }
    for label in ["Next:", "Next: tbd", "`next`: x", "src/next: x", "The one that I would like to do next: x", "Next:x"]
    {
        let found =
            only_check("sections", &faults_in_default_world(&good_with("## Next steps", &format!("\n{label}\n"))));
        assert_eq!(found.len(), usize::from(label != "Next:"), "{label}");
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
fn a_placeholder_says_nothing_but_none_says_something() {
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
fn a_heading_or_its_subheading_may_say_it_all() {
    for text in
        ["## Blockers: none", "## Blockers — nothing", "## Blockers (none)", "## Blockers\n### The network is slow"]
    {
        let text = GOOD.replace("## Blockers\nNone.", text);
        assert_eq!(only_check("sections", &faults_in_default_world(&text)), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn the_title_is_not_a_section_and_one_of_two_like_headings_may_be_empty() {
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
        "of two headings like the one asked for, one has a text"
    );
}
