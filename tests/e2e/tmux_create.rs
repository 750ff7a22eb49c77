//! New windows, made once.

use crate::support::processes::{bears, words};
use crate::support::tmux::{Server, is_running, wait_until};
use crate::support::viewer::Viewer;
use std::sync::Arc;
use std::time::Duration;
use tasuki::agents::profile::Profiles;
use tasuki::config::{Config, Home, OperatorCommand};
use tasuki::core::effect::{Effect, EffectKey, Outcome};
use tasuki::runner::{Runner, SettledEffect, Tools};
use tasuki::tmux::{CreationState, SpawnOutcome, SpawnPlan};

const CREATION: &str = "6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa";

pub(super) fn plan(server: &Server, argv: &[&str]) -> SpawnPlan {
    SpawnPlan {
        creation: CREATION.into(),
        session: "main".into(),
        own_session: false,
        window_name: "successor".into(),
        cwd: server.dir.path().to_owned(),
        env: vec![("TASUKI_TEST".into(), "a;b \"c\" $HOME #{pid} 日本\nline".into())],
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        size: (120, 40),
    }
}

fn windows(server: &Server) -> String {
    server.tmux(&["list-windows", "-a", "-F", "#{session_name} #{window_name} #{window_active}"])
}

#[tokio::test]
async fn one_creation_makes_one_process_however_often_it_is_asked_for() {
    let server = Server::start();
    let tmux = server.connect().await;
    let plan = plan(&server, &["cat"]);
    assert_eq!(tmux.find_spawned(CREATION).await.expect("an answer"), CreationState::Never);
    let (first, second) = tokio::join!(tmux.spawn(&plan), tmux.spawn(&plan));
    let SpawnOutcome::Started(pane) = first else { panic!("{first:?}") };
    assert_eq!(second, SpawnOutcome::Started(pane));
    assert_eq!(tmux.spawn(&plan).await, SpawnOutcome::Started(pane));
    drop(tmux);
    let tmux = server.connect().await;
    assert_eq!(tmux.spawn(&plan).await, SpawnOutcome::Started(pane));
    assert_eq!(tmux.find_spawned(CREATION).await.expect("an answer"), CreationState::Alive(pane));
    assert_eq!(windows(&server).matches("successor").count(), 1);
    assert!(windows(&server).contains("main successor 0"), "nobody's current window changes");
    assert!(tmux.kill_pane(&pane).await.expect("an answer"));
    wait_until("it has ended", || !is_running(pane.pid));
    assert_eq!(tmux.spawn(&plan).await, SpawnOutcome::Died);
    assert!(!tmux.kill_pane(&pane).await.expect("an answer"));
}

/// A launch line of one word is a program's path, whatever stands in it; and a window's name is no format.
#[tokio::test]
async fn one_word_is_a_program_and_no_command_line() {
    use std::os::unix::fs::PermissionsExt;
    let server = Server::start();
    let tmux = server.connect().await;
    let program = server.dir.path().join("sleeper ; touch trap");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 600\n").expect("written");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).expect("a program");
    let plan = SpawnPlan { window_name: "w#{pid}%H".into(), ..plan(&server, &[program.to_str().expect("plain")]) };
    let SpawnOutcome::Started(pane) = tmux.spawn(&plan).await else { panic!("not started") };
    let command = || server.tmux(&["display-message", "-p", "-t", &pane.to_string(), "#{pane_current_command}"]);
    wait_until("it runs", || command() == "sleep");
    assert!(!server.dir.path().join("trap").exists(), "a shell has read it");
    assert!(windows(&server).contains("main w{pid}H 0"), "{}", windows(&server));
}

/// The note at the pane may never have been written, and a program may have another environment by then.
#[tokio::test]
async fn what_was_made_is_found_by_its_note_and_by_its_environment() {
    let server = Server::start();
    let tmux = server.connect().await;
    let bare = SpawnPlan { creation: "b1".into(), ..plan(&server, &["sh", "-c", "exec env -i sleep 600"]) };
    let SpawnOutcome::Started(pane) = tmux.spawn(&bare).await else { panic!("not started") };
    let environ = || tasuki::process::environment_all(pane.pid).ok().flatten();
    wait_until("its environment is gone", || environ().is_none_or(|all| all.is_empty()) && is_running(pane.pid));
    assert_eq!(tmux.find_spawned("b1").await.expect("an answer"), CreationState::Alive(pane));
    let noted = SpawnPlan { creation: "b2".into(), ..plan(&server, &["sleep", "600"]) };
    let SpawnOutcome::Started(pane) = tmux.spawn(&noted).await else { panic!("not started") };
    server.tmux(&["set-option", "-p", "-u", "-t", &pane.to_string(), "@tasuki_born_00c0ffee"]);
    assert_eq!(tmux.find_spawned("b2").await.expect("an answer"), CreationState::Alive(pane));
}

