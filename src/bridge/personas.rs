//! Personas from other hosts. The bridge itself puts them into this home: the sidecar has no request for that. Where a
//! persona of that name is here with other bytes, it is replaced only if the sender says so, and then what it was is kept.

use super::folder::FleetFolder;
use super::out::{FleetRefused, granted};
use crate::cli::view::read_bytes;
use crate::config::Home;
use crate::contract::ResultFile;
use crate::core::id::{RequestId, Slug};
use crate::core::time::Now;
use crate::files::{self, Grade};
use crate::fleet::LetterPart;
use crate::personas::{self, PersonaFile};
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io;

/// The kind of such a request.
pub(super) const KIND: &str = "persona_put";
/// The files that make a persona, as it is sent.
pub(super) const FILES: [&str; 2] = ["persona.toml", "skill.md"];
/// The most that one of them may hold, in bytes.
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
    let failed =
        |error: io::Error| FleetRefused::new(503, "not_written", format!("The persona was not written: {error}."));
    let place = home.personas().join(slug.as_str());
    let here = |name: &str| read_bytes(&place.join(name), MOST).ok().flatten();
    let sent = |name: &str| parts.iter().find(|part| part.name == name).map(|part| part.bytes.clone());
    if FILES.iter().all(|name| here(name) == sent(name)) {
        return Ok(json!({"status": "same", "slug": slug}));
    }
    let is_new = FILES.iter().all(|name| here(name).is_none());
    if !is_new && !asked.replace {
        let message = format!("This host has a persona {slug} that is another one. It was left as it is.");
        return Err(FleetRefused::new(409, "persona_differs", message)
            .hint("To replace it: tasuki fleet persona push --replace. What it was is kept in fleet/replaced there."));
    }
    if !is_new {
        keep(folder, &slug, &here, now).map_err(|error| failed(io::Error::other(error.to_string())))?;
    }
    write(home, &slug, &sent).map_err(failed)?;
    Ok(json!({"status": if is_new { "created" } else { "replaced" }, "slug": slug}))
}

/// Keeps what a persona was, in `fleet/replaced/<time>-<slug>/`.
fn keep(
    folder: &FleetFolder,
    slug: &Slug,
    here: &impl Fn(&str) -> Option<Vec<u8>>,
    now: &Now,
) -> Result<(), crate::cli::error::CliError> {
    let name = format!("{}-{slug}", now.wall_ms);
    folder.make("", "replaced")?;
    folder.make("replaced", &name)?;
    for file in FILES {
        if let Some(bytes) = here(file) {
            folder.write(&format!("replaced/{name}"), file, &bytes, Grade::Durable)?;
        }
    }
    Ok(())
}

fn write(home: &Home, slug: &Slug, sent: &impl Fn(&str) -> Option<Vec<u8>>) -> io::Result<()> {
    let mut dir = files::open_dir(home.root())?;
    for part in ["data", "personas", slug.as_str()] {
        dir = files::make_dir_at(&dir, part)?;
    }
    for file in FILES {
        match sent(file) {
            Some(bytes) => {
                let temp = format!(".{}.tmp", uuid::Uuid::new_v4().simple());
                files::replace_at(&dir, OsStr::new(&temp), OsStr::new(file), &bytes, Grade::Durable)?;
            }
            None => drop(files::remove_at(&dir, OsStr::new(file))?),
        }
    }
    Ok(())
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
