//! Text into 1, 10 and 100 panes at once: tasuki's own deliveries, typed in pieces as an agent gets them, against one
//! tmux process for each command. Both give the same commands for each piece: two looks at the pane, a capture of its
//! screen, a buffer, its paste, and the end of the buffer. tasuki's paste is guarded and marked; the rival's is plain.

use crate::Length;
use crate::place::{PATIENCE, Place, wait_until};
use crate::sample::{median, per_second, rounds};
use crate::table::Row;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tasuki::core::id::DeliveryId;
use tasuki::core::pane::{Activity, Composer, PaneRef, Typed, View};
use tasuki::tmux::{Capture, Eye, Input, Options, PaneRow, Socket, Tmux, TypePlan};
use tokio_util::sync::CancellationToken;

const COMMANDS_OF_A_PIECE: usize = 6;
const CHARS: usize = 40;
/// Looks before the first piece is in: two that invite it.
const LOOKS_BEFORE: usize = 2;
/// Looks that see the text before Enter.
const LOOKS_AFTER: usize = 2;

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let (notices, _receiver) = tokio::sync::mpsc::channel(64);
    let options = Options {
        socket: Socket::Path(place.socket()),
        home_tag: "00be9c40".to_owned(),
        program: PathBuf::from("tmux"),
        start_server: false,
    };
    let tmux = runtime.block_on(async { Tmux::start(options, notices) }).expect("a client");
    let most = length.pick(5, 2);
    let rows = [(1, 600, 30), (10, 150, 6), (100, 30, 1)].map(|(count, pieces, rival_pieces)| {
        let panes = open_panes(place, count, || runtime.block_on(tmux.list_panes()).unwrap_or_default());
        let (mut ours, mut rival) = (Vec::new(), Vec::new());
        for _ in rounds(most, Duration::from_secs(15)) {
            ours.push(runtime.block_on(typed(&tmux, &panes, pieces)));
            rival.push(by_processes(place, &panes, rival_pieces));
        }
        row(count, median(&ours), median(&rival))
    });
    runtime.block_on(tmux.close());
    rows.into()
}

/// Opens windows until there are so many panes that read what is typed and show nothing of it.
fn open_panes(place: &Place, count: usize, list: impl Fn() -> Vec<PaneRow>) -> Vec<PaneRef> {
    let readers = || -> Vec<PaneRef> {
        let rows = list().into_iter().filter(|row| row.command == "cat" && is_raw(row));
        rows.map(|row| row.pane).collect()
    };
    wait_until("the client answers", Duration::from_millis(20), || !list().is_empty());
    for _ in readers().len()..count {
        let program = "stty raw -echo; exec cat >/dev/null";
        let made = place.tmux(&["new-window", "-d", "-t", "user:", program]).status();
        assert!(made.is_ok_and(|status| status.success()), "a window");
    }
    let mut panes = Vec::new();
    wait_until("all panes run", Duration::from_millis(50), || {
        panes = readers();
        panes.len() >= count
    });
    panes
}

/// `cat` with the terminal that a full-screen program has; the one of the first window keeps its lines.
fn is_raw(row: &PaneRow) -> bool {
    let output = std::process::Command::new("stty").arg("-F").arg(&row.tty).output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("-icanon"))
}

fn row(count: usize, ours: f64, rival: f64) -> Row {
    let ratio = ours / rival;
    Row {
        figure: format!("text into {count} panes at once, commands a second, against one tmux process a command"),
        ours: per_second(ours),
        rival: per_second(rival),
        ratio: format!("{ratio:.0}"),
        goal: "≥ 20".to_owned(),
        met: ratio >= 20.0,
    }
}

/// When the pieces of all panes went in.
#[derive(Default)]
struct Span {
    first: Option<Instant>,
    last: Option<Instant>,
}

/// Sees what a composer would show, and notes when it was looked at.
struct Watcher {
    looks: AtomicUsize,
    pieces: usize,
    span: Arc<Mutex<Span>>,
}