/// Not a test, but a program that forbids others to read its environment, as Codex does.
#[cfg(target_os = "linux")]
#[test]
fn secretive_program() {
    let Some(ready) = std::env::var_os("TASUKI_TEST_SECRETIVE") else { return };
    nix::sys::prctl::set_dumpable(false).expect("always allowed");
    std::fs::write(ready, "").expect("written");
    std::thread::sleep(Duration::from_secs(600));
}

/// Gives up this thread's capabilities: with them, a test that runs as root may read every environment.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn drop_capabilities() {
    let (header, none) = ([0x2008_0522_u32, 0], [0_u32; 6]);
    // SAFETY: the kernel reads both arrays, which have the sizes that this version of the call asks for.
    let result = unsafe { nix::libc::syscall(nix::libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    assert_eq!(result, 0, "giving up is always allowed");
}

/// A program that forbids reading its environment may be the one that is searched for, unless something else is known
/// of its pane.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_may_not_be_looked_at_does_not_count_as_dead() {
    let server = Server::start();
    let tmux = server.connect().await;
    let (exe, ready) = (std::env::current_exe().expect("our own path"), server.dir.path().join("ready"));
    let argv = [exe.to_str().expect("plain"), "tmux_create::secretive_program", "--exact", "--nocapture"];
    let env = vec![("TASUKI_TEST_SECRETIVE".to_owned(), ready.to_str().expect("plain").to_owned())];
    let plan = SpawnPlan { creation: "b1".into(), env, ..plan(&server, &argv) };
    let SpawnOutcome::Started(pane) = tmux.spawn(&plan).await else { panic!("not started") };
    wait_until("it runs", || ready.exists());
    // Without capabilities, root may look at no program of root's: this one's pane is known.
    server.tmux(&["set-option", "-p", "-t", "main:0", "@tasuki_claim", "00c0ffee.2.2"]);
    drop_capabilities();
    let pane = pane.to_string();
    server.tmux(&["set-option", "-p", "-u", "-t", &pane, "@tasuki_born_00c0ffee"]);
    let found = tmux.find_spawned("b1").await;
    assert!(matches!(found, Err(tasuki::tmux::Error::Unseen(_))), "{found:?}");
    assert!(matches!(tmux.spawn(&plan).await, SpawnOutcome::Unknown(_)));
    for (option, value) in [("@tasuki_claim", "00c0ffee.1.1"), ("@tasuki_born_00c0ffee", "b2")] {
        server.tmux(&["set-option", "-p", "-t", &pane, option, value]);
        assert_eq!(tmux.find_spawned("b1").await.expect("an answer"), CreationState::Died, "{option}");
        server.tmux(&["set-option", "-p", "-u", "-t", &pane, option]);
    }
}

/// A folder on a network disk may not answer for minutes.
#[test]
fn the_look_at_the_folder_takes_no_thread_of_the_runtime() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.max_blocking_threads(1).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let server = Server::start();
        let tmux = server.connect().await;
        let plan = SpawnPlan { cwd: "/nowhere".into(), ..plan(&server, &["cat"]) };
        // The disk hangs: the only thread for work that waits for a disk does not come back.
        let (answers, hangs) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || hangs.recv());
        let early = tokio::time::timeout(Duration::from_secs(1), tmux.spawn(&plan)).await;
        assert!(early.is_err(), "it did not wait for the disk, or waited on a thread of the runtime: {early:?}");
        drop(answers);
        assert!(matches!(tmux.spawn(&plan).await, SpawnOutcome::Failed(why) if why.contains("/nowhere")));
    });
}

#[tokio::test]
async fn windows_that_are_made_at_once_share_the_session_that_was_missing() {
    let server = Server::start();
    let tmux = server.connect().await;
    let one = |last: u8| SpawnPlan {
        creation: format!("{}{last}", &CREATION[..CREATION.len() - 1]),
        session: "tasuki-dev".into(),
        own_session: true,
        ..plan(&server, &["cat"])
    };
    let plans = [one(1), one(2), one(3)];
    let (first, second, third) = tokio::join!(tmux.spawn(&plans[0]), tmux.spawn(&plans[1]), tmux.spawn(&plans[2]));
    for outcome in [first, second, third] {
        assert!(matches!(outcome, SpawnOutcome::Started(_)), "{outcome:?}");
    }
    assert_eq!(windows(&server).matches("tasuki-dev successor").count(), 3);
}

