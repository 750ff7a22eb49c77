//! Which files from `fleet/requests` are refused, and what is kept of them.

use super::super::folder::of_test;
use super::*;
use crate::bridge::identity::HostFile;
use crate::fleet::letter::MOST_PARTS;
use crate::fleet::{HostKeys, Member};
use serde_json::{Value, json};

/// A fleet with the host `b`, seen from the host `a`.
struct Sender {
    dir: tempfile::TempDir,
    folder: FleetFolder,
    members: MemberList,
    incomplete: IncompleteFiles,
    has_room: bool,
    now: Now,
}

impl Sender {
    fn new() -> Sender {
        let (dir, _, folder) = of_test();
        let (host, keys) = (HostFile::new("b".parse().expect("a name")), HostKeys::generate());
        let b = Member {
            name: host.name,
            home_id: host.home_id,
            user_key: keys.user_key(),
            box_key: keys.box_key(),
            admitted_at: "2026-11-25T12:00:00.000Z".to_owned(),
        };
        let members = MemberList::new("home".parse().expect("a name"), 1, vec![b]);
        let now = Now { wall_ms: 1_800_000_000_000, boot: 1, boot_ms: 0 };
        Sender { dir, folder, members, incomplete: IncompleteFiles::default(), has_room: true, now }
    }

    /// Drops a file and has it taken. Returns what its answer says; null if there is none.
    fn drop(&mut self, name: &str, bytes: &[u8]) -> Value {
        self.folder.write("requests", name, bytes, Grade::Fast).expect("written");
        let own = "a".parse().expect("a name");
        for _ in 0..2 {
            let settings = FleetSettings::default();
            let known = (&self.members, &own, &settings);
            let may = (self.has_room, true);
            take(&self.folder, name, known, may, (&mut self.incomplete, &self.now)).expect("it can be taken");
            self.now.boot_ms += 2_000;
        }
        assert!(!self.folder.path("requests", name).exists(), "{name} is still there");
        let answer = self.folder.read("results", name).expect("readable");
        answer.map_or(Value::Null, |bytes| serde_json::from_slice(&bytes).expect("JSON"))
    }

    fn ask(&mut self, name: &str, file: &Value) -> Value {
        self.drop(name, file.to_string().as_bytes())
    }

    /// The reason of the only file in `rejected/`, which is removed with its file; null if there is none.
    fn why(&self, name: &str) -> Value {
        let aside = format!("{}-{name}", self.now.wall_ms);
        let names = [aside.clone(), format!("{aside}.why.json")];
        let all = self.folder.names("rejected").expect("listed");
        let Some(why) = self.folder.read("rejected", &names[1]).expect("readable") else {
            assert!(all.is_empty(), "{all:?}");
            return Value::Null;
        };
        assert_eq!(all, names);
        names.iter().for_each(|name| self.folder.remove("rejected", name).expect("removed"));
        serde_json::from_slice(&why).expect("JSON")
    }
}

fn view() -> Value {
    json!({"v": 1, "to": "b", "request": {"v": 1, "kind": "view", "of": "agents"}})
}

fn with(key: &str, value: Value) -> Value {
    let mut file = view();
    file[key] = value;
    file
}

/// Refused objects were answered and deleted, and no reason could be read by `tasuki schema why`.
#[test]
fn what_is_refused_is_kept_with_its_reason_and_what_may_be_taken_later_is_not() {
    let mut a = Sender::new();
    let publish = json!({"v": 1, "kind": "publish", "handoff_id": "x"});
    for (id, file, code, field) in [
        ("v", with("v", json!(2)), "bad_request", json!("v")),
        ("more", with("more", json!(1)), "bad_request", Value::Null),
        ("host", with("to", json!("nowhere")), "no_host", json!("to")),
        ("own", with("to", json!("a")), "bad_request", json!("to")),
        ("ttl", with("ttl", json!("long")), "bad_request", json!("ttl")),
        ("kind", with("request", publish), "not_from_elsewhere", json!("request")),
    ] {
        let name = format!("{id}.json");
        let answer = a.ask(&name, &file);
        assert_eq!((&answer["error"]["code"], &answer["error"]["field"]), (&json!(code), &field), "{answer}");
        let why = a.why(&name);
        let said = [&why["code"], &why["field"], &why["name"], &why["size"]].map(Value::clone);
        assert_eq!(said, [json!(code), field, json!(name), json!(file.to_string().len())]);
        assert_eq!(
            (&why["message"], &why["sha256"]),
            (&answer["error"]["message"], &json!(sha256(file.to_string().as_bytes())))
        );
    }
    assert!(a.ask("fine.json", &view()).is_null());
    assert!(a.folder.path("out", "fine.json").exists() && a.why("fine.json").is_null());
    a.has_room = false;
    assert_eq!(a.ask("many.json", &view())["error"]["code"], "too_many");
    assert!(a.why("many.json").is_null(), "the same file may be taken later");
}

#[test]
fn a_file_without_a_request_lies_there_with_the_place_of_the_fault() {
    let mut a = Sender::new();
    let answer = a.drop("cut.json", b"{\"v\":1,\n\"to\"");
    assert_eq!((&answer["status"], &answer["error"]["line"]), (&json!(400), &json!(2)), "{answer}");
    let why = a.why("cut.json");
    assert_eq!((&why["code"], &why["line"], &why["column"]), (&json!("not_json"), &json!(2), &json!(4)), "{why}");
    // serde would also read a list as a request.
    let list = json!([1, "b", {"v": 1, "kind": "view", "of": "agents"}]);
    assert_eq!(a.ask("list.json", &list)["error"]["code"], "bad_request");
    assert_eq!(a.why("list.json")["code"], "not_json");
    assert!(!a.folder.path("out", "list.json").exists());
    a.drop("bad name.json", b"{}");
    let why = a.why("bad_name.json");
    assert_eq!((&why["code"], &why["name"]), (&json!("bad_name"), &json!("bad name.json")));
}

/// These were 400, with one figure.
#[test]
fn too_many_parts_and_a_part_that_is_too_large_are_413_with_both_figures() {
    let mut a = Sender::new();
    let large = a.dir.path().join("large");
    std::fs::File::create(&large).expect("made").set_len(MOST_PART + 1).expect("a hole");
    let part = |number: usize| json!({"name": format!("p{number}"), "path": large.display().to_string()});
    for (name, parts, figures) in [
        ("many.json", (0..MOST_PARTS).map(part).collect::<Vec<_>>(), ["17 files", "at most 16 "]),
        ("large.json", vec![part(0)], ["2097153 bytes", "at most 2097152 "]),
    ] {
        let answer = a.ask(name, &with("parts", json!(parts)));
        let error = &answer["error"];
        assert_eq!((&answer["status"], &error["code"]), (&json!(413), &json!("too_large")), "{answer}");
        let said = error["message"].as_str().unwrap_or_default();
        assert!(figures.iter().all(|figure| said.contains(figure)), "{said}");
        assert_eq!(a.why(name)["code"], "too_large");
    }
    let relative = json!([{"name": "p", "path": "p"}]);
    assert_eq!(a.ask("relative.json", &with("parts", relative))["status"], 400);
    a.why("relative.json");
    assert_eq!(a.ask("twins.json", &with("parts", json!([part(1), part(1)])))["status"], 400);
}
