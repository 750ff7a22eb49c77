//! Several homes on one server, which come, go and make sessions at once: the server outlives it.

use crate::support::stage::Stage;
use crate::support::stage_files::read_json;
use crate::support::tmux::{Server, TestScreenReader, connect_home, plan as type_plan, wait_until};
use crate::support::typed::{SUBMITTED, refused, type_it};
use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tasuki::core::pane::{ComposerContent, Refusal, ScreenReading};
use tasuki::tmux::{Capture, ScreenReader, SpawnOutcome, SpawnPlan};
use tokio_util::sync::CancellationToken;

const HOMES: u32 = 8;
const ROUNDS: u32 = 6;
const PATIENCE: Duration = Duration::from_secs(30);

/// A home comes, makes a session, and leaves.
async fn visit(socket: PathBuf, number: u32, round: u32) {
    let tmux = connect_home(&socket, &format!("{number:08x}"), PATIENCE).await;
    let made = tmux.spawn(&plan(number, round)).await;
    assert!(matches!(made, SpawnOutcome::Started(_)), "{made:?}");
    tmux.close().await;
}

fn plan(number: u32, round: u32) -> SpawnPlan {
    SpawnPlan {
        creation: format!("{round}-{number}"),
        session: format!("agent-{number}-{round}"),
        own_session: true,
        window_name: "agent".to_owned(),
        cwd: "/".into(),
        size: (80, 24),
        env: Vec::new(),
        argv: vec!["sleep".to_owned(), "600".to_owned()],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn homes_that_come_and_go_at_once_do_not_end_the_server() {
    let server = Server::start();
    let pid = server.pid();
    for round in 0..ROUNDS {
        let visits: Vec<_> = (0..HOMES).map(|number| tokio::spawn(visit(server.socket(), number, round))).collect();
        for visit in visits {
            visit.await.expect("it came and went");
        }
    }
    assert_eq!(server.pid(), pid, "the server has ended and was begun again");
}

#[tokio::test]
async fn a_home_that_leaves_waits_for_one_that_takes_long_to_connect() {
    let server = Server::start();
    let leaving = connect_home(&server.socket(), "0000000a", PATIENCE).await;
    let connecting = another_home_connects(&server);
    let mut leaves = tokio::spawn(async move { leaving.close().await });
    let too_soon = tokio::time::timeout(Duration::from_secs(2), &mut leaves).await;
    assert!(too_soon.is_err(), "it left while another home was connecting");
    drop(connecting);
    tokio::time::timeout(PATIENCE, leaves).await.expect("it leaves in time").expect("it leaves");
}

/// Holds the lock between homes, as a home does while it connects.
fn another_home_connects(server: &Server) -> Flock<File> {
    let folder = File::open(server.dir.path()).expect("a folder");
    Flock::lock(folder, FlockArg::LockExclusiveNonblock).expect("nobody else has it")
}

/// Reads the composer's screen, and counts how often it invited.
#[derive(Default)]
struct Inviting(AtomicU32);

impl ScreenReader for Inviting {
    fn look(&self, capture: &Capture) -> ScreenReading {
        let reading = TestScreenReader.look(capture);
        self.0.fetch_add((reading.composer == ComposerContent::Empty).into(), Ordering::Relaxed);
        reading
    }
}

impl Inviting {
    /// Waits until the text would go in, if no other home were connecting.
    async fn is_done(&self) {
        while self.0.load(Ordering::Relaxed) < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn what_is_typed_while_another_home_connects_is_seen_before_our_text_goes_in() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let connecting = another_home_connects(&server);
    let (text, reader, stop) = (type_plan(pane, 1, "Ours."), Inviting::default(), CancellationToken::new());
    let person = async {
        reader.is_done().await;
        server.tmux(&["send-keys", "-t", &pane.to_string(), "-l", "mine"]);
        wait_until("it is on the screen", || {
            server.tmux(&["capture-pane", "-p", "-t", &pane.to_string()]).contains("mine")
        });
        drop(connecting);
    };
    let (typed, ()) = tokio::join!(tmux.type_text(&text, &reader, &stop), person);
    assert_eq!((typed, composer.bytes()), (refused(Refusal::Draft), b"mine".to_vec()));
}

#[tokio::test]
async fn a_text_that_is_stopped_while_another_home_connects_is_not_typed() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let connecting = another_home_connects(&server);
    let (text, reader, stop) = (type_plan(pane, 1, "Ours."), Inviting::default(), CancellationToken::new());
    let stopped = async {
        reader.is_done().await;
        stop.cancel();
    };
    let ended = async { tokio::join!(tmux.type_text(&text, &reader, &stop), stopped).0 };
    let typed = tokio::time::timeout(Duration::from_secs(10), ended).await;
    assert_eq!(typed.ok(), Some(refused(Refusal::NotReady)));
    drop(connecting);
    assert_eq!(type_it(&tmux, &type_plan(pane, 2, "Later.")).await, SUBMITTED);
    assert_eq!(composer.submits(), ["Later."]);
}

/// A sidecar of another home on a stage's server; it ends with this value.
struct SecondSidecar {
    home: PathBuf,
    child: Child,
}

impl SecondSidecar {
    fn start(stage: &Stage, home: PathBuf) -> SecondSidecar {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
        command.arg("--home").arg(&home).args(["run", "--tmux"]).arg(stage.socket());
        Stage::make_own(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        SecondSidecar { child: command.spawn().expect("the sidecar starts"), home }
    }

    fn view(&self) -> Value {
        read_json(&self.home.join("view/sidecar.json")).unwrap_or(Value::Null)
    }
}

impl Drop for SecondSidecar {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_copy_of_a_home_leaves_the_server_to_the_original_until_that_ends() {
    let stage = Stage::new();
    stage.end_sidecar(Signal::SIGTERM);
    let home = stage.home().with_file_name("copy");
    let copied = Command::new("cp").arg("-a").arg(stage.home()).arg(&home).status().expect("cp runs");
    assert!(copied.success());
    stage.start_sidecar();
    let clients = || stage.tmux(&["list-clients", "-F", "#{client_control_mode} #{client_pid}"]);
    stage.until("the original is connected", || stage.sidecar_view()["tmux"].is_object());
    let before = clients();
    let copy = SecondSidecar::start(&stage, home);
    let original = format!("process {}", stage.sidecar_pid());
    stage.until("the copy says why it does nothing", || {
        let view = copy.view();
        let problem = view["problem"].as_str().unwrap_or_default();
        view["state"] == "degraded" && problem.contains(&original) && problem.contains("copy")
    });
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_tasuki"));
    Stage::make_own(doctor.arg("--home").arg(&copy.home).arg("doctor"));
    let told = String::from_utf8_lossy(&doctor.output().expect("it runs").stdout).into_owned();
    assert!(told.contains(&original), "{told}");
    let look = Instant::now();
    while look.elapsed() < Duration::from_secs(6) {
        assert_eq!(clients(), before, "the original's client was ended, or the copy has one");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(stage.sidecar_view()["problem"].is_null(), "{}", stage.sidecar_view());
    assert!(copy.view()["tmux"].is_null() || copy.view()["state"] == "degraded", "{}", copy.view());
    // A sidecar that was killed leaves nothing that holds the copy up.
    stage.end_sidecar(Signal::SIGKILL);
    stage.until("the copy is connected", || {
        let view = copy.view();
        view["state"] == "running" && view["problem"].is_null() && view["tmux"].is_object() && clients() != before
    });
    assert_eq!(clients().lines().filter(|line| line.starts_with('1')).count(), 1, "{}", clients());
}
