//! What tasuki knows of agent CLIs, all of it as data: one TOML profile for each CLI says how it is launched, how its
//! screen is read and what its own hook events mean. This module turns screens into
//! [`crate::core::pane::ScreenReading`]s, hook JSON into event files, and event files into
//! [`crate::core::hook::HookEvent`]s. It never talks to tmux. Only [`hook`] and [`statusline`], which are commands of
//! their own, write to the spool.
//!
//! In reading order: [`condition`], [`mod@format`], [`composer_format`] and [`hook_format`] (the TOML), [`profile`]
//! (loading), [`launch`], [`ansi`] and [`screen`] (screens), [`rules`] (what each hook event means), [`hook`] and
//! [`statusline`] (the commands that CLIs run), [`event`] (the sidecar's side), [`transcript_format`], [`transcript`]
//! and [`transcript_back`] (the conversation, and how full the context is), [`tool_format`], [`tool_calls`],
//! [`transcript_facts`], [`actions`] and [`reading`] (what the agent did), [`limit_format`], [`limits`] and
//! [`reset_time`] (what stops the CLI), [`install`] (hooks in a CLI's own configuration).

pub mod actions;
pub mod ansi;
mod command_line;
pub mod composer_format;
pub mod condition;
pub mod event;
pub mod format;
pub mod hook;
pub mod hook_format;
pub mod hook_time;
pub mod install;
mod json;
pub mod launch;
pub mod limit_format;
pub mod limits;
mod placeholder;
pub mod profile;
mod prune;
pub mod reading;
pub mod reset_time;
mod resume;
pub mod rules;
mod salvage;
pub mod screen;
pub mod statusline;
#[cfg(test)]
mod testing;
pub mod tool_calls;
pub mod tool_format;
pub mod transcript;
pub mod transcript_back;
pub mod transcript_facts;
mod transcript_file;
pub mod transcript_format;
mod zone;

pub use event::{EventError, EventFile, read_event};
pub use format::{InputMode, ProfileFile};
pub use install::{Change, InstallError};
pub use launch::{Launch, LaunchContext};
pub use profile::{Profile, ProfileError, Profiles};
pub use reading::has_read;
pub use tool_calls::{ToolCall, ToolKind};
pub use transcript::{Transcript, TranscriptError, TranscriptMessage};
pub use transcript_back::{MessagesBack, SpokenMessage};
pub use transcript_facts::{TranscriptFacts, read_facts};
