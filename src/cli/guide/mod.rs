//! `help`: the guide, chapter by chapter. The chapters are compiled in, so that they describe the version that is
//! installed; `man` makes manual pages of the same text.

mod blocks;
mod chapters;
mod page;
mod terminal;

use super::error::CliError;
use super::output::{Out, Tone};
use clap::{Args, Command};
use serde_json::{Value, json};
use std::fmt::Write as _;

pub use chapters::{CHAPTERS, Chapter};
pub use page::page;

/// `help`.
#[derive(Debug, Args)]
pub struct HelpArgs {
    /// A chapter, or a command; without it, the list of chapters.
    #[arg(value_name = "TOPIC")]
    pub topic: Vec<String>,
}

/// Prints the list of chapters, a chapter, or a command's help.
///
/// # Errors
/// There is no such chapter and no such command, or the output is closed.
pub fn command(out: &Out, args: &HelpArgs, whole: Command) -> Result<(), CliError> {
    let print = |json: &Value, text: &str| out.raw(&if out.is_json() { format!("{json}\n") } else { text.to_owned() });
    let Some(topic) = args.topic.first() else { return print(&list_json(), &list(out)) };
    if let (Some(chapter), 1) = (Chapter::named(topic), args.topic.len()) {
        let text = terminal::draw(&blocks::parse(chapter.text), out, terminal::width());
        return print(&json!({"topic": chapter.topic, "title": chapter.title(), "text": chapter.text}), &text);
    }
    let names = args.topic.join(" ");
    match of_command(whole, &args.topic) {
        Some(help) => print(&json!({"command": names, "text": help}), &help),
        None => Err(unknown(&names)),
    }
}

fn list(out: &Out) -> String {
    let rows: Vec<Vec<String>> =
        CHAPTERS.iter().map(|chapter| vec![chapter.topic.to_owned(), chapter.purpose.to_owned()]).collect();
    let wide = CHAPTERS.iter().map(|chapter| chapter.topic.len()).max().unwrap_or_default();
    let mut text = format!("{}\n\n", out.paint(Tone::Strong, "The guide"));
    for row in rows {
        let lines = terminal::wrapped(&row[1], terminal::width().saturating_sub(wide + 4));
        for (at, line) in lines.iter().enumerate() {
            let name = if at == 0 { row[0].as_str() } else { "" };
            // Writing into a text can't fail.
            let _ = writeln!(text, "  {}  {line}", out.paint(Tone::Good, &format!("{name:wide$}")));
        }
    }
    text.push_str("\nRead a chapter with `tasuki help TOPIC`, the help of a command with `tasuki help COMMAND`.\n");
    text
}

fn list_json() -> Value {
    let one = |chapter: &Chapter| json!({"topic": chapter.topic, "title": chapter.title(), "summary": chapter.purpose});
    json!({"topics": CHAPTERS.iter().map(one).collect::<Vec<_>>()})
}

/// The help of a command or a subcommand.
fn of_command(mut whole: Command, names: &[String]) -> Option<String> {
    whole.build();
    let found = names.iter().try_fold(&mut whole, |command, name| command.find_subcommand_mut(name))?;
    Some(found.render_long_help().to_string())
}

fn unknown(topic: &str) -> CliError {
    let known: Vec<&str> = CHAPTERS.iter().map(|chapter| chapter.topic).collect();
    CliError::usage(format!("There is neither a chapter nor a command {}.", crate::core::text::sanitise(topic)))
        .hint(format!("The chapters are: {}.", known.join(", ")))
}
