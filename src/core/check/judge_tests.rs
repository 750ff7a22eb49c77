//! Whole documents: a good one, bad ones, and what holds for all faults.

use super::super::testing::{GOOD, HEAD, World, faults_in_default_world, good_with, judged, only_check};
use super::super::{CheckInput, CommitLookup, Lookups, faults};
use crate::contract::Facts;
use crate::contract::handoff::Author;

fn nothing() -> Vec<String> {
    Vec::new()
}

#[test]
fn a_good_document_has_no_fault() {
    assert_eq!(faults_in_default_world(GOOD), nothing());
    let mut world = World { is_urgent: true, ..World::default() };
    world.changes(" M", &["src/parser.rs", "src/print.rs"]);
    assert_eq!(judged(GOOD, &world), nothing(), "urgent, with changed files");
    let crlf = GOOD.replace('\n', "\r\n");
    assert_eq!(judged(&crlf, &world), nothing(), "lines as Windows ends them");
    assert_eq!(judged(&format!("\u{feff}{GOOD}"), &world), nothing(), "with a byte order mark");
}

#[test]
fn six_headings_without_text_are_six_faults_and_a_short_document() {
    let text = "# Handoff\n\n## What I was working on\n## Current progress\n\n## Key decisions and why\n## Blockers\n\n\
        ## Files modified\n## Next steps\n";
    assert_eq!(
        faults_in_default_world(text),
        [
            "size fix: the document has 0 characters of text; fewer than 400 say too little",
            "sections fix: line 3: the section about what was being worked on is empty",
            "sections fix: line 4: the section about current progress is empty",
            "sections fix: line 6: the section about key decisions is empty",
            "sections fix: line 7: the section about blockers is empty",
            "sections fix: line 9: the section about files modified is empty",
            "sections fix: line 10: the section about next steps is empty",
            "whole fix: line 10: the document ends with \"## Next steps\"; nothing is under its last heading",
        ]
    );
}

#[test]
fn claims_about_the_repository_are_compared_with_git() {
    let text = good_with(
        "Committed on branch `exponents` as 1a2b3c4.",
        "All committed at deadbee, tree clean, 412 tests pass, branch pushed.",
    );
    let mut world = World::default();
    world.unknown_commit("deadbee");
    world.changes(" M", &["src/parser.rs", "src/print.rs"]);
    world.repository().ahead = Some(2);
    world.repository().head_on_remote = Some(false);
    let said = "line 13: \"All committed at deadbee, tree clean, 412 tests pass, branch pushed.\"";
    assert_eq!(
        judged(&text, &world),
        [
            format!("repository fix: {said}; git knows no commit deadbee"),
            format!("repository fix: {said}; git status lists src/parser.rs and 1 more"),
            format!("repository fix: {said}; HEAD 1a2b3c4d5 is 2 commits ahead of origin/exponents"),
        ]
    );
    world.author = Author::Provided;
    assert_eq!(judged(&text, &world).len(), 3, "the caller's document too");
}

#[test]
fn a_missing_file_is_named() {
    let mut world = World::default();
    world.missing("src/gone.rs");
    let text = good_with("`src/parser.rs`: the new states", "`src/gone.rs`: the new states, and `src/parser.rs`");
    let fault = "paths fix: line 22: \"- `src/gone.rs`: the new states, and `src/parser.rs`\"; src/gone.rs exists neither \
        here nor in git";
    assert_eq!(judged(&text, &world), [fault]);
    let text = good_with("`src/parser.rs`: the new states", "`src/gone.rs`: deleted");
    assert_eq!(judged(&text, &world), nothing(), "the document says so");
    let text = good_with("`src/parser.rs`: the new states", "`src/gone.rs:88`, and `/work/project/src/gone.rs`");
    assert_eq!(judged(&text, &world).len(), 1, "once, however it is written");
    world.missing("src");
    assert_eq!(judged(&text, &world).len(), 1, "also if its folder is gone");
}

