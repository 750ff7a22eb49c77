//! Shows which of a profile's hooks are in the CLI's own configuration, no matter who put them there, so that a person
//! can see whether the agents that they start themselves report. Nothing is changed.

use super::Context;
use super::error::{InstallError, wrong};
use super::more::Way;
use super::section::notation;
use super::text::{Node, ValueKind, parse};
use crate::agents::profile::Profile;
use crate::core::text::shell_word;
use std::path::PathBuf;

/// The largest number of hook commands that are reported for one file.
const MAX_COMMANDS: usize = 64;

/// The state of a profile's hooks in the CLI's own configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    Absent,
    /// All of them, as this program would put them in for this home.
    Whole,
    /// Some are missing, or name another program or home.
    Stale,
}

/// One command that the CLI runs at one of its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCommand {
    /// The CLI's own name of the event.
    pub event: String,
    /// The command line, as a shell is given it.
    pub line: String,
}

impl HookCommand {
    /// The path of the program that the command runs; none if it is not written as `hooks install` writes it.
    #[must_use]
    pub fn program(&self) -> Option<PathBuf> {
        let (word, _) = self.line.split_once(" hook ")?;
        let bare =
            word.strip_prefix('\'').and_then(|word| word.strip_suffix('\'')).unwrap_or(word).replace("'\\''", "'");
        let is_one_word = shell_word(&bare) == word || format!("'{}'", bare.replace('\'', "'\\''")) == word;
        Some(PathBuf::from(bare)).filter(|program| is_one_word && program.is_absolute())
    }
}

/// What is installed for one profile, as far as its files show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The CLI's file, as people name it.
    pub file: PathBuf,
    pub presence: Presence,
    /// The hooks were put in by `hooks install`, and not taken out by `hooks uninstall`.
    pub is_recorded: bool,
    /// Our commands in the file. Empty for a CLI whose whole file is ours.
    pub commands: Vec<HookCommand>,
}

impl Profile {
    /// Looks at the hooks in the CLI's own configuration.
    ///
    /// # Errors
    /// See [`InstallError`]: the profile has nothing to install, or the file or the record can't be read.
    pub fn installed(&self, context: &Context<'_>) -> Result<Installed, InstallError> {
        let mut installed = self.installed_hooks(context)?;
        if installed.presence == Presence::Whole && self.has_old_files(context)? {
            installed.presence = Presence::Stale;
        }
        Ok(installed)
    }

    /// Whether one of the further files is ours, but names another program or home.
    fn has_old_files(&self, context: &Context<'_>) -> Result<bool, InstallError> {
        let planned = self.plan_files(context, Way::In)?;
        Ok(planned
            .iter()
            .any(|file| file.change.as_ref().is_some_and(|change| change.texts().0.is_some() && !change.is_nothing())))
    }

    fn installed_hooks(&self, context: &Context<'_>) -> Result<Installed, InstallError> {
        let section = self.section()?;
        let (found, _, old) = self.look(section, context)?;
        let filled = self.filled(section, context);
        let is_recorded = old.is_some();
        let absent = |file: PathBuf| Installed { file, presence: Presence::Absent, is_recorded, commands: Vec::new() };
        let Some(text) = found.text else { return Ok(absent(found.path)) };
        let Some(notation) = notation(section.format) else {
            let presence = if text == filled {
                Presence::Whole
            } else if self.is_ours(section, &text, old.as_ref()) {
                Presence::Stale
            } else {
                return Err(InstallError::Foreign { path: found.path });
            };
            return Ok(Installed { presence, ..absent(found.path) });
        };
        let fault = |fault| wrong(&found.path, fault);
        let template = self.template(section, &filled, notation)?;
        let is_whole = template.is_whole(&text).map_err(fault)?;
        let mut commands = Vec::new();
        if !text.trim().is_empty() {
            let needle = format!(" hook {}", self.name);
            collect(&parse(&text, notation).map_err(fault)?, &needle, &mut Vec::new(), &mut commands);
        }
        let presence = match (is_whole, commands.is_empty()) {
            (true, _) => Presence::Whole,
            (false, false) => Presence::Stale,
            (false, true) => Presence::Absent,
        };
        Ok(Installed { file: found.path, presence, is_recorded, commands })
    }
}

