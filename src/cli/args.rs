//! The command line as data: the arguments of each command stand with that command.

use super::ack::{AckArgs, ClarifyArgs, OverrideArgs};
use super::agents::{AgentCommand, AgentsArgs, SendArgs};
use super::completions::CompletionsArgs;
use super::doctor::DoctorArgs;
use super::errors::ErrorsArgs;
use super::handoff::{AcceptArgs, HandoffArgs, HandoffName, RetryArgs};
use super::handoffs::HandoffsArgs;
use super::hook::HookArgs;
use super::hooks::HooksCommand;
use super::lineage::AgentName;
use super::man::ManArgs;
use super::persona::PersonaCommand;
use super::publish::PublishArgs;
use super::rules::RulesCommand;
use super::run::RunArgs;
use super::schema::SchemaArgs;
use super::serve::ServeArgs;
use super::service::ServiceCommand;
use super::statusline::StatuslineArgs;
use super::work::args::WorkCommand;
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// Under what the options stand that every command has.
const EVERYWHERE: &str = "For every command";

/// Hands a coding agent's work to its successor, in tmux, and proves that every step happened.
#[derive(Debug, Parser)]
#[command(
    name = "tasuki",
    version,
    arg_required_else_help = true,
    after_help = "Example:\n  tasuki demo                                   see one whole handoff, leave nothing behind\n  tasuki run                                    the sidecar, in a pane of its own\n  tasuki handoff kai --reason context --wait    hand off the agent of persona kai\n\nExit codes: 0 done, 1 refused or failed, 2 usage, 69 no sidecar answers, 70 a fault of its own,\n75 try again, 77 not allowed, 78 configuration."
)]
pub struct Cli {
    /// The folder that everything lies in [else TASUKI_HOME, else your data folder].
    #[arg(long, global = true, value_name = "DIR", help_heading = EVERYWHERE)]
    pub home: Option<PathBuf>,
    /// Print JSON; errors too, on standard error.
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub json: bool,
    /// How long to wait for an answer, such as 30s or 10m.
    #[arg(long, global = true, value_name = "TIME", value_parser = humantime::parse_duration, help_heading = EVERYWHERE)]
    pub timeout: Option<Duration>,
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the sidecar in the foreground, until it is interrupted.
    #[command(after_help = "Example:\n  tasuki run --home ~/fleet --tmux work")]
    Run(RunArgs),
    /// Show one whole handoff on a private tmux server; nothing is left behind.
    #[command(after_help = "Example:\n  tasuki demo")]
    Demo,
    /// Ask for a handoff: the agent writes, ends, and its successor is primed and briefed.
    #[command(
        after_help = "Example:\n  tasuki handoff kai --reason \"context is full\" --focus \"the flaky test\" --wait"
    )]
    Handoff(HandoffArgs),
    /// Go on with a failed handoff at the step where it stopped.
    #[command(after_help = "Example:\n  tasuki retry 5f2a --assume not-delivered --wait")]
    Retry(RetryArgs),
    /// Call off a handoff; possible until the outgoing agent is ended.
    #[command(after_help = "Example:\n  tasuki cancel 5f2a")]
    Cancel(HandoffName),
    /// Accept the document as it is, although the agent has not said that it is done.
    #[command(after_help = "Example:\n  tasuki accept 5f2a --wait")]
    Accept(AcceptArgs),
    /// Close a failed handoff for good; document and record are kept.
    #[command(after_help = "Example:\n  tasuki abandon 5f2a")]
    Abandon(HandoffName),
    /// Acknowledge the handoff that you were briefed with; run by the successor, in its own pane.
    #[command(
        after_help = "Example:\n  tasuki ack --understanding \"mend the flaky login test\" --starting-from \"the fixture is mended\"\n  tasuki ack --understanding \"mend the test\" --starting-from \"step 2\" --question \"Which branch?\""
    )]
    Ack(AckArgs),
    /// Answer a successor's questions; they are typed to it, and its time begins anew.
    #[command(after_help = "Example:\n  tasuki clarify 5f2a --answer \"the branch main\" --document ./handoff.md")]
    Clarify(ClarifyArgs),
    /// Go on without a successor's acknowledgement, for a reason that is kept.
    #[command(after_help = "Example:\n  tasuki ack-override 5f2a --reason \"it works already, I have looked\"")]
    AckOverride(OverrideArgs),
    /// Publish a handoff's document now, after a failure or before the next try is due.
    #[command(after_help = "Example:\n  tasuki publish 5f2a --wait\n  tasuki publish 5f2a --assume not-published")]
    Publish(PublishArgs),
    /// Look round and say what is wrong, and what to do. Exit code 1 if something does not work.
    #[command(
        after_help = "Example:\n  tasuki doctor\n  tasuki doctor --fix\n  tasuki doctor --json | jq '.checks[] | select(.status != \"ok\")'\n  tasuki doctor delivery --issue octo/app#42"
    )]
    Doctor(DoctorArgs),
    /// Show everything at once, live, with keys to hand off, cancel, retry, accept, dismiss, and go to a pane.
    #[command(
        after_help = "Example:\n  tasuki top\n\nIn tmux.conf: bind-key T display-popup -E -w 90% -h 90% \"tasuki top\""
    )]
    Top,
    /// List the agents.
    #[command(after_help = "Example:\n  tasuki agents --all")]
    Agents(AgentsArgs),
    /// List the handoffs, or show one.
    #[command(
        after_help = "Example:\n  tasuki handoffs --limit 5\n  tasuki handoffs show 5f2a",
        args_conflicts_with_subcommands = true
    )]
    Handoffs(HandoffsArgs),
    /// Show who came before and after an agent.
    #[command(after_help = "Example:\n  tasuki lineage kai")]
    Lineage(AgentName),
    /// Type a text into an agent's composer, submit it, and wait for its receipt.
    #[command(after_help = "Example:\n  tasuki send kai \"Run the tests again.\"\n  git diff | tasuki send kai -")]
    Send(SendArgs),
    /// Start, adopt or end an agent.
    #[command(subcommand, after_help = "Example:\n  tasuki agent create kai")]
    Agent(AgentCommand),
    /// Make or list personas.
    #[command(subcommand, after_help = "Example:\n  tasuki persona new kai --name Kai --role developer --profile demo")]
    Persona(PersonaCommand),
    /// Work items: typed pieces of work that go from role to role.
    #[command(
        subcommand,
        after_help = "Example:\n  tasuki work create project_spec \"A shop for sashes\"\n  tasuki work list"
    )]
    Work(WorkCommand),
    /// The rules for work items.
    #[command(subcommand, after_help = "Example:\n  tasuki rules check")]
    Rules(RulesCommand),
    /// List the failures that nobody has dismissed, or dismiss them.
    #[command(
        after_help = "Example:\n  tasuki errors\n  tasuki errors dismiss --all",
        args_conflicts_with_subcommands = true
    )]
    Errors(ErrorsArgs),
    /// What an agent CLI runs at its own events: takes its JSON on standard input, always exits 0.
    #[command(after_help = "Example:\n  echo '{\"hook_event_name\":\"Stop\"}' | tasuki hook demo")]
    Hook(HookArgs),
    /// What Claude Code runs to draw its status line: reports the context, and prints your own status line.
    #[command(
        after_help = "Example:\n  tasuki statusline -- sh ~/.claude/my-line.sh\n\nIn Claude Code's settings.json:\n  \"statusLine\": {\"type\": \"command\", \"command\": \"tasuki statusline -- sh ~/.claude/my-line.sh\"}"
    )]
    Statusline(StatuslineArgs),
    /// Make agents that you start yourself report their events too.
    #[command(subcommand, after_help = "Example:\n  tasuki hooks install claude")]
    Hooks(HooksCommand),
    /// Serve agents, handoffs, work and errors over HTTP on this machine's loopback, with a page for a browser.
    #[command(after_help = "Example:\n  tasuki serve\n  tasuki serve --listen 127.0.0.1:0 --json")]
    Serve(ServeArgs),
    /// Let systemd or launchd run the sidecar for you.
    #[command(subcommand, after_help = "Example:\n  tasuki service install --dry-run\n  tasuki service install")]
    Service(ServiceCommand),
    /// Print the JSON Schema of the files that tasuki reads and writes.
    #[command(after_help = "Example:\n  tasuki schema\n  tasuki schema result")]
    Schema(SchemaArgs),
    /// Print a completion script for a shell.
    #[command(after_help = "Example:\n  tasuki completions bash > ~/.local/share/bash-completion/completions/tasuki")]
    Completions(CompletionsArgs),
    /// Print the manual page, or write a page for each command.
    #[command(after_help = "Example:\n  tasuki man | man -l -\n  tasuki man --dir ~/.local/share/man/man1")]
    Man(ManArgs),
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
