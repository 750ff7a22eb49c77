//! `demo`: shows a fleet of two hosts on this machine, and leaves nothing behind. `stage` makes and removes what the
//! demo needs, `play` shows the scenes.

mod play;
mod stage;

use crate::cli::error::CliError;
use crate::cli::follow::span;
use crate::cli::interrupts::Interrupts;
use crate::cli::output::{Out, Tone, eprint_quietly};
use play::FleetPlay;
use serde_json::json;
use stage::{FleetStage, Programs};
use std::time::Instant;

/// Shows two hosts, a text from one to the other, and the death of a bridge.
///
/// # Errors
/// A scene has failed. Before the error is returned, the ends of the logs are shown and everything is removed.
pub(super) fn command(json: bool) -> Result<(), CliError> {
    let (start, out) = (Instant::now(), Out::new(json));
    let programs = Programs::find()?;
    let interrupts = Interrupts::watch()
        .map_err(|error| CliError::refused("signals", format!("Can't watch for Ctrl-C: {error}")))?;
    let stop = || interrupts.seen();
    let mut stage = FleetStage::new(programs, &stop)?;
    let shown = FleetPlay { out: &out, start }.run(&mut stage);
    if let Err(error) = &shown
        && !error.is_silent()
        && !interrupts.seen()
        && !json
    {
        for (name, lines) in stage.log_tails() {
            eprint_quietly(&format!("the end of the log of {name}:"));
            lines.iter().for_each(|line| eprint_quietly(&format!("  {line}")));
        }
    }
    let cleared = stage.clear();
    shown?;
    cleared?;
    let took = span(u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX));
    if json {
        return out.record(&json!({"v": 1, "type": "demo_done", "took": took}));
    }
    out.line("")?;
    let last = format!("Done in {took}. The NATS server, both bridges, sidecars, tmux servers and homes were removed.");
    out.line(&out.paint(Tone::Good, &last))
}
