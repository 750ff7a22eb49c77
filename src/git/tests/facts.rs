//! The facts of repositories that mean no harm.

use super::support::{Place, all_facts, facts, git, gits};
use crate::contract::facts::{ChangedFile, RepositoryFacts};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;

fn states(facts: &RepositoryFacts) -> Vec<(&str, &str)> {
    facts.status.iter().map(|ChangedFile { path, state }| (state.as_str(), path.as_str())).collect()
}

#[tokio::test]
async fn a_clean_repository_and_its_commits() {
    let place = Place::new();
    place.commit("Second — commit\n\nMore words");
    for git in gits() {
        let facts = all_facts(&git, &place).await;
        let subjects: Vec<&str> = facts.commits.iter().map(|commit| commit.subject.as_str()).collect();
        assert_eq!(subjects, ["Second — commit", "First commit"]);
        assert_eq!(facts.commits[0].commit, place.head());
        let expected = RepositoryFacts {
            root: place.work().display().to_string(),
            branch: Some("main".to_owned()),
            head: Some(place.head()),
            subject: Some("Second — commit".to_owned()),
            head_on_remote: Some(false),
            changed: Some(0),
            stashes: Some(0),
            commits: facts.commits.clone(),
            ..RepositoryFacts::default()
        };
        assert_eq!(facts, expected);
    }
}

#[tokio::test]
async fn files_that_differ_and_how_much() {
    let place = Place::new();
    place.write("gone", "x\n");
    place.write(".gitignore", "ignored\n");
    place.commit("More files");
    place.write("a", "one\nmore\n");
    place.write("sub/b", "other\n");
    place.git(&["add", "sub/b"]);
    place.write("new/c", "new\n");
    place.write("new/d", "new\n");
    place.write("ignored", "x\n");
    fs::remove_file(place.work().join("gone")).expect("removed");
    for git in gits() {
        for cwd in [place.work(), place.work().join("sub")] {
            let (facts, not_known) = facts(&git, &place, &cwd).await;
            let facts = facts.expect("a repository");
            assert_eq!(states(&facts), [(" M", "a"), (" D", "gone"), ("M ", "sub/b"), ("??", "new/")]);
            assert_eq!((facts.changed, not_known.len()), (Some(4), 0));
            let stat = "3 files changed, 2 insertions(+), 2 deletions(-)";
            assert_eq!(facts.diff_stat.as_deref(), Some(stat));
        }
    }
}

#[tokio::test]
async fn upstream_remote_and_what_was_pushed() {
    let place = Place::new();
    let origin = place.outside().join("origin.git");
    let origin = origin.to_str().expect("UTF-8");
    place.git(&["init", "-q", "--bare", origin]);
    place.git(&["remote", "add", "origin", origin]);
    place.git(&["push", "-q", "-u", "origin", "main"]);
    let pushed = place.head();
    place.commit("Not pushed");
    place.git(&[
        "update-ref",
        "refs/remotes/origin/main",
        &place.git(&["commit-tree", "-p", &pushed, "-m", "x", "HEAD^{tree}"]),
    ]);
    place.git(&["config", "remote.origin.url", "https://kai:hunter2@example.org/a.git?token=hunter2"]);
    for git in gits() {
        let facts = all_facts(&git, &place).await;
        assert_eq!(facts.upstream.as_deref(), Some("origin/main"));
        assert_eq!((facts.ahead, facts.behind, facts.head_on_remote), (Some(1), Some(1), Some(false)));
        assert_eq!(facts.remote.as_deref(), Some("https://example.org/a.git"));
    }
    place.git(&["reset", "-q", "--hard", &pushed]);
    for git in gits() {
        let facts = all_facts(&git, &place).await;
        assert_eq!((facts.ahead, facts.behind, facts.head_on_remote), (Some(0), Some(1), Some(true)));
    }
    place.git(&["update-ref", "-d", "refs/remotes/origin/main"]);
    for git in gits() {
        let facts = all_facts(&git, &place).await;
        assert_eq!(facts.upstream.as_deref(), Some("origin/main"), "the branch there is gone");
        assert_eq!((facts.ahead, facts.behind, facts.head_on_remote), (None, None, Some(false)));
    }
}

