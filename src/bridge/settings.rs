//! `fleet.toml`: how to reach the server, who may ask this host for what, and more. A wrong key is an error that names
//! file, key and line: the bridge does not guess who may run code here.

use super::folder::FleetFolder;
use crate::cli::error::CliError;
use crate::core::host::HostName;
use crate::core::text::{line_of, quotable, quotable_key};
use crate::exit;
use crate::files::Grade;
use crate::fleet::{Accepts, Right};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::libc;
use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Deserializer};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use toml_edit::{Array, DocumentMut, Item, Table};

/// The file's name.
pub(super) const FILE: &str = "fleet.toml";
/// The file that is locked while a command changes the settings.
const LOCK: &str = "fleet.toml.lock";
/// How long a command waits while another command changes the file.
const LOCK_WITHIN: Duration = Duration::from_secs(10);
/// The pause between two tries to take the lock.
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(20);
/// The largest such file, in bytes.
const MOST_BYTES: u64 = 1 << 20;
/// The most characters of a key that a message quotes, and the most of the parser's own message.
const MOST_QUOTED: usize = 400;
/// The highest age that a request may be allowed to reach before it is carried out.
pub(super) const LONGEST_TTL: Duration = Duration::from_secs(7 * 24 * 3_600);

/// What `fleet.toml` says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FleetSettings {
    /// How to reach the server, where that differs from the ticket.
    pub(crate) server: ServerSettings,
    /// Who may ask this host for what.
    pub(crate) accept: Accepts,
    /// An earlier version took this key and never used it. A file that has it is still valid.
    pub(crate) places: IgnoredAny,
    /// What other hosts see of this one.
    pub(crate) show: ShowSettings,
    /// The command that prints both seeds of this host, if the file `key` is not to have them: program, then arguments.
    pub(crate) key_command: Vec<String>,
    /// How old this host's requests to others may become.
    pub(crate) ttl: Ttl,
}

/// `[server]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServerSettings {
    /// The addresses of the server; if there are none, those of the ticket count.
    pub(crate) urls: Vec<String>,
    /// The file with the certificate of the server's authority.
    pub(crate) ca: Option<PathBuf>,
    /// The domain of the server's streams.
    pub(crate) domain: Option<String>,
    /// Whether a server on another machine may be reached without encryption.
    pub(crate) plaintext: bool,
    /// Whether the server is reached by websocket at port 443, for a network that lets nothing else out.
    pub(crate) websocket: bool,
}

/// `[show]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ShowSettings {
    /// Personas that other hosts are not told of.
    pub(crate) hide: Vec<String>,
    /// Whether other hosts are told of the last lines of the journal: number, time and type of each.
    pub(crate) journal: bool,
}

/// `[ttl]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Ttl {
    /// How old a request may become if it names no `ttl` of its own.
    #[serde(deserialize_with = "time")]
    pub(crate) default: Duration,
}

impl Default for Ttl {
    fn default() -> Ttl {
        Ttl { default: Duration::from_secs(600) }
    }
}

/// Reads a time such as `10m`.
///
/// # Errors
/// It is not a time, shorter than a millisecond, or longer than seven days.
pub(super) fn parse_ttl(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|_| format!("{text:?} is not a time such as 10m"))?;
    if time > LONGEST_TTL || time.as_millis() == 0 {
        Err("it must be at least 1ms and at most 7d".to_owned())
    } else {
        Ok(time)
    }
}

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    parse_ttl(&String::deserialize(from)?).map_err(D::Error::custom)
}

impl FleetSettings {
    /// Reads the file. If there is none, the defaults count: nobody may ask for anything.
    ///
    /// # Errors
    /// A key or a value is wrong; the message names file, key and line. Or the file can't be read.
    pub(crate) fn load(folder: &FleetFolder) -> Result<FleetSettings, CliError> {
        Self::parse(folder, &text(folder)?)
    }

    fn parse(folder: &FleetFolder, text: &str) -> Result<FleetSettings, CliError> {
        let wrong = |key: &str, span, message: &str| {
            let path = folder.path("", FILE);
            let (key, line) = (quotable_key(key, MOST_QUOTED), line_of(text, span));
            let message = quotable(message.trim(), MOST_QUOTED);
            CliError::config("config", format!("{}, line {line}: {key}: {message}.", path.display()))
        };
        let parsed = toml::Deserializer::parse(text);
        let parsed = parsed.map_err(|error| wrong("syntax", error.span(), error.message()))?;
        let settings: FleetSettings = serde_path_to_error::deserialize(parsed)
            .map_err(|error| wrong(&error.path().to_string(), error.inner().span(), error.inner().message()))?;
        let odd = settings.accept.odd_names().next().map(|name| format!("accept.{name}"));
        match odd {
            Some(key) => Err(wrong(&key, None, "it is neither a host's name nor \"*\"")),
            None => Ok(settings),
        }
    }
}

