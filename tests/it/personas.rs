//! Personas: the folder is the registration.

use std::fs;
use std::os::unix::fs::symlink;
use tasuki::core::id::Slug;
use tasuki::core::persona::PublishDefault;
use tasuki::core::request::PublishTarget;
use tasuki::personas::{EXAMPLES, Error, PersonaFile, create, facts, list, read_texts};

fn slug(text: &str) -> Slug {
    text.parse().expect("a legal slug")
}

#[test]
fn a_new_persona_is_whole_and_listed() {
    let dir = tempfile::tempdir().expect("a folder");
    let personas = dir.path().join("data/personas");
    assert!(list(&personas).expect("none yet").is_empty());
    assert!(!facts(&personas, &slug("con-1")).expect("a fact too").exists);
    let file = PersonaFile { role: Some("reviewer".into()), cwd: Some("/a \"b\"".into()), ..PersonaFile::default() };
    let path = create(&personas, &slug("con-1"), &file).expect("made");
    assert_eq!(path, personas.join("con-1"));
    let facts = facts(&personas, &slug("con-1")).expect("read");
    assert!(facts.exists && facts.has_skill && facts.handoff_files.is_empty());
    assert_eq!((facts.file.name.as_deref(), facts.file.role.as_deref()), (Some("con-1"), Some("reviewer")));
    assert_eq!(facts.file.cwd.as_deref(), Some("/a \"b\""));
    let (skill, experience) = read_texts(&personas, &slug("con-1")).expect("read");
    assert!(skill.starts_with("# ") && experience.is_some());
    assert!(matches!(create(&personas, &slug("con-1"), &file), Err(Error::Taken { .. })));
    assert_eq!(list(&personas).expect("listed"), [slug("con-1")]);
    assert_eq!(fs::read_dir(&personas).expect("listed").count(), 1);
}

/// All of them wrote into one unfinished folder, which the first one gave its name and the next one removed.
#[test]
fn if_a_persona_is_made_by_several_at_once_one_makes_it_and_the_others_are_told() {
    let dir = tempfile::tempdir().expect("a folder");
    let personas = dir.path().join("data/personas");
    for round in 0..10 {
        let slug = slug(&format!("kai-{round}"));
        let make = |name: usize| {
            let file = PersonaFile { name: Some(format!("Kai {name}")), ..PersonaFile::default() };
            create(&personas, &slug, &file).map(|_| name)
        };
        let made = std::thread::scope(|scope| {
            let all = [0, 1, 2, 3, 4, 5].map(|name| {
                scope.spawn({
                    let make = &make;
                    move || make(name)
                })
            });
            all.map(|one| one.join().expect("it ends"))
        });
        let winners: Vec<&usize> = made.iter().filter_map(|one| one.as_ref().ok()).collect();
        let others = made.iter().filter(|one| matches!(one, Err(Error::Taken { .. }))).count();
        assert_eq!((winners.len(), others), (1, 5), "{made:?}");
        let made = facts(&personas, &slug).expect("read");
        assert_eq!((made.has_skill, made.file.name), (true, Some(format!("Kai {}", winners[0]))));
        assert!(personas.join(slug.as_str()).join("experience.md").exists());
        assert_eq!(fs::read_dir(&personas).expect("listed").count(), round + 1, "nothing half-made is left");
    }
}

#[test]
fn a_persona_says_where_its_documents_are_published() {
    let dir = tempfile::tempdir().expect("a folder");
    create(dir.path(), &slug("kai"), &PersonaFile::default()).expect("made");
    let read = |value: &str| {
        fs::write(dir.path().join("kai/persona.toml"), format!("role = \"r\"\npublish = {value}\n")).expect("written");
        facts(dir.path(), &slug("kai")).map(|facts| facts.file.publish)
    };
    for text in ["octo/app#42", "gist"] {
        let target = PublishTarget::read_default(text).map(PublishDefault::To);
        assert_eq!(read(&format!("\"{text}\"")).expect("legal"), target, "{text}");
        let written = toml::to_string(&PersonaFile { publish: target, ..PersonaFile::default() }).expect("written");
        assert_eq!(written, format!("publish = \"{text}\"\n"));
    }
    assert_eq!(read("false").expect("legal"), Some(PublishDefault::No));
    for bad in ["true", "\"octo/app\"", "\"https://github.com/o/r/issues/1\"", "42"] {
        match read(bad) {
            Err(Error::Wrong { line: 2, message, .. }) => assert!(message.contains("or false"), "{message}"),
            other => panic!("{bad}: {other:?}"),
        }
    }
}

