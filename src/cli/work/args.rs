//! The arguments of `work …` and `rules …`.

use crate::cli::free_text::free_text;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// `work …`.
#[derive(Debug, Subcommand)]
pub enum WorkCommand {
    /// List the open work items.
    #[command(after_help = "Example:\n  tasuki work list --type story --status ready")]
    List(ListArgs),
    /// Show all details of an item.
    #[command(after_help = "Example:\n  tasuki work show 5f2a")]
    Show(ItemName),
    /// Show an item and its descendants; without an item, everything that is open.
    #[command(after_help = "Example:\n  tasuki work tree 5f2a")]
    Tree(TreeArgs),
    /// Show the history of an item: who did what, when and why.
    #[command(after_help = "Example:\n  tasuki work history 5f2a")]
    History(ItemName),
    /// Create an item.
    #[command(after_help = "Example:\n  tasuki work create project_spec \"A shop for sashes\" --priority high")]
    Create(CreateArgs),
    /// Claim an item.
    #[command(after_help = "Example:\n  tasuki work claim 5f2a")]
    Claim(ClaimArgs),
    /// Complete an item: hand in its output and its children.
    #[command(
        after_help = "Example:\n  tasuki work complete 5f2a --output prd.json --children stories.json\n  tasuki work complete 5f2a --output '{\"completed\": true}'"
    )]
    Complete(CompleteArgs),
    /// Create the children that a partial completion could not create.
    #[command(after_help = "Example:\n  tasuki work retry-children 5f2a --children fixed.json")]
    RetryChildren(RetryChildrenArgs),
    /// Give an item back, or release an escalated item.
    #[command(after_help = "Example:\n  tasuki work release 5f2a --reason \"not for me\"")]
    Release(ReleaseArgs),
    /// Escalate an item to a person.
    #[command(after_help = "Example:\n  tasuki work escalate 5f2a --reason \"no access to the database\"")]
    Escalate(EscalateArgs),
    /// Undo a completion: the children are withdrawn, and the item goes back to its owner.
    #[command(after_help = "Example:\n  tasuki work rollback 5f2a --reason \"the wrong stories\"")]
    Rollback(RollbackArgs),
    /// Comment on an item.
    #[command(after_help = "Example:\n  tasuki work comment 5f2a \"See the notes of Monday.\"")]
    Comment(CommentArgs),
    /// Show for each type how many items there are, and how long they waited and took.
    #[command(after_help = "Example:\n  tasuki work stats --json")]
    Stats,
    /// Import items from a file with one JSON object per line; only type and title are required.
    #[command(after_help = "Example:\n  tasuki work import backlog.jsonl")]
    Import(ImportArgs),
    /// Print items, one JSON object per line.
    #[command(after_help = "Example:\n  tasuki work export > work.jsonl")]
    Export(ExportArgs),
}

/// One item.
#[derive(Debug, Args)]
pub struct ItemName {
    /// Item id or a unique prefix.
    pub item: String,
}

/// Who acts; by default the agent in this pane, or else you.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct WhoArgs {
    /// Act as this agent: id or a unique prefix, persona, pane such as `%3`, or `.` for the agent in this pane.
    #[arg(long)]
    pub agent: Option<String>,
    /// Act as yourself, the operator.
    #[arg(long)]
    pub human: bool,
}

/// `work list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Include items that are done or withdrawn.
    #[arg(long, short)]
    pub all: bool,
    /// Only items with this status.
    #[arg(long, value_parser = ["ready", "claimed", "escalated", "done", "withdrawn"])]
    pub status: Option<String>,
    /// Only items of this type.
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Only items that this agent has claimed; `human` for yours.
    #[arg(long)]
    pub agent: Option<String>,
    /// At most this many items.
    #[arg(long)]
    pub limit: Option<usize>,
}

/// `work tree`.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// Item id or a unique prefix.
    pub item: Option<String>,
}

/// The priority of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PriorityArg {
    /// After everything else.
    Low,
    /// The default.
    Normal,
    /// Before normal items.
    High,
    /// Before everything else.
    Urgent,
}