/// Every text that runs our hook, with the CLI's event: the key below `hooks`.
fn collect(node: &Node, needle: &str, path: &mut Vec<String>, found: &mut Vec<HookCommand>) {
    match &node.kind {
        ValueKind::Object(members) => {
            for member in members {
                path.push(member.key.clone());
                collect(&member.value, needle, path, found);
                path.pop();
            }
        }
        ValueKind::Array(items) => items.iter().for_each(|item| collect(item, needle, path, found)),
        ValueKind::Scalar(value) => {
            let Some(line) = value.as_str().filter(|line| is_ours(line, needle)) else { return };
            let event = path.iter().skip_while(|key| *key != "hooks").nth(1).cloned().unwrap_or_default();
            if found.len() < MAX_COMMANDS {
                found.push(HookCommand { event, line: line.to_owned() });
            }
        }
    }
}

/// Whether a command line is `… tasuki … hook <profile>`, with nothing that continues the profile's name.
fn is_ours(line: &str, needle: &str) -> bool {
    let Some((before, after)) = line.split_once(needle) else { return false };
    before.contains("tasuki") && after.chars().next().is_none_or(|next| next.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::Profiles;
    use std::ffi::OsString;
    use std::fs;

    const HOME: &str = "/home/ada/tasuki";

    struct User {
        folder: tempfile::TempDir,
        program: PathBuf,
    }

    impl User {
        fn new() -> User {
            User { folder: tempfile::tempdir().expect("a folder"), program: PathBuf::from("/opt/tasuki") }
        }

        fn settings(&self) -> PathBuf {
            self.folder.path().join(".claude/settings.json")
        }

        fn with<T>(&self, act: impl FnOnce(&Profile, &Context<'_>) -> T) -> T {
            let home = self.folder.path().join("tasuki");
            let env = |name: &str| (name == "HOME").then(|| OsString::from(self.folder.path()));
            let profiles = Profiles::load(None).expect("the built-in ones");
            let context = Context { program: &self.program, home: &home, env: &env };
            act(profiles.get("claude").expect("claude"), &context)
        }

        fn look(&self) -> Installed {
            self.with(|profile, context| profile.installed(context)).expect("readable")
        }
    }

    #[test]
    fn hooks_are_absent_whole_and_stale_when_the_program_has_moved() {
        let mut user = User::new();
        let absent = user.look();
        assert_eq!((absent.presence, absent.is_recorded), (Presence::Absent, false));
        user.with(|profile, context| profile.plan_install(context).expect("planned").apply(0)).expect("installed");
        let whole = user.look();
        assert_eq!((whole.presence, whole.is_recorded, whole.commands.len()), (Presence::Whole, true, 7));
        assert!(whole.commands.iter().any(|command| command.event == "Stop" && command.line.contains("/opt/tasuki")));
        user.program = PathBuf::from("/usr/bin/tasuki");
        assert_eq!(user.look().presence, Presence::Stale);
        fs::write(user.settings(), "{}").expect("written");
        let gone = user.look();
        assert_eq!((gone.presence, gone.is_recorded), (Presence::Absent, true));
    }

    #[test]
    fn a_command_names_its_program_as_install_quotes_it() {
        let program = |line: &str| HookCommand { event: "Stop".to_owned(), line: line.to_owned() }.program();
        for (line, path) in [
            ("/opt/tasuki hook claude", "/opt/tasuki"),
            ("'/opt/tasuki' hook claude", "/opt/tasuki"),
            ("'/opt/my tools/it'\\''s/tasuki' hook claude --home '/h'", "/opt/my tools/it's/tasuki"),
        ] {
            assert_eq!(program(line), Some(PathBuf::from(path)), "{line}");
        }
        for other in
            ["tasuki hook claude", "/opt/my tools/tasuki hook claude", "A=1 /opt/tasuki hook claude", "/opt/tasuki"]
        {
            assert_eq!(program(other), None, "{other}");
        }
    }

    #[test]
    fn a_command_is_ours_by_its_words_and_not_by_a_part_of_them() {
        let line = format!("'/opt/tasuki' hook claude --home '{HOME}'");
        assert!(is_ours(&line, " hook claude") && is_ours("tasuki hook claude", " hook claude"));
        assert!(!is_ours("tasuki hook claudette", " hook claude") && !is_ours("say hook claude", " hook claude"));
        assert!(!is_ours(&line, " hook codex"));
    }
}
