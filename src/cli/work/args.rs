//! The arguments of `work …` and `rules …`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `work …`.
#[derive(Debug, Subcommand)]
pub enum WorkCommand {
    /// List the items that are not done.
    #[command(after_help = "Example:\n  tasuki work list --type story --status ready")]
    List(ListArgs),
    /// Show all that is known of an item.
    #[command(after_help = "Example:\n  tasuki work show 5f2a")]
    Show(ItemName),
    /// Show an item and all that came of it; without one, everything that is not done.
    #[command(after_help = "Example:\n  tasuki work tree 5f2a")]
    Tree(TreeArgs),
    /// Show what was done to an item: who, what, when, why.
    #[command(after_help = "Example:\n  tasuki work history 5f2a")]
    History(ItemName),
    /// Make an item.
    #[command(after_help = "Example:\n  tasuki work create project_spec \"A shop for sashes\" --priority high")]
    Create(CreateArgs),
    /// Take an item.
    #[command(after_help = "Example:\n  tasuki work claim 5f2a")]
    Claim(ClaimArgs),
    /// Hand over what came of an item, and what follows from it.
    #[command(
        after_help = "Example:\n  tasuki work complete 5f2a --output prd.json --children stories.json\n  tasuki work complete 5f2a --output '{\"completed\": true}'"
    )]
    Complete(CompleteArgs),
    /// Make the children that a partial completion could not make.
    #[command(after_help = "Example:\n  tasuki work retry-children 5f2a --children mended.json")]
    RetryChildren(RetryChildrenArgs),
    /// Give an item back, or release one that was escalated.
    #[command(after_help = "Example:\n  tasuki work release 5f2a --reason \"not for me\"")]
    Release(ReleaseArgs),
    /// Leave an item to a person.
    #[command(after_help = "Example:\n  tasuki work escalate 5f2a --reason \"no access to the database\"")]
    Escalate(EscalateArgs),
    /// Undo a completion: its children go, and the item is back with its owner.
    #[command(after_help = "Example:\n  tasuki work rollback 5f2a --reason \"the wrong stories\"")]
    Rollback(RollbackArgs),
    /// Say something of an item.
    #[command(after_help = "Example:\n  tasuki work comment 5f2a \"See the notes of Monday.\"")]
    Comment(CommentArgs),
    /// Show, for each type, how many there are, and how long they waited and took.
    #[command(after_help = "Example:\n  tasuki work stats --json")]
    Stats,
    /// Take items from a file: one JSON object a line, of which type and title are enough.
    #[command(after_help = "Example:\n  tasuki work import backlog.jsonl")]
    Import(ImportArgs),
    /// Print items, one JSON object a line.
    #[command(after_help = "Example:\n  tasuki work export > work.jsonl")]
    Export(ExportArgs),
}

/// One item.
#[derive(Debug, Args)]
pub struct ItemName {
    /// Item id or its beginning.
    pub item: String,
}

/// Who does it; without either, the agent in whose pane this runs, or else you.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct WhoArgs {
    /// Agent id, its beginning, its persona, its pane such as `%3`, or `.` for the agent in whose pane this runs.
    #[arg(long)]
    pub agent: Option<String>,
    /// You, the operator.
    #[arg(long)]
    pub human: bool,
}

/// `work list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Also those that are done or withdrawn.
    #[arg(long, short)]
    pub all: bool,
    /// Only those with this status.
    #[arg(long, value_parser = ["ready", "claimed", "escalated", "done", "withdrawn"])]
    pub status: Option<String>,
    /// Only those of this type.
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Only those that this agent has; `human` for yours.
    #[arg(long)]
    pub agent: Option<String>,
    /// At most so many.
    #[arg(long)]
    pub limit: Option<usize>,
}

/// `work tree`.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// Item id or its beginning.
    pub item: Option<String>,
}

/// How much an item matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Priority {
    /// When there is nothing else.
    Low,
    /// As most.
    Normal,
    /// Before most.
    High,
    /// Before all.
    Urgent,
}

/// `work create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Its type, which must have a rule.
    #[arg(value_name = "TYPE")]
    pub kind: String,
    /// In one line.
    pub title: String,
    /// In full; `-` for standard input.
    #[arg(long)]
    pub description: Option<String>,
    /// The item that it belongs to.
    #[arg(long, value_name = "ITEM")]
    pub parent: Option<String>,
    /// How much it matters.
    #[arg(long, value_enum)]
    pub priority: Option<Priority>,
    /// A JSON object: itself, a file that holds it, or `-` for standard input.
    #[arg(long, value_name = "JSON")]
    pub metadata: Option<String>,
}

/// `work claim`.
#[derive(Debug, Args)]
pub struct ClaimArgs {
    /// Item id or its beginning.
    pub item: String,
    /// Who.
    #[command(flatten)]
    pub who: WhoArgs,
}

/// The status that follows a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NextStatus {
    /// It is finished.
    Done,
    /// It goes round again.
    Ready,
    /// A person must look at it.
    Escalated,
}

/// `work complete`.
#[derive(Debug, Args)]
pub struct CompleteArgs {
    /// Item id or its beginning.
    pub item: String,
    /// What came of it, a JSON object: itself, a file that holds it, or `-` for standard input.
    #[arg(long, value_name = "JSON")]
    pub output: String,
    /// What follows from it, a JSON list of objects with type, title and description: itself, or a file that holds it.
    #[arg(long, value_name = "JSON")]
    pub children: Option<String>,
    /// Make the good children although others are bad.
    #[arg(long)]
    pub partial: bool,
    /// The status that follows, instead of the rule's.
    #[arg(long, value_enum, value_name = "STATUS")]
    pub next_status: Option<NextStatus>,
    /// Who.
    #[command(flatten)]
    pub who: WhoArgs,
}

/// `work retry-children`.
#[derive(Debug, Args)]
pub struct RetryChildrenArgs {
    /// Item id or its beginning.
    pub item: String,
    /// In place of all that have failed, a JSON list: itself, or a file that holds it. Without it, those are tried again.
    #[arg(long, value_name = "JSON")]
    pub children: Option<String>,
    /// Make the good ones although others are still bad.
    #[arg(long)]
    pub partial: bool,
    /// Who.
    #[command(flatten)]
    pub who: WhoArgs,
}

/// `work release`.
#[derive(Debug, Args)]
pub struct ReleaseArgs {
    /// Item id or its beginning.
    pub item: String,
    /// Why.
    #[arg(long)]
    pub reason: Option<String>,
    /// Who.
    #[command(flatten)]
    pub who: WhoArgs,
}

/// `work escalate`.
#[derive(Debug, Args)]
pub struct EscalateArgs {
    /// Item id or its beginning.
    pub item: String,
    /// Why.
    #[arg(long)]
    pub reason: String,
    /// Who.
    #[command(flatten)]
    pub who: WhoArgs,
}

/// `work rollback`.
#[derive(Debug, Args)]
pub struct RollbackArgs {
    /// Item id or its beginning.
    pub item: String,
    /// Why.
    #[arg(long)]
    pub reason: String,
}

/// `work comment`.
#[derive(Debug, Args)]
pub struct CommentArgs {
    /// Item id or its beginning.
    pub item: String,
    /// The text, or `-` for standard input.
    pub text: String,
    /// Who says it [else the agent in whose pane this runs, or `human`].
    #[arg(long)]
    pub author: Option<String>,
}

/// `work import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The file, or `-` for standard input.
    pub file: PathBuf,
    /// Leave out items that are here already.
    #[arg(long)]
    pub skip_known: bool,
}

/// `work export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Only those that are not done.
    #[arg(long)]
    pub open: bool,
}
