//! The real agent CLIs, driven by tasuki and answered by a scripted model. `scripts/agents-e2e` installs them and runs
//! this; it is no part of the tests, for it needs hundreds of megabytes of other people's programs.
//!
//! `campaign` delivers many texts to them, with faults; `figures` measures their handoffs. `play` runs scenes, each in
//! a process of its own with a home of its own; `scenes` are what is played; `scene` is the stage on which it happens;
//! `cli` furnishes homes; `model` is whom the agents talk to. The stage itself is the one of the tests.

mod campaign;
mod cli;
mod figures;
mod model;
mod play;
#[allow(dead_code, reason = "as below")]
#[path = "../support/processes.rs"]
mod processes;
#[allow(dead_code, reason = "the tests' own chance, of which the campaign uses a part")]
#[path = "../support/random.rs"]
mod random;
mod scene;
mod scenes;
#[allow(dead_code, reason = "the tests' own stage, of which scenes use a part")]
#[path = "../support/stage.rs"]
mod stage;
#[allow(dead_code, reason = "as above")]
#[path = "../support/stage_checks.rs"]
mod stage_checks;
#[allow(dead_code, reason = "as above")]
#[path = "../support/stage_files.rs"]
mod stage_files;
#[allow(dead_code, reason = "as above")]
#[path = "../support/stage_hostile.rs"]
mod stage_hostile;
#[path = "../support/steps.rs"]
mod steps;
#[path = "../support/tally.rs"]
mod tally;

use cli::Cli;
use std::process::ExitCode;

/// What is asked for on the command line.
#[derive(Debug, Default)]
struct Asked {
    clis: Vec<Cli>,
    filter: Option<String>,
    jobs: usize,
    skipped: Vec<String>,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [word, cli, scene] = args.as_slice()
        && word == play::WORD
    {
        return play::one(cli, scene);
    }
    if args.first().is_some_and(|word| word == campaign::PART) {
        return campaign::part(&args[1..]);
    }
    if args.first().is_some_and(|word| word == figures::PART) {
        return figures::part(&args[1..]);
    }
    if std::env::var_os("TASUKI_AGENTS_CACHE").is_none() {
        println!("These scenes need agent CLIs: run scripts/agents-e2e.");
        return ExitCode::SUCCESS;
    }
    if args.first().is_some_and(|word| word == campaign::WORD) {
        return campaign::all(&args[1..]);
    }
    if args.first().is_some_and(|word| word == figures::WORD) {
        return figures::all(&args[1..]);
    }
    match read(&args) {
        Ok(asked) => play::all(&asked.clis, asked.filter.as_deref(), asked.jobs, &asked.skipped),
        Err(why) => {
            eprintln!("agents: {why}");
            ExitCode::from(2)
        }
    }
}

fn read(args: &[String]) -> Result<Asked, String> {
    let mut asked = Asked { jobs: 1, ..Asked::default() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().cloned().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--filter" => asked.filter = Some(value()?),
            "--jobs" => asked.jobs = value()?.parse().map_err(|_| "--jobs needs a number".to_owned())?,
            "--skip" => asked.skipped.push(value()?),
            name => {
                asked.clis.push(Cli::named(name).ok_or_else(|| format!("there is no agent CLI called {name} here"))?)
            }
        }
    }
    Ok(asked)
}