impl Eye for Watcher {
    fn look(&self, _: &Capture) -> View {
        let look = self.looks.fetch_add(1, Ordering::Relaxed);
        let typing = LOOKS_BEFORE..LOOKS_BEFORE + self.pieces - 1;
        if typing.contains(&look) {
            let mut span = self.span.lock().unwrap_or_else(PoisonError::into_inner);
            span.first.get_or_insert_with(Instant::now);
            span.last = Some(Instant::now());
        }
        let shown = typing.start..typing.end + LOOKS_AFTER;
        let composer = if shown.contains(&look) { Composer::Text("the end".to_owned()) } else { Composer::Empty };
        View { activity: Activity::Ready, composer }
    }
}

/// Commands for each second, from the first piece after the first to the last one, over all panes.
async fn typed(tmux: &Tmux, panes: &[PaneRef], pieces: usize) -> f64 {
    let span = Arc::new(Mutex::new(Span::default()));
    let mut deliveries = Vec::new();
    for pane in panes {
        let (tmux, plan, span) = (tmux.clone(), plan(*pane, pieces), Arc::clone(&span));
        deliveries.push(tokio::spawn(async move {
            let eye = Watcher { looks: AtomicUsize::new(0), pieces, span };
            tmux.type_text(&plan, &eye, &CancellationToken::new()).await
        }));
    }
    for delivery in deliveries {
        let typed = delivery.await.expect("a delivery ends");
        assert!(matches!(typed, Typed::Submitted { .. }), "typed and submitted: {typed:?}");
    }
    let span = span.lock().unwrap_or_else(PoisonError::into_inner);
    let took = span.first.zip(span.last).map(|(first, last)| last - first).expect("pieces were typed");
    // The first look stands for no work of this span.
    let commands = panes.len() * (pieces - 1) * COMMANDS_OF_A_PIECE - COMMANDS_OF_A_PIECE;
    commands as f64 / took.as_secs_f64()
}

fn plan(pane: PaneRef, pieces: usize) -> TypePlan {
    let piece = "Forty letters, blanks and commas in all ";
    assert_eq!(piece.len(), CHARS);
    let half = uuid::Uuid::new_v4().as_u64_pair().0;
    TypePlan {
        pane,
        delivery: DeliveryId::from_bits(half),
        text: piece.repeat(pieces),
        input: Input::Pieces { chars: CHARS, gap: Duration::ZERO, settle: Duration::ZERO },
        foreground: Some("cat".to_owned()),
        enter_delay: Duration::ZERO,
        enter_retry_after: Duration::from_secs(2),
        enter_retries: 0,
        hold: Duration::from_secs(2),
        seen_within: Duration::from_secs(2),
        resumed: false,
        allow_busy: false,
        screen_proof: false,
        seen_tail: "the end".to_owned(),
    }
}

/// The same commands by a process each: as many at a time as there are cores, or panes.
fn by_processes(place: &Place, panes: &[PaneRef], pieces: usize) -> f64 {
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(panes.len());
    let began = Instant::now();
    std::thread::scope(|scope| {
        for worker in 0..workers {
            scope.spawn(move || {
                for pane in panes.iter().skip(worker).step_by(workers) {
                    for _ in 0..pieces {
                        piece_by_processes(place, pane, worker);
                    }
                }
            });
        }
    });
    assert!(began.elapsed() < PATIENCE);
    (panes.len() * pieces * COMMANDS_OF_A_PIECE) as f64 / began.elapsed().as_secs_f64()
}

fn piece_by_processes(place: &Place, pane: &PaneRef, worker: usize) {
    let (target, buffer) = (pane.to_string(), format!("rival-{worker}"));
    let facts = "#{pane_id} #{pane_pid} #{pane_dead} #{pane_current_command}";
    let text = "Forty letters, blanks and commas in all ";
    let commands: [&[&str]; COMMANDS_OF_A_PIECE] = [
        &["display-message", "-p", "-t", &target, facts],
        &["display-message", "-p", "-t", &target, facts],
        &["capture-pane", "-p", "-e", "-t", &target],
        &["set-buffer", "-b", &buffer, "--", text],
        &["paste-buffer", "-r", "-b", &buffer, "-t", &target],
        &["delete-buffer", "-b", &buffer],
    ];
    for command in commands {
        assert!(place.tmux(command).status().is_ok_and(|status| status.success()), "{command:?}");
    }
}
