//! Checks what people have written into the home: personas, profiles, prompts, rules.

use super::check::Check;
use super::ground::DoctorFacts;
use super::hooks;
use crate::agents::Profiles;
use crate::config::rules;
use crate::core::id::Slug;
use crate::core::prompts;
use crate::core::rules::is_name;
use crate::core::text::sanitise;
use crate::{files, personas, sidecar};
use std::path::Path;

/// How many names in the personas' folder are checked at most.
const MAX_NAMES: usize = 10_000;
/// How many faults of personas one line reports at most.
const MAX_TOLD: usize = 3;
const REPAIR: &str =
    "fix that file; the sidecar does not start with it, and a running sidecar keeps the previous version";

pub(super) fn look(ground: &DoctorFacts) -> Vec<Check> {
    let home = &ground.home;
    if !home.root().is_dir() {
        return vec![Check::skipped("data.personas", "there is no tasuki home yet")];
    }
    if ground.open_way().is_some() {
        let skipped = |id| Check::skipped(id, "not checked: other users could change it, see paths.above");
        return ["data.personas", "data.profiles", "data.prompts", "data.rules"].map(skipped).into();
    }
    let profiles = Profiles::load(Some(&home.profiles()));
    let known: Vec<String> = match &profiles {
        Ok(profiles) => profiles.iter().map(|profile| profile.name.clone()).collect(),
        Err(_) => Vec::new(),
    };
    let told = |id: &str, fault: Option<String>, good: &str| match fault {
        None => Check::ok(id, good),
        Some(fault) => Check::fail(id, fault, REPAIR),
    };
    vec![
        judge_personas(&gather_personas(&home.personas(), &known)),
        told("data.profiles", profiles.err().map(|error| error.to_string()), "every profile is valid"),
        judge_prompts(sidecar::fault_of_prompts(home), &unread_names(&home.prompts())),
        told(
            "data.rules",
            rules::load(&home.rules()).err().map(|error| error.to_string()),
            "the rules for work items are valid",
        ),
    ]
}

/// The Markdown files among the prompts that no text is made from, because they have another name.
fn unread_names(folder: &Path) -> Vec<String> {
    let known = prompts::names();
    let is_known = |name: &str| name.strip_suffix(".md").is_none_or(|name| known.contains(&name));
    let listed = files::open_dir(folder).and_then(|dir| files::names(&dir, MAX_NAMES, |_| true));
    let names = listed.map(|(names, _)| names).unwrap_or_default();
    let names = names.iter().filter_map(|name| name.to_str()).filter(|name| !name.starts_with('.'));
    names.filter(|name| !is_known(name)).take(MAX_TOLD).map(sanitise).collect()
}

fn judge_prompts(fault: Option<String>, unread_names: &[String]) -> Check {
    let id = "data.prompts";
    match fault {
        Some(fault) => Check::fail(id, fault, REPAIR),
        None if !unread_names.is_empty() => {
            let said = format!("data/prompts has files that tasuki does not read: {}", unread_names.join(", "));
            Check::warn(id, said, format!("give each the name of a template: {}.md", prompts::names().join(".md, ")))
        }
        None => Check::ok(id, "every prompt is valid"),
    }
}

/// How many personas are valid, and what is wrong with the others.
#[derive(Debug, Default, PartialEq, Eq)]
struct Personas {
    good: usize,
    faults: Vec<String>,
}

fn gather_personas(folder: &Path, profiles: &[String]) -> Personas {
    let mut seen = Personas::default();
    let names = match files::open_dir(folder) {
        Ok(dir) => files::names(&dir, MAX_NAMES, |_| true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return seen,
        Err(error) => Err(error),
    };
    let mut names = match names {
        Ok((names, _)) => names,
        Err(error) => {
            seen.faults.push(format!("{} can't be read: {error}", folder.display()));
            return seen;
        }
    };
    names.sort();
    for name in names.iter().filter(|name| !name.as_encoded_bytes().starts_with(b".")) {
        let shown = sanitise(&name.to_string_lossy());
        match name.to_str().and_then(|name| name.parse::<Slug>().ok()) {
            Some(slug) => match fault_of_persona(folder, &slug, profiles) {
                None => seen.good += 1,
                Some(fault) => seen.faults.push(fault),
            },
            None if folder.join(name).join("skill.md").exists() => {
                seen.faults.push(format!("{shown} is not a valid persona name: use 1 to 64 of a-z, 0-9 and -"));
            }
            None => {}
        }
    }
    seen
}

fn fault_of_persona(folder: &Path, slug: &Slug, profiles: &[String]) -> Option<String> {
    let facts = match personas::facts(folder, slug) {
        Ok(facts) => facts,
        Err(error) => return Some(error.to_string()),
    };
    if !facts.has_skill {
        return Some(format!("{slug} has no skill.md"));
    }
    if let Err(error) = personas::read_texts(folder, slug) {
        return Some(error.to_string());
    }
    let is_unknown = |name: &String| !profiles.is_empty() && !profiles.contains(name);
    if let Some(profile) = hooks::profiles_of(&facts.file).into_iter().find(is_unknown) {
        return Some(format!("{slug} names a profile that does not exist: {}", sanitise(&profile)));
    }
    let handoffs = folder.join(slug.as_str()).join("handoffs");
    if handoffs.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
        return Some(format!("{slug}/handoffs is a link or a file: tasuki writes no documents there"));
    }
    if let Some(role) = facts.file.role.as_ref().filter(|role| !is_name(role)) {
        let is = "which no rule can name: a role is 1 to 64 of a-z, 0-9, _ and -";
        return Some(format!("{slug} has the role {}, {is}", sanitise(role)));
    }
    let cwd = facts.file.cwd.as_ref().filter(|cwd| cwd.starts_with('/') && !Path::new(cwd).is_dir());
    cwd.map(|cwd| format!("{slug} has a working folder that does not exist: {}", sanitise(cwd)))
}

