//! The tmux command that shows a session or a pane to the person who reads it.

use super::{home_option, view};
use crate::config::Home;
use crate::core::text::{sanitise, shell_word};
use crate::files;
use crate::tmux::Socket;
use crate::tmux::examine::{socket_around, socket_path};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The longest line that names a socket, in bytes.
const LONGEST_LINE: u64 = 4 * 1024;
/// How the command of an entry begins that waits for a look at a pane.
const SWITCH: &str = "tmux switch-client -t ";

/// The command that shows this session or pane of the sidecar's tmux server, in the terminal in which this runs.
pub(super) fn go_to(home: &Home, target: &str) -> String {
    command(&sanitise(target), sidecars_socket(home).as_deref(), socket_around().as_deref(), &default_socket())
}

/// The socket of the server that the sidecar's view names; after the sidecar's end, that of the last sidecar.
fn sidecars_socket(home: &Home) -> Option<PathBuf> {
    let seen = view::sidecar(home).ok().flatten();
    let named = seen.and_then(|seen| seen.tmux.as_ref()?.socket.as_ref().map(PathBuf::from));
    named.or_else(|| last_socket(home))
}

fn last_socket(home: &Home) -> Option<PathBuf> {
    let path = home.last_socket();
    let (bytes, _) = files::read_at(files::open_dir(path.parent()?).ok()?, path.file_name()?, LONGEST_LINE).ok()?;
    let line = bytes.strip_suffix(b"\n")?;
    Some(PathBuf::from(OsStr::from_bytes(line))).filter(|path| path.is_absolute())
}

fn default_socket() -> PathBuf {
    socket_path(&Socket::Default, std::env::var_os("TMUX_TMPDIR"))
}

/// An entry's command, fit for the terminal in which this runs: the entry itself names the one that works in the
/// sidecar's tmux server, and no home.
pub(super) fn fit(home: &Home, command: &str) -> String {
    command.strip_prefix(SWITCH).map_or_else(|| home_option::fit(command).into_owned(), |pane| go_to(home, pane))
}

/// `theirs` is the socket of the sidecar's server, `around` that of the server in which this runs.
fn command(target: &str, theirs: Option<&Path>, around: Option<&Path>, default: &Path) -> String {
    // tmux takes a name with `@` before it for the id of a window.
    let exact = if target.starts_with('@') { "=" } else { "" };
    let target = shell_word(&format!("{exact}{target}"));
    let is_inside = around.is_some_and(|around| theirs.is_none_or(|theirs| files::lead_to_same(theirs, around)));
    if is_inside {
        return format!("{SWITCH}{target}");
    }
    // tmux refuses to attach inside another server.
    let outside = if around.is_some() { "env -u TMUX " } else { "" };
    let server = theirs.and_then(|theirs| named(theirs, default)).map_or_else(String::new, |name| match name {
        ServerName::Name(name) => format!(" -L {}", shell_word(&name)),
        ServerName::Path(path) => format!(" -S {}", shell_word(&path)),
    });
    format!("{outside}tmux{server} attach -t {target}")
}

/// How a tmux server is named that is not the default one.
enum ServerName {
    /// The name of a socket in tmux's own folder.
    Name(String),
    /// The socket's path.
    Path(String),
}

fn named(socket: &Path, default: &Path) -> Option<ServerName> {
    if files::lead_to_same(socket, default) {
        return None;
    }
    let name = socket.file_name().filter(|_| socket.parent() == default.parent());
    Some(match name {
        Some(name) => ServerName::Name(name.to_string_lossy().into_owned()),
        None => ServerName::Path(socket.to_string_lossy().into_owned()),
    })
}

/// The argument ` --tmux NAME` with which a sidecar finds the server that the last one used; empty for the default
/// server.
pub(super) fn tmux_argument(home: &Home) -> String {
    match sidecars_socket(home).and_then(|socket| named(&socket, &default_socket())) {
        Some(ServerName::Name(name) | ServerName::Path(name)) => format!(" --tmux {}", shell_word(&name)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No terminal outside tmux has a client to switch, and a server that is not the default one must be named.
    #[test]
    fn the_command_names_the_server_that_the_terminal_would_not_find() {
        let default = Path::new("/nowhere/tmux-7/default");
        let reader = Path::new("/nowhere/tmux-7/reader");
        let own = Path::new("/nowhere/my own");
        let cases = [
            (None, None, "tmux attach -t %3"),
            (Some(default), None, "tmux attach -t %3"),
            (Some(reader), None, "tmux -L reader attach -t %3"),
            (Some(own), None, "tmux -S '/nowhere/my own' attach -t %3"),
            (None, Some(default), "tmux switch-client -t %3"),
            (Some(reader), Some(reader), "tmux switch-client -t %3"),
            (Some(reader), Some(default), "env -u TMUX tmux -L reader attach -t %3"),
            (Some(default), Some(reader), "env -u TMUX tmux attach -t %3"),
        ];
        for (theirs, around, wanted) in cases {
            assert_eq!(command("%3", theirs, around, default), wanted, "{theirs:?} {around:?}");
        }
        assert_eq!(command("my session", None, None, default), "tmux attach -t 'my session'");
        assert_eq!(
            command("@work", None, None, default),
            "tmux attach -t '=@work'",
            "tmux must not take it for the id of a window"
        );
    }
}
