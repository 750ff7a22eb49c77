//! Text into the composers of 1, 10 and 100 agents at once, in pieces, each of which must be seen in the composer
//! before the next one goes in: tasuki's own deliveries against one tmux process for each command. Both look with the
//! same eyes at the same agents in turn; tasuki's paste is guarded and marked, the rival's is plain.

mod rival;

use crate::Length;
use crate::place::{Place, TASUKI, wait_until};
use crate::rows;
use crate::sample::{Ratio, median, per_second, rounds};
use crate::table::Row;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tasuki::agents::Profiles;
use tasuki::core::id::DeliveryId;
use tasuki::core::pane::{ComposerContent, PaneRef, ScreenReading, Typed};
use tasuki::tmux::{Capture, Input, ScreenReader, Socket, SocketOptions, Tmux, TypePlan};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Forty characters; the text has as many pieces as the composer of a small pane shows whole.
const PIECE: &str = "Forty letters, blanks and commas in all ";
const PIECES: usize = 12;
/// How the text ends.
const TAIL: &str = "the end";
/// How long an agent is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let (notices, _receiver) = tokio::sync::mpsc::channel(64);
    let options = SocketOptions {
        socket: Socket::Path(place.socket()),
        home_tag: "00be9c40".to_owned(),
        program: PathBuf::from("tmux"),
        start_server: false,
    };
    let tmux = runtime.block_on(async { Tmux::start(options, notices) }).expect("a client");
    let eyes = Arc::new(Profiles::load(None).expect("the built-in profiles"));
    wait_until("the client answers", Duration::from_millis(20), || runtime.block_on(tmux.list_panes()).is_ok());
    let mut panes = Vec::new();
    let table =
        [(rows::PANES_1, 1, 6), (rows::PANES_10, 10, 2), (rows::PANES_100, 100, 1)].map(|(figure, count, texts)| {
            open_agents(place, count, &mut panes, || {
                let rows = runtime.block_on(tmux.list_panes()).unwrap_or_default();
                rows.into_iter().map(|row| row.pane).collect()
            });
            let (mut ours, mut rival) = (Vec::new(), Vec::new());
            for round in rounds(length.pick(12, 3), Duration::from_secs(length.pick(90, 25))) {
                // One text into one composer is over so soon that a turn has several.
                let turn =
                    |rate: &dyn Fn() -> f64| median(&std::iter::repeat_with(rate).take(texts).collect::<Vec<f64>>());
                let by_us = || turn(&|| runtime.block_on(by_us(&tmux, &panes, &eyes)));
                let by_processes = || turn(&|| rival::typed(place, &panes, &eyes));
                if round % 2 == 0 {
                    ours.push(by_us());
                    rival.push(by_processes());
                } else {
                    rival.push(by_processes());
                    ours.push(by_us());
                }
            }
            let ratio = Ratio::of_turns(&ours, &rival);
            Row {
                figure,
                ours: per_second(median(&ours)),
                rival: per_second(median(&rival)),
                ratio: ratio.to_string(),
                met: ratio.median >= 20.0,
            }
        });
    runtime.block_on(tmux.close());
    table.into()
}

/// Opens windows until there are so many agents. They report nothing, and their turns are over at once.
fn open_agents(place: &Place, count: usize, panes: &mut Vec<PaneRef>, list: impl Fn() -> Vec<PaneRef>) {
    let program = format!("exec env TASUKI_DEMO_FAULTS=hooks_off,slow_turn=1 {TASUKI} demo-agent");
    while panes.len() < count {
        let mut made = place.tmux(&["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "user:", &program]);
        let output = made.stdout(Stdio::piped()).output().expect("a window");
        let id = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let mut found = None;
        wait_until("the window is listed", Duration::from_millis(20), || {
            found = list().into_iter().find(|pane| pane.to_string() == id);
            found.is_some()
        });
        panes.extend(found);
    }
}

/// When the pieces of all panes were seen.
#[derive(Default)]
struct Progress {
    first: Option<Instant>,
    last: Option<Instant>,
    pieces: usize,
}

impl Progress {
    /// Pieces for each second, from the first one that was seen to the last.
    fn rate(&self) -> f64 {
        let took = self.first.zip(self.last).map(|(first, last)| last - first).expect("pieces were seen");
        // What was seen first is where the clock begins.
        (self.pieces - 1) as f64 / took.as_secs_f64()
    }
}

/// Looks as tasuki looks, and notes when another piece is in the composer.
struct Watcher {
    eyes: Arc<Profiles>,
    seen: AtomicUsize,
    progress: Arc<Mutex<Progress>>,
}

impl Watcher {
    fn new(eyes: &Arc<Profiles>, progress: &Arc<Mutex<Progress>>) -> Self {
        Watcher { eyes: Arc::clone(eyes), seen: AtomicUsize::new(0), progress: Arc::clone(progress) }
    }
}

impl ScreenReader for Watcher {
    fn look(&self, capture: &Capture) -> ScreenReading {
        let screen = capture.lines.join("\n");
        let profile = self.eyes.get("demo").expect("the demo agent's profile");
        let view = profile.read_screen(&screen, capture.height, (capture.cursor_x, capture.cursor_y));
        let (shown, seen) = (pieces_in(&view), self.seen.load(Ordering::Relaxed));
        if shown > seen {
            self.seen.store(shown, Ordering::Relaxed);
            let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.pieces += shown - seen;
            let now = Instant::now();
            progress.first.get_or_insert(now);
            progress.last = Some(now);
        }
        view
    }
}

/// How many pieces the composer shows.
fn pieces_in(view: &ScreenReading) -> usize {
    let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
    match &view.composer {
        ComposerContent::Text(text) | ComposerContent::Tail(text) => letters(text) / letters(PIECE),
        ComposerContent::Empty | ComposerContent::Collapsed { .. } | ComposerContent::Unreadable => 0,
    }
}

/// Pieces for each second over all panes, by tasuki's deliveries.
async fn by_us(tmux: &Tmux, panes: &[PaneRef], eyes: &Arc<Profiles>) -> f64 {
    let progress = Arc::new(Mutex::new(Progress::default()));
    let mut deliveries = JoinSet::new();
    for pane in panes {
        let (tmux, plan, screen_reader) = (tmux.clone(), plan(*pane), Watcher::new(eyes, &progress));
        deliveries.spawn(async move { tmux.type_text(&plan, &screen_reader, &CancellationToken::new()).await });
    }
    for typed in deliveries.join_all().await {
        assert!(matches!(typed, Typed::Submitted { .. }), "typed and submitted: {typed:?}");
    }
    let progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
    progress.rate()
}

fn plan(pane: PaneRef) -> TypePlan {
    TypePlan {
        pane,
        delivery: DeliveryId::from_bits(uuid::Uuid::new_v4().as_u64_pair().0),
        text: format!("{}{TAIL}", PIECE.repeat(PIECES)),
        input: Input::Pieces { chars: PIECE.len(), gap: Duration::ZERO, settle: Duration::ZERO },
        raw_bytes: None,
        foreground: Some("tasuki".to_owned()),
        enter_delay: Duration::ZERO,
        enter_retry_after: PATIENCE,
        enter_retries: 0,
        hold: PATIENCE,
        seen_within: PATIENCE,
        resumed: false,
        allow_busy: false,
        screen_proof: false,
        seen_tail: TAIL.to_owned(),
    }
}
