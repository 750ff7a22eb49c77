//! A fleet at rest: one server, 200 hosts of 50 agents each, whose bridges are simulated in this process, and one real
//! bridge. What the server and that bridge need, and how long it takes to list all of it.
//!
//! `scripts/bench fleet` measures it, and finds a NATS server.

mod simulated;

use crate::Length;
use crate::commands::run;
use crate::drops::register;
use crate::idle::{resident, wakes, wakes_in_words};
use crate::place::{Place, Worker, wait_until};
use crate::rows::{self, Figure};
use crate::sample::{ms, percentile, rounds, share_of_a_core};
use crate::table::Row;
use nix::unistd::Pid;
use simulated::SimulatedHost;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const HOSTS: usize = 200;
const AGENTS: usize = 50;
const FLEET: &str = env!("CARGO_BIN_EXE_tasuki-fleet");
/// What a list of all hosts may take.
const GOAL: Duration = Duration::from_millis(100);

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let fleet = Fleet::new(place);
    let hosts: Vec<SimulatedHost> = (0..HOSTS).map(|number| fleet.admit(number)).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let put = simulated::run(&runtime, hosts, AGENTS);
    wait_until("all hosts have told of themselves", Duration::from_millis(50), || put() >= HOSTS as u64);
    let all = || String::from_utf8_lossy(&fleet.said(&["hosts"])).matches(" live ").count();
    wait_until("all hosts are live", Duration::from_secs(1), || all() == HOSTS + 1);
    let listed = [
        fleet.listed(rows::FLEET_AGENTS, crate::place::TASUKI, &["agents", "--all-hosts"], length),
        fleet.listed(rows::FLEET_HOSTS, FLEET, &["hosts"], length),
    ];
    let looked = share_of_a_core(fleet.bridge.pid(), Duration::from_secs(length.pick(20, 5)));
    // A look counts for a minute.
    std::thread::sleep(Duration::from_secs(65));
    let (before, watched) = (put(), Duration::from_secs(length.pick(41, 16)));
    let (server, bridge, wakes) = std::thread::scope(|scope| {
        let share = |pid: Pid| scope.spawn(move || share_of_a_core(pid, watched));
        let (server, bridge) = (share(fleet.server.pid()), share(fleet.bridge.pid()));
        let wakes = wakes(fleet.bridge.pid(), watched);
        (server.join().expect("measured"), bridge.join().expect("measured"), wakes)
    });
    eprintln!("{:.1} rosters/s at rest", (put() - before) as f64 / watched.as_secs_f64());
    let (of_server, of_bridge) = (resident(fleet.server.pid()), resident(fleet.bridge.pid()));
    let percent = |figure: Figure, share: f64| Row::alone(figure, format!("{share:.2} %"), share < 5.0);
    let mut rows = vec![
        percent(rows::FLEET_SERVER_SHARE, server),
        Row::alone(rows::FLEET_SERVER_MEMORY, format!("{of_server:.0} MiB"), true),
        percent(rows::FLEET_BRIDGE_SHARE, bridge),
        Row::alone(rows::FLEET_BRIDGE_MEMORY, format!("{of_bridge:.1} MiB"), of_bridge < 32.0),
        Row::alone(rows::FLEET_BRIDGE_WAKES, wakes_in_words(&wakes, watched), true),
        Row::alone(rows::FLEET_BRIDGE_LOOKED, format!("{looked:.2} %"), true),
    ];
    rows.extend(listed);
    rows
}

/// The server, and the real host, which is the fleet's owner.
struct Fleet {
    bridge: Worker,
    _sidecar: Worker,
    server: Worker,
    home: PathBuf,
    url: String,
    ca: PathBuf,
}

impl Fleet {
    fn new(place: &Place) -> Fleet {
        let (home, folder, address) = (place.home("fleet"), place.path("fleet-server"), free_address());
        let at = folder.display().to_string();
        said(&home, &["server", "init", &at, "--listen", &address, "--name", "bench"]);
        let program = std::env::var_os("TASUKI_NATS_SERVER").unwrap_or_else(|| "nats-server".into());
        let mut command = Command::new(program);
        command.arg("-c").arg(folder.join("nats-server.conf")).stdout(Stdio::null());
        let server = Worker::spawn(&mut command, &place.path("fleet-server.log"));
        wait_until("the server listens", Duration::from_millis(20), || TcpStream::connect(&address).is_ok());
        said(&home, &["join", "--first", &at, "--as", "real"]);
        let sidecar = Worker::tasuki(place, &home);
        register(&home, AGENTS, |number| {
            format!(
                r#"{{"v":1,"event":"session_start","profile":"claude","session_id":"session-{number}","cwd":"/home/kai/src/app-{number}"}}"#
            )
        });
        let mut command = command_of(&home, &["run"]);
        let bridge =
            Worker::spawn(command.env("TASUKI_LOG", "warn").stdout(Stdio::null()), &home.with_extension("bridge.log"));
        let (url, ca) = (format!("tls://{address}"), folder.join("ca.pem"));
        Fleet { bridge, _sidecar: sidecar, server, home, url, ca }
    }

    /// Admits a host that is simulated.
    fn admit(&self, number: usize) -> SimulatedHost {
        let host = SimulatedHost::new(number, &self.url, &self.ca);
        let ticket = self.said(&["admit", &host.key_line()]);
        host.admitted(&String::from_utf8(ticket).expect("a ticket"))
    }

    fn said(&self, args: &[&str]) -> Vec<u8> {
        said(&self.home, args)
    }

    /// How long a list of all takes, as a whole process, against one that lists nothing.
    fn listed(&self, figure: Figure, program: &str, args: &[&str], length: Length) -> Row {
        let (mut ours, mut floor) = (Vec::new(), Vec::new());
        for _ in rounds(length.pick(60, 20), Duration::from_secs(length.pick(20, 8))) {
            ours.push(run(program, &self.home, args));
            floor.push(run(program, &self.home, &["--version"]));
        }
        eprintln!("{}: p90 {}", figure.name, ms(percentile(&ours, 0.9)));
        Row { met: percentile(&ours, 0.5) < GOAL, ..Row::times(figure, &ours, &floor, 0.5, f64::INFINITY) }
    }
}

fn command_of(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(FLEET);
    command.arg("--home").arg(home).args(args).stdin(Stdio::null());
    command
}

/// What a command of `tasuki-fleet` prints, which must succeed.
fn said(home: &Path, args: &[&str]) -> Vec<u8> {
    let output = command_of(home, args).output().expect("it runs");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// An address at which nobody listens at this moment.
fn free_address() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its address").to_string()
}
