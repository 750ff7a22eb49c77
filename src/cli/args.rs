//! The command line as data.

pub use super::ack_args::{AckArgs, AckStatus, ClarifyArgs, OverrideArgs};
pub use super::delivery_args::{AssumePublished, DeliveryArgs, DoctorArgs, DoctorCommand, PublishArgs};
pub use super::handoff_args::{
    AcceptArgs, Assume, Author, HandoffArgs, HandoffName, HandoffsArgs, HandoffsCommand, RetryArgs, Urgency,
};
pub use super::work::args::{RulesCommand, WorkCommand};
use clap::{Args, Parser, Subcommand};
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
    /// What to do.
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
    Serve(super::serve::ServeArgs),
    /// Let systemd or launchd run the sidecar for you.
    #[command(subcommand, after_help = "Example:\n  tasuki service install --dry-run\n  tasuki service install")]
    Service(super::service::ServiceCommand),
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

/// `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The folder for the pages; without it `tasuki(1)` is printed.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `statusline`.
#[derive(Debug, Args)]
pub struct StatuslineArgs {
    /// Your own status line command, which gets the same standard input.
    #[arg(last = true, value_name = "COMMAND")]
    pub former: Vec<String>,
}

/// `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The tmux server: a name as for `tmux -L`, or a path if it has a slash [else TASUKI_TMUX, else your default server].
    #[arg(long, value_name = "SOCKET")]
    pub tmux: Option<String>,
}

/// `agents`.
#[derive(Debug, Args)]
pub struct AgentsArgs {
    /// Also those that have ended.
    #[arg(long, short)]
    pub all: bool,
}

/// One agent.
#[derive(Debug, Args)]
pub struct AgentName {
    /// Agent id, its beginning, its persona, its pane such as `%3`, or `.` for the agent in whose pane this runs.
    pub agent: String,
}

/// `send`.
#[derive(Debug, Args)]
pub struct SendArgs {
    /// Agent id, its beginning, its persona, its pane such as `%3`, or `.` for the agent in whose pane this runs.
    pub agent: String,
    /// The text, or `-` for standard input. It is typed as a message from the operator, with the delivery's mark below.
    pub text: String,
}

/// `agent …`.
#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Start an agent of a persona; it is primed with the persona's skill.
    #[command(after_help = "Example:\n  tasuki agent create kai --profile demo --cwd ~/src/app")]
    Create(CreateArgs),
    /// Adopt an agent that already runs in a pane. Nothing is typed into it.
    #[command(after_help = "Example:\n  tasuki agent register %3 --persona kai")]
    Register(RegisterArgs),
    /// End an agent by its profile's exit command.
    #[command(after_help = "Example:\n  tasuki agent shutdown kai")]
    Shutdown(ShutdownArgs),
    /// Let go of an agent whose process does not run, and that is shown as living. Nothing is done in tmux.
    #[command(after_help = "Example:\n  tasuki agent forget 6f1c3a52")]
    Forget(ForgetArgs),
}

/// `agent create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// The persona's slug.
    pub persona: String,
    /// The profile, where the persona names none or another is wanted.
    #[arg(long)]
    pub profile: Option<String>,
    /// The folder to work in.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// The tmux session to open the window in.
    #[arg(long)]
    pub session: Option<String>,
    /// The agent whose work this one goes on with.
    #[arg(long, value_name = "AGENT")]
    pub previous: Option<String>,
}

/// `agent register`.
#[derive(Debug, Args)]
pub struct RegisterArgs {
    /// The pane, such as `%3`; `.` is the pane in which this runs. Inside tmux, panes of that server are meant.
    pub pane: String,
    /// The persona that the agent is to have; without one it is seen, and left alone.
    #[arg(long, value_name = "SLUG")]
    pub persona: Option<String>,
    /// The profile, where the screen does not tell.
    #[arg(long)]
    pub profile: Option<String>,
}

/// `agent shutdown`.
#[derive(Debug, Args)]
pub struct ShutdownArgs {
    /// Agent id, its beginning, its persona, or its pane such as `%3`.
    pub agent: String,
    /// Close the pane if the agent does not end; only for agents that tasuki started.
    #[arg(long)]
    pub force: bool,
}

/// `agent forget`.
#[derive(Debug, Args)]
pub struct ForgetArgs {
    /// Agent id, its beginning, its persona, or its pane such as `%3`.
    pub agent: String,
}

/// `persona …`.
#[derive(Debug, Subcommand)]
pub enum PersonaCommand {
    /// Make a persona's folder with a skill to edit.
    #[command(after_help = "Example:\n  tasuki persona new kai --name Kai --role developer --profile demo")]
    New(PersonaArgs),
    /// List the personas.
    #[command(after_help = "Example:\n  tasuki persona list")]
    List,
}

/// `persona new`.
#[derive(Debug, Args)]
pub struct PersonaArgs {
    /// The folder's name: 1 to 64 of a-z, 0-9 and -.
    pub slug: crate::core::id::Slug,
    /// The name that it goes by.
    #[arg(long)]
    pub name: Option<String>,
    /// Its role, such as `developer`.
    #[arg(long)]
    pub role: Option<String>,
    /// The profile that its agents run with.
    #[arg(long)]
    pub profile: Option<String>,
    /// The folder that its agents work in.
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

/// `errors`.
#[derive(Debug, Args)]
pub struct ErrorsArgs {
    /// The newest so many.
    #[arg(long, default_value_t = 20)]
    pub limit: usize,
    /// Dismiss instead.
    #[command(subcommand)]
    pub command: Option<ErrorsCommand>,
}

/// `errors …`.
#[derive(Debug, Subcommand)]
pub enum ErrorsCommand {
    /// Dismiss one failure, or all.
    #[command(after_help = "Example:\n  tasuki errors dismiss 5f2a\n  tasuki errors dismiss --all")]
    Dismiss(DismissArgs),
}

/// `errors dismiss`.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct DismissArgs {
    /// Error id or its beginning.
    pub error: Option<String>,
    /// All of them.
    #[arg(long)]
    pub all: bool,
}

/// `hook`.
#[derive(Debug, Args)]
pub struct HookArgs {
    /// The profile of the agent CLI that calls.
    pub profile: Option<String>,
    /// What the profile's hook takes beside that.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub rest: Vec<std::ffi::OsString>,
}

/// `hooks …`.
#[derive(Debug, Subcommand)]
pub enum HooksCommand {
    /// Put tasuki's hooks into the CLI's own configuration, beside what is there.
    #[command(after_help = "Example:\n  tasuki hooks install claude --dry-run\n  tasuki hooks install claude")]
    Install(InstallArgs),
    /// Take them out again: the file is as it was before.
    #[command(after_help = "Example:\n  tasuki hooks uninstall claude")]
    Uninstall(InstallArgs),
    /// Print what would be put in, and into which file.
    #[command(after_help = "Example:\n  tasuki hooks show claude")]
    Show(ProfileName),
}

/// `hooks install`, `hooks uninstall`.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// The profile's name.
    pub profile: String,
    /// Show the change, and change nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// One profile.
#[derive(Debug, Args)]
pub struct ProfileName {
    /// The profile's name.
    pub profile: String,
}

/// `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Which; without it, their names.
    pub kind: Option<String>,
}

/// `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    pub shell: clap_complete::Shell,
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