#[test]
fn at_most_ten_missing_files_are_named() {
    let mut world = World::default();
    let names: Vec<String> = (0..25).map(|number| format!("src/gone{number:02}.rs")).collect();
    names.iter().for_each(|name| world.missing(name));
    let lines: String = names.iter().map(|name| format!("- `{name}`\n")).collect();
    let found = judged(&good_with("- `src/parser.rs`: the new states\n", &lines), &world);
    assert_eq!(found.len(), 11, "{found:#?}");
    assert!(found[9].contains("src/gone09.rs"), "{}", found[9]);
    assert_eq!(found[10], "paths fix: line 32: and 15 more files that do not exist");
}

#[test]
fn an_open_fence_is_a_fault() {
    let text = good_with("2. Then measure", "```sh\nscripts/bench\n\n2. Then measure");
    assert_eq!(
        faults_in_default_world(&text),
        ["whole fix: line 27: a code block begins here; its fence never closes"]
    );
}

#[test]
fn credentials_are_named_by_kind_line_and_last_characters() {
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ456789";
    let text = good_with("None.", &format!("The token is {token}.\nAnd password=hunter2hunter2 in `src/gone.rs`."));
    let mut world = World { is_urgent: true, ..World::default() };
    world.secret("GitHub token", 20, "xxxx6789");
    world.secret("password", 21, "");
    world.missing("src/gone.rs");
    let is = "the document is read by others: leave the credential out, and say where it is kept";
    assert_eq!(
        judged(&text, &world),
        [
            format!("secrets fix: line 20: a credential (GitHub token, ends in 6789); {is}"),
            format!("secrets fix: line 21: a credential (password); {is}"),
        ],
        "and nothing else is quoted from their lines"
    );
    for author in [Author::Provided, Author::Salvage] {
        world.author = author;
        assert_eq!(judged(&text, &world).len(), 2, "{author:?}");
    }
}

#[test]
fn no_check_quotes_a_line_with_a_credential() {
    let secret = "0f1e2d3c4b5a69788796a5b4c3d2e1f001234567";
    let lines = [
        format!("commit {secret}"),
        format!("branch `{secret}x`"),
        format!("all committed and pushed with {secret}"),
        format!("`src/{secret}.rs`"),
        format!("[truncated] {secret} [truncated]"),
        format!("and the key is `{secret}"),
    ];
    for line in &lines {
        // The same value is in another line, where nothing says what it is.
        let text = GOOD.replace("None.", &format!("None, see commit {secret}."));
        let text = format!("{text}{line}");
        let mut world = World::default();
        world.unknown_commit(secret);
        world.missing(&format!("src/{secret}.rs"));
        world.lookups.branches.insert(format!("{secret}x"), false);
        world.changes(" M", &["src/print.rs"]);
        world.repository().head_on_remote = Some(false);
        world.secret("key", GOOD.lines().count() + 1, "4567");
        let found = judged(&text, &world);
        assert!(!found.is_empty() && !found.iter().any(|fault| fault.contains(&secret[..12])), "{line}: {found:#?}");
    }
}

#[test]
fn nothing_is_quoted_from_a_private_key() {
    let key = "-----BEGIN PRIVATE KEY-----\ncommit 0f1e2d3c4b\n-----END PRIVATE KEY-----\ncommit 5a69788796";
    let mut world = World::default();
    world.secret("private key", 20, "");
    world.unknown_commit("0f1e2d3c4b");
    world.unknown_commit("5a69788796");
    world.unknown_commit("1a2b3c4");
    let found = only_check("repository", &judged(&good_with("None.", key), &world)).join("\n");
    assert!(!found.contains("0f1e2d3c4b") && found.contains("5a69788796"), "{found}");
}

#[test]
fn a_copy_of_the_predecessors_document_is_a_fault() {
    let mut world = World { predecessor: Some(GOOD.to_owned()), ..World::default() };
    let fault = |percent: u8| {
        format!(
            "copy fix: {percent} % of the document is also in the document of the agent's predecessor; it must say what happened \
             since"
        )
    };
    assert_eq!(judged(GOOD, &world), [fault(100)]);
    let changed =
        GOOD.replace("41 passed", "42 passed").replace("three times", "four times").replace("line 88", "line 90");
    assert_eq!(judged(&changed, &world), [fault(91)]);
    world.predecessor = Some(GOOD.replace("exponent", "fraction").replace("src", "lib").replace("print", "format"));
    assert_eq!(judged(GOOD, &world), nothing(), "another document in the same form");
}

