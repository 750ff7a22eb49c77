//! Hints: they come for what arrives, not for what we do ourselves, and a lost watch is noticed at the tick.

use crate::support::home::TestHome;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use tasuki::files::watcher::SEES_GROWTH;
use tasuki::spool::watch::{Checked, Hints, WatchMode};
use tasuki::spool::{ErrorKind, Lane, Spool, SpoolWatch};

const LIMIT: Duration = Duration::from_secs(10);

async fn hinted(hints: &Hints) {
    tokio::time::timeout(LIMIT, hints.next()).await.expect("a hint within ten seconds");
}

/// Waits until hints that are still under way have come.
async fn quiet(hints: &Hints) {
    while tokio::time::timeout(Duration::from_millis(300), hints.next()).await.is_ok() {}
}

fn drop_file(home: &TestHome, lane: &str, name: &str) {
    home.put(format!("spool/tmp/{name}"), b"{\"v\":1}");
    fs::rename(home.path(&format!("spool/tmp/{name}")), home.path(&format!("spool/{lane}/{name}"))).expect("moved");
}

#[tokio::test]
async fn a_file_that_arrives_gives_a_hint_and_taking_it_gives_none() {
    let mut home = TestHome::new();
    let watch = SpoolWatch::new(&home.spool);
    assert_eq!(watch.mode(), WatchMode::Armed);
    let hints = watch.hints();
    quiet(&hints).await;
    drop_file(&home, "requests", "a.json");
    hinted(&hints).await;
    drop_file(&home, "events", "b.json");
    hinted(&hints).await;
    quiet(&hints).await;
    for lane in [Lane::Requests, Lane::Events] {
        for found in home.scan(lane).found {
            home.spool.finish(&found).expect("moved");
        }
    }
    home.put("spool/journal.jsonl", b"{}\n");
    let silence = tokio::time::timeout(Duration::from_millis(300), hints.next()).await;
    // Else a file that goes can't be told from a file that comes, and causes one more look.
    assert!(silence.is_err() || !SEES_GROWTH, "our own work gives no hint");
}

#[tokio::test]
async fn a_file_written_in_place_gives_a_hint_when_it_grows() {
    let home = TestHome::new();
    let watch = SpoolWatch::new(&home.spool);
    let hints = watch.hints();
    quiet(&hints).await;
    home.put("spool/requests/a.json", b"{");
    hinted(&hints).await;
    quiet(&hints).await;
    home.put("spool/requests/a.json", b"{}");
    if SEES_GROWTH {
        hinted(&hints).await;
    }
}

#[tokio::test]
async fn a_lane_that_was_moved_away_and_made_anew_is_opened_anew() {
    let mut home = TestHome::new();
    let mut watch = SpoolWatch::new(&home.spool);
    let hints = watch.hints();
    assert_eq!(watch.check(&mut home.spool).expect("fine"), Checked::Same);
    fs::rename(home.path("spool/requests"), home.path("spool/old")).expect("moved");
    fs::create_dir(home.path("spool/requests")).expect("made");
    fs::set_permissions(home.path("spool/requests"), Permissions::from_mode(0o755)).expect("opened");
    home.put("spool/requests/a.json", b"{}");
    assert_eq!(watch.check(&mut home.spool).expect_err("open to others").kind(), ErrorKind::NotAllowed);
    fs::set_permissions(home.path("spool/requests"), Permissions::from_mode(0o700)).expect("closed");
    assert_eq!(watch.check(&mut home.spool).expect("opened anew"), Checked::Rescan);
    assert_eq!(home.scan(Lane::Requests).found.len(), 1);
    quiet(&hints).await;
    drop_file(&home, "requests", "b.json");
    hinted(&hints).await;
    assert_eq!(home.scan(Lane::Requests).found.len(), 2);
    assert_eq!(watch.check(&mut home.spool).expect("fine"), Checked::Same);
}

#[tokio::test]
async fn a_spool_that_was_removed_is_made_anew() {
    let mut home = TestHome::new();
    let mut watch = SpoolWatch::new(&home.spool);
    fs::remove_dir_all(home.path("spool")).expect("removed");
    assert!(home.scan(Lane::Requests).found.is_empty());
    assert_eq!(watch.check(&mut home.spool).expect("made anew"), Checked::Rescan);
    drop_file(&home, "requests", "a.json");
    assert_eq!(home.scan(Lane::Requests).found.len(), 1);
}

/// A home made anew at the old path would take requests that nobody reads, and the home could not be moved back.
#[tokio::test]
async fn a_home_that_was_moved_away_is_not_made_anew() {
    let mut home = TestHome::new();
    let mut watch = SpoolWatch::new(&home.spool);
    let (path, away) = (home.spool.home().to_owned(), home.spool.home().with_extension("away"));
    fs::rename(&path, &away).expect("moved away");
    let error = watch.check(&mut home.spool).expect_err("it is not there");
    assert!(error.to_string().contains("open again the folder"), "{error}");
    assert!(!path.exists(), "it was made anew");
    fs::rename(&away, &path).expect("moved back");
    watch.check(&mut home.spool).expect("the same folders");
    fs::rename(path.join("state"), path.join("state-away")).expect("moved away");
    fs::remove_dir_all(path.join("spool")).expect("removed");
    watch.check(&mut home.spool).expect_err("without its state folder it is not opened again");
    assert!(!path.join("state").exists(), "it was made anew");
    fs::rename(path.join("state-away"), path.join("state")).expect("moved back");
    watch.check(&mut home.spool).expect("opened again");
    assert!(path.join("spool/requests").is_dir());
}

#[tokio::test]
async fn document_folders_give_hints_while_they_are_watched() {
    let mut home = TestHome::new();
    let mut watch = SpoolWatch::new(&home.spool);
    let hints = watch.hints();
    let folder = home.path("docs");
    fs::create_dir(&folder).expect("made");
    watch.watch_dir(&home.spool, &folder);
    quiet(&hints).await;
    home.put("docs/a.md", b"# It");
    hinted(&hints).await;
    fs::remove_dir_all(&folder).expect("removed");
    fs::create_dir(&folder).expect("made anew");
    assert_eq!(watch.check(&mut home.spool).expect("armed anew"), Checked::Rescan);
    quiet(&hints).await;
    home.put("docs/b.md", b"# It");
    hinted(&hints).await;
    watch.unwatch_dir(&home.spool, &folder);
    quiet(&hints).await;
    home.put("docs/c.md", b"# It");
    assert!(tokio::time::timeout(Duration::from_millis(300), hints.next()).await.is_err());
}

/// As below `/tmp` on macOS.
#[tokio::test]
async fn a_home_below_a_linked_folder_gives_hints() {
    let dir = tempfile::tempdir().expect("a folder");
    let (real, link) = (dir.path().join("real"), dir.path().join("link"));
    fs::create_dir(&real).expect("made");
    fs::set_permissions(&real, Permissions::from_mode(0o700)).expect("closed");
    std::os::unix::fs::symlink(&real, &link).expect("linked");
    let spool = Spool::open(&link.join("home")).expect("a new home");
    let mut watch = SpoolWatch::new(&spool);
    let hints = watch.hints();
    let docs = link.join("docs");
    fs::create_dir(&docs).expect("made");
    watch.watch_dir(&spool, &docs);
    for path in [link.join("home/spool/requests/a.json"), docs.join("a.md")] {
        quiet(&hints).await;
        fs::write(path, "{}").expect("written");
        hinted(&hints).await;
    }
}