fn text(folder: &FleetFolder) -> Result<String, CliError> {
    let bytes = folder.read_small("", FILE, MOST_BYTES)?.unwrap_or_default();
    let path = folder.path("", FILE);
    String::from_utf8(bytes).map_err(|_| CliError::config("config", format!("{} is not UTF-8.", path.display())))
}

/// The rights that the entry of a host is to have; none removes the entry.
type ChangedRights = Option<Vec<Right>>;

/// Changes the rights of one host in the file. `change` gets the rights that the host has now: those of its own entry,
/// or else those of `*`. If two commands change the file at once, one waits for the other. The rest of the file stays
/// as it is.
///
/// # Errors
/// The file is wrong already, or can't be locked or written; then it is as it was. If only its folder can't be synced,
/// it is changed.
pub(crate) fn change_rights(
    folder: &FleetFolder,
    host: &str,
    change: impl FnOnce(Vec<Right>) -> ChangedRights,
) -> Result<(), CliError> {
    let _lock = lock(folder)?;
    let rights = change(rights_now(&FleetSettings::load(folder)?, host));
    write_rights(folder, host, rights.as_deref())
}

/// The rights that a host has now: those of its own entry, or else those of `*`.
pub(crate) fn rights_now(settings: &FleetSettings, host: &str) -> Vec<Right> {
    let rights = match host.parse::<HostName>() {
        Ok(host) => settings.accept.of(&host),
        Err(_) => settings.accept.entry(host).unwrap_or_default(),
    };
    rights.into_iter().collect()
}

/// Takes the lock for changes of the file; waits for another command for at most [`LOCK_WITHIN`]. The lock is a file of
/// its own, because each change replaces `fleet.toml` whole.
fn lock(folder: &FleetFolder) -> Result<Flock<File>, CliError> {
    let path = folder.path("", LOCK);
    let failed = |error: io::Error| CliError::file("Can't lock", &path, &error);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(&path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is not a plain file")));
    }
    let (mut file, until) = (file, Instant::now() + LOCK_WITHIN);
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(held) => return Ok(held),
            Err((again, Errno::EWOULDBLOCK)) if Instant::now() < until => file = again,
            Err((_, Errno::EWOULDBLOCK)) => {
                let settings = folder.path("", FILE);
                let message = format!(
                    "Another command is changing {} and does not end. Nothing was changed.",
                    settings.display()
                );
                return Err(CliError::new(exit::TRY_AGAIN, "settings_busy", message));
            }
            Err((_, error)) => return Err(failed(error.into())),
        }
        std::thread::sleep(LOCK_RETRY_PAUSE);
    }
}

/// Writes the rights of one host into the file.
fn write_rights(folder: &FleetFolder, host: &str, rights: Option<&[Right]>) -> Result<(), CliError> {
    let path = folder.path("", FILE);
    let broken = |error: &dyn std::fmt::Display| CliError::config("config", format!("{}: {error}.", path.display()));
    let mut file: DocumentMut = text(folder)?.parse().map_err(|error: toml_edit::TomlError| broken(&error))?;
    let accept = file.entry("accept").or_insert_with(|| Item::Table(Table::new()));
    let accept = accept.as_table_like_mut().expect("it was read as one");
    match rights {
        Some(rights) => {
            let words: Array = rights.iter().map(|right| right.as_str()).collect();
            match accept.get_mut(host).and_then(Item::as_value_mut) {
                // Spaces and comments around the entry's value stay.
                Some(entry) => {
                    let around = entry.decor().clone();
                    *entry = words.into();
                    *entry.decor_mut() = around;
                }
                None => drop(accept.insert(host, toml_edit::value(words))),
            }
        }
        None => drop(accept.remove(host)),
    }
    let text = file.to_string();
    FleetSettings::parse(folder, &text)?;
    folder.write("", FILE, text.as_bytes(), Grade::Durable)
}

/// Removes all rights from the file: they were given to hosts of a fleet that this home leaves.
///
/// # Errors
/// The file is wrong already, or can't be locked or written. The entries of some hosts may be removed by then.
pub(crate) fn forget_rights(folder: &FleetFolder) -> Result<(), CliError> {
    let hosts: Vec<String> = FleetSettings::load(folder)?.accept.names().map(str::to_owned).collect();
    hosts.iter().try_for_each(|host| change_rights(folder, host, |_| None))
}