#[test]
fn a_copy_of_the_instruction_is_a_fault() {
    let found = faults_in_default_world(include_str!("../../../data/prompts/instruction.md"));
    assert_eq!(only_check("copy", &found).len(), 1, "{found:#?}");
}

#[test]
fn an_urgent_document_states_checkpoint_and_verification() {
    let world = World { is_urgent: true, ..World::default() };
    let body = GOOD.split("---\n").nth(2).expect("a body");
    let first = |fault: &String| fault.split(':').next().unwrap_or_default().to_owned();
    let checks = |text: &str| -> Vec<String> { judged(text, &world).iter().map(first).collect() };
    let asked = include_str!("../../../data/prompts/instruction.md").split("---\n").nth(1).expect("front matter");
    let unfilled = format!("---\n{asked}---\n{body}");
    assert_eq!([checks(&unfilled), checks(body)].concat(), ["checkpoint fix", "verified fix"].repeat(2));
    assert_eq!(checks(&format!("---\nstarting_from: x\n---\n{body}")), ["verified fix"]);
    assert_eq!(checks(&format!("---\nCheckpoint: >\n  x\nverified:\n  - none\n---\n{body}")), nothing());
    assert_eq!(faults_in_default_world(body), nothing(), "only if it is urgent");
}

#[test]
fn a_verification_at_another_commit_is_stale_if_files_differ_since() {
    let mut world = World::default();
    let mut known = |hash: &str, differs_from_head| {
        let known = CommitLookup::Known { hash: hash.to_owned(), on_remote: true, differs_from_head };
        world.lookups.commits.insert("1a2b3c4".to_owned(), known);
        judged(GOOD, &world)
    };
    let stale = "verified warn: line 3: verified at 1a2b3c4; stale: HEAD is 1a2b3c4d5, and files differ since";
    assert_eq!(known("1a2b3c4fff", true), [stale]);
    assert_eq!(known("1a2b3c4fff", false), nothing());
    assert_eq!(known(HEAD, true), nothing());
    known("1a2b3c4fff", true);
    let with_another = |line: &str| judged(&GOOD.replacen("---\n", &format!("---\n{line}\n"), 1), &world);
    assert_eq!(with_another("verified_by: Mia"), [stale.replace("line 3", "line 4")], "a longer key is another key");
}

#[test]
fn a_long_document_is_a_warning_and_a_very_long_one_a_fault() {
    let long = format!("{GOOD}{}", "One more line of text.\n".repeat(300));
    let fault = "size warn: the document has 327 lines; what is after the first 300 may not be read";
    assert_eq!(faults_in_default_world(&long), [fault]);
    let longer = format!("{GOOD}{}", "One more line of text.\n".repeat(9_000));
    let found = faults_in_default_world(&longer);
    assert_eq!(found, ["size fix: the document has 207765 bytes; what is after the first 65536 may not be read"]);
}

#[test]
fn changed_files_are_to_be_named() {
    let mut world = World::default();
    world.changes(" M", &["src/parser.rs", "src/new name.rs"]);
    world.changes("??", &["target/debug/x", "node_modules/", ".DS_Store"]);
    world.changes(" M", &["Cargo.lock"]);
    let warning = "dirty_files warn: the document does not name a changed file; git status lists src/new name.rs";
    assert_eq!(judged(GOOD, &world), [warning]);
    world.changes("??", &["src/other.rs", "docs/form.md"]);
    let found = judged(GOOD, &world);
    let fault = "dirty_files fix: the document does not name 3 changed files; git status lists src/new name.rs, \
        src/other.rs, docs/form.md";
    assert_eq!(found, [fault]);
    let all = good_with("- `src/parser.rs`", "- src/new name.rs, other.rs, the form\n- `src/parser.rs`");
    assert_eq!(judged(&all, &world), nothing(), "by path, by base name, and without the extension");
    let many: Vec<String> = (0..150).map(|number| format!("lib/a-long-name-of-a-file-{number}.rs")).collect();
    world.changes(" M", &many.iter().map(String::as_str).collect::<Vec<_>>());
    let found = judged(GOOD, &world).join("\n");
    assert!(found.starts_with("dirty_files fix: the document does not name 153 changed files; git status lists"));
    assert!(found.ends_with(" more"), "{found}");
}

