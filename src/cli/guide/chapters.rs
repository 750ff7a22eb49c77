//! The chapters of the guide: name, text, and the commands that each belongs to.

/// One chapter of the guide.
#[derive(Debug, Clone, Copy)]
pub struct Chapter {
    /// Its name on the command line; its manual page is `tasuki-TOPIC(7)`.
    pub topic: &'static str,
    /// Markdown: a title, a paragraph that says what the chapter is for, then sections.
    pub text: &'static str,
    commands: &'static str,
}

/// A chapter, and the commands whose help names it, separated by blanks.
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
pub const CHAPTERS: [Chapter; 19] = [
    chapter!("screen", "top agents handoffs lineage send"),
    chapter!("tmux", "agent"),
    chapter!("configuration", "run rules"),
    chapter!("context", "handoff statusline"),
    chapter!("documents", "rework"),
    chapter!("acknowledgements", "ack clarify ack-override"),
    chapter!("registration", "hooks hook"),
    chapter!("profiles", "persona"),
    chapter!("work-items", "work"),
    chapter!("publishing", "publish"),
    chapter!("services", "service"),
    chapter!("spool", "schema"),
    chapter!("http", "serve"),
    chapter!("troubleshooting", "doctor errors retry cancel accept abandon"),
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

    /// The commands whose help names the chapter.
    pub fn commands(&self) -> impl Iterator<Item = &'static str> {
        self.commands.split_whitespace()
    }

    /// The chapter that the help of a command names.
    #[must_use]
    pub fn of_command(name: &str) -> Option<&'static Chapter> {
        CHAPTERS.iter().find(|chapter| chapter.commands().any(|own| own == name))
    }

    /// The title, without `#`.
    #[must_use]
    pub fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }
}
