//! The command line as data. The arguments of each command are in that command's file.

use super::ack::{AckArgs, ClarifyArgs, OverrideArgs};
use super::agents::{AgentCommand, AgentsArgs, SendArgs};
use super::completions::CompletionsArgs;
use super::doctor::DoctorArgs;
use super::error::CliError;
use super::errors::ErrorsArgs;
use super::fleet::FleetArgs;
use super::guide::HelpArgs;
use super::handoff::{AcceptArgs, HandoffArgs, HandoffName, RetryArgs, ReworkArgs};
use super::handoffs::HandoffsArgs;
use super::home_option;
use super::hook::HookArgs;
use super::hooks::HooksCommand;
use super::lineage::AgentName;
use super::man::ManArgs;
use super::output::Out;
use super::persona::PersonaCommand;
use super::publish::PublishArgs;
use super::read::ReadArgs;
use super::reopen::ReopenArgs;
use super::rules::RulesCommand;
use super::schema::SchemaArgs;
use super::serve::ServeArgs;
use super::service::ServiceCommand;
use super::session::CliSession;
use super::statusline::StatuslineArgs;
use super::top::TopArgs;
use super::work::args::WorkCommand;
use crate::config::Home;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// The heading of the options that every command has.
const EVERYWHERE: &str = "Global options";

/// Hands a coding agent's work to its successor, in tmux, and proves that every step happened.
#[derive(Debug, Parser)]
#[command(
    name = "tasuki",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Example:\n  tasuki demo                                   watch one whole handoff; leaves nothing behind\n  tasuki run                                    the sidecar, in a pane of its own\n  tasuki handoff kai --reason context --wait    hand off the agent of persona kai\n\nExit codes: 0 done, 1 refused or failed, 2 usage, 10 something waits for you (`status`), 69 no sidecar runs, 70 internal error,\n75 try again, 77 not allowed, 78 configuration, 130 interrupted while waiting."
)]
pub struct Cli {
    #[command(flatten)]
    pub everywhere: GlobalArgs,
    /// The tmux server: a name as for `tmux -L`, or a path with a slash [default: TASUKI_TMUX, else your default
    /// server].
    // Every command takes it, at any place of the line. `help` shows it where it says something.
    #[arg(long, global = true, hide = true, value_name = "SOCKET")]
    pub tmux: Option<String>,
    #[command(subcommand)]
    pub command: Command,
}

/// The options of every command of tasuki and of tasuki-fleet.
#[derive(Debug, Args)]
pub struct GlobalArgs {
    /// tasuki's home folder [default: TASUKI_HOME, else tasuki in your data folder].
    #[arg(long, global = true, value_name = "DIR", help_heading = EVERYWHERE)]
    pub home: Option<PathBuf>,
    /// Print JSON. Errors are JSON too, on standard error.
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub json: bool,
    /// How long to wait for an answer, such as 30s or 10m.
    #[arg(long, global = true, value_name = "TIME", value_parser = humantime::parse_duration, help_heading = EVERYWHERE)]
    pub timeout: Option<Duration>,
}