/// `work create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// The type of the item; the rules must have a rule for it.
    #[arg(value_name = "TYPE")]
    pub kind: String,
    /// The title, in one line.
    pub title: String,
    /// The description; `-` for standard input.
    #[arg(long, allow_hyphen_values = true, value_parser = free_text)]
    pub description: Option<String>,
    /// The parent of the item.
    #[arg(long, value_name = "ITEM")]
    pub parent: Option<String>,
    /// The priority of the item.
    #[arg(long, value_enum)]
    pub priority: Option<PriorityArg>,
    /// Metadata, a JSON object: the JSON itself, a file with it, or `-` for standard input.
    #[arg(long, value_name = "JSON")]
    pub metadata: Option<String>,
    /// Who: with --parent, an agent must have claimed the parent.
    #[command(flatten)]
    pub who: WhoArgs,
}

/// `work claim`.
#[derive(Debug, Args)]
pub struct ClaimArgs {
    /// Item id or a unique prefix.
    pub item: String,
    /// Who.
    #[command(flatten)]
    pub who: WhoArgs,
}

/// The status that follows a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NextStatusArg {
    /// The item is finished.
    Done,
    /// The item can be claimed again.
    Ready,
    /// A person must look at the item.
    Escalated,
}

/// `work complete`.
#[derive(Debug, Args)]
pub struct CompleteArgs {
    /// Item id or a unique prefix.
    pub item: String,
    /// The output, a JSON object: the JSON itself, a file with it, or `-` for standard input.
    #[arg(long, value_name = "JSON")]
    pub output: String,
    /// The children, a JSON list of objects with type, title and description: the JSON itself, or a file with it.
    #[arg(long, value_name = "JSON")]
    pub children: Option<String>,
    /// Create the valid children even if others are invalid.
    #[arg(long)]
    pub partial: bool,
    /// Only say whether the output and the children are as the rule demands; change nothing.
    #[arg(long)]
    pub check: bool,
    /// The next status of the item, instead of the one that its rule names.
    #[arg(long, value_enum, value_name = "STATUS")]
    pub next_status: Option<NextStatusArg>,
    /// Who.
    #[command(flatten)]
    pub who: WhoArgs,
}

/// `work retry-children`.
#[derive(Debug, Args)]
pub struct RetryChildrenArgs {
    /// Item id or a unique prefix.
    pub item: String,
    /// Replaces all failed children, a JSON list: the JSON itself, or a file with it [default: retry the failed ones].
    #[arg(long, value_name = "JSON")]
    pub children: Option<String>,
    /// Create the valid children even if others are still invalid.
    #[arg(long)]
    pub partial: bool,
    /// Who.
    #[command(flatten)]
    pub who: WhoArgs,
}

/// `work release`.
#[derive(Debug, Args)]
pub struct ReleaseArgs {
    /// Item id or a unique prefix.
    pub item: String,
    /// The reason, kept in the item's history.
    #[arg(long, allow_hyphen_values = true, value_parser = free_text)]
    pub reason: Option<String>,
    /// Who.
    #[command(flatten)]
    pub who: WhoArgs,
}

/// `work escalate`.
#[derive(Debug, Args)]
pub struct EscalateArgs {
    /// Item id or a unique prefix.
    pub item: String,
    /// The reason, kept in the item's history.
    #[arg(long, allow_hyphen_values = true, value_parser = free_text)]
    pub reason: String,
    /// Who.
    #[command(flatten)]
    pub who: WhoArgs,
}

/// `work rollback`.
#[derive(Debug, Args)]
pub struct RollbackArgs {
    /// Item id or a unique prefix.
    pub item: String,
    /// The reason, kept in the item's history.
    #[arg(long, allow_hyphen_values = true, value_parser = free_text)]
    pub reason: String,
}

/// `work comment`.
#[derive(Debug, Args)]
pub struct CommentArgs {
    /// Item id or a unique prefix.
    pub item: String,
    /// The text, or `-` for standard input.
    pub text: String,
    /// The author of the comment [default: the agent in this pane, else `human`].
    #[arg(long)]
    pub author: Option<String>,
}

/// `work import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The file to import, or `-` for standard input.
    pub file: PathBuf,
    /// Skip items that already exist.
    #[arg(long)]
    pub skip_known: bool,
}

/// `work export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Only open items.
    #[arg(long)]
    pub open: bool,
}
