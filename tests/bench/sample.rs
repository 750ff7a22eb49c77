//! Counting: rounds, medians, percentiles, ratios with their spread, and how they are written.

use nix::unistd::Pid;
use std::fs;
use std::time::{Duration, Instant};

/// Numbers of rounds: so many, but no new one when the time is over, for on a busy machine a table that comes late is
/// worth less than one of fewer samples. There is always one round.
pub(crate) fn rounds(most: usize, time: Duration) -> impl Iterator<Item = usize> {
    let until = Instant::now() + time;
    (0..most).take_while(move |number| *number == 0 || Instant::now() < until)
}

/// The value below which `part` of all samples lie. The samples must not be empty.
pub(crate) fn percentile(samples: &[Duration], part: f64) -> Duration {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let place = ((sorted.len() - 1) as f64 * part).round() as usize;
    sorted[place.min(sorted.len() - 1)]
}

/// The median of numbers. They must not be empty.
pub(crate) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Ours in proportion to the rival's: the median over several stretches of one run, and the least and the most of them.
/// What the machine does meanwhile falls on both sides of a stretch, so it shows in the spread and hardly in the
/// median.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    least: f64,
    most: f64,
}

impl Ratio {
    /// Of numbers that were measured in turn. There must be some.
    pub(crate) fn of_turns(ours: &[f64], rival: &[f64]) -> Ratio {
        let ratios: Vec<f64> = ours.iter().zip(rival).map(|(ours, rival)| ours / rival).collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Ratio { median: median(&ratios), least, most }
    }

    /// Of times that were measured in turn: they are cut into stretches, and the percentiles of each are compared.
    pub(crate) fn of_times(ours: &[Duration], rival: &[Duration], part: f64) -> Ratio {
        const STRETCHES: usize = 8;
        let size = ours.len().min(rival.len()).div_ceil(STRETCHES).max(1);
        let of = |times: &[Duration]| -> Vec<f64> {
            times.chunks(size).map(|times| percentile(times, part).as_secs_f64()).collect()
        };
        Ratio::of_turns(&of(ours), &of(rival))
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = if self.median < 10.0 { 2 } else { 0 };
        write!(f, "{:.digits$} ({:.digits$} to {:.digits$})", self.median, self.least, self.most)
    }
}

/// Milliseconds, for people.
pub(crate) fn ms(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    if ms < 10.0 { format!("{ms:.2} ms") } else { format!("{ms:.0} ms") }
}

/// A rate, for people.
pub(crate) fn per_second(rate: f64) -> String {
    let whole = rate.round() as u64;
    if whole >= 1_000 { format!("{},{:03}/s", whole / 1_000, whole % 1_000) } else { format!("{whole}/s") }
}

/// How much of one processor a process uses while it is watched, all of its threads together, in percent.
pub(crate) fn share_of_a_core(pid: Pid, watched: Duration) -> f64 {
    let (began, before) = (Instant::now(), used(pid));
    std::thread::sleep(watched);
    (used(pid) - before) / began.elapsed().as_secs_f64() * 100.0
}

/// Seconds of processor time that a process has used; none if it has ended.
pub(crate) fn used(pid: Pid) -> f64 {
    ticks(pid, 11)
}

/// The same of its children that have ended.
pub(crate) fn used_by_children(pid: Pid) -> f64 {
    ticks(pid, 13)
}

/// Two fields of a process's `stat`, counted from its state on.
fn ticks(pid: Pid, field: usize) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    let ticks: u64 = fields.skip(field).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    // Linux counts hundredths for everybody.
    ticks as f64 / 100.0
}
