//! What a careless user does to the files of a bridge.

use crate::fleet::{TestFleet, text};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::json;
use std::fs;
use std::time::Duration;

/// One request that can't be read kept the bridge from starting, and so this host from all others. A pipe in place of
/// the audit kept it waiting for ever.
#[test]
fn files_that_are_not_what_they_should_be_stop_no_bridge() {
    let Some(fleet) = TestFleet::joined(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["view"]);
    fs::write(a.files("out/cut.json"), "{\"v\":1,").expect("written");
    mkfifo(&a.files("out/pipe.json"), Mode::S_IRWXU).expect("a pipe");
    std::os::unix::fs::symlink("/etc/hostname", a.files("out/link.json")).expect("a link");
    fs::create_dir(a.files("out/folder.json")).expect("made");
    mkfifo(&a.files("audit.jsonl"), Mode::S_IRWXU).expect("a pipe");
    mkfifo(&a.files("seen.json"), Mode::S_IRWXU).expect("a pipe");
    fs::create_dir(a.files("requests/folder.json")).expect("made");
    mkfifo(&a.files("requests/pipe.json"), Mode::S_IRWXU).expect("a pipe");
    [a, b].into_iter().for_each(crate::fleet::TestHost::start_bridge);
    [a, b].into_iter().for_each(crate::fleet::TestHost::until_serving);
    assert_eq!(a.ask("v1", "b", &json!({"kind": "view", "of": "agents"}))["status"], 200);
    let problem = a.bridge_view()["problem"].as_str().unwrap_or_default().to_owned();
    assert!(problem.contains("4 files in fleet/out"), "{problem}");
    a.until("what is no file is put aside", || {
        fs::read_dir(a.files("requests")).is_ok_and(|mut all| all.next().is_none())
    });
}

/// Such files vanished into `rejected/`, or were answered before they were whole.
#[test]
fn a_file_that_is_being_written_is_taken_once_it_is_whole_and_each_id_gets_an_answer() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["view"]);
    let view = json!({"v": 1, "to": "b", "request": {"v": 1, "kind": "view", "of": "agents"}}).to_string();
    // A file system that can't rename without replacing: the file has two names for a moment.
    fs::write(a.files("tmp/linked"), &view).expect("written");
    fs::hard_link(a.files("tmp/linked"), a.files("requests/linked.json")).expect("linked");
    fs::write(a.files("requests/slow.json"), "").expect("written");
    fs::write(a.files("requests/x.json.tmp"), "{").expect("written");
    let large = fs::File::create(a.files("requests/large.json")).expect("made");
    large.set_len(3 << 20).expect("a hole");
    std::thread::sleep(Duration::from_secs(1));
    fs::remove_file(a.files("tmp/linked")).expect("removed");
    fs::write(a.files("requests/slow.json"), &view).expect("written");
    assert_eq!([a.answered("linked"), a.answered("slow")].map(|answer| answer["status"].clone()), [200, 200]);
    let long = text("11111111-1111-4111-8111-111111111111", &"x".repeat(1_500_000));
    for refused in [a.answered("large"), a.ask("long", "b", &long)] {
        assert_eq!((&refused["status"], &refused["error"]["code"]), (&json!(413), &json!("too_large")), "{refused}");
    }
    assert!(a.files("requests/x.json.tmp").exists(), "a temporary name is never read");
}

/// Requests to hosts that may have been admitted a moment ago wait for the list of members. Fifty of them kept all
/// others from being taken, and the bridge busy.
#[test]
fn requests_that_wait_for_the_list_of_members_keep_no_others_waiting() {
    let Some(fleet) = TestFleet::joined(&["a", "b"]) else { return };
    let a = fleet.host("a");
    fleet.server.kill();
    for number in 0..60 {
        a.drop_to(&format!("x{number:02}"), "nobody", &json!({"kind": "view", "of": "agents"}), None);
    }
    a.drop_to("z", "b", &text("11111111-1111-4111-8111-111111111111", "hello"), None);
    a.start_bridge();
    a.until("the last is taken", || a.files("out/z.json").exists());
    // In which order they are taken is the bridge's own affair.
    a.until("all of them are", || a.open() == 61);
    fleet.server.start();
    a.until("the others are answered", || (0..60).all(|number| a.answer(&format!("x{number:02}")).is_some()));
    assert_eq!(a.answered("x00")["error"]["code"], "no_host");
}
