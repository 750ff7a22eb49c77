//! `top`: a live screen of everything that the sidecar does, with keys for requests. It is a client like any other: it
//! reads views and error files, and drops requests.
//!
//! Pure: [`rows`] (a view → a row), [`model`] (all rows in order), [`choice`] (what can be chosen), [`keys`] (key → its
//! meaning), [`ui`] (meaning → choice or action), `target` (row → agent, handoff and failure), [`draw`] (model and
//! choices → cells), `document` (a long text → lines), `fleet_rows` (another host → rows), [`plain`] (texts). With side
//! effects: `folder`, `read` and `fleet_read` (files), `wake` (signals, changes, answers), `screen` (the terminal),
//! `ask` and `jump` (actions), and the loop here.
//!
//! It ends when the person quits, when a signal says so, and when its terminal is gone. It needs no signal to learn
//! that the terminal is gone: a read of the terminal fails or reaches the end, or `poll` reports a hang-up.

mod ask;
pub mod choice;
mod document;
pub mod draw;
mod fleet_read;
mod fleet_rows;
mod folder;
mod jump;
pub mod keys;
pub mod model;
pub mod plain;
mod read;
pub mod rows;
mod screen;
mod target;
pub mod ui;
mod wake;

use super::CliSession;
use super::error::CliError;
use super::output::Surroundings;
use crate::clock::Clock;
use crate::demo::keys::{Key, KeyParser};
use crate::demo::terminal::size;
use choice::{KeyMode, LoopAction, Row};
use clap::Args;
use draw::{Scene, TerminalStyle};
use fleet_read::FleetReader;
use model::Model;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use read::Reader;
use screen::{Screen, TerminalGone};
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use ui::{ActionResult, Ui};
use wake::Wake;

/// How often the files are checked if no notice of a change comes.
const TICK: Duration = Duration::from_secs(1);
/// How long to wait for further changes, to read them together.
const GATHER: Duration = Duration::from_millis(100);
/// The largest window, in columns and rows.
const MOST: (u16, u16) = (1_000, 300);
/// If nothing follows an escape character for this long, it was the Escape key.
const ESCAPE_TIME: Duration = Duration::from_millis(50);

/// `top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Show the agents and handoffs of the other hosts of the fleet too.
    #[arg(long)]
    pub all_hosts: bool,
}

/// Shows the screen until the person leaves it.
///
/// # Errors
/// A usage error with `--json`, without a terminal, or on a terminal that can't be drawn on; `no_fleet` for
/// `--all-hosts` if this home has joined no fleet.
pub fn command(session: &CliSession, args: &TopArgs) -> Result<(), CliError> {
    if session.out.is_json() {
        return Err(CliError::usage("top is interactive and prints no JSON.").hint(JSON_HINT));
    }
    let around = Surroundings::read();
    if !around.terminal || !std::io::stdin().is_terminal() {
        return Err(CliError::usage("top needs a terminal on its standard input and output.").hint(JSON_HINT));
    }
    if around.dumb || std::env::var_os("TERM").is_none_or(|term| term.is_empty()) {
        return Err(CliError::usage("top can't draw on this terminal: TERM is dumb or not set.").hint(JSON_HINT));
    }
    let fleet = args.all_hosts.then(|| FleetReader::new(&session.home)).transpose()?;
    let failed = |error: std::io::Error| CliError::refused("terminal", format!("The terminal can't be used: {error}."));
    let wake = Wake::new().map_err(failed)?;
    let screen = Screen::open(std::io::stdin().as_fd(), window()).map_err(failed)?;
    let top = Top::new(session, screen, wake, (TerminalStyle::of(&around), fleet));
    // A terminal that is gone is a normal end.
    told_afterwards(|| top.run()).map(|_: Result<(), TerminalGone>| ())
}

/// The part of the window that is drawn on: all of it, up to a limit that no real window reaches.
fn window() -> (u16, u16) {
    let (columns, rows) = size();
    (columns.min(MOST.0), rows.min(MOST.1))
}

const JSON_HINT: &str = "Programs read `tasuki agents --json`, `tasuki handoffs --json` and `tasuki errors --json`.";

/// Runs something, and reports its panic as an error after the terminal was restored, not into the drawn screen. Panics
/// of other threads print nothing: `ask` turns a panic of its thread into the result of the request.
fn told_afterwards<T>(run: impl FnOnce() -> T) -> Result<T, CliError> {
    let (own, told) = (std::thread::current().id(), Arc::new(Mutex::new(None)));
    let heard = Arc::clone(&told);
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == own {
            *heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(info.to_string());
        }
    }));
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    std::panic::set_hook(usual);
    ran.map_err(|_| {
        let why = told.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
        CliError::refused("bug", format!("top has crashed: {}", plain::plain(&why)))
            .hint("The sidecar and the agents keep running.")
    })
}

struct Top<'a> {
    session: &'a CliSession,
    screen: Screen,
    wake: Wake,
    look: TerminalStyle,
    reader: Reader<'a>,
    model: Model,
    ui: Ui,
    detailed: Option<Row>,
    clock: Clock,
    answers: (Sender<ActionResult>, Receiver<ActionResult>),
}

