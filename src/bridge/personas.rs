//! Personas from other hosts. The bridge itself puts them into this home, because the sidecar has no request for that.
//! If another persona of the same name is here, it is replaced only if the sender says so, and the former one is kept.

use super::folder::FleetFolder;
use super::out::granted;
use super::refused::FleetRefused;
use crate::cli::view::read_bytes;
use crate::config::Home;
use crate::contract::ResultFile;
use crate::core::id::{RequestId, Slug};
use crate::core::time::Now;
use crate::files::{self, Grade};
use crate::fleet::LetterPart;
use crate::personas::{self, PersonaFile};
use nix::fcntl::renameat;
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fmt::Display;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// The kind of a request that brings a persona.
pub(super) const KIND: &str = "persona_put";
/// The files of a persona that are sent.
pub(super) const FILES: [&str; 2] = ["persona.toml", "skill.md"];
/// The largest of these files, in bytes.
pub(super) const MOST: u64 = personas::MAX_TEXT_BYTES;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PutRequest {
    v: u8,
    #[serde(rename = "kind")]
    _kind: String,
    slug: Slug,
    #[serde(default)]
    replace: bool,
}

/// Answers a request that brings a persona.
pub(super) fn put(
    (home, folder): (&Home, &FleetFolder),
    rid: &RequestId,
    request: &[u8],
    parts: &[LetterPart],
    now: &Now,
) -> ResultFile {
    match place(home, folder, request, parts, now) {
        Ok(result) => granted(rid.as_str(), KIND, request, result, &now.rfc3339()),
        Err(refused) => refused.result(rid.as_str(), Some(KIND), request, &now.rfc3339()),
    }
}

fn place(
    home: &Home,
    folder: &FleetFolder,
    request: &[u8],
    parts: &[LetterPart],
    now: &Now,
) -> Result<Value, FleetRefused> {
    let bad = |message: String| FleetRefused::new(400, "bad_request", message);
    let asked: PutRequest = serde_json::from_slice(request).map_err(|error| bad(format!("{error}.")))?;
    let is_fine = |part: &LetterPart| FILES.contains(&part.name.as_str()) && part.bytes.len() as u64 <= MOST;
    if asked.v != 1 || parts.is_empty() || !parts.iter().all(is_fine) {
        return Err(bad(format!("A persona comes as {}, each of at most 1 MiB.", FILES.join(" and "))));
    }
    for part in parts {
        let text = std::str::from_utf8(&part.bytes).map_err(|_| bad(format!("{} is not UTF-8.", part.name)))?;
        if part.name == FILES[0] {
            toml::from_str::<PersonaFile>(text).map_err(|error| bad(format!("{}: {}.", part.name, error.message())))?;
        }
    }
    let slug = asked.slug;
    let place = home.personas().join(slug.as_str());
    let sent = FILES.map(|name| parts.iter().find(|part| part.name == name).map(|part| part.bytes.clone()));
    let here = read_here(&place)?;
    if here == sent {
        return Ok(json!({"status": "same", "slug": slug}));
    }
    // A folder without skill.md does not hold a persona. If it has the same persona.toml as was sent, an earlier
    // attempt was cut off after that file, by a power cut or a full disk.
    let [toml_here, skill_here] = &here;
    let is_new = skill_here.is_none() && (toml_here.is_none() || *toml_here == sent[0]);
    if !is_new && !asked.replace {
        let message = format!("This host has a persona {slug} that is another one. It was left as it is.");
        return Err(FleetRefused::new(409, "persona_differs", message)
            .hint("To replace it: tasuki fleet persona push --replace. What it was is kept in fleet/replaced there."));
    }
    if !is_new {
        keep(folder, &slug, &here, now).map_err(|error| not_written(&error))?;
    }
    let dir = open_place(home, &slug).map_err(|error| not_written(&error))?;
    let drafts = Drafts::write(&dir, &sent).map_err(|error| not_written(&error))?;
    drafts.put_in_place().map_err(|(error, is_begun)| match is_begun {
        false => not_written(&error),
        true => FleetRefused::new(503, "not_written", format!("Only a part of the persona was written: {error}."))
            .hint("Push it again. If there was another persona of this name, it is kept in fleet/replaced there."),
    })?;
    Ok(json!({"status": if is_new { "created" } else { "replaced" }, "slug": slug}))
}

fn not_written(error: &dyn Display) -> FleetRefused {
    FleetRefused::new(503, "not_written", format!("The persona was not written: {error}."))
}