#[tokio::test]
async fn a_branch_with_an_odd_name_that_follows_a_local_branch() {
    let place = Place::new();
    place.git(&["checkout", "-q", "-b", "x=\"y;#'z", "--track", "main"]);
    place.commit("On the odd branch");
    place.git(&["pack-refs", "--all"]);
    for git in gits() {
        let facts = all_facts(&git, &place).await;
        assert_eq!(facts.branch.as_deref(), Some("x=\"y;#'z"));
        assert_eq!((facts.upstream.as_deref(), facts.ahead, facts.behind), (Some("main"), Some(1), Some(0)));
    }
}

#[tokio::test]
async fn no_commit_a_detached_head_and_stashes() {
    let place = Place::empty();
    place.write("a", "x\n");
    for git in gits() {
        let facts = all_facts(&git, &place).await;
        assert_eq!((facts.branch.as_deref(), facts.head.as_deref()), (Some("main"), None));
        assert_eq!((facts.changed, facts.head_on_remote, facts.diff_stat), (Some(1), None, None));
    }
    place.commit("First commit");
    place.git(&["checkout", "-q", "--detach"]);
    for text in ["y\n", "z\n"] {
        place.write("a", text);
        place.git(&["stash", "-q"]);
    }
    for git in gits() {
        let facts = all_facts(&git, &place).await;
        assert_eq!((facts.branch.as_deref(), facts.head), (None, Some(place.head())));
        assert_eq!((facts.stashes, facts.changed), (Some(2), Some(0)));
    }
}

#[tokio::test]
async fn what_is_under_way() {
    let place = Place::new();
    place.git(&["checkout", "-q", "-b", "other"]);
    place.write("a", "other\n");
    let other = place.commit("Other");
    place.git(&["checkout", "-q", "main"]);
    place.write("a", "main\n");
    place.commit("Main");
    for (begin, word, end) in [
        (&["merge", "other"][..], "merge", &["merge", "--abort"][..]),
        (&["rebase", "other"], "rebase", &["rebase", "--abort"]),
        (&["cherry-pick", &other], "cherry-pick", &["cherry-pick", "--abort"]),
        (&["revert", "--no-commit", "HEAD"], "revert", &["revert", "--abort"]),
        (&["bisect", "start"], "bisect", &["bisect", "reset"]),
    ] {
        let _ = place.try_git("git", &place.work(), begin);
        for git in gits() {
            let facts = all_facts(&git, &place).await;
            assert_eq!(facts.in_progress.as_deref(), Some(word));
        }
        place.git(end);
    }
    assert_eq!(all_facts(&gits()[0], &place).await.in_progress, None);
}

/// If a cherry-pick of two commits stops between them, git has no file for a current commit, only the list of those
/// left.
#[tokio::test]
async fn commits_that_are_left_to_pick() {
    let place = Place::new();
    let own = place.work().join(".git/sequencer");
    fs::create_dir(&own).expect("a folder");
    // The last one has a letter of two bytes where the part that is read ends.
    let picks = ["pick 123 x\n", "pick 123456789 é\n"].map(|todo| (todo, Some("cherry-pick")));
    for (todo, word) in picks.into_iter().chain([("revert 123 x\n", Some("revert")), ("odd", None)]) {
        fs::write(own.join("todo"), todo).expect("written");
        assert_eq!(all_facts(&gits()[0], &place).await.in_progress.as_deref(), word);
    }
}

#[tokio::test]
async fn only_commits_since_the_registration_are_listed_and_at_most_fifty() {
    let place = Place::new();
    let commit = |date: &str| {
        place.git(&["-c", "user.name=Kai", "commit", "-q", "--allow-empty", "-m", "x", "--date", date]);
    };
    commit("2020-01-01T00:00:00Z");
    for git in gits() {
        let mut not_known = Vec::new();
        let after = git.facts(&place.work(), Some("2999-01-01T00:00:00.500Z"), &mut not_known).await;
        assert_eq!(after.expect("a repository").commits, []);
        let never = git.facts(&place.work(), None, &mut not_known).await;
        assert_eq!(never.expect("a repository").commits, []);
        assert_eq!(not_known, [""; 0]);
        let odd = git.facts(&place.work(), Some("yesterday"), &mut not_known).await;
        assert_eq!(odd.expect("a repository").commits, []);
        assert_eq!(not_known, ["commits since the registration: the time of the registration can't be read"]);
    }
    (0..60).for_each(|_| commit("2020-01-01T00:00:00Z"));
    assert_eq!(all_facts(&gits()[0], &place).await.commits.len(), 50);
}

