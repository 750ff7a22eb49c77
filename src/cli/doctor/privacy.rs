//! Checks, on macOS, whether the home or a persona's working directory is in a folder that the system guards. macOS
//! asks the user before a program may read there, or refuses silently, above all if the program runs in the background.

use super::check::Check;
use super::ground::DoctorFacts;
use crate::config::Home;
use crate::personas;
use std::io;
use std::path::{Path, PathBuf};

/// The guarded folders in the user's own folder, each with the name that a person knows.
const GUARDED: [(&str, &str); 5] = [
    ("Documents", "Documents"),
    ("Desktop", "Desktop"),
    ("Downloads", "Downloads"),
    ("Library/Mobile Documents", "iCloud Drive"),
    ("Library/CloudStorage", "the folder of cloud drives"),
];
/// How many folders are tried at most.
const MOST_TRIED: usize = 50;
/// How many folders the finding names at most.
const MOST_TOLD: usize = 3;

const FIX: &str = "move it out of there; or give Full Disk Access (System Settings, Privacy & Security) to tasuki, and to the \
                   terminal from which the tmux server is started";

/// A folder that tasuki or an agent reads.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    what: String,
    path: PathBuf,
}

/// A folder inside a guarded folder, and what came of reading it.
#[derive(Debug)]
struct Tried {
    place: Place,
    guarded: &'static str,
    read: Result<(), String>,
}

pub(super) fn look(ground: &DoctorFacts) -> Vec<Check> {
    let own = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_path_buf());
    let Some(own) = own.filter(|_| cfg!(target_os = "macos")) else { return Vec::new() };
    let own = own.canonicalize().unwrap_or(own);
    vec![judge(&tried(places(&ground.home), &own))]
}

/// The home, and the working directories that personas name.
fn places(home: &Home) -> Vec<Place> {
    let mut places = vec![Place { what: "the home".to_owned(), path: home.root().to_path_buf() }];
    // Another check reports what is wrong with a persona.
    for slug in personas::list(&home.personas()).unwrap_or_default() {
        let file = personas::facts(&home.personas(), &slug).map(|facts| facts.file).unwrap_or_default();
        if let Some(cwd) = file.cwd {
            let path = PathBuf::from(cwd);
            let path = path.canonicalize().unwrap_or(path);
            places.push(Place { what: format!("the working directory of persona {slug}"), path });
        }
    }
    places
}

/// Reads those of the folders that are guarded. `own`: the user's own folder.
fn tried(places: Vec<Place>, own: &Path) -> Vec<Tried> {
    let guarded = places.into_iter().filter_map(|place| Some((guarded(&place.path, own)?, place)));
    guarded.take(MOST_TRIED).map(|(guarded, place)| Tried { read: read(&place.path), place, guarded }).collect()
}

/// The guarded folder in which a path is. Upper and lower case count as the same, as in the
/// file system of most Macs.
fn guarded(path: &Path, own: &Path) -> Option<&'static str> {
    let rest: Vec<String> =
        path.strip_prefix(own).ok()?.iter().map(|part| part.to_string_lossy().to_lowercase()).collect();
    let is_in = |folder: &str| {
        let folder: Vec<String> = folder.split('/').map(str::to_lowercase).collect();
        rest.starts_with(&folder)
    };
    GUARDED.into_iter().find(|(folder, _)| is_in(folder)).map(|(_, name)| name)
}

fn read(path: &Path) -> Result<(), String> {
    let first = || -> io::Result<()> {
        std::fs::read_dir(path)?.next().transpose()?;
        Ok(())
    };
    first().map_err(|error| error.to_string())
}

