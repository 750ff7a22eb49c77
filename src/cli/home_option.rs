//! `--home` in the commands that tasuki prints. They are pasted into a shell, and a shell does not know which home the
//! command before had.

use crate::config::Home;
use crate::core::text::shell_word;
use std::borrow::Cow;
use std::sync::OnceLock;

/// ` --home DIR`, if this process was given a home to which the environment does not lead.
static OPTION: OnceLock<String> = OnceLock::new();

const PROGRAM: &str = "tasuki";

/// The commands that work with a home, sorted.
pub(super) const COMMANDS: [&str; 29] = [
    "abandon",
    "accept",
    "ack",
    "ack-override",
    "agent",
    "agents",
    "cancel",
    "clarify",
    "doctor",
    "errors",
    "fleet",
    "handoff",
    "handoffs",
    "hooks",
    "lineage",
    "persona",
    "publish",
    "read",
    "reopen",
    "retry",
    "rework",
    "rules",
    "run",
    "send",
    "serve",
    "service",
    "status",
    "top",
    "work",
];

/// Remembers the home that `--home` has named, unless a command without `--home` would find it too.
pub(super) fn remember(home: &Home) {
    if Home::resolve(None).is_ok_and(|usual| usual.root() == home.root()) {
        return;
    }
    // The first one counts: one process has one command line.
    let _ = OPTION.set(format!(" --home {}", shell_word(&home.root().display().to_string())));
}

/// A text of tasuki's own, such as a hint, with `--home DIR` in each command of tasuki that it names, where that is
/// needed.
pub(super) fn fit(text: &str) -> Cow<'_, str> {
    OPTION.get().map_or(Cow::Borrowed(text), |option| Cow::Owned(with(text, option)))
}

fn with(text: &str, option: &str) -> String {
    let (mut done, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(PROGRAM) {
        let (before, after) = rest.split_at(at + PROGRAM.len());
        let is_word = !rest[..at].ends_with(|letter: char| letter.is_alphanumeric() || "-_./".contains(letter));
        done.push_str(before);
        if is_word && lacks_home(after) {
            done.push_str(option);
        }
        rest = after;
    }
    done + rest
}

/// Whether what follows `tasuki` is one of its commands, without `--home`.
fn lacks_home(after: &str) -> bool {
    let Some(line) = after.strip_prefix(' ').and_then(|line| line.split(['`', '\n', ';']).next()) else { return false };
    let name = line.split(|letter: char| !letter.is_ascii_lowercase() && letter != '-').next().unwrap_or_default();
    COMMANDS.binary_search(&name).is_ok() && !line.contains("--home")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_is_put_into_each_command_that_works_with_one() {
        let cases = [
            ("tasuki retry d784 --wait", "tasuki --home '/my home' retry d784 --wait"),
            (
                "If it is good: tasuki accept 5f; otherwise: tasuki cancel 5f",
                "If it is good: tasuki --home '/my home' accept 5f; otherwise: tasuki --home '/my home' cancel 5f",
            ),
            ("`tasuki agents` lists them.", "`tasuki --home '/my home' agents` lists them."),
            ("Start one: tasuki run --home /h", "Start one: tasuki run --home /h"),
            ("Start it: tasuki --home /h fleet run", "Start it: tasuki --home /h fleet run"),
            ("See tasuki --help, or tasuki help limits.", "See tasuki --help, or tasuki help limits."),
            ("tasuki then forgets it; read /x/tasuki run", "tasuki then forgets it; read /x/tasuki run"),
            ("tmux attach -t tasuki", "tmux attach -t tasuki"),
        ];
        for (text, wanted) in cases {
            assert_eq!(with(text, " --home '/my home'"), wanted);
        }
    }
}
