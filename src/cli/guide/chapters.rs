//! The chapters of the guide: name, text, and the commands that each explains.

/// One chapter of the guide.
#[derive(Debug, Clone, Copy)]
pub struct Chapter {
    /// Its name on the command line; its manual page is `tasuki-TOPIC(7)`.
    pub topic: &'static str,
    /// What it is about, as the README's table of chapters has it.
    pub purpose: &'static str,
    /// Markdown: a title, a paragraph that says what the chapter is for, then sections.
    pub text: &'static str,
    commands: &'static str,
}

/// A chapter, what it is about, and the commands that it explains, separated by blanks; `agent-register` is the command
/// `agent register`.
macro_rules! chapter {
    ($topic:literal, $purpose:literal, $commands:literal) => {
        Chapter {
            topic: $topic,
            purpose: $purpose,
            text: include_str!(concat!("../../../data/guide/", $topic, ".md")),
            commands: $commands,
        }
    };
}

/// Every chapter, in the order in which a newcomer needs them.
pub const CHAPTERS: [Chapter; 23] = [
    chapter!(
        "screen",
        "tasuki status: what waits for you; tasuki top: its keys, and how to open it in a tmux popup",
        "status top"
    ),
    chapter!("tmux", "the status line and keys of the tmux plugin", ""),
    chapter!("configuration", "every key of config.toml, your own prompts, log levels", ""),
    chapter!(
        "context",
        "how full a context is, suggestions, and handoffs that begin by themselves",
        "agents statusline"
    ),
    chapter!("limits", "what stops an agent's CLI (used up, logged out …), and handoffs to another CLI", ""),
    chapter!(
        "unattended",
        "a night without you: what to prepare, what a failure leaves, what to look at in the morning",
        ""
    ),
    chapter!("notices", "everything that you are told, on your desktop, your phone or by a program of yours", ""),
    chapter!(
        "documents",
        "what tasuki sees of the work itself, how it checks a document, and your review",
        "handoff handoffs cancel accept rework read reopen"
    ),
    chapter!(
        "acknowledgements",
        "handoffs that ask for an acknowledgement: the successor confirms, asks questions, is reminded",
        "ack clarify ack-override"
    ),
    chapter!(
        "registration",
        "agents that you start yourself: hooks, the Claude Code plugin",
        "agent-register agent-forget hooks"
    ),
    chapter!("profiles", "how to add an agent CLI with one TOML file", "persona-new"),
    chapter!("work-items", "pieces of work that go from role to role, and their rules", "work rules"),
    chapter!("publishing", "a document as a GitHub comment or gist", "publish"),
    chapter!("services", "systemd, launchd (macOS), logs, and how the sidecar stops", "run service"),
    chapter!(
        "spool",
        "your own dashboard in any language: files to drop and read, all request kinds, recipes for a shell and Python",
        "retry abandon send hook schema"
    ),
    chapter!("http", "tasuki serve: the page, the API, server-sent events, who may connect", "serve"),
    chapter!("fleet", "agents on several machines, over ssh or a NATS server", "fleet"),
    chapter!("troubleshooting", "tasuki doctor, and what it checks", "doctor errors"),
    chapter!("storage", "what is kept for how long, and how large it may grow", ""),
    chapter!("promises", "each promise in full, and how it is tested", ""),
    chapter!("evaluation", "how to measure how much of what an agent knew reaches its successor", ""),
    chapter!("real-agents", "what is known of Claude Code, Codex, pi, Gemini CLI and opencode", ""),
    chapter!("performance", "speed and size, measured", ""),
];

impl Chapter {
    /// The chapter of that name.
    #[must_use]
    pub fn named(topic: &str) -> Option<&'static Chapter> {
        CHAPTERS.iter().find(|chapter| chapter.topic == topic)
    }

    /// The commands that the chapter explains.
    pub fn commands(&self) -> impl Iterator<Item = &'static str> {
        self.commands.split_whitespace()
    }

    /// The chapter that the help of a command names: its own, or that of the command above it.
    #[must_use]
    pub fn of_command(name: &str) -> Option<&'static Chapter> {
        let is_below = |own: &str| name.strip_prefix(own).is_some_and(|rest| rest.starts_with('-'));
        let own = CHAPTERS.iter().find(|chapter| chapter.commands().any(|own| own == name));
        own.or_else(|| CHAPTERS.iter().find(|chapter| chapter.commands().any(is_below)))
    }

    /// The title, without `#`.
    #[must_use]
    pub fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_lists_the_chapters_in_the_same_order_and_words() {
        let readme = include_str!("../../../README.md").replace('`', "");
        let rows = readme.lines().filter_map(|line| line.strip_prefix("| [")?.strip_suffix(" |")?.split_once("](data"));
        let listed: Vec<(&str, &str)> =
            rows.filter_map(|(topic, rest)| Some((topic, rest.split_once(" | ")?.1))).collect();
        let known: Vec<(&str, &str)> = CHAPTERS.iter().map(|chapter| (chapter.topic, chapter.purpose)).collect();
        assert_eq!(listed, known);
        for chapter in &CHAPTERS {
            assert!(chapter.text.starts_with("# ") && !chapter.title().is_empty(), "{}", chapter.topic);
        }
    }
}
