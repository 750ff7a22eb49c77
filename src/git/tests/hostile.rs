//! Repositories that try to make git run something, fetch something, write something, or hang. Each program that they
//! name writes a line into a file. The first test shows that git without tasuki runs these programs.

use super::support::{Place, facts, git, gits};
use super::trap::{Trap, setting};
use crate::core::check::Claims;
use crate::git::Git;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Otherwise the tests of this file would prove nothing.
#[tokio::test]
async fn git_without_tasuki_runs_the_programs() {
    for Git { program, .. } in gits() {
        let trap = Trap::new();
        let work = trap.place.work();
        let mut ran = BTreeSet::new();
        // Otherwise the `process` filter ends git, and git asks the remote of the partial clone for a missing file.
        let further = ["-c", "filter.second.process=", "-c", "core.splitIndex=false"];
        for arguments in [
            &["status"][..],
            &[&further[..], &["diff"]].concat(),
            &[&further[..], &["-c", "diff.external=", "diff", "--no-ext-diff"]].concat(),
            &[&further[..], &["update-index", "--refresh"]].concat(),
            &["log", "-1"],
            &["fetch"],
        ] {
            trap.touch();
            trap.place.try_git(&program, &work, arguments);
            ran.extend(trap.ran());
        }
        for name in [
            "core.fsmonitor",
            "filter.canary.clean",
            "filter.second.process",
            "diff.external",
            "diff.canary.textconv",
            "gpg.openpgp.program",
            "remote.origin.url",
            "hook",
        ] {
            assert!(ran.contains(name), "{program} did not run {name}, only {ran:?}");
        }
    }
}

#[tokio::test]
async fn no_setting_and_no_attribute_runs_a_program() {
    let trap = Trap::new();
    let facts = trap.assert_nothing_runs(&trap.place.work()).await.expect("a repository");
    assert_eq!((facts.branch.as_deref(), facts.changed), (Some("main"), Some(3)));
    assert_eq!(facts.diff_stat.as_deref(), Some("2 files changed, 2 insertions(+), 2 deletions(-)"));
    assert_eq!(facts.remote.as_deref(), Some("ext::…"));
    trap.assert_nothing_runs(&trap.place.work().join("sub")).await.expect("a repository");
    trap.assert_nothing_runs(&trap.place.work().join(".git")).await.expect("a repository");
}

#[tokio::test]
async fn settings_of_included_files_and_of_one_work_tree_run_nothing() {
    let trap = Trap::new();
    let included = trap.place.outside().join("included");
    let config = trap.place.work().join(".git/config");
    fs::rename(&config, &included).expect("moved");
    let path = included.to_str().expect("UTF-8");
    let settings = [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.worktreeConfig", "true"),
        ("include.path", path),
        ("includeIf.gitdir:**.path", path),
        ("includeIf.onbranch:main.path", path),
    ];
    fs::write(config, settings.map(|(name, value)| setting(name, value)).concat()).expect("written");
    trap.set_all(&trap.place.work().join(".git/config.worktree"));
    trap.touch();
    trap.assert_nothing_runs(&trap.place.work()).await.expect("a repository");
}

/// A folder that looks like a bare repository may be part of what was cloned.
#[tokio::test]
async fn repositories_within_the_repository_run_nothing() {
    let trap = Trap::new();
    let work = trap.place.work();
    for (options, folder, config) in
        [(&["--bare"][..], "inner.git", "inner.git/config"), (&["--no-local"], "nested", "nested/.git/config")]
    {
        clone(&work.join(folder), options);
        trap.set_all(&work.join(config));
    }
    trap.place.write("nested/a", "eno\n");
    for folder in ["inner.git", "inner.git/refs", "nested", "nested/sub", "."] {
        trap.assert_nothing_runs(&work.join(folder)).await.expect("a repository");
    }
}

#[tokio::test]
async fn submodules_and_files_that_name_another_git_directory_run_nothing() {
    let place = Place::new();
    let [module, elsewhere] = [place.work().join("module"), place.outside().join("elsewhere.git")];
    clone(&module, &["--separate-git-dir", elsewhere.to_str().expect("UTF-8")]);
    // An entry of a submodule in the outer repository.
    place.git(&["add", "module"]);
    let trap = Trap::of(place);
    trap.set_all(&elsewhere.join("config"));
    trap.place.write("module/a", "eno\n");
    let facts = trap.assert_nothing_runs(&module).await.expect("a repository");
    assert_eq!((facts.root, facts.changed), (module.display().to_string(), Some(1)));
    let facts = trap.assert_nothing_runs(&trap.place.work()).await.expect("a repository");
    assert!(facts.status.iter().all(|file| file.path != "module"), "{:?}", facts.status);
}

/// Clones a repository that means no harm into this folder.
fn clone(to: &Path, options: &[&str]) {
    let from = Place::new();
    let arguments = [&["clone", "-q"][..], options, &[".", to.to_str().expect("UTF-8")]].concat();
    from.git(&arguments);
}

