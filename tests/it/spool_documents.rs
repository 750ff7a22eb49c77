//! Documents: what counts, and that no link leads out of a persona's folder.

use crate::support::home::TestHome;
use nix::sys::stat::Mode;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tasuki::core::id::{DeliveryId, Slug};
use tasuki::spool::ErrorKind;
use tasuki::spool::documents::{
    DocumentError, DocumentLook, open_folder, prepare_folder, read_inside, remake_folder, write_text,
};

fn slug() -> Slug {
    "developer-con-1".parse().expect("a legal slug")
}

fn code(result: Result<tasuki::spool::documents::DocumentReading, DocumentError>) -> &'static str {
    result.map_or_else(|error| error.code(), |_| "read")
}

#[test]
fn the_folder_is_made_for_us_alone_and_listed_in_order() {
    let home = TestHome::new();
    assert!(open_folder(home.spool.home(), &slug()).is_err());
    let folder = prepare_folder(home.spool.home(), &slug()).expect("made");
    assert_eq!(folder.path(), home.path("data/personas/developer-con-1/handoffs"));
    let mode = fs::metadata(folder.path()).expect("made").permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    assert!(folder.write_new(OsStr::new("b.md"), b"b").expect("written"));
    assert!(folder.write_new(OsStr::new("a.md"), b"a").expect("written"));
    assert!(!folder.write_new(OsStr::new("a.md"), b"c").expect("taken"));
    assert_eq!(folder.list().expect("listed"), ["a.md", "b.md"]);
}

#[test]
fn a_persona_that_is_gone_is_not_made_again() {
    let home = TestHome::new();
    let persona = home.path("data/personas/developer-con-1");
    fs::create_dir_all(home.path("data/personas")).expect("made");
    let error = remake_folder(home.spool.home(), &slug()).expect_err("there is no such persona");
    assert!(error.to_string().contains("developer-con-1") && !persona.exists(), "{error}");
    fs::create_dir(&persona).expect("made");
    let folder = remake_folder(home.spool.home(), &slug()).expect("made");
    assert_eq!(folder.path(), persona.join("handoffs"));
}

#[test]
fn only_a_plain_file_with_text_in_it_counts() {
    let home = TestHome::new();
    let folder = prepare_folder(home.spool.home(), &slug()).expect("made");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("good.md"), "# Handoff\n").expect("written");
    fs::write(at("empty.md"), "").expect("written");
    fs::write(at("blank.md"), " \n\t\u{feff}\u{a0}\n").expect("written");
    fs::write(at("latin.md"), b"caf\xe9").expect("written");
    fs::write(at("large.md"), vec![b'x'; 1024 * 1024 + 1]).expect("written");
    symlink(at("good.md"), at("link.md")).expect("link");
    fs::create_dir(at("folder.md")).expect("made");
    nix::unistd::mkfifo(&at("pipe.md"), Mode::S_IRWXU).expect("pipe");
    let codes = [
        "good.md",
        "none.md",
        "empty.md",
        "blank.md",
        "latin.md",
        "large.md",
        "link.md",
        "folder.md",
        "pipe.md",
        "../x",
    ];
    let codes = codes.map(|name| code(folder.read(OsStr::new(name))));
    // A snapshot of hard links gives a document a second name.
    fs::hard_link(at("good.md"), home.path("snapshot")).expect("a second name");
    assert_eq!(code(folder.read(OsStr::new("good.md"))), "read");
    assert!(matches!(folder.look(OsStr::new("good.md")), DocumentLook::Present { .. }));
    let (empty, bad) = ("document_empty", "document_unsafe");
    assert_eq!(codes, ["read", "document_missing", empty, empty, bad, bad, bad, bad, bad, bad]);
    assert_eq!(folder.look(OsStr::new("none.md")), DocumentLook::Missing);
    assert_eq!(folder.look(OsStr::new("link.md")), DocumentLook::Unsafe("link"));
    assert_eq!(folder.look(OsStr::new("pipe.md")), DocumentLook::Unsafe("not_regular"));
    assert!(
        matches!(folder.look(OsStr::new("empty.md")), DocumentLook::Present { file_stamp } if file_stamp.size == 0)
    );
}

#[test]
fn two_readings_show_whether_a_document_has_settled() {
    let home = TestHome::new();
    let folder = prepare_folder(home.spool.home(), &slug()).expect("made");
    let name = OsStr::new("a.md");
    fs::write(folder.path().join("a.md"), "first").expect("written");
    let one = folder.read(name).expect("read");
    assert_eq!(folder.read(name).expect("read"), one);
    fs::write(folder.path().join("a.md"), "second").expect("written");
    assert_ne!(folder.read(name).expect("read").file_stamp, one.file_stamp);
}

#[test]
fn a_name_that_leads_out_of_the_folder_is_no_name() {
    let home = TestHome::new();
    let folder = prepare_folder(home.spool.home(), &slug()).expect("made");
    fs::write(folder.path().join("../secret"), "text").expect("written");
    for name in ["../secret", "..", ".", "", "a/../../secret"] {
        let name = OsStr::new(name);
        assert_eq!(folder.look(name), DocumentLook::Unsafe("bad_name"), "{name:?}");
        assert_eq!(folder.read(name).expect_err("no name").code(), "document_unsafe", "{name:?}");
        assert!(folder.write_new(name, b"over it").is_err(), "{name:?}");
    }
    assert_eq!(fs::read(folder.path().join("../secret")).expect("there"), b"text");
}

