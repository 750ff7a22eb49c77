//! Answers to the claims of documents.

use super::support::{Place, gits};
use crate::core::check::{Claims, CommitLookup, Lookups, PathLookup};
use crate::git::Git;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

async fn commits(git: &Git, place: &Place, claims: &[&str]) -> BTreeMap<String, CommitLookup> {
    let claims = claims.iter().map(|claim| (*claim).to_owned()).collect();
    let claims = Claims { commits: claims, ..Claims::default() };
    git.lookups(&place.work(), &claims).await.commits
}

async fn branches(git: &Git, place: &Place, claims: &[&str]) -> BTreeMap<String, bool> {
    let claims = claims.iter().map(|claim| (*claim).to_owned()).collect();
    let claims = Claims { branches: claims, ..Claims::default() };
    git.lookups(&place.work(), &claims).await.branches
}

async fn paths(git: &Git, cwd: &Path, claims: &[&str]) -> BTreeMap<String, PathLookup> {
    let claims = claims.iter().map(|claim| (*claim).to_owned()).collect();
    let claims = Claims { paths: claims, ..Claims::default() };
    git.lookups(cwd, &claims).await.paths
}

fn known(hash: &str, on_remote: bool, differs_from_head: bool) -> CommitLookup {
    CommitLookup::Known { hash: hash.to_owned(), on_remote, differs_from_head }
}

#[tokio::test]
async fn git_is_not_asked_if_there_are_no_claims() {
    let git = Git { program: "/no/such/git".to_owned(), limit: std::time::Duration::from_secs(1) };
    assert_eq!(git.lookups(Path::new("/"), &Claims::default()).await, Lookups::default());
}

#[tokio::test]
async fn commits_are_known_pushed_and_different_or_not() {
    let place = Place::new();
    let first = place.head();
    place.git(&["update-ref", "refs/remotes/origin/main", &first]);
    place.write("a", "changed\n");
    let second = place.commit("Second");
    let third = place.commit("The same files");
    // The name of a branch may look like a hash, but does not count as a hash.
    place.git(&["branch", "deadbeef", &first]);
    place.git(&["branch", "-f", "0123456789012345678901234567890123456789", &first]);
    let upper = first[..12].to_uppercase();
    let none = "0123456789012345678901234567890123456789";
    for git in gits() {
        let found = commits(&git, &place, &[&first[..7], &upper, &second, &third, "deadbeef", none]).await;
        let expected = [
            (first[..7].to_owned(), known(&first, true, true)),
            (upper.clone(), known(&first, true, true)),
            (second.clone(), known(&second, false, false)),
            (third.clone(), known(&third, false, false)),
            ("deadbeef".to_owned(), CommitLookup::Missing),
            (none.to_owned(), CommitLookup::Missing),
        ];
        assert_eq!(found, expected.into());
    }
}

#[tokio::test]
async fn only_hashes_are_asked_for() {
    let place = Place::new();
    // No commit of this repository has a hash of this length: it is another thing, or of another repository.
    let (longer, long) = ("a".repeat(64), "a".repeat(65));
    let odd =
        [&longer, "HEAD", "main", "--all", "-1", "abc", "", "deadbeef^{tree}", "@{1}", "dead beef", "ａｂｃｄ", &long];
    for git in gits() {
        assert_eq!(commits(&git, &place, &odd).await, BTreeMap::new());
    }
}

#[tokio::test]
async fn other_objects_than_commits_and_hashes_that_fit_several() {
    let place = Place::new();
    let blob = place.git(&["rev-parse", "HEAD:a"]);
    place.git(&["tag", "-a", "-m", "x", "v1"]);
    let tag = place.git(&["rev-parse", "v1"]);
    // Two commits whose hashes begin with the same four digits.
    let tree = place.git(&["rev-parse", "HEAD^{tree}"]);
    let [one, other] = ["32", "57"].map(|message| {
        let who = "Kai <kai@example.org> 0 +0000";
        let text = format!("tree {tree}\nauthor {who}\ncommitter {who}\n\n{message}\n");
        let file = place.outside().join("commit");
        fs::write(&file, text).expect("written");
        place.git(&["hash-object", "-t", "commit", "-w", file.to_str().expect("UTF-8")])
    });
    let twice = one[..4].to_owned();
    assert!(other.starts_with(&twice) && one != other, "{one} {other}");
    for git in gits() {
        let found = commits(&git, &place, &[&blob, &tag, &twice]).await;
        assert_eq!(found, [(blob.clone(), CommitLookup::Missing)].into(), "{twice}");
    }
}