/// Git would ask the remote for an object that is not there, and run the programs of its transport.
#[tokio::test]
async fn a_missing_object_is_not_fetched() {
    for (url, missing) in [
        ("ext::CANARY", "HEAD"),
        ("ext::CANARY", "HEAD^{tree}"),
        ("ext::CANARY", "HEAD:a"),
        ("/no/such/repository", "HEAD^{tree}"),
        ("ssh://example.org/x", "HEAD^{tree}"),
        ("helper::x", "HEAD:sub/b"),
        ("https://127.0.0.1:1/x", "HEAD:a"),
    ] {
        let trap = Trap::new();
        let hash = trap.place.git(&["-c", "core.fsmonitor=false", "rev-parse", missing]);
        let config = trap.place.work().join(".git/config");
        let text = fs::read_to_string(&config).expect("a configuration");
        let [old, new] = ["remote.origin.url", "ext"].map(|name| trap.canary(name));
        let text = text.replace(&format!("ext::{old}"), &url.replace("CANARY", &new));
        fs::write(config, text).expect("written");
        let file = trap.place.work().join(".git/objects").join(&hash[..2]).join(&hash[2..]);
        fs::remove_file(file).expect("removed");
        fs::remove_file(trap.place.work().join(".git/index")).expect("removed");
        if url.starts_with("ext") {
            let _ = fs::remove_file(&trap.ran);
            trap.place.try_git("git", &trap.place.work(), &["-c", "core.fsmonitor=false", "cat-file", "-p", &hash]);
            assert_eq!(trap.ran(), ["ext".to_owned()].into(), "without tasuki it is fetched");
        }
        let facts = trap.assert_nothing_runs(&trap.place.work()).await;
        assert!(facts.is_some(), "{url} {missing}");
    }
}

/// Variables that the user has set, or with which tasuki was started, are meant for other programs.
#[tokio::test]
async fn git_gets_no_variable_that_is_not_ours() {
    let place = Place::new();
    let seen = place.outside().join("seen");
    let script = format!("env >>'{}'\nexec git \"$@\"", seen.display());
    let (facts, not_known) = facts(&git(&place.program("seeing-git", &script)), &place, &place.work()).await;
    assert!(facts.is_some() && not_known.is_empty());
    // Only one call gets the user's real home: it asks for a setting of the user, and not in the repository.
    let text = fs::read_to_string(seen).expect("it ran");
    let homes = text.lines().filter(|line| line.starts_with("HOME="));
    let (nowhere, real): (Vec<&str>, Vec<&str>) = homes.partition(|home| *home == "HOME=/nonexistent");
    assert!(nowhere.len() > 5 && real.len() <= 1, "{real:?}");
    let names: BTreeSet<&str> = text.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    let shell = ["PWD", "OLDPWD", "SHLVL", "_"];
    let own = ["PATH", "HOME", "XDG_CONFIG_HOME", "LC_ALL", "SSH_ASKPASS"];
    let odd: Vec<_> =
        names.iter().filter(|name| !name.starts_with("GIT_") && !shell.contains(name) && !own.contains(name)).collect();
    assert!(odd.is_empty(), "{odd:?}");
    for line in ["HOME=/nonexistent", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0"] {
        assert!(text.lines().any(|it| it == line), "{line}");
    }
}

/// Git waits for a pipe that nobody writes into. tasuki itself waits for no pipe.
#[tokio::test]
async fn pipes_in_the_place_of_files_are_waited_for_no_longer_than_the_limit() {
    let paths = [
        ".git/HEAD",
        ".git/config",
        ".git/index",
        ".git/packed-refs",
        ".git/info/exclude",
        ".git/info/attributes",
        ".git/objects/info/alternates",
        ".git/refs/heads/main",
        ".git/sequencer/todo",
        ".git/sharedindex.0123456789012345678901234567890123456789",
        ".gitattributes",
        ".gitignore",
        "a",
    ];
    for path in paths {
        let place = Place::new();
        place.write("sub/b", "changed\n");
        let path = place.work().join(path);
        let _ = fs::remove_file(&path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        for git in gits() {
            let git = Git { limit: Duration::from_millis(100), ..git };
            let begun = Instant::now();
            let mut not_known = Vec::new();
            git.facts(&place.work(), Some("2000-01-01T00:00:00Z"), &mut not_known).await;
            let claims = Claims { commits: ["0123456".to_owned()].into(), ..Claims::default() };
            git.lookups(&place.work(), &claims).await;
            assert!(begun.elapsed() < Duration::from_secs(10), "{path:?}: {:?}", begun.elapsed());
        }
    }
}

#[tokio::test]
async fn a_configuration_that_can_t_be_read_is_told_in_one_plain_line() {
    let place = Place::new();
    for text in
        ["[core\n", "\0", "[core]\n\u{1b}[2J = x\n", &"[a]\n".repeat(100_000), "[include]\npath = /etc/shadow\n"]
    {
        fs::write(place.work().join(".git/config"), text).expect("written");
        for git in gits() {
            let (_, not_known) = facts(&git, &place, &place.work()).await;
            let plain = not_known.iter().all(|line| !line.contains(char::is_control) && line.chars().count() < 300);
            assert!(plain, "{not_known:?}");
        }
    }
}
