//! What may come in, what waits, what is put aside; and who is let in at all.

use crate::support::home::{TestHome, code, named};
use crate::support::tally;
use nix::sys::stat::Mode;
use proptest::prelude::*;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::time::Duration;
use tasuki::spool::{Content, ErrorKind, Finished, HoldReason, Lane, RejectOutcome, Spool, Why, event_name};

const WHOLE: &[u8] = b"{\"v\":1}";

fn why() -> Why {
    Why {
        code: "bad_request".into(),
        message: "no".into(),
        field: Some("reason".into()),
        line: Some(1),
        column: Some(2),
    }
}

#[test]
fn a_whole_request_is_found_at_once_and_put_away_once() {
    let mut home = TestHome::new();
    home.put("spool/requests/a.json", WHOLE);
    let found = home.only();
    assert_eq!(found.request_id().map(|id| id.to_string()).as_deref(), Some("a"));
    assert!(matches!(&found.content, Content::Whole { bytes, .. } if bytes == WHOLE));
    assert_eq!(home.spool.finish(&found).expect("moved"), Finished::Moved);
    assert_eq!(home.spool.finish(&found).expect("nothing to do"), Finished::Gone);
    let scan = home.scan(Lane::Requests);
    assert!(scan.found.is_empty() && !scan.more && scan.look_again.is_none());
    assert_eq!(home.spool.empty_trash(100), 1);
    assert!(home.names("state/reap").is_empty());
}

#[test]
fn hidden_and_temporary_names_are_never_read() {
    let mut home = TestHome::new();
    for name in [".a.json", "a.tmp", ".tmp"] {
        home.put(format!("spool/requests/{name}"), b"not json");
    }
    for _ in 0..3 {
        let scan = home.scan(Lane::Requests);
        assert!(scan.found.is_empty() && scan.look_again.is_none());
        home.pass(5_000);
    }
    assert_eq!(home.names("spool/requests").len(), 3);
}

#[test]
fn a_half_written_file_waits_until_it_is_whole() {
    let mut home = TestHome::new();
    let path = home.path("spool/requests/a.json");
    let mut file = File::create(&path).expect("created");
    for part in ["{\"v\":1,", "\"kind\":\"ack\"", ",\"x\":[", "]"] {
        file.write_all(part.as_bytes()).expect("written");
        let scan = home.scan(Lane::Requests);
        assert!(scan.found.is_empty());
        assert!(scan.look_again.is_some_and(|wait| wait <= Duration::from_secs(2)));
        home.pass(1_900);
    }
    file.write_all(b"}").expect("written");
    assert_eq!(code(&home.only()), "whole");
}

#[test]
fn a_file_that_stays_incomplete_for_two_seconds_is_bad_and_says_where() {
    let mut home = TestHome::new();
    home.put("spool/requests/a.json", b"{\n \"v\": 1,\n \"kind\"");
    assert!(home.scan(Lane::Requests).found.is_empty());
    home.pass(1_999);
    assert!(home.scan(Lane::Requests).found.is_empty());
    home.pass(1);
    let found = home.only();
    let Content::Bad { code, line, column, bytes, sha256, .. } = &found.content else { panic!("it is bad") };
    assert_eq!((*code, *line), ("incomplete", Some(3)));
    assert!(column.is_some() && bytes.is_some() && sha256.is_some());
}

#[test]
fn file_times_do_not_decide_about_patience() {
    let mut home = TestHome::new();
    home.put("spool/requests/old.json", b"{");
    home.put("spool/requests/future.json", b"{");
    let set = |name: &str, seconds: u64| {
        let file = File::options().write(true).open(home.path(name)).expect("open");
        file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(seconds)).expect("set");
    };
    set("spool/requests/old.json", 1);
    set("spool/requests/future.json", 4_000_000_000);
    assert!(home.scan(Lane::Requests).found.is_empty());
    home.now.wall_ms += 100_000_000;
    assert!(home.scan(Lane::Requests).found.is_empty());
    home.pass(2_000);
    assert_eq!(home.scan(Lane::Requests).found.len(), 2);
}

