//! What systemd is told by the sidecar that it has started. It is played by a socket that notes what it hears.

use super::support::stage::Stage;
use nix::sys::signal::Signal;
use std::cell::RefCell;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Where systemd would listen.
struct Manager {
    socket: UnixDatagram,
    heard: RefCell<Vec<String>>,
}

impl Manager {
    fn at(path: &Path) -> Manager {
        let socket = UnixDatagram::bind(path).expect("a socket");
        socket.set_nonblocking(true).expect("it does not wait");
        Manager { socket, heard: RefCell::default() }
    }

    /// How often a word has come by now.
    fn count(&self, word: &str) -> usize {
        let mut bytes = [0; 4096];
        while let Ok(length) = self.socket.recv(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
            self.heard.borrow_mut().extend(text.lines().map(str::to_owned));
        }
        self.heard.borrow().iter().filter(|heard| *heard == word).count()
    }
}

#[test]
fn systemd_is_told_of_the_start_of_every_turn_of_a_reload_and_of_the_end() {
    let stage = Stage::without_sidecar("");
    let path = stage.work_dir().join("notify");
    let manager = Manager::at(&path);
    let socket = stage.socket().display().to_string();
    let mut command = stage.command(&["run", "--tmux", &socket]);
    // A limit of three seconds: the loop, which else would sleep for five, has to turn more often.
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "3000000").stdout(Stdio::null()).stderr(Stdio::null());
    stage.adopt(command.spawn().expect("it starts"));
    stage.until("it is ready", || manager.count("READY=1") == 1);
    assert!(stage.home().join("view/sidecar.json").exists(), "ready means that requests are served");
    stage.until("it is alive three times", || manager.count("WATCHDOG=1") >= 3);
    let before = manager.count("WATCHDOG=1");
    stage.signal(Signal::SIGSTOP);
    // Whatever was sent before it stood still is taken; nothing may follow.
    std::thread::sleep(Duration::from_millis(200));
    let stopped = manager.count("WATCHDOG=1");
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(manager.count("WATCHDOG=1"), stopped, "a loop that stands still is not said to turn ({before} before)");
    stage.signal(Signal::SIGCONT);
    stage.signal(Signal::SIGHUP);
    stage.until("it reads its configuration again", || {
        manager.count("RELOADING=1") == 1 && manager.count("READY=1") == 2
    });
    assert_eq!(manager.count("STOPPING=1"), 0);
    stage.end_sidecar(Signal::SIGTERM);
    assert_eq!(manager.count("STOPPING=1"), 1);
}

#[test]
fn a_manager_that_stands_still_holds_up_neither_the_loop_nor_the_end() {
    let stage = Stage::without_sidecar("");
    let path = stage.work_dir().join("notify");
    let manager = Manager::at(&path);
    // Its queue is full: whoever says one word more waits until it listens again.
    let crowd = std::os::unix::net::UnixDatagram::unbound().expect("a socket");
    crowd.set_nonblocking(true).expect("it does not wait");
    while crowd.send_to(b"WATCHDOG=1", &path).is_ok() {}
    let socket = stage.socket().display().to_string();
    let mut command = stage.command(&["run", "--tmux", &socket]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "3000000").stdout(Stdio::null()).stderr(Stdio::null());
    stage.adopt(command.spawn().expect("it starts"));
    stage.until_beating();
    let (status, code, message) = stage.refused(&serde_json::json!({"kind": "agent_shutdown", "agent_id": "nobody"}));
    assert!((400..500).contains(&status), "{status} {code} {message}");
    stage.until("it hears at last that it is ready", || manager.count("READY=1") == 1);
    while crowd.send_to(b"WATCHDOG=1", &path).is_ok() {}
    stage.end_sidecar(Signal::SIGTERM);
}
