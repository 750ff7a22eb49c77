//! What counts as a commit, a branch or a path, and what only looks like one.

use super::*;

fn found(text: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
    let Claims { commits, branches, paths } = claims(text, Some("/work/project"));
    let is_file = |path: &String| path.rsplit('/').next().is_some_and(|name| name.find('.') > Some(0));
    let files = paths.into_iter().filter(is_file).collect();
    (commits.into_iter().collect(), branches.into_iter().collect(), files)
}

#[test]
fn a_hash_counts_where_the_words_speak_of_commits() {
    for (text, expected) in [
        ("commit a1b2c3d", vec!["a1b2c3d"]),
        ("It is in git commit a1b2c3d.", vec!["a1b2c3d"]),
        ("Pushed a1b2c3d to origin/main.", vec!["a1b2c3d"]),
        ("Commit `a1b2c3d4e`: the parser", vec!["a1b2c3d4e"]),
        ("All committed at deadbee, tree clean", vec!["deadbee"]),
        ("HEAD is at 0123abc", vec!["0123abc"]),
        ("HEAD: 0123abc (pushed)", vec!["0123abc"]),
        ("merged as `4d5e6f7a8`", vec!["4d5e6f7a8"]),
        ("main@0123abc", vec!["0123abc"]),
        ("In `/work/project/src/a.rs:3`: commit 0123abc", vec!["0123abc"]),
        ("In /work/project: commit 0123abc", vec!["0123abc"]),
        ("commit 0123abc, see **/work/project/**.", vec!["0123abc"]),
        ("- `0123abc` fix(store): a lock", vec!["0123abc"]),
        ("0123abc feat: a parser", vec!["0123abc"]),
        ("landed (`0123abc`, `4d5e6f7`)", vec!["0123abc", "4d5e6f7"]),
        ("commits 0123abc..4d5e6f7", vec!["0123abc", "4d5e6f7"]),
        ("a 40 digit one `0123456789abcdef0123456789abcdef01234567`", vec!["0123456789abcdef0123456789abcdef01234567"]),
        ("| Commit | What |\n|---|---|\n| 0123abcd | a lock |\n| `4d5e6f7a` | a key |", vec!["4d5e6f7a"]),
        ("## Commits\n- `0123abcd` a lock", vec!["0123abcd"]),
        ("```\n$ git log --oneline\n0123abc a lock\n4d5e6f7 a key\n```", vec!["0123abc"]),
        ("```\ngit show 0123abc\n```", vec!["0123abc"]),
        ("---\nverified: cargo test at 0123abc\n---\n", vec!["0123abc"]),
    ] {
        assert_eq!(found(text).0, expected, "{text}");
    }
}

/// A repository with the format `sha256` has hashes of 64 digits. Most texts of that length are checksums.
#[test]
fn a_hash_of_64_digits_counts_where_it_is_called_a_commit() {
    let hash = "0123456789abcdef".repeat(4);
    for text in [
        "commit HASH",
        "HEAD is at `HASH`",
        "```\ngit show HASH\n```",
        "---\nverified: cargo test at commit HASH\n---\n",
    ] {
        assert_eq!(found(&text.replace("HASH", &hash)).0, [hash.as_str()], "{text}");
    }
    for text in [
        "`HASH`",
        "Git: `HASH`",
        "commit 7 has the checksum HASH",
        "commit HASHab",
        "---\nverified: the archive HASH\n---\n",
    ] {
        assert_eq!(found(&text.replace("HASH", &hash)).0, Vec::<String>::new(), "{text}");
    }
}

