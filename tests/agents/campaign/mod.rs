//! The campaign: many texts of many kinds to real CLIs, with faults on the way, all from one seed. Of each text three
//! things are compared: the verdict, how often and in which shape the model was told it, and a person's own words.
//!
//! `part` plays some deliveries in one home, `texts` makes what is sent, `faults` what goes on meanwhile, `judge`
//! compares, and `table` says how it went.

mod faults;
mod judge;
mod part;
mod table;
mod texts;

use crate::cli::{Cli, EVERY};
use crate::play;
use judge::Row;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

/// The word on the command line.
pub(crate) const WORD: &str = "campaign";
/// The first argument of a process that plays one part.
pub(crate) const PART: &str = "--campaign-part";
/// How many deliveries one home sees.
const IN_ONE_HOME: u64 = 20;

/// What is asked for.
struct Asked {
    clis: Vec<Cli>,
    deliveries: u64,
    seed: u64,
    from: u64,
    jobs: usize,
    skipped: Vec<String>,
}

/// Some deliveries to one CLI.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    cli: Cli,
    from: u64,
    to: u64,
}

/// The seed of one delivery.
fn seed_of(seed: u64, cli: Cli, number: u64) -> u64 {
    let place = EVERY.iter().position(|other| *other == cli).unwrap_or_default() as u64;
    seed.wrapping_mul(1_000_003).wrapping_add(place * 100_000_007).wrapping_add(number.wrapping_mul(7_919))
}

/// Plays one part in this process.
pub(crate) fn part(args: &[String]) -> ExitCode {
    let number = |at: usize| args.get(at).and_then(|text| text.parse().ok());
    match (args.first().and_then(|name| Cli::named(name)), number(1), number(2), number(3), args.get(4)) {
        (Some(cli), Some(seed), Some(from), Some(to), Some(out)) => {
            part::play(cli, seed, from..to, Path::new(out));
            ExitCode::SUCCESS
        }
        _ => ExitCode::from(2),
    }
}

/// Plays the whole, prints how it went, and fails if a text came twice, altered, or not although it was called
/// delivered.
pub(crate) fn all(args: &[String]) -> ExitCode {
    let asked = match read(args) {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("campaign: {why}");
            return ExitCode::from(2);
        }
    };
    for skipped in &asked.skipped {
        println!("skipped: {skipped}");
    }
    println!(
        "seed {}: --seed {0} plays it again; with --from N --deliveries 1 and the CLI's name, one of it",
        asked.seed
    );
    let folder = tempfile::Builder::new().prefix("campaign.").tempdir().expect("a folder for the rows");
    let todo = Mutex::new(chunks(&asked));
    let broken = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..asked.jobs.clamp(1, 8) {
            scope.spawn(|| {
                while let Some(chunk) = take(&todo) {
                    play_chunk(&asked, chunk, folder.path(), &todo, &broken);
                }
            });
        }
    });
    let rows = rows(folder.path());
    let broken = broken.into_inner().unwrap_or_default();
    table::print(&rows, &broken);
    if broken.is_empty() && !rows.is_empty() && rows.iter().all(|row| row.fault_of_ours().is_none()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn read(args: &[String]) -> Result<Asked, String> {
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |time| time.as_secs());
    let mut asked =
        Asked { clis: Vec::new(), deliveries: 1_000, seed: clock % 100_000, from: 0, jobs: 2, skipped: Vec::new() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().cloned().ok_or_else(|| format!("{arg} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("{arg} needs a number"));
        match arg.as_str() {
            "--deliveries" => asked.deliveries = number(value()?)?,
            "--seed" => asked.seed = number(value()?)?,
            "--from" => asked.from = number(value()?)?,
            "--jobs" => asked.jobs = usize::try_from(number(value()?)?).unwrap_or(1),
            "--skip" => asked.skipped.push(value()?),
            name => {
                asked.clis.push(Cli::named(name).ok_or_else(|| format!("there is no agent CLI called {name} here"))?)
            }
        }
    }
    Ok(asked)
}

/// The parts, the CLIs by turns.
fn chunks(asked: &Asked) -> VecDeque<Chunk> {
    let clis = asked.clis.len().max(1) as u64;
    let each = asked.deliveries.div_ceil(clis);
    let end = asked.from + each;
    let starts = (asked.from..end).step_by(usize::try_from(IN_ONE_HOME).expect("it fits"));
    let parts = starts
        .flat_map(|from| asked.clis.iter().map(move |cli| Chunk { cli: *cli, from, to: end.min(from + IN_ONE_HOME) }));
    parts.collect()
}

fn take(todo: &Mutex<VecDeque<Chunk>>) -> Option<Chunk> {
    todo.lock().ok()?.pop_front()
}

/// Plays a part in a process of its own. Where the harness itself has failed, what is left of it is played by another
/// one.
fn play_chunk(asked: &Asked, chunk: Chunk, folder: &Path, todo: &Mutex<VecDeque<Chunk>>, broken: &Mutex<Vec<String>>) {
    let out = folder.join(format!("{}-{}", chunk.cli.name(), chunk.from));
    let words = [chunk.cli.name().to_owned(), asked.seed.to_string(), chunk.from.to_string(), chunk.to.to_string()];
    let path = out.display().to_string();
    let mut args = vec![PART.to_owned()];
    args.extend(words);
    args.push(path);
    let within = Duration::from_secs(240 + 40 * (chunk.to - chunk.from));
    let end = play::apart(&args, within);
    let rows = rows_of(&out);
    println!("{} {} to {}: {} of {} played", chunk.cli.name(), chunk.from, chunk.to, rows.len(), chunk.to - chunk.from);
    let Err(story) = end else { return };
    let last = rows.keys().next_back().map_or(chunk.from, |number| number + 1);
    let tail: String =
        story.lines().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n");
    let told = format!("{} stopped after {} deliveries, at number {last}:\n{tail}", chunk.cli.name(), rows.len());
    println!("{told}");
    if let Ok(mut broken) = broken.lock() {
        broken.push(told);
    }
    // The delivery in which it failed is left out: it may fail again.
    if last + 1 < chunk.to
        && let Ok(mut todo) = todo.lock()
    {
        todo.push_back(Chunk { from: last + 1, ..chunk });
    }
}

/// The rows of a file, by their number; a later line of the same delivery counts.
fn rows_of(path: &PathBuf) -> BTreeMap<u64, Row> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let rows = text.lines().filter_map(|line| serde_json::from_str::<Row>(line).ok());
    rows.map(|row| (row.number, row)).collect()
}

fn rows(folder: &Path) -> Vec<Row> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    files.flat_map(|path| rows_of(&path).into_values()).collect()
}