/// The rights that a host has here, in words.
#[must_use]
pub(crate) fn rights_in_words(accepts: &Accepts, host: &HostName) -> String {
    let words: Vec<&str> = accepts.of(host).into_iter().map(Right::as_str).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::super::folder::of_test;
    use super::*;

    fn set_rights(folder: &FleetFolder, host: &str, rights: Option<&[Right]>) -> Result<(), CliError> {
        change_rights(folder, host, |_| rights.map(<[Right]>::to_vec))
    }

    #[test]
    fn without_a_file_nobody_may_ask_for_anything() {
        let (_dir, _, folder) = of_test();
        let settings = FleetSettings::load(&folder).expect("the defaults");
        assert!(!settings.accept.allows(&"a".parse().expect("a name"), "view"));
        assert_eq!(settings.ttl.default, Duration::from_secs(600));
    }

    #[test]
    fn a_key_that_is_not_used_any_more_makes_no_file_wrong() {
        let (_dir, _, folder) = of_test();
        for text in ["[places]\n\"github.com/a/b\" = \"/src/b\"\n", "places = 1\n"] {
            folder.write("", FILE, text.as_bytes(), Grade::Fast).expect("written");
            FleetSettings::load(&folder).expect(text);
        }
    }

    #[test]
    fn a_wrong_key_is_named_with_its_line() {
        let (_dir, _, folder) = of_test();
        for (text, told) in [
            ("[accept]\na = [\"everything\"]\n", "line 2: accept.a"),
            ("[accept]\n\"A b\" = [\"view\"]\n", "neither a host's name"),
            ("\n[ttl]\ndefault = \"8d\"\n", "at most 7d"),
            ("[ttl]\ndefault = \"1ns\"\n", "at least 1ms"),
            ("[server]\nurl = \"tls://a:1\"\n", "line 2: server.url"),
            ("[", "line 1: syntax"),
        ] {
            folder.write("", FILE, text.as_bytes(), Grade::Fast).expect("written");
            let error = FleetSettings::load(&folder).expect_err(text);
            assert!(error.message.contains(told) && error.exit == exit::CONFIG, "{text:?}: {error}");
            assert!(set_rights(&folder, "b", None).is_err(), "a wrong file is not written over");
        }
    }

    #[test]
    fn rights_are_written_and_taken_back_and_the_rest_stays() {
        let (_dir, _, folder) = of_test();
        let before = "# The vault.\nkey_command = [\"pass\"]\n\n[accept]\n\"*\" = [\"view\"]  # everybody may look\n";
        folder.write("", FILE, before.as_bytes(), Grade::Fast).expect("written");
        set_rights(&folder, "box", Some(&[Right::Send, Right::Operate])).expect("written");
        let settings = FleetSettings::load(&folder).expect("readable");
        let of = |name: &str| rights_in_words(&settings.accept, &name.parse().expect("a name"));
        assert_eq!((of("box"), of("other")), ("send, operate".to_owned(), "view".to_owned()));
        assert_eq!(text(&folder).expect("readable"), format!("{before}box = [\"send\", \"operate\"]\n"));
        set_rights(&folder, "*", Some(&[])).expect("written");
        assert!(text(&folder).expect("readable").contains("\"*\" = []  # everybody may look\n"));
        set_rights(&folder, "*", Some(&[Right::View])).expect("written");
        set_rights(&folder, "box", None).expect("written");
        assert_eq!(text(&folder).expect("readable"), before);
    }

    #[test]
    fn rights_are_written_into_a_file_of_any_form() {
        for before in ["", "accept = { \"*\" = [\"view\"] }\n", "accept.\"*\" = [\"view\"]\n", "[server]\nurls = []\n"]
        {
            let (_dir, _, folder) = of_test();
            folder.write("", FILE, before.as_bytes(), Grade::Fast).expect("written");
            set_rights(&folder, "box", Some(&[Right::Send])).expect("written");
            let settings = FleetSettings::load(&folder).expect("readable");
            assert_eq!(rights_in_words(&settings.accept, &"box".parse().expect("a name")), "send", "{before}");
            assert_eq!(settings.accept.entry("*").is_some(), before.contains('*'), "{before}");
        }
    }

    #[test]
    fn a_host_without_an_entry_has_the_rights_of_every_host() {
        let (_dir, _, folder) = of_test();
        set_rights(&folder, "*", Some(&[Right::View, Right::Send])).expect("written");
        set_rights(&folder, "empty", Some(&[])).expect("written");
        let settings = FleetSettings::load(&folder).expect("readable");
        assert_eq!(rights_now(&settings, "desk"), [Right::View, Right::Send]);
        assert_eq!(rights_now(&settings, "*"), [Right::View, Right::Send]);
        assert_eq!(rights_now(&settings, "empty"), []);
    }

    #[test]
    fn of_two_changes_at_once_none_is_lost() {
        let (_dir, _, folder) = of_test();
        let add = |right: Right| {
            let folder = folder.clone();
            move || change_rights(&folder, "box", |rights| Some([rights, vec![right]].concat())).expect("written")
        };
        let all = [Right::View, Right::Send, Right::Operate, Right::Personas];
        let threads = all.map(|right| std::thread::spawn(add(right)));
        threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        assert_eq!(rights_now(&FleetSettings::load(&folder).expect("readable"), "box"), all);
    }
}