#[test]
fn what_only_looks_like_a_hash_does_not_count() {
    for text in [
        "the word deadbeef, or defaced, or effaced",
        "colour `#a1b2c3d4`, #a1b2c3d, and 0xa1b2c3d",
        "session `6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa`",
        "session 6f1c3a52",
        "md5 `d41d8cd98f00b204e9800998ecf8427e`",
        "sha256:0123456789abcdef0123456789abcdef01234567",
        "container `0123456789ab` of image `4d5e6f7`",
        "on 20260220 and 20260220T143025, issue 1234567",
        "npm package@1.2.3, v1.2.3-a1b2c3d",
        "https://github.com/o/r/commit/a1b2c3d",
        "the file `a1b2c3d.png` and `a1b2c3d/x`",
        "token `a1b2c3d`",
        "the submodule is pinned to commit a1b2c3d",
        "in the other repo: commit a1b2c3d",
        "commit a1b2c3d in `~/other/project`",
        "`C:\\work\\other` is at HEAD a1b2c3d",
        "commit a1b2c3d in `/work/project-old/src`",
        "commit a1b2c3d in `/work/proj/`",
        "```\na1b2c3d\n{\"id\": \"a1b2c3d\"}\n```",
        "commit …a1b2c3d",
        "a1b2c3 is short, and commit a1b2c3d4e5f60718293a4b5c6d7e8f9001122334455 is long",
        "A1B2C3D in capitals",
        "the name commit_a1b2c3d",
        "Sentry event `a1b2c3d` shows it; the chunk `a1b2c3d`",
        "Release (a1b2c3d) was built by CI",
        "The fix is in tokio commit `a1b2c3d`.",
        "This was introduced by linux commit a1b2c3d4e5f6.",
    ] {
        assert_eq!(found(text).0, Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_branch_is_what_is_called_one() {
    for (text, expected) in [
        ("on branch `feat/login`", "feat/login"),
        ("**Branch:** main", "main"),
        ("- Branch: `suni`", "suni"),
        ("Current branch: feature/a-b (3 commits)", "feature/a-b"),
        ("**Branch**: `main` (clean)", "main"),
        ("Branch / commit: `main` @ 0123abc", "main"),
        ("| Branch | `feat/x` |", "feat/x"),
        ("the `feat/login` branch has it", "feat/login"),
        ("`origin/feat/login` branch", "feat/login"),
        ("---\nbranch: feat/x\n---\n", "feat/x"),
        ("ブランチ: `feat/x`", "feat/x"),
        ("Ветка: `testing`", "testing"),
    ] {
        assert_eq!(found(text).1, [expected], "{text}");
    }
}

#[test]
fn a_branch_that_a_line_names_once_is_found_once() {
    for text in ["Branch: `feat/x` branch", "Branch: ``origin/feat/x`` branch", "| Branch | `feat/x` |"] {
        let lower = text.to_ascii_lowercase();
        let document = read(text, &lower);
        let places: Vec<Place<'_>> = places(&document).collect();
        let found = branches::in_line(&places[0], None);
        assert_eq!(found.into_iter().map(|(_, name)| name).collect::<Vec<_>>(), ["feat/x"], "{text}");
    }
}

#[test]
fn what_is_not_meant_as_an_existing_branch_does_not_count() {
    for text in [
        "the `else` branch of `if x`",
        "the `Some(x)` branch, the `true` branch",
        "the `snake_case` branch, the `Controlled` branch",
        "branch `a1b2c3d4`",
        "Branch: HEAD",
        "Branch: none yet",
        "Branch: feature work on the parser",
        "Deploy from branch",
        "I deleted branch `old`",
        "branch `feat/x` was merged",
        "create a new branch `feat/y`",
        "git checkout -b feat/z  # branch `feat/z`",
        "branch naming: branch `feat/<name>`",
        "the last tag before the branch: `v1.1.5`",
        "- **Branch reality:** prod serves `origin/main`",
        "branch `feat/x` in `/other/project`",
        "branches `a` and `b`",
        "```\nbranch: main\n```",
        "the `Err/None` branch returns early, the `else-if` branch is dead code",
        "Commit to branch `fix/session` and open a PR",
        "Push branch `fix/session` with `git push -u origin fix/session`",
        "Alice works on branch `alice/cookies`, which is only on her laptop.",
    ] {
        assert_eq!(found(text).1, Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_path_has_a_slash_an_extension_and_backticks() {
    for (text, expected) in [
        ("`src/main.rs`", "src/main.rs"),
        ("`./run.sh`", "run.sh"),
        ("`/work/project/run.sh`", "run.sh"),
        ("`src/main.rs:12`", "src/main.rs"),
        ("`src/main.rs:12-40`", "src/main.rs"),
        ("`src/main.rs#L12`", "src/main.rs"),
        ("`tests/test_a.py::test_b`", "tests/test_a.py"),
        ("``docs/größe.md``", "docs/größe.md"),
        ("## The file `src/a.ts`", "src/a.ts"),
        ("| `src/a.tsx` | half made |", "src/a.tsx"),
        ("`.github/workflows/ci.yml`", ".github/workflows/ci.yml"),
    ] {
        assert_eq!(found(text).2, [expected], "{text}");
    }
}

#[test]
fn what_only_looks_like_a_path_does_not_count() {
    for text in [
        "src/main.rs without backticks",
        "`main.rs` alone",
        "`Foo/Bar`, `text/html`, `application/json`, `owner/repo`, `feat/login`, `and/or`",
        "`/api/users`, `/api/users.json`, `/etc/hosts.conf`, `~/x/y.rs`, `../x/y.rs`, `C:\\x\\y.rs`",
        "`https://example.org/a/b.html`, `github.com/o/r`",
        "`src/*.rs`, `src/**/a.rs`, `src/{a,b}.rs`, `src/<name>.rs`, `app/[id]/page.tsx`, `$HOME/a/b.rs`",
        "`cargo test src/a.rs`, `cat a/b.txt`",
        "`path/to/file.rs`, `your/file.rs`, `foo/bar.rs`, `chapters/chXX.md`, `notes/session-N.md`",
        "`package/1.2.3`, `aws/s3.Client`, `lib/foo.v2`",
        "`target/debug/a.d.rs`, `node_modules/x/index.js`, `dist/app.js`, `.cache/a.json`, `tmp/a.txt`",
        "`@scope/package.js`",
        "```\n`src/a.rs`\n```",
        "`src/a.rs` was deleted",
        "`src/a.rs` → `src/b.rs`",
        "I will write `src/a.rs`",
        "not yet: `src/a.rs`",
        "e.g. `src/a.rs`",
        "- [ ] `src/a.rs`",
        "~~`src/a.rs`~~",
        "Removed files:\n- `src/a.rs`",
        "## Deleted\n- `src/a.rs`",
        "## Next steps\n1. Add `src/a.rs`",
        "`src/a.rs` entfernt",
        "`src/a.rs` を削除",
        "`src/a.rs` is here.\n`src/a.rs` was removed later.",
        "1. **Create the schema**\n   - File: `src/a.rs`",
        "1. **Create the schema**\n\n   - The file:\n     - `src/a.rs`",
        "1. **Create the schema**\n   in `src/a.rs`",
        "## What remains for next session\nFixture F1 (write-first):\n- the bytes match `src/a.rs`",
        "## What remains\n### Fixture F1 (write-first)\n- the bytes match `src/a.rs`",
        "## Tasks\n- Implement the lock\n  - `src/a.rs`",
        "The spec calls for `src/a.rs`; extract it when needed.",
        "The issue asks for\n`src/a.rs`.",
        "The lock should live in `src/a.rs`.",
        "The file `src/a.rs` is\nnot written yet.",
        "A later step will write the file\n`src/a.rs`.",
        "`assets/index-BbMHCdJ9.js`, `assets/Page-D1SJlYMS.mjs`, `assets/index-CRSe8Nl6.css`",
        "`static/js/main.8f3a2b1c.js`, `static/js/2.8f3a2b1c.chunk.js`",
    ] {
        assert_eq!(found(text).2, Vec::<String>::new(), "{text}");
    }
    assert_eq!(found("## Next steps\n1. Repair `src/a.rs`").2, ["src/a.rs"]);
    for text in [
        "1. Create the schema\n2. Repair\n   - `src/a.rs`",
        "1. Create the schema\n\nAnother text.\n\n   `src/a.rs`",
        "A plan was made. It works now.\n`src/a.rs` has it.",
        "It is in `src/a.rs`.\nThe plan was another one.",
    ] {
        assert_eq!(found(text).2, ["src/a.rs"], "{text}");
    }
    for name in
        ["assets/user-settings.js", "assets/user-Settings.js", "assets/route-handler1.css", "assets/20240101.js"]
    {
        assert_eq!(found(&format!("`{name}`")).2, [name]);
    }
    assert_eq!(found("- `src/old/missing.rs`: half made").2, ["src/old/missing.rs"], "a name says nothing");
    assert_eq!(claims("`/work/project/src/a.rs`", None), Claims::default(), "the working directory is not known");
}

#[test]
fn a_file_that_is_planned_or_of_another_project_does_not_count() {
    for text in [
        "## Next steps\n1. Put the helper into `src/a.rs`\n2. We need `src/a.rs` for that\n3. Copy main.rs to `src/a.rs`",
        "Factor the code out into `src/a.rs`; the test for it belongs in `tests/a.rs`",
        "Next I want to add `src/a.rs`.",
        "`a/src/main.rs` and `b/src/main.rs`; `library/std/src/panicking.rs:597:5`",
        "tokio's `tokio/src/runtime/mod.rs`; the endpoint `api/v1/users.json`; S3 holds `backups/db.sql`",
    ] {
        assert_eq!(found(text).2, Vec::<String>::new(), "{text}");
    }
}

#[test]
fn the_folder_in_which_a_path_begins_is_looked_up_too() {
    let found = claims("`src/a/b.rs` and `lib/c.rs` and `./d.rs`", Some("/work/project"));
    assert_eq!(found.paths.into_iter().collect::<Vec<_>>(), ["d.rs", "lib", "lib/c.rs", "src", "src/a/b.rs"]);
}

#[test]
fn the_lists_are_bounded() {
    let line = |n: usize| format!("commit `{n:07x}a`, branch `b-{n}`, `src/a{n}.rs`\n");
    let found = claims(&(0..5_000).map(line).collect::<String>(), None);
    assert_eq!(
        (found.commits.len(), found.branches.len(), found.paths.len()),
        (MOST_COMMITS, MOST_BRANCHES, MOST_PATHS + 1)
    );
}

#[test]
fn a_document_may_speak_of_several_repositories() {
    use super::super::testing::{World, good_with, judged};
    let text = good_with("None.", "None. Commits `0123abc`, `4d5e6f7` and `8a9b0c1` are there.");
    let mut world = World::default();
    world.unknown_commit("0123abc");
    assert_eq!(judged(&text, &world), Vec::<String>::new(), "git knows most of them");
    world.unknown_commit("4d5e6f7");
    assert_eq!(judged(&text, &world).len(), 2, "git does not know half of them");
    let several = text.replace("# Handoff", "# Handoff of two repos");
    assert_eq!(judged(&several, &world), Vec::<String>::new(), "they may be of the other repository");
    let head = several.replace("Commits", "HEAD is at");
    assert_eq!(judged(&head, &world).len(), 2, "but the document says that the work stands there");
}

#[test]
fn a_branch_that_does_not_exist_is_a_fault_where_the_work_is_said_to_be() {
    use super::super::testing::{World, good_with, judged};
    let mut world = World::default();
    world.lookups.branches.insert("gone".to_owned(), false);
    let text = good_with("branch `exponents`", "branch `gone`");
    let fault = "repository fix: line 13: \"Committed on branch `gone` as 1a2b3c4.\"; there is no branch gone, here or at a \
        remote";
    assert_eq!(judged(&text, &world), [fault]);
    let text = good_with("None.", "None; see branch `gone`.");
    assert_eq!(judged(&text, &world), Vec::<String>::new(), "an earlier branch may be gone");
}