#[tokio::test]
async fn branches_are_local_or_of_a_remote() {
    let place = Place::new();
    place.git(&["branch", "feat/one"]);
    place.git(&["update-ref", "refs/remotes/origin/far", "HEAD"]);
    place.git(&["update-ref", "refs/remotes/origin/deep/far", "HEAD"]);
    place.git(&["tag", "v1"]);
    let claims = ["main", "feat/one", "far", "origin/far", "deep/far", "feat", "deep", "v1", "nowhere", "fe*", "m?in"];
    let odd = ["", "-x", "a b", "../main", "heads/main", "/main", "main/", "\u{1b}[2J"];
    let long = "x/".repeat(150) + "y";
    for git in gits() {
        assert_eq!(branches(&git, &place, &[&long]).await, BTreeMap::new(), "too long to be looked up");
        let found = branches(&git, &place, &[&claims[..], &odd].concat()).await;
        let exist: Vec<&str> = found.iter().filter(|(_, exists)| **exists).map(|(name, _)| name.as_str()).collect();
        assert_eq!(exist, ["deep/far", "far", "feat/one", "main", "origin/far"]);
        assert_eq!(found.len(), claims.len() + odd.len());
    }
}

#[tokio::test]
async fn the_name_of_a_remote_may_have_a_slash() {
    let place = Place::new();
    place.git(&["remote", "add", "team/origin", "/nowhere"]);
    place.git(&["update-ref", "refs/remotes/team/origin/feat/far", "HEAD"]);
    place.git(&["update-ref", "refs/remotes/gone/near", "HEAD"]);
    for git in gits() {
        let found = branches(&git, &place, &["feat/far", "team/origin/feat/far", "far", "near"]).await;
        let exist: Vec<&str> = found.iter().filter(|(_, exists)| **exists).map(|(name, _)| name.as_str()).collect();
        assert_eq!((exist, found.len()), (vec!["feat/far", "near", "team/origin/feat/far"], 4));
    }
}

#[tokio::test]
async fn a_branch_without_a_commit_exists() {
    let place = Place::empty();
    for git in gits() {
        let expected = [("main".to_owned(), true), ("other".to_owned(), false)];
        assert_eq!(branches(&git, &place, &["main", "other"]).await, expected.into());
    }
}

#[tokio::test]
async fn paths_are_on_disk_in_head_in_an_earlier_commit_or_nowhere() {
    let place = Place::new();
    place.write("sub/old/c", "x\n");
    place.write("sub/[x]*", "x\n");
    place.commit("More files");
    place.git(&["rm", "-q", "-r", "sub/old", "sub/[x]*"]);
    place.commit("Fewer files");
    // A file that was added and removed on a branch before the branch was merged.
    place.git(&["checkout", "-q", "-b", "side"]);
    place.write("sub/came", "x\n");
    place.commit("Came");
    place.git(&["rm", "-q", "sub/came"]);
    place.commit("Went");
    place.git(&["checkout", "-q", "main"]);
    place.write("sub/other", "x\n");
    place.commit("Other");
    place.git(&["merge", "-q", "--no-edit", "side"]);
    // A file on a branch that is not merged.
    place.git(&["checkout", "-q", "-b", "far"]);
    place.write("sub/far", "x\n");
    place.commit("Far");
    place.git(&["checkout", "-q", "main"]);
    fs::remove_file(place.work().join("sub/b")).expect("removed");
    // The last two are the ends of paths of other files.
    let in_git = ["b", "old", "old/c", "./old//c", "came", "far", "[x]*", "c", "sub/b"];
    let missing = ["old/d", "x", "*", "other/x", ":(top)a", "-x", "top/sub/b"];
    for git in gits() {
        let cwd = place.work().join("sub");
        let found = paths(&git, &cwd, &[&["a", "other"][..], &in_git, &missing].concat()).await;
        let of = |wanted: PathLookup| -> Vec<&str> {
            found.iter().filter(|(_, answer)| **answer == wanted).map(|(path, _)| path.as_str()).collect()
        };
        let sorted = |mut names: Vec<&'static str>| {
            names.sort_unstable();
            names
        };
        assert_eq!(of(PathLookup::Exists), ["a", "other"]);
        assert_eq!(of(PathLookup::InGit), sorted(in_git.to_vec()));
        assert_eq!(of(PathLookup::Missing), sorted(missing.to_vec()));
    }
}

