//! The intake while the world changes under its hands: between its look, its opening and its reading; and while it
//! lacks something itself.

use crate::support::home::{TestHome, code, named};
use crate::support::tally;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::stat::Mode;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;
use tasuki::files::{self, Unfit};
use tasuki::spool::{Content, Finished, IncomingFile, Lane};

const WHOLE: &[u8] = b"{\"v\":1}";
/// How often it is looked at while the world changes.
const SWAPS: u32 = 1_000;
/// The same for one file alone.
const READS: u64 = 30_000;

/// Ends what runs beside a test, also where that fails.
struct Ends<'b>(&'b AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Two names change places all the time: a whole file's, and that of something that must not be read.
#[test]
fn what_takes_a_files_place_between_look_and_opening_is_neither_read_nor_waited_for() {
    let home = TestHome::new();
    home.put("precious", b"{\"precious\":true}");
    let (lane, precious) = (home.path("spool/requests"), home.path("precious"));
    let (name, other) = (lane.join("a.json"), lane.join("b.json"));
    let dir = files::open_dir(&lane).expect("a folder");
    for kind in ["a link", "a second name", "a pipe", "a hole"] {
        home.put("spool/requests/a.json", WHOLE);
        match kind {
            "a link" => symlink(&precious, &other).expect("a link"),
            "a second name" => fs::hard_link(&precious, &other).expect("a second name"),
            "a pipe" => nix::unistd::mkfifo(&other, Mode::S_IRWXU).expect("a pipe"),
            _ => fs::File::create(&other).and_then(|file| file.set_len(1 << 40)).expect("a hole"),
        }
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let change = RenameFlags::EXCHANGE;
                    renameat_with(CWD, &name, CWD, &other, change).expect("they change places");
                }
            });
            let _ends = Ends(&over);
            for _ in 0..READS {
                match files::read_at(&dir, OsStr::new("a.json"), 1024) {
                    Ok((bytes, _)) => assert_eq!(bytes, WHOLE, "{kind}"),
                    Err(Unfit::Link | Unfit::NotRegular | Unfit::Linked(_) | Unfit::TooLarge { .. }) => {}
                    // A name's change is one of the file, too.
                    Err(Unfit::Changing) => {}
                    Err(unfit) => panic!("{kind}: {unfit}"),
                }
            }
        });
        for path in [&name, &other] {
            fs::remove_file(path).expect("it is there");
        }
        tally::add(tally::INPUTS, READS);
    }
}

#[test]
fn what_is_no_file_is_not_opened_to_see_that() {
    let mut home = TestHome::new();
    let pipe = home.path("spool/requests/a.json");
    nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).expect("a pipe");
    let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).expect("a watch");
    inotify.add_watch(&pipe, AddWatchFlags::IN_OPEN).expect("a pipe of ours");
    assert_eq!(code(&home.only()), "not_regular");
    assert!(inotify.read_events().is_err(), "it was opened");
}

/// What is decided is what lies there: a file that grows and shrinks while it is read is not taken for what it was a
/// moment ago.
#[test]
fn a_file_that_changes_while_it_is_read_is_never_taken_for_what_it_was() {
    let mut home = TestHome::new();
    home.put("spool/requests/a.json", WHOLE);
    let mut file = fs::File::options().append(true).open(home.path("spool/requests/a.json")).expect("there");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                (0..20).for_each(|_| file.write_all(b" ").expect("it grows"));
                file.set_len(WHOLE.len() as u64).expect("and shrinks");
            }
        });
        let _ends = Ends(&over);
        for _ in 0..4 * SWAPS {
            for found in home.scan(Lane::Requests).found {
                let Content::Whole { bytes, .. } = &found.content else { panic!("{found:?}") };
                assert_eq!(bytes.len() as u64, found.file_stamp.size);
            }
        }
    });
}

#[test]
fn the_reason_lies_there_before_the_file_that_it_is_about() {
    if cfg!(tasuki_portable) {
        return tally::skip("the order of two renames is seen where no rename is a second name and a removal");
    }
    let mut home = TestHome::new();
    home.put("spool/requests/no id.json", WHOLE);
    assert!(home.scan(Lane::Requests).found.is_empty(), "it is given a moment");
    home.pass(3_000);
    let found = home.only();
    let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).expect("a watch");
    inotify.add_watch(&home.path("spool/rejected"), AddWatchFlags::IN_MOVED_TO).expect("a folder of ours");
    let (why, now) = (found.why().expect("it is bad"), home.now);
    home.spool.reject(1, &found, &why, &now).expect("put aside");
    let names: Vec<String> = inotify
        .read_events()
        .expect("two came")
        .into_iter()
        .filter_map(|event| event.name?.into_string().ok())
        .collect();
    assert_eq!(names, ["1-no_id.json.why.json", "1-no_id.json"]);
}

