//! `demo`: one complete handoff on any machine with tmux, with nothing left behind. `stage` builds and removes what it
//! needs, `play` shows it.

mod play;
pub(crate) mod stage;

use super::CliSession;
use super::error::CliError;
use super::interrupts::Interrupts;
use super::output::{Out, Tone, eprint_quietly};
use super::view::{self, ViewFile, shown};
use crate::contract::ErrorFile;
use crate::core::text::sanitise;
use crate::exit;
use play::Play;
use serde_json::json;
use stage::DemoStage;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The code of the error after Ctrl-C.
const INTERRUPTED: &str = "interrupted";

/// How long the demo may last in all.
const LONGEST: Duration = Duration::from_secs(120);

/// How long an interrupted play may take to notice it.
const PLAY_ENDS_WITHIN: Duration = Duration::from_secs(2);

/// Shows one whole handoff.
///
/// # Errors
/// The failure; the stage is removed first, and the end of the sidecar's log is shown.
pub fn command(json: bool) -> Result<u8, CliError> {
    let start = Instant::now();
    let interrupts = Interrupts::watch()
        .map_err(|error| CliError::refused("signals", format!("Can't watch for Ctrl-C: {error}")))?;
    let mut stage = DemoStage::new()?;
    let session = Arc::new(CliSession { home: stage.place().home().clone(), out: Out::new(json), timeout: None });
    let shown = show(&mut stage, &session, &interrupts);
    if let Err(error) = &shown
        && !error.is_silent()
        && !interrupts.seen()
    {
        explain(&stage, &session.out);
    }
    outcome(shown, stage.clear())?;
    let took = super::follow::span(u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX));
    if json {
        session.out.record(&json!({"v": 1, "type": "demo_done", "took": took}))?;
    } else {
        session.out.line("")?;
        let last = format!("Done in {took}. The tmux server, the agents, the sidecar and the home were removed.");
        session.out.line(&session.out.paint(Tone::Good, &last))?;
    }
    Ok(exit::DONE)
}

/// Builds the stage and runs the play in a separate thread, so that an interrupt is handled at once, no matter what
/// the play is waiting for.
fn show(stage: &mut DemoStage, session: &Arc<CliSession>, interrupts: &Interrupts) -> Result<(), CliError> {
    let stop = || interrupts.seen();
    let place = stage.place().clone();
    let run = format!("tasuki run --home {} --tmux {}", session.home.root().display(), place.socket().display());
    Play { session, place: &place, stop: &stop }
        .say("A private tmux server, a temporary home, and a sidecar.", &run)?;
    stage.start_tmux()?;
    let program = std::env::current_exe()
        .map_err(|error| CliError::refused("program", format!("The path of this program can't be found: {error}.")))?;
    stage.start_sidecar(&program, &stop).map_err(|error| interrupted(interrupts).unwrap_or(error))?;
    let halt = Arc::new(AtomicBool::new(false));
    let (tell, told) = mpsc::channel();
    let (theirs, flag) = (Arc::clone(session), Arc::clone(&halt));
    let spawned = std::thread::Builder::new().name("play".to_owned()).spawn(move || {
        let stop = || flag.load(Ordering::SeqCst);
        // The receiver has gone only when the demo is over anyway.
        let _ = tell.send(Play { session: &theirs, place: &place, stop: &stop }.run());
    });
    spawned.map_err(|error| CliError::refused("thread", format!("The demo can't be started: {error}")))?;
    let end = Instant::now() + LONGEST;
    let ended = loop {
        match told.recv_timeout(Duration::from_millis(50)) {
            Ok(ended) => break ended,
            Err(RecvTimeoutError::Disconnected) => {
                break Err(CliError::refused("bug", "The demo stopped unexpectedly."));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let over = || (Instant::now() >= end).then(|| CliError::refused("too_long", "The demo took too long."));
        if let Some(error) = interrupted(interrupts).or_else(|| stage.sidecar_ended()).or_else(over) {
            break Err(error);
        }
    };
    halt.store(true, Ordering::SeqCst);
    if ended.is_err() {
        // The play may still be running. It ends when it finds its sidecar gone. It gets time for that, because it must
        // not make files or draw its line while the stage is removed.
        stage.end_sidecar();
        let _ = told.recv_timeout(PLAY_ENDS_WITHIN);
    }
    ended
}

fn interrupted(interrupts: &Interrupts) -> Option<CliError> {
    interrupts.seen().then(|| CliError::refused(INTERRUPTED, "Interrupted."))
}

/// How the demo ends: with the failure of the play, and with what was left behind.
fn outcome(shown: Result<(), CliError>, cleared: Result<(), CliError>) -> Result<(), CliError> {
    match (shown, cleared) {
        (Err(error), Err(left)) if !error.is_silent() => {
            let message = format!("{} {}", error.message, left.message);
            Err(CliError { message, ..error })
        }
        (Err(error), Ok(())) if error.code == INTERRUPTED => {
            Err(CliError { message: "Interrupted; the demo was cleaned up completely.".to_owned(), ..error })
        }
        (_, Err(left)) => Err(left),
        (shown, Ok(())) => shown,
    }
}

/// Prints why the demo failed: the reported failures, and the end of the sidecar's log.
fn explain(stage: &DemoStage, out: &Out) {
    if out.is_json() {
        return;
    }
    let errors: Vec<ViewFile<ErrorFile>> = view::latest_readable(&stage.place().home().errors(), 5).unwrap_or_default();
    for error in &errors {
        let [code, message] = [&error.code, &error.message].map(|text| sanitise(&shown(text.as_str())));
        eprint_quietly(&format!("error file: {code}: {message}"));
    }
    let tail = stage.log_tail();
    if !tail.is_empty() {
        eprint_quietly("the end of the sidecar's log:");
        tail.iter().for_each(|line| eprint_quietly(&format!("  {line}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_demo_has_left_behind_is_told_whatever_else_failed() {
        let left = || Err(CliError::refused("left_behind", "Look at /tmp/x."));
        let told = |shown: CliError, cleared| outcome(Err(shown), cleared).expect_err("a failure").message;
        let interrupted = || CliError::refused(INTERRUPTED, "Interrupted.");
        assert_eq!(told(interrupted(), left()), "Interrupted. Look at /tmp/x.");
        assert_eq!(told(interrupted(), Ok(())), "Interrupted; the demo was cleaned up completely.");
        assert_eq!(told(CliError::refused("no_tmux", "No tmux."), left()), "No tmux. Look at /tmp/x.");
        assert_eq!(told(CliError::closed_pipe(), left()), "Look at /tmp/x.", "nothing is printed about the pipe");
        assert_eq!(outcome(Ok(()), left()).expect_err("a failure").code, "left_behind");
        assert_eq!(outcome(Ok(()), Ok(())), Ok(()));
    }
}
