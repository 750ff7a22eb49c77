//! Notices on the operator's desktop: `notify-send` where there is a session bus, `osascript` on macOS. The text is one
//! argument of the program, and never a part of a command line or of a script's source.

use crate::child;
use crate::core::text::sanitise;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The largest number of characters of a notice.
const MAX_TEXT: usize = 400;
/// The title of each notice.
const TITLE: &str = "tasuki";
/// Shows its two arguments. They are values in the script's list, not parts of the script. The list can't have a name
/// that AppleScript uses itself, such as `words`: the script would not compile.
const SCRIPT: [&str; 6] =
    ["-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run"];

/// A program that shows notices on a desktop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DesktopProgram {
    NotifySend(PathBuf),
    Osascript(PathBuf),
}

impl DesktopProgram {
    /// The program of this system, if it can work. `find` looks a program up in `PATH`, `variable` gives the
    /// environment in which it will run.
    ///
    /// # Errors
    /// Why there is none, as half a sentence.
    pub fn find(
        is_macos: bool,
        find: impl Fn(&str) -> Option<PathBuf>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<DesktopProgram, &'static str> {
        if is_macos {
            return find("osascript").map(DesktopProgram::Osascript).ok_or("osascript is not in the PATH");
        }
        let program = find("notify-send").ok_or("notify-send is not in the PATH")?;
        // Without a bus, notify-send would wait for a bus, or start another, on which no desktop listens.
        let is_named = variable("DBUS_SESSION_BUS_ADDRESS").is_some_and(|address| !address.is_empty());
        let is_default = || variable("XDG_RUNTIME_DIR").is_some_and(|folder| Path::new(&folder).join("bus").exists());
        if is_named || is_default() { Ok(DesktopProgram::NotifySend(program)) } else { Err("there is no session bus") }
    }

    /// The program of this machine, with this process's own environment.
    ///
    /// # Errors
    /// As for [`DesktopProgram::find`].
    pub fn here() -> Result<DesktopProgram, &'static str> {
        let path = child::search_path();
        let find = |name: &str| child::find_program(name, &path).ok();
        DesktopProgram::find(cfg!(target_os = "macos"), find, |name| std::env::var_os(name))
    }

    /// The path of the program.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            DesktopProgram::NotifySend(path) | DesktopProgram::Osascript(path) => path,
        }
    }

    /// The command line that shows a text.
    #[must_use]
    pub fn command(&self, text: &str) -> Vec<String> {
        let program = self.path().display().to_string();
        let text = short(text);
        match self {
            DesktopProgram::NotifySend(_) => {
                let title = TITLE.to_owned();
                vec![program, format!("--app-name={TITLE}"), "--".to_owned(), title, as_markup(&text)]
            }
            DesktopProgram::Osascript(_) => {
                let script = SCRIPT.map(str::to_owned);
                [vec![program], script.to_vec(), vec![TITLE.to_owned(), text]].concat()
            }
        }
    }
}

/// One line without control characters, and without the title that the program shows above it.
fn short(text: &str) -> String {
    let text = text.strip_prefix("tasuki: ").unwrap_or(text);
    let text = sanitise(text).replace(['\n', '\t'], " ");
    let mut short: String = text.chars().take(MAX_TEXT).collect();
    if text.chars().count() > MAX_TEXT {
        short.push('…');
    }
    short
}

/// Desktops read the body as markup, after notify-send has read backslashes in it as escapes.
fn as_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('\\', "\\\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(is_macos: bool, programs: &[&str], variables: &[(&str, &str)]) -> Result<DesktopProgram, &'static str> {
        let place = |name: &str| programs.contains(&name).then(|| PathBuf::from("/p").join(name));
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        DesktopProgram::find(is_macos, place, value)
    }

    #[test]
    fn notify_send_needs_a_session_bus() {
        let found = Ok(DesktopProgram::NotifySend("/p/notify-send".into()));
        let programs = ["notify-send", "osascript"];
        assert_eq!(find(false, &programs, &[("DBUS_SESSION_BUS_ADDRESS", "unix:path=/x")]), found);
        assert_eq!(find(false, &programs, &[("DBUS_SESSION_BUS_ADDRESS", "")]), Err("there is no session bus"));
        assert_eq!(find(false, &["osascript"], &[]), Err("notify-send is not in the PATH"));
        let runtime = tempfile::tempdir().expect("a folder");
        let folder = runtime.path().display().to_string();
        assert_eq!(find(false, &programs, &[("XDG_RUNTIME_DIR", &folder)]), Err("there is no session bus"));
        std::fs::write(runtime.path().join("bus"), "").expect("written");
        assert_eq!(find(false, &programs, &[("XDG_RUNTIME_DIR", &folder)]), found);
        assert_eq!(find(true, &programs, &[]), Ok(DesktopProgram::Osascript("/p/osascript".into())));
        assert_eq!(find(true, &["notify-send"], &[]), Err("osascript is not in the PATH"));
    }

    #[test]
    fn a_text_is_one_short_argument_and_never_a_part_of_a_script() {
        let hostile = "tasuki: a\" & (do shell script \"id\") \u{1b}]0;x\u{7} <b>\\n</b> --help";
        let osascript = DesktopProgram::Osascript("/p/osascript".into()).command(hostile);
        let last = osascript.last().map(String::as_str);
        assert_eq!(last, Some("a\" & (do shell script \"id\") ]0;x <b>\\n</b> --help"));
        assert!(osascript[..osascript.len() - 1].iter().all(|word| !word.contains("id")), "{osascript:?}");
        let notify_send = DesktopProgram::NotifySend("/p/notify-send".into());
        let sent = notify_send.command(hostile);
        assert_eq!(sent[..4], ["/p/notify-send", "--app-name=tasuki", "--", "tasuki"]);
        assert_eq!(sent[4], "a\" &amp; (do shell script \"id\") ]0;x &lt;b&gt;\\\\n&lt;/b&gt; --help");
        let long = notify_send.command(&"é".repeat(10_000));
        assert_eq!(long[4].chars().count(), MAX_TEXT + 1);
    }
}
