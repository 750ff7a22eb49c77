//! Documents that nobody would write: the checks must end soon, quote little, and never panic.

use super::testing::{GOOD, World, judged};
use super::{CommitLookup, PathLookup, claims};
use proptest::prelude::*;

const MIB: usize = 1 << 20;

/// A text, repeated until it has one mebibyte.
fn much(text: &str) -> String {
    text.repeat(MIB / text.len() + 1)
}

/// A world in which every claim of a document is wrong.
fn hostile(text: &str) -> World {
    let found = claims(text, Some("/work/project"));
    let mut world = World { is_urgent: true, predecessor: Some(text.to_owned()), ..World::default() };
    world.lookups.commits = found.commits.into_iter().map(|hash| (hash, CommitLookup::Missing)).collect();
    world.lookups.branches = found.branches.into_iter().map(|name| (name, false)).collect();
    world.lookups.paths = found.paths.into_iter().map(|path| (path, PathLookup::Missing)).collect();
    let changed: Vec<String> =
        (0..100).flat_map(|n| [format!("src/file{n}.rs"), format!("docs/the file {n}.md")]).collect();
    world.changes(" M", &changed.iter().map(String::as_str).collect::<Vec<_>>());
    world.repository().head_on_remote = Some(false);
    world
}

fn judge_all(name: &str, text: &str) {
    let found = judged(text, &hostile(text));
    assert!(!found.is_empty() && found.len() <= 51, "{name}: {}", found.len());
    for fault in &found {
        // Two texts of 200 characters, and check, grade and line before them.
        assert!(fault.chars().count() < 450, "{name}: {fault}");
        assert!(!fault.chars().any(char::is_control), "{name}: {fault:?}");
    }
}

#[test]
fn a_mebibyte_of_anything_is_judged() {
    for text in [
        "# Next steps\n",
        "a",
        "word `src/a.rs` ",
        "\n",
        "\r\n",
        "```rust\n",
        "```rust\nx\n```\n",
        "`",
        "` `` ``` ",
        "- ",
        "> ",
        "* - + 1. ",
        "commit a1b2c3d at `1a2b3c4d5e` ",
        "- commit `a1b2c3d` done\n",
        "| a | b | `c/d.rs` |\n",
        "all is committed and pushed to origin. ",
        "tree is clean\n",
        "<!-- a\n",
        "<!-- a -->\n",
        "abc\n===\n",
        "**next steps**\n",
        "branch: `feat/x1` ",
        "( [ ** ",
        "\0",
        "\u{9b}\u{202e}",
        "日本語の文書です。",
        "https://a.b/c.rs ~/z/y ",
        "---\na: b\n---\n",
        "\t",
        "a\n\n    b\n",
        "[truncated]\n",
        "password=hunter2 ",
        "e\u{301}\u{200b}",
        "file1.rs the file 2.md ",
    ] {
        judge_all(text, &much(text));
    }
}

#[test]
fn many_lines_of_a_good_document_are_judged() {
    judge_all("the good document", &much(GOOD));
    judge_all("with a byte order mark", &format!("\u{feff}{}", much(GOOD)));
    judge_all("without line ends", &much(&GOOD.replace('\n', " ")));
    judge_all("ten thousand fences", &"```\n".repeat(10_001));
    judge_all(
        "lists in lists",
        &(0..2_000).map(|depth| format!("{}- x\n", " ".repeat(depth % 300))).collect::<String>(),
    );
    judge_all("only front matter", "---\ncheckpoint: x\nverified: y\n---\n");
    judge_all("front matter without an end", "---\ncheckpoint: x\n");
    judge_all("nothing", "");
    judge_all("a byte order mark", "\u{feff}");
}

#[test]
fn a_text_in_another_script_is_long_enough_if_it_says_enough() {
    let body = |text: &str| {
        GOOD.lines().filter(|line| line.starts_with(['#', '-']) || line.contains(':')).fold(
            String::new(),
            |all, line| {
                if line.starts_with('#') { format!("{all}{line}\n{text}\n") } else { all }
            },
        )
    };
    let is_short = |text: &str| judged(&body(text), &World::default()).iter().any(|fault| fault.starts_with("size"));
    // Seven headings with 30 characters under each of them.
    assert!(!is_short("構文解析器は指数つきの数値を読めるようになりましたが、まだ遅い。"));
    assert!(!is_short("解析器已经可以读取带指数的数字，但是打印还没有完成，请先测试。"));
    assert!(is_short("Der Parser liest jetzt Zahlen."));
    assert!(!is_short(
        "Der Parser liest jetzt auch Zahlen mit Exponenten, aber größere Dateien sind noch viel zu langsam."
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_text_is_judged_without_a_panic(text in "\\PC{0,300}", secret in 0_usize..20) {
        let mut world = hostile(&text);
        world.secret("any", secret, &text);
        let found = judged(&text, &world);
        prop_assert!(found.len() <= 51);
    }

    #[test]
    fn any_lines_are_judged_without_a_panic(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("# ".to_owned()), Just("## Next steps".to_owned()), Just("\n".to_owned()), Just("\r\n".to_owned()),
                Just("```".to_owned()), Just("~~~~".to_owned()), Just("`".to_owned()), Just("- ".to_owned()),
                Just("> ".to_owned()), Just("---\n".to_owned()), Just("<!--".to_owned()), Just("-->".to_owned()),
                Just("| ".to_owned()), Just("**".to_owned()), Just("(".to_owned()), Just("[truncated]".to_owned()),
                Just("commit a1b2c3d ".to_owned()), Just("`src/ä.rs` ".to_owned()), Just("branch: `b/ü` ".to_owned()),
                Just("all committed and pushed ".to_owned()), Just("tree is clean. ".to_owned()), Just("日本".to_owned()),
                Just("…".to_owned()), Just("..".to_owned()), Just("\u{feff}".to_owned()), ".{0,6}",
            ],
            0..60,
        )
    ) {
        let text = parts.concat();
        let world = hostile(&text);
        let found = judged(&text, &world);
        prop_assert!(found.len() <= 51);
        for fault in found {
            prop_assert!(fault.chars().count() < 450 && !fault.chars().any(char::is_control), "{fault:?}");
        }
    }
}
