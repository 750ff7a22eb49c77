//! Sentences that say that everything is committed or pushed, and sentences that only sound like it.

use super::super::claims::CommitLookup;
use super::super::testing::{HEAD, World, good_with, judged, only_check};

/// How many faults about the repository a line causes in this world.
fn denied(line: &str, world: &World) -> usize {
    only_check("repository", &judged(&good_with("None.", line), world)).len()
}

fn dirty() -> World {
    let mut world = World::default();
    world.changes(" M", &["src/parser.rs"]);
    world
}

fn ahead() -> World {
    let mut world = World::default();
    world.repository().ahead = Some(2);
    world.repository().head_on_remote = Some(false);
    world
}

#[test]
fn a_clean_tree_is_denied_if_files_are_changed() {
    for line in [
        "The working tree is clean.",
        "Tree clean.",
        "- git status: clean",
        "| Working tree | clean |",
        "`exponents` has a commit; clean working tree",
        "**Branch**: `exponents` (clean, fully tested)",
        "All changes are committed.",
        "Everything is committed and tested",
        "all committed at 1a2b3c4",
        "I committed everything.",
        "No uncommitted changes",
        "- **Uncommitted changes**: None (all committed)",
        "There are no uncommitted files.",
        "There is nothing to commit.",
        "## State: all committed",
        "HEAD is 1a2b3c4, clean worktree",
        "No local changes remain.",
        "Alles ist committet und gepusht.",
        "Das Arbeitsverzeichnis ist sauber.",
        "所有更改都已提交并推送。",
        "工作区干净。",
        "変更はすべてコミット済みです。",
        "모든 변경 사항이 커밋되었습니다.",
    ] {
        assert_eq!(denied(line, &dirty()), 1, "{line}");
        assert_eq!(denied(line, &World::default()), 0, "{line}");
    }
}

#[test]
fn what_only_sounds_like_a_clean_tree_is_not_denied() {
    for line in [
        "Not everything is committed.",
        "The tree is not clean.",
        "Start from a clean tree.",
        "Work in the clean worktree.",
        "If the tree is clean, run the script.",
        "Check that the working tree is clean",
        "Is the tree clean?",
        "All committed records are in the table.",
        "Everything but the notes is committed.",
        "All is committed except `src/parser.rs`.",
        "The code is clean (no warnings).",
        "The tree was clean yesterday.",
        "`/home/me/other` has a clean tree",
        "Work from\na clean worktree.",
        "| Tree | Clean | Committed | All |",
        "```\nnothing to commit, working tree clean\n```",
        "- base checks (process-group kill, clean worktree);",
        "Clean worktree checks are written.",
        "### Previous session\nThe working tree is clean.",
        "### History\n- all committed",
        "### What was done in an earlier session\nEverything is committed.",
        "No local changes are needed.",
        "No local server remains.",
        "No local changes were lost.",
        "Noch nicht alles ist committet.",
        "Wenn alles committet ist, weiter.",
        "所有更改尚未提交。",
        "请先提交所有更改。",
        "所有订单都已提交。",
        "コミットはすべて完了していません。",
        "모든 변경을 아직 커밋하지 않았습니다.",
        "- [ ] everything is committed",
        "Done means: the working tree is clean, and everything is pushed.",
        "Definition of done: everything committed.",
        "Goal: tree clean, all committed.",
        "Success looks like this: everything committed.",
        "The user asked me to keep the working tree clean.",
        "The user said: leave no uncommitted changes behind.",
        "Rule (from AGENTS.md): nothing uncommitted at the end of a session.",
        "## Next steps\n1. Everything is committed: then stop.",
        "Everything is committed at offset 12.",
        "The transaction is fully committed to the database.",
        "Status: clean bill of health for the parser.",
    ] {
        assert_eq!(denied(line, &dirty()), 0, "{line}");
    }
}

#[test]
fn a_push_is_denied_if_the_remote_lacks_commits() {
    for line in [
        "Branch pushed.",
        "Branch `exponents` is pushed to origin",
        "All commits are pushed.",
        "Everything is committed and pushed.",
        "HEAD: 1a2b3c4 (pushed)",
        "I pushed the branch",
        "I pushed everything.",
        "The branch is in sync with origin.",
        "The branch is up to date with origin/exponents.",
        "No unpushed commits",
        "fully pushed",
        "My commits are on the remote.",
        "All commits are now on origin.",
        "Pushed: yes",
        "| Pushed | yes |",
        "Alles ist committet und gepusht.",
        "所有更改都已提交并推送。",
        "すべてプッシュしました。",
        "Everything's committed and pushed.",
        "### Current progress and next steps\nEverything is pushed.",
        "## Next steps\n1. `cargo test`\n\nAll is done and everything is pushed.",
        "Unpushed commits: 0",
    ] {
        assert_eq!(denied(line, &ahead()), 1, "{line}");
        assert_eq!(denied(line, &World::default()), 0, "{line}");
    }
}