#[test]
fn a_folder_or_a_pattern_names_the_files_in_it() {
    let mut world = World::default();
    world.changes("??", &["plugins/x/commands/a.md", "plugins/x/commands/b.md", "plugins/x/commands/in/c.md"]);
    assert_eq!(only_check("dirty_files", &judged(GOOD, &world)).len(), 1);
    for name in [
        "`/work/project/plugins`",
        "/work/project/plugins/x/commands/",
        "`plugins/x/commands`",
        "`commands/*.md`",
        "**commands/**.md**",
        "`x/commands/*`",
        "`/work/project/plugins/x/*/*.md`",
        "plugins/**/*.md",
        "`commands/{a,b,c}.md`.",
    ] {
        let text = good_with("- `src/parser.rs`", &format!("- {name}\n- `src/parser.rs`"));
        assert_eq!(only_check("dirty_files", &judged(&text, &world)), nothing(), "{name}");
    }
    for name in ["`commands/*.rs`", "`mands/*.md`", "**commands**", "*.md", "`/other/plugins`"] {
        let text = good_with("- `src/parser.rs`", &format!("- {name}\n- `src/parser.rs`"));
        assert_eq!(only_check("dirty_files", &judged(&text, &world)).len(), 1, "{name}");
    }
}

#[test]
fn the_folder_of_the_document_is_not_the_agents_work() {
    let folder = "data/personas/reviewer/handoffs/";
    let mut world = World {
        document_path: Some("/work/project/data/personas/reviewer/handoffs/20260220T143025-6f1c3a52.md"),
        ..World::default()
    };
    world.changes("??", &["data/", folder, &format!("{folder}20260220T143025-6f1c3a52.md")]);
    world.changes("??", &[&format!("{folder}20260219T093000-aaaaaaaa.facts.json")]);
    assert_eq!(judged(GOOD, &world), nothing());
    let clean = good_with("None.", "None. The working tree is clean.");
    assert_eq!(judged(&clean, &world), nothing());
}

#[test]
fn next_steps_name_a_command_or_a_file() {
    let steps = "1. Run `cargo test print` and repair the sign.\n2. Then measure with `scripts/bench`.\n";
    let warning = "next_step warn: line 25: the section about next steps names no command and no path; the successor is \
        told neither a command nor a file to begin with";
    for (new, expected) in [
        ("1. Repair the sign.\n2. Then measure, e.g. twice.\n", vec![warning]),
        ("1. Repair the sign in print.rs.\n", vec![]),
        ("1. Repair the sign, see [the notes](docs/notes.md).\n", vec![]),
        ("Begin with this:\n```\nscripts/bench\n```\n", vec![]),
        ("Begin with this:\n~~~\nscripts/bench\n~~~\n", vec![]),
        ("None, everything is done.\n", vec![]),
        ("- None\n", vec![]),
        ("There is nothing left to do.\n", vec![]),
        ("No further steps.\n", vec![]),
        ("The task is complete and merged.\n", vec![]),
        ("All done!\n", vec![]),
        ("Task complete.\n", vec![]),
        ("**Done** (see above).\n", vec![]),
        ("1. Complete the sign handling.\n", vec![warning]),
        ("1. Repair the sign. Measure once that is done.\n", vec![warning]),
        ("1. Get the parser done.\n", vec![warning]),
        ("1. None of the signs are printed. Repair them.\n", vec![warning]),
        ("1. Abandoned states are to be repaired.\n", vec![warning]),
    ] {
        assert_eq!(only_check("next_step", &faults_in_default_world(&good_with(steps, new))), expected, "{new}");
    }
}

