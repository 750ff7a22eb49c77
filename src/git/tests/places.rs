//! Working directories of every kind, and formats of repositories.

use super::support::{Place, all_facts, facts, git, gits};
use crate::contract::facts::RepositoryFacts;
use crate::core::check::{Claims, Lookups, PathLookup};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

#[tokio::test]
async fn a_folder_without_a_repository_and_a_path_without_a_folder_have_no_facts() {
    let place = Place::new();
    let file = place.work().join("a");
    let missing = place.work().join("missing");
    let nothing: [&str; 0] = [];
    for git in gits() {
        for (cwd, reasons) in [
            (place.outside().as_path(), &nothing[..]),
            (&missing, &["the working directory does not exist"]),
            (&file, &["the working directory can't be entered"]),
            (Path::new("relative"), &["the working directory is not known"]),
            (Path::new(""), &["the working directory is not known"]),
        ] {
            let (facts, not_known) = facts(&git, &place, cwd).await;
            assert_eq!((facts, not_known), (None, reasons.iter().map(|it| (*it).to_owned()).collect()), "{cwd:?}");
        }
        let claims = Claims {
            commits: [place.head()].into(),
            branches: ["main".to_owned()].into(),
            paths: ["work/a", "missing"].map(str::to_owned).into(),
        };
        // Without a history nobody knows what was there before.
        assert_eq!(git.lookups(&place.outside(), &claims).await, Lookups::default());
    }
}

/// A variable makes git believe that everything belongs to another user.
#[tokio::test]
async fn a_repository_of_another_user_is_not_read() {
    let place = Place::new();
    for own in gits() {
        let script = format!("GIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec '{}' \"$@\"", own.program);
        let git = git(&place.program("careful-git", &script));
        let (facts, not_known) = facts(&git, &place, &place.work()).await;
        let reason = "the repository belongs to another user, and git refuses to read it";
        assert_eq!((facts, not_known), (None, vec![reason.to_owned()]));
        let claims = Claims { paths: ["a", "missing"].map(str::to_owned).into(), ..Claims::default() };
        assert_eq!(git.lookups(&place.work(), &claims).await, Lookups::default());
    }
}

#[tokio::test]
async fn a_bare_repository_and_gits_own_folder() {
    let place = Place::new();
    place.git(&["clone", "-q", "--bare", ".", "inner.git"]);
    let (bare, own) = (place.work().join("inner.git"), place.work().join(".git"));
    for git in gits() {
        let (bare_facts, not_known) = facts(&git, &place, &bare).await;
        let bare_facts = bare_facts.expect("a repository");
        assert_eq!((bare_facts.bare, bare_facts.root.as_str()), (true, bare.to_str().expect("UTF-8")));
        assert_eq!((bare_facts.head, bare_facts.changed), (Some(place.head()), None));
        assert_eq!(not_known, [""; 0]);
        for cwd in [&own, &own.join("refs")] {
            let (facts, not_known) = facts(&git, &place, cwd).await;
            let facts = facts.expect("a repository");
            assert_eq!((facts.bare, facts.root.as_str()), (false, own.to_str().expect("UTF-8")));
            assert_eq!((facts.head, facts.changed), (Some(place.head()), None));
            assert_eq!(
                not_known,
                ["changed files: the working directory is inside the repository's own folder of git"]
            );
        }
    }
}

#[tokio::test]
async fn a_linked_work_tree_and_one_whose_repository_is_gone() {
    let place = Place::new();
    let linked = place.work().join("linked");
    place.git(&["worktree", "add", "-q", "-b", "side", "linked"]);
    fs::write(linked.join("a"), "other\n").expect("written");
    place.write("a", "not looked at\n");
    place.write("sub/b", "not looked at\n");
    for git in gits() {
        let (facts, not_known) = facts(&git, &place, &linked).await;
        let facts = facts.expect("a repository");
        assert_eq!((facts.branch.as_deref(), not_known.len()), (Some("side"), 0));
        assert_eq!(facts.root, linked.display().to_string());
        assert_eq!(facts.main, Some(place.work().join(".git").display().to_string()));
        assert_eq!((facts.changed, facts.status[0].path.as_str()), (Some(1), "a"));
    }
    fs::remove_dir_all(place.work().join(".git")).expect("removed");
    for git in gits() {
        let (facts, not_known) = facts(&git, &place, &linked).await;
        let reason = "the file .git names a repository that does not exist";
        assert_eq!((facts, not_known), (None, vec![reason.to_owned()]));
    }
}

