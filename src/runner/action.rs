//! Names an effect in words for the operator: the sidecar's view says "starting an agent", where the log says `start`.

use crate::core::effect::Effect;

/// What an effect does, as the subject of a sentence.
pub(super) fn in_words(effect: &Effect) -> &'static str {
    match effect {
        Effect::PrepareFolder { .. } => "making a persona's folder for documents",
        Effect::Type(_) => "typing a text",
        Effect::ReadDocument { .. } => "reading a document",
        Effect::ComposeDocument { .. } => "writing a document",
        Effect::Examine(_) => "looking at an agent's work",
        Effect::CompareDocument { .. } => "comparing a document with the recorded one",
        Effect::ReadPersona { .. } => "reading a persona's texts",
        Effect::AwaitIdle { .. } => "waiting for an idle screen",
        Effect::LookAtTurn { .. } => "looking whether a turn still runs",
        Effect::AwaitReady { .. } => "waiting until a started agent takes input",
        Effect::AwaitDeath { .. } => "waiting for the end of a process",
        Effect::HoldPlaceholder { .. } => "making a placeholder window",
        Effect::DropPlaceholder { .. } => "removing a placeholder window",
        Effect::Start(_) => "starting an agent",
        Effect::Identify { .. } => "finding out what runs in a pane",
        Effect::ReadContextUsage { .. } => "reading how full an agent's context is",
        Effect::ReadLimit { .. } => "looking for a limit of an agent's CLI",
        Effect::AwaitPrompt { .. } => "waiting for a prompt in a transcript",
        Effect::AwaitRead { .. } => "waiting until a document was read",
        Effect::CheckAutoHandoff { .. } => "checking whether a handoff may begin automatically",
        Effect::KillPane { .. } => "killing a pane",
        Effect::KeepCopy(_) => "copying a document",
        Effect::Publish(_) => "publishing a document",
        Effect::NotifyOperator(_) => "notifying the operator",
        Effect::Notify(_) => "notifying the recipient of a message",
    }
}
