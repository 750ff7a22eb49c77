//! The chapters of the guide: name, text, and the commands that each explains.

/// One chapter of the guide.
#[derive(Debug, Clone, Copy)]
pub struct Chapter {
    /// Its name on the command line; its manual page is `tasuki-TOPIC(7)`.
    pub topic: &'static str,
    /// Markdown: a title, a paragraph that says what the chapter is for, then sections.
    pub text: &'static str,
    commands: &'static str,
}

/// A chapter, and the commands that it explains, separated by blanks; `agent-register` is the command `agent register`.
macro_rules! chapter {
    ($topic:literal, $commands:literal) => {
        Chapter {
            topic: $topic,
            text: include_str!(concat!("../../../data/guide/", $topic, ".md")),
            commands: $commands,
        }
    };
}

/// Every chapter, in the order in which a newcomer needs them.
pub const CHAPTERS: [Chapter; 23] = [
    chapter!("screen", "status top"),
    chapter!("tmux", ""),
    chapter!("configuration", ""),
    chapter!("context", "agents statusline"),
    chapter!("limits", ""),
    chapter!("unattended", ""),
    chapter!("notices", ""),
    chapter!("documents", "handoff handoffs cancel accept rework read reopen"),
    chapter!("acknowledgements", "ack clarify ack-override"),
    chapter!("registration", "agent-register agent-forget hooks"),
    chapter!("profiles", "persona-new"),
    chapter!("work-items", "work rules"),
    chapter!("publishing", "publish"),
    chapter!("services", "run service"),
    chapter!("spool", "retry abandon send hook schema"),
    chapter!("http", "serve"),
    chapter!("fleet", "fleet"),
    chapter!("troubleshooting", "doctor errors"),
    chapter!("storage", ""),
    chapter!("promises", ""),
    chapter!("evaluation", ""),
    chapter!("real-agents", ""),
    chapter!("performance", ""),
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