#[tokio::test]
async fn odd_names_and_long_subjects_become_plain_lines() {
    let place = Place::new();
    let odd = place.work().join(OsStr::from_bytes(b"odd\n\xff\x1b[2J\xe2\x80\xae name"));
    fs::write(odd, "x").expect("written");
    let long = format!("{}\u{1b}]0;x\u{7}{}", "a ".repeat(75), "b ".repeat(100));
    place.git(&["commit", "-q", "--allow-empty", "-m", &long]);
    for git in gits() {
        let facts = all_facts(&git, &place).await;
        assert_eq!(states(&facts), [("??", "odd \u{fffd}[2J name")]);
        let subject = facts.subject.expect("a subject");
        assert_eq!(subject.chars().count(), 201);
        assert!(subject.ends_with("b …") && !subject.contains(char::is_control), "{subject}");
    }
}

/// Git compares line ends and permissions, and ignores files, as the repository's settings say.
#[tokio::test]
async fn harmless_settings_are_taken_over() {
    let place = Place::new();
    place.git(&["config", "core.autocrlf", "true"]);
    place.git(&["config", "core.fileMode", "false"]);
    for name in ["a", "sub/b"] {
        fs::remove_file(place.work().join(name)).expect("removed");
    }
    place.git(&["checkout", "-q", "."]);
    // The same text again, so that git must compare it.
    place.write("a", "one\r\n");
    fs::set_permissions(place.work().join("sub/b"), fs::Permissions::from_mode(0o755)).expect("a mode");
    place.write(".git/info/exclude", "*.log\n");
    place.write("x.log", "x");
    for git in gits() {
        let facts = all_facts(&git, &place).await;
        assert_eq!(states(&facts), []);
    }
    place.git(&["config", "core.autocrlf", "false"]);
    place.git(&["config", "core.fileMode", "true"]);
    for git in gits() {
        let facts = all_facts(&git, &place).await;
        assert_eq!(states(&facts), [(" M", "a"), (" M", "sub/b")]);
    }
}

/// Agent CLIs add their own files to this list.
#[tokio::test]
async fn a_file_in_the_users_own_list_of_ignored_files_does_not_count_as_changed() {
    let place = Place::new();
    place.write("mine", "x");
    place.write("also mine", "x");
    let home = place.outside().join("home");
    fs::create_dir(&home).expect("a folder");
    fs::write(home.join(".gitconfig"), "[core]\nexcludesFile = ~/list\n").expect("written");
    fs::write(home.join("list"), "mine\n").expect("written");
    for own in gits() {
        let home = home.display();
        let script = format!("[ \"$HOME\" = /nonexistent ] || HOME='{home}'\nexec '{}' \"$@\"", own.program);
        let git = git(&place.program("home-git", &script));
        assert_eq!(states(&all_facts(&git, &place).await), [("??", "also mine")]);
    }
}

/// Git reads both files of the user, and the files that these include.
#[tokio::test]
async fn the_list_may_be_named_in_any_file_that_git_reads() {
    let place = Place::new();
    place.write("mine", "x");
    place.write("also mine", "x");
    let home = place.outside().join("home");
    fs::create_dir_all(home.join(".config/git")).expect("a folder");
    fs::write(home.join("list"), "mine\n").expect("written");
    let script = |own: &str| {
        let home = home.display();
        format!("unset XDG_CONFIG_HOME\n[ \"$HOME\" = /nonexistent ] || HOME='{home}'\nexec '{own}' \"$@\"")
    };
    let set = "[core]\nexcludesFile = ~/list\n";
    for (file, first) in [(".config/git/config", "[user]\nname = Kai\n"), ("included", "[include]\npath = included\n")]
    {
        fs::write(home.join(".gitconfig"), first).expect("written");
        fs::write(home.join(file), set).expect("written");
        for own in gits() {
            let git = git(&place.program("home-git", &script(&own.program)));
            assert_eq!(states(&all_facts(&git, &place).await), [("??", "also mine")], "{file}");
        }
        fs::remove_file(home.join(file)).expect("removed");
    }
}