#[test]
fn hostile_objects_are_named_and_put_aside_whole() {
    let mut home = TestHome::new();
    let precious = home.path("precious");
    fs::write(&precious, WHOLE).expect("written");
    let lane = home.path("spool/requests");
    symlink(&precious, lane.join("link.json")).expect("link");
    symlink("nowhere", lane.join("dangling.json")).expect("link");
    nix::unistd::mkfifo(&lane.join("pipe.json"), Mode::S_IRWXU).expect("pipe");
    fs::create_dir(lane.join("folder.json")).expect("folder");
    let _socket = UnixListener::bind(lane.join("socket.json")).expect("socket");
    let found = home.scan(Lane::Requests).found;
    let mut codes: Vec<_> =
        found.iter().map(|found| (found.name.to_string_lossy().into_owned(), code(found))).collect();
    codes.sort();
    let expected = [
        ("dangling", "link"),
        ("folder", "not_regular"),
        ("link", "link"),
        ("pipe", "not_regular"),
        ("socket", "not_regular"),
    ];
    assert_eq!(codes, expected.map(|(name, code)| (format!("{name}.json"), code)));
    for (seq, found) in found.iter().enumerate() {
        let now = home.now;
        let outcome = home.spool.reject(seq as u64, found, &found.why().expect("bad"), &now).expect("moved");
        assert!(matches!(outcome, RejectOutcome::Moved(_)));
    }
    assert!(home.names("spool/requests").is_empty());
    assert_eq!(home.names("spool/rejected").len(), 10);
    assert_eq!(fs::read(&precious).expect("there"), WHOLE);
}

