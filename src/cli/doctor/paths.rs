//! Checks the home's folders and its configuration by the rules that the sidecar applies at its start.

use super::check::{Check, Repair};
use super::ground::DoctorFacts;
use crate::agents::hook;
use crate::cli::needs;
use crate::cli::unread::Unread;
use crate::clock::Clock;
use crate::config::Home;
use crate::core::text::shell_word;
use crate::files::{self, Meta};
use crate::spool::survey::{Part, Survey, SurveyFault, survey};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Files that writers left behind are reported when they are older than this, in milliseconds.
const OLD_MS: i64 = 24 * 3_600_000;

struct Facts {
    root: PathBuf,
    survey: std::io::Result<Option<Survey>>,
    config: Config,
    database: Database,
    /// The views and error files that can't be read.
    unread: Unread,
    now_ms: i64,
}

enum Config {
    Absent,
    Good(PathBuf),
    /// What is wrong; and the file with the mode that would repair it, if its mode is what is wrong.
    Wrong(String, Option<(PathBuf, u32)>),
}

/// What is at the path of the state file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Database {
    Absent,
    Good,
    Empty,
    /// Not a regular file, or another user's.
    Strange,
}

pub(super) fn look(ground: &DoctorFacts) -> Vec<Check> {
    let root = ground.home.root().to_path_buf();
    let facts = Facts {
        survey: survey(&root, hook::is_probe),
        config: config(ground),
        database: database(&ground.home.state().join("tasuki.redb")),
        unread: unread(&ground.home),
        now_ms: Clock::new().now().wall_ms,
        root,
    };
    judge(&facts)
}

/// The files that can't be read of those from which `tasuki status` makes its list.
fn unread(home: &Home) -> Unread {
    let mut unread = Unread::default();
    let found = unread.note(needs::read(home).map(Some));
    found.map_or(unread, |found| found.unread)
}

fn config(ground: &DoctorFacts) -> Config {
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
                format!("{root} can't be read: {error}"),
                "check the path; choose another home with --home or TASUKI_HOME",
            )];
        }
        Ok(None) => {
            let begin = format!(
                "start with: tasuki run --home {}, then in another pane: tasuki persona new kai",
                word(&facts.root)
            );
            vec![Check::warn("paths.home", format!("there is no tasuki home at {root} yet"), begin)]
        }
        Ok(Some(survey)) => folders(facts, survey),
    };
    checks.push(match &facts.config {
        Config::Absent => Check::ok("paths.config", "there is no config.toml: all settings have their defaults"),
        Config::Good(path) => Check::ok("paths.config", format!("{} is valid", path.display())),
        Config::Wrong(said, None) => Check::fail(
            "paths.config",
            said,
            "fix that file (tasuki schema config lists every key); a running sidecar keeps its previous settings",
        ),
        Config::Wrong(said, Some((path, mode))) => {
            Check::fail("paths.config", said, format!("chmod go-w {}", word(path)))
                .repair(Repair::Modes(vec![(path.clone(), *mode)]))
        }
    });
    checks
}