fn judge(tried: &[Tried]) -> Check {
    let id = "privacy.folders";
    if tried.is_empty() {
        return Check::ok(id, "neither the home nor a persona's working directory is in a folder that macOS guards");
    }
    let (refused, readable): (Vec<&Tried>, Vec<&Tried>) = tried.iter().partition(|tried| tried.read.is_err());
    if refused.is_empty() {
        let said = format!(
            "{}: macOS guards it. This shell can read it; the service, or a tmux server that another program has started, \
             may be refused",
            named(&readable)
        );
        return Check::warn(id, said, FIX);
    }
    let why = refused.iter().find_map(|tried| tried.read.as_ref().err()).map_or("", String::as_str);
    Check::fail(id, format!("{} can't be read ({why}): macOS guards it", named(&refused)), FIX)
}

fn named(tried: &[&Tried]) -> String {
    let mut names: Vec<String> = tried
        .iter()
        .take(MOST_TOLD)
        .map(|tried| format!("{} ({}, in {})", tried.place.what, tried.place.path.display(), tried.guarded))
        .collect();
    if tried.len() > MOST_TOLD {
        names.push(format!("{} more", tried.len() - MOST_TOLD));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::check::CheckState;
    use super::*;

    fn place(path: &Path) -> Place {
        Place { what: "the home".to_owned(), path: path.to_owned() }
    }

    #[test]
    fn the_folders_that_macos_guards_are_known_in_any_case() {
        let own = Path::new("/Users/ada");
        let table = [
            ("/Users/ada/Documents", Some("Documents")),
            ("/Users/ada/documents/work/home", Some("Documents")),
            ("/Users/ada/Desktop/a", Some("Desktop")),
            ("/Users/ada/Downloads/a", Some("Downloads")),
            ("/Users/ada/Library/Mobile Documents/com~apple~CloudDocs/a", Some("iCloud Drive")),
            ("/Users/ada/Library/CloudStorage/Drive/a", Some("the folder of cloud drives")),
            ("/Users/ada/Library/Application Support/tasuki", None),
            ("/Users/ada/Documents2/a", None),
            ("/Users/ada/src/Documents", None),
            ("/Users/ada", None),
            ("/Users/bob/Documents", None),
        ];
        for (path, expected) in table {
            assert_eq!(guarded(Path::new(path), own), expected, "{path}");
        }
    }

    #[test]
    fn a_guarded_folder_is_read_and_named_with_what_to_do() {
        let dir = tempfile::tempdir().expect("a folder");
        let (documents, desktop) = (dir.path().join("Documents/home"), dir.path().join("Desktop/gone"));
        std::fs::create_dir_all(&documents).expect("made");
        let free = place(&dir.path().join("src"));
        assert_eq!(judge(&tried(vec![free.clone()], dir.path())).state, CheckState::Ok);
        let readable = judge(&tried(vec![free, place(&documents)], dir.path()));
        assert_eq!(readable.state, CheckState::Warn);
        assert!(readable.said.contains("Documents/home, in Documents"), "{}", readable.said);
        let refused = judge(&tried(vec![place(&documents), place(&desktop)], dir.path()));
        assert_eq!(refused.state, CheckState::Fail);
        assert!(refused.said.contains("Desktop/gone") && !refused.said.contains("Documents/home"), "{}", refused.said);
        assert!(refused.fix.is_some_and(|fix| fix.contains("Full Disk Access")));
        let many = judge(&tried(vec![place(&documents); 5], dir.path()));
        assert!(many.said.contains("2 more"), "{}", many.said);
    }

    #[test]
    fn the_home_and_the_working_directories_of_personas_are_looked_at() {
        let dir = tempfile::tempdir().expect("a folder");
        let home = Home::at(dir.path()).expect("a home");
        let persona = home.personas().join("kai");
        std::fs::create_dir_all(&persona).expect("made");
        std::fs::write(persona.join("skill.md"), "# Kai\n").expect("written");
        std::fs::write(persona.join("persona.toml"), "cwd = \"/no/such/folder\"\n").expect("written");
        let found = places(&home);
        assert_eq!(found[0], place(home.root()));
        let cwd = Place { what: "the working directory of persona kai".to_owned(), path: "/no/such/folder".into() };
        assert_eq!(found[1..], [cwd]);
    }
}