#[test]
fn no_folder_on_the_way_may_be_a_link() {
    let home = TestHome::new();
    let elsewhere = home.path("elsewhere");
    fs::create_dir_all(elsewhere.join("handoffs")).expect("made");
    fs::create_dir_all(home.path("data/personas")).expect("made");
    symlink(&elsewhere, home.path("data/personas/developer-con-1")).expect("link");
    assert_eq!(prepare_folder(home.spool.home(), &slug()).expect_err("refused").kind(), ErrorKind::Layout);
}

#[test]
fn a_provided_document_lies_inside_the_home() {
    let home = TestHome::new();
    let root = home.spool.home();
    home.put("doc.md", "# It");
    fs::create_dir(home.path("deep")).expect("made");
    home.put("deep/doc.md", "# It");
    symlink("/etc", home.path("etc")).expect("link");
    assert_eq!(code(read_inside(root, Path::new("doc.md"))), "read");
    assert_eq!(code(read_inside(root, &home.path("deep/doc.md"))), "read");
    assert_eq!(code(read_inside(root, Path::new("./none/doc.md"))), "document_missing");
    for bad in ["/etc/passwd", "../x", "deep/../doc.md", "etc/passwd", "", "."] {
        assert_eq!(code(read_inside(root, Path::new(bad))), "document_unsafe", "{bad}");
    }
    let below_a_link = read_inside(root, Path::new("etc/passwd")).expect_err("refused").to_string();
    let expected =
        format!("etc/passwd: {} is a link or not a folder; the file was left untouched", home.path("etc").display());
    assert_eq!(below_a_link, expected);
    let nowhere = read_inside(Path::new("/no/such/home"), Path::new("doc.md"));
    assert!(matches!(nowhere, Err(DocumentError::Unread { .. })), "nothing is known about the file");
}

#[test]
fn a_long_text_goes_to_a_file_of_its_own() {
    let home = TestHome::new();
    let id = DeliveryId::from_bits(0x5f2a_9c81_d0e3);
    let path = write_text(home.spool.home(), &slug(), &id, "long").expect("written");
    assert_eq!(path, home.path("data/personas/developer-con-1/texts/5f2a9c81d0e3.md"));
    assert_eq!(write_text(home.spool.home(), &slug(), &id, "long").expect("again"), path);
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
}

/// Documents, or long texts, that writers on threads of their own have written at once: each name holds what its own
/// writer gave, whole, and every writer was told that it was written.
fn written_at_once(folder: &Path, write: impl Fn(u64, &str) -> Result<(), String> + Sync) {
    const WRITERS: u64 = 8;
    const EACH: u64 = 12;
    let text = |number: u64| format!("{number} ").repeat(40_000);
    let told = std::thread::scope(|scope| {
        let own = |writer: u64| (0..EACH).map(move |nth| writer * EACH + nth);
        let (write, text) = (&write, &text);
        let run =
            |writer| scope.spawn(move || own(writer).filter_map(|n| write(n, &text(n)).err()).collect::<Vec<_>>());
        let threads: Vec<_> = (0..WRITERS).map(run).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a writer")).collect::<Vec<_>>()
    });
    let holds_another = |number: &u64| {
        let id = DeliveryId::from_bits(*number);
        fs::read_to_string(folder.join(format!("{id}.md"))).ok().as_deref() != Some(text(*number).as_str())
    };
    let mixed: Vec<u64> = (0..WRITERS * EACH).filter(holds_another).collect();
    assert!(told.is_empty() && mixed.is_empty(), "wrong or missing: {mixed:?}; told: {told:?}");
    let left = fs::read_dir(folder).expect("a folder").count() as u64;
    assert_eq!(left, WRITERS * EACH, "nothing but the files is left");
}

#[test]
fn documents_of_one_persona_that_are_written_at_once_do_not_mix() {
    let home = TestHome::new();
    let folder = prepare_folder(home.spool.home(), &slug()).expect("made");
    written_at_once(folder.path(), |number, text| {
        let name = format!("{}.md", DeliveryId::from_bits(number));
        match folder.write_new(OsStr::new(&name), text.as_bytes()) {
            Ok(true) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}

#[test]
fn long_texts_for_one_persona_that_are_written_at_once_do_not_mix() {
    let home = TestHome::new();
    let (root, folder) = (home.spool.home(), home.path("data/personas/developer-con-1/texts"));
    written_at_once(&folder, |number, text| {
        let id = DeliveryId::from_bits(number);
        write_text(root, &slug(), &id, text).map(drop).map_err(|error| error.to_string())
    });
}

#[test]
fn what_a_crash_left_half_written_goes_with_the_next_document() {
    let home = TestHome::new();
    let folder = prepare_folder(home.spool.home(), &slug()).expect("made");
    for left in [".tasuki-new", ".tasuki-0123456789abcdef0123456789abcdef-7.new"] {
        fs::write(folder.path().join(left), "half of a docu").expect("written");
    }
    fs::write(folder.path().join(".tasuki-notes.new"), "somebody's own").expect("written");
    assert!(folder.write_new(OsStr::new("a.md"), b"a").expect("written"));
    assert_eq!(folder.list().expect("listed"), [".tasuki-notes.new", "a.md"]);
}
