//! The table, in Markdown, and the size of the machine that it belongs to.

use crate::place::Place;
use std::fs;
use std::process::Command;

/// One line of the table.
pub(crate) struct Row {
    /// What was measured.
    pub(crate) figure: String,
    /// tasuki's.
    pub(crate) ours: String,
    /// The floor's or rival's; empty where there is none.
    pub(crate) rival: String,
    /// Ours in proportion to it; empty where there is none.
    pub(crate) ratio: String,
    /// What it should be.
    pub(crate) goal: String,
    /// Whether it is.
    pub(crate) met: bool,
}

impl Row {
    /// A figure that is measured beside nothing else.
    pub(crate) fn alone(figure: impl Into<String>, ours: String, goal: &str, met: bool) -> Row {
        Row { figure: figure.into(), ours, rival: String::new(), ratio: String::new(), goal: goal.to_owned(), met }
    }
}

/// All rows.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = String::from("| figure | ours | floor or rival | ratio | goal | met |\n|---|---|---|---|---|---|\n");
    for row in rows {
        let met = if row.met { "yes" } else { "**no**" };
        let Row { figure, ours, rival, ratio, goal, .. } = row;
        text += &format!("| {figure} | {ours} | {rival} | {ratio} | {goal} | {met} |\n");
    }
    text
}

/// Cores, memory, kernel, tmux, and the file system on which everything was measured.
pub(crate) fn machine(place: &Place) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes: u64 = memory.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let tmux = said(Command::new("tmux").arg("-V"));
    let disk = said(Command::new("stat").args(["-f", "-c", "%T"]).arg(place.path("")));
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "{cores} cores, {:.0} GiB of memory, Linux {}, {tmux}, TMPDIR on {disk}, load {} at the end\n",
        kilobytes as f64 / (1 << 20) as f64,
        kernel.trim(),
        load.split(' ').next().unwrap_or_default()
    )
}

fn said(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().to_owned()
}