#[tokio::test]
async fn the_program_gets_its_environment_arguments_and_directory_exactly() {
    let server = Server::start();
    let tmux = server.connect().await;
    let odd = server.dir.path().join("a #{pid} #[b ##{x} %H;dir");
    std::fs::create_dir(&odd).expect("a folder");
    let out = server.dir.path().join("out");
    let script = format!(
        "{{ pwd; printf %s \"$TASUKI_TEST\"; printf '<%s>' \"$@\"; }} >{0}.tmp; mv {0}.tmp {0}; cat",
        out.display()
    );
    let words = ["sh", "-c", &script, "sh", "it's", "; x", "$(id) `id`", "a\nb\t\\", "{ } #{pid} ~"];
    let plan = SpawnPlan { cwd: odd.clone(), ..plan(&server, &words) };
    assert!(matches!(tmux.spawn(&plan).await, SpawnOutcome::Started(_)));
    wait_until("it has written", || out.exists());
    let arguments: String = words[4..].iter().map(|word| format!("<{word}>")).collect();
    let expected = format!("{}\n{}{arguments}", odd.display(), plan.env[0].1);
    assert_eq!(std::fs::read_to_string(out).expect("text"), expected);
}

#[tokio::test]
async fn a_missing_session_is_made_only_when_it_is_ours() {
    let server = Server::start();
    let tmux = server.connect().await;
    let other = SpawnPlan { session: "tasuki-dev".into(), ..plan(&server, &["cat"]) };
    assert!(matches!(tmux.spawn(&other).await, SpawnOutcome::Failed(_)));
    let own = SpawnPlan { own_session: true, ..other };
    let outcome = tmux.spawn(&own).await;
    let SpawnOutcome::Started(pane) = outcome else { panic!("{outcome:?}") };
    let row = tmux.facts(pane.pane).await.expect("an answer").expect("a pane");
    assert_eq!((row.session_name.as_str(), row.size), ("tasuki-dev", (120, 40)));
}

/// What tmux gives a new session by `-e`, it would give to each later window there.
#[tokio::test]
async fn windows_that_are_opened_in_a_session_of_ours_have_no_agents_variables() {
    let server = Server::start();
    let tmux = server.connect().await;
    for (number, name) in ["dev", "$1", "$[a]*?"].iter().enumerate() {
        let (creation, session) = (format!("d{number}"), (*name).to_owned());
        let env = vec![("TASUKI_AGENT_ID".to_owned(), format!("agent-{number}"))];
        let plan = SpawnPlan { creation, session, own_session: true, env, ..plan(&server, &["cat"]) };
        let outcome = tmux.spawn(&plan).await;
        let SpawnOutcome::Started(pane) = outcome else { panic!("{name}: {outcome:?}") };
        // Between fork and exec, it has no environment of its own.
        wait_until("the agent runs", || bears(pane.pid, &format!("TASUKI_AGENT_ID=agent-{number}")));
        // A pane before the agent's own, as `split-window -b` makes it.
        let split =
            ["split-window", "-b", "-d", "-P", "-F", "#{pane_id} #{pane_pid}", "-t", &format!("%{}", pane.pane), "cat"];
        let made = server.tmux(&split);
        let pid = made.split_once(' ').and_then(|(_, pid)| pid.trim().parse().ok()).expect("a pane");
        wait_until("its program runs", || words(pid) == ["cat"]);
        for variable in [format!("TASUKI_AGENT_ID=agent-{number}"), format!("TASUKI_CREATION=d{number}")] {
            assert!(!bears(pid, &variable), "{name}: {variable}");
        }
        assert_eq!(tmux.find_spawned(&plan.creation).await.expect("an answer"), CreationState::Alive(pane));
    }
}

/// With that option, tmux ends each session without a client whenever any client comes or goes.
#[tokio::test]
async fn a_session_of_ours_needs_no_client() {
    let server = Server::start();
    server.tmux(&["set-option", "-t", "main", "destroy-unattached", "off"]);
    server.tmux(&["set-option", "-g", "destroy-unattached", "on"]);
    let tmux = server.connect().await;
    let mut made = Vec::new();
    for (number, name) in ["dev", "$1", "$[a]*?"].iter().enumerate() {
        let (creation, session) = (format!("d{number}"), (*name).to_owned());
        let plan = SpawnPlan { creation, session, own_session: true, ..plan(&server, &["cat"]) };
        let outcome = tmux.spawn(&plan).await;
        let SpawnOutcome::Started(pane) = outcome else { panic!("{name}: {outcome:?}") };
        made.push(pane);
    }
    Viewer::attach(&server.socket(), "main").detach();
    let rows = tmux.list_panes().await.expect("an answer");
    for pane in made {
        assert!(rows.iter().any(|row| row.pane == pane) && is_running(pane.pid), "its session was ended");
    }
}

