//! Programs in git's place that hang, print without end, or fail.

use super::support::{Place, facts, git, gits};
use crate::core::check::{Claims, Lookups, PathLookup};
use crate::git::Git;
use crate::git::call::{GitCaller, GitPlace};
use std::path::Path;
use std::time::{Duration, Instant};

/// Waits until no process holds the pipe open. Each script opens it before it does anything else, to read and write, so
/// that nobody must be at its other end; all processes that it starts inherit it.
fn ended(pipe: &Path) -> std::thread::JoinHandle<usize> {
    nix::unistd::mkfifo(pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let pipe = pipe.to_owned();
    std::thread::spawn(move || std::fs::read(pipe).expect("read to its end").len())
}

async fn asked(place: &Place, script: &str, limit_ms: u64) -> (Vec<String>, Duration) {
    let program = place.program("slow-git", script);
    let git = Git { program, limit: Duration::from_millis(limit_ms) };
    let begun = Instant::now();
    let (facts, not_known) = facts(&git, place, &place.work()).await;
    assert_eq!(facts, None);
    (not_known, begun.elapsed())
}

#[tokio::test]
async fn a_git_that_hangs_is_killed_with_its_children() {
    let place = Place::new();
    let pipe = place.outside().join("pipe");
    let ended = ended(&pipe);
    let script = format!("exec 3<>'{}'\nsleep 600 &\n(sleep 600 & sleep 600) &\nwait", pipe.display());
    let (not_known, took) = asked(&place, &script, 300).await;
    assert_eq!(not_known, ["git took longer than 0.3 s"]);
    assert!(took < Duration::from_secs(20), "{took:?}");
    ended.join().expect("all processes have ended");
}

#[tokio::test]
async fn a_git_that_prints_without_end_is_killed() {
    let place = Place::new();
    let pipe = place.outside().join("pipe");
    let ended = ended(&pipe);
    let script = format!("exec 3<>'{}'\nyes | cat", pipe.display());
    let (not_known, _) = asked(&place, &script, 60_000).await;
    assert_eq!(not_known, ["git printed more than 64 KiB"]);
    ended.join().expect("all processes have ended");
}

/// Git would wait for ever if nobody read its standard error.
#[tokio::test]
async fn complaints_without_end_do_not_count_but_take_time() {
    let place = Place::new();
    let (not_known, _) = asked(&place, "yes >&2", 300).await;
    assert_eq!(not_known, ["git took longer than 0.3 s"]);
    let complain = "head -c 300000 /dev/zero >&2; exec git \"$@\"";
    let git = git(&place.program("loud-git", complain));
    let (facts, not_known) = facts(&git, &place, &place.work()).await;
    assert_eq!((facts.is_some(), not_known.len()), (true, 0));
}

/// Each call that hangs takes one limit, and after three of them there is no time left for another one.
#[tokio::test]
async fn all_calls_together_have_a_limit() {
    let place = Place::new();
    let calls = place.outside().join("calls");
    let program = place.program("slow-git", &format!("echo x >>'{}'\nexec sleep 600", calls.display()));
    let caller = GitCaller::new(&Git { program, limit: Duration::from_millis(300) });
    let mut reasons = Vec::new();
    for _ in 0..6 {
        let at = GitPlace { cwd: place.work(), variables: Vec::new() };
        reasons.push(caller.call(&at, &["status"]).await.reason(caller.limit()));
    }
    assert_eq!(reasons[0], "git took longer than 0.3 s");
    assert_eq!(reasons[3..], ["no time was left for git: all calls together may take 0.9 s"; 3]);
    let calls = std::fs::read_to_string(calls).expect("it ran").lines().count();
    assert!(calls <= 3, "{calls} calls");
}

#[tokio::test]
async fn what_is_known_is_kept_if_the_rest_hangs() {
    let place = Place::new();
    // The repository is found at once, and everything after that hangs.
    let script = "[ -z \"$GIT_DIR\" ] && exec git \"$@\"\nexec sleep 600";
    let git = Git { program: place.program("slow-git", script), limit: Duration::from_secs(3) };
    let begun = Instant::now();
    let (facts, not_known) = facts(&git, &place, &place.work()).await;
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    let facts = facts.expect("what is known of it");
    assert_eq!((facts.branch.as_deref(), facts.head), (Some("main"), Some(place.head())));
    let late = |what: &str| format!("{what}: git took longer than 3 s");
    let expected = [
        "changed files",
        "commits ahead of the upstream and behind it",
        "whether HEAD is on a branch of a remote",
        "stashes",
        "commits",
    ];
    assert_eq!(not_known, expected.map(late));
}

#[tokio::test]
async fn a_missing_git_a_failing_git_and_one_with_odd_answers_are_told() {
    let place = Place::new();
    let (facts, not_known) = facts(&git("/no/such/git"), &place, &place.work()).await;
    assert_eq!((facts, not_known), (None, vec!["git is not installed".to_owned()]));
    let text = place.outside().join("text");
    std::fs::write(&text, "no program").expect("written");
    let (facts, not_known) = super::support::facts(&git(text.to_str().expect("UTF-8")), &place, &place.work()).await;
    assert!(facts.is_none() && not_known[0].starts_with("could not start /"), "{not_known:?}");
    for (script, reason) in [
        ("echo 'fatal: a\u{1b}[2J b' >&2; exit 128", "git ended with code 128: a[2J b"),
        ("kill -9 $$", "a signal ended git"),
        ("echo x", "git's answer about the repository can't be understood"),
        ("true", "git's answer about the repository can't be understood"),
    ] {
        let (not_known, _) = asked(&place, script, 60_000).await;
        assert_eq!(not_known, [reason], "{script}");
    }
}

#[tokio::test]
async fn a_long_list_of_changed_files_is_cut_and_counted_as_far_as_it_was_read() {
    let place = Place::new();
    for number in 0..1_000 {
        place.write(&format!("{number:04}-{}", "x".repeat(60)), "");
    }
    for git in gits() {
        let (facts, not_known) = facts(&git, &place, &place.work()).await;
        let facts = facts.expect("a repository");
        let count = facts.changed.expect("a count");
        assert!((900..960).contains(&count), "{count}");
        assert_eq!(facts.status.len(), 200);
        assert_eq!(not_known, [format!("changed files: more than {count}, because git printed more than 64 KiB")]);
    }
}

#[tokio::test]
async fn claims_that_git_does_not_answer_have_no_answer() {
    let place = Place::new();
    place.git(&["branch", "other"]);
    let claims = Claims {
        commits: [place.head()].into(),
        branches: ["other".to_owned()].into(),
        paths: ["a", "missing"].map(str::to_owned).into(),
    };
    let only_disk = Lookups { paths: [("a".to_owned(), PathLookup::Exists)].into(), ..Lookups::default() };
    let hangs = place.program("slow-git", "exec sleep 600");
    let hangs_later = place.program("later-git", "[ -z \"$GIT_DIR\" ] && exec git \"$@\"\nexec sleep 600");
    let nothing = Lookups::default();
    for (program, expected) in [(hangs, &nothing), (hangs_later, &only_disk), ("/no/such/git".to_owned(), &nothing)] {
        let git = Git { program, limit: Duration::from_secs(3) };
        let begun = Instant::now();
        assert_eq!(git.lookups(&place.work(), &claims).await, *expected);
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