/// No descriptor is left for a while: twice, so long apart that a file which is not fit would be called bad.
#[test]
fn what_we_lack_ourselves_is_blamed_on_no_file() {
    if std::env::var("NEXTEST_EXECUTION_MODE").as_deref() != Ok("process-per-test") {
        return tally::skip("a process without descriptors: other tests run in this one");
    }
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    let next = |home: &mut TestHome, descriptors: u64| {
        let now = home.now;
        setrlimit(Resource::RLIMIT_NOFILE, descriptors, hard).expect("lowered");
        let scan = home.spool.scan(Lane::Requests, 1, 1024, &now);
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard).expect("raised");
        scan
    };
    let take = |home: &mut TestHome, name: &str| {
        let found = next(home, soft).expect("the folder can be read").found;
        assert_eq!(named(&found), [name]);
        assert!(matches!(found[0].content, Content::Whole { .. }), "{found:?}");
        assert_eq!(home.spool.finish(&found[0]).expect("moved"), Finished::Moved);
    };
    let mut home = TestHome::new();
    home.put("spool/requests/b.json", WHOLE);
    for name in ["a1.json", "a2.json"] {
        // Older than the other, whose name is then known already when this one has been taken.
        home.put("spool/tmp/x", WHOLE);
        let older = fs::File::options().write(true).open(home.path("spool/tmp/x")).expect("there");
        older.set_modified(UNIX_EPOCH).expect("older");
        fs::rename(home.path("spool/tmp/x"), home.path("spool/requests").join(name)).expect("moved");
        take(&mut home, name);
        let scan = next(&mut home, 3);
        assert!(scan.is_err(), "{scan:?}");
        home.pass(3_000);
    }
    take(&mut home, "b.json");
    tally::add(tally::FAULTS, 2);
}

/// A scan fails when it has looked at some files of a listing: the next one must not continue behind them.
#[test]
fn a_scan_that_failed_passes_over_no_file() {
    if std::env::var("NEXTEST_EXECUTION_MODE").as_deref() != Ok("process-per-test") {
        return tally::skip("a process without descriptors: other tests run in this one");
    }
    let mut home = TestHome::new();
    for name in ["a.json", "b.json", "c.json"] {
        home.put(format!("spool/requests/{name}"), WHOLE);
    }
    let now = home.now;
    let first = home.spool.scan(Lane::Requests, 1, 1024, &now).expect("the folder can be read").found;
    assert_eq!(named(&first), ["a.json"]);
    assert_eq!(home.spool.finish(&first[0]).expect("moved"), Finished::Moved);
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, 3, hard).expect("lowered");
    let failed = home.spool.scan(Lane::Requests, 1, 1024, &now);
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).expect("raised");
    assert!(failed.is_err(), "{failed:?}");
    let scan = home.spool.scan(Lane::Requests, 10, 1024, &now).expect("the folder can be read");
    assert_eq!(named(&scan.found), ["b.json", "c.json"]);
    assert!(scan.is_listing_done);
    tally::add(tally::FAULTS, 1);
}

/// What has taken the place of a decided file is not moved at all: whoever dies between two moves has lost it.
#[test]
fn a_file_that_has_taken_a_decided_ones_place_is_not_touched() {
    let mut home = TestHome::new();
    let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).expect("a watch");
    inotify.add_watch(&home.path("state/reap"), AddWatchFlags::IN_MOVED_TO).expect("a folder of ours");
    for replace in [true, false] {
        home.put("spool/requests/a.json", WHOLE);
        let found = home.only();
        if replace {
            home.put("spool/tmp/a", WHOLE);
            fs::rename(home.path("spool/tmp/a"), home.path("spool/requests/a.json")).expect("replaced");
        } else {
            home.put("spool/requests/a.json", b"{\"v\":2}");
        }
        assert_eq!(home.spool.finish(&found).expect("looked at"), Finished::Changed);
        assert!(inotify.read_events().is_err(), "it was moved, and moved back");
    }
}

/// Who writes a file in place often changes its mode afterwards: it is the same file, and is not decided again.
#[test]
fn a_decided_file_whose_mode_was_changed_meanwhile_is_moved_away() {
    let mut home = TestHome::new();
    home.put("spool/events/a.json", WHOLE);
    let found = home.scan(Lane::Events).found.pop().expect("one file");
    let path = home.path("spool/events/a.json");
    // The change time counts in steps of some milliseconds.
    let before = fs::metadata(&path).expect("it is there");
    for mode in (0..1_000_000).map(|round| if round % 2 == 0 { 0o640 } else { 0o600 }) {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        if fs::metadata(&path).expect("it is there").ctime_nsec() != before.ctime_nsec() {
            break;
        }
    }
    assert_eq!(home.spool.finish(&found).expect("moved"), Finished::Moved);
    assert!(!path.exists());
}

/// The same in the moment between the look and the move: it comes back, and is found.
#[test]
fn nothing_that_takes_a_decided_files_place_is_lost() {
    let mut home = TestHome::new();
    let (name, scratch) = (home.path("spool/requests/a.json"), home.path("spool/tmp/a"));
    let (go, gone, mut lost) = (Barrier::new(2), AtomicBool::new(false), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                go.wait();
                if gone.load(Ordering::Relaxed) {
                    return;
                }
                fs::rename(&scratch, &name).expect("dropped");
                go.wait();
            }
        });
        for round in 0..SWAPS {
            home.put("spool/requests/a.json", WHOLE);
            let first = home.only();
            let second = format!("{{\"v\":1,\"n\":{round}}}");
            home.put("spool/tmp/a", &second);
            go.wait();
            for _ in 0..round % 50 {
                std::hint::spin_loop();
            }
            home.spool.finish(&first).expect("moved, or left");
            go.wait();
            let found = home.scan(Lane::Requests).found;
            let is_it = |found: &IncomingFile| matches!(&found.content, Content::Whole { bytes, .. } if bytes == second.as_bytes());
            if !found.first().is_some_and(is_it) {
                lost.push(format!("{round}: {found:?}"));
            }
            for found in &found {
                home.spool.finish(found).expect("moved");
            }
            let _ = home.spool.empty_trash(10);
        }
        gone.store(true, Ordering::Relaxed);
        go.wait();
    });
    assert_eq!(lost, [] as [String; 0]);
    tally::add(tally::INPUTS, 2 * u64::from(SWAPS));
}