#[test]
fn what_only_sounds_like_a_push_is_not_denied() {
    for line in [
        "Nothing is pushed.",
        "The branch is not pushed yet.",
        "Branch `other` is pushed.",
        "Her branch is pushed to origin.",
        "The tag v1.0.0 is pushed to origin",
        "All values are pushed onto the stack",
        "Push the branch",
        "The branch must be pushed.",
        "After the branch is pushed, open a pull request.",
        "All pushback is answered.",
        "| Repo | Branch | Pushed | State |",
        "The first 3 commits were pushed to origin.",
        "Committed and pushed: the lock.",
        "Pushed: yes, up to 0123abc",
        "Pushed: no",
        "All commits to origin go through a review.",
        "All my notes are on the remote server.",
        "Everything is on the remote machine.",
        "The branch is on origin.",
        "I ran `git push` and it succeeded.",
        "所有通知都已推送。",
        "プッシュ通知をすべて実装しました。",
        "- [ ] branch is pushed",
        "The user wants everything pushed by Friday.",
        "1. Get everything committed and pushed",
        "The head is pushed onto the stack.",
        "Everything is pushed through the queue.",
        "The image is in the registry with all tags pushed.",
    ] {
        assert_eq!(denied(line, &ahead()), 0, "{line}");
    }
}

#[test]
fn without_a_remote_nothing_was_pushed() {
    let mut world = ahead();
    world.repository().upstream = None;
    world.repository().ahead = None;
    for line in [
        "Committed and pushed: the lock.",
        "The commits were pushed to origin.",
        "The branch feature/login is on origin.",
        "I ran `git push` and it succeeded.",
    ] {
        let found = only_check("repository", &judged(&good_with("None.", line), &world));
        assert_eq!(found.len(), 1, "{line}");
        assert!(found[0].ends_with("HEAD 1a2b3c4d5 is not on any branch of a remote"), "{}", found[0]);
    }
    // After `git push origin exponents` and one more commit, a repository looks like this too.
    world.repository().remote = Some("https://example.org/a.git".to_owned());
    for line in ["Committed and pushed: the lock.", "The commits were pushed to origin."] {
        assert_eq!(denied(line, &world), 0, "an earlier commit may be pushed: {line}");
    }
    world.repository().remote = None;
    for line in ["The branch is based on origin/main.", "The branch is on hold.", "Push notifications worked."] {
        assert_eq!(denied(line, &world), 0, "{line}");
    }
}

#[test]
fn what_the_remote_has_may_not_be_known() {
    let mut world = World::default();
    world.repository().head_on_remote = None;
    world.repository().ahead = None;
    assert_eq!(denied("Everything is pushed.", &world), 0);
    world.repository().ahead = Some(1);
    let found = judged(&good_with("None.", "Everything is pushed."), &world);
    assert!(found[0].ends_with("HEAD 1a2b3c4d5 is 1 commit ahead of origin/exponents"), "{found:?}");
    world.repository().head_on_remote = Some(true);
    assert_eq!(denied("Everything is pushed.", &world), 0, "it is pushed under another name");
    world.repository().head = None;
    assert_eq!(denied("Everything is pushed.", &world), 0, "there is no commit");
}

#[test]
fn a_commit_that_is_said_to_be_pushed_is_on_a_branch_of_a_remote() {
    let mut world = World::default();
    let found = |world: &World, sentence: &str| {
        only_check("repository", &judged(&good_with("Committed on branch `exponents` as 1a2b3c4.", sentence), world))
    };
    let says_so = [
        "Commit 1a2b3c4 is pushed to origin.",
        "I pushed 1a2b3c4 to `origin/exponents`.",
        "Latest commit `1a2b3c4` pushed.",
        "Committed & pushed as 1a2b3c4.",
    ];
    for sentence in says_so {
        assert_eq!(found(&world, sentence), [] as [&str; 0], "it is there: {sentence}");
    }
    let hash = HEAD.to_owned();
    let local = CommitLookup::Known { hash, on_remote: false, differs_from_head: false };
    world.lookups.commits.insert("1a2b3c4".to_owned(), local);
    for sentence in says_so {
        let is = "commit 1a2b3c4 is on no branch of a remote";
        assert!(
            found(&world, sentence).iter().any(|fault| fault.ends_with(is)),
            "{sentence}: {:?}",
            found(&world, sentence)
        );
    }
    for sentence in [
        "Committed as 1a2b3c4.",
        "1a2b3c4 is not pushed yet.",
        "1a2b3c4 must be pushed.",
        "Committed as 1a2b3c4. The docs were pushed last week.",
        "Once 1a2b3c4 is pushed, open the pull request.",
    ] {
        assert_eq!(found(&world, sentence), [] as [&str; 0], "{sentence}");
    }
}