/// The bytes of each of [`FILES`]; none for a file that is not there.
type PersonaBytes = [Option<Vec<u8>>; 2];

/// Reads the persona that is here. A file that can't be read does not count as missing: it is an error.
fn read_here(place: &Path) -> Result<PersonaBytes, FleetRefused> {
    let read = |name: &str| {
        read_bytes(&place.join(name), MOST).map_err(|error| {
            FleetRefused::new(503, "not_written", format!("{} Nothing was written.", error.message))
                .hint("Look at that file on the host itself.")
        })
    };
    let [toml, skill] = FILES.map(read);
    Ok([toml?, skill?])
}

/// Copies the files of a persona into `fleet/replaced/<time>-<slug>/`, before they are replaced.
fn keep(folder: &FleetFolder, slug: &Slug, here: &PersonaBytes, now: &Now) -> Result<(), crate::cli::error::CliError> {
    let name = format!("{}-{slug}", now.wall_ms);
    folder.make("", "replaced")?;
    folder.make("replaced", &name)?;
    for (file, bytes) in FILES.iter().zip(here) {
        if let Some(bytes) = bytes {
            folder.write(&format!("replaced/{name}"), file, bytes, Grade::Durable)?;
        }
    }
    Ok(())
}

fn open_place(home: &Home, slug: &Slug) -> io::Result<OwnedFd> {
    let mut dir = files::open_dir(home.root())?;
    for part in ["data", "personas", slug.as_str()] {
        dir = files::make_dir_at(&dir, part)?;
    }
    Ok(dir)
}

/// The new files of a persona, written whole to the disk under temporary names. If the disk is full, that shows before
/// anything of the former persona is gone.
struct Drafts<'a> {
    dir: &'a OwnedFd,
    /// Temporary name and name of each file that was sent.
    files: Vec<(String, &'static str)>,
    /// The names of files that were not sent: they are removed from the folder.
    missing: Vec<&'static str>,
}