#[tokio::test]
async fn a_file_that_only_a_merge_has_added() {
    let place = Place::new();
    place.git(&["checkout", "-q", "-b", "side"]);
    place.commit("On the side");
    place.git(&["checkout", "-q", "main"]);
    place.commit("On main");
    place.git(&["merge", "-q", "--no-ff", "--no-commit", "side"]);
    place.write("sub/merged", "x\n");
    place.commit("Merge");
    place.git(&["rm", "-q", "sub/merged"]);
    place.commit("Gone");
    for git in gits() {
        let found = paths(&git, &place.work(), &["sub/merged", "sub/never"]).await;
        let expected = [("sub/merged".to_owned(), PathLookup::InGit), ("sub/never".to_owned(), PathLookup::Missing)];
        assert_eq!(found, expected.into());
    }
}

/// Documents shorten paths.
#[tokio::test]
async fn the_end_of_a_path_counts_as_the_file() {
    let place = Place::new();
    place.write("src/core/handoff/driver.rs", "x\n");
    place.write("src/core/gone/driver.rs", "x\n");
    place.write("src/[a]/b*.rs", "x\n");
    place.write(".gitignore", "*.log\n");
    place.commit("More files");
    place.git(&["rm", "-q", "-r", "src/core/gone"]);
    place.commit("Fewer files");
    place.write("src/core/new.rs", "not in git yet\n");
    place.write("src/core/run/x.log", "never in git\n");
    place.git(&["add", "-N", "src/core/new.rs"]);
    let in_git =
        ["handoff/driver.rs", "gone/driver.rs", "core/new.rs", "run/x.log", "[a]/b*.rs", "core/handoff/driver.rs"];
    let missing =
        ["off/driver.rs", "core/driver.rs", "[a]/bc.rs", "?a]/b*.rs", "**/driver.rs", "handoff/driver", "core"];
    for git in gits() {
        for cwd in [place.work(), place.work().join("sub")] {
            // Asked for apart: a name with `?` would find the one with brackets if it were a pattern.
            let found = paths(&git, &cwd, &in_git).await;
            for path in in_git {
                assert_eq!(found.get(path), Some(&PathLookup::InGit), "{path} from {cwd:?}");
            }
            let found = paths(&git, &cwd, &missing).await;
            for path in missing {
                assert_eq!(found.get(path), Some(&PathLookup::Missing), "{path} from {cwd:?}");
            }
        }
    }
}

/// Git and tasuki's own facts name files from the top.
#[tokio::test]
async fn a_path_may_begin_at_the_top_of_the_repository() {
    let place = Place::new();
    place.write("src/main.rs", "x\n");
    place.write("docs/gone.md", "x\n");
    place.commit("More files");
    place.git(&["rm", "-q", "docs/gone.md"]);
    place.commit("Fewer files");
    place.write("docs/new.md", "not in git yet\n");
    place.write("inner/src/deep.rs", "in a repository that this one does not know\n");
    place.try_git("git", &place.work().join("inner"), &["init", "-q"]);
    symlink("/", place.work().join("root")).expect("a link");
    place.write("src/only/c", "x\n");
    for git in gits() {
        let there = ["src/main.rs", "docs/new.md", "inner/src/deep.rs", "sub/b", "b", "a"];
        let claims = [&there[..], &["docs/gone.md", "docs/never.md", "root/etc/passwd", "src"]].concat();
        let found = paths(&git, &place.work().join("sub"), &claims).await;
        for path in there.into_iter().chain(["src"]) {
            assert_eq!(found.get(path), Some(&PathLookup::Exists), "{path}");
        }
        assert_eq!(found.get("docs/gone.md"), Some(&PathLookup::InGit));
        assert_eq!(found.get("docs/never.md"), Some(&PathLookup::Missing));
        assert_eq!(found.get("root/etc/passwd"), None, "it leads out of the repository");
    }
}

#[tokio::test]
async fn a_path_may_begin_with_the_name_of_the_top_folder() {
    let place = Place::new();
    place.write("src/main.rs", "x\n");
    place.commit("More files");
    let name = place.work().file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    let (there, missing) = (format!("{name}/src/main.rs"), format!("{name}/src/other.rs"));
    for git in gits() {
        let found = paths(&git, &place.work(), &[&there, &missing]).await;
        assert_eq!(found, [(there.clone(), PathLookup::Exists), (missing.clone(), PathLookup::Missing)].into());
    }
}

