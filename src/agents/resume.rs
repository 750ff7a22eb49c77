//! The command with which a person opens a session of the CLI again. It is only shown, never run.

use super::placeholder::{fill, first_unknown};
use super::profile::Profile;
use crate::core::text::shell_word;

/// Longest session id that is put into a command.
const MAX_ID: usize = 128;

impl Profile {
    /// The command that opens this session again, quoted for a shell; `None` if the profile names none, or if the id
    /// has other characters than letters, digits, `-`, `_` and `.`, or begins with none of the first two.
    #[must_use]
    pub fn resume_command(&self, session_id: &str) -> Option<String> {
        if self.file.resume.is_empty() || !is_plain(session_id) {
            return None;
        }
        let word = |text: &String| shell_word(&fill(text, |_| session_id.to_owned()));
        Some(self.file.resume.iter().map(word).collect::<Vec<_>>().join(" "))
    }

    /// What of `resume` serde can't see to be wrong.
    pub(super) fn resume_fault(&self) -> Option<String> {
        let resume = &self.file.resume;
        if resume.is_empty() {
            return None;
        }
        if let Some(name) = resume.iter().find_map(|text| first_unknown(text, |name| name == "session_id")) {
            return Some(format!("there is no placeholder {{{name}}} here"));
        }
        let is_line = |text: &String| !text.contains(char::is_control) && text.len() <= 200;
        if resume[0].is_empty() || !resume.iter().all(is_line) {
            return Some("must name a program, and its words may have at most 200 visible characters".into());
        }
        let has_id = resume.iter().any(|text| text.contains("{session_id}"));
        (!has_id).then(|| "must have {session_id} in one of its words".into())
    }
}

fn is_plain(id: &str) -> bool {
    id.len() <= MAX_ID
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::super::profile::Profiles;
    use super::*;
    use std::path::Path;

    #[test]
    fn each_cli_has_its_command_and_only_a_plain_id_gets_into_it() {
        let profiles = Profiles::load(None).expect("built in");
        let id = "01a20fc1-7562-73ea-a207-2e2c42edd5ec";
        let command = |name: &str, id: &str| profiles.get(name).expect("a profile").resume_command(id);
        for (name, begins) in [
            ("claude", "claude --resume"),
            ("codex", "codex resume"),
            ("gemini", "gemini --resume"),
            ("opencode", "opencode --session"),
            ("pi", "pi --session"),
        ] {
            assert_eq!(command(name, id), Some(format!("{begins} {id}")), "{name}");
        }
        assert_eq!(command("demo", id), None);
        for wrong in ["", "-x", "--help", "a b", "$(id)", "a;b", "a\nb", "ä", &"a".repeat(200)] {
            assert_eq!(command("claude", wrong), None, "{wrong}");
        }
        assert!(command("opencode", "ses_df03d569fffe0nizrP3rzVtOAS").is_some());
    }

    #[test]
    fn a_resume_command_needs_a_program_and_the_id() {
        let demo = include_str!("../../data/profiles/demo.toml");
        let fault = |resume: &str| {
            let text = format!("resume = {resume}\n{demo}");
            Profile::parse("x", Path::new("x.toml"), &text).expect_err("must be refused").to_string()
        };
        assert!(fault("['', '{session_id}']").contains("must name a program"));
        assert!(fault("['x']").contains("must have {session_id}"));
        assert!(fault("['x', '{session}']").contains("{session}"));
        let text = format!("resume = ['my cli', '--id={{session_id}}']\n{demo}");
        let profile = Profile::parse("x", Path::new("x.toml"), &text).expect("a profile");
        assert_eq!(profile.resume_command("s1").as_deref(), Some("'my cli' '--id=s1'"));
    }
}