impl GlobalArgs {
    /// The home, the output and the timeout that these options choose.
    ///
    /// # Errors
    /// `no_home` or `config`: as [`Home::resolve`].
    pub fn session(&self) -> Result<CliSession, CliError> {
        let home = Home::resolve(self.home.as_deref())?;
        if self.home.is_some() {
            home_option::remember(&home);
        }
        Ok(CliSession { home, out: Out::new(self.json), timeout: self.timeout })
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the sidecar in the foreground, until it is interrupted.
    #[command(after_help = "Example:\n  tasuki run --home ~/fleet --tmux work")]
    Run,
    /// Show one whole handoff on a private tmux server; nothing is left behind.
    #[command(after_help = "Example:\n  tasuki demo")]
    Demo,
    /// Hand off an agent: it writes a document and ends, then its successor is primed and briefed.
    #[command(
        after_help = "Example:\n  tasuki handoff kai --reason \"context is full\" --focus \"the flaky test\" --wait\n  tasuki handoff kai --check hold --review"
    )]
    Handoff(HandoffArgs),
    /// Resume a failed handoff at the step where it stopped.
    #[command(after_help = "Example:\n  tasuki retry 5f2a --assume not-delivered --wait")]
    Retry(RetryArgs),
    /// Cancel a handoff; possible until its step `ending` begins.
    #[command(after_help = "Example:\n  tasuki cancel 5f2a")]
    Cancel(HandoffName),
    /// Accept the document as it is, although the agent has not reported that it is finished or the document has
    /// faults.
    #[command(after_help = "Example:\n  tasuki accept 5f2a --wait")]
    Accept(AcceptArgs),
    /// Ask the agent to write its document once more, while the handoff waits for you to accept it.
    #[command(after_help = "Example:\n  tasuki rework 5f2a --note \"say which tests you ran\" --wait")]
    Rework(ReworkArgs),
    /// Close a failed handoff for good; document and record are kept.
    #[command(after_help = "Example:\n  tasuki abandon 5f2a")]
    Abandon(HandoffName),
    /// Acknowledge a handoff; the successor runs this in its own pane.
    #[command(
        after_help = "Example:\n  tasuki ack --understanding \"fix the flaky login test\" --starting-from \"the fixture works\"\n  tasuki ack --understanding \"fix the test\" --starting-from \"step 2\" --question \"Which branch?\""
    )]
    Ack(AckArgs),
    /// Answer a successor's questions; the answers are typed into its pane, and its time limit starts again.
    #[command(after_help = "Example:\n  tasuki clarify 5f2a --answer \"the branch main\" --document ./handoff.md")]
    Clarify(ClarifyArgs),
    /// Finish a handoff without the successor's acknowledgement; the reason is recorded.
    #[command(after_help = "Example:\n  tasuki ack-override 5f2a --reason \"it works already, I have looked\"")]
    AckOverride(OverrideArgs),
    /// Publish the document of a handoff, also if the handoff did not ask for that.
    #[command(
        after_help = "Example:\n  tasuki publish 5f2a --to octo/app#42 --wait\n  tasuki publish 5f2a --wait\n  tasuki publish 5f2a --assume not-published"
    )]
    Publish(PublishArgs),
    /// Print the conversation of an agent that was handed off, from its transcript; credentials are masked.
    #[command(
        after_help = "Messages are numbered from the end: 1 is the last.\n\nExample:\n  tasuki read 5f2a\n  tasuki read 5f2a --find \"flaky test\" --last 5"
    )]
    Read(ReadArgs),
    /// Reopen the session of an agent that was handed off, in a new window of its successor's tmux session; tasuki
    /// types nothing to the reopened agent.
    #[command(after_help = "Example:\n  tasuki reopen 5f2a")]
    Reopen(ReopenArgs),
    /// Check the whole setup; say what is wrong and how to fix it. Exit code 1 if a check fails.
    #[command(
        after_help = "Example:\n  tasuki doctor\n  tasuki doctor --fix\n  tasuki doctor --json | jq '.checks[] | select(.status != \"ok\")'\n  tasuki doctor delivery --issue octo/app#42"
    )]
    Doctor(DoctorArgs),
    /// List what waits for you, each with the command that settles it. Exit code 10 if there is anything.
    #[command(after_help = "Example:\n  tasuki status\n  tasuki status --json | jq -r '.[].command'")]
    Status,
    /// Show agents, handoffs, work and errors live; keys hand off, cancel, retry, accept, dismiss and go to a pane.
    #[command(
        after_help = "Example:\n  tasuki top\n\nIn tmux.conf: bind-key T display-popup -E -w 90% -h 90% \"tasuki top\""
    )]
    Top(TopArgs),
    /// List the agents.
    #[command(after_help = "Example:\n  tasuki agents --all\n  tasuki agents --all-hosts")]
    Agents(AgentsArgs),
    /// List the handoffs, or show one.
    #[command(
        after_help = "Example:\n  tasuki handoffs --limit 5\n  tasuki handoffs --all-hosts\n  tasuki handoffs show 5f2a --document\n  tasuki handoffs show 5f2a@box",
        args_conflicts_with_subcommands = true
    )]
    Handoffs(HandoffsArgs),
    /// Show an agent's predecessors and successors.
    #[command(after_help = "Example:\n  tasuki lineage kai")]
    Lineage(AgentName),
    /// Type a text into an agent's composer, submit it, and wait for its receipt.
    #[command(
        after_help = "Example:\n  tasuki send kai \"Run the tests again.\"\n  git diff | tasuki send kai -\n  tasuki send kai@box \"Run the tests again.\""
    )]
    Send(SendArgs),
    /// Start, adopt, end or forget an agent.
    #[command(subcommand, after_help = "Example:\n  tasuki agent create kai")]
    Agent(AgentCommand),
    /// Create or list personas.
    #[command(subcommand, after_help = "Example:\n  tasuki persona new kai --name Kai --role developer --profile demo")]
    Persona(PersonaCommand),
    /// Manage work items: typed pieces of work that pass from role to role.
    #[command(
        subcommand,
        after_help = "Example:\n  tasuki work create project_spec \"A shop for sashes\"\n  tasuki work list"
    )]
    Work(WorkCommand),
    /// Check the rules for work items.
    #[command(subcommand, after_help = "Example:\n  tasuki rules check")]
    Rules(RulesCommand),
    /// List the failures that nobody has dismissed, or dismiss them.
    #[command(
        after_help = "Example:\n  tasuki errors\n  tasuki errors --all-hosts\n  tasuki errors dismiss --all",
        args_conflicts_with_subcommands = true
    )]
    Errors(ErrorsArgs),
    /// Several hosts that ask each other for things: runs the program tasuki-fleet with the rest of the line.
    #[command(
        after_help = "Example:\n  tasuki fleet hosts\n  tasuki fleet run\n\nEverything after `fleet` goes to the program tasuki-fleet, which is installed beside tasuki or found in PATH."
    )]
    Fleet(FleetArgs),
    /// Run by an agent CLI at its own events: reads the event as JSON from standard input, always exits 0.
    #[command(after_help = "Example:\n  echo '{\"hook_event_name\":\"Stop\"}' | tasuki hook demo")]
    Hook(HookArgs),
    /// Run by Claude Code to draw its status line: reports the context usage and prints your own status line.
    #[command(
        after_help = "Example:\n  tasuki statusline -- sh ~/.claude/my-line.sh\n\nIn Claude Code's settings.json:\n  \"statusLine\": {\"type\": \"command\", \"command\": \"tasuki statusline -- sh ~/.claude/my-line.sh\"}"
    )]
    Statusline(StatuslineArgs),
    /// Install hooks, so that agents that you start yourself report their events too.
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
    /// Show a chapter of the guide, or the help of a command.
    #[command(after_help = "Example:\n  tasuki help\n  tasuki help work-items\n  tasuki help agent create")]
    Help(HelpArgs),
    /// Print the manual page, or write the pages of all commands and of the guide into a folder.
    #[command(after_help = "Example:\n  tasuki man | man -l -\n  tasuki man --dir ~/.local/share/man/man1")]
    Man(ManArgs),
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