#[test]
fn steps_may_stand_under_another_heading() {
    let steps =
        "## Next steps\n1. Run `cargo test print` and repair the sign.\n2. Then measure with `scripts/bench`.\n";
    for new in [
        "## Notes for next agent\nBe kind.\n\n## Tasks breakdown\n1. Repair `src/print.rs`.\n",
        "## Next session\nRepair the sign.\n\n## First action\n`cargo test print`\n",
    ] {
        assert_eq!(only_check("next_step", &faults_in_default_world(&good_with(steps, new))), nothing(), "{new}");
    }
    let new = "## Notes for next agent\nBe kind.\n";
    assert_eq!(only_check("next_step", &faults_in_default_world(&good_with(steps, new))).len(), 1);
}

/// tasuki writes it: it has other sections, and quotes what was true before. But it must be whole, and say something.
#[test]
fn a_salvaged_document_needs_no_form_but_must_be_whole() {
    let mut world = World { author: Author::Salvage, is_urgent: true, ..World::default() };
    world.unknown_commit("deadbee");
    world.changes(" M", &["a.rs", "b.rs", "c.rs"]);
    let text = format!("# Salvaged\n\n```text\ncommit deadbee, all committed [truncated]\n{}\n```\n", "x ".repeat(400));
    assert_eq!(judged(&text, &world), nothing());
    assert_eq!(
        judged("# Salvaged\n\n```text\ncommit deadbee", &world),
        [
            "size fix: the document has 13 characters of text; fewer than 400 say too little",
            "whole fix: line 3: a code block begins here; its fence never closes",
        ]
    );
}

#[test]
fn a_provided_document_is_checked_like_the_document_of_an_agent() {
    let mut world = World { author: Author::Provided, is_urgent: true, ..World::default() };
    world.changes(" M", &["a.rs", "b.rs", "c.rs"]);
    assert_eq!(only_check("dirty_files", &judged(GOOD, &world)).len(), 1);
    let bad = format!("# H\n```\n{}", "x".repeat(70_000));
    let found = judged(&bad, &world);
    for check in ["sections", "size", "checkpoint", "verified", "dirty_files", "whole"] {
        assert!(!only_check(check, &found).is_empty(), "{check}: {found:#?}");
    }
}

#[test]
fn what_is_not_known_is_not_a_fault() {
    let text = good_with("None.", "None. All is committed at deadbee and pushed; `src/gone.rs` is on branch `other`.");
    let empty = Facts::default();
    let found = faults(&CheckInput {
        text: &text,
        author: Author::AgentFile,
        is_urgent: false,
        cwd: None,
        document_path: None,
        facts: &empty,
        lookups: &Lookups::default(),
        predecessor: None,
        instruction: "",
        secrets: &[],
        min_chars: 400,
        max_bytes: 65_536,
    });
    assert_eq!(found, []);
}

#[test]
fn faults_are_in_the_order_of_lines_plain_and_at_most_fifty() {
    let mut world = World::default();
    for line in (1..=80).rev() {
        world.secret("token\u{1b}[31m", line, "abcd");
    }
    world.missing("src/gone.rs");
    let text = format!("{GOOD}`src/gone.rs` {}", "ä\u{9b}\u{202e}".repeat(3_000));
    let found = judged(&text, &world);
    assert_eq!(found.len(), 51);
    assert_eq!(found[50], "secrets fix: and 30 more faults");
    assert!(found[0].starts_with("secrets fix: line 31: a credential (token[31m, ends in abcd)"), "{}", found[0]);
    let plain = |c: char| !c.is_control() && c != '\u{202e}';
    assert!(found.iter().all(|fault| fault.chars().all(plain)), "{found:#?}");
    world.secrets.clear();
    let found = judged(&text, &world);
    assert!(found[0].chars().count() < 450 && found[0].chars().all(plain), "{}", found[0]);
}
