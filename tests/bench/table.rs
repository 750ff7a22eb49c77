//! The table, for people or in Markdown, and the machine that it belongs to.

use crate::place::Place;
use crate::rows::Figure;
use crate::sample::{Ratio, median, ms, per_second};
use std::fs;
use std::process::Command;
use std::time::Duration;

/// One line of the table.
pub(crate) struct Row {
    /// What was measured, and its goal.
    pub(crate) figure: Figure,
    /// tasuki's.
    pub(crate) ours: String,
    /// The floor's or rival's; empty where there is none.
    pub(crate) rival: String,
    /// Ours in proportion to it; empty where there is none.
    pub(crate) ratio: String,
    /// Whether the goal is met.
    pub(crate) met: bool,
}

impl Row {
    /// A figure that is measured beside nothing else.
    pub(crate) fn alone(figure: Figure, ours: String, met: bool) -> Row {
        Row { figure, ours, rival: String::new(), ratio: String::new(), met }
    }

    /// Times that were measured in turn with a floor, of which ours may be at most `goal` times as long.
    pub(crate) fn times(figure: Figure, ours: &[Duration], rival: &[Duration], part: f64, goal: f64) -> Row {
        let ratio = Ratio::of_times(ours, rival, part);
        let shown = |times| ms(crate::sample::percentile(times, part));
        Row { figure, ours: shown(ours), rival: shown(rival), ratio: ratio.to_string(), met: ratio.median <= goal }
    }

    /// Rates that were measured in turn with a rival, of which ours may be `least` times as high at least.
    pub(crate) fn rates(figure: Figure, ours: &[f64], rival: &[f64], least: f64) -> Row {
        let ratio = Ratio::of_turns(ours, rival);
        let shown = |rates| per_second(median(rates));
        Row { figure, ours: shown(ours), rival: shown(rival), ratio: ratio.to_string(), met: ratio.median >= least }
    }

    fn cells(&self) -> [&str; 5] {
        let goal = if self.figure.goal.is_empty() { "none" } else { self.figure.goal };
        [self.figure.name, &self.ours, &self.rival, &self.ratio, goal]
    }
}

const HEADS: [&str; 5] = ["figure", "ours", "floor or rival", "ratio", "goal"];
const MISSED: &str = "missed";

/// All rows in Markdown, as the guide has them.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let mut text = format!("| {} |\n|---|---|---|---|---|\n", HEADS.join(" | "));
    for row in rows {
        let missed = if row.met { String::new() } else { format!(": **{MISSED}**") };
        text += &format!("| {}{missed} |\n", row.cells().join(" | "));
    }
    text
}

/// All rows for a terminal: the figures in lines of their own, for their names are long.
pub(crate) fn plain(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let [name, ours, rival, ratio, goal] = row.cells();
        let missed = if row.met { String::new() } else { format!("  {MISSED}") };
        text += &format!("{name}\n    {ours}");
        if !ratio.is_empty() {
            text += &format!(" against {rival}: {ratio}");
        }
        text += &format!("  (goal: {goal}){missed}\n");
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
