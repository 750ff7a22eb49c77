//! Plays scenes: each in a process of its own, with a clean environment and a home of its own, until its deadline. What
//! a scene leaves behind is taken away, whether it went well, failed or was ended.

use crate::cli::Cli;
use crate::scenes::{SCENES, Scenario};
use crate::stage_files::processes_with;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The first argument of a process that plays one scene.
pub(crate) const WORD: &str = "--play-one";
/// By this variable everything that a scene has started is found again.
const MARK: &str = "TASUKI_SCENE";
/// Scenes that may take longer are slow.
const SLOW: Duration = Duration::from_secs(600);
/// What a scene takes from the environment of whoever runs this.
const KEPT: [&str; 5] = ["PATH", "LANG", "TASUKI_AGENTS_CACHE", "TASUKI_AGENTS_SCREENS", "RUST_BACKTRACE"];

/// Plays one scene in this process; a panic is a failure.
pub(crate) fn one(cli: &str, name: &str) -> ExitCode {
    let scenario = SCENES.iter().find(|scenario| scenario.name == name);
    match (Cli::named(cli), scenario) {
        (Some(cli), Some(scenario)) => {
            (scenario.play)(cli);
            ExitCode::SUCCESS
        }
        _ => ExitCode::from(2),
    }
}

/// Plays all scenes that are asked for and says how they went.
pub(crate) fn all(clis: &[Cli], filter: Option<&str>, jobs: usize, skipped: &[String]) -> ExitCode {
    // What takes many minutes is played only if it is named.
    let wanted = |scenario: &&Scenario| match filter {
        Some(filter) => scenario.name.contains(filter),
        None => scenario.within < SLOW,
    };
    let (scenes, lacking): (Vec<(Cli, &Scenario)>, Vec<_>) = clis
        .iter()
        .flat_map(|cli| {
            SCENES.iter().filter(wanted).filter(|scenario| scenario.is_for(*cli)).map(|scene| (*cli, scene))
        })
        .partition(|(_, scenario)| scenario.lacks(clis).is_empty());
    let mut skipped = skipped.to_vec();
    skipped.extend(lacking.iter().map(|(cli, scenario)| {
        let lacks = scenario.lacks(clis).iter().map(|cli| cli.name()).collect::<Vec<_>>().join(" and ");
        format!("{} {}: it needs {lacks} too", cli.name(), scenario.name)
    }));
    let slow: Vec<&str> = SCENES.iter().filter(|scene| scene.within >= SLOW).map(|scene| scene.name).collect();
    if filter.is_none() {
        skipped.push(format!("{}: slow; --filter plays them", slow.join(", ")));
    }
    for skipped in &skipped {
        println!("skipped: {skipped}");
    }
    let (next, passed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let printing = Mutex::new(());
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, 8) {
            scope.spawn(|| {
                while let Some((cli, scenario)) = scenes.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let begun = Instant::now();
                    let end = play(*cli, scenario);
                    let took = begun.elapsed().as_secs_f32();
                    let _one_at_a_time = printing.lock();
                    match end {
                        Ok(()) => {
                            passed.fetch_add(1, Ordering::SeqCst);
                            println!("ok {} {} {took:.1} s", cli.name(), scenario.name);
                        }
                        Err(story) => println!("{story}\nFAILED {} {} {took:.1} s", cli.name(), scenario.name),
                    }
                }
            });
        }
    });
    let passed = passed.into_inner();
    let failed = scenes.len() - passed;
    let skipped = if skipped.is_empty() { String::new() } else { format!(", {} skipped", skipped.len()) };
    println!("{passed} passed, {failed} failed{skipped}");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Plays one scene in a process of its own; the error is what it said.
fn play(cli: Cli, scenario: &Scenario) -> Result<(), String> {
    apart(&[WORD, cli.name(), scenario.name], scenario.within)
}

/// Runs this program with these arguments in a clean process with a home of its own; the error is what it said.
pub(crate) fn apart<S: AsRef<OsStr>>(args: &[S], within: Duration) -> Result<(), String> {
    let dir = tempfile::Builder::new().prefix("scene.").tempdir().map_err(|why| why.to_string())?;
    let (home, log) = (dir.path().join("home"), dir.path().join("log"));
    let end = begin(args, dir.path(), &home, &log).and_then(|child| wait(child, within));
    tidy(dir.path());
    end.map_err(|why| {
        let said = fs::read(&log).unwrap_or_default();
        format!("{}\n{why}", String::from_utf8_lossy(&said))
    })
}

fn begin<S: AsRef<OsStr>>(args: &[S], dir: &Path, home: &Path, log: &Path) -> Result<Child, String> {
    let failed = |why: std::io::Error| why.to_string();
    let tmp = dir.join("tmp");
    fs::create_dir(home).and_then(|()| fs::create_dir(&tmp)).map_err(failed)?;
    let out = File::create(log).map_err(failed)?;
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(args).env_clear();
    for name in KEPT {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    command.env("HOME", home).env("TMPDIR", &tmp).env("SHELL", "/bin/bash").env(MARK, dir);
    let err = out.try_clone().map_err(failed)?;
    command.stdin(Stdio::null()).stdout(out).stderr(err).spawn().map_err(failed)
}

fn wait(mut child: Child, within: Duration) -> Result<(), String> {
    let due = Instant::now() + within;
    loop {
        match child.try_wait().map_err(|why| why.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("it ended with {status}")),
            None if Instant::now() > due => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it was not over within {within:?}"));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Ends everything that a scene has left: the processes of agents, their tmux server, the sidecar.
fn tidy(dir: &Path) {
    let mark = format!("{MARK}={}", dir.display());
    for _ in 0..20 {
        let left = processes_with(&mark, |_| true);
        if left.is_empty() {
            return;
        }
        for pid in left {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

impl Scenario {
    fn is_for(&self, cli: Cli) -> bool {
        self.clis.contains(&cli)
    }

    /// Those without whom it can't be played, of which there are only these.
    fn lacks(&self, clis: &[Cli]) -> Vec<Cli> {
        self.beside.iter().filter(|cli| !clis.contains(cli)).copied().collect()
    }
}