fn judge_personas(seen: &Personas) -> Check {
    let id = "data.personas";
    if !seen.faults.is_empty() {
        let mut said = seen.faults.iter().take(MAX_TOLD).cloned().collect::<Vec<_>>().join("; ");
        if seen.faults.len() > MAX_TOLD {
            said.push_str(&format!("; and {} more", seen.faults.len() - MAX_TOLD));
        }
        return Check::fail(id, said, "fix these personas in HOME/data/personas; tasuki can't start agents with them");
    }
    match seen.good {
        0 => Check::warn(id, "there is no persona yet", "create one: tasuki persona new kai --profile demo"),
        1 => Check::ok(id, "1 persona, no problems"),
        count => Check::ok(id, format!("{count} personas, no problems")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::CheckState;
    use super::*;
    use std::fs;

    #[test]
    fn each_fault_of_a_persona_is_reported() {
        let dir = tempfile::tempdir().expect("a folder");
        let make = |name: &str, toml: &str, skill: bool| {
            fs::create_dir(dir.path().join(name)).expect("made");
            fs::write(dir.path().join(name).join("persona.toml"), toml).expect("written");
            if skill {
                fs::write(dir.path().join(name).join("skill.md"), "# A skill").expect("written");
            }
        };
        make("good", "profile = \"demo\"", true);
        make("Bad Name", "", true);
        make("typo", "profil = \"demo\"", true);
        make("skilless", "", false);
        make("stray", "profile = \"nobody\"", true);
        make("blank", "", true);
        fs::write(dir.path().join("blank/skill.md"), "\n").expect("written");
        make("linked", "", true);
        std::os::unix::fs::symlink("/tmp", dir.path().join("linked/handoffs")).expect("a link");
        make("actor", "role = \"Bad Role\"", true);
        make("second", "fallbacks = [{ profile = \"codx\" }]", true);
        make("lost", "cwd = \"/no/such/folder\"", true);
        let seen = gather_personas(dir.path(), &["demo".to_owned()]);
        assert_eq!((seen.good, seen.faults.len()), (1, 9), "{seen:?}");
        for word in [
            "Bad Name",
            "line 1",
            "skilless",
            "nobody",
            "codx",
            "Bad Role",
            "it is empty",
            "linked/handoffs",
            "/no/such/folder",
        ] {
            assert!(seen.faults.iter().any(|fault| fault.contains(word)), "{word}: {seen:?}");
        }
    }

    #[test]
    fn a_prompt_with_a_name_that_is_not_read_is_told() {
        let dir = tempfile::tempdir().expect("a folder");
        for name in ["instruction.md", "instructions.md", "notes.txt", ".hidden.md"] {
            fs::write(dir.path().join(name), "").expect("written");
        }
        let check = judge_prompts(None, &unread_names(dir.path()));
        assert!(check.state == CheckState::Warn && check.said.ends_with("not read: instructions.md"), "{}", check.said);
        assert!(check.fix.is_some_and(|fix| fix.contains("instruction.md, reply.md")));
        assert_eq!(judge_prompts(None, &unread_names(&dir.path().join("none"))).state, CheckState::Ok);
    }

    #[test]
    fn no_persona_is_a_warning_and_a_bad_one_a_failure() {
        assert_eq!(judge_personas(&Personas::default()).state, CheckState::Warn);
        assert_eq!(judge_personas(&Personas { good: 2, faults: Vec::new() }).state, CheckState::Ok);
        let many = judge_personas(&Personas { good: 1, faults: vec!["x".to_owned(); 5] });
        assert_eq!((many.state, many.said.as_str()), (CheckState::Fail, "x; x; x; and 2 more"));
    }
}
