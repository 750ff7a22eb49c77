//! The command that opens a session of the CLI again: how it is shown to a person, and how it is run.

use super::launch::{Launch, LaunchContext};
use super::placeholder::first_unknown;
use super::profile::Profile;
use crate::core::resume::{self, PLACEHOLDER};
use std::collections::BTreeMap;

impl Profile {
    /// The command that opens this session again, quoted for a shell; `None` as with [`resume::words`].
    #[must_use]
    pub fn resume_command(&self, session_id: &str) -> Option<String> {
        resume::command(&self.file.resume, session_id)
    }

    /// How this session is opened again: by the profile's `resume` command, in the environment of an agent that tasuki
    /// starts, but without a persona.
    #[must_use]
    pub fn reopening(&self, context: &LaunchContext<'_>, session_id: &str) -> Option<Launch> {
        let words = resume::words(&self.file.resume, session_id)?;
        let program = words.first()?.clone();
        let (launched, unset) = match (self.launch(context), &self.file.launch) {
            (Some(launched), Some(section)) => (launched, section.unset.clone()),
            _ => (Launch { program: String::new(), argv: Vec::new(), env: Vec::new(), files: Vec::new() }, Vec::new()),
        };
        let own = [
            ("TASUKI_AGENT_ID", context.agent_id.to_string()),
            ("TASUKI_HOME", context.home.display().to_string()),
            ("TASUKI_CREATION", context.creation.to_owned()),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value));
        let mut env: BTreeMap<String, String> = launched.env.into_iter().chain(own).collect();
        env.remove("TASUKI_PERSONA");
        let mut argv = Vec::new();
        if !unset.is_empty() {
            argv.push("env".to_owned());
            argv.extend(unset.into_iter().flat_map(|name| ["-u".to_owned(), name]));
        }
        argv.extend(words);
        Some(Launch { program, argv, env: env.into_iter().collect(), files: launched.files })
    }

    /// The first fault of `resume` that serde can't find.
    pub(super) fn resume_fault(&self) -> Option<String> {
        let resume = &self.file.resume;
        if resume.is_empty() {
            return None;
        }
        if let Some(name) = resume.iter().find_map(|text| first_unknown(text, |name| name == "session_id")) {
            return Some(format!("there is no placeholder {{{name}}} here"));
        }
        if resume.iter().any(|text| text.contains("{session_id:")) {
            return Some("{session_id} takes no filter here".into());
        }
        let is_line = |text: &String| !text.contains(char::is_control) && text.len() <= 200;
        if resume[0].is_empty() || !resume.iter().all(is_line) {
            return Some("must name a program, and its words may have at most 200 visible characters".into());
        }
        let has_id = resume.iter().any(|text| text.contains(PLACEHOLDER));
        (!has_id).then(|| "must have {session_id} in one of its words".into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile::Profiles;
    use super::*;
    use crate::core::id::Slug;
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
        assert!(fault("['x', '{session_id:sh}']").contains("no filter"));
        let text = format!("resume = ['my cli', '--id={{session_id}}']\n{demo}");
        let profile = Profile::parse("x", Path::new("x.toml"), &text).expect("a profile");
        assert_eq!(profile.resume_command("s1").as_deref(), Some("'my cli' '--id=s1'"));
    }

    #[test]
    fn a_session_is_opened_again_without_a_persona_and_without_a_shell() {
        let profiles = Profiles::load(None).expect("built in");
        let slug: Slug = "dev".parse().expect("a slug");
        let context = LaunchContext {
            home: Path::new("/h"),
            agent_id: "6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa".parse().expect("a UUID"),
            creation: "c0ffee",
            persona_slug: &slug,
            handoffs_dir: Path::new("/h/handoffs"),
            program: Path::new("/opt/tasuki"),
            cwd: Path::new("/w"),
            previous: None,
            model: None,
        };
        let reopening = |name: &str| profiles.get(name).expect("a profile").reopening(&context, "s-1");
        let claude = reopening("claude").expect("it has a command");
        assert_eq!(
            claude.argv,
            ["env", "-u", "CLAUDECODE", "-u", "CLAUDE_CODE_ENTRYPOINT", "claude", "--resume", "s-1"]
        );
        assert_eq!(claude.program, "claude");
        let has = |name: &str| claude.env.iter().any(|(key, value)| key == name && !value.is_empty());
        assert!(["TASUKI_AGENT_ID", "TASUKI_HOME", "TASUKI_CREATION", "CLAUDE_CODE_NO_FLICKER"].into_iter().all(has));
        assert!(!has("TASUKI_PERSONA"), "{:?}", claude.env);
        assert!(reopening("demo").is_none());
        assert!(profiles.get("claude").expect("a profile").reopening(&context, "$(id)").is_none());
    }
}