/// A path, quoted for a shell.
fn word(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

fn folders(facts: &Facts, survey: &Survey) -> Vec<Check> {
    let mut checks = vec![Check::ok("paths.home", facts.root.display().to_string())];
    let parts = [
        (Part::HomeOrAbove, "paths.above", "nobody else can replace the home or a folder above it"),
        (Part::Spool, "paths.spool", "only you can access spool/"),
        (Part::State, "paths.state", "only you can access state/"),
        (Part::View, "paths.view", "nobody else can write to view/"),
    ];
    for (part, id, good) in parts {
        let faults: Vec<&SurveyFault> = survey.faults.iter().filter(|fault| fault.part == part).collect();
        checks.push(if faults.is_empty() { Check::ok(id, good) } else { fault(id, &faults, &facts.root) });
    }
    checks.push(match facts.unread.first() {
        None => Check::ok("paths.unread", "every view and error file can be read"),
        Some((count, why)) => {
            let files =
                if count == 1 { "1 view or error file".to_owned() } else { format!("{count} views or error files") };
            let fix = "make them readable again (chmod u+r), or check the disk; commands leave out what they show";
            Check::fail("paths.unread", format!("{files} can't be read: {why}"), facts.unread.remedy().unwrap_or(fix))
        }
    });
    checks.push(missing(survey));
    checks.push(match facts.database {
        Database::Good => Check::ok("paths.database", "state/tasuki.redb exists"),
        Database::Absent => Check::skipped("paths.database", "the sidecar has not created state/tasuki.redb yet"),
        Database::Empty => Check::fail(
            "paths.database",
            "state/tasuki.redb is empty",
            "restore the file from a backup, or move it away to start empty: tasuki then forgets earlier handoffs",
        ),
        Database::Strange => Check::fail(
            "paths.database",
            "state/tasuki.redb is not a regular file that you own",
            "if another user owns state/tasuki.redb, give it back to yours (chown); otherwise look at it and move it away",
        ),
    });
    checks.push(left(survey, facts.now_ms));
    checks
}

fn fault(id: &str, faults: &[&SurveyFault], root: &Path) -> Check {
    let parts: Vec<(String, Option<&str>)> = faults.iter().map(|fault| fault.error.parts()).collect();
    let said = parts.iter().map(|(said, _)| said.as_str()).collect::<Vec<_>>().join("; ");
    let mut fixes: Vec<&str> = parts.iter().filter_map(|(_, fix)| *fix).collect();
    fixes.dedup();
    let fix = if fixes.is_empty() { "look at the named files and folders".to_owned() } else { fixes.join("; ") };
    let check = Check::fail(id, said, fix);
    // tasuki does not change folders above the home.
    let own = |path: &Path| root.canonicalize().is_ok_and(|root| path.starts_with(root));
    let modes: Option<Vec<(PathBuf, u32)>> =
        faults.iter().map(|fault| fault.chmod.clone().filter(|(path, _)| own(path))).collect();
    match modes {
        Some(modes) => check.repair(Repair::Modes(modes)),
        None => check,
    }
}

fn missing(survey: &Survey) -> Check {
    let id = "paths.folders";
    if survey.missing.is_empty() {
        return Check::ok(id, "every folder exists");
    }
    let first = survey.missing[0].display();
    let more = match survey.missing.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Check::warn(
        id,
        format!("missing: {first}{more}"),
        "the sidecar creates these folders when it starts; doctor --fix creates them too",
    )
    .repair(Repair::Folders(survey.missing.clone()))
}

fn left(survey: &Survey, now_ms: i64) -> Check {
    let id = "paths.left_over";
    let is_old = |changed_ms: i64| now_ms.saturating_sub(changed_ms) > OLD_MS;
    let old: Vec<PathBuf> =
        survey.leftovers.iter().filter(|left| is_old(left.changed_ms)).map(|left| left.path.clone()).collect();
    match old.len() {
        0 => Check::ok(id, "no temporary files are left over"),
        count => {
            let said = format!("{count} temporary files in spool/ are older than a day");
            Check::warn(id, said, "a running sidecar removes these files later; doctor --fix removes them now")
                .repair(Repair::Left(old))
        }
    }
}

/// Sets the mode of a folder or file of ours; never of a link or of somebody else's file.
///
/// # Errors
/// The system's error; or it is not ours, or a file with several names.
pub(super) fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    let (file, meta) = files::open(path)?;
    if !meta.is_ours() || !(meta.is_dir() || (meta.is_file() && meta.links == 1)) {
        return Err(std::io::Error::other("it does not belong to you, or has more than one name"));
    }
    let bits = nix::libc::mode_t::try_from(mode & 0o7777).unwrap_or(0o700);
    nix::sys::stat::fchmod(&file, nix::sys::stat::Mode::from_bits_truncate(bits))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::check::CheckState;
    use super::*;
    use crate::cli::error::CliError;
    use crate::spool::survey::LeftoverFile;

    fn facts() -> Facts {
        Facts {
            root: PathBuf::from("/h"),
            survey: Ok(Some(Survey::default())),
            config: Config::Absent,
            database: Database::Good,
            unread: Unread::default(),
            now_ms: 10 * OLD_MS,
        }
    }

    fn bad(facts: &Facts) -> Vec<(String, CheckState)> {
        let wanted = |check: &Check| matches!(check.state, CheckState::Warn | CheckState::Fail);
        judge(facts).into_iter().filter(wanted).map(|check| (check.id, check.state)).collect()
    }

    #[test]
    fn each_fact_has_its_judgement() {
        let left =
            |age_ms: i64| LeftoverFile { path: PathBuf::from("/h/spool/tmp/a"), changed_ms: 10 * OLD_MS - age_ms };
        let with = |change: &dyn Fn(&mut Facts)| {
            let mut facts = facts();
            change(&mut facts);
            bad(&facts)
        };
        let survey = |survey: Survey| {
            with(&|facts| {
                facts.survey = Ok(Some(Survey {
                    leftovers: survey.leftovers.clone(),
                    missing: survey.missing.clone(),
                    faults: Vec::new(),
                }))
            })
        };
        assert_eq!(bad(&facts()), []);
        assert_eq!(with(&|facts| facts.survey = Ok(None)), [("paths.home".to_owned(), CheckState::Warn)]);
        assert_eq!(with(&|facts| facts.database = Database::Empty), [("paths.database".to_owned(), CheckState::Fail)]);
        assert_eq!(
            with(&|facts| facts.database = Database::Strange),
            [("paths.database".to_owned(), CheckState::Fail)]
        );
        assert_eq!(with(&|facts| facts.database = Database::Absent), []);
        let torn =
            |facts: &mut Facts| facts.unread.note(Err::<Option<()>, _>(CliError::refused("file", "no"))).unwrap_or(());
        assert_eq!(with(&torn), [("paths.unread".to_owned(), CheckState::Fail)]);
        let wrong = |facts: &mut Facts| facts.config = Config::Wrong("line 3".to_owned(), None);
        assert_eq!(with(&wrong), [("paths.config".to_owned(), CheckState::Fail)]);
        assert_eq!(survey(Survey { leftovers: vec![left(OLD_MS / 2)], ..Survey::default() }), []);
        assert_eq!(
            survey(Survey { leftovers: vec![left(2 * OLD_MS)], ..Survey::default() }),
            [("paths.left_over".to_owned(), CheckState::Warn)]
        );
        let gone = Survey { missing: vec![PathBuf::from("/h/view")], ..Survey::default() };
        assert_eq!(survey(gone), [("paths.folders".to_owned(), CheckState::Warn)]);
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