/// Each machine has such files of its own, or a build makes them.
#[tokio::test]
async fn nothing_is_said_of_a_file_that_git_would_ignore() {
    let place = Place::new();
    place.write(".gitignore", "secrets.*\n/out/\n");
    place.write("sub/.gitignore", "*.tmp.ts\n");
    place.commit("Rules");
    symlink("sub", place.work().join("link")).expect("a link");
    // Git does not say whether it ignores a path beyond a link.
    let beyond = ["link/y.tmp.ts", "link/x.ts"];
    let claims = [&["sub/secrets.h", "out/a.js", "sub/ü.tmp.ts", "sub/out/a.js", "sub/x.ts"][..], &beyond].concat();
    let own = place.work().file_name().and_then(|name| name.to_str()).map(|name| format!("{name}/out/a.js"));
    for git in gits() {
        // The paths begin at the top of the work tree, or with its name, although the agent works in a folder of it.
        let from_top = paths(&git, &place.work().join("sub"), &["out/a.js", own.as_deref().expect("a name")]).await;
        assert_eq!(from_top, [].into());
        let found = paths(&git, &place.work(), &claims).await;
        let missing = ["sub/out/a.js", "sub/x.ts"].map(|path| (path.to_owned(), PathLookup::Missing));
        assert_eq!(found, missing.into());
    }
}

#[tokio::test]
async fn no_path_leads_out_of_the_working_directory() {
    let place = Place::new();
    symlink("/", place.work().join("root")).expect("a link");
    symlink("sub", place.work().join("link")).expect("a link");
    symlink("/no/such/file", place.work().join("dangling")).expect("a link");
    let long = "x/".repeat(3_000);
    let outside = ["/etc/passwd", "../work/a", "sub/../../x", "root/etc/passwd", "root/etc", "a\0b", ".", "", &long];
    for git in gits() {
        let found =
            paths(&git, &place.work(), &[&["link/b", "dangling", "root", "link/x"][..], &outside].concat()).await;
        let expected = [
            ("link/b".to_owned(), PathLookup::Exists),
            ("dangling".to_owned(), PathLookup::Exists),
            ("root".to_owned(), PathLookup::Exists),
        ];
        assert_eq!(found, expected.into());
    }
}

/// A submodule is a repository of its own, with a history of its own.
#[tokio::test]
async fn what_is_in_a_submodule_is_not_known() {
    let place = Place::new();
    place.write("mods/a", "x\n");
    place.write("src/c", "x\n");
    place.commit("A folder");
    let entry = format!("160000,{},mods/module", place.head());
    place.git(&["update-index", "--add", "--cacheinfo", &entry]);
    place.git(&["commit", "-q", "-m", "A submodule"]);
    for git in gits() {
        for (cwd, names) in [
            (place.work(), ["mods/module/a", "mods/module/in/b", "mods/b"]),
            (place.work().join("mods"), ["module/a", "module/in/b", "b/c"]),
            (place.work().join("src"), ["mods/module/a", "mods/module/in/b", "mods/b"]),
            (place.work(), ["module/a", "module/in/b", "in/module"]),
        ] {
            let found = paths(&git, &cwd, &names).await;
            assert_eq!(found, [(names[2].to_owned(), PathLookup::Missing)].into(), "{cwd:?}");
        }
    }
    // It is removed, but that is not committed: HEAD still has the submodule.
    place.git(&["update-index", "--force-remove", "mods/module"]);
    for git in gits() {
        let names = ["mods/module/a", "mods/module/in/b", "mods/b"];
        let found = paths(&git, &place.work(), &names).await;
        assert_eq!(found, [(names[2].to_owned(), PathLookup::Missing)].into());
    }
}

/// Nobody knows which commits and files its history would have beyond its end.
#[tokio::test]
async fn a_shallow_repository_denies_nothing() {
    let place = Place::new();
    let first = place.head();
    place.git(&["rm", "-q", "sub/b"]);
    let second = place.commit("Second");
    let from = format!("file://{}", place.work().display());
    place.git(&["clone", "-q", "--depth", "1", &from, "shallow"]);
    let shallow = place.work().join("shallow");
    let claims = Claims {
        commits: [first, second.clone()].into(),
        branches: ["main", "nowhere"].map(str::to_owned).into(),
        paths: ["a", "sub/b"].map(str::to_owned).into(),
    };
    for git in gits() {
        let expected = Lookups {
            commits: [(second.clone(), known(&second, true, false))].into(),
            branches: [("main".to_owned(), true), ("nowhere".to_owned(), false)].into(),
            paths: [("a".to_owned(), PathLookup::Exists)].into(),
        };
        assert_eq!(git.lookups(&shallow, &claims).await, expected);
    }
}
