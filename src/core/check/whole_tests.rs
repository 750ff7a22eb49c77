//! Documents that end where they should, and documents that were cut.

use super::super::testing::{GOOD, faults_in_default_world, good_with, only_check};

fn cut(text: &str) -> Vec<String> {
    only_check("whole", &faults_in_default_world(text))
}

#[test]
fn a_fence_must_close() {
    for (text, line) in [
        ("```\na", Some(28)),
        ("```\na\n```", None),
        ("~~~\na", Some(28)),
        ("~~~ sh\na\n~~~~", None),
        ("````md\n```\na\n```\n````", None),
        ("````\n```", Some(28)),
        ("```\na\n``", Some(28)),
        ("```\na\n~~~", Some(28)),
        ("  ```\n  a\n  ```", None),
        ("- a:\n    ```\n    a\n    ```", None),
        ("- a:\n    ```\n    a", Some(29)),
        ("1. ```\n   a\n   ```", None),
        ("> ```\n> a\n> ```", None),
        ("> ```\n> a\n\nThe end of a quotation ends its fence.", None),
        ("a\n\n    ``` in a block that is indented", None),
        ("```md\n# A\n```sh\na\n```\nb\n```", None),
        ("```sh\na\n```\n\n```sh\nb", Some(32)),
        ("`` ``` ``", None),
        ("``` a `b` ```", None),
    ] {
        let text = format!("{GOOD}{text}\n");
        let expected =
            line.map(|line| format!("whole fix: line {line}: a code block begins here; its fence never closes"));
        assert_eq!(cut(&text), Vec::from_iter(expected), "{text}");
    }
}

#[test]
fn a_note_that_something_is_left_out_is_a_fault() {
    for line in [
        "[truncated]",
        "… [truncated]",
        "**[content truncated]**",
        "(truncated)",
        "[… 120 lines truncated …]",
        "and so it is with the parser … [truncated]",
        "[rest of the document unchanged]",
        "[remaining sections omitted]",
    ] {
        let found = cut(&good_with("None.", line));
        assert!(found.len() == 1 && found[0].ends_with("; a part of the document is left out"), "{line}: {found:?}");
    }
    for line in [
        "The output is truncated (see `log`).",
        "It prints `[truncated]`",
        "```\n[truncated]\n```",
        "The list is truncated",
        "[the parser](truncated.md)",
        "Names are truncated to 20 letters (as before).",
    ] {
        assert_eq!(cut(&good_with("None.", line)), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn an_end_in_the_middle_is_a_fault() {
    for (text, is) in [
        ("I rejected it because the", "the sentence has no end"),
        ("There were three reasons: speed, size,", "the sentence has no end"),
        ("Run `cargo te", "its last backtick opens code that never closes"),
        ("See the note (which I wrote", "its last bracket never closes"),
        ("See [the notes](docs/no", "its last bracket never closes"),
        ("This is **very impor", "its bold text never closes"),
        ("| a | b |\n|---|---|\n| c | d", "a table ends in the middle of a row"),
        ("- one\n-", "nothing is in its last item"),
        ("- one\n- [ ]", "nothing is in its last item"),
        ("1. one\n2.", "nothing is in its last item"),
        ("## What else", "nothing is under its last heading"),
    ] {
        let found = cut(&format!("{GOOD}\n{text}"));
        assert!(found.len() == 1 && found[0].ends_with(is), "{text}: {found:?}");
    }
}

#[test]
fn a_word_that_breaks_off_is_known_by_the_whole_word() {
    let cut_words = ["The tests of the pars", "It repairs the exponen", "I think it is three times slo"];
    for text in cut_words {
        let found = cut(&format!("{GOOD}\n{text}"));
        assert!(found.len() == 1 && found[0].ends_with("it ends in the middle of a word"), "{text}: {found:?}");
        assert_eq!(cut(&format!("{GOOD}\n{text}\n")), Vec::<String>::new(), "{text}: a newline ends it");
    }
    let sentences = "This is a sentence of more than eight words in all.\n\n".repeat(6);
    let text = format!("{GOOD}\n{sentences}The next sentence has more than eight words but not an end");
    assert!(cut(&text)[0].ends_with("the last sentence has no end"), "{:?}", cut(&text));
}

#[test]
fn a_document_may_end_in_many_ways() {
    for text in [
        "The end",
        "— the reviewer",
        "- `src/parser.rs`",
        "See https://example.org/a_(b)",
        "**End of handoff**",
        "# End of document",
        "Run `cargo test`",
        "What is it for",
        "1) one 2) two",
        "It was fine :(",
        "```\nscripts/bench\n```",
        "<!-- end -->",
        "| a | b |\n|---|---|\n| c | d |",
        "| a | b\n|---|---\n| c | d",
        "> quoted",
        "Größe, 100 %",
        "以上です",
        "2 ** 3 is not bold",
        "---",
        "***",
        "Good luck!\n\n\n   \n",
    ] {
        assert_eq!(cut(&format!("{GOOD}\n{text}")), Vec::<String>::new(), "{text}");
        assert_eq!(cut(&format!("{GOOD}\n{text}\n")), Vec::<String>::new(), "{text}");
    }
}