#[tokio::test]
async fn a_submodule_is_a_repository_and_its_parent_does_not_look_into_it() {
    let place = Place::new();
    let other = Place::new();
    let from = other.work();
    place.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        from.to_str().expect("UTF-8"),
        "module",
    ]);
    place.commit("With a submodule");
    place.write("module/a", "other\n");
    for git in gits() {
        assert_eq!(all_facts(&git, &place).await.changed, Some(0));
        let (facts, not_known) = facts(&git, &place, &place.work().join("module/sub")).await;
        let facts = facts.expect("a repository");
        assert_eq!((facts.root, facts.changed), (place.work().join("module").display().to_string(), Some(1)));
        assert_eq!((facts.main, not_known.len()), (None, 0));
    }
}

/// Otherwise the facts would tell the names of the files there.
#[tokio::test]
async fn a_work_tree_elsewhere_is_left_alone() {
    let place = Place::new();
    fs::write(place.outside().join("private"), "x").expect("written");
    for elsewhere in ["../..", "/", "../sub", "/no/such/folder"] {
        place.git(&["config", "core.worktree", elsewhere]);
        for git in gits() {
            let (facts, not_known) = facts(&git, &place, &place.work()).await;
            let Some(facts) = facts else {
                assert_eq!(not_known.len(), 1);
                continue;
            };
            assert_eq!((facts.changed, facts.status, facts.head), (None, vec![], Some(place.head())), "{elsewhere}");
            let reason = "the repository names another folder as its work tree, which tasuki leaves alone";
            assert_eq!(not_known, [format!("changed files: {reason}")]);
        }
    }
}

#[tokio::test]
async fn a_path_with_a_line_break_is_said_to_have_one() {
    let place = Place::new();
    let odd = place.work().join("odd\nname");
    fs::create_dir(&odd).expect("a folder");
    place.try_git("git", &odd, &["init", "-q"]);
    for git in gits() {
        let (facts, not_known) = facts(&git, &place, &odd).await;
        assert_eq!((facts, not_known), (None, vec!["the path of the repository has a line break".to_owned()]));
    }
}

#[tokio::test]
async fn a_folder_that_is_reached_by_a_link() {
    let place = Place::new();
    let link = place.outside().join("link");
    symlink(place.work().join("sub"), &link).expect("a link");
    place.write("sub/b", "other\n");
    for git in gits() {
        let (facts, not_known) = facts(&git, &place, &link).await;
        let facts = facts.expect("a repository");
        assert_eq!((facts.root, facts.changed), (place.work().display().to_string(), Some(1)));
        assert_eq!(not_known, [""; 0]);
    }
}

/// Checks the facts, which must be the same in every format: one file changed, one new, one stash, one commit ahead.
async fn assert_known(place: &Place) {
    for git in gits() {
        // An older git does not know the newest formats, and says so.
        let known = place.try_git(&git.program, &place.work(), &["status"]).status.success();
        let (facts, not_known) = facts(&git, place, &place.work()).await;
        if !known {
            assert_eq!((facts, not_known.len()), (None, 1));
            continue;
        }
        assert_eq!(not_known, [""; 0]);
        let RepositoryFacts { changed, stashes, ahead, head_on_remote, head, in_progress, .. } =
            facts.expect("a repository");
        assert_eq!((changed, stashes, ahead, head_on_remote), (Some(2), Some(1), Some(1), Some(false)));
        assert_eq!((head, in_progress.as_deref()), (Some(place.head()), Some("revert")));
        let claims = Claims {
            branches: ["main", "other", "nowhere"].map(str::to_owned).into(),
            paths: ["c", "gone", "never"].map(str::to_owned).into(),
            ..Claims::default()
        };
        let found = git.lookups(&place.work(), &claims).await;
        let [main, other, nowhere] = ["main", "other", "nowhere"].map(|name| found.branches.get(name).copied());
        assert_eq!((main, other, nowhere), (Some(true), Some(true), Some(false)));
        let [there, gone, never] = ["c", "gone", "never"].map(|path| found.paths.get(path).copied());
        let expected = (Some(PathLookup::Exists), Some(PathLookup::InGit), Some(PathLookup::Missing));
        assert_eq!((there, gone, never), expected);
    }
}

