//! The demo leaves nothing behind, however it ends.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Starts the demo with a folder for temporary files of its own, as if from inside somebody's tmux.
fn start(scratch: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_tasuki"))
        .arg("demo")
        .env("TMPDIR", scratch)
        .env("TMUX", "/nowhere/tmux,1,0")
        .env("TMUX_PANE", "%0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs")
}

fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("t").tempdir_in("/tmp").expect("a folder with a short name")
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The processes that were started with this folder for temporary files.
fn processes(scratch: &Path) -> Vec<String> {
    let wanted = format!("TMPDIR={}", scratch.display());
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let bears = |path: &Path| {
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let paths = entries.map(|entry| entry.path()).filter(|path| bears(path));
    paths
        .map(|path| String::from_utf8_lossy(&fs::read(path.join("cmdline")).unwrap_or_default()).into_owned())
        .collect()
}

fn ended(child: Child) -> Output {
    child.wait_with_output().expect("it ends")
}

fn nothing_is_left(scratch: &Path, output: &Output) {
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(entries(scratch).is_empty(), "{:?}\n{said}", entries(scratch));
    assert!(processes(scratch).is_empty(), "{:?}\n{said}", processes(scratch));
}

#[test]
fn the_demo_leaves_nothing_behind() {
    let scratch = scratch();
    let output = ended(start(scratch.path()));
    nothing_is_left(scratch.path(), &output);
}

#[test]
fn an_interrupted_demo_leaves_nothing_behind() {
    for signal in
        [nix::sys::signal::Signal::SIGINT, nix::sys::signal::Signal::SIGTERM, nix::sys::signal::Signal::SIGHUP]
    {
        let scratch = scratch();
        let child = start(scratch.path());
        let end = Instant::now() + Duration::from_secs(20);
        // The folder is made after the signals are watched.
        while entries(scratch.path()).is_empty() && processes(scratch.path()).len() == 1 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
        let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
        nix::sys::signal::kill(pid, signal).expect("it runs");
        let output = ended(child);
        assert!(output.status.code().is_some(), "{signal} must be taken, not died of");
        nothing_is_left(scratch.path(), &output);
    }
}
