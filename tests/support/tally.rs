//! Counts what the tests tried, for the table at the end of `scripts/check`. Each process writes a line for each count
//! into a file of its own, in the folder that `TASUKI_TALLY` names. If the variable is not set, nothing is written. A
//! test that can't run is counted by [`skip`]: if the table has no such line, nothing was left out.
#![allow(dead_code, reason = "which words are used depends on which tests are there")]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

/// Faults that tests caused: an error of a system call, a full disk, a damaged file.
pub(crate) const FAULTS: &str = "faults tried";
/// Instants at which the program was killed.
pub(crate) const DEATHS: &str = "instants of death";
/// Files, names and texts that are meant to do harm.
pub(crate) const INPUTS: &str = "bad inputs";
/// Requests that were dropped.
pub(crate) const REQUESTS: &str = "requests";
/// Texts that agents were given.
pub(crate) const TEXTS: &str = "texts typed";
/// Things that were lost.
const LOST: &str = "lost";
/// Things that happened more often than they may.
const TWICE: &str = "twice";

/// Adds to a count of the table. If that fails, the test does not fail.
pub(crate) fn add(what: &str, count: u64) {
    let Some(folder) = std::env::var_os("TASUKI_TALLY").map(PathBuf::from).filter(|path| path.is_absolute()) else {
        return;
    };
    let line = format!("{count}\t{}\n", what.replace(['\t', '\n'], " "));
    let _ = std::fs::create_dir_all(&folder);
    let file = OpenOptions::new().create(true).append(true).open(folder.join(std::process::id().to_string()));
    // One write for each line: tests of one process may count at the same time.
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}

/// Counts a test, or a part of one, that can't run here, and says why.
pub(crate) fn skip(why: &str) {
    println!("skipped: {why}");
    add(&format!("skipped: {why}"), 1);
}

/// Counts what was lost and what happened twice, and panics if there is anything. `what`: the things that were checked,
/// for the message.
pub(crate) fn none_lost_none_twice(what: &str, lost: &[String], twice: &[String]) {
    add(LOST, lost.len() as u64);
    add(TWICE, twice.len() as u64);
    assert!(lost.is_empty() && twice.is_empty(), "{what}: lost {lost:#?}, twice {twice:#?}");
}

/// Whether tests are to run in their long form (`TASUKI_LONG=1`).
pub(crate) fn is_long() -> bool {
    std::env::var_os("TASUKI_LONG").is_some_and(|value| value == "1")
}

/// How long one test of a long suite may take: `TASUKI_BUDGET` in seconds, or else three minutes. A test that stops
/// earlier counts the rest as skipped.
pub(crate) fn budget() -> std::time::Duration {
    let given = std::env::var("TASUKI_BUDGET").ok().and_then(|text| text.parse().ok());
    std::time::Duration::from_secs(given.unwrap_or(180))
}