/// Fills a repository for [`assert_known`].
fn fill(place: &Place) {
    place.write("a", "one\n");
    place.write("gone", "x\n");
    let first = place.commit("First commit");
    place.git(&["update-ref", "refs/remotes/origin/main", &first]);
    for (name, value) in [
        ("branch.main.remote", "origin"),
        ("branch.main.merge", "refs/heads/main"),
        ("remote.origin.url", "/nowhere"),
        ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
    ] {
        place.git(&["config", name, value]);
    }
    place.git(&["branch", "other"]);
    place.git(&["rm", "-q", "gone"]);
    place.commit("Second commit");
    place.write("a", "stashed\n");
    place.git(&["stash", "-q"]);
    place.git(&["revert", "--no-commit", "HEAD"]);
    place.git(&["rm", "-q", "-f", "gone"]);
    place.write("a", "changed\n");
    place.write("c", "new\n");
}

#[tokio::test]
async fn every_format_of_repositories_is_understood() {
    let place = Place::empty();
    fill(&place);
    assert_known(&place).await;
    place.git(&["pack-refs", "--all"]);
    place.git(&["gc", "-q"]);
    assert_known(&place).await;
    place.git(&["update-index", "--split-index"]);
    assert_known(&place).await;
    place.git(&["update-index", "--no-split-index", "--untracked-cache"]);
    assert_known(&place).await;
    place.git(&["config", "extensions.worktreeConfig", "true"]);
    assert_known(&place).await;
    for options in [&["--object-format=sha256"][..], &["--ref-format=reftable"]] {
        let place = Place::empty();
        fs::remove_dir_all(place.work().join(".git")).expect("removed");
        let output = place.try_git("git", &place.work(), &[&["init", "-q", "-b", "main"][..], options].concat());
        if output.status.success() {
            fill(&place);
            assert_known(&place).await;
        }
    }
}

/// Each work tree has a HEAD of its own, which is not where the branches are.
#[tokio::test]
async fn a_linked_work_tree_with_branches_in_a_table() {
    let place = Place::empty();
    fs::remove_dir_all(place.work().join(".git")).expect("removed");
    let init = ["init", "-q", "-b", "main", "--ref-format=reftable"];
    if !place.try_git("git", &place.work(), &init).status.success() {
        return;
    }
    place.write("a", "one\n");
    place.commit("First commit");
    place.git(&["worktree", "add", "-q", "-b", "side", "linked"]);
    let linked = place.work().join("linked");
    place.try_git("git", &linked, &["commit", "-q", "--allow-empty", "-m", "On the side"]);
    fs::write(linked.join("a"), "other\n").expect("written");
    let (facts, not_known) = facts(&git("git"), &place, &linked).await;
    let facts = facts.expect("a repository");
    assert_eq!((facts.branch.as_deref(), facts.subject.as_deref()), (Some("side"), Some("On the side")));
    assert_eq!((facts.changed, not_known.len()), (Some(1), 0));
}

/// Files that a sparse checkout leaves out do not count as deleted.
#[tokio::test]
async fn a_sparse_checkout() {
    let place = Place::new();
    place.write("out/c", "x\n");
    place.commit("More files");
    for options in [&["set", "--no-sparse-index", "sub"][..], &["set", "--sparse-index", "sub"]] {
        place.git(&[&["sparse-checkout"][..], options].concat());
        place.write("sub/b", "other\n");
        for git in gits() {
            let facts = all_facts(&git, &place).await;
            assert_eq!((facts.changed, facts.status[0].path.as_str()), (Some(1), "sub/b"));
        }
    }
}

#[tokio::test]
async fn a_format_that_tasuki_does_not_know_is_not_guessed_at() {
    let place = Place::new();
    place.git(&["config", "extensions.future", "x"]);
    for git in gits() {
        let (facts, not_known) = facts(&git, &place, &place.work()).await;
        let reason = "the repository's format has the extension future = x, unknown to tasuki";
        assert_eq!((facts, not_known), (None, vec![reason.to_owned()]));
    }
    place.git(&["config", "core.repositoryFormatVersion", "1"]);
    for git in gits() {
        let (facts, not_known) = facts(&git, &place, &place.work()).await;
        assert!(facts.is_none() && not_known[0].starts_with("git ended with code 128: unknown"), "{not_known:?}");
    }
}