#[tokio::test]
async fn a_session_is_found_and_made_whatever_its_name() {
    let server = Server::start();
    let names = ["C#", "@work", "$1", "%0", "=x", "a b", "{0}", "#{pid}", "main2"];
    for name in names {
        let doubled = name.replace('#', "##");
        server.tmux(&["new-session", "-d", "-s", &doubled, "exec cat"]);
    }
    let tmux = server.connect().await;
    for (number, name) in names.iter().enumerate() {
        let plan = SpawnPlan {
            creation: format!("c{number}"),
            session: (*name).to_owned(),
            own_session: true,
            ..plan(&server, &["cat"])
        };
        let outcome = tmux.spawn(&plan).await;
        let SpawnOutcome::Started(pane) = outcome else { panic!("{name}: {outcome:?}") };
        let row = tmux.facts(pane.pane).await.expect("an answer").expect("a pane");
        assert_eq!((row.session_name.as_str(), row.session_windows), (*name, 2));
    }
    for (number, name) in ["C##", "D#", "@home", "$99", "100%d", "#{pid}x"].iter().enumerate() {
        let (creation, session) = (format!("e{number}"), (*name).to_owned());
        let plan = SpawnPlan { creation, session, own_session: true, ..plan(&server, &["cat"]) };
        let outcome = tmux.spawn(&plan).await;
        let SpawnOutcome::Started(pane) = outcome else { panic!("{name}: {outcome:?}") };
        let row = tmux.facts(pane.pane).await.expect("an answer").expect("a pane");
        assert_eq!((row.session_name.as_str(), row.session_windows), (*name, 1));
    }
    for name in ["", "a.b", "a:b", "a\nb"] {
        let plan =
            SpawnPlan { creation: "0d".into(), session: name.into(), own_session: true, ..plan(&server, &["cat"]) };
        assert!(matches!(tmux.spawn(&plan).await, SpawnOutcome::Failed(_)), "{name}");
    }
}

#[tokio::test]
async fn what_cannot_be_started_is_said_and_can_be_tried_again() {
    let server = Server::start();
    let tmux = server.connect().await;
    let nowhere = SpawnPlan { cwd: "/nowhere/at/all".into(), ..plan(&server, &["cat"]) };
    assert!(matches!(tmux.spawn(&nowhere).await, SpawnOutcome::Failed(_)));
    assert!(matches!(tmux.spawn(&plan(&server, &[])).await, SpawnOutcome::Failed(_)));
    assert!(matches!(tmux.spawn(&plan(&server, &["cat"])).await, SpawnOutcome::Started(_)));
    let broken = SpawnPlan { creation: "0b".into(), ..plan(&server, &["/no/such/program"]) };
    let first = tmux.spawn(&broken).await;
    assert!(matches!(first, SpawnOutcome::Started(_) | SpawnOutcome::Died), "{first:?}");
    wait_until("it is gone", || windows(&server).matches("successor").count() == 1);
    assert_eq!(tmux.spawn(&broken).await, SpawnOutcome::Died);
}

#[tokio::test]
async fn without_a_server_nothing_is_started() {
    let server = Server::start();
    server.tmux(&["kill-server"]);
    let (notices, _inbox) = tokio::sync::mpsc::channel(8);
    let tmux = tasuki::tmux::Tmux::start(server.options(), notices).expect("a thread");
    assert_eq!(tmux.spawn(&plan(&server, &["cat"])).await, SpawnOutcome::NoTmux);
}

#[tokio::test]
async fn a_placeholder_that_could_not_be_removed_is_removed_when_a_server_answers() {
    let server = Server::start();
    server.tmux(&["kill-server"]);
    let (notices, _inbox) = tokio::sync::mpsc::channel(64);
    let home = tempfile::tempdir().expect("a folder");
    let Config { facts, .. } = Config::default();
    let tools = Tools {
        facts,
        allow: Vec::new(),
        tmux: tasuki::tmux::Tmux::start(server.options(), notices).expect("a thread"),
        profiles: Profiles::load(None).expect("the built-in ones"),
        home: Home::at(home.path()).expect("a home"),
        notify_command: OperatorCommand::None,
        gh: "gh".to_owned(),
        program: env!("CARGO_BIN_EXE_tasuki").into(),
        late: Arc::default(),
    };
    let (mut runner, mut ended) = Runner::new(Arc::new(tools));
    runner.submit(EffectKey(1), Effect::DropPlaceholder { tag: "ab".to_owned() }, false);
    let waits = tokio::time::timeout(Duration::from_secs(1), ended.recv()).await;
    assert!(waits.is_err(), "it is given up: {waits:?}");
    server.begin();
    let end = tokio::time::timeout(Duration::from_secs(60), ended.recv()).await;
    assert!(matches!(end, Ok(Some(SettledEffect { outcome: Outcome::Done, .. }))), "{end:?}");
}