/// The sidecar judges what it has seen before a listing after a listing with a higher number.
#[test]
fn the_numbers_of_listings_continue_after_the_folders_were_opened_again() {
    let mut home = TestHome::new();
    let before = (0..3).map(|_| home.scan(Lane::Events).listing).max().expect("three");
    home.spool.reopen().expect("opened again");
    assert_eq!(home.scan(Lane::Events).listing, before + 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_is_not_even_opened() {
    let mut home = TestHome::new();
    let path = home.path("spool/requests/null.json");
    let made =
        nix::sys::stat::mknod(&path, nix::sys::stat::SFlag::S_IFCHR, Mode::S_IRWXU, nix::sys::stat::makedev(1, 3));
    if made.is_err() {
        tally::skip("a device among the files needs root");
        return;
    }
    assert_eq!(code(&home.only()), "not_regular");
}

#[test]
fn a_second_name_makes_a_file_wait_and_then_bad() {
    let mut home = TestHome::new();
    home.put("precious", WHOLE);
    fs::hard_link(home.path("precious"), home.path("spool/requests/a.json")).expect("link");
    assert!(home.scan(Lane::Requests).found.is_empty());
    home.pass(2_000);
    assert_eq!(code(&home.only()), "linked");
    fs::remove_file(home.path("precious")).expect("removed");
    assert_eq!(code(&home.only()), "whole");
}

#[test]
fn a_large_or_sparse_file_is_too_large_and_never_read() {
    let mut home = TestHome::new();
    home.put("spool/requests/large.json", vec![b' '; 1024 * 1024 + 1]);
    File::create(home.path("spool/requests/sparse.json")).expect("created").set_len(1 << 40).expect("a hole");
    let mut most = b"{}".to_vec();
    most.resize(1024 * 1024, b' ');
    home.put("spool/requests/most.json", &most);
    assert_eq!(code(&home.only()), "whole");
    home.pass(2_000);
    let found = home.scan(Lane::Requests).found;
    let mut codes: Vec<_> = found.iter().map(code).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["too_large", "too_large", "whole"]);
    let now = home.now;
    let sparse = found.iter().find(|found| found.name == "sparse.json").expect("found");
    assert!(matches!(home.spool.reject(1, sparse, &why(), &now).expect("moved"), RejectOutcome::Moved(_)));
}

#[test]
fn a_foreign_file_is_refused() {
    let mut home = TestHome::new();
    home.put("spool/requests/a.json", WHOLE);
    let other = nix::unistd::Uid::from_raw(nix::unistd::geteuid().as_raw() + 1);
    if nix::unistd::chown(&home.path("spool/requests/a.json"), Some(other), None).is_err() {
        tally::skip("a file of another user needs root");
        return;
    }
    assert_eq!(code(&home.only()), "foreign");
}

#[test]
fn names_that_are_no_ids_are_put_aside_under_safe_names() {
    let mut home = TestHome::new();
    let lane = home.path("spool/requests");
    let long = format!("{}.json", "x".repeat(250));
    let names: [&[u8]; 4] = [b"no-ending", b"bl ank.json", b"\xff\xfe.json", long.as_bytes()];
    for name in names {
        fs::write(lane.join(OsStr::from_bytes(name)), WHOLE).expect("written");
    }
    assert!(home.scan(Lane::Requests).found.is_empty());
    home.pass(2_000);
    let found = home.scan(Lane::Requests).found;
    assert_eq!(found.len(), 4);
    for (seq, found) in found.iter().enumerate() {
        assert_eq!((code(found), found.request_id()), ("bad_name", None));
        let now = home.now;
        home.spool.reject(seq as u64, found, &found.why().expect("bad"), &now).expect("moved");
    }
    for name in home.names("spool/rejected") {
        assert!(name.is_ascii() && !name.contains(' ') && name.len() <= 2 + 100 + ".why.json".len(), "{name}");
    }
}

#[test]
fn a_reason_lies_beside_what_is_rejected() {
    let mut home = TestHome::new();
    home.put("spool/requests/a.json", b"{\"v\":1,\"reason\":\"\"}");
    let found = home.only();
    let now = home.now;
    assert_eq!(home.spool.reject(42, &found, &why(), &now).expect("moved"), RejectOutcome::Moved("42-a.json".into()));
    assert_eq!(home.names("spool/rejected"), ["42-a.json", "42-a.json.why.json"]);
    let text = fs::read(home.path("spool/rejected/42-a.json.why.json")).expect("written");
    let reason: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(reason["at"], "2027-01-15T08:00:00.000Z");
    assert_eq!((&reason["v"], &reason["code"], &reason["field"]), (&1.into(), &"bad_request".into(), &"reason".into()));
    assert_eq!((&reason["name"], &reason["size"]), (&"a.json".into(), &19.into()));
    assert_eq!(reason["sha256"].as_str().map(str::len), Some(64));
}

#[test]
fn a_full_reject_folder_evicts_nothing_and_intake_goes_on_when_there_is_room() {
    let mut home = TestHome::new();
    for number in 0..1_000 {
        home.put(format!("spool/rejected/{number}-old.json"), b"x");
    }
    home.put("spool/requests/bad.json", b"{\"v\":2}");
    let found = home.only();
    let now = home.now;
    assert_eq!(home.spool.reject(2_000, &found, &why(), &now).expect("told"), RejectOutcome::Held(HoldReason::Full));
    home.put("spool/requests/good.json", WHOLE);
    let scan = home.scan(Lane::Requests);
    assert_eq!(named(&scan.found), ["good.json"]);
    assert!(scan.look_again.is_some());
    assert_eq!(home.spool.finish(&scan.found[0]).expect("moved"), Finished::Moved);
    home.pass(6_000);
    assert!(home.scan(Lane::Requests).found.is_empty(), "it is still full");
    fs::remove_file(home.path("spool/rejected/0-old.json")).expect("the operator tidies up");
    home.pass(6_000);
    let found = home.only();
    assert_eq!(
        home.spool.reject(2_001, &found, &why(), &now).expect("moved"),
        RejectOutcome::Moved("2001-bad.json".into())
    );
}

#[test]
fn a_move_that_failed_is_not_called_a_full_folder_and_is_tried_again() {
    let mut home = TestHome::new();
    home.put("spool/rejected/7-bad.json", b"another file has this name");
    home.put("spool/requests/bad.json", b"{\"v\":2}");
    let found = home.only();
    let now = home.now;
    let held = home.spool.reject(7, &found, &why(), &now).expect("told");
    assert_eq!(held, RejectOutcome::Held(HoldReason::NotMoved));
    assert_eq!(home.spool.hold_reason(), Some(HoldReason::NotMoved));
    assert!(home.scan(Lane::Requests).found.is_empty(), "it is held");
    home.pass(5_000);
    let found = home.only();
    assert_eq!(home.spool.hold_reason(), None);
    let moved = home.spool.reject(8, &found, &why(), &now).expect("told");
    assert_eq!(moved, RejectOutcome::Moved("8-bad.json".into()));
}

/// More than one listing takes: they must neither hide what comes after them, nor look like something that may be
/// taken.
#[test]
fn bad_files_that_stay_starve_nobody_however_many_they_are() {
    let mut home = TestHome::new();
    for number in 0..1_000 {
        home.put(format!("spool/rejected/{number}-old.json"), b"x");
    }
    let bad = 101_000;
    for number in 0..bad {
        symlink("nowhere", home.path(&format!("spool/events/{number}.json"))).expect("a link");
    }
    let now = home.now;
    let mut left = 0;
    while left < bad {
        let scan = home.scan(Lane::Events);
        assert!(!scan.found.is_empty(), "{left} of {bad}");
        for found in &scan.found {
            assert_eq!(
                home.spool.reject(2_000, found, &why(), &now).expect("told"),
                RejectOutcome::Held(HoldReason::Full)
            );
        }
        left += scan.found.len();
    }
    for number in 0..20 {
        home.put(format!("spool/events/good-{number}.json"), WHOLE);
    }
    let mut taken = 0;
    for _ in 0..3 {
        let scan = home.scan(Lane::Events);
        for found in &scan.found {
            assert_eq!(home.spool.finish(found).expect("moved"), Finished::Moved);
        }
        taken += scan.found.len();
    }
    let scan = home.scan(Lane::Events);
    assert_eq!((taken, scan.found.len(), scan.more), (20, 0, false));
    assert!(scan.look_again.is_some());
    // One of them is replaced by what may be taken; the rest is looked at now and then.
    home.put("spool/tmp/new", WHOLE);
    fs::rename(home.path("spool/tmp/new"), home.path("spool/events/7.json")).expect("replaced");
    home.pass(6_000);
    assert_eq!(named(&home.scan(Lane::Events).found), ["7.json"]);
}

#[test]
fn a_file_replaced_after_it_was_found_is_decided_anew() {
    let mut home = TestHome::new();
    home.put("spool/requests/a.json", WHOLE);
    let first = home.only();
    home.put("spool/tmp/other", b"{\"v\":1,\"other\":1}");
    fs::rename(home.path("spool/tmp/other"), home.path("spool/requests/a.json")).expect("replaced");
    assert_eq!(home.spool.finish(&first).expect("left"), Finished::Changed);
    let now = home.now;
    assert_eq!(home.spool.reject(1, &first, &why(), &now).expect("left"), RejectOutcome::Gone);
    let second = home.only();
    assert_ne!(first.file_stamp.ino, second.file_stamp.ino);
    let mut file = OpenOptions::new().append(true).open(home.path("spool/requests/a.json")).expect("open");
    file.write_all(b" ").expect("written in place");
    assert_eq!(home.spool.finish(&second).expect("left"), Finished::Changed);
}

#[test]
fn a_file_swapped_under_our_hands_is_never_read_through_a_link() {
    let mut home = TestHome::new();
    home.put("precious", b"{\"precious\":true}");
    let (lane, precious) = (home.path("spool/requests"), home.path("precious"));
    let swapper = std::thread::spawn(move || {
        for _ in 0..2_000 {
            let _ = fs::remove_file(lane.join("a.json"));
            symlink(&precious, lane.join("a.json")).expect("link");
            let _ = fs::remove_file(lane.join("a.json"));
            fs::write(lane.join(".b"), WHOLE).expect("written");
            fs::rename(lane.join(".b"), lane.join("a.json")).expect("moved");
        }
    });
    let mut last = false;
    while !last {
        last = swapper.is_finished();
        for found in home.scan(Lane::Requests).found {
            match &found.content {
                Content::Whole { bytes, .. } => assert_eq!(bytes, WHOLE),
                Content::Bad { code, bytes, .. } => assert_eq!((*code, bytes), ("link", &None)),
            }
        }
    }
    swapper.join().expect("it swapped");
    assert_eq!(code(&home.only()), "whole");
}

#[test]
fn events_come_in_the_order_in_which_hooks_began() {
    let mut home = TestHome::new();
    for (ns, pid) in [(300, 5), (100, 9), (200, 1)] {
        home.put(format!("spool/events/{}", event_name("0123abcd", ns, pid)), WHOLE);
    }
    let found = home.scan(Lane::Events).found;
    let expected: Vec<OsString> =
        [(100, 9), (200, 1), (300, 5)].map(|(ns, pid)| event_name("0123abcd", ns, pid).into()).to_vec();
    assert_eq!(named(&found), expected);
}

#[test]
fn ten_thousand_files_come_in_batches_and_each_once() {
    let mut home = TestHome::new();
    for number in 0..10_000 {
        home.put(format!("spool/requests/{number:05}.json"), format!("{{\"n\":{number}}}"));
    }
    let mut seen = std::collections::BTreeSet::new();
    loop {
        let now = home.now;
        let scan = home.spool.scan(Lane::Requests, 256, 1024 * 1024, &now).expect("read");
        assert!(scan.found.len() <= 256);
        if scan.found.is_empty() && !scan.more {
            break;
        }
        for found in &scan.found {
            assert!(seen.insert(found.name.clone()), "{:?} twice", found.name);
            assert_eq!(home.spool.finish(found).expect("moved"), Finished::Moved);
        }
    }
    assert_eq!(seen.len(), 10_000);
    while home.spool.empty_trash(4_096) > 0 {}
    assert!(home.names("state/reap").is_empty());
}

#[test]
fn a_batch_ends_when_it_holds_enough_bytes() {
    let mut home = TestHome::new();
    for number in 0..5 {
        home.put(format!("spool/requests/{number}.json"), format!("{{\"x\":\"{}\"}}", "y".repeat(1_000)));
    }
    let now = home.now;
    let scan = home.spool.scan(Lane::Requests, 100, 1_500, &now).expect("read");
    assert_eq!((scan.found.len(), scan.more), (2, true));
}

#[test]
fn folders_that_are_open_to_others_are_refused_with_the_fix() {
    let mut home = TestHome::new();
    let root = home.spool.home().to_owned();
    for below in ["spool", "spool/requests", "state"] {
        fs::set_permissions(root.join(below), Permissions::from_mode(0o755)).expect("opened");
        let error = Spool::open(&root).expect_err("open to others");
        assert_eq!(error.kind(), ErrorKind::NotAllowed);
        let text = error.to_string();
        assert!(text.contains(&format!("chmod go-rwx '{}'", root.join(below).display())), "{text}");
        let now = home.now;
        let refused = home.spool.scan(Lane::Requests, 1, 1, &now).expect_err("checked at every intake");
        assert_eq!(refused.kind(), ErrorKind::NotAllowed);
        let mode = fs::metadata(root.join(below)).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o755, "never mended in silence");
        fs::set_permissions(root.join(below), Permissions::from_mode(0o700)).expect("closed");
    }
    home.scan(Lane::Requests);
    let views = root.join("view/agents");
    fs::set_permissions(&views, Permissions::from_mode(0o775)).expect("opened");
    let text = Spool::open(&root).expect_err("others can write to it").to_string();
    assert!(text.contains("can be written by other users (mode 0775)"), "{text}");
    assert!(text.contains(&format!("chmod go-w '{}'", views.display())), "{text}");
}

