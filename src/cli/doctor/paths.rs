//! The home's folders and its configuration, by the rules that the sidecar itself has at its start.

use super::check::{Check, Mend};
use super::ground::Ground;
use crate::agents::hook;
use crate::clock::Clock;
use crate::core::text::shell_word;
use crate::files::{self, Meta};
use crate::spool::survey::{Fault, Part, Survey, survey};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// What writers have left is told when it is older than this, in milliseconds.
const OLD_MS: i64 = 24 * 3_600_000;

/// What was gathered.
struct Facts {
    root: PathBuf,
    survey: std::io::Result<Option<Survey>>,
    config: Config,
    database: Database,
    now_ms: i64,
}

/// How the configuration is.
enum Config {
    Absent,
    Good(PathBuf),
    /// What is wrong, and the mode that would mend it.
    Wrong(String, Option<(PathBuf, u32)>),
}

/// What lies where the state file should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Database {
    Absent,
    Good,
    Empty,
    /// A link, a folder, or somebody else's.
    Strange,
}

/// Looks at them.
pub(super) fn look(ground: &Ground) -> Vec<Check> {
    let root = ground.home.root().to_path_buf();
    let facts = Facts {
        survey: survey(&root, hook::is_probe),
        config: config(ground),
        database: database(&ground.home.state().join("tasuki.redb")),
        now_ms: Clock::new().now().wall_ms,
        root,
    };
    judge(&facts)
}

fn config(ground: &Ground) -> Config {
    let path = ground.home.config();
    match &ground.config {
        Ok(_) if path.exists() => Config::Good(path),
        Ok(_) => Config::Absent,
        Err(said) => {
            let meta = nix::sys::stat::lstat(&path).ok().map(Meta::from);
            let loose = meta.filter(|meta| meta.is_file() && meta.is_ours() && meta.mode & 0o022 != 0);
            Config::Wrong(said.clone(), loose.map(|meta| (path, meta.mode & !0o022)))
        }
    }
}

fn database(path: &Path) -> Database {
    match std::fs::symlink_metadata(path) {
        Err(_) => Database::Absent,
        Ok(meta) if meta.file_type().is_fifo() || !meta.is_file() => Database::Strange,
        Ok(meta) if std::os::unix::fs::MetadataExt::uid(&meta) != nix::unistd::geteuid().as_raw() => Database::Strange,
        Ok(meta) if meta.len() == 0 => Database::Empty,
        Ok(_) => Database::Good,
    }
}

fn judge(facts: &Facts) -> Vec<Check> {
    let root = facts.root.display();
    let mut checks = match &facts.survey {
        Err(error) => {
            return vec![Check::fail(
                "paths.home",
                format!("{root} can't be looked at: {error}"),
                "look at the path; --home or TASUKI_HOME names another",
            )];
        }
        Ok(None) => {
            let begin = format!(
                "begin with: tasuki run --home {}, and in another pane: tasuki persona new kai",
                word(&facts.root)
            );
            vec![Check::warn("paths.home", format!("there is no home yet at {root}"), begin)]
        }
        Ok(Some(survey)) => folders(facts, survey),
    };
    checks.push(match &facts.config {
        Config::Absent => Check::ok("paths.config", "there is no config.toml: all is as by default"),
        Config::Good(path) => Check::ok("paths.config", format!("{} is right", path.display())),
        Config::Wrong(said, None) => Check::fail(
            "paths.config",
            said,
            "mend that line (tasuki schema config tells every key); a running sidecar has kept what it had",
        ),
        Config::Wrong(said, Some((path, mode))) => {
            Check::fail("paths.config", said, format!("chmod go-w {}", word(path)))
                .mend(Mend::Modes(vec![(path.clone(), *mode)]))
        }
    });
    checks
}