#[test]
fn every_example_can_be_made_under_its_own_name() {
    let dir = tempfile::tempdir().expect("a folder");
    for example in EXAMPLES {
        create(dir.path(), &slug(example.slug), &PersonaFile::default()).expect("made");
        let facts = facts(dir.path(), &slug(example.slug)).expect("read");
        assert!(facts.has_skill && facts.file.name.is_some() && facts.file.role.is_some());
        assert_eq!(read_texts(dir.path(), &slug(example.slug)).expect("read").0, example.skill);
    }
    assert_eq!(list(dir.path()).expect("listed").len(), EXAMPLES.len());
}

#[test]
fn a_folder_with_a_skill_is_enough_and_one_without_is_no_persona() {
    let dir = tempfile::tempdir().expect("a folder");
    for name in ["with", "without", "Illegal"] {
        fs::create_dir_all(dir.path().join(name).join("handoffs")).expect("made");
    }
    fs::write(dir.path().join("with/skill.md"), "# Skill").expect("written");
    fs::write(dir.path().join("Illegal/skill.md"), "# Skill").expect("written");
    fs::write(dir.path().join("with/handoffs/b.md"), "").expect("written");
    fs::write(dir.path().join("with/handoffs/a.md"), "").expect("written");
    assert_eq!(list(dir.path()).expect("listed"), [slug("with")]);
    let with = facts(dir.path(), &slug("with")).expect("read");
    assert_eq!((with.has_skill, with.file.clone()), (true, PersonaFile::default()));
    assert_eq!(with.handoff_files, ["a.md", "b.md"]);
    assert_eq!(read_texts(dir.path(), &slug("with")).expect("read"), ("# Skill".to_owned(), None));
    let without = facts(dir.path(), &slug("without")).expect("read");
    assert!(without.exists && !without.has_skill);
    assert!(matches!(read_texts(dir.path(), &slug("without")), Err(Error::Missing { .. })));
}

#[test]
fn links_and_wrong_files_are_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |below: &str| dir.path().join(below);
    fs::create_dir(at("a")).expect("made");
    fs::write(at("secret"), "# It").expect("written");
    symlink(at("secret"), at("a/skill.md")).expect("link");
    let error = facts(dir.path(), &slug("a")).expect_err("a link is no missing file").to_string();
    assert!(error.contains("skill.md: it is a link"), "{error}");
    assert!(matches!(read_texts(dir.path(), &slug("a")), Err(Error::Unfit { .. })));
    fs::remove_file(at("a/skill.md")).expect("removed");
    fs::write(at("a/skill.md"), "# Skill").expect("written");
    fs::write(at("a/persona.toml"), "name = \"A\"\nprofle = \"claude\"\n").expect("written");
    let error = facts(dir.path(), &slug("a")).expect_err("a wrong key").to_string();
    assert!(error.contains("persona.toml, line 2") && error.contains("profle"), "{error}");
    symlink(at("a"), at("b")).expect("link");
    assert!(matches!(facts(dir.path(), &slug("b")), Err(Error::Unfit { .. })));
}

/// A backup with `cp -al` or `rsync --link-dest` gives each file of the home a second name.
#[test]
fn a_snapshot_of_hard_links_takes_no_file_of_the_user_away() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = |below: &str| dir.path().join(below);
    fs::create_dir(at("a")).expect("made");
    fs::create_dir(at("snapshot")).expect("made");
    let files = [
        ("a/skill.md", "# Skill"),
        ("a/experience.md", "# Experience"),
        ("a/persona.toml", "check = \"hold\""),
        ("rules.toml", ""),
    ];
    for (name, text) in files {
        fs::write(at(name), text).expect("written");
        fs::hard_link(at(name), at("snapshot").join(name.replace('/', "-"))).expect("a second name");
    }
    let known = facts(dir.path(), &slug("a")).expect("read");
    assert!(known.has_skill && known.file.check.is_some(), "{known:?}");
    let (skill, experience) = read_texts(dir.path(), &slug("a")).expect("read");
    assert_eq!((skill.as_str(), experience.as_deref()), ("# Skill", Some("# Experience")));
    tasuki::config::rules::load(&at("rules.toml")).expect("the rules can be used");
}