#[test]
fn a_home_below_a_folder_that_others_can_write_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    let open = dir.path().join("open");
    fs::create_dir(&open).expect("made");
    fs::set_permissions(&open, Permissions::from_mode(0o777)).expect("opened");
    assert_eq!(Spool::open(&open.join("home")).expect_err("refused").kind(), ErrorKind::NotAllowed);
    fs::set_permissions(&open, Permissions::from_mode(0o1777)).expect("sticky");
    Spool::open(&open.join("home")).expect("nobody else can replace what lies in it");
}

#[test]
fn a_spool_that_is_a_link_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("elsewhere")).expect("made");
    symlink(dir.path().join("elsewhere"), dir.path().join("spool")).expect("link");
    assert_eq!(Spool::open(dir.path()).expect_err("refused").kind(), ErrorKind::Layout);
}

#[test]
fn the_folders_are_made_for_us_alone() {
    let home = TestHome::new();
    for below in [
        "",
        "spool",
        "spool/tmp",
        "spool/requests",
        "spool/results",
        "spool/rejected",
        "state",
        "state/reap",
        "view",
        "view/agents",
    ] {
        let mode = fs::metadata(home.path(below)).expect("made").permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{below}");
    }
}

#[test]
fn sweeping_takes_only_what_is_old_by_a_clock_that_stood_so_for_a_while() {
    let mut home = TestHome::new();
    home.put("spool/tmp/left", b"half");
    home.put("spool/results/a.json", b"{}");
    home.put("spool/results/notes.txt", b"somebody's");
    let real = tasuki::clock::Clock::new().now().wall_ms;
    let sweep = |home: &mut TestHome| (0..4).map(|_| home.spool.sweep(100, &{ home.now })).sum::<usize>();
    home.now.wall_ms = real;
    assert_eq!(sweep(&mut home), 0);
    home.now.wall_ms = real + 8 * 24 * 3_600_000;
    assert_eq!(sweep(&mut home), 0, "a clock that jumps takes nothing at once");
    home.pass(11 * 60_000);
    assert_eq!(sweep(&mut home), 0, "nor what it says that it was");
    home.pass(11 * 60_000);
    assert_eq!(sweep(&mut home), 2);
    assert!(home.names("spool/tmp").is_empty());
    assert_eq!(home.names("spool/results"), ["notes.txt"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_bytes_lie_there_the_file_is_decided_within_two_seconds(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut home = TestHome::new();
        home.put("spool/requests/x.json", &bytes);
        let first = home.scan(Lane::Requests);
        if first.found.is_empty() {
            prop_assert!(first.look_again.is_some());
            home.pass(2_000);
            prop_assert_ne!(code(&home.only()), "whole");
        } else {
            prop_assert!(serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&bytes).is_ok());
        }
    }
}
