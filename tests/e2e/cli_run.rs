//! `tasuki run` from outside: when it reads its configuration again, and when it ends.

use super::support::stage::Stage;
use super::support::stage_files::read_json;
use nix::sys::signal::Signal;
use std::fs;

#[test]
fn a_sidecar_in_a_pane_ends_with_the_pane_also_when_its_log_goes_to_a_file() {
    let stage = Stage::without_sidecar("");
    let (home, socket) = (stage.home(), stage.socket());
    let log = stage.work_dir().join("log");
    let run = format!(
        "exec '{}' run --home '{}' --tmux '{}' 2>'{}'",
        env!("CARGO_BIN_EXE_tasuki"),
        home.display(),
        socket.display(),
        log.display()
    );
    stage.tmux(&["new-window", "-d", "-t", "user:", "-n", "run", &run]);
    let view = home.join("view/sidecar.json");
    stage.until("it beats", || view.exists());
    stage.tmux(&["kill-window", "-t", "user:run"]);
    stage.until("it says that it lives no more", || !view.exists());
}

#[test]
fn a_sidecar_without_a_terminal_reads_its_configuration_again_and_goes_on() {
    let stage = Stage::new();
    fs::write(stage.home().join("config.toml"), "[limits]\nwritting = \"1m\"\n").expect("written");
    stage.signal(Signal::SIGHUP);
    stage.persona("kai");
    let agent = stage.agent("kai");
    assert_eq!(stage.agent_view(&agent)["state"], "idle", "a wrong configuration changes nothing");
    let problem = || {
        let view = read_json(&stage.home().join("view/sidecar.json")).unwrap_or_default();
        view["problem"].as_str().unwrap_or_default().to_owned()
    };
    stage.until("what waits for a person names it", || problem().contains("limits.writting"));
    assert!(problem().contains("have the sidecar read it again: kill -HUP"), "{}", problem());
    fs::write(stage.home().join("config.toml"), "[limits]\nwriting = \"1m\"\n").expect("written");
    stage.signal(Signal::SIGHUP);
    stage.until("the problem is over", || problem().is_empty());
    fs::write(stage.home().join("config.toml"), "[tmux]\nstart = true\n").expect("written");
    stage.signal(Signal::SIGHUP);
    stage.until("a key that waits for a restart is named", || problem().contains("for tmux.start than at the start"));
    assert!(stage.end_sidecar(Signal::SIGTERM).success());
}
