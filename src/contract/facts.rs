//! What tasuki itself has seen of an agent's work, beside the document in which the agent describes it: the repository,
//! the conversation, what the agent did, what still runs. `<document>.facts.json` holds it, and so does the handoff's
//! view.

use super::words::without_defaults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `data/personas/<slug>/handoffs/<document>.facts.json`, and `facts` in a handoff's view.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct Facts {
    /// The format's version: 1.
    pub v: u8,
    /// The handoff's id.
    pub handoff_id: String,
    /// The outgoing agent.
    pub agent_id: String,
    /// When they were taken: UTC, milliseconds, `Z`.
    pub taken_at: String,
    /// What could not be found out, one sentence each, such as "git took longer than 2 s".
    pub not_known: Vec<String>,
    /// The git repository in which the agent worked; null if there is none, or if that is not known.
    pub repository: Option<RepositoryFacts>,
    /// The agent's session; null if the profile has no transcript, or it can't be read.
    pub conversation: Option<ConversationFacts>,
    /// What the person asked for; null if `conversation` is null.
    pub user: Option<UserFacts>,
    /// What the agent did, by the tool calls in its transcript; null if the profile has no rules for them.
    pub actions: Option<ActionFacts>,
    /// The handoffs before this one.
    pub chain: ChainFacts,
    /// Processes that the agent has started and that still run; null if that is not known.
    pub running: Option<Vec<RunningProcess>>,
}

/// The state of a git repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct RepositoryFacts {
    /// The folder of the work tree; of a bare repository its own folder.
    pub root: String,
    /// It is a bare repository, without a work tree.
    pub bare: bool,
    /// The folder of the main repository's git directory, if the work tree is a linked one (`git worktree`); otherwise
    /// null.
    pub main: Option<String>,
    /// The branch; null where HEAD is detached.
    pub branch: Option<String>,
    /// The full hash of HEAD; null in a repository without a commit.
    pub head: Option<String>,
    /// The first line of HEAD's message.
    pub subject: Option<String>,
    /// The branch that it follows, such as `origin/main`; null if there is none.
    pub upstream: Option<String>,
    /// Commits that the upstream does not have; null without an upstream.
    pub ahead: Option<u64>,
    /// Commits of the upstream that are not here; null without an upstream.
    pub behind: Option<u64>,
    /// Whether HEAD is on a branch of a remote, as far as this repository has heard; null if that is not known.
    pub head_on_remote: Option<bool>,
    /// The address of the remote, without a user's name and password.
    pub remote: Option<String>,
    /// How many files differ from HEAD or are not in git; null if that is not known.
    pub changed: Option<u64>,
    /// The first 200 of these files.
    pub status: Vec<ChangedFile>,
    /// The last line of `git diff --stat HEAD`, such as `3 files changed, 20 insertions(+)`.
    pub diff_stat: Option<String>,
    /// How many stashes there are.
    pub stashes: Option<u64>,
    /// What is under way: `merge`, `rebase`, `cherry-pick`, `revert` or `bisect`.
    pub in_progress: Option<String>,
    /// The commits since the agent registered, newest first, at most 50.
    pub commits: Vec<CommitFacts>,
}

/// A file that differs from HEAD.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ChangedFile {
    /// Its path from the root.
    pub path: String,
    /// The two letters of `git status --short`, such as ` M` or `??`.
    pub state: String,
}

/// A commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct CommitFacts {
    /// Its full hash.
    pub commit: String,
    /// Its subject: the first paragraph of its message, as one line.
    pub subject: String,
}

/// The agent's session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ConversationFacts {
    /// The CLI's own session id.
    pub session_id: Option<String>,
    /// The command with which the CLI opens that session again; null if the profile names none.
    pub resume_command: Option<String>,
    /// The absolute path of the transcript.
    pub transcript_path: Option<String>,
    /// Prompts and answers, as far as they were read.
    pub messages: u64,
    /// Only the beginning and the end of the transcript were read, because it is long.
    pub cut: bool,
    /// How often the CLI has summarised the conversation to free its context; null if the profile can't tell.
    pub compactions: Option<u64>,
    /// How full the context was, in percent.
    pub context_percent: Option<u64>,
    /// The model's name.
    pub model: Option<String>,
}

/// What the person said, word for word. tasuki's own texts are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct UserFacts {
    /// The first request, at most 4 KiB of it.
    pub first: Option<String>,
    /// The last five requests, oldest first, at most 4 KiB of each.
    pub last: Vec<String>,
}

/// What the agent did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ActionFacts {
    /// The files that it wrote, the last one first, at most 100.
    pub files: Vec<WrittenFile>,
    /// The last 20 commands, oldest first.
    pub commands: Vec<CommandFacts>,
    /// The last command that looks like a test.
    pub last_test: Option<CommandFacts>,
    /// The last pushes and pull requests, oldest first, at most 10: what has left the machine. One whose
    /// `failed` is true was tried and has failed.
    pub sent: Vec<CommandFacts>,
}

/// A file that the agent wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct WrittenFile {
    /// Its path, as the tool call named it.
    pub path: String,
    /// `exists`, `gone`, or `differs` if it exists and differs from HEAD.
    pub state: String,
}

/// A command that the agent ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct CommandFacts {
    /// The command line, at most 500 characters of it.
    pub command: String,
    /// Its exit status; null if the transcript does not say.
    pub exit: Option<i64>,
    /// Whether it failed, by its exit status or the CLI's own word; null if the transcript does not say.
    pub failed: Option<bool>,
    /// The last lines of what it printed, at most 500 characters of them; only for a test.
    pub printed: Option<String>,
    /// When it was called; null if the transcript does not say.
    pub at: Option<String>,
}

/// The handoffs before this one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ChainFacts {
    /// 1 for the first handoff of a chain of agents.
    pub generation: u64,
    /// The documents before this one, oldest first, at most the last 20.
    pub earlier: Vec<EarlierDocument>,
    /// The rules that those documents name, word for word, oldest first.
    pub rules: Vec<String>,
}

/// An earlier document of the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct EarlierDocument {
    /// Its handoff.
    pub handoff_id: String,
    /// Its absolute path.
    pub file_path: String,
    /// Where it said that its successor should begin; null if it did not say.
    pub checkpoint: Option<String>,
}

/// A process that an agent has started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct RunningProcess {
    /// Its process id.
    pub pid: u32,
    /// Its command line, at most 200 characters of it.
    pub command: String,
    /// The TCP ports on which it listens.
    pub ports: Vec<u16>,
}