/// A path as a shell takes it.
fn word(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

fn folders(facts: &Facts, survey: &Survey) -> Vec<Check> {
    let mut checks = vec![Check::ok("paths.home", facts.root.display().to_string())];
    let parts = [
        (Part::Above, "paths.above", "nobody else can replace the home or a folder above it"),
        (Part::Spool, "paths.spool", "spool/ is yours alone"),
        (Part::State, "paths.state", "state/ is yours alone"),
        (Part::View, "paths.view", "nobody else can write in view/"),
    ];
    for (part, id, good) in parts {
        let faults: Vec<&Fault> = survey.faults.iter().filter(|fault| fault.part == part).collect();
        checks.push(if faults.is_empty() { Check::ok(id, good) } else { fault(id, &faults, &facts.root) });
    }
    checks.push(missing(survey));
    checks.push(match facts.database {
        Database::Good => Check::ok("paths.database", "state/tasuki.redb is there"),
        Database::Absent => Check::skipped("paths.database", "there is no state yet; the sidecar begins it"),
        Database::Empty => Check::fail(
            "paths.database",
            "state/tasuki.redb is empty, and so no state",
            "put it back from a backup, or move it away to begin anew: what was handed off before is forgotten then",
        ),
        Database::Strange => Check::fail(
            "paths.database",
            "state/tasuki.redb is no plain file of yours",
            "look at what lies there, and move it away",
        ),
    });
    checks.push(left(survey, facts.now_ms));
    checks
}

fn fault(id: &str, faults: &[&Fault], root: &Path) -> Check {
    let parts: Vec<(String, Option<&str>)> = faults.iter().map(|fault| fault.error.parts()).collect();
    let said = parts.iter().map(|(said, _)| said.as_str()).collect::<Vec<_>>().join("; ");
    let mut fixes: Vec<&str> = parts.iter().filter_map(|(_, fix)| *fix).collect();
    fixes.dedup();
    let fix = if fixes.is_empty() { "look at what lies there".to_owned() } else { fixes.join("; ") };
    let check = Check::fail(id, said, fix);
    // A folder above the home is not ours to change.
    let own = |path: &Path| root.canonicalize().is_ok_and(|root| path.starts_with(root));
    let modes: Option<Vec<(PathBuf, u32)>> =
        faults.iter().map(|fault| fault.chmod.clone().filter(|(path, _)| own(path))).collect();
    match modes {
        Some(modes) => check.mend(Mend::Modes(modes)),
        None => check,
    }
}

fn missing(survey: &Survey) -> Check {
    let id = "paths.folders";
    if survey.missing.is_empty() {
        return Check::ok(id, "every folder is there");
    }
    let first = survey.missing[0].display();
    let more = match survey.missing.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Check::warn(
        id,
        format!("missing: {first}{more}"),
        "the sidecar makes them when it starts; doctor --fix makes them too",
    )
    .mend(Mend::Folders(survey.missing.clone()))
}

fn left(survey: &Survey, now_ms: i64) -> Check {
    let id = "paths.left_over";
    let is_old = |changed_ms: i64| now_ms.saturating_sub(changed_ms) > OLD_MS;
    let old: Vec<PathBuf> =
        survey.left.iter().filter(|left| is_old(left.changed_ms)).map(|left| left.path.clone()).collect();
    match old.len() {
        0 => Check::ok(id, "nothing was left behind by writers that were killed"),
        count => {
            let said = format!("{count} temporary files in spool/ are older than a day");
            Check::warn(id, said, "a running sidecar removes them in time; doctor --fix does so now")
                .mend(Mend::Left(old))
        }
    }
}

/// Gives a folder or file of ours a mode; nothing that is a link or somebody else's.
///
/// # Errors
/// What the system says, or that it is not ours.
pub(super) fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    let (file, meta) = files::open(path)?;
    if !meta.is_ours() || !(meta.is_dir() || (meta.is_file() && meta.links == 1)) {
        return Err(std::io::Error::other("it is not ours, or has another name too"));
    }
    let bits = nix::libc::mode_t::try_from(mode & 0o7777).unwrap_or(0o700);
    nix::sys::stat::fchmod(&file, nix::sys::stat::Mode::from_bits_truncate(bits))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;
    use crate::spool::survey::Left;

    fn facts() -> Facts {
        Facts {
            root: PathBuf::from("/h"),
            survey: Ok(Some(Survey::default())),
            config: Config::Absent,
            database: Database::Good,
            now_ms: 10 * OLD_MS,
        }
    }

    fn bad(facts: &Facts) -> Vec<(String, State)> {
        let wanted = |check: &Check| matches!(check.state, State::Warn | State::Fail);
        judge(facts).into_iter().filter(wanted).map(|check| (check.id, check.state)).collect()
    }

    #[test]
    fn each_fact_has_its_judgement() {
        let left = |age_ms: i64| Left { path: PathBuf::from("/h/spool/tmp/a"), changed_ms: 10 * OLD_MS - age_ms };
        let with = |change: &dyn Fn(&mut Facts)| {
            let mut facts = facts();
            change(&mut facts);
            bad(&facts)
        };
        let survey = |survey: Survey| {
            with(&|facts| {
                facts.survey =
                    Ok(Some(Survey { left: survey.left.clone(), missing: survey.missing.clone(), faults: Vec::new() }))
            })
        };
        assert_eq!(bad(&facts()), []);
        assert_eq!(with(&|facts| facts.survey = Ok(None)), [("paths.home".to_owned(), State::Warn)]);
        assert_eq!(with(&|facts| facts.database = Database::Empty), [("paths.database".to_owned(), State::Fail)]);
        assert_eq!(with(&|facts| facts.database = Database::Strange), [("paths.database".to_owned(), State::Fail)]);
        assert_eq!(with(&|facts| facts.database = Database::Absent), []);
        let wrong = |facts: &mut Facts| facts.config = Config::Wrong("line 3".to_owned(), None);
        assert_eq!(with(&wrong), [("paths.config".to_owned(), State::Fail)]);
        assert_eq!(survey(Survey { left: vec![left(OLD_MS / 2)], ..Survey::default() }), []);
        assert_eq!(
            survey(Survey { left: vec![left(2 * OLD_MS)], ..Survey::default() }),
            [("paths.left_over".to_owned(), State::Warn)]
        );
        let gone = Survey { missing: vec![PathBuf::from("/h/view")], ..Survey::default() };
        assert_eq!(survey(gone), [("paths.folders".to_owned(), State::Warn)]);
    }

    #[test]
    fn a_mode_is_set_on_our_own_and_never_through_a_link() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a folder");
        let (folder, link) = (dir.path().join("f"), dir.path().join("l"));
        std::fs::create_dir(&folder).expect("made");
        std::os::unix::fs::symlink(&folder, &link).expect("a link");
        set_mode(&folder, 0o750).expect("ours");
        assert!(set_mode(&link, 0o777).is_err());
        assert_eq!(std::fs::metadata(&folder).expect("there").permissions().mode() & 0o7777, 0o750);
    }
}