impl<'a> Top<'a> {
    fn new(
        session: &'a CliSession,
        screen: Screen,
        wake: Wake,
        (look, fleet): (TerminalStyle, Option<FleetReader<'a>>),
    ) -> Self {
        Top {
            session,
            screen,
            wake,
            look,
            reader: Reader::new(&session.home, fleet),
            model: Model::default(),
            ui: Ui::default(),
            detailed: None,
            clock: Clock::new(),
            answers: channel(),
        }
    }

    /// The loop: wait, handle input and results, read changed files, draw.
    fn run(mut self) -> Result<(), TerminalGone> {
        let mut parser = KeyParser::default();
        let folders = Reader::folders(&self.session.home);
        let (mut looked, mut drawn) = (None::<Instant>, None::<Instant>);
        let (mut dirty, mut hinted, mut renewed) = (true, false, true);
        let mut typed_at = Instant::now();
        loop {
            let is_due = |since: Option<Instant>, pause: Duration| since.is_none_or(|since| since.elapsed() >= pause);
            if is_due(looked, if hinted { GATHER } else { TICK }) {
                self.wake.watch(&folders);
                dirty |= self.look_at_files();
                (looked, hinted) = (Some(Instant::now()), false);
            }
            let tick = is_due(drawn, self.model.holds_for());
            if (dirty || tick || !renewed) && !self.screen.is_behind() {
                if !std::mem::replace(&mut renewed, true) {
                    self.screen.renew(window()).map_err(|_| TerminalGone)?;
                }
                self.draw();
                (drawn, dirty) = (Some(Instant::now()), false);
            }
            self.screen.write_on()?;
            let pause = if hinted { GATHER } else { TICK };
            let left = pause.saturating_sub(looked.map_or(Duration::ZERO, |looked| looked.elapsed()));
            let time = if parser.is_waiting() { left.min(ESCAPE_TIME) } else { left };
            let typed = self.wait(time)?;
            self.wake.calm();
            if self.wake.has_ended() {
                return Ok(());
            }
            hinted |= self.wake.has_changed();
            renewed &= !self.wake.wants_redraw();
            let keys = match typed {
                Some(bytes) => {
                    typed_at = Instant::now();
                    parser.feed(&bytes)
                }
                None if parser.is_waiting() && typed_at.elapsed() >= ESCAPE_TIME => parser.give_up(),
                None => Vec::new(),
            };
            for key in keys {
                dirty = true;
                if self.take(&key) {
                    return Ok(());
                }
            }
            while let Ok(outcome) = self.answers.1.try_recv() {
                (dirty, hinted) = (true, true);
                if self.hear(outcome) {
                    return Ok(());
                }
            }
        }
    }

    /// Sleeps until something happens, at most for this time; returns what was typed.
    fn wait(&mut self, time: Duration) -> Result<Option<Vec<u8>>, TerminalGone> {
        let wanted = if self.screen.is_behind() { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
        let mut fds = [PollFd::new(self.screen.as_fd(), wanted), PollFd::new(self.wake.as_fd(), PollFlags::POLLIN)];
        // Rounded up: rounded down to 0, the last fraction of a millisecond would be a busy loop.
        let millis = u16::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u16::MAX);
        if poll(&mut fds, PollTimeout::from(millis)).is_err() {
            return Ok(None);
        }
        let seen = fds[0].revents().unwrap_or(PollFlags::empty());
        if seen.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL) {
            return Err(TerminalGone);
        }
        if seen.contains(PollFlags::POLLIN) { self.screen.read().map(Some) } else { Ok(None) }
    }

    fn look_at_files(&mut self) -> bool {
        let Some(model) = self.reader.refresh() else { return false };
        self.model = model;
        self.ui.settle(&self.model);
        self.detailed = None;
        true
    }

    fn draw(&mut self) {
        let area = self.screen.area();
        let row = self.ui.detailed(&self.model, draw::has_side(area.width));
        if row != self.detailed {
            self.ui.details = row.as_ref().map(|row| self.reader.details(row)).unwrap_or_default();
            self.detailed = row;
        }
        if matches!(self.ui.mode, KeyMode::Details { .. }) {
            self.ui.measure(draw::detail_rows(&self.ui.details, area));
        }
        let scene = Scene {
            model: &self.model,
            ui: &self.ui,
            look: self.look,
            now_ms: self.clock.now().wall_ms,
            columns: area.width,
        };
        // Drawing into the buffer can't fail; errors of the terminal appear when the buffer is written to it.
        let _ = self.screen.draw(|frame| draw::draw(scene, area, frame.buffer_mut()));
    }

    /// Carries out the action of a key; returns whether to end.
    fn take(&mut self, key: &Key) -> bool {
        let Some(action) = keys::key_action(key, &self.ui.mode) else { return false };
        match self.ui.act(&action, &self.model) {
            Some(LoopAction::Quit) => return true,
            Some(action) => {
                let asked = if let LoopAction::Ask(asked) = &action { Some(asked.clone()) } else { None };
                let begun = ask::spawn(self.session, action, self.answers.0.clone(), self.wake.waker());
                if let Err(error) = begun {
                    let error = CliError::refused("no_thread", format!("The request was not sent: {error}."));
                    self.ui.hear(ActionResult { asked, said: Err(error), leaves: false });
                }
            }
            None => {}
        }
        false
    }

    /// Handles a result; returns whether to end. It ends after a jump from a popup, which would hide the pane.
    fn hear(&mut self, outcome: ActionResult) -> bool {
        let leaves = outcome.leaves;
        self.ui.hear(outcome);
        leaves
    }
}