impl<'a> Drafts<'a> {
    fn write(dir: &'a OwnedFd, sent: &PersonaBytes) -> io::Result<Drafts<'a>> {
        let mut drafts = Drafts { dir, files: Vec::new(), missing: Vec::new() };
        for (name, bytes) in FILES.into_iter().zip(sent) {
            let Some(bytes) = bytes else {
                drafts.missing.push(name);
                continue;
            };
            let id = uuid::Uuid::new_v4().simple();
            let (temp, draft) = (format!(".{id}.new.tmp"), format!(".{id}.tmp"));
            files::replace_at(dir, OsStr::new(&temp), OsStr::new(&draft), bytes, Grade::Durable)?;
            drafts.files.push((draft, name));
        }
        Ok(drafts)
    }

    /// Moves the files to their names, `skill.md` last, because a folder with this file counts as a persona. An error
    /// says whether anything was changed before it.
    fn put_in_place(mut self) -> Result<(), (io::Error, bool)> {
        let mut is_begun = false;
        for (draft, name) in std::mem::take(&mut self.files) {
            if let Err(errno) = renameat(self.dir, draft.as_str(), self.dir, name) {
                let _ = files::remove_at(self.dir, OsStr::new(&draft));
                return Err((errno.into(), is_begun));
            }
            is_begun = true;
        }
        for name in &self.missing {
            is_begun |= files::remove_at(self.dir, OsStr::new(name)).map_err(|error| (error, is_begun))?;
        }
        files::sync_folder(self.dir).map_err(|error| (error, is_begun))
    }
}

impl Drop for Drafts<'_> {
    fn drop(&mut self) {
        for (draft, _) in &self.files {
            let _ = files::remove_at(self.dir, OsStr::new(draft));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::folder::of_test;
    use super::*;

    const NOW: Now = Now { wall_ms: 1_790_000_000_000, boot: 1, boot_ms: 1 };

    struct Here {
        _dir: tempfile::TempDir,
        home: Home,
        folder: FleetFolder,
    }

    impl Here {
        fn new() -> Here {
            let (dir, home, folder) = of_test();
            Here { _dir: dir, home, folder }
        }

        fn put(&self, slug: &str, replace: bool, files: &[(&str, &str)]) -> (u16, String) {
            let request = json!({"v": 1, "kind": KIND, "slug": slug, "replace": replace}).to_string();
            let part =
                |(name, text): &(&str, &str)| LetterPart { name: (*name).to_owned(), bytes: text.as_bytes().into() };
            let parts: Vec<LetterPart> = files.iter().map(part).collect();
            let rid = "fleet.a.x".parse().expect("an id");
            let result = put((&self.home, &self.folder), &rid, request.as_bytes(), &parts, &NOW);
            let status = result.result.map(|result| result["status"].as_str().unwrap_or_default().to_owned());
            (result.status, status.or(result.error.map(|error| error.code)).unwrap_or_default())
        }

        fn skill(&self, slug: &str) -> String {
            std::fs::read_to_string(self.home.personas().join(slug).join("skill.md")).unwrap_or_default()
        }
    }

    fn said(status: u16, word: &str) -> (u16, String) {
        (status, word.to_owned())
    }

    #[test]
    fn a_persona_is_put_once_and_replaced_only_if_that_is_said() {
        let here = Here::new();
        let one = [("persona.toml", "name = \"Kai\"\n"), ("skill.md", "one")];
        assert_eq!(here.put("kai", false, &one), said(200, "created"));
        assert_eq!(here.put("kai", false, &one), said(200, "same"));
        assert_eq!(here.put("kai", false, &[("skill.md", "two")]), said(409, "persona_differs"));
        assert_eq!(here.skill("kai"), "one");
        assert_eq!(here.put("kai", true, &[("skill.md", "two")]), said(200, "replaced"));
        assert_eq!(here.skill("kai"), "two");
        let kept = here.folder.path("replaced", &format!("{}-kai", NOW.wall_ms));
        assert_eq!(std::fs::read_to_string(kept.join("skill.md")).expect("kept"), "one");
    }

    #[test]
    fn a_half_written_persona_is_completed_and_nothing_is_added_to_a_whole_one() {
        let here = Here::new();
        let kai = [("persona.toml", "name = \"Kai\"\n"), ("skill.md", "one")];
        let place = |slug: &str, file: &str| {
            let dir = here.home.personas().join(slug);
            std::fs::create_dir_all(&dir).expect("a folder");
            dir.join(file)
        };
        std::fs::write(place("kai", "persona.toml"), kai[0].1).expect("written");
        assert_eq!(here.put("kai", false, &kai), said(200, "created"));
        assert_eq!(here.skill("kai"), "one");
        std::fs::write(place("mia", "persona.toml"), "name = \"Mia\"\n").expect("written");
        std::fs::write(place("lea", "skill.md"), "one").expect("written");
        for slug in ["mia", "lea"] {
            assert_eq!(here.put(slug, false, &kai), said(409, "persona_differs"), "{slug}");
        }
    }

    #[test]
    fn if_a_file_can_t_be_read_or_written_the_persona_stays_as_it_was() {
        let here = Here::new();
        let kai = [("persona.toml", "name = \"Kai\"\n"), ("skill.md", "one")];
        assert_eq!(here.put("kai", false, &kai), said(200, "created"));
        let dir = here.home.personas().join("kai");
        // A folder in the place of skill.md can't be read as a file.
        std::fs::rename(dir.join("skill.md"), dir.join("aside")).expect("renamed");
        std::fs::create_dir(dir.join("skill.md")).expect("a folder");
        let other = [("persona.toml", "name = \"Other\"\n"), ("skill.md", "two")];
        assert_eq!(here.put("kai", true, &other), said(503, "not_written"));
        assert_eq!(std::fs::read_to_string(dir.join("persona.toml")).expect("there"), kai[0].1);
        let sent = [Some(b"x".to_vec()), Some(b"y".to_vec())];
        let place = open_place(&here.home, &"kai".parse().expect("a slug")).expect("it is there");
        let names = || std::fs::read_dir(&dir).expect("listed").count();
        let before = names();
        drop(Drafts::write(&place, &sent).expect("written"));
        assert_eq!(names(), before, "drafts that are not put in place leave nothing");
        // The second file can't be moved to its name.
        let (_, is_begun) = Drafts::write(&place, &sent).expect("written").put_in_place().expect_err("a folder");
        assert!(is_begun && names() == before);
    }

    #[test]
    fn what_is_not_a_persona_is_refused_and_nothing_is_written() {
        let here = Here::new();
        for (slug, files) in [
            ("../kai", &[("skill.md", "x")][..]),
            ("kai", &[("experience.md", "x")]),
            ("kai", &[("../skill.md", "x")]),
            ("kai", &[]),
            ("kai", &[("persona.toml", "profil = \"demo\"")]),
        ] {
            assert_eq!(here.put(slug, true, files), said(400, "bad_request"), "{slug} {files:?}");
        }
        assert!(!here.home.personas().exists());
    }
}
