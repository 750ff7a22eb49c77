//! The arguments of the commands that are about how a handoff is delivered.

use clap::{Args, Subcommand, ValueEnum};

/// `publish`.
#[derive(Debug, Args)]
pub struct PublishArgs {
    /// Handoff id or its beginning.
    pub handoff: String,
    /// Whether the document is there, as you have seen it, where the handoff's view says `in_doubt`.
    #[arg(long, value_enum)]
    pub assume: Option<AssumePublished>,
    /// Exit only when it is published, has failed or is in doubt.
    #[arg(long)]
    pub wait: bool,
}

/// What a person has seen of an upload in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AssumePublished {
    /// It is there.
    Published,
    /// It is not there: publish it anew.
    #[value(alias = "not_published")]
    NotPublished,
}

/// `doctor`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DoctorArgs {
    /// Mend what is safe: modes and missing folders of tasuki's own, files left over, hooks that have become stale.
    #[arg(long)]
    pub fix: bool,
    /// Run the command by which you are told of failures, with a test notice.
    #[arg(long)]
    pub notify_test: bool,
    /// Look at one thing more closely instead.
    #[command(subcommand)]
    pub command: Option<DoctorCommand>,
}

/// `doctor …`.
#[derive(Debug, Subcommand)]
pub enum DoctorCommand {
    /// Look at all that the delivery of a handoff needs: sidecar, recipient, gh, its login, the issue.
    #[command(
        after_help = "Example:\n  tasuki doctor delivery --issue octo/app#42\n  tasuki doctor delivery --handoff 5f2a"
    )]
    Delivery(DeliveryArgs),
}

/// `doctor delivery`.
#[derive(Debug, Args)]
pub struct DeliveryArgs {
    /// Look at this handoff's recipient and issue: handoff id or its beginning.
    #[arg(long, value_name = "ID")]
    pub handoff: Option<String>,
    /// Look at this issue: `owner/repo#42` or its address.
    #[arg(long, value_name = "ISSUE")]
    pub issue: Option<String>,
}
